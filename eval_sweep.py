"""Beside step 19 — Does a bigger chunk find more, or only send more? Chunk sizes from 16 words to whole documents.

The break experiment has twenty questions, six documents and three chunks. Here are all fourteen descriptions with the
labelled questions, and long documents (eval_corpora.py), cut into windows of words without overlap.

    setting     what is read: the first 5 chunks, however long, or a budget of 250, 500 or 1,000 words (eval_spans.py)
    curve       recall by size, under one retriever and setting
    neighbours  two sizes next to each other in SIZES, compared on the same questions by a paired bootstrap
    best        the size of greatest recall on a curve. The sizes that cannot be told from it are as good as far as
                these questions can say; the best was picked on them as well, so it flatters itself
    unseen      the share of word pieces beyond the 256 that the model reads; BM25 reads everything
    inside      the evidence stands, in the chunk that holds it whole, before that cut; beyond: behind it
    hit         the first 5 chunks hold every piece of the evidence whole
    miss        the others, each of one kind, the first in KINDS that is true of a piece that is not held:
                cut          no chunk holds it whole
                beyond       it stands where the model does not read; for dense, hybrid and rerank
                diluted      alone it would be nearer to the question than the fifth chunk is; its chunk is not
                wrong        all five chunks are from other documents
                pool         its chunk is among the first 50
                far          it is not

Not here: other ways to cut (eval_strategies.py); whether an answer was right; overlap.
"""

import hashlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import chunking
import eval_spans
import metrics
from cutting import Ruler

SIZES = (16, 32, 50, 75, 100, 150, 200, 300, 500, 1000, 10**6)         # words; the last is a whole document
K, POOL, BUDGETS = 5, 50, (250, 500, 1000)
SETTINGS = {f"{K} chunks": dict(k=K)} | {f"{budget:,} words": dict(budget=budget) for budget in BUDGETS}
KINDS = {"cut": "evidence cut", "beyond": "beyond the model's reach", "diluted": "chunk diluted",
         "wrong": "wrong document", "pool": "in the pool but not on top", "far": "farther down"}
RESULTS = Path(__file__).parent / "results"


class Size(NamedTuple):
    """What one size gives over one corpus."""

    chunks: int
    unseen: float
    values: dict        # {(retriever, setting): {measure: [n_questions]}}
    misses: dict        # {retriever: [None or a kind for each question]}
    inside: list        # for each question, whether the model reads all of its evidence; None where a cut parts it


def sweep(corpus, embedder, sizes=SIZES, retrievers=eval_spans.RETRIEVERS):
    """{size: Size} over an eval_corpora.Asked."""
    found = {}
    for size in tqdm(sizes, desc=f"sizes, {corpus.name}", leave=False, disable=None):
        chunks = eval_spans.Cut("fixed", size, 0, "words").chunks(corpus.docs, embedder)
        ranked = eval_spans.rank(chunks, corpus.questions, embedder, retrievers)
        values = {(name, setting): eval_spans.measure(each, corpus.evidence, chunks, **options)
                  for name, each in ranked.items() for setting, options in SETTINGS.items()}
        unseen, pieces = chunking.unseen_pieces(chunks, embedder)
        ends = [read_until(chunk, embedder) if beyond else chunk["end"] for chunk, beyond in zip(chunks, unseen)]
        misses = {name: miss_kinds(each, corpus, chunks, ends, embedder, name) for name, each in ranked.items()}
        found[size] = Size(len(chunks), float(unseen.sum() / pieces.sum()), values, misses,
                           [is_inside(needed, chunks, ends) for needed in corpus.evidence])
    return found


# -- Why a question is missed ------------------------------------------------------------------------------------------


def read_until(chunk, embedder):
    """The place in the document up to which the model reads a chunk, which it does not read whole."""
    text = chunking.searched_text(chunk)
    room = embedder.max_tokens - embedder.count_tokens("")
    reached = Ruler(text, "tokens", embedder, heaviest=room).reach(0, room)
    return max(chunk["start"], chunk["end"] - (len(text) - reached))


def holders(copies, chunks):
    """The numbers of the chunks that hold one of a piece's copies whole."""
    return [number for number, chunk in enumerate(chunks) if eval_spans.holds(chunk, copies)]


def is_inside(pieces, chunks, ends):
    """Whether each piece stands before the cut in some chunk; None if for one piece no chunk holds it whole."""
    found = [holders(copies, chunks) for copies in pieces]
    if not all(found):
        return None
    return all(any(_is_read(chunks[number], ends[number], copies) for number in numbers)
               for numbers, copies in zip(found, pieces))


def _is_read(chunk, end, copies):
    return eval_spans.holds({**chunk, "end": min(chunk["end"], end)}, copies)


def miss_kinds(ranked, corpus, chunks, ends, embedder, retriever):
    """For each question None, if the first 5 chunks hold every piece whole, or why the first piece that fails does."""
    kinds = []
    for question, found, pieces in zip(corpus.questions, ranked, corpus.evidence):
        failing = next((copies for copies in pieces if not holders(copies, found[:K])), None)
        kinds.append(failing and _kind(question, found, failing, corpus, chunks, ends, embedder, retriever))
    return kinds


