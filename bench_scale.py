"""Beside bench.py — Up to how many chunks is an exact search quick enough? Run by `make bench`, on all cores.

Nothing is approximate here: each question is compared with every chunk it may find. So the time grows with the chunks,
and at some number it is too long. This measures where, from the question's vector to the fused ranking.

    sizes      10,000, 100,000 and 1,000,000 chunks
    chunk      40 words drawn by Zipf's law, and a random vector of length 1
    question   six words of such a text, and a random vector; to make a vector of words takes the encoder 5 ms more
    all        the user may see every chunk
    1% filter  the same user, where={"doc_type": "md"}, which one chunk in a hundred is
    10% hidden another user, who may not see one chunk in ten: the words' statistics are of the rest
    dense, lexical, hybrid    who may see what, and then one retriever, or both and their ranks fused; 50 chunks each
    threads    the same as hybrid, but both retrievers at the same time
    p50, p95   half of the questions are answered in that time; 19 in 20

Random vectors are the hard case for the words (any chunk may be the best) and no case at all for quality.

Not here: the encoder (bench_encoder.py); reranking; approximate indexes, which would be needed beyond.
"""

import argparse
import functools
import gc
import hashlib
import json
import re
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import bench
import chunking
import fusion
import index as indexes

RESULTS = Path(__file__).parent / "results"
SIZES, SMALL = (10_000, 100_000, 1_000_000), (200, 1_000)
K_EACH, DIM, WORDS, VOCABULARY, TARGET = 50, 384, 40, 30_000, 0.150
CASES = {"all": (["staff"], None), "1% filter": (["staff"], {"doc_type": "md"}), "10% hidden": (None, None)}
WAYS = ("masks", "dense", "lexical", "hybrid", "threads")


class Result(NamedTuple):
    """What was measured at one size: seconds, and bytes."""

    n: int
    steps: dict         # "build", "update one", "save", "load" -> seconds
    memory: dict        # "vectors", "postings", "chunks and the rest", "peak while building" -> bytes
    times: dict         # case -> way -> [n_questions] seconds


# -- Data --------------------------------------------------------------------------------------------------------------


class StandIn:
    """An embedder that draws a random vector for each text, always the same one for the same text."""

    name, dimensions, max_tokens = "a stand-in", DIM, 256

    def count_tokens(self, text):
        return len(text.split())

    def encode(self, texts, kind="document", batch_size=1):
        """One unit vector for each text: float32 [n, dim]."""
        rows = np.zeros((len(texts), DIM), np.float32)
        for row, text in zip(rows, texts):
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
            drawn = np.random.default_rng(seed).standard_normal(DIM)
            row[:] = drawn / np.sqrt(drawn @ drawn)
        return rows


def texts(n, seed=0, n_words=WORDS):
    """`n` texts of words drawn by Zipf's law."""
    random, law = np.random.default_rng(seed), 1 / np.arange(1, VOCABULARY + 1)
    words = np.array([f"w{number}" for number in range(VOCABULARY)])
    for start in range(0, n, 10_000):
        for row in random.choice(VOCABULARY, (min(10_000, n - start), n_words), p=law / law.sum()):
            yield " ".join(words[row].tolist())


def make_chunks(n):
    """`n` chunks of as many documents, each with its vector; which type they are of and who sees them, by number."""
    vectors = bench.unit_vectors(n, DIM)
    for number, text in enumerate(texts(n)):
        yield {"id": f"d{number:07}#0", "doc_id": f"d{number:07}", "position": 0, "text": text,
               "doc_type": "md" if number % 100 == 1 else "txt",
               "acl": ["staff"] if number % 10 == 0 else ["everyone"], "vector": vectors[number]}


def make_questions(n):
    """`n` questions: (vector [dim], text)."""
    asked = [" ".join(text.split()[:6]) for text in texts(n, seed=1)]
    return list(zip(bench.unit_vectors(n, DIM, seed=1), asked))


# -- Measuring ---------------------------------------------------------------------------------------------------------


