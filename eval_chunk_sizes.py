"""Step 19 of 22 — The break experiment: which chunk size works best, and why do the extremes fail? Before: rag.py.
Next: eval_stages.py.

Retrieval is broken on purpose, by cutting too small and too big: twenty questions with a known answer string, three
chunk sizes, three chunks sent. Nothing else changes.

    size         words in a chunk; the next one shares min(50, size // 5) words with it
    hit          the answer string stands in one of the three retrieved chunks
    strict hit   the same, as a whole token ("20" is not in "2005") and in the body of a chunk of the right document:
                 a guard against lucky hits, which these documents turn out not to give
    words sent   words of the three chunks, mean over the questions: what a reader or a model has to go through
    unseen       the share of all word pieces that the embedder cuts off: the model reads 256, whatever comes
    share sent   words sent as a share of all words of all chunks

The expectation, recorded in an earlier run of the same versions, is printed before the measurement. A chunk of 50 words
loses its neighbours and its section; one of 2,000 words is a whole document, so retrieval picks three of six, and most
of each is never embedded: it finds everything because it sends half of everything.

After this classic table comes the same question for all documents and retrievers, at a fixed number of chunks and at a
fixed budget of words (eval_sweep.py); with --docs and --questions, for your own documents (eval_own.py).

Not here: other ways to cut (eval_strategies.py).
"""

import argparse
import re
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import chunking
import encoder
import eval_corpora
import eval_own
import eval_sweep
import index
import rag
from eval_spans import RETRIEVERS