def _kind(question, found, copies, corpus, chunks, ends, embedder, retriever):
    numbers = holders(copies, chunks)
    if not numbers:
        return "cut"
    if retriever != "bm25":
        if not any(_is_read(chunks[number], ends[number], copies) for number in numbers):
            return "beyond"
        if _is_diluted(question, found[:K], copies, corpus, embedder):
            return "diluted"
    if not {chunk["doc_id"] for chunk in found[:K]} & {copy[0] for copy in copies}:
        return "wrong"
    return "pool" if holders(copies, found[:POOL]) else "far"


def _is_diluted(question, top, copies, corpus, embedder):
    """Is the evidence alone, with its document's title, nearer to the question than the last of the first 5 chunks?"""
    doc_id, start, end = copies[0]
    [document] = [document for document in corpus.docs if document["id"] == doc_id]
    alone = f"{document['title']}\n\n{document['text'][start:end]}"
    [query] = embedder.encode([question], kind="query")
    piece, last = embedder.encode([alone, chunking.searched_text(top[-1])]) @ query
    return bool(piece > last)


# -- What is printed ---------------------------------------------------------------------------------------------------


def name_of(size):
    """A size as it is printed."""
    return "whole" if size == SIZES[-1] else f"{size:,}"


def table(head, rows):
    """A Markdown table."""
    lines = [" | ".join(map(str, row)) for row in [head, ["---"] + ["---:"] * (len(head) - 1), *rows]]
    return "\n".join(f"| {line} |" for line in lines)


def recall_table(found, setting):
    """Recall with its interval for each size and retriever; what is read, and the cut's own measures."""
    retrievers = list(dict.fromkeys(name for name, _ in next(iter(found.values())).values))
    rows = []
    for size, each in found.items():
        shown = [each.values[name, setting] for name in retrievers]
        first = shown[0]
        rows.append([name_of(size), each.chunks, f"{first['words'].mean():,.0f}",
                     *(_with_interval(values["recall"]) for values in shown),
                     *(" / ".join(f"{np.nanmean(values[measure]):.3f}" for values in shown)
                       for measure in ("precision", "IoU", "MRR")), f"{first['omega'].mean():.2f}"])
    order = " / ".join(retrievers)
    return table(["words", "chunks", "words read", *(f"{name}, recall" for name in retrievers),
                  f"precision: {order}", "IoU", "MRR", "omega"], rows)


def _with_interval(values):
    mean, low, high = eval_spans.interval(values)
    return f"{mean:.3f} ({low:.2f} to {high:.2f})"


def compare(found, one, other, retriever, setting):
    """Recall at size `one` less that at `other`, over the same questions: metrics.PairedBootstrap."""
    values = [found[size].values[retriever, setting]["recall"] for size in (one, other)]
    return metrics.paired_bootstrap(*values)


def is_shown(difference):
    """Whether a paired bootstrap's interval leaves out 0."""
    return not difference.low <= 0 <= difference.high


def neighbours_table(found, retrievers):
    """Each size against the one before it: the difference in recall, with its interval, and whether it is shown."""
    columns, rows = [(name, setting) for setting in SETTINGS for name in retrievers], []
    for small, large in zip(list(found), list(found)[1:]):
        cells = [compare(found, large, small, *column) for column in columns]
        rows.append([f"{name_of(small)} to {name_of(large)}", *(
            f"**{each.difference:+.3f}**" if is_shown(each) else f"{each.difference:+.3f}" for each in cells)])
    return table(["words", *(f"{setting}, {name}" for name, setting in columns)], rows)


def best(found, retriever, setting):
    """The size of greatest recall, and all sizes that cannot be told from it."""
    means = {size: each.values[retriever, setting]["recall"].mean() for size, each in found.items()}
    top = max(means, key=means.get)
    return top, [size for size in found if size == top or not is_shown(compare(found, top, size, retriever, setting))]


def best_table(found, retrievers):
    """For each curve its best size, its recall, and what cannot be told from it."""
    rows = []
    for setting in SETTINGS:
        for name in retrievers:
            top, equal = best(found, name, setting)
            rows.append([f"{setting}, {name}", name_of(top), f"{found[top].values[name, setting]['recall'].mean():.3f}",
                         ", ".join(map(name_of, equal))])
    return table(["curve", "best", "recall", "no difference shown from the best"], rows)


def reach_table(found, retrievers):
    """The share of unseen word pieces, and hit rates where the evidence lies inside and beyond the model's reach."""
    rows = []
    for size, each in found.items():
        inside = np.array([-1 if value is None else value for value in each.inside])
        cells = []
        for part in (1, 0):
            which = np.flatnonzero(inside == part)
            hits = [[each.misses[name][i] is None for i in which] for name in retrievers]
            cells += [len(which), *(f"{np.mean(row):.2f}" if row else "" for row in hits)]
        rows.append([name_of(size), f"{each.unseen:.0%}", *cells, int((inside == -1).sum())])
    return table(["words", "unseen", *(f"{part}{what}" for part in ("inside", "beyond") for what in (
        ", questions", *(f", {name} hits" for name in retrievers))), "cut apart"], rows)


