"""Beside step 19 — Six ways to cut, one budget: which one finds more of the evidence?

A chunk that is cut well is found, and wastes few words on what was not asked. So each strategy gets the same budget of
words to read, for the same questions (data/questions.jsonl), and what counts is how much of the evidence was read.

    evidence        quotes from the documents that answer a question; a quote may stand in several places
    budget          whole chunks in rank order, the one that overflows is cut at the budget; breadcrumbs are paid for
    evidence recall the share of the quotes that was read, mean over a question's quotes (metrics.py)
    dense, BM25     which retriever ranks the chunks
    none            without breadcrumbs: body and repeated header alone are embedded and indexed. Two things change at
                    once: what is found, and what it costs. late's vectors are the same, only its price is lower

Chunks have at most 200 word pieces, so that the model reads them whole; parent_child's children 100. Two rows of word
windows stand beside them: those of rag.py, whose end is never embedded, and short ones.

Not here: other sizes, fusion and reranking; whether the answer was right. The unanswerable questions are not used.
"""

import argparse
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
from tqdm import tqdm

import bm25
import chunking
import documents
import encoder
import index
import metrics
import rag

RESULTS = Path(__file__).parent / "results"
LABELLED = Path(__file__).parent / "data" / "questions.jsonl"
RETRIEVERS = ("dense", "BM25")
BUDGETS = (250, 500)                                                   # words
CUTS = {  # row: a strategy with its settings
    "fixed, 300 words, overlap 50": (chunking.fixed, dict(size=300, overlap=50)),
    "fixed, 100 words": (chunking.fixed, dict(size=100)),
    "fixed": (chunking.fixed, dict(size=200, length="tokens")),
    "recursive": (chunking.recursive, dict(size=200, length="tokens")),
    "semantic": (chunking.semantic, dict(size=200, length="tokens")),
    "structured": (chunking.structured, dict(size=200, length="tokens")),
    "parent_child": (chunking.parent_child, dict(size=100, length="tokens")),
    "late": (chunking.late, dict(size=200, length="tokens")),
}