QUESTIONS = [  # question, answer string, document
    ("How many instances are in the wine dataset?", "178", "wine_data"),
    ("Who created the iris dataset?", "Fisher", "iris"),
    ("How many patients are in the diabetes data?", "442", "diabetes"),
    ("What range are digit pixel values in?", "0..16", "digits"),
    ("How many numeric features does the breast cancer data have?", "30", "breast_cancer"),
    ("What is the maximum alcohol in the wine data?", "14.8", "wine_data"),
    ("How many people wrote the digits training set?", "30", "digits"),
    ("What does s5 measure in the diabetes data?", "triglycerides", "diabetes"),
    ("What are the breast cancer classes?", "Malignant", "breast_cancer"),
    ("What is petal width's class correlation?", "0.9565", "iris"),
    ("How many flowers are in the iris data?", "150", "iris"),
    ("What size are the digit images?", "8x8", "digits"),
    ("How many instances does Linnerud have?", "20", "linnerud"),
    ("When was the iris data donated?", "1988", "iris"),
    ("Which paper is the diabetes data from?", "Least Angle Regression", "diabetes"),
    ("What is the maximum proline in wine?", "1680", "wine_data"),
    ("Who donated the iris data?", "Michael Marshall", "iris"),
    ("Who created the digits dataset?", "Alpaydin", "digits"),
    ("What is field 10 in the breast cancer data?", "Radius SE", "breast_cancer"),
    ("What is the mean magnesium in wine?", "99.7", "wine_data"),
]
SIZES, CURVE = (50, 300, 2000), (25, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
K = 3
EXPECTED = {50: (50, 15, 152), 300: (10, 20, 672), 2000: (6, 20, 1108)}     # chunks, hits, words sent
EXPECTED_MISSES = {  # at 50 words
    "What is petal width's class correlation?", "How many flowers are in the iris data?",
    "Which paper is the diabetes data from?", "What is the maximum proline in wine?",
    "What is field 10 in the breast cancer data?"}
SETTING = "all-MiniLM-L6-v2, scikit-learn 1.9.1, top 3"
RESULTS = Path(__file__).parent / "results"


class Row(NamedTuple):
    """What one chunk size gives; `found` and `found_strictly` hold one truth value for each question."""

    size: int
    chunks: list
    rankings: np.ndarray        # [n_questions, n_chunks] all chunk positions, best first
    found: list
    found_strictly: list
    words_sent: float
    unseen: float

    @property
    def share_sent(self):
        return self.words_sent / sum(count_words(chunk) for chunk in self.chunks)


def check_answers(docs):
    """Assert that every answer string stands in its document: a question nothing answers would blame the chunks."""
    texts = {document["id"]: document["text"] for document in docs}
    for question, answer, doc_id in QUESTIONS:
        assert answer in texts[doc_id], f"{answer!r}, the answer to {question!r}, is not in {doc_id}"


def measure(size, docs, embedder):
    """Cut, embed, retrieve and count at one chunk size: a Row."""
    chunks = rag.chunk(docs, size, overlap=min(50, size // 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", encoder.TruncationWarning)                 # the column "unseen" shows it
        vectors = embedder.encode([chunk["text"] for chunk in chunks])             # [n_chunks, dim]
    queries = embedder.encode([question for question, _, _ in QUESTIONS], kind="query")
    rankings, _ = index.cosine_top_k(queries, vectors, k=len(chunks))              # [n_questions, n_chunks]
    sent = [[chunks[position] for position in row[:K]] for row in rankings]
    return Row(
        size, chunks, rankings,
        [any(answer in chunk["text"] for chunk in top) for top, (_, answer, _) in zip(sent, QUESTIONS)],
        [any(holds(chunk, answer, doc_id) for chunk in top) for top, (_, answer, doc_id) in zip(sent, QUESTIONS)],
        float(np.mean([sum(map(count_words, top)) for top in sent])),
        unseen_share(chunks, embedder))


def holds(chunk, answer, doc_id):
    """Whether a chunk of the right document holds the answer as a whole token.

    >>> holds({"doc_id": "linnerud", "body": "of 2005, 0.20 and 20."}, "20", "linnerud")
    True
    >>> holds({"doc_id": "linnerud", "body": "of 2005 and 0.20"}, "20", "linnerud")
    False
    """
    return chunk["doc_id"] == doc_id and bool(re.search(rf"(?<![\w.]){re.escape(answer)}(?!\w|\.\w)",
                                                        " ".join(chunk["body"].split())))


def count_words(chunk):
    return len(chunk["text"].split())


def unseen_share(chunks, embedder):
    """The share of all chunks' word pieces (the special ones aside) that lie beyond the embedder's limit."""
    unseen, pieces = chunking.unseen_pieces(chunks, embedder)
    return float(unseen.sum() / pieces.sum())


# -- What is printed ---------------------------------------------------------------------------------------------------


def expectation():
    """The recorded rows, as lines of text."""
    rows = [f"  {size:5,} words: {chunks:2} chunks, {hits}/20, {words:,} words sent"
            for size, (chunks, hits, words) in EXPECTED.items()]
    return "\n".join([f"Expected ({SETTING}):", *rows])


def table(rows):
    """The measured rows as a Markdown table."""
    lines = ["| words | chunks | hits | strict hits | words sent | share sent | unseen |",
             "|---:|---:|---:|---:|---:|---:|---:|"]
    n = len(QUESTIONS)
    for row in rows:
        lines.append(f"| {row.size:,} | {len(row.chunks)} | {sum(row.found)}/{n} | {sum(row.found_strictly)}/{n} "
                     f"| {int(row.words_sent):,} | {row.share_sent:.0%} | {row.unseen:.0%} |")
    return "\n".join(lines)


def verdict(rows):
    """Whether the measured rows are the recorded ones, and where not."""
    differences = []
    for row in rows:
        measured = (len(row.chunks), sum(row.found), int(row.words_sent))
        if measured != EXPECTED.get(row.size, measured):
            differences.append(f"{row.size} words: expected {EXPECTED[row.size]}, measured {measured}")
        if row.size == 50 and misses(row) != EXPECTED_MISSES:
            differences.append(f"50 words: other misses than expected: {sorted(misses(row) ^ EXPECTED_MISSES)}")
    return "As expected, and with the same misses." if not differences else "NOT as expected: " + "; ".join(differences)


def misses(row):
    return {question for (question, _, _), found in zip(QUESTIONS, row.found) if not found}


def hidden(rows):
    """What the table hides, as sentences made of the measured numbers."""
    lines = ["What the hit rate hides:"]
    for row in rows:
        lines.append(f"- {row.size:,} words: {row.unseen:.0%} of the word pieces never reach the model; {K} of "
                     f"{len(row.chunks)} chunks are {row.share_sent:.0%} of all words; "
                     f"{sum(row.found) - sum(row.found_strictly)} of {sum(row.found)} hits fail the strict count.")
    return "\n".join(lines)


def explain(row):
    """For each miss: where the first chunk that holds the answer stands, and the three chunks above it."""
    lines = [f"Misses at {row.size:,} words:"]
    for number, (question, answer, _) in enumerate(QUESTIONS):
        if not row.found[number]:
            order = [row.chunks[position] for position in row.rankings[number]]
            rank = next((r for r, chunk in enumerate(order, start=1) if answer in chunk["text"]), None)
            where = f"rank {rank}, {order[rank - 1]['id']}" if rank else "no chunk: a boundary cuts it"
            lines += [f"- {question} ({answer!r} is at {where}); above it:"]
            lines += [f"    {r}. {chunk['id']:18} {' '.join(chunk['body'].split())[:80]}"
                      for r, chunk in enumerate(order[:K], start=1)]
    return "\n".join(lines if len(lines) > 1 else [lines[0] + " none"])


def plot(rows, path):
    """Hit rate, strict hit rate, words sent and unseen share against chunk size, as one picture."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    sizes, strict = [row.size for row in rows], [np.mean(row.found_strictly) for row in rows]
    figure, (top, bottom) = pyplot.subplots(2, sharex=True, figsize=(8, 7), layout="constrained")
    top.plot(sizes, [np.mean(row.found) for row in rows], "o-", markersize=11, label="hit rate")
    top.plot(sizes, strict, "s--", markersize=5, label="strict: right document, whole token")
    top.plot(sizes, [row.unseen for row in rows], "v:", color="gray", label="word pieces the model never reads")
    top.set(ylim=(-0.03, 1.03), ylabel="share", title=f"The break experiment ({SETTING})")
    bottom.plot(sizes, [row.words_sent for row in rows], "o-", color="tab:red", label="words sent, three chunks")
    bottom.set(xscale="log", xlabel="chunk size, words", ylabel="words sent", xticks=sizes, ylim=(0, None))
    bottom.set_xticklabels([f"{size:,}" for size in sizes])
    bottom.minorticks_off()
    for axes in (top, bottom):
        axes.grid(alpha=0.3)
        axes.legend(loc="best")
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


def classic(explained=False):
    """The twenty questions; writes results/chunk_sizes.md and .png. Returns whether all is as expected."""
    docs = rag.load_documents()
    check_answers(docs)
    print(expectation(), flush=True)
    every = sorted(set(CURVE) | set(SIZES))
    curve = [measure(size, docs, rag.embedder()) for size in tqdm(every, desc="chunk sizes", leave=False, disable=None)]
    rows = [row for row in curve if row.size in SIZES]
    report = "\n\n".join([table(rows), verdict(rows), hidden(rows)])
    print(f"\nMeasured:\n{report}", flush=True)
    if explained:
        print("", *map(explain, rows), sep="\n")
    RESULTS.mkdir(exist_ok=True)
    plot(curve, RESULTS / "chunk_sizes.png")
    (RESULTS / "chunk_sizes.md").write_text(
        f"# The break experiment\n\nMade by `make experiment` ({SETTING}).\n\n{report}\n\n"
        f"## The whole curve\n\n{table(curve)}\n\n![curve](chunk_sizes.png)\n", encoding="utf-8")
    return verdict(rows).startswith("As expected")


def sweep(corpora, embedder, explained=False):
    """All sizes and retrievers over other corpora; writes results/sizes.md and .png."""
    everything = [(corpus, eval_sweep.sweep(corpus, embedder)) for corpus in corpora]
    made = (f"`python eval_chunk_sizes.py`, all-MiniLM-L6-v2, bootstrap seed 0, data {eval_sweep.data_hash(corpora)}")
    text = "\n\n".join(eval_sweep.report(*each, RETRIEVERS) for each in everything)
    print(f"\n{text}")
    if explained:
        print("", *(eval_sweep.explain(*each, "dense") for each in everything), sep="\n\n")
    eval_sweep.plot(everything, made.replace("`", ""), RESULTS / "sizes.png")
    (RESULTS / "sizes.md").write_text(
        f"# Chunk sizes, at a fixed number of chunks and at a fixed budget\n\nMade by {made}.\nWhat the columns mean "
        f"stands in eval_sweep.py and eval_spans.py.\n\n{text}\n\n![recall by size](sizes.png)\n", encoding="utf-8")


def main(arguments=None):
    """The break experiment, then all sizes over two corpora; or, if its options are given, an own measurement.

    Returns the exit status: 0 if the classic table is as expected.
    """
    parser = argparse.ArgumentParser(description="Which chunk size works best, and why do the extremes fail?")
    parser.add_argument("--explain", action="store_true", help="for each miss, why; and what stood above the answer")
    eval_own.add_options(parser)
    options = parser.parse_args(arguments)
    if eval_own.is_asked_for(options):
        return eval_own.run(options, parser)
    print("About 3 minutes on 2 cores from a warm cache, 6 from a cold one.\n", flush=True)
    as_expected = classic(options.explain)
    sweep([eval_corpora.labelled_descriptions(), eval_corpora.modules()], rag.embedder(), options.explain)
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
