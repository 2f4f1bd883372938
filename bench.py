"""Side by side with the libraries people would use instead: `make bench`. It comes after every step.

Machines are noisy, so a time alone says little. Here each task is raced: ours and the peer's in turn, on the same data,
in the same process, after a warm-up; what counts is the ratio of each pair, of which the median and the range are
shown. Before a race the results are compared, where the peer computes the same thing: a fast wrong answer is none.

    ratio    peer's time / our time in one round: above 1, ours is faster
    target   the ratio that this project sets itself; 1 / 0.6 means at most 60 % of the peer's time

What limits us: a BM25 question takes some 35 calls of NumPy, 2 to 3 µs each, however few its postings are. Among 20,000
documents that is most of its time, and pruning cannot lower it; among 200,000 the postings are.

Peers are pinned in the extra `bench`. Everything runs on one thread, except cosine, the encoder (bench_encoder.py) and
growth (bench_scale.py), the latter two in processes of their own: they have all cores, on both sides.

Not here: what is inside a peer; times of other machines.
"""

import os

if __name__ == "__main__":                                             # before numpy is loaded
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import argparse                                                        # noqa: E402
import gc                                                              # noqa: E402
import json                                                            # noqa: E402
import platform                                                        # noqa: E402
import statistics                                                      # noqa: E402
import subprocess                                                      # noqa: E402
import sys                                                             # noqa: E402
import time                                                            # noqa: E402
from importlib.metadata import version                                 # noqa: E402
from pathlib import Path                                               # noqa: E402
from typing import NamedTuple                                          # noqa: E402

import numpy as np                                                     # noqa: E402

RESULT = Path(__file__).parent / "results" / "bench.md"


class Race(NamedTuple):
    """One line of the table. Times in seconds, medians over the rounds; `ratios` holds one number for each round."""

    task: str
    peer: str
    ours: float
    peers: float
    ratios: list
    target: float | None


def race(task, ours, peer, peer_name, target=None, rounds=7):
    """Time ours() and peer() in turn, `rounds` times after a warm-up: a Race."""
    ours(), peer()
    times = []
    for number in range(rounds):
        order = (ours, peer) if number % 2 == 0 else (peer, ours)      # neither always comes first
        clocked = {each: _clock(each) for each in order}
        times.append((clocked[ours], clocked[peer]))
    return Race(task, peer_name, statistics.median(a for a, _ in times), statistics.median(b for _, b in times),
                [b / a for a, b in times], target)


def _clock(function):
    gc.collect()
    gc.disable()                                                       # as timeit does: whose garbage it is, is chance
    try:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start
    finally:
        gc.enable()


def table(races):
    """The races as a Markdown table."""
    lines = ["| task | peer | ours | peer's | ratio, median (range) | target | |", "|---|---|---:|---:|---:|---:|---|"]
    for each in races:
        ratio = statistics.median(each.ratios)
        verdict = "" if each.target is None else "met" if ratio >= each.target else "missed"
        target = "" if each.target is None else f"{each.target:.2f}"
        lines.append(f"| {each.task} | {each.peer} | {_time(each.ours)} | {_time(each.peers)} | {ratio:.2f} "
                     f"({min(each.ratios):.2f} to {max(each.ratios):.2f}) | {target} | {verdict} |")
    return "\n".join(lines)


def _time(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def machine():
    """Processor, cores and versions, in words."""
    names = ["numpy", "bm25s", "numba", "rank-bm25", "faiss-cpu", "pytrec-eval-terrier",
             "langchain-text-splitters", "semchunk", "sentence-transformers", "torch"]
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor()) if sys.platform == "linux" else platform.processor()
    return (f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, "
            + ", ".join(f"{name} {version(name)}" for name in names))


# -- Data --------------------------------------------------------------------------------------------------------------


def synthetic_corpus(n, n_words=85, vocabulary=30_000, seed=0):
    """`n` documents of words drawn by Zipf's law, and 200 questions: six words of a document each."""
    random = np.random.default_rng(seed)
    law = 1 / np.arange(1, vocabulary + 1)
    words = np.array([f"w{number}" for number in range(vocabulary)])
    drawn = random.choice(vocabulary, (n, n_words), p=law / law.sum()).astype(np.int32)
    corpus = [words[row].tolist() for row in drawn]
    asked = [words[random.choice(drawn[random.integers(n)], 6, replace=False)].tolist() for _ in range(200)]
    return corpus, asked


