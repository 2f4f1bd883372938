"""Beside step 19 — One way to cut, one way to rank: how much of the evidence is read, and at what price?

What is compared in the experiments is a cut (a strategy with its size) under a retriever. Chunks of different sizes are
different things, so what counts are characters: of the evidence, and of everything that has to be read with it.

    retriever   dense: cosine; bm25: keywords; hybrid: the first 100 of both, scores stretched to 0..1 and added;
                rerank: MaxSim decides among the hybrid's first 50. Nothing else of search.py: no identifiers, no
                second helping for titles, no near-duplicates left out
    ranked      for each question the first 200 chunks, best first; parents in place of their children
    fixed k     the first k chunks, however long: bigger chunks can only look better
    budget      so many words, those of breadcrumbs and repeated headers included: whole chunks in rank order, the one
                that overflows is cut at the budget
    recall      metrics.evidence_recall of what was read: a piece counts by the share of its characters
    precision   of the characters read, the share that is evidence; undefined where nothing was found
    IoU         what is evidence and was read, over all that is either; references are each piece's best-read copy
    omega       metrics.precision_omega over all copies: what a perfect retriever would have to read with them
    MRR         1 / rank of the first chunk that holds a piece whole, 0 if there is none

                toy: "on the mat" is asked for, "the cat sat on the mat" is read: recall 1, precision 10/22

Not here: which cuts, retrievers and documents are compared (eval_sweep.py, eval_strategies.py).
"""

import copy
import re
import warnings
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import bm25
import chunking
import encoder
import index
import metrics
import ranking
import rerank
import search
from token_store import TokenStore

RETRIEVERS = ("dense", "bm25", "hybrid", "rerank")
DEPTH, EACH, RERANKED = 200, 100, 50
BATCH = 256                                                            # texts that are embedded at once
MEASURES = ("recall", "precision", "IoU", "omega", "MRR", "words")


class Cut(NamedTuple):
    """How documents are cut: the arguments of chunking.STRATEGIES."""

    strategy: str = "structured"
    size: int = 200
    overlap: int = 0
    length: str = "tokens"

    def __str__(self):
        return f"{self.strategy}, {self.size:,} {self.length}" + (f", overlap {self.overlap}" if self.overlap else "")

    def chunks(self, docs, embedder):
        """The chunks of all documents, which may be longer than what the embedder reads.

        Raises what the strategy does; ValueError for a strategy that there is not.
        """
        if self.strategy not in chunking.STRATEGIES:
            raise ValueError(f"there is no strategy {self.strategy!r}; there are: {', '.join(chunking.STRATEGIES)}")
        strategy, counter = chunking.STRATEGIES[self.strategy], embedder
        if self.length == "tokens" and self.size > embedder.max_tokens and self.strategy not in ("semantic", "late"):
            counter = copy.copy(embedder)                              # for counting; it reads no more than before
            counter.max_tokens = self.size
        return [chunk for document in tqdm(docs, desc=str(self), leave=False, disable=None)
                for chunk in strategy(document, self.size, self.overlap, self.length, counter)]


# -- Rank --------------------------------------------------------------------------------------------------------------


def rank(chunks, questions, embedder, retrievers=RETRIEVERS):
    """{retriever: for each question the first 200 chunks, best first}. Nothing is computed that no retriever needs."""
    if unknown := set(retrievers) - set(RETRIEVERS):
        raise ValueError(f"there is no retriever {sorted(unknown)[0]!r}; there are: {', '.join(RETRIEVERS)}")
    texts, runs = [chunking.searched_text(chunk) for chunk in chunks], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", encoder.TruncationWarning)     # what is cut off is counted (eval_sweep.py)
        if set(retrievers) - {"bm25"}:
            runs["dense"] = _dense(chunks, texts, questions, embedder)
        if set(retrievers) - {"dense"}:
            found = bm25.BM25([bm25.tokenize(text) for text in texts])
            runs["bm25"] = [_pairs(found.top_k(bm25.tokenize(question), DEPTH)) for question in questions]
        if set(retrievers) - {"dense", "bm25"}:
            runs["hybrid"] = [search.by_score([run[:EACH] for run in both])
                              for both in zip(runs["dense"], runs["bm25"])]
        if "rerank" in retrievers:
            runs["rerank"] = _reranked(texts, questions, runs["hybrid"], embedder)
    return {name: [_read(chunks, run) for run in runs[name]] for name in retrievers}


