"""Second half of the lesson on cosine search: exact, and the same whatever stands around."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import cosine
from toy import QUERY_VECTOR, VECTORS

FEW = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, 3.0, 1e-3])      # few values: duplicates and exact ties everywhere


def unit(rows):
    rows = np.asarray(rows, np.float64)
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def coarse(rows):
    return (np.round(rows.astype(np.float64) * 2.0 ** 40) / 2.0 ** 40).astype(np.float32)


def random_units(n, dim, seed=0):
    return unit(np.random.default_rng(seed).standard_normal((n, dim)))


@st.composite
def searches(draw, queries=1):
    """(queries [queries, dim], vectors [n, dim]) with copies, near-copies (a float or two apart) and zeros among them.

    Numbers are multiples of 2^-40, so that sums are far from the one case that exact_scores does not get right to the
    last bit: hypothesis does find the middle between two float64, plus 1e-45.
    """
    dim = draw(st.integers(1, 12))
    row = st.one_of(st.lists(FEW, min_size=dim, max_size=dim),
                    st.lists(st.floats(-1, 1, width=32), min_size=dim, max_size=dim))
    rows = coarse(unit(np.array(draw(st.lists(row, min_size=1, max_size=12)), np.float64).reshape(-1, dim)))
    picks = draw(st.lists(st.tuples(st.integers(0, len(rows) - 1), st.integers(-2, 2), st.integers(0, dim - 1)),
                          max_size=25))
    copies = rows[[pick for pick, _, _ in picks]].reshape(-1, dim)
    for copy, (_, steps, place) in zip(copies, picks):
        for _ in range(abs(steps)):
            if copy.any():                           # a step away from 0 would be a vector of no length
                copy[place] = np.nextafter(copy[place], np.float32(np.sign(steps)))
    query = coarse(unit(np.array([draw(row) for _ in range(queries)], np.float64).reshape(-1, dim)))
    return query, np.concatenate([rows, coarse(copies)])


def masks(n):
    return st.one_of(st.none(), st.lists(st.booleans(), min_size=n, max_size=n))


def as_lists(found):
    return found[0].tolist(), found[1].tolist()


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_hand_example():
    positions, scores = cosine.cosine_top_k(QUERY_VECTOR, VECTORS, 4)
    assert positions.tolist() == [0, 1, 3, 2]
    assert scores == approx([0.6 * 0.8 + 0.8 * 0.6, 0.8 * 1, 0.6 * 1, 0.6 * -0.8 + 0.8 * 0.6], abs=1e-7)
    assert positions.dtype == np.int64 and scores.dtype == np.float64


def test_mask_comes_before_k():
    assert cosine.cosine_top_k(QUERY_VECTOR, VECTORS, 2, [False, True, False, True])[0].tolist() == [1, 3]


def test_many_questions_give_a_row_each():
    positions, scores = cosine.cosine_top_k([QUERY_VECTOR, (1.0, 0.0)], VECTORS, 2)
    assert positions.tolist() == [[0, 1], [3, 0]] and scores.shape == (2, 2)


def test_a_zero_row_scores_0_and_stands_between():
    positions, scores = cosine.cosine_top_k((1.0, 0.0), [(-1, 0), (0, 0), (1, 0)], 3)
    assert positions.tolist() == [2, 1, 0] and scores.tolist() == [1, 0, -1]


def test_a_zero_question_finds_the_first_rows_at_0():
    positions, scores = cosine.cosine_top_k((0.0, 0.0), VECTORS, 2)
    assert positions.tolist() == [0, 1] and scores.tolist() == [0, 0]


def test_more_than_there_are_and_none_at_all():
    assert cosine.cosine_top_k(QUERY_VECTOR, VECTORS, 9)[0].tolist() == [0, 1, 3, 2]
    assert [len(part) for part in cosine.cosine_top_k(QUERY_VECTOR, VECTORS, 0)] == [0, 0]
    assert [len(part) for part in cosine.cosine_top_k(QUERY_VECTOR, [], 3)] == [0, 0]
    assert [len(part) for part in cosine.cosine_top_k(QUERY_VECTOR, np.empty((0, 2)), 3)] == [0, 0]
    assert [len(part) for part in cosine.cosine_top_k(QUERY_VECTOR, VECTORS, 3, [False] * 4)] == [0, 0]
    assert cosine.cosine_top_k(np.empty((0, 2)), VECTORS, 3)[0].shape == (0, 3)
    assert cosine.cosine_top_k([QUERY_VECTOR] * 2, [], 3)[1].shape == (2, 0)


def test_definition_by_hand():
    assert cosine.cosine_by_definition((1, 0), [(0, 1), (1, 0), (0, 0)], 2) == ([1, 0], [1, 0])
    assert cosine.cosine_by_definition((1, 0), [(0, 1), (1, 0), (0, 0)], 2, [True, False, True]) == ([0, 2], [0, 0])


# -- Properties --------------------------------------------------------------------------------------------------------


@given(searches(), st.integers(0, 40), st.data())
def test_equals_the_definition_in_every_bit(search, k, data):
    [query], vectors = search
    allowed = data.draw(masks(len(vectors)))
    found = cosine.cosine_top_k(query, vectors, k, allowed)
    assert as_lists(found) == cosine.cosine_by_definition(query, vectors, k, allowed)


@given(searches(), st.integers(0, 40))
def test_top_k_is_a_prefix_of_top_k_plus_1(search, k):
    [query], vectors = search
    fewer, more = (as_lists(cosine.cosine_top_k(query, vectors, each)) for each in (k, k + 1))
    assert fewer == (more[0][:k], more[1][:k])


@given(searches(queries=5), st.integers(0, 12), st.data())
def test_many_questions_equal_single_ones_in_every_bit(search, k, data):
    queries, vectors = search
    allowed = data.draw(masks(len(vectors)))
    positions, scores = cosine.cosine_top_k(queries, vectors, k, allowed)
    for query, *found in zip(queries, positions.tolist(), scores.tolist()):
        assert tuple(found) == as_lists(cosine.cosine_top_k(query, vectors, k, allowed))


@given(searches(), st.integers(1, 12), st.data())
def test_forbidden_rows_change_nothing_in_any_bit(search, k, data):
    [query], vectors = search
    allowed = np.array(data.draw(st.lists(st.booleans(), min_size=len(vectors), max_size=len(vectors))))
    alone = cosine.cosine_top_k(query, vectors[allowed], k)
    spoiled = vectors.copy()
    spoiled[~allowed] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf, 3e38, 7.0, 0.0]))
    positions, scores = cosine.cosine_top_k(query, spoiled, k, allowed)
    assert positions.tolist() == np.flatnonzero(allowed)[alone[0]].tolist()
    assert scores.tolist() == alone[1].tolist()


@given(searches(), st.data())
def test_rows_that_are_added_change_no_bit_of_the_others(search, data):
    [query], vectors = search
    n_before = data.draw(st.integers(0, len(vectors)))
    before = dict(zip(*as_lists(cosine.cosine_top_k(query, vectors[:n_before], n_before))))
    after = dict(zip(*as_lists(cosine.cosine_top_k(query, vectors, len(vectors)))))
    assert before == {position: score for position, score in after.items() if position < n_before}


def test_large_batches_grown_indexes_and_masks_agree_in_every_bit():
    vectors = random_units(3000, 384)
    vectors[1500:1600] = vectors[:100]                                # duplicates
    vectors[1600:1700] = np.nextafter(vectors[:100], np.float32(1))   # near-duplicates
    queries = unit(vectors[:8] + 0.3 * random_units(8, 384, seed=1))
    positions, scores = cosine.cosine_top_k(queries, vectors, 20)
    for query, *found in zip(queries, positions.tolist(), scores.tolist()):
        assert tuple(found) == cosine.cosine_by_definition(query, vectors, 20)
        assert tuple(found) == as_lists(cosine.cosine_top_k(query, vectors, 20))
        larger = np.concatenate([vectors, vectors[:777]])
        assert tuple(found) == as_lists(cosine.cosine_top_k(query, larger, 20, np.arange(3777) < 3000))
        larger[3000:] = -query                                        # what was added is far away
        assert tuple(found) == as_lists(cosine.cosine_top_k(query, larger, 20))


def test_blocks_do_not_matter(monkeypatch):
    queries, vectors = random_units(7, 16), np.concatenate([random_units(50, 16, seed=1)] * 2)
    whole = cosine.cosine_top_k(queries, vectors, 60)
    zero = cosine.cosine_top_k(np.zeros(16), vectors, 60)
    monkeypatch.setattr(cosine, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(cosine, "SCORES_AT_ONCE", 250)
    assert as_lists(cosine.cosine_top_k(queries, vectors, 60)) == as_lists(whole)
    assert as_lists(cosine.cosine_top_k(np.zeros(16), vectors, 60)) == as_lists(zero)


@pytest.mark.parametrize("form", [
    list, lambda rows: rows.tolist(), np.asfortranarray, lambda rows: np.repeat(rows, 2, axis=0)[::2],
    lambda rows: rows.astype(np.float64), lambda rows: rows[:, ::-1].copy()[:, ::-1]])
def test_any_form_of_the_same_numbers_gives_the_same_bits(form):
    queries, vectors = random_units(3, 33), random_units(200, 33, seed=1)
    expected = as_lists(cosine.cosine_top_k(queries, vectors, 9))
    assert as_lists(cosine.cosine_top_k(form(queries), form(vectors), 9)) == expected


def test_float16_rows_are_used_as_they_are():
    query, vectors = random_units(1, 384)[0], random_units(300, 384, seed=1).astype(np.float16)
    found = cosine.cosine_top_k(query, vectors, 5)
    assert as_lists(found) == cosine.cosine_by_definition(query, vectors.astype(np.float32), 5)


def test_inputs_are_left_alone():
    queries, vectors = random_units(3, 8), random_units(9, 8, seed=1)
    copies = queries.copy(), vectors.copy()
    cosine.cosine_top_k(queries, vectors, 4, np.ones(9, bool))
    assert (queries == copies[0]).all() and (vectors == copies[1]).all()


# -- The bound ---------------------------------------------------------------------------------------------------------


@given(searches())
def test_float32_products_stay_within_the_bound(search):
    [query], vectors = search
    rough = (vectors @ query).astype(np.float64)
    exact = [math.fsum(float(q) * float(v) for q, v in zip(query, row)) for row in vectors]
    assert (abs(rough - exact) <= cosine.rounding_error(len(query), np.linalg.norm(query.astype(np.float64)))).all()


def test_twice_the_error_is_within_reach():
    # the best may really be 0.5 - 0.01, the second 0.481 + 0.01, but the third at most 0.479 + 0.01
    rough = np.array([0.479, 0.5, 0.481], np.float32)
    assert cosine._within_reach(rough, 1, error=0.01).tolist() == [1, 2]


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=200), st.data())
def test_kth_best_is_the_kth_of_all(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    assert cosine._kth_best(np.array(scores, np.float32), k) == sorted(scores, reverse=True)[k - 1]


def test_what_exceeds_1_ties_at_1_however_much_its_length_is_off():
    assert cosine.cosine_top_k((1, 0), [(1, 0), (1.0005, 0)], 1)[0].tolist() == [0]
    assert cosine.cosine_top_k((1, 0), [(-1.0005, 0), (-1, 0)], 1)[0].tolist() == [0]
    assert cosine.cosine_top_k((1, 0), [(-1, 0), (-1.0005, 0), (0, 1), (-1, 0)], 3)[0].tolist() == [2, 0, 1]


def test_the_bound_by_hand():
    assert cosine.rounding_error(4, 1, 1) == 4 * 2**-24 + 4 * 2**-126


def test_exact_scores_do_not_depend_on_the_order_of_the_numbers():
    query, rows = random_units(1, 384)[0].astype(np.float64), random_units(500, 384, seed=1).astype(np.float64)
    order = np.random.default_rng(0).permutation(384)
    exact = cosine.exact_scores(query, rows)
    assert (cosine.exact_scores(query[order], rows[:, order].copy()) == exact).all()
    assert exact.tolist() == [math.fsum(row) for row in (rows * query).tolist()]
    assert ((rows * query).sum(axis=1) != exact).any()                # a plain float64 sum would not do


# -- A second oracle ---------------------------------------------------------------------------------------------------


def test_agrees_with_semantic_search():
    torch = pytest.importorskip("torch")
    from sentence_transformers.util import semantic_search

    queries, vectors = random_units(20, 64), random_units(500, 64, seed=1)
    positions, scores = cosine.cosine_top_k(queries, vectors, 10)
    theirs = semantic_search(torch.tensor(queries), torch.tensor(vectors), top_k=10)
    for found, best, hits in zip(positions, scores, theirs):
        assert found.tolist() == [hit["corpus_id"] for hit in hits]
        assert best == approx([hit["score"] for hit in hits], abs=1e-6)


# -- Planted bugs ------------------------------------------------------------------------------------------------------


def near_ties():
    """A question and 200 rows whose exact cosines, all about 0.7, differ by about as much as float32 sums err."""
    query, other = random_units(2, 384)
    steps = np.random.default_rng(2).integers(-60, 61, (200, 384)) * 2.0 ** -28
    return query, (np.tile(unit(query + other), (200, 1)) + steps).astype(np.float32)


def above_1():
    """A question and a row that is longer than 1 by rounding: their product is too, and ties with an earlier row's."""
    longer = np.array([np.nextafter(np.float32(1), np.float32(2)), 0], np.float32)
    return longer, np.array([[1, 0], longer])


