"""Beside step 18 — How does a question become a ranking of chunks? Two retrievers, one pool, one reranker.

    question -> standalone question -> queries -> dense, lexical: k_each chunks each -> fused pool -> reranked -> k hits

Every stage is a list of [(position, score)], best first; a position is a chunk's place in index.chunks. A chunk that
the user may not see, or that does not match, is left out before the first score (filters.py), so no stage can bring it
back. Each hit tells its rank and score at every stage, which is how one finds out who is to blame.

    mode       "dense", "lexical" or "hybrid": which retrievers are asked
    k_each     how many chunks each retriever gives, and how many of the fused pool are reranked
    fuse       how lists become one: by_score (each list stretched to 0..1, then added; the default, since no corpus
               of results/stages.md prefers the other) or by_rank (RRF)
    scorer     the reranker (rerank.py); None: the pool's order stays
    weight     the reranker's share in the last score: 1, and the score is the reranker's own. Below that the rest is
               BM25's, and both are stretched to 0..1 over the pool, so the score says nothing of other questions'
    rewrites   what a model adds to the question (queries.py): "paraphrases", "decompose", "hypothetical"

A hit's neighbours come with it on request; a child's parent is read in its place. Of chunks of one document that
overlap, the best stays: where chunks lie is told by their offsets, since equal beginnings are not equal texts.

The retrievers work one after the other: side by side, in two threads, they take as long (results/scale.md).

Not here: an approximate index; what is made of the hits (prompt.py).
"""

import bisect
import time
from typing import NamedTuple

import bm25
import chunking
import fusion
import queries
import ranking
import rerank

MODES = {"dense": ("dense",), "lexical": ("lexical",), "hybrid": ("dense", "lexical")}
REWRITES = {"paraphrases": queries.paraphrases, "decompose": queries.decompose}         # beside "hypothetical"


class Place(NamedTuple):
    """Where a chunk stood at one stage: its rank, from 1, and its score."""

    rank: int
    score: float


class Hit(NamedTuple):
    """One chunk that was found.

    chunk   what to read: the chunk that was found, or its parent
    score   of the last stage
    ranks   {stage: Place}: "dense", "lexical" (a second query's are "dense 2", ...), "passage", "fused", "reranked"
    found   the chunk that was searched
    around  chunks to read with it, itself among them, in the document's order; [] unless they were asked for
    """

    chunk: dict
    score: float
    ranks: dict
    found: dict
    around: list


# -- Two ways to fuse. They take and give lists of (position, score), best first ---------------------------------------


def by_rank(runs):
    """Reciprocal rank fusion.

    >>> [position for position, _ in by_rank([[(1, 9.0), (3, 2.0)], [(3, 0.5), (2, 0.4)]])]
    [3, 1, 2]
    """
    return fusion.rrf([[position for position, _ in run] for run in runs])


def by_score(runs):
    """Each list's scores stretched to 0..1, and added.

    >>> by_score([[(1, 9.0), (3, 2.0)], [(3, 0.5), (2, 0.4)]])
    [(1, 1.0), (3, 1.0), (2, 0.0)]
    """
    return fusion.weighted_sum([fusion.min_max(dict(run)) for run in runs])


# -- The search --------------------------------------------------------------------------------------------------------