def _dense(chunks, texts, questions, embedder):
    if "vector" in chunks[0]:                                          # late chunks bring their own
        vectors = np.array([chunk["vector"] for chunk in chunks])
    else:
        starts = tqdm(range(0, len(texts), BATCH), desc="vectors", leave=False, disable=None)
        vectors = np.concatenate([embedder.encode(texts[start:start + BATCH]) for start in starts])
    found = index.cosine_top_k(embedder.encode(questions, kind="query"), vectors, DEPTH)
    return [_pairs(each) for each in zip(*found)]


def _pairs(found):
    return list(zip(found[0].tolist(), found[1].tolist()))


def _reranked(texts, questions, pools, embedder):
    """The first 50 of each pool in MaxSim's order, then the others as they were."""
    scorer, runs = rerank.maxsim_scorer(embedder, TokenStore(embedder, budget=2_000_000_000)), []
    for question, pool in zip(tqdm(questions, desc="rerank", leave=False, disable=None), pools):
        positions = [position for position, _ in pool]
        scores = scorer(question, [texts[position] for position in positions[:RERANKED]])
        order = ranking.top_k(scores, len(scores))
        runs.append([(positions[place], scores[place]) for place in order] + pool[RERANKED:])
    return runs


def _read(chunks, run):
    ranked = [chunks[position] for position, _ in run]
    return chunking.parents(ranked) if ranked and "parent_id" in ranked[0] else ranked


# -- Read --------------------------------------------------------------------------------------------------------------


def span(chunk):
    """Where a chunk's body stands: (doc_id, start, end)."""
    return chunk["doc_id"], chunk["start"], chunk["end"]


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


def n_words(chunks):
    """Words of the chunks' texts, breadcrumbs included."""
    return sum(len(chunk["text"].split()) for chunk in chunks)


# -- Measure -----------------------------------------------------------------------------------------------------------


def measure(ranked, evidence, chunks, k=None, budget=None):
    """{measure: values [n_questions]} of what is read of the rankings: the first k chunks, or a budget of words.

    `chunks` are all chunks there are (for omega). NaN stands where a measure is undefined: a precision of nothing.
    """
    by_document, values = {}, {name: [] for name in MEASURES}
    for chunk in chunks:
        by_document.setdefault(chunk["doc_id"], []).append(span(chunk))
    for found, pieces in zip(ranked, evidence):
        read = list(map(span, found[:k])) if budget is None else read_within(found, budget)
        words = n_words(found[:k]) if budget is None else min(budget, n_words(found))
        every = [copy for copies in pieces for copy in copies]
        near = [each for doc_id in {copy[0] for copy in every} for each in by_document.get(doc_id, [])]
        best = [max(copies, key=lambda copy: metrics.span_recall(read, [copy])) for copies in pieces]
        row = (metrics.evidence_recall(read, pieces), metrics.evidence_precision(read, pieces) if read else np.nan,
               metrics.span_iou(read, best), metrics.precision_omega(near, every), _reciprocal_rank(found, pieces))
        for name, value in zip(MEASURES, (*row, words)):
            values[name].append(value)
    return {name: np.array(each, float) for name, each in values.items()}


def holds(chunk, copies):
    """Whether a chunk holds one of the copies of a piece whole.

    >>> holds({"doc_id": "d", "start": 10, "end": 20}, [("d", 0, 9), ("d", 12, 20)])
    True
    """
    doc_id, first, last = span(chunk)
    return any(doc_id == other and first <= start and end <= last for other, start, end in copies)


def _reciprocal_rank(found, pieces):
    for rank, chunk in enumerate(found, start=1):
        if any(holds(chunk, copies) for copies in pieces):
            return 1 / rank
    return 0.0


def interval(values):
    """The mean of values [n_questions] with its 95% interval: (mean, low, high). ValueError for fewer than 5."""
    found = metrics.paired_bootstrap(values, np.zeros(len(values)))
    return found.difference, found.low, found.high


if __name__ == "__main__":
    from toy import Topics

    text = "the cat sat on the mat. the price of oil rose. the cat slept."
    docs, asked = [{"id": "d", "title": "Pets", "text": text}], [[[("d", 0, 10)]]]
    for size in (3, 6, 99):
        chunks = Cut("fixed", size, 0, "words").chunks(docs, Topics())
        ranked = rank(chunks, ["Where is the cat?"], Topics(), ("dense",))["dense"]
        values = {name: each[0] for name, each in measure(ranked, asked, chunks, k=1).items()}
        print(f"{len(chunks)} chunks of at most {size:2} words; first {ranked[0][0]['body']!r}: "
              + ", ".join(f"{name} {value:.2f}" for name, value in values.items()))
