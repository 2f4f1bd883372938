"""Step 3 of 22 — How do two rankings become one? Before: bm25.py. Next: metrics.py.

Keyword search and vector search miss different things, so both are asked and their lists are fused. Their scores
cannot be added: BM25's greatest differs from question to question, cosines end at 1. Two ways round that: forget the
scores and add up reciprocal ranks (rrf), or stretch each list's scores to 0..1 (min_max) and add those (weighted_sum).

    rankings     lists of items, each best first        toy: [[1, 3, 0], [0, 1, 3, 2]], from keywords and from vectors
    rank         where an item stands in its list, from 1
    k            how little the top ranks stand out (60; not the k of top k): 1/65 + 1/65 > 1/61, so two fifth places
                 beat one first place
    score_maps   dicts of item -> score, one for each list
    weights      how much each list counts; a list of weight 0 is as if it were not there

An item that a list does not hold gets nothing from it. Ties: the smaller item first (of strings, "c10" before "c2").

Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods"
(SIGIR 2009), the one displayed equation: RRFscore(d) = sum over the rankings of 1 / (k + rank of d).

Not here: which way is best. That has to be measured, on one's own questions.
"""

import math
from collections import defaultdict

import numpy as np

import ranking


def rrf_term(rank, k=60):
    """What one list gives to the item at `rank` (from 1).

    formula: rrf_term = 1 / (k + rank)
    """
    return 1 / (k + rank)


def rrf(rankings, k=60, weights=None, top_n=None):
    """Reciprocal rank fusion: [(item, score)], best first, the `top_n` best or all.

    score(item) = sum over the lists of weight * 1 / (k + rank). If an item stands in one list twice, its first place
    counts. Raises TypeError for a string, dict or set as a ranking, ValueError for k < 0, NaN, or weights that do not
    fit.

    >>> fused = rrf([["c7", "c2", "c9", "c4"], ["c2", "c5", "c7", "c1"]])
    >>> [(item, round(score, 4)) for item, score in fused]
    [('c2', 0.0325), ('c7', 0.0323), ('c5', 0.0161), ('c9', 0.0159), ('c1', 0.0156), ('c4', 0.0156)]
    """
    if not 0 <= k < math.inf:
        raise ValueError(f"k must be a finite number >= 0, not {k}")
    rankings = [_check_ranking(items) for items in rankings]
    longest = max(map(len, rankings), default=0)
    terms = rrf_term(np.arange(1, longest + 1), k).tolist()            # subtle: ranks count from 1, not 0
    # each list is read from its end, so that of an item's places the first one stays
    term_maps = [dict(zip(reversed(items), reversed(terms[:len(items)]))) for items in rankings]
    return _add_up(term_maps, weights, top_n)


def min_max(scores):
    """Stretch the scores of one list, {item: score}, to 0..1.

    formula: min_max = (score - low) / (high - low)

    If all are equal (or there is just one), each is 1: a hit is worth something. Raises TypeError for anything but a
    dict, ValueError for NaN or infinity.

    >>> min_max({"a": 2, "b": 1, "c": 0})
    {'a': 1.0, 'b': 0.5, 'c': 0.0}
    >>> min_max({"only": -3.2})
    {'only': 1.0}
    """
    scores = _check_scores(scores)
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if low == high:
        return dict.fromkeys(scores, 1.0)
    if math.isinf(high - low):
        raise ValueError(f"scores from {low} to {high} are too far apart for a float")
    return {item: (score - low) / (high - low) for item, score in scores.items()}


def weighted_sum(score_maps, weights=None, top_n=None):
    """Add up scores that share a scale (after min_max): [(item, score)], best first, the `top_n` best or all.

    score(item) = sum over the maps that hold it of weight * score. Raw scores of two retrievers share no scale.

    >>> keyword, vector = {"a": 9.0, "b": 3.0}, {"b": 0.9, "c": 0.8, "a": 0.4}
    >>> [(item, round(score, 2)) for item, score in weighted_sum([min_max(keyword), min_max(vector)], [0.5, 0.5])]
    [('a', 0.5), ('b', 0.5), ('c', 0.4)]
    """
    return _add_up([_check_scores(scores) for scores in score_maps], weights, top_n)


