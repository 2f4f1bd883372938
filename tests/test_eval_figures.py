"""A figure that moves is named, with how far; one that stays within its tolerance is not."""

import pytest

import eval_figures

KEPT = {"hit rate": {"value": 0.9, "tolerance": 0.0375}, "tokens": {"value": 1434.3, "tolerance": 14.3}}


def found(hit_rate=0.9, tokens=1434.3):
    return {"hit rate": eval_figures.share(hit_rate, 40), "tokens": eval_figures.amount(tokens)}


def test_one_question_may_tip_and_two_may_not():
    assert found() == KEPT
    assert eval_figures.moved(KEPT, found(0.9 + 1 / 40)) == eval_figures.moved(KEPT, found(0.9 - 1 / 40)) == []
    assert eval_figures.moved(KEPT, found(0.9 - 2 / 40)) == [
        "hit rate moved from 0.9 to 0.85, by -0.05: 0.0125 beyond its tolerance of 0.0375"]
    assert len(eval_figures.moved(KEPT, found(0.9 + 2 / 40))) == 1     # better is a move, too


def test_an_amount_may_move_by_a_hundredth():
    assert eval_figures.moved(KEPT, found(tokens=1434.3 + 14.3)) == []
    [said] = eval_figures.moved(KEPT, found(tokens=1400))
    assert said == "tokens moved from 1434.3 to 1400, by -34.3: 20 beyond its tolerance of 14.3"


def test_the_committed_tolerance_counts_and_not_the_new_one():
    loose = {"hit rate": {"value": 0.5, "tolerance": 1.0}}
    assert len(eval_figures.moved(KEPT, loose)) == 1


def test_an_unknown_figure_and_one_that_is_no_number():
    assert eval_figures.moved({}, found()) == [
        f"{name} is not in figures.json: `python eval_answers.py` writes it" for name in ("hit rate", "tokens")]
    assert eval_figures.moved(KEPT | {"other": KEPT["hit rate"]}, found()) == []       # not measured this time
    [said] = eval_figures.moved(KEPT, {"hit rate": {"value": float("nan"), "tolerance": 0.0}})
    assert "to nan" in said


def test_what_is_written_is_read(tmp_path):
    eval_figures.write(KEPT, "by hand", tmp_path / "figures.json")
    assert eval_figures.read(tmp_path / "figures.json") == KEPT


@pytest.mark.parametrize("name", ["hit rate at 8", "citation accuracy", "refusal correctness"])
def test_what_must_be_guarded_is_kept_by_name(name):
    kept = eval_figures.read()
    for which in ("all questions", "every fourth question"):
        assert 0 < kept[f"{name}, {which}"]["value"] <= 1 and kept[f"{name}, {which}"]["tolerance"] < 0.2