@pytest.mark.parametrize("search", [near_ties, above_1])
def test_the_hard_cases_below_come_out_right(search):
    query, vectors = search()
    assert as_lists(cosine.cosine_top_k(query, vectors, 1)) == cosine.cosine_by_definition(query, vectors, 1)
    assert as_lists(cosine.cosine_top_k(query, vectors, 5)) == cosine.cosine_by_definition(query, vectors, 5)


@pytest.mark.parametrize("search, module, name, planted", [
    (near_ties, cosine, "rounding_error", lambda dim, length: 0.0),
    (near_ties, cosine, "exact_scores", lambda query, rows: (rows.astype("f") @ query.astype("f")).astype(float)),
    (above_1, np, "clip", lambda numbers, low, high, out=None: numbers),
], ids=["no margin", "no rescoring", "no clipping"])
def test_planted_bugs_are_caught(search, module, name, planted, monkeypatch):
    query, vectors = search()
    expected = [cosine.cosine_by_definition(query, vectors, k) for k in range(1, 20)]
    monkeypatch.setattr(module, name, planted)
    assert [as_lists(cosine.cosine_top_k(query, vectors, k)) for k in range(1, 20)] != expected


# -- Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k, error", [(-1, ValueError), (1.5, TypeError), (None, TypeError), (True, TypeError)])
def test_k_that_is_no_count(k, error):
    with pytest.raises(error, match="k must be"):
        cosine.cosine_top_k(QUERY_VECTOR, VECTORS, k)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("query", [QUERY_VECTOR, (0.0, 1.0), (0.0, 0.0)])