def search(question, index, user=None, where=None, history=None, mode="hybrid", k_each=50, k=8, *, fuse=by_score,
           scorer="maxsim", weight=1.0, ask=None, rewrites=(), neighbours=0, whole=0, trace=None):
    """The k best chunks for a question, best first: list[Hit].

    user, where  who asks (None: anonymous), and conditions that chunks must match: filters.py
    history      what was said before, [(role, text)]: a follow-up is searched as a question that stands alone
    scorer       "maxsim": over the index's own token vectors; None, or a function: rerank.py
    ask          a model that rewrites, ask(prompt, system) -> text; None: queries.py does what it can without one
    neighbours   how many chunks before and after each hit come with it, as far as they may be seen
    whole        documents of at most so many words come whole with each of their hits
    trace        a dict, which gets "question" (as it was searched), "queries", "identifiers", "timings" (seconds) and
                 "stages", the whole list of each: {stage: [(chunk id, score)]}

    There are fewer than k hits if fewer chunks may be found, if no more of the pool are different, or, in lexical mode,
    if no more share a word. Raises ValueError for a blank question, k_each < k, an unknown mode or rewrite, and what
    filters.py, rerank.py and the embedder raise; TypeError for texts that are no texts.
    """
    runs, asked, history = _checked(question, mode, k_each, k, rewrites), {}, None if history is None else list(history)
    neighbours, whole = ranking.check_k(neighbours, name="neighbours"), ranking.check_k(whole, name="whole")
    clock, visible = _Clock(), index.visible(user)
    allowed = index.filters.matching(where, visible)
    asked["question"] = standalone = queries.standalone(question, history, ask)
    texts = _queries(standalone, rewrites, ask)
    passage = queries.hypothetical(standalone, ask) if "hypothetical" in rewrites and "dense" in runs else None
    clock.stop("rewrite")
    asked["identifiers"] = names = queries.identifiers(question)
    stages = _retrieve(index, texts, passage, names, runs, k_each, allowed, visible)
    clock.stop("retrieve")
    pool = next(iter(stages.values()))
    if len(stages) > 1:
        pool = stages["fused"] = fuse(list(stages.values()))[:k_each]
    clock.stop("fuse")
    if scorer is not None:
        pool = stages["reranked"] = _reranked(index, standalone, pool, scorer, weight, visible)
    clock.stop("rerank")
    if trace is not None:
        named = {name: [(index.chunks[position]["id"], score) for position, score in run]
                 for name, run in stages.items()}
        trace |= asked | {"queries": texts, "timings": clock.times, "stages": named}
    ranks = {name: {each[0]: Place(rank, each[1]) for rank, each in enumerate(run, start=1)}
             for name, run in stages.items()}
    return [Hit(chunk, score, {name: places[position] for name, places in ranks.items() if position in places},
                index.chunks[position], _around(index, position, allowed, neighbours, whole))
            for chunk, position, score in _different(index, pool, visible)[:k]]


def _checked(question, mode, k_each, k, rewrites):
    if not isinstance(question, str):
        raise TypeError(f"question must be a string, not a {type(question).__name__}")
    if not question.strip():
        raise ValueError("the question is empty")
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    if unknown := set(rewrites) - {*REWRITES, "hypothetical"}:
        raise ValueError(f"there is no rewrite {sorted(unknown)[0]!r}; there are: {', '.join(REWRITES)}, hypothetical")
    if ranking.check_k(k_each, name="k_each") < ranking.check_k(k):
        raise ValueError(f"k_each is {k_each}, but {k} chunks are to be chosen from that many: make it at least k")
    return MODES[mode]


def _queries(question, rewrites, ask):
    """The question, and what a model adds to it: searched one by one, fused, and reranked against the question."""
    more = [each for name, rewrite in REWRITES.items() if name in rewrites for each in rewrite(question, ask)]
    return list(dict.fromkeys([question, *more]))


def _retrieve(index, texts, passage, names, runs, k_each, allowed, visible):
    """{stage: [(position, score)]} of each query by each retriever."""
    stages = {}
    for number, text in enumerate(texts, start=1):
        suffix = "" if number == 1 else f" {number}"
        if "dense" in runs:
            stages["dense" + suffix] = _pairs(index.dense(text, k_each, allowed))
        if "lexical" in runs:
            stages["lexical" + suffix] = _pairs(index.lexical(_keywords(text, names), k_each, allowed, visible))
    if passage:
        [vector] = index.embedder.encode([passage], batch_size=1)      # as a document: that is what it looks like
        stages["passage"] = _pairs(index.dense(vector, k_each, allowed))
    return stages


def _keywords(text, names):
    # subtle: a name that is said again counts twice, and a rewrite may have lost it
    return " ".join([text, *names])


def _pairs(found):
    return list(zip(found[0].tolist(), found[1].tolist()))


def _reranked(index, question, pool, scorer, weight, visible):
    """The pool in the reranker's order: [(position, score)]."""
    if scorer == "maxsim":
        scorer = rerank.maxsim_scorer(index.embedder, index.token_store)
    chunks = [{"text": chunking.searched_text(index.chunks[position]), "at": position} for position, _ in pool]
    first = None
    if weight != 1:
        first = index.postings.scores(bm25.tokenize(question), visible)[[position for position, _ in pool]]
    found = rerank.rerank(question, chunks, None, scorer, first, weight)
    return [(chunk["at"], score) for chunk, score in found]