def load_questions(path=LABELLED):
    """The labelled questions, one dict a line of the file; data/README.md says what is in them."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def evidence_spans(question, texts):
    """What must be retrieved: for each quote, or group of quotes that say the same, the spans where it stands."""
    pieces = {}
    for number, each in enumerate(question["evidence"]):
        copies = metrics.find_copies(each["quote"], {each["doc_id"]: texts[each["doc_id"]]})
        pieces.setdefault(("group", each["group"]) if "group" in each else number, []).extend(copies)
    return list(pieces.values())


def read_within(chunks, words):
    """The spans that a budget of `words` buys: whole chunks in rank order, the one that overflows is cut at the budget.

    What stands in front of a body (breadcrumb, header) is paid for as well.

    >>> chunk = {"doc_id": "d", "text": "Pets\\n\\nthe cat sat", "body": "the cat sat", "start": 10}
    >>> read_within([chunk, chunk], 7)                                 # 1 + 3 words, then 1 + 2
    [('d', 10, 21), ('d', 10, 17)]
    """
    spans = []
    for chunk in chunks:
        places = [match.span() for match in re.finditer(r"\S+", chunk["body"])]
        words -= len(chunk["text"].split()) - len(places)
        if words <= 0:
            break
        first, last = places[0][0], places[:words][-1][1]
        spans.append((chunk["doc_id"], chunk["start"] + first, chunk["start"] + last))
        words -= len(places)
    return spans


def without_breadcrumb(chunk):
    """The chunk as it would be without its breadcrumb: only the header of a table or function, and the body.

    Its parent has none either. A chunk has one if its document has a title, as all have here.
    """
    return {**chunk, "title": "", "text": chunk["text"].partition("\n\n")[2]}


def rank(chunks, questions, embedder, retriever):
    """For each question all chunks, best first; a parent in place of its children."""
    texts = [chunk["text"] for chunk in chunks]
    if retriever == "BM25":
        found = bm25.BM25([bm25.tokenize(text) for text in texts])
        rankings = [found.top_k(bm25.tokenize(question), k=len(chunks))[0] for question in questions]
    else:
        vectors = np.array([chunk["vector"] for chunk in chunks]) if "vector" in chunks[0] else embedder.encode(texts)
        rankings, _ = index.cosine_top_k(embedder.encode(questions, kind="query"), vectors, k=len(chunks))
    ranked = [[chunks[position] for position in ranking] for ranking in rankings]
    return [chunking.parents(each) for each in ranked] if "parent_id" in chunks[0] else ranked


def measure(embedder):
    """{(row, retriever, breadcrumb, budget): evidence recall of each answerable question}, and chunks by row."""
    docs, recalls, cut = documents.load_descriptions(), {}, {}
    texts = {document["id"]: document["text"] for document in docs}
    labelled = [each for each in load_questions() if each["evidence"]]
    evidence, questions = [evidence_spans(each, texts) for each in labelled], [each["question"] for each in labelled]
    for name, (strategy, settings) in tqdm(CUTS.items(), desc="strategies", leave=False, disable=None):
        cut[name] = [chunk for document in docs for chunk in strategy(document, embedder=embedder, **settings)]
        for retriever in RETRIEVERS:
            for breadcrumb in (True, False):
                chunks = cut[name] if breadcrumb else list(map(without_breadcrumb, cut[name]))
                ranked = rank(chunks, questions, embedder, retriever)
                for budget in BUDGETS:
                    recalls[name, retriever, breadcrumb, budget] = [
                        metrics.evidence_recall(read_within(found, budget), needed)
                        for found, needed in zip(ranked, evidence)]
    return recalls, cut


# -- What is printed ---------------------------------------------------------------------------------------------------


def report(recalls, cut):
    """The comparison of the strategies, as Markdown."""
    columns = [(retriever, breadcrumb, budget) for retriever in RETRIEVERS for budget in BUDGETS
               for breadcrumb in (True, False)]
    titles = [f"{retriever} {budget}{'' if breadcrumb else ', none'}" for retriever, breadcrumb, budget in columns]
    lines = [f"| | chunks | {' | '.join(titles)} |", "|---|---:|" + "---:|" * len(columns)]
    for name in CUTS:
        cells = [f"{np.mean(recalls[name, *column]):.3f}" for column in columns]
        lines.append(f"| {name} | {len(cut[name])} | {' | '.join(cells)} |")
    lines += ["", "structured less the others, with breadcrumbs: difference, 95% interval, p of a paired bootstrap", ""]
    for column in columns:
        if column[1]:
            lines += [_difference(recalls, other, column) for other in CUTS if other != "structured"]
    return "\n".join(lines)


def _difference(recalls, other, column):
    found = metrics.paired_bootstrap(recalls["structured", *column], recalls[other, *column])
    shown = "no difference shown" if found.low <= 0 <= found.high else "**shown**"
    return (f"- {column[0]} {column[2]}, {other}: {found.difference:+.3f} ({found.low:+.3f} to {found.high:+.3f}), "
            f"p = {found.p_value:.3f}, {shown}")


KINDS = {"heading": "black", "paragraph": "lightgray", "list": "darkseagreen", "table": "cornflowerblue",
         "code": "goldenrod", "field": "plum", "quote": "rosybrown"}


def plot(document, embedder, path):
    """One document cut six ways as a picture: a row of bands for each strategy, below them what the document holds."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import patches, pyplot

    figure, axes = pyplot.subplots(figsize=(11, 4.6), layout="constrained")
    colours = pyplot.get_cmap("tab20").colors
    for row, (name, strategy) in enumerate(reversed(chunking.STRATEGIES.items()), start=1):
        for number, chunk in enumerate(strategy(document, 200, 0, "tokens", embedder)):
            axes.barh(row, chunk["end"] - chunk["start"], left=chunk["start"], height=0.7, edgecolor="white",
                      linewidth=2, color=colours[number % len(colours)])
            if name == "parent_child" and chunk["start"] == chunk["parent_start"]:
                axes.plot([chunk["start"] + 9, chunk["parent_end"] - 9], [row - 0.45] * 2, color="black", linewidth=2)
    for block in documents.blocks(document):
        axes.barh(0, block.end - block.start, left=block.start, height=0.7, color=KINDS[block.kind])
        if block.kind == "heading":
            axes.axvline(block.start, color="black", linestyle=":", linewidth=1)
    axes.set(yticks=range(len(chunking.STRATEGIES) + 1), yticklabels=["the document", *reversed(chunking.STRATEGIES)],
             xlim=(0, len(document["text"])), xlabel="characters",
             title=f"{document['title']}, cut six ways: bands are chunks of at most 200 word pieces")
    axes.spines[["top", "right", "left"]].set_visible(False)
    marks = [patches.Patch(color=colour, label=kind) for kind, colour in KINDS.items()
             if kind in {block.kind for block in documents.blocks(document)}]
    figure.legend(handles=[*marks, pyplot.Line2D([], [], color="black", label="parent")], loc="outside lower center",
                  ncols=8, frameon=False)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


def main(arguments=None):
    """Run the comparison; writes results/strategies.md and .png. Returns the exit status."""
    argparse.ArgumentParser(description="Six ways to cut: which one finds more of the evidence?").parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", encoder.TruncationWarning)     # windows of 300 words are cut on purpose
        recalls, cut = measure(rag.embedder())
    text = report(recalls, cut)
    print(text)
    [shown] = documents.load_descriptions(["lfw"])
    plot(shown, rag.embedder(), RESULTS / "strategies.png")
    (RESULTS / "strategies.md").write_text(
        "# Six ways to cut\n\nMade by `make experiment` (all-MiniLM-L6-v2, scikit-learn 1.9.1, the answerable\n"
        "questions of data/questions.jsonl). Evidence recall at a budget of 250 and 500 words;\n"
        "\"none\": without breadcrumbs.\n\n"
        f"{text}\n\n![one description, cut six ways](strategies.png)\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