def test_nan_and_infinity_in_an_allowed_row(bad, query):
    vectors = [*VECTORS, (bad, 0.0)]
    for form in (np.array, np.asfortranarray):
        with pytest.raises(ValueError, match="NaN, infinity"):
            cosine.cosine_top_k(query, form(vectors), 1)
        with pytest.raises(ValueError, match="NaN, infinity"):
            cosine.cosine_top_k([query] * 3, form(vectors), 1)
    assert cosine.cosine_top_k(query, vectors, 1, [True] * 4 + [False])[0].tolist() in ([0], [1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_nan_and_infinity_in_a_question(bad):
    with pytest.raises(ValueError, match="query_vector holds NaN"):
        cosine.cosine_top_k([bad, 0.0], VECTORS, 1)
    with pytest.raises(ValueError, match="query_vector holds NaN"):
        cosine.cosine_top_k([QUERY_VECTOR, (bad, 0.0)], [], 1)


@pytest.mark.parametrize("query", [(3.0, 4.0), (0.6, 0.6), (1e-30, 0.0), [(1.0, 0.0), (2.0, 0.0)]])
def test_a_question_that_was_not_normalised(query):
    with pytest.raises(ValueError, match="of query_vector has the length .* normalise first"):
        cosine.cosine_top_k(query, VECTORS, 1)


def test_a_row_that_was_not_normalised():
    with pytest.raises(ValueError, match="row 4 of vectors has the length 5, not 1: normalise first"):
        cosine.cosine_top_k(QUERY_VECTOR, [*VECTORS, (3.0, 4.0)], 2)
    with pytest.raises(ValueError, match="row 2 of vectors"):
        cosine.cosine_top_k(QUERY_VECTOR, [*VECTORS[:2], (1e-30, 0.0)], 3, [True, False, True])
    assert cosine.cosine_top_k(QUERY_VECTOR, [*VECTORS, (3.0, 4.0)], 1, [True] * 4 + [False])[0].tolist() == [0]


@pytest.mark.parametrize("query, vectors, message", [
    ((0.6, 0.8, 0.0), VECTORS, "3 numbers, but vectors have 2"), (1.0, VECTORS, "query_vector must be"),
    ([[[1.0, 0.0]]], VECTORS, "query_vector must be"), (QUERY_VECTOR, (0.6, 0.8), "one row for each chunk"),
    (QUERY_VECTOR, [[(0.6, 0.8)]], "one row for each chunk")])
def test_shapes_that_do_not_fit(query, vectors, message):
    with pytest.raises(ValueError, match=message):
        cosine.cosine_top_k(query, vectors, 1)


@pytest.mark.parametrize("allowed, error", [([0, 1], TypeError), ([True], ValueError), ([[True] * 4], ValueError)])
def test_a_mask_that_is_no_mask(allowed, error):
    with pytest.raises(error, match="allowed must"):
        cosine.cosine_top_k(QUERY_VECTOR, VECTORS, 1, allowed)


@pytest.mark.parametrize("vectors", [[("a", "b")], [(1j, 0)], [(True, False)], [(None, None)]])
def test_vectors_that_are_no_numbers(vectors):
    with pytest.raises(TypeError, match="vectors must be real numbers"):
        cosine.cosine_top_k(QUERY_VECTOR, vectors, 1)
