"""Beside step 19 — Six ways to cut, one budget: which one finds more of the evidence? And overlap, and breadcrumbs?

A chunk that is cut well is found, and wastes few words on what was not asked. So each way to cut gets the same budget
of words to read, for the same questions over the fourteen descriptions, and what counts is how much of the evidence was
read (eval_spans.py).

    CUTS        row: how it cuts; the six strategies at 200 word pieces, which the model reads whole (parent_child's
                children have 100), and known settings beside them
    budget      250 or 500 words, breadcrumbs included
    breadcrumb  "Title > Section" in front of a chunk. Without it two things change at once: what is found, and what
                it costs. late's vectors are the same, only its price is lower
    overlap     what windows of 100 words repeat of the one before, in percent; over long documents as well
    shown       the 95% interval of the difference, a paired bootstrap's, leaves out 0

Not here: other sizes (eval_sweep.py); whether the answer was right.
"""

import argparse
import sys
import warnings

import numpy as np
from tqdm import tqdm

import chunking
import documents
import encoder
import eval_corpora
import eval_spans
import metrics
import rag
from eval_spans import Cut
from eval_sweep import RESULTS, data_hash, is_shown, table

RETRIEVERS = ("dense", "bm25", "hybrid")
BUDGETS = (250, 500)                                                   # words
CUTS = {
    "fixed": Cut("fixed"), "recursive": Cut("recursive"), "semantic": Cut("semantic"), "structured": Cut("structured"),
    "parent_child": Cut("parent_child", 100), "late": Cut("late"),
    "structured, 120 words": Cut("structured", 120, 0, "words"),
    "fixed, 300 words, overlap 50 (rag.py)": Cut("fixed", 300, 50, "words"),
    "fixed, 500 characters (tutorials)": Cut("fixed", 500, 0, "characters"),
    "fixed, 800 pieces, overlap 400": Cut("fixed", 800, 400),
    "recursive, 400 pieces, overlap 50": Cut("recursive", 400, 50),
}
OVERLAPS, WINDOW = (0, 10, 20, 30, 40, 50), 100                        # percent; words


def without_breadcrumb(chunk):
    """The chunk as it would be without its breadcrumb: only the header of a table or function, and the body.

    Its parent has none either. A chunk has one if its document has a title, as all have here.
    """
    return {**chunk, "title": "", "text": chunk["text"].partition("\n\n")[2]}


def recalls(chunks, corpus, embedder):
    """{(retriever, budget): evidence recall of each question}."""
    ranked = eval_spans.rank(chunks, corpus.questions, embedder, RETRIEVERS)
    return {(name, budget): eval_spans.measure(found, corpus.evidence, chunks, budget=budget)["recall"]
            for name, found in ranked.items() for budget in BUDGETS}


def measure(corpus, embedder):
    """{row: (chunks, recalls with breadcrumbs, recalls without)} of each of CUTS."""
    found = {}
    for name, cut in tqdm(CUTS.items(), desc="strategies", leave=False, disable=None):
        chunks = cut.chunks(corpus.docs, embedder)
        found[name] = chunks, *(recalls(each, corpus, embedder) for each in (
            chunks, list(map(without_breadcrumb, chunks))))
    return found