class _Clock:
    """How long each stage takes, in seconds."""

    def __init__(self):
        self.times, self.last = {}, time.perf_counter()

    def stop(self, stage):
        now = time.perf_counter()
        self.times[stage], self.last = now - self.last, now


# -- What is read of what was found ------------------------------------------------------------------------------------


def _different(index, pool, visible):
    """[(chunk to read, position, score)] without those of which more than half has been read already."""
    kept, spans = [], {}
    for position, score in pool:
        chunk = _readable(index, position, visible)
        read = spans.setdefault(chunk["doc_id"], [])
        if not _is_read(chunk, read):
            kept.append((chunk, position, score))
            read.append((chunk.get("start"), chunk.get("end")))
    return kept


def _readable(index, position, visible):
    """The parent of the chunk at `position`, unless some other child of it is hidden from the user: then the chunk."""
    chunk = index.chunks[position]
    if "parent_id" not in chunk:
        return chunk
    siblings = (place for place in _places(index, chunk["doc_id"])
                if index.chunks[place].get("parent_id") == chunk["parent_id"])
    return chunking.parents([chunk])[0] if all(visible[place] for place in siblings) else chunk


def _places(index, doc_id):
    """The positions of a document's chunks, which stand side by side."""
    first = bisect.bisect_left(index.chunks, doc_id, key=lambda chunk: chunk["doc_id"])
    return range(first, bisect.bisect_right(index.chunks, doc_id, key=lambda chunk: chunk["doc_id"]))


def _is_read(chunk, spans):
    """Does more than half of the chunk lie in one of the spans? Without offsets nobody knows.

    >>> _is_read({"start": 10, "end": 20}, [(0, 15)]), _is_read({"start": 10, "end": 20}, [(0, 16)])
    (False, True)
    """
    start, end = chunk.get("start"), chunk.get("end")
    return start is not None and any(
        2 * (min(end, b) - max(start, a)) > end - start for a, b in spans if a is not None)


def _around(index, position, allowed, neighbours, whole):
    """The chunks to read with the one at `position`: its neighbours, or its document if that is short."""
    if not neighbours and not whole:
        return []
    shown = [place for place in _places(index, index.chunks[position]["doc_id"]) if allowed[place]]
    bodies = (index.chunks[place].get("body", index.chunks[place]["text"]) for place in shown)
    if not whole or sum(len(body.split()) for body in bodies) > whole:
        shown = [place for place in shown if abs(place - position) <= neighbours]
    return [index.chunks[place] for place in shown]


# -- Why? --------------------------------------------------------------------------------------------------------------


def explain(hit, question, index, user=None):
    """Why a hit stands where it stands, as lines: its ranks and scores by stage, and what each word of BM25's is worth.

    The words' statistics are of what the user may see.
    """
    chunk, visible = hit.found, index.visible(user)
    position = bisect.bisect_left(index.chunks, (chunk["doc_id"], chunk["position"]),
                                  key=lambda each: (each["doc_id"], each["position"]))
    tokens = bm25.tokenize(_keywords(question, queries.identifiers(question)))
    rows = index.postings.explain(tokens, position, visible)
    stages = [f"{stage} {place.rank} ({place.score:.4f})" for stage, place in hit.ranks.items()]
    words = [f"{row.term} {row.score:.2f} (in {row.df} chunks, here {row.count} times)" for row in rows if row.count]
    return [f"{chunk['id']}: {', '.join(stages)}", f"    shares the words: {', '.join(words) or 'none'}"]


if __name__ == "__main__":
    from index import Index
    from toy import DOCUMENTS, QUESTION, Topics

    chunks = [{"id": f"pets#{number}", "doc_id": "pets", "position": number, "text": text}
              for number, text in enumerate(DOCUMENTS)]
    index, trace = Index.build(chunks, Topics()), {}
    for hit in search(QUESTION, index, k=4, trace=trace):
        print(f"{hit.score:.4f}  {hit.chunk['text']!r}")
        print("       ", "\n        ".join(explain(hit, QUESTION, index)))
    print("searched:", trace["queries"])