def unit_vectors(n, dim=384, seed=0):
    """`n` random unit rows, float32 [n, dim]."""
    random = np.random.default_rng(seed)
    vectors = np.empty((n, dim), np.float32)
    for start in range(0, n, 10_000):
        block = random.standard_normal((min(10_000, n - start), dim), np.float32)
        vectors[start:start + len(block)] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


# -- Races -------------------------------------------------------------------------------------------------------------


def bm25_races(n, targets, rounds):
    """Index build and top 10 against bm25s, both backends, and against our own plain form; a note on memory."""
    import bm25s

    import bm25

    corpus, asked = synthetic_corpus(n)
    index, peers = bm25.BM25(corpus, k1=1.5), {}
    for backend in ("numpy", "numba"):
        peers[backend] = bm25s.BM25(k1=1.5, b=0.75, method="lucene", backend=backend)
        peers[backend].index(corpus, show_progress=False)
    _check_bm25(index, peers["numpy"], asked)

    def search(backend):
        return lambda: peers[backend].retrieve(asked, k=10, show_progress=False, n_threads=0)

    label, ours = f"BM25, top 10, 200 questions, {n:,} documents", lambda: index.top_k_many(asked, 10)
    plain = lambda: [index.top_k_by_definition(query, 10) for query in asked]      # noqa: E731
    yield race(label, ours, search("numpy"), "bm25s, NumPy", targets.get("numpy"), rounds)
    yield race(label, ours, search("numba"), "bm25s, Numba", targets.get("numba"), rounds)
    yield race(label, ours, plain, "our plain form", None, 3)
    yield race(f"BM25, index build, {n:,} documents", lambda: bm25.BM25(corpus, k1=1.5),
               lambda: bm25s.BM25(k1=1.5, method="lucene").index(corpus, show_progress=False), "bm25s, NumPy",
               targets.get("build"), 3)
    yield memory(index)


def memory(index):
    """What the postings of a BM25 index take, in words."""
    n, size = len(index.documents), sum(array.nbytes for array in (index.documents, index.counts, index.weights))
    rows = [term.row.nbytes for term in index.terms.values() if term.row is not None]
    return (f"BM25 index of {len(index.lengths):,} documents: {n:,} postings of {size / n:.0f} bytes; the {len(rows)} "
            f"common terms that were asked for keep rows of {sum(rows) / n:.1f} bytes a posting more")


def _check_bm25(index, peer, asked):
    for query, (positions, scores) in zip(asked, index.top_k_many(asked, 10)):
        expected, expected_scores = index.top_k_by_definition(query, 10)
        assert positions.tolist() == expected.tolist() and scores.tolist() == expected_scores.tolist()
        assert np.allclose(index.scores(query), peer.get_scores(query), atol=1e-4)


def rank_bm25_races(rounds):
    """Against rank-bm25, whose variant differs, so only the time is compared."""
    import rank_bm25

    import bm25

    corpus, asked = synthetic_corpus(20_000)
    index, peer = bm25.BM25(corpus), rank_bm25.BM25Okapi(corpus)
    asked = asked[:5]
    yield race("BM25, top 10, 5 questions, 20,000 documents", lambda: index.top_k_many(asked, 10),
               lambda: [np.argsort(-peer.get_scores(query))[:10] for query in asked], "rank-bm25", None, rounds)


def cosine_races(n, rounds):
    """Top 10 of n vectors against the bare product and against faiss's flat index, on all cores."""
    import faiss
    from threadpoolctl import threadpool_limits

    import index

    cores = os.cpu_count()
    faiss.omp_set_num_threads(cores)
    vectors, queries = unit_vectors(n), unit_vectors(64, seed=1)
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    with threadpool_limits(cores):
        for query in queries[:3]:
            exact = vectors.astype(np.float64) @ query.astype(np.float64)
            found, _ = index.cosine_top_k(query, vectors, 10)
            assert found.tolist() == np.argsort(-exact, kind="stable")[:10].tolist()
            del exact
        label = f"cosine, top 10 of {n:,} x 384, {cores} threads"
        query = queries[0]
        yield race(label, lambda: index.cosine_top_k(query, vectors, 10), lambda: vectors @ query,
                   "`vectors @ query` alone", 1 / 1.15, rounds)
        yield race(label, lambda: index.cosine_top_k(query, vectors, 10), lambda: flat.search(query[None], 10),
                   "faiss, flat", 1.8, rounds)
        yield race(f"{label}, 64 questions at once", lambda: index.cosine_top_k(queries, vectors, 10),
                   lambda: flat.search(queries, 10), "faiss, flat", 1.0, 3)