def measure_overlaps(corpus, embedder):
    """{percent: (chunks, recalls)} of windows of 100 words."""
    found = {}
    for percent in tqdm(OVERLAPS, desc=f"overlap, {corpus.name}", leave=False, disable=None):
        chunks = Cut("fixed", WINDOW, WINDOW * percent // 100, "words").chunks(corpus.docs, embedder)
        found[percent] = chunks, recalls(chunks, corpus, embedder)
    return found


# -- What is printed ---------------------------------------------------------------------------------------------------

COLUMNS = [(name, budget) for name in RETRIEVERS for budget in BUDGETS]
TITLES = [f"{name}, {budget} words" for name, budget in COLUMNS]


def recall_table(found):
    """Recall of each row; bold: shown to differ from structured's."""
    rows = []
    for name, (chunks, values, _) in found.items():
        cells = [_marked(f"{values[column].mean():.3f}", values[column], found["structured"][1][column])
                 for column in COLUMNS]
        rows.append([name, len(chunks), *cells])
    return table(["", "chunks", *TITLES], rows)


def breadcrumb_table(found):
    """What a breadcrumb adds to recall, with its interval."""
    return table(["", *TITLES], [[name, *(_difference(with_it[column], without[column]) for column in COLUMNS)]
                                 for name, (_, with_it, without) in found.items()])


def overlap_table(found):
    """Recall with each overlap less recall without, with its interval; the first row is recall itself."""
    rows = []
    for percent, (chunks, values) in found.items():
        cells = [_difference(values[column], found[0][1][column]) if percent else f"{values[column].mean():.3f}"
                 for column in COLUMNS]
        rows.append([f"{percent}%", len(chunks), *cells])
    return table(["overlap", "chunks", *TITLES], rows)


def _difference(values, others):
    found = metrics.paired_bootstrap(values, others)
    return _marked(f"{found.difference:+.3f} ({found.low:+.2f} to {found.high:+.2f})", values, others)


def _marked(text, values, others):
    return f"**{text}**" if is_shown(metrics.paired_bootstrap(values, others)) else text


def verdicts(found):
    """A sentence on each row but structured: where it is better, where worse, and where neither is shown."""
    lines = []
    for name, (_, values, _) in found.items():
        sides = {"better": [], "worse": [], "no difference shown": []}
        for column, title in zip(COLUMNS, TITLES):
            each = metrics.paired_bootstrap(values[column], found["structured"][1][column])
            side = "no difference shown" if not is_shown(each) else "better" if each.difference > 0 else "worse"
            sides[side].append(title)
        if name != "structured":
            said = "; ".join(f"{side} in {len(where)} of {len(COLUMNS)}" for side, where in sides.items() if where)
            lines.append(f"- {name} against structured: {said}")
    return "\n".join(lines)


KINDS = {"heading": "black", "paragraph": "lightgray", "list": "darkseagreen", "table": "cornflowerblue",
         "code": "goldenrod", "field": "plum", "quote": "rosybrown"}


def plot_bands(document, embedder, path):
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


def plot_recalls(found, caption, path):
    """Recall of each row at 500 words with its 95% interval, by retriever."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(9, 6), layout="constrained")
    marks = zip(RETRIEVERS, ("o", "s", "^"), ("#0072b2", "#d55e00", "#009e73"), (0.22, 0, -0.22))
    for name, mark, colour, shift in marks:
        for row, (_, values, _) in enumerate(reversed(found.values())):
            mean, low, high = eval_spans.interval(values[name, 500])
            panel.plot([low, high], [row + shift] * 2, color=colour, linewidth=1)
            panel.plot(mean, row + shift, mark, color=colour, label=name if row == 0 else None)
    panel.set(yticks=range(len(found)), yticklabels=list(reversed(found)), title="One budget, many ways to cut",
              xlabel="recall of the evidence in 500 words, with 95% intervals")
    panel.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(caption, fontsize=8)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


ABOUT = """# Six ways to cut, overlap and breadcrumbs

Made by {}: {} questions over the fourteen
descriptions. Recall of the evidence at a budget of words; what the rows mean stands in eval_strategies.py. Bold: shown
to differ at 95% (from structured; from no breadcrumb; from no overlap). If nothing differed, one in twenty still would.
"""


def main(arguments=None):
    """Run the comparison; writes results/strategies.md, strategies.png and strategies_recall.png."""
    argparse.ArgumentParser(description="Six ways to cut: which one finds more of the evidence?").parse_args(arguments)
    corpora, embedder = [eval_corpora.labelled_descriptions(), eval_corpora.modules()], rag.embedder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", encoder.TruncationWarning)     # large windows are cut on purpose
        found = measure(corpora[0], embedder)
        overlaps = {corpus.name: measure_overlaps(corpus, embedder) for corpus in corpora}
    made = f"`python eval_strategies.py` (all-MiniLM-L6-v2, bootstrap seed 0, data {data_hash(corpora)})"
    parts = [ABOUT.format(made, len(corpora[0].questions)), recall_table(found), verdicts(found),
             f"## What a breadcrumb adds\n\n{breadcrumb_table(found)}",
             *(f"## Overlap: {name}, windows of {WINDOW} words\n\n{overlap_table(each)}"
               for name, each in overlaps.items())]
    print(text := "\n\n".join(parts))
    plot_bands(documents.load_descriptions(["lfw"])[0], embedder, RESULTS / "strategies.png")
    plot_recalls(found, made.replace("`", ""), RESULTS / "strategies_recall.png")
    (RESULTS / "strategies.md").write_text(
        f"{text}\n\n![recall by way to cut](strategies_recall.png)\n\n"
        "![one description, cut six ways](strategies.png)\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
