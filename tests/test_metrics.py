"""Second half of the lesson on metrics: every value as arithmetic, trec_eval as oracle, what must hold, known faults."""

import itertools
import math
import types
from math import log2

import numpy as np
import pytest
import pytrec_eval
from hypothesis import assume, given
from hypothesis import strategies as st
from pytest import approx

import metrics
from toy import BM25_RANKING, DENSE_RANKING, DOCUMENTS, GAINS

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


@given(RANKING, GRADED, K)
def test_evaluate_gives_what_the_plain_functions_give(ranking, gains, k):
    relevant, whole = {item for item, grade in gains.items() if grade > 0}, len(ITEMS)
    plain = {
        f"hit@{k}": metrics.hit_at_k(ranking, relevant, k), f"recall@{k}": metrics.recall_at_k(ranking, relevant, k),
        f"precision@{k}": metrics.precision_at_k(ranking, relevant, k),
        "reciprocal_rank": metrics.reciprocal_rank(ranking, relevant),
        f"reciprocal_rank@{k}": metrics.reciprocal_rank(ranking[:k], relevant),
        "average_precision": metrics.average_precision(ranking, relevant),
        f"average_precision@{k}": metrics.average_precision(ranking[:k], relevant),
        "ndcg": metrics.ndcg_at_k(ranking, gains, whole), f"ndcg@{k}": metrics.ndcg_at_k(ranking, gains, k),
        f"ndcg_exponential@{k}": metrics.ndcg_at_k(ranking, gains, k, gain="exponential")}
    assert metrics.evaluate({"q": ranking}, {"q": gains}, list(plain)).means == approx(plain, abs=1e-12)


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
    qrels = {"q2": {}, "q1": {"a": 1}, "q3": {"a": 0}, "q4": {"b": 1}}       # q1 and q4 are not spoilt by those before
    result = metrics.evaluate(dict.fromkeys(qrels, ["a"]), qrels, ["recall@1", "ndcg@1"])
    assert result.means == {"recall@1": 0.5, "ndcg@1": 0.5} and result.undefined == 2
    assert result.per_query["recall@1"] == {"q1": 1, "q2": None, "q3": None, "q4": 0}
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


def test_a_certain_difference_is_found_on_top_of_great_values():
    for offset in (0, 1e9, 1e12):
        a = [offset + 1] * 7 + [offset + 0.875]
        assert metrics.paired_bootstrap(a, [offset] * 8).p_value < 0.001


def test_values_that_cannot_be_added_up():
    assert metrics.paired_bootstrap([1e100] * 5, [0] * 5).difference == 1e100
    with pytest.raises(ValueError, match="1e100"):
        metrics.paired_bootstrap([1.7e308] * 5, [0] * 5)


def test_float32_and_float_scores_are_compared_as_what_they_are():
    for run in ({"b": np.float32(0.1), "a": 0.1}, {"a": 0.1, "b": np.float32(0.1)}):      # float32's 0.1 is greater
        assert metrics.evaluate({"q": run}, {"q": {"a": 1}}, ["hit@1"]).means == {"hit@1": 0}


def test_any_iterable_is_a_set_of_relevant_items():
    for measure in CUT:
        assert measure([1, 2], iter([1]), 1) == 1


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


@pytest.mark.parametrize("grade", [-0.89, math.nan, math.inf, 1001, 1e-17])
def test_grades_below_0_or_no_number(grade):
    for gain in ("linear", "exponential"):
        with pytest.raises(ValueError, match="grade"):
            metrics.ndcg_at_k(["a"], {"a": grade, "b": 1}, 2, gain)
    with pytest.raises(ValueError, match="grade"):
        metrics.evaluate({"q": ["a"]}, {"q": {"a": grade}}, ["hit@1"])


def test_the_smallest_grade():
    assert metrics.ndcg_at_k(["a"], {"a": 1e-9}, 1, gain="exponential") == approx(1)


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


# == Spans =============================================================================================================

TEXT_LENGTH = 24
SPAN = st.builds(lambda doc_id, start, length: (doc_id, start, min(start + length, TEXT_LENGTH)),
                 st.sampled_from(["d0", "d1"]), st.integers(0, TEXT_LENGTH - 1), st.integers(1, 12))