def metrics_races(n_queries, rounds):
    """All default measures over n_queries x 100 documents against trec_eval's C code, from the same dicts."""
    import pytrec_eval

    import metrics

    random = np.random.default_rng(0)
    names = [f"d{number:03}" for number in range(200)]
    run, qrels = {}, {}
    for number in range(n_queries):
        shown = random.permutation(200)[:100]
        run[f"q{number}"] = {names[i]: float(score) for i, score in zip(shown, random.permutation(100))}
        qrels[f"q{number}"] = {names[i]: int(random.integers(0, 3)) for i in random.permutation(200)[:20]} | {"d000": 1}
    theirs = {"success_5": "hit@5", "recall_5": "recall@5", "P_5": "precision@5", "recip_rank": "reciprocal_rank",
              "map": "average_precision", "ndcg_cut_5": "ndcg@5"}
    measures = {"success.5", "recall.5", "P.5", "recip_rank", "map", "ndcg_cut.5"}

    def peer():
        return pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)

    result, expected = metrics.evaluate(run, qrels), peer()
    for their_name, our_name in theirs.items():
        assert all(abs(result.per_query[our_name][query] - expected[query][their_name]) < 1e-9 for query in qrels)
    yield race(f"six measures, {n_queries:,} questions x 100 documents", lambda: metrics.evaluate(run, qrels), peer,
               "pytrec_eval", 1.0, rounds)


def fusion_races(rounds):
    """RRF of two lists of 1,000 against one millisecond."""
    import fusion

    random = np.random.default_rng(0)
    lists = [random.permutation(2000)[:1000].tolist() for _ in range(2)]
    fused = fusion.rrf(lists)
    assert len(fused) == len(set(lists[0]) | set(lists[1]))
    yield race("RRF of two lists of 1,000", lambda: fusion.rrf(lists), lambda: wait(1e-3), "one millisecond", 1.0,
               rounds)


