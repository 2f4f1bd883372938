"""Beside step 12 — Which vectors are nearest to the question's? Exactly. What index.py searches with.

Vectors have length 1, so the cosine of two is the sum of the products of their numbers: one matrix-vector product gives
a question's cosine with every chunk. That product is as fast as memory can be read, but float32 rounds, and rounds
differently for one question than for many, or when a chunk is added. Near-ties would change places. So the product only
selects, and everything that its rounding might have kept out of the k best is scored again, exactly.

    query_vector  the question's vector [dim], of length 1              toy: (0.6, 0.8)
    vectors       a row for each chunk [n, dim], of length 1 or 0       toy: four rows of two numbers
    score         the cosine, -1 to 1; 0 for a row of zeros             toy: [0.96, 0.8, 0.0, 0.6]
    allowed       a mask: True where a chunk may be found
    UNIT_ROUNDOFF 2^-24: float32 rounds a number by at most this share of it

Not here: chunks, words and rights, which index.py puts beside the vectors; approximate search.
"""

import math

import numpy as np

import ranking

UNIT_ROUNDOFF = 2.0 ** -24
SMALLEST_NORMAL = 2.0 ** -126           # of float32; products below it may be rounded to 0
LENGTH_TOLERANCE = 1e-3                 # how far from 1 a length may be: rows kept as float16 are off by up to 2^-11
ROWS_AT_ONCE = 4096                     # rows that are scored again together: 4096 * 384 float64 = 12 MB
SCORES_AT_ONCE = 2 ** 24                # float32 scores that are held together when there are many questions: 64 MB
FEW = 10                                # of less than a tenth of the rows a copy is multiplied instead


def cosine_by_definition(query_vector, vectors, k, allowed=None):
    """The definition, as a loop, for float32 numbers of length 1 (or 0): (positions, scores).

    math.fsum rounds once, at the end: each score is the float64 nearest to the true sum.

    >>> from toy import QUERY_VECTOR, VECTORS
    >>> positions, scores = cosine_by_definition(QUERY_VECTOR, VECTORS, 3)
    >>> positions, [round(score, 6) for score in scores]
    ([0, 1, 3], [0.96, 0.8, 0.6])
    """
    sums = [math.fsum(float(q) * float(v) for q, v in zip(query_vector, row)) for row in vectors]
    scores = [max(-1.0, min(1.0, each)) for each in sums]
    positions = ranking.top_k_by_definition(scores, k, allowed)
    return positions, [scores[position] for position in positions]


def cosine_top_k(query_vector, vectors, k, allowed=None):
    """The k rows of `vectors` with the greatest cosine to `query_vector`, best first: (positions, scores).

    query_vector  one question [dim], or many [m, dim]
    vectors       [n, dim]; whatever is not float32 is rounded to it first
    positions     int64 [min(k, number allowed)], or [m, min(k, number allowed)]; equal scores: the lower position first
    scores        float64, of the same shape

    The result depends on nothing but the question and the allowed rows: not on the other questions, not on the order of
    sums, not on what stands in forbidden rows. Raises ValueError for shapes that do not fit, k < 0, NaN or infinity in
    a question or an allowed row, a question whose length is neither 1 nor 0, and a row like that if it comes near the
    top; TypeError for a mask that is not boolean or vectors that are no numbers.

    >>> from toy import QUERY_VECTOR, VECTORS
    >>> positions, scores = cosine_top_k(QUERY_VECTOR, VECTORS, 3)
    >>> positions.tolist(), scores.round(6).tolist()
    ([0, 1, 3], [0.96, 0.8, 0.6])
    >>> cosine_top_k(QUERY_VECTOR, VECTORS, 3, allowed=[False, True, True, True])[0].tolist()
    [1, 3, 2]
    """
    k = ranking.check_k(k)
    query_vector, vectors = _check_shapes(query_vector, vectors)
    queries = np.atleast_2d(query_vector)                              # [dim] -> [1, dim]
    check_lengths(queries.astype(np.float64), "query_vector", range(len(queries)))
    positions = None if allowed is None else np.flatnonzero(ranking.check_mask(allowed, len(vectors)))
    n_found = min(k, len(vectors) if positions is None else len(positions))
    found, scores = np.empty((len(queries), n_found), np.int64), np.empty((len(queries), n_found))
    for row, (query, rough) in enumerate(_rough_scores(queries, vectors, positions)):
        found[row], scores[row] = _best(query, rough, vectors, k, positions)
    return (found[0], scores[0]) if query_vector.ndim == 1 else (found, scores)