def kinds_table(found, retriever):
    """How many questions are missed in which way, by size."""
    rows = []
    for size, each in found.items():
        counts = Counter(each.misses[retriever])
        rows.append([name_of(size), counts[None], *(counts[kind] for kind in KINDS)])
    return table(["words", "hits", *KINDS.values()], rows)


def explain(corpus, found, retriever):
    """Every miss with its kind, a line each, by size; then the counts."""
    lines = []
    for size, each in found.items():
        lines.append(f"{corpus.name}, {name_of(size)} words, {retriever}:")
        lines += [f"  {KINDS[kind]:27} {question}" for kind, question in zip(each.misses[retriever], corpus.questions)
                  if kind]
    return "\n".join([*lines, "", kinds_table(found, retriever)])


def report(corpus, found, retrievers):
    """One corpus' tables as Markdown."""
    words = sum(len(document["text"].split()) for document in corpus.docs)
    parts = [f"## {corpus.name}: {len(corpus.docs)} documents, {words:,} words, {len(corpus.questions)} questions",
             f"Where each curve is highest:\n\n{best_table(found, retrievers)}"]
    parts += [f"### {setting}\n\n{recall_table(found, setting)}" for setting in SETTINGS]
    parts += [f"### Neighbouring sizes\n\nRecall gained; bold: shown at 95%, else no difference is shown.\n\n"
              f"{neighbours_table(found, retrievers)}",
              f"### What the model does not read\n\n{reach_table(found, retrievers)}"]
    parts += [f"### Kinds of misses, {name}\n\n{kinds_table(found, name)}" for name in retrievers]
    return "\n\n".join(parts)


def plot(everything, caption, path):
    """Recall against size at fixed k and at a budget, and what is sent and unseen: a row for each (corpus, found)."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(len(everything), 3, figsize=(13, 4.2 * len(everything)), layout="constrained",
                                   sharex=True, squeeze=False)
    for row, (corpus, found) in zip(axes, everything):
        for panel, setting in zip(row, (f"{K} chunks", "500 words")):
            _curves(panel, found, setting)
            panel.set(title=f"{corpus.name}: {setting} are read", ylabel="recall of the evidence", ylim=(0, 1.02))
        _price(row[2], found)
        row[2].set_title(f"{corpus.name}: the price of {K} chunks")
        for panel in row:
            panel.set(xticks=range(len(found)), xlabel="chunk size, words")
            panel.set_xticklabels(map(name_of, found), rotation=45)
            panel.grid(alpha=0.3)
    axes[0, 0].legend(loc="best", fontsize=9)
    figure.supxlabel(caption, fontsize=8)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


LINES = {"dense": ("o-", "#0072b2"), "bm25": ("s--", "#d55e00"), "hybrid": ("^-.", "#009e73"),
         "rerank": ("D:", "black")}


def _curves(panel, found, setting):
    for name, (style, colour) in LINES.items():
        if (name, setting) in next(iter(found.values())).values:
            means, low, high = zip(*(eval_spans.interval(each.values[name, setting]["recall"])
                                     for each in found.values()))
            panel.plot(range(len(found)), means, style, color=colour, label=name, markersize=5)
            if name == "dense":
                panel.fill_between(range(len(found)), low, high, color=colour, alpha=0.12, label="dense, 95%")


def _price(panel, found):
    [*_, (name, _)] = next(iter(found.values())).values
    words = [each.values[name, f"{K} chunks"]["words"].mean() for each in found.values()]
    panel.plot(range(len(found)), words, "o-", color="black", label="words sent")
    panel.set(yscale="log", ylabel="words sent")
    unseen = panel.twinx()
    unseen.plot(range(len(found)), [each.unseen for each in found.values()], "v:", color="#d55e00",
                label="share of word pieces that the model never reads")
    unseen.set(ylim=(0, 1), ylabel="unseen share")
    unseen.legend(handles=[*panel.get_lines(), *unseen.get_lines()], loc="lower right", fontsize=8)


def data_hash(corpora):
    """A short hash of the documents and questions: the same data give the same one."""
    digest = hashlib.sha256()
    for corpus in corpora:
        for text in (*(document["text"] for document in corpus.docs), *corpus.questions):
            digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    from eval_corpora import Asked
    from toy import Embedder

    text = "the cat sat on the mat. " + "the price of oil rose again. " * 6 + "the cat slept all day."
    corpus = Asked("toy", [{"id": "d", "title": "Pets", "text": text}], ["When did the cat sleep?"] * 5,
                   [[[("d", len(text) - 22, len(text) - 1)]]] * 5)
    found = sweep(corpus, Embedder(max_tokens=24), sizes=(4, 8, 999), retrievers=("dense", "bm25"))
    print(reach_table(found, ("dense", "bm25")))
    print(kinds_table(found, "dense"))
