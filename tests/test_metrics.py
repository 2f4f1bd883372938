"""Second half of the lesson on metrics: every value as arithmetic, trec_eval as oracle, what must hold, known faults."""

import math
from math import log2

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given
from hypothesis import strategies as st
from pytest import approx

import metrics
from toy import BM25_RANKING, DENSE_RANKING, GAINS

ITEMS = list(range(12))
RANKING = st.lists(st.sampled_from(ITEMS), unique=True, max_size=12)
RELEVANT = st.sets(st.sampled_from(ITEMS), min_size=1)
GRADED = st.dictionaries(st.sampled_from(ITEMS), st.integers(0, 4), min_size=1).filter(lambda gains: any(gains.values()))
K = st.integers(1, 15)
CUT = [metrics.hit_at_k, metrics.recall_at_k, metrics.precision_at_k]
WHOLE = [metrics.reciprocal_rank, metrics.average_precision]


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_toy_ranking_of_keyword_search():
    assert BM25_RANKING == [1, 3, 0]                       # relevant, not, relevant
    relevant = {0, 1}
    assert [metrics.hit_at_k(BM25_RANKING, relevant, k) for k in (1, 2, 3)] == [1, 1, 1]
    assert [metrics.recall_at_k(BM25_RANKING, relevant, k) for k in (1, 2, 3)] == [1/2, 1/2, 2/2]
    assert [metrics.precision_at_k(BM25_RANKING, relevant, k) for k in (1, 2, 3, 4)] == [1/1, 1/2, 2/3, 2/4]
    assert metrics.reciprocal_rank(BM25_RANKING, relevant) == 1/1
    assert metrics.average_precision(BM25_RANKING, relevant) == (1/1 + 2/3) / 2
    assert metrics.ndcg_at_k(BM25_RANKING, GAINS, 3) == approx((2/log2(2) + 1/log2(4)) / (2/log2(2) + 1/log2(3)))


def test_toy_ranking_of_vector_search():
    assert metrics.ndcg_at_k(DENSE_RANKING, GAINS, 4) == approx((1/log2(2) + 2/log2(3)) / (2/log2(2) + 1/log2(3)))
    assert metrics.ndcg_at_k(DENSE_RANKING, GAINS, 4, gain="exponential") == approx(
        (1/log2(2) + 3/log2(3)) / (3/log2(2) + 1/log2(3)))


def test_dcg_by_hand():
    assert metrics.dcg([3, 0, 2]) == approx(3/log2(2) + 0/log2(3) + 2/log2(4))
    assert metrics.dcg([]) == 0


def test_nothing_relevant_in_the_first_places():
    assert metrics.hit_at_k([5, 6, 1], {1, 2}, 2) == 0
    assert metrics.recall_at_k([5, 6, 1], {1, 2}, 2) == 0
    assert metrics.reciprocal_rank([5, 6, 1], {1, 2}) == 1/3
    assert metrics.reciprocal_rank([5, 6], {1, 2}) == 0
    assert metrics.average_precision([5, 6, 1], {1, 2}) == (1/3) / 2
    assert metrics.ndcg_at_k([5, 6], {1: 3}, 2) == 0


def test_graded_example_with_one_item_not_retrieved():
    gains, ranking = {"a": 3, "b": 2, "c": 1, "d": 0, "e": 3}, ["b", "a", "d", "c"]
    ideal = 3/log2(2) + 3/log2(3) + 2/log2(4) + 1/log2(5)
    assert metrics.ndcg_at_k(ranking, gains, 10) == approx((2/log2(2) + 3/log2(3) + 1/log2(5)) / ideal)
    assert metrics.ndcg_at_k(ranking, gains, 10) == approx(0.683718, abs=1e-6)
    assert metrics.ndcg_at_k(ranking, gains, 10, gain="exponential") == approx(0.587928, abs=1e-6)
    assert metrics.ndcg_at_k(ranking, gains, 3) == approx(0.660602, abs=1e-6)
    assert metrics.average_precision(ranking, {"a", "b", "c", "e"}) == approx((1/1 + 2/2 + 3/4) / 4)


