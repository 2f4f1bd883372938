"""Step 4 of 22 — How good is a ranking, a set of spans, an answer, a refusal? Before: fusion.py. Next: documents.py.

One question is answered at a time: did the ranking find what helps, how much of it, and how far up?

    ranking    items, best first, no duplicates            toy: BM25_RANKING = [1, 3, 0]
    relevant   the set of items that help                  toy: {0, 1}
    gains      item -> grade, 0 for no help at all         toy: GAINS = {0: 1, 1: 2, 2: 0, 3: 0}
    k          how many places count, from 1
    rank       a place in the ranking, from 1
    qrels      {query: gains}, what people judged; a grade above 0 is relevant
    run        {query: ranking} or {query: {item: score}}, what a system returned

hit asks whether anything relevant is in the first k, recall how much of it, precision how much else. Reciprocal rank
looks at the first relevant item alone, average precision at each of them, nDCG at grades. The definitions are those
of trec_eval, whose manual is Buckley and Voorhees, "Retrieval System Evaluation" (TREC, 2005, chapter 3); DCG is
equation 2 of Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (TOIS 2002), with the
logarithm of rank + 1, so that rank 1 counts in full.

Undefined is not 0: for a question that nothing answers, all six raise ValueError, and `evaluate` counts it apart.

Not here: files of other tools (trec.py later), spans, answers and refusals, which come with their stages.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import ranking as order

# -- Sets: is it there? ------------------------------------------------------------------------------------------------


def hit_at_k(ranking, relevant, k):
    """1.0 if any relevant item is among the first k, else 0.0.

    >>> hit_at_k([1, 3, 0], {0, 1}, k=1)
    1.0
    """
    return float(_count_found(ranking, relevant, k) > 0)


def recall_at_k(ranking, relevant, k):
    """The share of the relevant items that is among the first k.

    formula: recall = found / n_relevant

    >>> recall_at_k([1, 3, 0], {0, 1}, k=2)
    0.5
    """
    return _count_found(ranking, relevant, k) / len(_check_relevant(relevant))


def precision_at_k(ranking, relevant, k):
    """The share of the first k places that is relevant; a ranking shorter than k has empty places.

    formula: precision = found / k

    >>> precision_at_k([1, 3, 0], {0, 1}, k=5)
    0.4
    """
    return _count_found(ranking, relevant, k) / k                      # subtle: k, not the length of a short ranking


def _count_found(ranking, relevant, k):
    k, items, relevant = order.check_k(k, least=1), _check_ranking(ranking), _check_relevant(relevant)
    return sum(item in relevant for item in items[:k])


# -- Ranks: how far up is it? ------------------------------------------------------------------------------------------


def reciprocal_rank(ranking, relevant):
    """1 / rank of the first relevant item; 0.0 if there is none in the ranking.

    formula: reciprocal_rank = 1 / first_rank

    >>> reciprocal_rank([3, 1, 0], {0, 1})
    0.5
    """
    relevant = _check_relevant(relevant)
    for rank, item in enumerate(_check_ranking(ranking), start=1):
        if item in relevant:
            return 1 / rank
    return 0.0


def average_precision(ranking, relevant):
    """The precision at the rank of each relevant item, averaged over all relevant items, found or not.

    formula: average_precision = sum(precision at each relevant rank) / n_relevant

    >>> average_precision([1, 3, 0], {0, 1}) == (1/1 + 2/3) / 2
    True
    """
    relevant, found, total = _check_relevant(relevant), 0, 0.0
    for rank, item in enumerate(_check_ranking(ranking), start=1):
        if item in relevant:
            found += 1
            total += found / rank
    return total / len(relevant)


# -- Grades: how much does each help? ----------------------------------------------------------------------------------

GAIN = {"linear": lambda grade: grade, "exponential": lambda grade: 2**grade - 1}


def dcg(gains):
    """Discounted cumulative gain of gains in rank order: a gain at rank r is divided by log2(r + 1).

    formula: dcg = sum(gain / log2(rank + 1))

    >>> dcg([2, 0, 1]) == 2 / math.log2(2) + 0 / math.log2(3) + 1 / math.log2(4)
    True
    """
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def ndcg_at_k(ranking, gains, k, gain="linear"):
    """DCG of the first k places over that of the best possible ranking; unjudged items gain nothing.

    `gain` is "linear" (the grade itself, as trec_eval) or "exponential" (2^grade - 1; Burges et al., ICML 2005).
    formula: ndcg = dcg(ranking) / dcg(ideal)

    >>> round(ndcg_at_k([1, 3, 0], {0: 1, 1: 2, 2: 0, 3: 0}, k=3), 4)      # (2/1 + 1/2) / (2/1 + 1/log2(3))
    0.9502
    """
    k, items, gained = order.check_k(k, least=1), _check_ranking(ranking), _apply_gain(gains, gain)
    ideal = sorted(gained.values(), reverse=True)[:k]                  # subtle: all judged items, cut at k too
    if not any(ideal):
        raise ValueError("no item has a grade above 0: nDCG is undefined")
    return dcg([gained.get(item, 0) for item in items[:k]]) / dcg(ideal)


def _apply_gain(gains, gain):
    if not isinstance(gains, Mapping):
        raise TypeError(f"gains must be a dict of item -> grade, not {type(gains).__name__}")
    if gain not in GAIN:
        raise ValueError(f"gain must be one of {', '.join(GAIN)}, not {gain!r}")
    for item, grade in gains.items():
        if not 0 <= grade <= 1000:                                     # False for NaN; 2**1000 is still a float
            raise ValueError(f"the grade of {item!r} must be a number from 0 to 1000, not {grade}")
    return {item: GAIN[gain](float(grade)) for item, grade in gains.items()}


# -- Many questions ----------------------------------------------------------------------------------------------------

MEASURES = {
    "hit": lambda items, gains, k: hit_at_k(items, _relevant(gains), k),
    "recall": lambda items, gains, k: recall_at_k(items, _relevant(gains), k),
    "precision": lambda items, gains, k: precision_at_k(items, _relevant(gains), k),
    "reciprocal_rank": lambda items, gains, k: reciprocal_rank(items[:k], _relevant(gains)),
    "average_precision": lambda items, gains, k: average_precision(items[:k], _relevant(gains)),
    "ndcg": lambda items, gains, k: ndcg_at_k(items, gains, k),
    "ndcg_exponential": lambda items, gains, k: ndcg_at_k(items, gains, k, gain="exponential"),
}
NEED_K = {"hit", "recall", "precision"}
DEFAULT = ("hit@5", "recall@5", "precision@5", "reciprocal_rank", "average_precision", "ndcg@5")


class Evaluation(NamedTuple):
    """per_query[measure][query] is a number, or None where undefined; means[measure] is over the defined ones (None if
    there are none); undefined is the number of judged queries without a relevant item."""

    per_query: dict
    means: dict
    undefined: int


def evaluate(run, qrels, measures=DEFAULT):
    """Every measure for every judged query, and the means.

    A measure is a name of MEASURES, cut at k as in "recall@5"; without "@k" the whole ranking counts (hit, recall and
    precision need a k). A judged query that the run does not answer counts as 0; a query that nobody judged is ignored.
    A dict of scores is ranked first: higher score, then smaller item. Raises ValueError for no judged query, an unknown
    measure, k < 1, duplicates, negative grades, NaN.

    >>> result = evaluate({"q1": [1, 3, 0]}, {"q1": {0: 1, 1: 2}, "q2": {5: 1}, "q3": {}}, ["recall@2", "ndcg@3"])
    >>> result.means["recall@2"], result.undefined      # q1 finds 1 of 2, q2 is unanswered, q3 has no answer at all
    (0.25, 1)
    """
    if not qrels:
        raise ValueError("qrels holds no judged query: there is nothing to measure")
    parsed = {measure: _parse(measure) for measure in measures}
    rankings = {query: _as_ranking(run.get(query, [])) for query in qrels}
    per_query = {measure: {} for measure in parsed}
    for query, gains in qrels.items():
        defined = any(_apply_gain(gains, "linear").values())
        everything = max(len(rankings[query]), len(gains), 1)
        for measure, (function, k) in parsed.items():
            per_query[measure][query] = function(rankings[query], gains, k or everything) if defined else None
    means = {measure: _mean(values.values()) for measure, values in per_query.items()}
    return Evaluation(per_query, means, sum(not _relevant(gains) for gains in qrels.values()))


def _parse(measure):
    name, at, k = measure.partition("@")
    if name not in MEASURES or (at and not k.isdecimal()) or (name in NEED_K and not at):
        raise ValueError(f"unknown measure {measure!r}: use one of {', '.join(MEASURES)}, cut at k as in 'recall@5'")
    return MEASURES[name], order.check_k(int(k), least=1) if at else None


def _as_ranking(answer):
    """A ranking as it is; {item: score} sorted by score falling, then item rising."""
    if not isinstance(answer, Mapping):
        return _check_ranking(answer)
    if not all(math.isfinite(score) for score in answer.values()):
        raise ValueError("a score in the run is NaN or infinite")
    return sorted(sorted(answer), key=answer.get, reverse=True)


def _mean(values):
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def _relevant(gains):
    return {item for item, grade in gains.items() if grade > 0}        # subtle: a grade of 0 is judged, not relevant


def _check_relevant(relevant):
    if isinstance(relevant, (str, bytes, Mapping)):
        raise TypeError(f"relevant must be a set of items, not a {type(relevant).__name__}")
    relevant = set(relevant)
    if not relevant:
        raise ValueError("no item is relevant: the measure is undefined")
    return relevant


def _check_ranking(ranking):
    if isinstance(ranking, (str, bytes, Mapping, set, frozenset)):
        raise TypeError(f"a ranking must be a list of items, best first, not a {type(ranking).__name__}")
    items = list(ranking)
    if len(set(items)) < len(items):
        raise ValueError("the ranking holds an item twice: it would be counted twice")
    return items


if __name__ == "__main__":
    from toy import BM25_RANKING, DENSE_RANKING, GAINS

    rankings = {"keywords": BM25_RANKING, "vectors": DENSE_RANKING, "fused": [1, 0, 3, 2]}
    print(f"gains: {GAINS}; best possible DCG@3 = 2/log2(2) + 1/log2(3) = {dcg([2, 1]):.4f}")
    for name, items in rankings.items():
        terms = " + ".join(f"{GAINS[item]}/log2({rank + 1})" for rank, item in enumerate(items[:3], start=1))
        print(f"{name:9} {items!s:13} recall@2 {recall_at_k(items, {0, 1}, 2):.2f}  AP "
              f"{average_precision(items, {0, 1}):.4f}  nDCG@3 {ndcg_at_k(items, GAINS, 3):.4f}  DCG@3 = {terms}")