def _add_up(score_maps, weights, top_n):
    """[(item, weighted sum)] over the maps that hold the item, best first."""
    terms = defaultdict(list)                                          # item -> what each list gives it
    for scores, weight in zip(score_maps, _check_weights(weights, len(score_maps))):
        if weight > 0:
            for item, score in zip(scores, [weight * score for score in scores.values()]):
                terms[item].append(score)
    try:
        sums = np.array(list(map(math.fsum, terms.values())))
    except (OverflowError, ValueError):                                # infinity, or infinity minus infinity
        sums = np.array([math.inf])
    if not np.isfinite(sums).all():
        raise ValueError("a sum is too great for a float: scale the weights or scores down")
    return _sort(dict(zip(terms, _round(sums).tolist())), top_n)


def _round(sums):
    """Keep 46 of 53 bits: terms are rounded already, so that 1/66 + 1/99 and 1/72 + 1/88 differ in the last."""
    fractions, exponents = np.frexp(sums)
    return np.ldexp(np.rint(fractions * 2.0**46), exponents - 46)


def _sort(scores, top_n):
    """{item: score} to [(item, score)]: higher scores first, then smaller items."""
    top_n = None if top_n is None else ranking.check_k(top_n, name="top_n")
    try:
        items = sorted(scores)
    except TypeError:
        raise TypeError("items must be of one type that has an order: give the same chunk the same id in every list"
                        ) from None
    items.sort(key=scores.get, reverse=True)                           # stable, and reverse=True keeps ties in order
    return list(zip(items, map(scores.get, items)))[:top_n]


def _check_ranking(items):
    if isinstance(items, (str, bytes, dict, set, frozenset)):        # a dict's order is that of insertion, not of score
        raise TypeError(f"a ranking must be a list of items, best first, not a {type(items).__name__}")
    return list(items)


def _check_scores(scores):
    try:
        scores = {item: float(score) for item, score in scores.items()}
    except AttributeError:
        raise TypeError(f"scores must be a dict of item -> score, not {type(scores).__name__}") from None
    if not all(map(math.isfinite, scores.values())):
        raise ValueError("a score is NaN or infinite")
    return scores


def _check_weights(weights, n):
    if isinstance(weights, (str, bytes, dict)):
        raise TypeError(f"weights must be a list of numbers, one for each list, not a {type(weights).__name__}")
    weights = [1.0] * n if weights is None else [float(weight) for weight in weights]
    if len(weights) != n:
        raise ValueError(f"{n} lists need {n} weights, not {len(weights)}")
    if not all(0 <= weight < math.inf for weight in weights):
        raise ValueError(f"weights must be finite numbers >= 0, not {weights}")
    if n and not any(weights):
        raise ValueError("all weights are 0: nothing is left to fuse")
    return weights


if __name__ == "__main__":
    from toy import BM25_RANKING, DENSE_RANKING, DOCUMENTS

    print("keyword search:", BM25_RANKING, " vector search:", DENSE_RANKING)
    for item, score in rrf([BM25_RANKING, DENSE_RANKING]):
        ranks = [items.index(item) + 1 for items in (BM25_RANKING, DENSE_RANKING) if item in items]
        print(f"{score:.6f} = {' + '.join(f'1/(60 + {rank})' for rank in ranks):25}  {DOCUMENTS[item]!r}")
    bm25_scores, cosines = {1: 0.7799, 3: 0.5316, 0: 0.4570}, {0: 0.96, 1: 0.8, 3: 0.6, 2: 0.0}
    print("\nby scores, each list stretched to 0..1 and given half of the weight:")
    for item, score in weighted_sum([min_max(bm25_scores), min_max(cosines)], [0.5, 0.5]):
        print(f"{score:.4f} = 0.5 * {min_max(bm25_scores).get(item, 0):.4f} + 0.5 * {min_max(cosines)[item]:.4f}"
              f"          {DOCUMENTS[item]!r}")