def test_evaluate_by_hand():
    run = {"q1": ["a", "x", "b"], "q2": ["x"], "unjudged": ["a"]}
    qrels = {"q1": {"a": 1, "b": 1, "x": 0}, "q2": {"a": 2}, "q3": {"a": 1}}
    result = metrics.evaluate(run, qrels, ["hit@1", "recall@2", "precision@2", "reciprocal_rank", "average_precision",
                                           "average_precision@2", "ndcg", "ndcg@1", "ndcg_exponential@1"])
    assert result.per_query["recall@2"] == {"q1": 1/2, "q2": 0, "q3": 0}
    assert result.means["recall@2"] == approx((1/2 + 0 + 0) / 3)
    assert result.means["hit@1"] == approx(1/3) and result.means["precision@2"] == approx((1/2) / 3)
    assert result.means["reciprocal_rank"] == approx(1/3)
    assert result.means["average_precision"] == approx(((1/1 + 2/3) / 2) / 3)
    assert result.means["average_precision@2"] == approx((1/1 / 2) / 3)
    assert result.means["ndcg"] == approx((1 + 1/log2(4)) / (1 + 1/log2(3)) / 3)
    assert result.means["ndcg@1"] == result.means["ndcg_exponential@1"] == approx(1/3)
    assert result.undefined == 0


# -- Against trec_eval -------------------------------------------------------------------------------------------------


def test_equals_trec_eval_on_1000_untied_runs():
    random = np.random.default_rng(0)
    names = ["map", "recip_rank", "ndcg"] + [f"{name}.1,3,5,10,30" for name in ("recall", "P", "ndcg_cut", "success")]
    ours = {"map": "average_precision", "recip_rank": "reciprocal_rank", "ndcg": "ndcg"}
    for k in (1, 3, 5, 10, 30):
        ours |= {f"recall_{k}": f"recall@{k}", f"P_{k}": f"precision@{k}", f"ndcg_cut_{k}": f"ndcg@{k}"}
        ours |= {f"success_{k}": f"hit@{k}"} if k in (1, 5, 10) else {}
    run, qrels = {}, {}
    for number in range(1000):
        documents = [f"d{i}" for i in random.permutation(40)]
        judged = random.choice(40, random.integers(1, 20), replace=False)
        gains = {f"d{i}": int(grade) for i, grade in zip(judged, random.integers(0, 4, len(judged)))}
        qrels[f"q{number}"] = gains | {f"d{judged[0]}": 1}
        shown = documents[:random.integers(1, 40)]
        run[f"q{number}"] = dict(zip(shown, map(float, random.permutation(len(shown)))))
    expected = pytrec_eval.RelevanceEvaluator(qrels, {name.replace("success.1,3,5,10,30", "success.1,5,10") for name in names}).evaluate(run)
    result = metrics.evaluate(run, qrels, list(ours.values()))
    for theirs, name in ours.items():
        differences = [abs(result.per_query[name][query] - expected[query][theirs]) for query in qrels]
        assert max(differences) < 1e-9, name


# -- Properties --------------------------------------------------------------------------------------------------------


@given(RANKING, RELEVANT, K, st.data())
def test_binary_measures_never_fall_when_a_relevant_item_moves_up(ranking, relevant, k, data):
    places = [i for i, item in enumerate(ranking) if item in relevant and i > 0]
    assume(places)
    old = data.draw(st.sampled_from(places))
    new = data.draw(st.integers(0, old - 1))
    moved = ranking[:new] + [ranking[old]] + ranking[new:old] + ranking[old + 1:]
    for measure in CUT:
        assert measure(moved, relevant, k) >= measure(ranking, relevant, k)
    for measure in WHOLE:
        assert measure(moved, relevant) >= measure(ranking, relevant) - 1e-12


@given(RANKING, GRADED, K, st.sampled_from(["linear", "exponential"]))
def test_ndcg_never_falls_when_neighbours_are_swapped_into_the_order_of_grades(ranking, gains, k, gain):
    for i in range(len(ranking) - 1):
        if gains.get(ranking[i], 0) < gains.get(ranking[i + 1], 0):
            swapped = ranking[:i] + [ranking[i + 1], ranking[i]] + ranking[i + 2:]
            assert metrics.ndcg_at_k(swapped, gains, k, gain) >= metrics.ndcg_at_k(ranking, gains, k, gain) - 1e-12


@given(GRADED, K, st.sampled_from(["linear", "exponential"]))
def test_a_perfect_ranking(gains, k, gain):
    perfect = sorted(ITEMS, key=lambda item: -gains.get(item, 0))
    relevant = {item for item, grade in gains.items() if grade > 0}
    found = min(len(relevant), k)
    assert metrics.precision_at_k(perfect, relevant, k) == approx(found / k, abs=1e-12)
    assert metrics.recall_at_k(perfect, relevant, k) == approx(found / len(relevant), abs=1e-12)
    assert metrics.average_precision(perfect, relevant) == approx(1, abs=1e-12)
    assert metrics.reciprocal_rank(perfect, relevant) == 1
    assert metrics.ndcg_at_k(perfect, gains, k, gain) == approx(1, abs=1e-12)