SPANS = st.lists(SPAN, max_size=6)
SOME_SPANS = st.lists(SPAN, min_size=1, max_size=6)
SPAN_MEASURES = [metrics.span_recall, metrics.span_precision, metrics.span_iou, metrics.precision_omega]
TWO_WORDS = [(0, 0, 7), (0, 4, 11), (0, 8, 14), (0, 12, 18), (0, 15, 22)]      # windows of two words, one in common
CAT_SAT_ON = [(0, 4, 14)]


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_toy_spans():
    assert [DOCUMENTS[0][start:end] for _, start, end in TWO_WORDS] == ["the cat", "cat sat", "sat on", "on the", "the mat"]
    assert [DOCUMENTS[0][start:end] for _, start, end in CAT_SAT_ON] == ["cat sat on"]
    assert metrics.span_recall(TWO_WORDS[:2], CAT_SAT_ON) == 7 / 10
    assert metrics.span_precision(TWO_WORDS[:2], CAT_SAT_ON) == 7 / (7 + 7)
    assert metrics.span_iou(TWO_WORDS[:2], CAT_SAT_ON) == 7 / (14 + 10 - 7)
    assert metrics.precision_omega(TWO_WORDS, CAT_SAT_ON) == 10 / 18           # from "the cat" to "on the"


def test_two_documents_and_two_references():
    references = [("a", 0, 10), ("b", 100, 120)]
    retrieved = [("a", 5, 25), ("b", 90, 130), ("c", 0, 40)]
    assert metrics.span_recall(retrieved, references) == (5 + 20) / (10 + 20)
    assert metrics.span_precision(retrieved, references) == (5 + 20) / (20 + 40 + 40)
    assert metrics.span_iou(retrieved, references) == (5 + 20) / (100 + 30 - 25)
    assert metrics.precision_omega(retrieved, references) == (5 + 20) / (25 + 40)      # a: 0 to 25, b: 90 to 130


def test_overlap_between_retrieved_spans_is_paid_for_twice_and_found_once():
    once, twice = [("d", 0, 10)], [("d", 0, 10), ("d", 0, 10)]
    assert metrics.span_precision(once, [("d", 0, 5)]) == 5 / 10
    assert metrics.span_precision(twice, [("d", 0, 5)]) == 5 / (10 + 10)
    assert metrics.span_recall(twice, [("d", 0, 5)]) == 5 / 5
    assert metrics.span_iou(twice, [("d", 0, 5)]) == 5 / (20 + 5 - 5)
    assert metrics.precision_omega(twice, [("d", 0, 5)]) == 5 / 10             # omega alone takes the union


def test_overlap_between_references_is_needed_once():
    references = [("d", 0, 10), ("d", 5, 15), ("d", 5, 15)]
    assert metrics.span_recall([("d", 0, 15)], references) == 15 / 15
    assert metrics.span_recall([("d", 0, 10)], references) == 10 / 15
    assert metrics.span_iou([("d", 0, 10)], references) == 10 / (10 + 15 - 10)


def test_a_chunk_that_only_touches_a_reference_is_no_hit():
    chunks = [("d", 0, 10), ("d", 10, 20), ("d", 20, 30)]
    assert metrics.precision_omega(chunks, [("d", 10, 20)]) == 10 / 10
    assert metrics.span_recall([chunks[0], chunks[2]], [("d", 10, 20)]) == 0


def test_a_reference_that_no_chunk_covers_stays_in_omega():
    assert metrics.precision_omega([("d", 0, 10)], [("d", 5, 15)]) == 5 / 15
    assert metrics.precision_omega([("d", 0, 10)], [("e", 0, 10)]) == 0 / 10


def test_what_is_0_and_what_is_undefined():
    assert metrics.span_recall([], CAT_SAT_ON) == metrics.span_iou([], CAT_SAT_ON) == 0
    assert metrics.precision_omega([], CAT_SAT_ON) == 0
    with pytest.raises(ValueError, match="nothing was retrieved: precision is undefined"):
        metrics.span_precision([], CAT_SAT_ON)
    for measure in SPAN_MEASURES:
        assert measure([(0, 14, 22)], CAT_SAT_ON) == 0                         # retrieved, but beside the point
        with pytest.raises(ValueError, match="no reference span"):
            measure(TWO_WORDS, [])


