"""Rankings of a corpus whose evidence can be counted by hand."""

import re

import numpy as np
import pytest
from pytest import approx
from types import SimpleNamespace

import eval_rankings

TEXTS = {"cats": ["Cats sleep all day.", "Cats eat fish at night."], "dogs": ["Dogs chase cats.", "Dogs eat meat."],
         "oil": ["Oil rose by 3%."], "gold": ["Gold fell by 4%."]}


def corpus(*evidence):
    """The texts above, one chunk each, a blank between two of a document; evidence: for each question its pieces."""
    chunks = []
    for doc_id, texts in TEXTS.items():
        for position, text in enumerate(texts):
            start = position * (len(texts[0]) + 1)
            chunks.append({"id": f"{doc_id}#{position}", "doc_id": doc_id, "start": start, "end": start + len(text)})
    return SimpleNamespace(chunks=chunks, evidence=list(evidence))


BOTH, OIL = [[("cats", 29, 33)], [("dogs", 26, 30)]], [[("oil", 9, 14)]]        # "fish" and "meat"; "by 3%"


def test_gains_are_shares_of_the_pieces():
    judgements = eval_rankings.judged(corpus(BOTH, OIL))
    assert judgements[0] == ({"cats#1": 0.5, "dogs#1": 0.5}, {"cats#1", "dogs#1"})
    assert judgements[1] == ({"oil#0": 1.0}, {"oil#0"})


def test_a_piece_that_is_cut_is_gained_in_part_and_held_by_nobody():
    cut = corpus([[("cats", 15, 24)]])                                 # "day.\nCats": 4 + 4 of 9 characters
    assert eval_rankings.judged(cut) == [({"cats#0": approx(4 / 9), "cats#1": approx(4 / 9)}, set())]
    found = eval_rankings.quality(cut, [["cats#0", "cats#1"]], eval_rankings.judged(cut))
    assert found["recall@1"].tolist() == [approx(4 / 9)] and found["recall@3"].tolist() == [approx(8 / 9)]
    assert found["MRR"].tolist() == [0]


def test_what_no_chunk_holds_cannot_be_found():
    between = corpus([[("cats", 19, 20)]])                             # the blank
    found = eval_rankings.quality(between, [["cats#0"]], eval_rankings.judged(between))
    assert {name: values.tolist() for name, values in found.items()} == {name: [0] for name in found}


def test_figures_by_hand():
    two = corpus(BOTH, OIL)
    found = eval_rankings.quality(two, [["dogs#1", "oil#0", "cats#1"], ["gold#0", "cats#0", "cats#1", "oil#0"]],
                                  eval_rankings.judged(two))
    assert [found[f"recall@{k}"].tolist() for k in (1, 3, 5)] == [[0.5, 0], [1, 0], [1, 1]]
    assert found["MRR"].tolist() == [1, 1 / 4]
    best, ours = 0.5 + 0.5 / np.log2(3), 0.5 + 0.5 / np.log2(4)
    assert found["nDCG@10"].tolist() == approx([ours / best, 1 / np.log2(5)])
    assert set(eval_rankings.MEASURES) <= found.keys() and eval_rankings.POOL in eval_rankings.AT


def test_a_group_is_resampled_whole():
    assert eval_rankings.cluster_interval([0.25] * 9, list("aabbccdde")) == (0.25, 0.25)
    # five groups of one question, five times as sure as five groups that each hold it thrice? no: just as sure
    once, thrice = [1, 0, 0, 1, 0], [1, 0, 0, 1, 0] * 3
    assert eval_rankings.cluster_interval(thrice, list("abcde") * 3) == eval_rankings.cluster_interval(once, list("abcde"))
    low, high = eval_rankings.cluster_interval([1, 1, 1, 1, 0, 0, 0, 0], list("aaaabcde"))
    assert (low, high) == (0, approx(12 / 14))          # three times "a" and two others: a mean of questions, not groups


def test_too_few_groups_are_refused():
    with pytest.raises(ValueError, match="4 groups are too few"):
        eval_rankings.cluster_interval([1, 0, 1, 0], list("abcd"))


def test_a_difference_is_marked_where_it_is_shown():
    assert eval_rankings.gained([0.5] * 6, [0.25] * 6) == "+0.250 (+0.250 to +0.250) **"
    assert eval_rankings.gained([0.25] * 6, [0.5] * 6).endswith("**")
    assert re.fullmatch(r"\+0\.000 \(-0\.\d+ to \+0\.\d+\)", eval_rankings.gained([0, 1] * 5, [1, 0] * 5))
    assert eval_rankings.gained([1], [0]) == "+1.000 (too few questions for an interval)"