@given(RANKING, GRADED, K)
def test_everything_lies_in_0_1_and_recall_never_exceeds_hit(ranking, gains, k):
    relevant = {item for item, grade in gains.items() if grade > 0}
    values = [measure(ranking, relevant, k) for measure in CUT] + [measure(ranking, relevant) for measure in WHOLE]
    values += [metrics.ndcg_at_k(ranking, gains, k, gain) for gain in ("linear", "exponential")]
    assert all(0 <= value <= 1 + 1e-12 for value in values)
    assert metrics.recall_at_k(ranking, relevant, k) <= metrics.hit_at_k(ranking, relevant, k)


@given(RANKING, RELEVANT, K)
def test_recall_and_hit_never_fall_with_k(ranking, relevant, k):
    for measure in (metrics.recall_at_k, metrics.hit_at_k):
        assert measure(ranking, relevant, k) <= measure(ranking, relevant, k + 1)


@given(RANKING, GRADED, K, st.sampled_from([0.5, 3, 100]))
def test_linear_ndcg_does_not_change_when_gains_are_scaled(ranking, gains, k, factor):
    scaled = {item: factor * grade for item, grade in gains.items()}
    assert metrics.ndcg_at_k(ranking, scaled, k) == approx(metrics.ndcg_at_k(ranking, gains, k), abs=1e-12)


@given(RANKING, GRADED, K, st.permutations(ITEMS))
def test_nothing_changes_when_items_are_renamed(ranking, gains, k, names):
    new_ranking, new_gains = [names[item] for item in ranking], {names[item]: grade for item, grade in gains.items()}
    assert metrics.ndcg_at_k(new_ranking, new_gains, k) == approx(metrics.ndcg_at_k(ranking, gains, k), abs=1e-12)
    relevant, new = ({item for item, grade in each.items() if grade} for each in (gains, new_gains))
    assert metrics.average_precision(new_ranking, new) == metrics.average_precision(ranking, relevant)


@given(st.dictionaries(st.sampled_from(ITEMS), st.integers(-2, 2).map(float)), RELEVANT)
def test_a_dict_of_scores_is_ranked_by_the_one_order(scores, relevant):
    ranked = sorted(scores, key=lambda item: (-scores[item], item))
    qrels = {"q": dict.fromkeys(relevant, 1)}
    assert metrics.evaluate({"q": scores}, qrels) == metrics.evaluate({"q": ranked}, qrels)


# False, so not tested: "precision falls as k grows", "exponential nDCG does not change when gains are scaled",
# "average precision never falls when k of the cut grows" is true but "nDCG@k" does both.


# -- Known faults ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [*(lambda r, s, f=f: f(r, s, 3) for f in CUT), *WHOLE,
                                     lambda r, s: metrics.ndcg_at_k(r, dict.fromkeys(s, 1), 3)])
def test_duplicates_would_push_a_measure_above_1(measure):
    with pytest.raises(ValueError, match="twice"):
        measure(["a", "a", "x"], {"a"})


@pytest.mark.parametrize("k, error", [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)])
def test_k_below_1_or_no_whole_number(k, error):
    for measure in CUT:
        with pytest.raises(error, match="k must be"):
            measure(["a"], {"a"}, k)
    with pytest.raises(error, match="k must be"):
        metrics.ndcg_at_k(["a"], {"a": 1}, k)


def test_nothing_relevant_is_undefined_not_0():
    for measure in CUT:
        with pytest.raises(ValueError, match="undefined"):
            measure(["a"], set(), 3)
    for measure in WHOLE:
        with pytest.raises(ValueError, match="undefined"):
            measure(["a"], [])
    for gains in ({}, {"a": 0}):
        with pytest.raises(ValueError, match="undefined"):
            metrics.ndcg_at_k(["a"], gains, 3)


def test_questions_without_an_answer_are_counted_apart():
    qrels = {"q1": {"a": 1}, "q2": {}, "q3": {"a": 0}}
    result = metrics.evaluate({"q1": ["a"], "q2": ["a"], "q3": ["a"]}, qrels, ["recall@1", "ndcg@1"])
    assert result.means == {"recall@1": 1, "ndcg@1": 1} and result.undefined == 2
    assert result.per_query["recall@1"] == {"q1": 1, "q2": None, "q3": None}
    assert metrics.evaluate({}, {"q2": {}}, ["ndcg@1"]).means == {"ndcg@1": None}