# -- Against sets of characters ----------------------------------------------------------------------------------------


def characters(spans):
    """Every character of the spans, one by one: a character in two spans comes twice."""
    return [(doc_id, i) for doc_id, start, end in spans for i in range(start, end)]


def check_against_sets(spans, references):
    """The definitions of the four measures, written with sets of characters."""
    needed = set(characters(references))
    shared = set(characters(spans)) & needed
    assert metrics.span_recall(spans, references) == len(shared) / len(needed)
    assert metrics.span_iou(spans, references) == len(shared) / (len(characters(spans)) + len(needed) - len(shared))
    if spans:
        assert metrics.span_precision(spans, references) == len(shared) / len(characters(spans))
    hits = [span for span in spans if set(characters([span])) & needed]
    found = set(characters(hits))
    assert metrics.precision_omega(spans, references) == len(found & needed) / len(found | needed)


@given(SPANS, SOME_SPANS)
def test_equals_the_definition_with_sets(spans, references):
    check_against_sets(spans, references)
    assert metrics.n_shared_by_definition(spans, references) == metrics._n_shared(spans, references)


def random_spans(random, least):
    starts = random.integers(0, 40, random.integers(least, 7))
    return [(int(random.integers(2)), int(start), int(start + random.integers(1, 20))) for start in starts]


def check_500_random_cases():
    random = np.random.default_rng(0)
    for _ in range(500):
        check_against_sets(random_spans(random, least=0), random_spans(random, least=1))


def test_equals_the_definition_on_500_random_cases():
    check_500_random_cases()


def count_pairs(retrieved, references):
    return sum(max(0, min(end, other_end) - max(start, other_start)) for doc_id, start, end in retrieved
               for other_id, other_start, other_end in references if doc_id == other_id)


