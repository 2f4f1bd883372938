"""A tiny corpus whose figures can be worked out by hand goes through every stage; the tables say what was measured."""

import re

import numpy as np
import pytest
from pytest import approx

import eval_stages
import metrics
from eval_corpora import Labelled
from toy import Embedder

TEXTS = {"cats": ["Cats sleep all day.", "Cats eat fish at night."], "dogs": ["Dogs chase cats.", "Dogs eat meat."],
         "oil": ["Oil rose by 3%."], "gold": ["Gold fell by 4%."], "rain": ["Rain fell on Monday."]}
QUESTIONS = [  # question, evidence: for each piece (document, quote), type
    ("Who eats fish at night?", [("cats", "eat fish")], "exact"), ("Whom do dogs chase?", [("dogs", "chase cats")], "exact"),
    ("What do cats and dogs eat?", [("cats", "fish"), ("dogs", "meat")], "multi"),
    ("How much did oil rise?", [("oil", "by 3%")], "exact"), ("How much did gold fall?", [("gold", "by 4%")], "exact"),
    ("When did rain fall?", [("rain", "Monday")], "exact")]


def corpus():
    chunks, joined = [], {doc_id: "\n".join(texts) for doc_id, texts in TEXTS.items()}
    for doc_id, texts in TEXTS.items():
        for position, text in enumerate(texts):
            start = joined[doc_id].index(text)
            chunks.append({"id": f"{doc_id}#{position}", "doc_id": doc_id, "position": position, "title": doc_id,
                           "text": text, "body": text, "start": start, "end": start + len(text)})
    evidence = [[metrics.find_copies(quote, {doc_id: joined[doc_id]}) for doc_id, quote in pieces]
                for _, pieces, _ in QUESTIONS]
    return Labelled("toy", chunks, [{**chunk, "context": f"About {chunk['doc_id']}."} for chunk in chunks],
                    [each[0] for each in QUESTIONS], evidence, [each[2] for each in QUESTIONS],
                    [each[1][0][0] for each in QUESTIONS], [{"doc_id": each[1][0][0]} for each in QUESTIONS])


@pytest.fixture(scope="module")
def measured():
    return eval_stages.measure(corpus(), Embedder())


def test_gains_are_shares_of_the_pieces():
    judgements = eval_stages.judged(corpus())
    assert judgements[2] == ({"cats#1": 0.5, "dogs#1": 0.5}, {"cats#1", "dogs#1"})
    assert judgements[3] == ({"oil#0": 1.0}, {"oil#0"})


def test_a_piece_that_is_cut_is_gained_in_part_and_held_by_nobody():
    cut = corpus()._replace(evidence=[[[("cats", 15, 24)]]])            # "day.\nCats": 4 + 4 of 9 characters
    assert eval_stages.judged(cut) == [({"cats#0": approx(4 / 9), "cats#1": approx(4 / 9)}, set())]


def test_figures_by_hand():
    small = corpus()
    two = small._replace(questions=small.questions[2:4], evidence=small.evidence[2:4])
    found = eval_stages.quality(two, [["dogs#1", "oil#0", "cats#1"], ["gold#0", "cats#0", "cats#1", "oil#0"]],
                                eval_stages.judged(two))
    assert [found[f"recall@{k}"].tolist() for k in (1, 3, 5)] == [[0.5, 0], [1, 0], [1, 1]]
    assert found["MRR"].tolist() == [1, 1 / 4]
    best, ours = 0.5 + 0.5 / np.log2(3), 0.5 + 0.5 / np.log2(4)
    assert found["nDCG@10"].tolist() == approx([ours / best, 1 / np.log2(5)])


