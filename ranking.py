"""Step 1 of 22 — What is a ranking? One total order, exact top-k under a mask. Next: bm25.py.

A retriever gives each item a score; a ranking is the items in order, best first. Everything later in this project
(keyword search, vector search, fusion, metrics) stands on one question asked here: which of two items comes first?

    scores     one number for each item                 toy: cosines [0.96, 0.8, 0.0, 0.6]
    position   where an item stands in `scores`, from 0
    ranking    positions, best first, no duplicates     toy: [0, 1, 3, 2]; later modules also rank ids
    rank       where an item stands in a ranking, from 1
    allowed    a mask: True where an item may be ranked

The one order: the higher score first; of equal scores, the lower position. Without the second half, equal scores
come out in whatever order a sorting routine leaves them, and top-3 need not be the start of top-20.

Not here: where scores come from. NaN and infinity are refused, since they have no place in an order.
"""

import operator

import numpy as np


def top_k_by_definition(scores, k, allowed=None):
    """The definition, as a loop: sort every allowed position by (score falling, position rising), keep the first k.

    >>> top_k_by_definition([0.96, 0.8, 0.0, 0.6], 3)
    [0, 1, 3]
    """
    positions = [i for i in range(len(scores)) if allowed is None or allowed[i]]
    return sorted(positions, key=lambda i: (-scores[i], i))[:k]


def top_k(scores, k, allowed=None):
    """The k best positions of `scores` [n], best first: int64 [min(k, number allowed)].

    The same as the definition above, without sorting everything: find the k-th best score, keep the items that
    reach it (all of its ties too), sort only those.

    What stands where `allowed` is False is never looked at. Raises ValueError for k < 0, scores that are not one row,
    NaN or infinity where allowed, a mask of another length; TypeError for k or scores that are no numbers, or a mask
    that is not boolean.

    >>> top_k([0.96, 0.8, 0.0, 0.6], 3).tolist()
    [0, 1, 3]
    >>> top_k([1, 2, 2, 1], 3).tolist()     # equal scores: the lower position first
    [1, 2, 0]
    """
    k, scores = check_k(k), _check_scores(scores)
    positions = np.arange(len(scores))
    if allowed is not None:
        positions = np.flatnonzero(check_mask(allowed, len(scores)))
        scores = scores[positions]                                     # [n] -> [n_allowed]
    if not np.isfinite(scores).all():
        raise ValueError("a score is NaN or infinite: such an item has no place in an order")
    if k == 0:
        return positions[:0]
    # from here on the smallest is the best; subtle: ~ mirrors whole numbers exactly, - would wrap some of them round
    falling = -scores if scores.dtype.kind == "f" else ~scores
    if k < len(scores):
        kth_best = np.partition(falling, k - 1)[k - 1]
        reached = np.flatnonzero(falling <= kth_best)                  # subtle: <= keeps every tie of the k-th
        positions, falling = positions[reached], falling[reached]
    return positions[np.argsort(falling, kind="stable")][:k]           # stable: of equal scores the lower position


# -- Checks that the other steps use too -------------------------------------------------------------------------------


def check_k(k, least=0, name="k"):
    """Return k as an int. Raises TypeError unless it is a whole number, ValueError if it is below `least`."""
    if isinstance(k, (bool, np.bool_)):
        raise TypeError(f"{name} must be a whole number, not a truth value")
    try:
        k = operator.index(k)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {k!r}") from None
    if k < least:
        raise ValueError(f"{name} must be at least {least}, not {k}")
    return k


def check_mask(mask, n, name="allowed"):
    """Return `mask` as a boolean array [n]. Raises TypeError for positions or 0/1 integers, ValueError for a length."""
    mask = np.asarray(mask)
    mask = mask.astype(bool) if mask.size == 0 else mask
    if mask.dtype != bool:
        raise TypeError(f"{name} must be a mask of True and False, one for each item, not {mask.dtype}")
    if mask.shape != (n,):
        raise ValueError(f"{name} must have the shape ({n},), one entry for each item, not {mask.shape}")
    return mask


def _check_scores(scores):
    scores = np.asarray(scores)
    if scores.size == 0:
        scores = scores.astype(float)
    if scores.ndim != 1:
        raise ValueError(f"scores must be one row of numbers, not an array of shape {scores.shape}")
    if scores.dtype.kind not in "iuf":
        raise TypeError(f"scores must be real numbers, not {scores.dtype}")
    return scores


if __name__ == "__main__":
    from toy import DOCUMENTS

    cosines = [0.96, 0.8, 0.0, 0.6]
    for rank, position in enumerate(top_k(cosines, 3), start=1):
        print(f"rank {rank}: score {cosines[position]:.2f}  {DOCUMENTS[position]!r}")
    print("of equal scores [1, 2, 2, 1] the lower position first:", top_k([1, 2, 2, 1], 4).tolist())
    print("with document 0 forbidden:", top_k(cosines, 3, allowed=np.array([False, True, True, True])).tolist())