def test_a_question_without_results_counts_as_0_in_the_mean():
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}}
    for run in ({"q1": ["a"]}, {"q1": ["a"], "q2": []}, {"q1": {"a": 0.5}, "q2": {}}):
        assert set(metrics.evaluate(run, qrels).means.values()) == {0.5, 0.5 / 5}     # precision@5: 1 of 5 places


def test_a_question_that_nobody_judged_is_ignored():
    assert metrics.evaluate({"q1": ["a"], "zz": ["b"]}, {"q1": {"a": 1}}).means["ndcg@5"] == 1


def test_ties_are_ordered_once_for_every_measure():
    result = metrics.evaluate({"q": {"d3": 1, "d1": 1, "d2": 1}}, {"q": {"d3": 1}}, ["reciprocal_rank", "ndcg", "hit@2"])
    assert result.means == {"reciprocal_rank": 1/3, "ndcg": approx(1/log2(4)), "hit@2": 0}


def test_scores_that_differ_in_the_ninth_decimal_do_not_tie():
    assert metrics.evaluate({"q": {"a": 1 + 1e-9, "b": 1}}, {"q": {"b": 1}}, ["reciprocal_rank"]).means == {"reciprocal_rank": 1/2}


def test_an_item_that_is_its_own_query_stays():
    run, qrels = {"0": [str(i) for i in range(10)]}, {"0": {str(i): 1 for i in range(10)}}
    assert metrics.evaluate(run, qrels, ["recall@10"]).means["recall@10"] == 1


def test_the_callers_run_and_qrels_are_left_as_they_were():
    run, qrels = {"q": {"b": 1.0, "a": 2.0}}, {"q": {"a": 1, "b": 0}, "r": {}}
    metrics.evaluate(run, qrels)
    assert run == {"q": {"b": 1.0, "a": 2.0}} and qrels == {"q": {"a": 1, "b": 0}, "r": {}}


def test_short_rankings_leave_places_empty():
    assert metrics.precision_at_k(["a", "x"], {"a", "z"}, 5) == 1/5


def test_all_relevant_items_divide_also_when_k_is_smaller():
    assert metrics.average_precision(["a", "b"], {"a", "b", "c"}) == approx((1 + 1) / 3)
    assert metrics.recall_at_k(["a", "b"], {"a", "b", "c"}, 2) == 2/3


@pytest.mark.parametrize("grade", [-0.89, math.nan, math.inf, 1001])
def test_grades_below_0_or_no_number(grade):
    for gain in ("linear", "exponential"):
        with pytest.raises(ValueError, match="grade"):
            metrics.ndcg_at_k(["a"], {"a": grade, "b": 1}, 2, gain)
    with pytest.raises(ValueError, match="grade"):
        metrics.evaluate({"q": ["a"]}, {"q": {"a": grade}}, ["hit@1"])


def test_a_grade_of_0_is_not_relevant_so_a_dict_is_no_set():
    with pytest.raises(TypeError, match="set"):
        metrics.recall_at_k(["a"], {"a": 0, "b": 1}, 1)


@pytest.mark.parametrize("ranking", ["abc", {"a": 1.0}, {"a", "b"}])
def test_something_without_an_order_is_no_ranking(ranking):
    with pytest.raises(TypeError, match="best first"):
        metrics.reciprocal_rank(ranking, {"a"})


def test_a_string_is_no_set_and_a_set_has_no_grades():
    with pytest.raises(TypeError, match="set"):
        metrics.reciprocal_rank(["a"], "a")
    with pytest.raises(TypeError, match="dict"):
        metrics.ndcg_at_k(["a"], {"a"}, 1)
    with pytest.raises(ValueError, match="gain"):
        metrics.ndcg_at_k(["a"], {"a": 1}, 1, gain="log")


@pytest.mark.parametrize("measure", ["recall", "mrr", "recall@", "recall@x", "ndcg@-1", "recall@0", "hit"])
def test_unknown_measures(measure):
    with pytest.raises(ValueError):
        metrics.evaluate({"q": ["a"]}, {"q": {"a": 1}}, [measure])


def test_no_judged_query_and_nan_in_a_run():
    with pytest.raises(ValueError, match="nothing to measure"):
        metrics.evaluate({"q": ["a"]}, {})
    with pytest.raises(ValueError, match="NaN"):
        metrics.evaluate({"q": {"a": math.nan}}, {"q": {"a": 1}})