PLANTED = {
    "union not taken": ("_n_covered", lambda spans: sum(end - start for _, start, end in spans)),
    "overlap counted twice in N": ("_n_shared", count_pairs),
    "retrieved overlap counted once": ("_n_characters", metrics._n_covered),
    "end inclusive": ("_n_characters", lambda spans: sum(end - start + 1 for _, start, end in spans)),
    "documents mixed up": ("_n_covered", lambda spans: len({i for _, start, end in spans for i in range(start, end)})),
    "touching is overlapping": ("_overlap", lambda a, b: a[0] == b[0] and a[1] <= b[2] and b[1] <= a[2]),
    "overlap in another document": ("_overlap", lambda a, b: a[1] < b[2] and b[1] < a[2]),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bugs_in_spans_are_caught(bug, monkeypatch):
    monkeypatch.setattr(metrics, *PLANTED[bug])
    with pytest.raises(AssertionError):
        check_500_random_cases()


# -- Properties --------------------------------------------------------------------------------------------------------


def values(spans, references):
    return [measure(spans, references) for measure in SPAN_MEASURES]


@given(SOME_SPANS, SOME_SPANS)
def test_span_measures_lie_in_0_1_and_iou_is_the_strictest(spans, references):
    recall, precision, iou, omega = values(spans, references)
    assert all(0 <= value <= 1 for value in (recall, precision, iou, omega))
    assert iou <= min(recall, precision)
    assert (recall == 0) == (precision == 0) == (iou == 0)


@given(SPANS, SOME_SPANS, SPAN)
def test_one_more_retrieved_span_never_lowers_recall(spans, references, more):
    assert metrics.span_recall([*spans, more], references) >= metrics.span_recall(spans, references)


@given(SOME_SPANS, SOME_SPANS, SPAN)
def test_one_more_reference_never_lowers_precision(spans, references, more):
    assert metrics.span_precision(spans, [*references, more]) >= metrics.span_precision(spans, references)


@given(SOME_SPANS, SOME_SPANS, st.data())
def test_splitting_a_span_changes_nothing_but_omega_which_never_falls(spans, references, data):
    i = data.draw(st.sampled_from([i for i, (_, start, end) in enumerate(spans) if end - start > 1] or [None]))
    assume(i is not None)
    doc_id, start, end = spans[i]
    cut = data.draw(st.integers(start + 1, end - 1))
    split = spans[:i] + [(doc_id, start, cut), (doc_id, cut, end)] + spans[i + 1:]
    assert values(split, references)[:3] == values(spans, references)[:3]
    assert metrics.precision_omega(split, references) >= metrics.precision_omega(spans, references)


@given(SOME_SPANS, SOME_SPANS, st.randoms())
def test_order_names_and_place_of_the_documents_do_not_matter(spans, references, random):
    moved = [[("xyz"[int(doc_id[1])], start + 1000, end + 1000) for doc_id, start, end in random.sample(part, len(part))]
             for part in (spans, references)]
    assert values(*moved) == values(spans, references)


@given(SOME_SPANS)
def test_the_references_themselves_are_perfect(references):
    each_once = [(doc_id, i, i + 1) for doc_id, i in sorted(set(characters(references)))]
    assert values(each_once, references) == [1, 1, 1, 1]
    assert metrics.span_recall(references, references) == metrics.precision_omega(references, references) == 1


@given(SOME_SPANS, SOME_SPANS)
def test_omega_is_the_iou_of_the_hits_merged(spans, references):
    hits = [span for span in spans if metrics.span_recall([span], references) > 0]
    merged = [(doc_id, i, i + 1) for doc_id, i in sorted(set(characters(hits)))]
    assert metrics.precision_omega(spans, references) == metrics.span_iou(merged, references)


# False, so not tested: "one more retrieved span never lowers precision, or IoU", "precision is at most omega" (a single
# good chunk beats all that overlap), "omega is at most recall", "one more reference never raises recall", "IoU is
# symmetric" (overlap counts in full on the retrieved side only).


# -- Known faults ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("span, error, reason", [
    (("d", 3, 3), ValueError, "end must be at least 4, not 3"),
    (("d", 5, 3), ValueError, "end must be at least 6, not 3"),
    (("d", -1, 3), ValueError, "start must be at least 0, not -1"),
    (("d", 0.0, 3), TypeError, "start must be a whole number, not 0.0"),
    (("d", 0, math.nan), TypeError, "end must be a whole number, not nan"),
    (("d", 0, True), TypeError, "end must be a whole number, not a truth value"),
    (("d", "0", "3"), TypeError, "start must be a whole number, not '0'"),
    (("d", None, 3), TypeError, "start must be a whole number, not None"),
    (("d", 3), ValueError, "not enough values"),
    (("d", 0, 3, 1), ValueError, "too many values"),
    (7, TypeError, "no span"),
    ({"doc_id": "d", "start": 0, "end": 3}, TypeError, "start must be a whole number"),
    ((None, 0, 3), ValueError, "its document has no id"),
    ((math.nan, 0, 3), ValueError, "its document has no id"),
])
def test_what_is_no_span(span, error, reason):
    for measure in SPAN_MEASURES:
        for arguments in [([span], [("d", 0, 3)]), ([("d", 0, 3)], [("d", 0, 3), span])]:
            with pytest.raises(error, match="is no span") as caught:
                measure(*arguments)
            assert reason in str(caught.value) and repr(span) in str(caught.value)


def test_one_span_is_no_list_of_spans():
    with pytest.raises(ValueError, match="'d' is no span"):
        metrics.span_recall(("d", 0, 3), [("d", 0, 3)])


def test_numpy_integers_lists_and_iterators_are_welcome():
    spans = np.array([[0, 0, 7], [0, 4, 11]], dtype=np.uint8)                  # uint8: 4 - 7 would wrap round
    assert metrics.span_iou(spans, iter([[0, 4, 14]])) == 7 / (14 + 10 - 7)
    assert metrics.precision_omega((span for span in TWO_WORDS), CAT_SAT_ON) == 10 / 18


# == Evidence ==========================================================================================================

THE_CAT = [[(0, 0, 7), (1, 15, 22)]]


def test_every_copy_of_a_quote_is_found():
    texts = dict(enumerate(DOCUMENTS))
    assert metrics.find_copies("the cat", texts) == THE_CAT[0]
    assert metrics.find_copies("the", {0: DOCUMENTS[0]}) == [(0, 0, 3), (0, 15, 18)]
    assert metrics.find_copies("aa", {"d": "aaa"}) == [("d", 0, 2), ("d", 1, 3)]
    assert metrics.find_copies("é😀", {"d": "😀é😀"}) == [("d", 1, 3)]           # code points, not bytes