def test_stages_are_settings_of_the_search():
    index = eval_stages.indexes(corpus(), Embedder())
    assert {name: each.title_boost for name, each in index.items()} == {"plain": 0, "context": 0, "title 1": 1, "title 3": 3}
    assert all(stage.on in eval_stages.STAGES and stage.index in index for stage in eval_stages.STAGES.values())
    lexical = eval_stages.rankings(eval_stages.STAGES["lexical"], corpus(), index["plain"], None)
    assert lexical[1][0] == "dogs#0" and lexical[3] == ["oil#0"]        # no other chunk has "oil"
    boosted = eval_stages.rankings(eval_stages.STAGES["lexical"], corpus(), index["title 3"], None)
    assert boosted[1][:2] == ["dogs#0", "dogs#1"]


def test_every_stage_is_measured_for_every_question(measured):
    assert measured.values.keys() == measured.found.keys() == eval_stages.STAGES.keys()
    for values in measured.values.values():
        assert {len(each) for each in values.values()} == {len(QUESTIONS)}
        assert (values["recall@1"] <= values["recall@3"]).all() and (values["recall@3"] <= values["recall@5"]).all()
    assert measured.values["MaxSim"]["recall@5"].mean() > 0.8


def test_a_group_is_resampled_whole():
    assert eval_stages.cluster_interval([0.25] * 9, list("aabbccdde")) == (0.25, 0.25)
    # five groups of one question, five times as sure as five groups that each hold it thrice? no: just as sure
    once, thrice = [1, 0, 0, 1, 0], [1, 0, 0, 1, 0] * 3
    assert eval_stages.cluster_interval(thrice, list("abcde") * 3) == eval_stages.cluster_interval(once, list("abcde"))
    low, high = eval_stages.cluster_interval([1, 1, 1, 1, 0, 0, 0, 0], list("aaaabcde"))
    assert (low, high) == (0, approx(12 / 14))          # three times "a" and two others: a mean of questions, not groups


def test_too_few_groups_are_refused():
    with pytest.raises(ValueError, match="4 groups are too few"):
        eval_stages.cluster_interval([1, 0, 1, 0], list("abcd"))


def test_the_report_says_what_was_measured(measured):
    text = eval_stages.report([measured], Embedder())
    row = next(line for line in text.splitlines() if line.startswith("| MaxSim | "))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1] == f"{measured.values['MaxSim']['recall@1'].mean():.3f}" and cells[8] == "RRF"
    assert "| multi | 1 |" in text and text.count("| 50 | ") == 1
    assert not re.search(r"nan|[{}]", text)


def test_why_fusing_hurts_is_counted():
    small = corpus()
    judgements = eval_stages.judged(small)
    right = [list(gains)[:1] for gains, _ in judgements]
    found = {"dense": right, "lexical": [[]] * 6, "RRF": [["rain#0"], ["rain#0"], *right[2:]]}
    values = {name: eval_stages.quality(small, each, judgements) for name, each in found.items()}
    text = eval_stages.fusion_explained(eval_stages.Measured(small, {}, {}, judgements, found, values))
    assert "toy, recall@1: dense 0.917, lexical 0.000, RRF 0.583." in text
    assert "gains 0 questions over dense and loses 2" in text and "at rank beyond 50 (2)" in text and "exact (2)" in text
    assert "In 2 of them RRF's first chunk has no word of the question but stop words" in text


def test_times_of_a_new_question_do_not_use_what_was_kept(measured):
    plain = measured.indexes["plain"]
    kept = eval_stages.without_memory(plain, Embedder(), True)
    computed = eval_stages.without_memory(plain, Embedder(), False)
    assert kept.token_store.kept and not computed.token_store.kept and computed.token_store.budget == 0
    times, parts = eval_stages.milliseconds(computed, ["Who eats fish?"])
    assert times.shape == (1,) and parts.keys() == {"rewrite", "retrieve", "fuse", "rerank"}


def test_the_picture_is_drawn(measured, tmp_path):
    eval_stages.plot([measured, measured], tmp_path / "stages.png")
    from matplotlib import image
    height, width, _ = image.imread(tmp_path / "stages.png").shape
    assert width > height > 300