def ask(index, vector, text, user, where):
    """(positions of the fused ranking, {way: seconds}) of one question, one retriever after the other."""
    stamps = [time.perf_counter()]
    visible, allowed = index.visible(user), index.mask(user, where)
    stamps.append(time.perf_counter())
    near = index.dense(vector, K_EACH, allowed)[0].tolist()
    stamps.append(time.perf_counter())
    shared = index.lexical(text, K_EACH, allowed, visible)[0].tolist()
    stamps.append(time.perf_counter())
    fused = fusion.rrf([near, shared])
    stamps.append(time.perf_counter())
    masks, dense, lexical, fusing = np.diff(stamps).tolist()
    return [position for position, _ in fused], {
        "masks": masks, "dense": masks + dense, "lexical": masks + lexical, "hybrid": masks + dense + lexical + fusing}


def ask_in_threads(index, vector, text, user, where, pool):
    """(positions of the fused ranking, seconds) of one question, both retrievers at the same time."""
    start = time.perf_counter()
    visible, allowed = index.visible(user), index.mask(user, where)
    near = pool.submit(index.dense, vector, K_EACH, allowed)
    shared = pool.submit(index.lexical, text, K_EACH, allowed, visible)
    fused = fusion.rrf([near.result()[0].tolist(), shared.result()[0].tolist()])
    return [position for position, _ in fused], time.perf_counter() - start


def measure_questions(index, asked):
    """{case: {way: [n_questions] seconds}}, after as many others: their common words are known then."""
    for text in texts(len(asked), seed=3, n_words=6):
        index.lexical(text, K_EACH, index.mask(["staff"]), index.visible(["staff"]))
    times = {case: {way: [] for way in WAYS} for case in CASES}
    with ThreadPoolExecutor(2) as pool:
        for case, (user, where) in CASES.items():
            ask(index, *asked[0], user, where)                         # makes what the filter needs
            for number, question in enumerate(tqdm(asked, desc=f"{len(index.chunks):,} chunks, {case}", leave=False,
                                                   disable=None)):
                if number % 2:                                         # neither always comes first
                    threaded, seconds = ask_in_threads(index, *question, user, where, pool)
                found, parts = ask(index, *question, user, where)
                if not number % 2:
                    threaded, seconds = ask_in_threads(index, *question, user, where, pool)
                assert found == threaded
                for way, each in {**parts, "threads": seconds}.items():
                    times[case][way].append(each)
    return times