def wait(seconds):
    """A peer that takes a known time."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


# -- Chunking ----------------------------------------------------------------------------------------------------------


def docstrings(n_characters):
    """Real prose with lists and examples: the docstrings of the installed scikit-learn, until there are enough."""
    import ast
    from importlib.util import find_spec

    found, length = [], 0
    for path in sorted(Path(find_spec("sklearn").submodule_search_locations[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node)
            if text and length < n_characters:
                found.append(text)
                length += len(text)
    return "\n\n".join(found)


def markdown(n_characters):
    """A page like a long README: in each section two paragraphs, a list, a table of eight rows and a fence."""
    prose = "Lorem ipsum dolor sit amet, consectetur *adipiscing* elit, sed do `eiusmod` tempor incididunt labore. " * 5
    rows = "".join(f"| {row} | x{row} | some text here |\n" for row in range(8))
    section = (f"{prose}\n\n- item one\n- item two\n  more text\n- item three\n\n{prose}\n\n| a | b | c |\n"
               f"|---|---|---|\n{rows}\n```py\ndef f():\n    return 1\n```\n\n")
    return "".join(f"## Section {number}\n\n{section}" for number in range(n_characters // len(section)))


def chunking_races(small, rounds):
    """Recursive chunking against LangChain and semchunk, structured chunking against a rate, and its growth."""
    import chunking
    import semchunk
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    n = 200_000 if small else 2_000_000
    text = docstrings(n)
    for name, document in (("docstrings", text), ("one paragraph", text.replace("\n", " "))):
        page = {"id": "d", "title": "T", "text": document, "doc_type": "txt"}
        splitter = RecursiveCharacterTextSplitter(chunk_size=800, chunk_overlap=0)
        assert max(map(len, splitter.split_text(document))) <= 800
        yield race(f"recursive, 800 characters, {name}", lambda: chunking.recursive(page, 800, 0, "characters"),
                   lambda: splitter.split_text(document), "LangChain, strings only", 1.0, rounds)
        yield race(f"recursive, 800 characters, {name}", lambda: chunking.recursive(page, 800, 0, "characters"),
                   lambda: splitter.create_documents([document]), "LangChain, documents", None, rounds)
    embedder, page = _Counter(), {"id": "d", "title": "", "text": text, "doc_type": "txt"}
    splitter = RecursiveCharacterTextSplitter(chunk_size=199, chunk_overlap=0, length_function=embedder.count_inside)
    yield race("recursive, 200 word pieces, docstrings", lambda: chunking.recursive(page, 200, 0, "tokens", embedder),
               lambda: splitter.split_text(text), "LangChain", 2.0, 3)
    chunker = semchunk.chunkerify(embedder.count_inside, 198, memoize=False)     # or the second round is from memory
    yield race("recursive, 200 word pieces, docstrings", lambda: chunking.recursive(page, 200, 0, "tokens", embedder),
               lambda: chunker(text), "semchunk", None, 3)
    page = {"id": "d", "title": "T", "text": markdown(n), "doc_type": "md"}
    yield race(f"structured, 200 words, Markdown of {len(page['text']) / 1e6:.1f} MB",
               lambda: chunking.structured(page, 200), lambda: wait(len(page["text"]) / 5e6), "5 MB a second", 1.0,
               rounds)
    yield from _growth(chunking, 250_000 if small else 5_000_000)


class _Counter:
    """An embedder that only counts: the word pieces of all-MiniLM-L6-v2, for both sides of a race."""

    name, max_tokens = "all-MiniLM-L6-v2", 256

    def __init__(self):
        import model_files
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(model_files.find_folder(self.name) / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def count_tokens(self, text):
        return len(self.tokenizer.encode(text))

    def count_inside(self, text):
        return len(self.tokenizer.encode(text, add_special_tokens=False))


def _growth(chunking, n):
    """The time for twice the text by that for the text, as notes: 2 is in proportion."""
    texts = {"Markdown": (markdown, "md"), "one paragraph": (lambda n: "The cat sat on the mat. " * (n // 24), "md"),
             "one table": (lambda n: "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * (n // 10), "md"),
             "one line without spaces": (lambda n: "x" * n, "txt"),
             "blank lines": (lambda n: "a" + "\n" * n + "b", "md"),
             "headings": (lambda n: "# T\n\n" * (n // 5), "md")}
    for name, (make, doc_type) in texts.items():
        one, two = ({"id": "d", "title": "", "text": make(size), "doc_type": doc_type} for size in (n, 2 * n))
        for strategy in ("fixed", "recursive", "structured"):
            cut = chunking.STRATEGIES[strategy]
            times = [[_clock(lambda: cut(page, 200)) for _ in range(2)] for page in (one, two)]
            ratio = min(times[1]) / min(times[0])
            yield (f"{strategy}, {name}: {ratio:.2f} times the time for twice the text "
                   f"({2 * n / 1e6:g} MB by {n / 1e6:g})")


# -- What has all cores, in a process of its own -----------------------------------------------------------------------


def outside(script, small):
    """The races and notes of another script, which prints a JSON list a line."""
    cores = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(os.cpu_count()))
    command = [sys.executable, Path(__file__).parent / script, *["--small"] * small]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | cores, text=True) as process:
        for line in process.stdout:
            found = json.loads(line)
            yield found if isinstance(found, str) else Race(*found)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


# -- The table ---------------------------------------------------------------------------------------------------------


def all_races(small):
    """Every race; `small` divides the sizes by 20, to try things out."""
    n = 10_000 if small else 200_000
    yield from bm25_races(1_000 if small else 20_000, {"numpy": 2.0}, 7)
    yield from bm25_races(n, {"numpy": 2.0, "numba": 1.0, "build": 1 / 0.6}, 7)
    yield from rank_bm25_races(3)
    yield from cosine_races(50_000 if small else 1_000_000, 9)
    yield from metrics_races(500 if small else 10_000, 5)
    yield from fusion_races(9)
    yield from chunking_races(small, 7)
    yield from outside("bench_encoder.py", small)
    yield from outside("bench_scale.py", small)


def main(arguments=None):
    """Run every race, print the table, and write results/bench.md unless the sizes are small."""
    parser = argparse.ArgumentParser(description="Side by side with the libraries people would use instead.")
    parser.add_argument("--small", action="store_true", help="a twentieth of the data; writes no result")
    options = parser.parse_args(arguments)
    races, notes = [], [machine()]
    for each in all_races(options.small):
        if isinstance(each, str):
            notes.append(each)
        else:
            races.append(each)
            print(f"{each.task} / {each.peer}: {statistics.median(each.ratios):.2f}", file=sys.stderr)
    text = table(races) + "\n\n" + "\n".join(f"- {note}" for note in notes)
    print(text)
    if not options.small:
        RESULT.write_text(
            "# Side by side\n\nMade by `make bench`. A ratio is the peer's time by ours, so above 1 ours is faster;\n"
            f"median and range over the rounds of one run.\n\n{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
