"""Second half of the lesson on rankings: one order, the same for every k, under every mask."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranking

# few distinct values, so that ties are everywhere
SCORES = st.lists(st.one_of(st.integers(-3, 3).map(float), st.floats(-1e300, 1e300)), max_size=40)


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_hand_example():
    assert ranking.top_k([0.96, 0.8, 0.0, 0.6], 3).tolist() == [0, 1, 3]


def test_ties_go_to_the_lower_position():
    assert ranking.top_k([0.9] * 6, 6).tolist() == [0, 1, 2, 3, 4, 5]
    assert ranking.top_k([1, 2, 1, 2, 1], 4).tolist() == [1, 3, 0, 2]


def test_ties_at_the_edge_of_k_go_to_the_lower_position():
    assert ranking.top_k([5, 1, 1, 1, 1, 1], 2).tolist() == [0, 1]


def test_mask_comes_before_k():
    assert ranking.top_k([3, 2, 1, 0], 2, allowed=np.array([False, True, False, True])).tolist() == [1, 3]


def test_a_masked_score_is_never_looked_at():
    assert ranking.top_k([np.nan, np.inf, 1.0], 3, allowed=[False, False, True]).tolist() == [2]


def test_nan_is_refused_wherever_it_stands():
    for scores in ([np.nan, 1.0, 2.0], [1.0, np.nan, 2.0], [1.0, 2.0, np.nan]):
        with pytest.raises(ValueError, match="NaN"):
            ranking.top_k(scores, 1)


def test_definition_by_hand():
    assert ranking.top_k_by_definition([1, 2, 1], 2) == [1, 0]
    assert ranking.top_k_by_definition([1, 2, 1], 2, [True, False, True]) == [0, 2]


# -- Properties --------------------------------------------------------------------------------------------------------


@given(SCORES, st.integers(0, 45), st.data())
def test_equals_the_definition_under_a_mask(scores, k, data):
    allowed = data.draw(st.one_of(st.none(), st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    assert ranking.top_k(scores, k, allowed).tolist() == ranking.top_k_by_definition(scores, k, allowed)


@given(SCORES, st.integers(0, 45))
def test_equals_a_stable_sort(scores, k):
    assert ranking.top_k(scores, k).tolist() == np.argsort(-np.array(scores), kind="stable").tolist()[:k]


@given(SCORES, st.integers(0, 40))
def test_top_k_is_a_prefix_of_top_k_plus_1(scores, k):
    assert ranking.top_k(scores, k).tolist() == ranking.top_k(scores, k + 1).tolist()[:k]


@given(SCORES, st.data())
def test_only_allowed_positions_and_all_of_them(scores, data):
    allowed = data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    assert sorted(ranking.top_k(scores, len(scores), allowed)) == [i for i, yes in enumerate(allowed) if yes]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int64", "uint64"])
def test_unsigned_and_smallest_integers_do_not_wrap_round(dtype):
    limits = np.finfo(dtype) if dtype.startswith("f") else np.iinfo(dtype)
    scores = np.array([limits.min, 1, limits.max, 1], dtype)
    assert ranking.top_k(scores, 3).tolist() == [2, 1, 3]


def test_whole_numbers_that_no_float_tells_apart():
    assert ranking.top_k(np.array([2**53, 2**53 + 1]), 1).tolist() == [1]


# -- Bad input ---------------------------------------------------------------------------------------------------------


def test_k_above_n_returns_n_and_k_0_nothing():
    assert ranking.top_k([1.0], 20).tolist() == [0]
    assert ranking.top_k([1.0, 2.0], 0).tolist() == []
    assert ranking.top_k([], 5).tolist() == [] and ranking.top_k([], 5, allowed=[]).tolist() == []


@pytest.mark.parametrize("k, error", [(-1, ValueError), (1.5, TypeError), ("3", TypeError), (None, TypeError),
                                      (True, TypeError)])
def test_k_that_is_no_count(k, error):
    with pytest.raises(error, match="k must be"):
        ranking.top_k([1.0, 2.0], k)


def test_k_may_be_a_numpy_integer():
    assert ranking.top_k([1.0, 2.0], np.int32(1)).tolist() == [1]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_have_no_place(bad):
    with pytest.raises(ValueError, match="NaN or infinite"):
        ranking.top_k([1.0, bad], 1)


@pytest.mark.parametrize("scores, error", [([[1.0, 2.0]], ValueError), (3.0, ValueError), (["a"], TypeError),
                                           ([1j], TypeError), ([True], TypeError)])
def test_scores_that_are_no_row_of_numbers(scores, error):
    with pytest.raises(error, match="scores must be"):
        ranking.top_k(scores, 1)


@pytest.mark.parametrize("allowed, error", [([0, 1], TypeError), ([1, 0, 1], TypeError), ([True], ValueError),
                                            ([[True, False]], ValueError)])
def test_a_mask_that_is_no_mask(allowed, error):
    with pytest.raises(error, match="allowed must"):
        ranking.top_k([1.0, 2.0], 1, allowed)


# -- Faults that only mutation showed (make mutants) -------------------------------------------------------------------


def test_long_doubles_are_not_rounded():
    assert ranking.top_k(np.array([1, 1 + np.finfo(np.longdouble).eps], np.longdouble), 2).tolist() == [1, 0]


# Mutants that survive, since no input tells them apart.
# survives in top_k: `k <= len(scores)`: for k = n the k-th best is the worst, so that all are kept either way
# survives in top_k: `k - 2)[k - 1]`: a place beyond the cut holds the k-th best or a worse one: a few more are sorted
# survives in top_k: `kind="STABLE"`: NumPy reads the first letter, in either case
# survives in _check_scores: `astype(None)`: NumPy's default is float
# survives in _check_scores: `"XXiufXX"`: no dtype is of kind X