def measure(n, asked):
    """Everything at one size: a Result."""
    gc.collect()
    before, embedder = resident(), StandIn()
    chunker = functools.partial(chunking.structured, size=2 * WORDS)
    steps = {}
    index, steps["build"] = timed(lambda: indexes.Index.build(
        tqdm(make_chunks(n), f"building {n:,} chunks", n, leave=False, disable=None), embedder, chunker))
    gc.collect()
    memory = parts_of_memory(index, resident() - before)
    times = measure_questions(index, asked)
    [text] = texts(1, seed=2)
    document = {"id": index.chunks[n // 2]["doc_id"], "title": "", "text": text, "doc_type": "txt"}
    _, steps["update one"] = timed(lambda: index.update([document]))
    with tempfile.TemporaryDirectory() as folder:
        _, steps["save"] = timed(lambda: index.save(folder))
        _, steps["load"] = timed(lambda: indexes.Index.load(folder, embedder))
    return Result(n, steps, memory, times)


def timed(function):
    """(what it returns, seconds)"""
    start = time.perf_counter()
    return function(), time.perf_counter() - start


def parts_of_memory(index, grown):
    """{part: bytes} of what the process has grown by."""
    vectors = index.vectors.nbytes
    postings = sum(array.nbytes for array in index.postings.arrays().values())
    return {"vectors": vectors, "postings": postings, "chunks and the rest": grown - vectors - postings,
            "peak while building": resident("VmHWM")}


def resident(which="VmRSS"):
    """Bytes of memory that this process has now, or ("VmHWM") had at most. Linux alone tells them apart."""
    try:
        # subtle: the kernel's other record, ru_maxrss, begins with what the parent process had
        return int(re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# -- Reporting ---------------------------------------------------------------------------------------------------------


def percentiles(seconds):
    """(p50, p95) in milliseconds.

    >>> percentiles([0.001 * number for number in range(1, 102)])
    (51.0, 96.0)
    """
    return tuple((1000 * np.percentile(seconds, [50, 95])).round(3).tolist())


def report(results):
    """Two tables and the ratio of threads, in Markdown."""
    lines = ["| chunks | case | " + " | ".join(f"{way}, p50 (p95), ms" for way in WAYS) + " | in turn / threads |",
             "|---:|---|" + "---:|" * (len(WAYS) + 1)]
    for result in results:
        for case, times in result.times.items():
            cells = ["{:.1f} ({:.1f})".format(*percentiles(times[way])) for way in WAYS]
            lines.append(f"| {result.n:,} | {case} | {' | '.join(cells)} | {gain(times):.2f} |")
    lines += ["", "| chunks | build | update of one | save | load | vectors | postings | chunks and the rest | peak |",
              "|---:|" + "---:|" * 8]
    for result in results:
        cells = [*(f"{each:.2f} s" for each in result.steps.values()),
                 *(f"{each / 1e6:,.0f} MB" for each in result.memory.values())]
        lines.append(f"| {result.n:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def gain(times):
    """How many times faster both retrievers at once are: the median of each question's ratio.

    >>> gain({"hybrid": [3.0, 2.0, 4.0], "threads": [2.0, 2.0, 2.0]})
    1.5
    """
    return float(np.median(np.divide(times["hybrid"], times["threads"])))


def races(result):
    """What bench.py lists of the greatest size: two races, against a time and against the same without a filter."""
    every, filtered = (np.array(result.times[case]["hybrid"]) for case in ("all", "1% filter"))
    label = f"hybrid search, {result.n:,} chunks x {DIM}, no encoder, no reranking"
    for task, ours, peer, theirs in ((label, every, f"{1000 * TARGET:.0f} ms", np.full(len(every), TARGET)),
                                     (f"{label}, 1% filter", filtered, "without the filter", every)):
        yield bench.Race(task, peer, float(np.median(ours)), float(np.median(theirs)), (theirs / ours).tolist(), 1.0)


def plot(results, path):
    """p50 as lines and p95 as hollow marks against the number of chunks, as one picture."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5.5), layout="constrained")
    sizes = [result.n for result in results]
    for case, way, style, color in (("all", "hybrid", "o-", "#000000"), ("10% hidden", "hybrid", "D--", "#D55E00"),
                                    ("all", "dense", "^-.", "#0072B2"), ("1% filter", "hybrid", "s-", "#009E73"),
                                    ("all", "lexical", "v:", "#CC79A7")):
        p50, p95 = zip(*(percentiles(result.times[case][way]) for result in results))
        axes.plot(sizes, p50, style, color=color, label=f"{way}, {case}")
        axes.plot(sizes, p95, style[0], color=color, fillstyle="none", markersize=9)
    axes.axhline(1000 * TARGET, color="gray", linestyle="--", linewidth=1)
    axes.text(sizes[0], 1000 * TARGET * 1.1, f"target: {1000 * TARGET:.0f} ms", color="#555555")
    axes.set(xscale="log", yscale="log", xlabel="chunks", ylabel="milliseconds a question", xticks=sizes,
             title="Exact search, encoder not included: p50 (lines), p95 (hollow marks)")
    axes.set_xticklabels([f"{size:,}" for size in sizes])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3, which="both")
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


def main(arguments=None):
    """Measure each size; print races as JSON for bench.py; write results/scale.md and .png unless sizes are small."""
    parser = argparse.ArgumentParser(description="Up to how many chunks is an exact search quick enough?")
    parser.add_argument("--small", action="store_true", help="small sizes; writes no result")
    options = parser.parse_args(arguments)
    asked = make_questions(5 if options.small else 60)
    results = [measure(n, asked) for n in (SMALL if options.small else SIZES)]
    for race in races(results[-1]):
        print(json.dumps(race), flush=True)
    gains = ", ".join(f"{gain(result.times['all']):.2f} ({result.n:,} chunks)" for result in results)
    print(json.dumps(f"dense and lexical in two threads, times as fast as one after the other: {gains}"), flush=True)
    if not options.small:
        RESULTS.mkdir(exist_ok=True)
        plot(results, RESULTS / "scale.png")
        (RESULTS / "scale.md").write_text(
            "# Up to a million chunks\n\nMade by `make bench`: exact search for the 50 best of each retriever, all "
            "cores. The question's\nvector is given: the encoder's time comes on top. "
            f"{len(asked)} questions.\n\n{report(results)}\n\n![time against size](scale.png)\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
