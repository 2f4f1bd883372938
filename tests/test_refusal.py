"""When not to answer: thresholds by hand, against a public library, and as they are kept."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import corpus
import reader
import refusal

SCORES = st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.9]), min_size=1, max_size=12)


def test_auroc_by_hand():
    assert refusal.auroc([0.9, 0.6], [0.7, 0.2]) == 3 / 4
    assert refusal.auroc([0.5], [0.5, 0.1]) == (1 / 2 + 1) / 2         # a tie counts half


@given(SCORES, SCORES)
def test_auroc_is_that_of_scikit_learn(good, other):
    from sklearn.metrics import roc_auc_score

    assert refusal.auroc(good, other) == approx(roc_auc_score([1] * len(good) + [0] * len(other), good + other))
    assert refusal.auroc(good, other) == approx(1 - refusal.auroc(other, good))


def test_the_threshold_lies_in_the_middle_and_of_several_it_is_the_lowest():
    assert refusal.best_threshold([0.9, 0.6, 0.3, 0.2], [True, True, False, False]) == approx(0.45)
    assert refusal.best_threshold([0.9, 0.6, 0.7, 0.2], [True, True, False, False]) == approx(0.4)      # not 0.8
    assert refusal.best_threshold([0.5, 0.5], [True, False]) == 0.5
    assert refusal.best_threshold([0.5, 0.6], [True, False]) == 0.5   # refuse nothing rather than the good one alone


@given(st.lists(st.tuples(st.floats(0, 1, width=16), st.booleans()), min_size=2, max_size=15).filter(
    lambda rows: 0 < sum(good for _, good in rows) < len(rows)))
def test_no_threshold_has_a_smaller_error(rows):
    scores, good = (np.array(each) for each in zip(*rows))

    def error(threshold):
        return np.mean(scores[good] < threshold) + np.mean(scores[~good] >= threshold)

    found = refusal.best_threshold(scores, good)
    values = np.unique(scores)
    others = [values[0] - 1, *(values[1:] + values[:-1]) / 2, values[-1] + 1]
    assert all(error(found) <= error(other) + 1e-12 for other in others)


def test_calibration_of_scores_that_part_cleanly():
    scores, good = [*np.linspace(0.6, 0.9, 20), *np.linspace(0.1, 0.4, 20)], [True] * 20 + [False] * 20
    found = refusal.calibrate(scores, good)
    assert found.threshold == approx(0.5) and (found.error, found.refused, found.passed) == (0, 0, 0)
    assert (found.n_good, found.n_other) == (20, 20)


def test_the_error_is_that_of_thresholds_which_have_not_seen_what_they_judge():
    """Scores that say nothing: on themselves a threshold looks better than chance, on others it is no better."""
    random = np.random.default_rng(0)
    scores, good = random.random(400), np.arange(400) % 2 == 0
    own = refusal.best_threshold(scores, good)
    seen = ((scores[good] < own).mean() + (scores[~good] >= own).mean()) / 2
    assert seen < 0.48 < refusal.calibrate(scores, good).error


def test_a_folds_own_scores_do_not_count():
    """One good score far below: its own fold must judge it by the others, and refuse it."""
    scores, good = [0.05, *[0.9] * 9, *[0.1] * 10], [True] * 10 + [False] * 10
    found = refusal.calibrate(scores, good)
    assert found.refused == 1 / 10 and found.recall == 1 and found.precision == 10 / (10 + 1)


@pytest.mark.parametrize("scores, good", [([0.1, float("nan")], [True, False]), ([0.1, 0.2], [True]),
                                          ([0.1, 0.2], [True, True]), ([0.1, 0.2], [True, False])])
def test_what_cannot_be_calibrated(scores, good):
    with pytest.raises(ValueError):
        refusal.calibrate(scores, good)


def test_no_good_ones_no_auroc():
    with pytest.raises(ValueError, match="some of each"):
        refusal.auroc([], [0.1])


# -- What is kept ------------------------------------------------------------------------------------------------------


def test_the_kept_thresholds_say_where_they_come_from_and_the_reader_uses_its_own():
    kept = json.loads(refusal.THRESHOLDS.read_text())
    assert "python refusal.py" in kept["made by"] and set(kept["thresholds"]) == {"maxsim", "reader"}
    for name, each in kept["thresholds"].items():
        assert refusal.threshold(name, "all-MiniLM-L6-v2") == each["threshold"] and 0 < each["error"] < 0.5
    assert reader.THRESHOLD == approx(kept["thresholds"]["reader"]["threshold"], abs=0.005)
    assert f"{kept['thresholds']['maxsim']['threshold']:.3f}" in refusal.RESULT.read_text()


def test_another_scorer_has_no_threshold():
    with pytest.raises(ValueError, match="no threshold was calibrated for 'cross-encoder', only for maxsim, reader"):
        refusal.threshold("cross-encoder", "all-MiniLM-L6-v2")
    with pytest.warns(UserWarning, match="calibrated for all-MiniLM-L6-v2, not toy"):
        assert refusal.threshold("maxsim", "toy") is None


def test_signals_and_the_report(embedder):
    texts = {"pets": "# Pets\n\nThe cat weighs 4 kg. The dog sleeps.\n", "oil": "# Oil\n\nOil rose. Gold fell.\n"}
    docs = [{"id": name, "title": text.split()[1], "text": text, "doc_type": "md"} for name, text in texts.items()]
    made = corpus.open_index(docs, embedder)
    asked = [{"question": "How much does the cat weigh?", "type": "exact", "doc_id": "pets",
              "evidence": [{"doc_id": "pets", "quote": "The cat weighs 4 kg."}]},
             {"question": "How much does the zebra weigh?", "type": "unanswerable-near", "evidence": []},
             {"question": "Who is the king of France?", "type": "unanswerable-far", "evidence": []}]
    rows = refusal.measure(asked, made, texts)
    assert [(kind, right) for kind, _, right in rows] == [("answerable", True), ("near", False), ("far", False)]
    words = "least of the question's content words, in the chunk that has most of it"
    cat, zebra, king = (found for _, found, _ in rows)
    assert cat[words] > zebra[words] and cat["best chunk, MaxSim"] > king["best chunk, MaxSim"]
    text, found = refusal.report(rows * 10)
    assert "| best chunk, MaxSim | 1.000 |" in text and "0 of 10 answerable, 10 of 10 far" in text
    assert found["maxsim"].refused == found["maxsim"].passed == 0