def rounding_error(dim, query_length, row_length=1 + LENGTH_TOLERANCE):
    """By how much at most a float32 sum of `dim` products can miss the cosine, in whatever order it is added.

    formula: rounding_error = dim * 2**-24 * query_length * row_length + dim * 2**-126

    Jeannerod and Rump, "Improved error bounds for inner products in floating-point arithmetic" (SIAM J. Matrix Anal.
    Appl. 34, 2013): the error is at most dim * u * sum(|q_i| * |v_i|), for any order. That sum is at most the product
    of the lengths (Cauchy and Schwarz). The last term is for products too small for float32.
    """
    return dim * UNIT_ROUNDOFF * query_length * row_length + dim * SMALLEST_NORMAL


def exact_scores(query, rows):
    """The cosine of `query` [dim] and each of `rows` [n, dim], all float64 made from float32: float64 [n].

    Each is the float64 nearest to the true sum, as math.fsum's is (unless that lies within 1e-26 of the middle between
    two: then it may be the other one), and depends on its own row alone.
    """
    products = rows * query                                            # exact: 24 bits times 24 bits fit into 53
    # Beside a 6 there is no room for bits below 2^-50. Adding 6 rounds them off, taking it away leaves the high part of
    # a product. High parts are multiples of 2^-50 and add up to less than 8: float64 holds each such sum exactly, in
    # any order. The sum of the low parts is rounded, but far below: by at most dim^2 * 2^-104.
    high = (products + 6.0) - 6.0
    return high.sum(axis=1) + (products - high).sum(axis=1)            # [n, dim] -> [n]