@given(st.text("ab", min_size=1, max_size=3), st.dictionaries(st.integers(0, 2), st.text("ab", max_size=12)))
def test_copies_are_all_the_places_and_only_those(quote, texts):
    size = len(quote)
    places = [(d, i, i + size) for d, text in texts.items() for i in range(len(text)) if text[i:i + size] == quote]
    assume(places)
    assert metrics.find_copies(quote, texts) == places


def test_a_quote_that_stands_nowhere_or_everywhere():
    with pytest.raises(ValueError, match="'the cow' stands in none"):
        metrics.find_copies("the cow", dict(enumerate(DOCUMENTS)))
    with pytest.raises(ValueError, match="empty"):
        metrics.find_copies("", {0: "abc"})


def test_the_second_copy_alone_is_full_recall():
    second = [(1, 15, 22)]
    assert metrics.evidence_recall(second, THE_CAT) == 1
    assert metrics.evidence_precision(second, THE_CAT) == 7 / 7
    assert metrics.span_recall(second, THE_CAT[0][:1]) == 0                    # what crediting the first copy would say
    assert metrics.span_recall(second, THE_CAT[0]) == 7 / 14                   # and what asking for both would


def test_the_best_copy_counts_and_halves_do_not_add_up():
    assert metrics.evidence_recall([(0, 0, 3), (1, 15, 20)], THE_CAT) == 5 / 7
    assert metrics.evidence_precision([(0, 0, 4), (1, 14, 20)], THE_CAT) == (4 + 5) / (4 + 6)


def test_each_piece_weighs_the_same_and_one_quote_of_a_group_is_enough():
    long, short = [("d", 0, 100)], [("d", 200, 210)]
    assert metrics.evidence_recall([("d", 0, 100)], [long, short]) == (1 + 0) / 2
    assert metrics.evidence_recall([("d", 0, 50), ("d", 205, 210)], [long, short]) == (1/2 + 1/2) / 2
    assert metrics.evidence_recall([("d", 200, 210)], [long + short]) == 1


PIECES = st.lists(SOME_SPANS, min_size=1, max_size=3)


@given(SPANS, PIECES, SPAN)
def test_evidence_recall_by_definition_in_0_1_and_never_lowered_by_one_more_span(spans, evidence, more):
    retrieved, shares = set(characters(spans)), []
    for copies in evidence:
        shares.append(max(len(retrieved & set(characters([copy]))) / len(characters([copy])) for copy in copies))
    recall = metrics.evidence_recall(iter(spans), evidence)
    assert recall == approx(sum(shares) / len(shares), abs=1e-12) and 0 <= recall <= 1
    assert metrics.evidence_recall([*spans, more], evidence) >= recall


@given(SOME_SPANS, PIECES, st.data())
def test_one_more_copy_never_lowers_anything(spans, evidence, data):
    richer = [[*copies, data.draw(SPAN)] for copies in evidence]
    for measure in (metrics.evidence_recall, metrics.evidence_precision):
        assert measure(spans, richer) >= measure(spans, evidence)


@given(SOME_SPANS, SPAN)
def test_one_piece_in_one_place_is_a_plain_reference(spans, reference):
    assert metrics.evidence_recall(spans, [[reference]]) == metrics.span_recall(spans, [reference])
    assert metrics.evidence_precision(spans, [[reference]]) == metrics.span_precision(spans, [reference])


def test_evidence_that_is_undefined():
    for measure in (metrics.evidence_recall, metrics.evidence_precision):
        with pytest.raises(ValueError, match="no evidence"):
            measure(CAT_SAT_ON, [])
        with pytest.raises(ValueError, match="no reference span"):
            measure(CAT_SAT_ON, [CAT_SAT_ON, []])
        with pytest.raises(ValueError, match="no span"):
            measure(CAT_SAT_ON, [("d", 0, 3)])                                 # spans instead of lists of copies
    assert metrics.evidence_recall([], THE_CAT) == 0
    with pytest.raises(ValueError, match="nothing was retrieved"):
        metrics.evidence_precision([], THE_CAT)


# == Two systems =======================================================================================================

