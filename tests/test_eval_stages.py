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


def test_stages_are_settings_of_the_search():
    index = eval_stages.indexes(corpus(), Embedder())
    assert {name: each.title_boost for name, each in index.items()} == {"plain": 0, "context": 0, "title 1": 1, "title 3": 3}
    assert all(stage.on in eval_stages.STAGES and stage.index in index for stage in eval_stages.STAGES.values())
    lexical = eval_stages.rankings(eval_stages.STAGES["lexical"], corpus(), index["plain"], None)
    assert lexical[1][0] == "dogs#0" and lexical[3] == ["oil#0"]        # no other chunk has "oil"
    boosted = eval_stages.rankings(eval_stages.STAGES["lexical"], corpus(), index["title 3"], None)
    assert boosted[1][:2] == ["dogs#0", "dogs#1"]


def test_a_rare_word_weighs_more():
    weights = eval_stages.piece_weights("Who ate gold?", [(0, 3), (4, 7), (8, 10), (10, 12), (12, 13)], ["gold", "Who ate", "who"])
    who, ate, go, ld, mark = weights.tolist()
    assert sum(weights) == approx(1) and mark < who < ate and go == ld == ate          # one text has "ate", one "gold"
    assert who / mark == approx(1 + np.log(1 + (3 - 2 + 0.5) / (2 + 0.5)))


def test_a_scorer_remembers_pairs():
    seen = []

    def score(question, texts):
        seen.append((question, tuple(texts)))
        return [len(question) + len(text) for text in texts]
    scorer = eval_stages.remembered(score)
    assert scorer("a", ["b", "cc"]) == [2, 3] and scorer("a", ["cc", "ddd"]) == [3, 4] and scorer("aa", ["b"]) == [3]
    assert scorer("a", []) == [] and seen == [("a", ("b", "cc")), ("a", ("ddd",)), ("aa", ("b",))]


def test_every_stage_is_measured_for_every_question(measured):
    assert measured.values.keys() == measured.found.keys() == eval_stages.STAGES.keys()
    for values in measured.values.values():
        assert {len(each) for each in values.values()} == {len(QUESTIONS)}
        assert (values["recall@1"] <= values["recall@3"]).all() and (values["recall@3"] <= values["recall@5"]).all()
    assert measured.values["MaxSim"]["recall@5"].mean() > 0.8


def test_the_report_says_what_was_measured(measured):
    text = eval_stages.report([measured], Embedder())
    row = next(line for line in text.splitlines() if line.startswith("| MaxSim | "))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1] == f"{measured.values['MaxSim']['recall@1'].mean():.3f}" and cells[9] == "RRF"
    assert text.count("| multi | 1 | ") == len(eval_stages.SIX) and text.count("| 50 | ") == 1
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


def test_by_type_each_of_six_stages_has_its_own_means(measured):
    text = eval_stages.kinds_table(measured)
    rows = {tuple(row[:3]): row[3:] for row in (
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:])}
    assert len(rows) == 2 * 6                                          # exact and multi
    exact = np.array([kind == "exact" for *_, kind in QUESTIONS])
    for kind, these in (("exact", exact), ("multi", ~exact)):
        for stage, name in eval_stages.SIX.items():
            shown = rows[kind, str(these.sum()), name]
            assert shown == [f"{measured.values[stage][each][these].mean():.3f}" for each in eval_stages.MEASURES]
    assert {"recall@3", "recall@5", "recall@8", "recall@12", "recall@50", "MRR", "nDCG@10"} < set(eval_stages.MEASURES)


def test_the_pictures_are_drawn(measured, tmp_path):
    from matplotlib import image
    for draw in (eval_stages.plot, eval_stages.plot_curves):
        draw([measured, measured], tmp_path / "stages.png")
        height, width, _ = image.imread(tmp_path / "stages.png").shape
        assert width > height > 300