def _rough_scores(queries, vectors, positions):
    """Yield (query [dim], its float32 scores with the rows at `positions`), a block of questions at a time."""
    picked = positions is None
    if not picked and len(positions) * FEW < len(vectors):
        vectors, picked = vectors[positions], True                     # [n, dim] -> [n_allowed, dim]
    step = max(1, SCORES_AT_ONCE // max(1, len(vectors)))
    for start in range(0, len(queries), step):
        block = queries[start:start + step]
        # Unless few are allowed, forbidden rows are multiplied too, which is faster than copying the others. What
        # overflows, or is NaN, is noticed later where it is allowed, and is nobody's business where it is not.
        with np.errstate(all="ignore"):
            rough = block @ vectors.T                                  # [m, dim] @ [dim, n] -> [m, n]
        yield from zip(block, rough if picked else rough.take(positions, axis=1))            # [m, n] -> [m, n_allowed]


def _best(query, rough, vectors, k, positions):
    """The k best of one question, from its rough scores with the rows at `positions`: (positions, exact scores)."""
    # NaN and infinity show in the smallest or the greatest
    if not np.isfinite([rough.min(initial=0), rough.max(initial=0)]).all():
        raise ValueError("an allowed row of vectors holds NaN, infinity, or numbers far too large for a unit vector")
    query = query.astype(np.float64)
    near = _within_reach(rough, k, rounding_error(len(query), math.sqrt(query @ query)))
    if positions is not None:
        near = positions[near]
    scores = np.empty(len(near))
    for start in range(0, len(near), ROWS_AT_ONCE):
        chosen = near[start:start + ROWS_AT_ONCE]
        rows = vectors[chosen].astype(np.float64)                      # [n_chosen, dim]
        check_lengths(rows, "vectors", chosen)
        scores[start:start + ROWS_AT_ONCE] = np.clip(exact_scores(query, rows), -1, 1)
    order = ranking.top_k(scores, k)
    return near[order], scores[order]


def _within_reach(rough, k, error):
    """Positions in `rough` [n] that may be among the k best although each score is off by up to `error`."""
    if k >= len(rough):
        return np.arange(len(rough))
    if k == 0:
        return np.arange(0)
    kth_best = min(float(_kth_best(rough, k)), 1.0)                    # exact scores end at 1: what exceeds it ties
    # subtle: twice the error. The k-th best may look too good by `error`, and one that beats it too bad by `error`.
    reach = kth_best - 2 * error
    if reach <= -1:                                                    # and they end at -1
        return np.arange(len(rough))
    return np.flatnonzero(rough >= np.nextafter(np.float32(reach), np.float32(-2)))    # float32(reach) may be above


def _kth_best(scores, k):
    """The k-th greatest of `scores` [n], 1 <= k <= n.

    Selecting among a million scores takes longer than reading them, so most are ruled out first: cut into 8 k blocks,
    the k-th greatest of the blocks' maxima is reached by k scores at least, and nothing below it can be the k-th best.
    """
    size = len(scores) // (8 * k)
    if size > 1:
        maxima = scores[:8 * k * size].reshape(8 * k, size).max(axis=1)
        scores = scores[scores >= np.partition(maxima, -k)[-k]]
    return np.partition(scores, -k)[-k]


def _check_shapes(query_vector, vectors):
    query_vector, vectors = _as_float32(query_vector, "query_vector"), _as_float32(vectors, "vectors")
    if query_vector.ndim not in (1, 2):
        raise ValueError("query_vector must be one vector [dim] or one row for each question [m, dim], not an array of "
                         f"shape {query_vector.shape}")
    if vectors.shape == (0,):
        vectors = vectors.reshape(0, query_vector.shape[-1])           # an empty list: no rows
    if vectors.ndim != 2:
        raise ValueError(f"vectors must have one row for each chunk [n, dim], not the shape {vectors.shape}")
    if query_vector.shape[-1] != vectors.shape[1]:
        raise ValueError(f"the question's vector has {query_vector.shape[-1]} numbers, but vectors have "
                         f"{vectors.shape[1]}: were they made by the same model?")
    if not np.isfinite(query_vector).all():
        raise ValueError("query_vector holds NaN, infinity, or numbers far too large for a unit vector")
    return query_vector, vectors


def _as_float32(numbers, name):
    numbers = np.asarray(numbers)
    if numbers.size and numbers.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be real numbers, not {numbers.dtype}")
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32, copy=False)


def check_lengths(rows, name, positions):
    """Raise ValueError unless each of `rows` [n, dim] has length 1 or is all zeros; `positions` name them."""
    lengths = np.sqrt((rows * rows).sum(axis=1))                       # [n, dim] -> [n]
    wrong = np.flatnonzero(~(abs(lengths - 1) <= LENGTH_TOLERANCE) & (lengths != 0))           # NaN is wrong, too
    if len(wrong):
        raise ValueError(f"row {positions[wrong[0]]} of {name} has the length {lengths[wrong[0]]:.6g}, not 1: "
                         "normalise first, row / sqrt(sum(row * row))")


if __name__ == "__main__":
    from toy import DOCUMENTS, QUERY_VECTOR, QUESTION, VECTORS

    print(f"{QUESTION!r} is the vector {QUERY_VECTOR}")
    for position, score in zip(*cosine_top_k(QUERY_VECTOR, VECTORS, 3)):
        products = " + ".join(f"{q} * {v}" for q, v in zip(QUERY_VECTOR, VECTORS[position]))
        print(f"{products} = {score:.2f}  {DOCUMENTS[position]!r}")
    print("with document 0 forbidden:", cosine_top_k(QUERY_VECTOR, VECTORS, 3, [False, True, True, True])[0].tolist())

    tiny = 2.0**-24                                                    # half of the least that float32 can add to 1
    rows = np.array([[1, tiny, tiny], [tiny, tiny, 1]])                # the same three numbers
    print("\nwhy not just `vectors @ query`: float32 drops what is too small beside a 1, so order matters:")
    for row, exact in zip(rows, exact_scores(np.ones(3), rows)):
        print(" + ".join("1" if value == 1 else "2**-24" for value in row),
              f"= {sum(np.float32(row)):.8f} from left to right, exactly {exact:.8f}")