A, B = [1, 1, 1, 1, 0, 1], [0, 0, 1, 0, 1, 0]
FIVE = [[(1, 0), (1, 0), (1, 0), (1, 0), (0, 1)],            # four won, one lost
        [(3, 1), (0, 2), (4, 0), (1, 1), (5, 1)], [(0, 3), (0, 1), (0, 2), (1, 0), (0, 1)]]


def test_difference_of_means_by_hand():
    result = metrics.paired_bootstrap(A, B)
    assert result.difference == approx(5/6 - 2/6) and result.n_queries == 6
    assert result.low < result.difference < result.high


def test_identical_systems():
    assert metrics.paired_bootstrap([0.1, 0.7, 0.3, 0, 1], [0.1, 0.7, 0.3, 0, 1]) == (0, 0, 0, 1, 5)
    assert metrics.paired_bootstrap([0] * 5, [0] * 5) == (0, 0, 0, 1, 5)        # both found nothing at all
    rounded = [0.1 + 0.2, 0.7, 0.3, 0, 1], [0.3, 0.7, 0.3, 0, 1]               # apart by the last bit only
    assert metrics.paired_bootstrap(*rounded).p_value == 1


def test_a_constant_difference_is_certain_and_its_p_value_is_as_small_as_it_gets():
    result = metrics.paired_bootstrap([1, 2, 3, 4, 5], [0.5, 1.5, 2.5, 3.5, 4.5], resamples=99)
    assert result == (0.5, 0.5, 0.5, (0 + 1) / (99 + 1), 5)


def exact(differences):
    """p-value and the sorted means of all n^n equally likely resamples, in whole numbers (of n times the mean)."""
    n, total = len(differences), sum(differences)
    sums = [sum(picked) for picked in itertools.product(differences, repeat=n)]
    return sum(abs(each - total) >= abs(total) for each in sums) / n**n, np.sort(sums) / n


def check_against_every_resample():
    for pairs in FIVE:
        p_value, means = exact([a - b for a, b in pairs])                      # 5^5 = 3125 resamples
        a, b = zip(*((a / 10, b / 10) for a, b in pairs))                      # tenths: the ties are rounded
        result = metrics.paired_bootstrap(a, b, resamples=40_000, confidence=0.9)
        assert result.p_value == approx(p_value, abs=4 * math.sqrt(p_value * (1 - p_value) / 40_000) + 1e-4)
        assert result.low == approx(np.quantile(means, 0.05) / 10, abs=0.021)  # one step of the means
        assert result.high == approx(np.quantile(means, 0.95) / 10, abs=0.021)


def test_equals_the_enumeration_of_every_resample():
    # four won, one lost: the sum of 3 falls to 0 or less when the lost one is drawn 3, 4 or 5 times of 5
    assert exact([1, 1, 1, 1, -1])[0] == (10 * 4**2 + 5 * 4 + 1) / 5**5
    check_against_every_resample()


BOOTSTRAP_BUGS = {
    "no shift": ("_p_value", lambda means, difference, _: (abs(means) >= abs(difference)).mean()),
    "one side only": ("_p_value", lambda means, difference, _: (means - difference >= abs(difference) - 1e-9).mean()),
    "ties lost": ("_p_value", lambda means, difference, _: (abs(means - difference) > abs(difference) + 1e-9).mean()),
    "ties rounded away": ("_p_value", lambda means, difference, _: (abs(means - difference) >= abs(difference)).mean()),
    "without replacement": ("_resampled_means", lambda differences, resamples, random:
                            random.permuted(np.tile(differences, (resamples, 1)), axis=1).mean(axis=1)),
    "n - 1 drawn": ("_resampled_means", lambda differences, resamples, random:
                    random.choice(differences, (resamples, len(differences) - 1)).mean(axis=1)),
    "the last never drawn": ("_resampled_means", lambda differences, resamples, random:
                             random.choice(differences[:-1], (resamples, len(differences))).mean(axis=1)),
}


@pytest.mark.parametrize("bug", BOOTSTRAP_BUGS)
def test_planted_bugs_in_the_bootstrap_are_caught(bug, monkeypatch):
    monkeypatch.setattr(metrics, *BOOTSTRAP_BUGS[bug])
    with pytest.raises(AssertionError):
        check_against_every_resample()


VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=5, max_size=12)


