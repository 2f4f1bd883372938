"""Second half of the lesson on fusion: the paper's sum by hand, what must hold for any lists, and the known faults."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import fusion
from toy import BM25_RANKING, DENSE_RANKING

RANKING = st.lists(st.integers(0, 30), unique=True, max_size=12)
RANKINGS = st.lists(RANKING, min_size=1, max_size=5)
K = st.integers(0, 1000)
SCORES = st.dictionaries(st.integers(0, 30), st.floats(-1e6, 1e6), max_size=12)


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_rrf_example_of_the_guide():
    fused = fusion.rrf([["c7", "c2", "c9", "c4"], ["c2", "c5", "c7", "c1"]])
    assert [item for item, _ in fused] == ["c2", "c7", "c5", "c9", "c1", "c4"]
    assert [score for _, score in fused] == approx([1/62 + 1/61, 1/61 + 1/63, 1/62, 1/63, 1/64, 1/64], abs=1e-15)
    assert [round(score, 4) for _, score in fused] == [0.0325, 0.0323, 0.0161, 0.0159, 0.0156, 0.0156]


def test_toy_lists_fused_put_the_answer_first_and_the_helper_second():
    fused = fusion.rrf([BM25_RANKING, DENSE_RANKING])
    assert [item for item, _ in fused] == [1, 0, 3, 2]
    assert dict(fused)[1] == approx(1/61 + 1/62)


def test_weights_multiply_the_terms():
    assert fusion.rrf([[1, 2], [2, 1]], k=2, weights=[3, 1]) == [(1, approx(3/3 + 1/4)), (2, approx(3/4 + 1/3))]


def test_min_max_by_hand():
    assert fusion.min_max({"a": 9.0, "b": 3.0, "c": 5.0}) == {"a": 1.0, "b": 0.0, "c": approx((5 - 3) / (9 - 3))}
    assert fusion.min_max({"a": -2.0, "b": -4.0, "c": -3.0}) == {"a": 1.0, "b": 0.0, "c": 0.5}


def test_weighted_sum_by_hand():
    fused = fusion.weighted_sum([{"a": 1.0, "b": 0.25}, {"b": 1.0, "c": 0.5}], [0.7, 0.3])
    assert fused == [("a", approx(0.7)), ("b", approx(0.7 * 0.25 + 0.3)), ("c", approx(0.15))]
    assert fusion.weighted_sum([{"a": 1}, {"a": 2}]) == [("a", 3.0)]


def test_ties_go_to_the_smaller_item():
    assert fusion.rrf([["b"], ["a"]]) == [("a", approx(1/61)), ("b", approx(1/61))]
    assert [item for item, _ in fusion.weighted_sum([{"z": 1, "y": 1}, {"x": 1}])] == ["x", "y", "z"]


def test_top_n_cuts_after_the_sum():
    lists = [[1, 2, 3], [3, 2, 1]]
    for n in range(5):
        assert fusion.rrf(lists, top_n=n) == fusion.rrf(lists)[:n]
        assert fusion.weighted_sum([{1: 1, 2: 3}], top_n=n) == [(2, 3.0), (1, 1.0)][:n]


# -- Properties --------------------------------------------------------------------------------------------------------


@given(RANKINGS, K, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_does_not_matter_even_in_the_last_bit(rankings, k, random):
    weights = [random.random() + 0.01 for _ in rankings]
    shuffled = random.sample(list(zip(rankings, weights)), len(rankings))
    again = fusion.rrf([items for items, _ in shuffled], k, [weight for _, weight in shuffled])
    assert again == fusion.rrf(rankings, k, weights)


@given(RANKINGS, K, st.data())
def test_moving_up_in_one_list_never_lowers_an_items_own_score(rankings, k, data):
    which = data.draw(st.integers(0, len(rankings) - 1))
    items = rankings[which]
    if len(items) < 2:
        return
    old = data.draw(st.integers(1, len(items) - 1))
    new = data.draw(st.integers(0, old - 1))
    moved = items[:new] + [items[old]] + items[new:old] + items[old + 1:]
    before = dict(fusion.rrf(rankings, k))[items[old]]
    after = dict(fusion.rrf(rankings[:which] + [moved] + rankings[which + 1:], k))[items[old]]
    assert after >= before


@given(RANKINGS, K)
def test_an_item_first_in_every_list_comes_first(rankings, k):
    rankings = [[99] + items for items in rankings]
    assert fusion.rrf(rankings, k)[0][0] == 99


@given(RANKING, K, st.integers(1, 5))
def test_a_list_fused_with_itself_keeps_its_order(items, k, times):
    assert [item for item, _ in fusion.rrf([items] * times, k)] == items


@given(RANKINGS, K)
def test_every_item_once_with_the_paper_sum(rankings, k):
    fused = fusion.rrf(rankings, k)
    assert sorted(item for item, _ in fused) == sorted(set().union(*rankings))
    for item, score in fused:
        assert score == approx(sum(1 / (k + items.index(item) + 1) for items in rankings if item in items), abs=1e-12)


@given(RANKINGS)
def test_a_list_of_weight_0_is_as_if_absent(rankings):
    assert fusion.rrf(rankings + [[77, 78]], weights=[1] * len(rankings) + [0]) == fusion.rrf(rankings)


@given(SCORES)
def test_min_max_lies_in_0_1_and_keeps_the_order(scores):
    stretched = fusion.min_max(scores)
    assert stretched.keys() == scores.keys() and all(0 <= value <= 1 for value in stretched.values())
    assert all(stretched[a] <= stretched[b] for a in scores for b in scores if scores[a] <= scores[b])
    assert not scores or max(stretched.values()) == 1


@given(SCORES, st.sampled_from([0.5, 2.0, 1024.0]))
def test_min_max_does_not_depend_on_the_scale(scores, factor):
    scaled = fusion.min_max({item: factor * score for item, score in scores.items()})
    assert scaled == approx(fusion.min_max(scores), abs=1e-12)


@given(st.lists(SCORES, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_the_maps_does_not_matter(maps, random):
    assert fusion.weighted_sum(random.sample(maps, len(maps))) == fusion.weighted_sum(maps)


# False, so not tested: "an item ranked higher in every list it is in comes first" (being in more lists can outweigh it),
# and "RRF of two lists is at least as good as the better one".


# -- Known faults ------------------------------------------------------------------------------------------------------


def test_single_hit_is_worth_1_not_0():
    assert fusion.min_max({"d1": 5}) == {"d1": 1.0}
    assert fusion.min_max({"d1": 3.0, "d2": 3.0}) == {"d1": 1.0, "d2": 1.0}
    assert fusion.min_max({}) == {}


def test_an_absent_item_gets_nothing_rather_than_the_lists_length_as_rank():
    assert dict(fusion.rrf([[1, 2], [3]]))[3] == approx(1/61)


def test_mean_is_not_taken_over_the_lists_that_hold_the_item_only():
    fused = dict(fusion.rrf([["A", "B"], ["B"], ["x", "B"]], k=0))    # A first in 1 of 3 lists; B 2nd, 1st, 2nd
    assert fused["A"] == approx(1) and fused["B"] == approx(1/2 + 1 + 1/2)


def test_a_duplicate_in_one_list_counts_once_at_its_first_place():
    assert fusion.rrf([["a", "a", "b"]]) == [("a", approx(1/61)), ("b", approx(1/63))]


def test_ids_of_different_types_are_refused_not_kept_apart():
    with pytest.raises(TypeError, match="same id"):
        fusion.rrf([["v_0", "v_4"], [4, 0]])


def test_tied_items_in_a_list_keep_the_rank_the_list_gives_them():
    assert fusion.rrf([["x", "y"], ["x", "y"]]) == [("x", approx(2/61)), ("y", approx(2/62))]


@pytest.mark.parametrize("ranking", ["c7", {"low": 1.0, "high": 9.0}, {"a", "b"}])
def test_something_without_an_order_is_no_ranking(ranking):
    with pytest.raises(TypeError, match="best first"):
        fusion.rrf([ranking])


def test_no_lists_and_empty_lists_give_nothing():
    assert fusion.rrf([]) == fusion.rrf([[], []]) == fusion.weighted_sum([]) == fusion.weighted_sum([{}]) == []


def test_any_iterable_is_a_list_of_rankings():
    assert fusion.rrf(iter([iter([1, 2]), (2, 1)])) == fusion.rrf([[1, 2], [2, 1]])


@pytest.mark.parametrize("k", [-1, -0.5, math.nan, math.inf])
def test_k_below_0_or_no_number(k):
    with pytest.raises(ValueError, match="k must be"):
        fusion.rrf([[1]], k=k)


@pytest.mark.parametrize("weights, message", [([1], "2 lists need 2 weights"), ([1, -1], ">= 0"), ([0, 0], "all weights"),
                                              ([math.nan, 1], ">= 0"), ([math.inf, 1], "finite")])
def test_weights_that_do_not_fit(weights, message):
    with pytest.raises(ValueError, match=message):
        fusion.rrf([[1], [2]], weights=weights)
    with pytest.raises(ValueError, match=message):
        fusion.weighted_sum([{1: 1}, {2: 1}], weights)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinite_scores(bad):
    with pytest.raises(ValueError, match="NaN or infinite"):
        fusion.min_max({"a": 1.0, "b": bad})
    with pytest.raises(ValueError, match="NaN or infinite"):
        fusion.weighted_sum([{"a": bad}])


def test_exactly_equal_sums_tie_although_their_terms_are_rounded():
    for first, second in (("a", "z"), ("z", "a")):                     # 1/66 + 1/99 == 1/72 + 1/88
        lists = [[f"{number}x{i}" for i in range(40)] for number in range(2)]
        lists[0][5], lists[1][38], lists[0][11], lists[1][27] = first, first, second, second
        fused = fusion.rrf(lists)
        assert [item for item, _ in fused if item in "az"] == ["a", "z"] and dict(fused)["a"] == dict(fused)["z"]


def test_sums_too_great_for_a_float():
    for maps, weights in (([{1: 1e308}], [100]), ([{1: 1e308}, {1: 1e308}], None), ([{1: 1e308}, {1: -1e308}], [100, 100])):
        with pytest.raises(ValueError, match="too great"):
            fusion.weighted_sum(maps, weights)
    with pytest.raises(ValueError, match="too great"):
        fusion.rrf([[1], [1]], k=0, weights=[1.7e308] * 2)


@pytest.mark.parametrize("weights", [{0: 0.3, 1: 0.7}, "12"])
def test_weights_that_are_no_list(weights):
    with pytest.raises(TypeError, match="weights must be"):
        fusion.rrf([[1], [2]], weights=weights)


def test_scores_too_far_apart():
    with pytest.raises(ValueError, match="too far apart"):
        fusion.min_max({"a": 1.7e308, "b": -1.7e308})


def test_scores_that_are_no_dict_and_top_n_below_0():
    with pytest.raises(TypeError, match="dict"):
        fusion.min_max([("a", 1.0)])
    with pytest.raises(ValueError, match="top_n"):
        fusion.rrf([[1]], top_n=-1)


# -- Faults that only mutation showed (make mutants) -------------------------------------------------------------------


def test_rrf_term_with_its_own_k():
    assert fusion.rrf_term(1) == 1 / (60 + 1)


def test_a_map_of_weight_0_is_as_if_absent():
    assert fusion.weighted_sum([{"a": 1}, {"b": 1}], weights=[1, 0]) == [("a", 1)]


def test_the_error_names_top_n():
    with pytest.raises(ValueError, match="^top_n must"):
        fusion.weighted_sum([{"a": 1}], top_n=-1)


# survives in rrf: `default=1`: without lists no term is used
# survives in rrf: `longest + 2`: each list takes as many terms as it has places, so one more is not used