@given(VALUES)
def test_swapping_the_systems_mirrors_the_result(pairs):
    a, b = zip(*pairs)
    one, other = metrics.paired_bootstrap(a, b, resamples=200), metrics.paired_bootstrap(b, a, resamples=200)
    assert other[:3] == approx((-one.difference, -one.high, -one.low), abs=1e-12)
    assert other.p_value == one.p_value


@given(VALUES, st.floats(-5, 5))
def test_adding_the_same_to_both_changes_nothing(pairs, shift):
    a, b = np.array(pairs).T
    one = metrics.paired_bootstrap(a, b, resamples=200)
    assert metrics.paired_bootstrap(a + shift, b + shift, resamples=200)[:3] == approx(one[:3], abs=1e-12)


@given(VALUES, st.floats(0.5, 0.99))
def test_interval_and_p_value_stay_in_their_bounds(pairs, confidence):
    a, b = np.array(pairs).T
    result = metrics.paired_bootstrap(a, b, resamples=200, confidence=confidence)
    assert min(a - b) - 1e-12 <= result.low <= result.high + 1e-12 <= max(a - b) + 2e-12
    assert 1 / 201 <= result.p_value <= 1
    wider = metrics.paired_bootstrap(a, b, resamples=200, confidence=0.999)
    assert wider.low <= result.low + 1e-12 and result.high <= wider.high + 1e-12


# False, so not tested: "p < 0.05 exactly when the 95% interval leaves out 0" (the test mirrors the means, the interval
# does not), "the difference lies in the interval" (not for a skewed sample and a low confidence), "a larger difference
# has a smaller p-value" (not if it varies more), "the order of the queries does not matter" (the picks fall on others).


def test_the_same_seed_gives_the_same_result_and_another_seed_another():
    assert metrics.paired_bootstrap(A, B, seed=3) == metrics.paired_bootstrap(A, B, seed=3)
    assert metrics.paired_bootstrap(A, B) == metrics.paired_bootstrap(A, B, seed=0)
    a, b = np.random.default_rng(1).random((2, 50))
    assert metrics.paired_bootstrap(a, b, seed=1).low != metrics.paired_bootstrap(a, b, seed=2).low


def test_dicts_are_paired_by_query():
    a, b = ({f"q{i}": value for i, value in enumerate(system)} for system in (A, B))
    assert metrics.paired_bootstrap(a, dict(reversed(b.items()))) == metrics.paired_bootstrap(A, B)


def test_values_of_evaluate_can_be_compared():
    qrels = {f"q{i}": GAINS for i in range(6)}
    found = [metrics.evaluate(dict.fromkeys(qrels, ranking), qrels, ["ndcg@3"]).per_query["ndcg@3"]
             for ranking in (BM25_RANKING, DENSE_RANKING)]
    assert metrics.paired_bootstrap(*found).difference == approx((2/1 + 1/2 - 1/1 - 2/log2(3)) / (2/1 + 1/log2(3)))


@pytest.mark.parametrize("block", [1, 7, 60, 10**6])
def test_blocks_bound_the_memory_and_change_nothing(block, monkeypatch):
    a, b = np.random.default_rng(0).random((2, 20))
    expected, largest = metrics.paired_bootstrap(a, b, resamples=100), []
    monkeypatch.setattr(metrics, "BLOCK", block)
    random = np.random.default_rng(0)
    record = types.SimpleNamespace(integers=lambda n, size: largest.append(size) or random.integers(n, size=size))
    monkeypatch.setattr(metrics.np.random, "default_rng", lambda seed: record)
    assert metrics.paired_bootstrap(a, b, resamples=100) == expected
    assert all(rows * n <= max(block, n) for rows, n in largest) and sum(rows for rows, _ in largest) == 100


def test_an_interval_of_95_percent_holds_the_truth_about_95_times_in_100():
    random = np.random.default_rng(0)
    held = rejected = 0
    for seed in range(400):
        b = random.random(30)
        a = b + 0.1 + random.normal(0, 0.3, 30)                                # truly better by 0.1
        result = metrics.paired_bootstrap(a, b, resamples=500, seed=seed)
        held += result.low <= 0.1 <= result.high
        rejected += metrics.paired_bootstrap(a - 0.1, b, resamples=500, seed=seed).p_value <= 0.05
    assert 0.90 <= held / 400 <= 0.97                        # a little under 0.95: 30 queries, percentile interval
    assert 0.03 <= rejected / 400 <= 0.10                    # of systems that are truly equal


def test_more_queries_make_a_difference_clear():
    assert metrics.paired_bootstrap(A, B).p_value > 0.05 > metrics.paired_bootstrap(A * 10, B * 10).p_value


@pytest.mark.parametrize("n", range(5))
def test_fewer_than_5_queries_are_refused(n):
    with pytest.raises(ValueError, match=f"{n} queries are too few"):
        metrics.paired_bootstrap([1.0] * n, [0.0] * n)


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, "1", [1], 1j])
def test_undefined_values_are_refused(bad):
    for a, b in (([1, 1, 1, 1, 1, bad], B), (A, [bad, 0, 0, 0, 0, 0])):
        with pytest.raises(ValueError):
            metrics.paired_bootstrap(a, b)
        with pytest.raises(ValueError):
            metrics.paired_bootstrap(dict(enumerate(a)), dict(enumerate(b)))


def test_a_table_of_values_is_no_list_of_values():
    with pytest.raises(ValueError, match="one finite number"):
        metrics.paired_bootstrap(np.ones((6, 1)), np.zeros((6, 1)))


def test_different_queries_are_refused():
    with pytest.raises(ValueError, match="not 6 and 5"):
        metrics.paired_bootstrap(A, B[:5])
    six = dict(enumerate(A))
    with pytest.raises(ValueError, match="only one system has a value for \\[5, 'q'\\]"):
        metrics.paired_bootstrap(six, {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, "q": 1})
    for other in (B, set(range(6)), "101010"):
        with pytest.raises(TypeError, match="two lists|two dicts"):
            metrics.paired_bootstrap(six, other)


@pytest.mark.parametrize("settings", [{"resamples": 0}, {"resamples": -5}, {"confidence": 0}, {"confidence": 1},
                                      {"confidence": 95}, {"confidence": math.nan}])
def test_settings_out_of_range(settings):
    with pytest.raises(ValueError, match="must"):
        metrics.paired_bootstrap(A, B, **settings)


def test_one_resample_is_enough_to_run():
    result = metrics.paired_bootstrap(A, B, resamples=1)
    assert result.low == result.high and result.p_value in (1/2, 2/2)


# -- Faults that only mutation showed (make mutants) -------------------------------------------------------------------


def test_the_highest_grade_is_1000():
    assert metrics.ndcg_at_k(["a"], {"a": 1000}, 1, gain="exponential") == 1


def test_precision_needs_a_k():
    with pytest.raises(ValueError, match="unknown measure 'precision'"):
        metrics.evaluate({"q": ["a"]}, {"q": {"a": 1}}, ["precision"])


def test_items_need_an_order_for_ties_only():
    assert metrics.evaluate({"q": {"a": 2, 1: 1}}, {"q": {1: 1}}, ["reciprocal_rank"]).means == {"reciprocal_rank": 1/2}


def test_documents_need_no_order():
    assert metrics.span_recall([("a", 0, 3), (1, 0, 3)], [(1, 0, 3), ("a", 0, 6)]) == (3 + 3) / (3 + 6)


def test_there_are_10_000_resamples():
    assert metrics.paired_bootstrap([1, 2, 3, 4, 5], [0.5, 1.5, 2.5, 3.5, 4.5]).p_value == 1 / (10_000 + 1)


def test_the_error_names_resamples():
    with pytest.raises(ValueError, match="^resamples must"):
        metrics.paired_bootstrap(A, B, resamples=0)


def test_ties_are_rounded_by_the_size_of_the_values():
    a, b = np.array(FIVE[1]).T / 10
    expected = metrics.paired_bootstrap(a, b).p_value
    for scale in (2.0**-30, 2.0**30):                                          # powers of 2: the digits stay the same
        assert metrics.paired_bootstrap(scale * a, scale * b).p_value == expected


# Mutants that survive, since no input tells them apart.
# survives in _check_values: `"XXbiufXX"`: no dtype is of kind X
# survives in _check_values: `astype(None)`: NumPy's default is float
# survives in paired_bootstrap: `17 * np`: any small multiple of the rounding error will do
# survives in paired_bootstrap: `np.finfo(None)`: NumPy's default is float
# survives in _check_values: `1e+100`: the same number
