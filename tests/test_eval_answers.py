"""Answers made by hand: what is right, where it was lost, what counts; and the figures that must not move."""

import copy
import functools
import json
import re
import warnings

import numpy as np
import pytest
from pytest import approx

import answering
import documents
import eval_answers
import eval_figures
import eval_questions
import grading
import prompt
from answering import BELOW, SAID

LEAVE = "Up to five days of leave\n  roll over. They expire in March."      # starts at 100
TRAVEL = "Per diem is 40 euros."                                            # starts at 0
FIVE, MARCH, EURO = ("leave", 100, 137), ("leave", 138, 159), ("travel", 12, 20)


def outcome(text="", pieces=((FIVE,),), packed=("leave", "travel"), refused="", whole=True, pool=None, k=8, kind="exact",
            answer="5 days"):
    """What the pipeline made of a question: the spans of the two chunks are their whole texts."""
    bodies = {"leave": (100, LEAVE), "travel": (0, TRAVEL)}
    spans = {name: (name, start, start + len(body)) for name, (start, body) in bodies.items()}
    sources = [prompt.Source(f"S{number}", name, bodies[name][1], [
        {"doc_id": name, "start": spans[name][1], "end": spans[name][2], "body": bodies[name][1]}])
        for number, name in enumerate(packed, start=1)]
    sent = prompt.Prompt("rules", "x" * 75, sources, [], 33) if packed else None
    read = answering.Answer(text, [], refused, sources, {}, {}, "", [], [], [], "", sent)
    pieces = None if pieces is None else [list(copies) for copies in pieces]
    evidence = [{"doc_id": "leave", "quote": "x"}] if pieces != [] else []
    return eval_answers.Outcome({"id": "q", "question": "?", "type": kind, "evidence": evidence, "answer": answer},
                                pieces, whole, [spans[name] for name in pool or ("leave", "travel")], k, read)


RIGHT = "Up to five days of leave roll over. [S1]"


def test_quotes_are_found_in_the_sources_they_cite():
    made = outcome(f"{RIGHT}\n\nAn older version says: Per diem is 40 euros. [S2]\n\nPer diem is 40 euros. [S1]")
    assert eval_answers.quotes(made.answer) == [[FIVE], [("travel", 0, 21)], []]
    assert eval_answers.quotes(outcome("I could not find this.", refused=SAID).answer) == []


def test_right_is_the_share_of_the_pieces_that_are_quoted():
    both = ((FIVE,), (MARCH,))
    assert eval_answers.right(outcome(RIGHT)) == 1
    assert eval_answers.right(outcome(RIGHT, both)) == 1 / 2
    assert eval_answers.right(outcome(f"{RIGHT}\n\nThey expire in March. [S1]", both)) == 1
    assert eval_answers.right(outcome(RIGHT, ((EURO, FIVE),))) == 1    # one copy is enough
    assert eval_answers.right(outcome("Per diem is 40 euros. [S2]")) == 0


def test_half_of_the_shorter_one_is_enough():
    assert eval_answers.shares([("d", 0, 10)], [("d", 5, 15)]) and not eval_answers.shares([("d", 0, 10)], [("d", 6, 16)])
    assert eval_answers.shares([("d", 0, 100)], [("d", 96, 104)])      # 4 of 8
    assert eval_answers.shares([("d", 96, 104)], [("d", 0, 100)])
    assert not eval_answers.shares([("d", 0, 10)], [("e", 0, 10)]) and not eval_answers.shares([], [("d", 0, 9)])


def test_where_each_was_lost():
    far = ("travel", "leave")
    assert eval_answers.lost(outcome(RIGHT)) == ""
    assert eval_answers.lost(outcome(RIGHT, pieces=None)) == "parser"
    assert eval_answers.lost(outcome("Per diem is 40 euros. [S1]", packed=("travel",), whole=False)) == "chunker"
    assert eval_answers.lost(outcome("Per diem is 40 euros. [S1]", packed=("travel",), pool=("travel",))) == "pool"
    assert eval_answers.lost(outcome("Per diem is 40 euros. [S1]", packed=("travel",), pool=far, k=1)) == "top k"
    assert eval_answers.lost(outcome("Per diem is 40 euros. [S1]", packed=("travel",))) == "packing"
    assert eval_answers.lost(outcome("No.", packed=(), refused=BELOW)) == "guard"
    assert eval_answers.lost(outcome("No.", packed=(), refused=BELOW, pool=far, k=1)) == "top k"
    assert eval_answers.lost(outcome("No.", refused=SAID)) == "refused"
    assert eval_answers.lost(outcome("Per diem is 40 euros. [S2]")) == "misread"
    assert eval_answers.lost(outcome(RIGHT, ((FIVE,), (MARCH,)))) == "misread"          # half of it
    assert eval_answers.lost(outcome("Per diem is 40 euros. [S2]", whole=False)) == "misread"    # all parts were packed


def test_measures_by_hand():
    made = eval_answers.measures(outcome(f"{RIGHT}\n\nPer diem is 40 euros. [S1]"))
    assert (made["packed"], made["answered"], made["first quote"], made["any quote"], made["right"]) == (1, 1, 1, 1, 1)
    assert made["citation precision"] == 1 / 2 and made["cited evidence"] == 1 / 2      # the second stands elsewhere
    assert made["F1"] == approx(2 * 1 / (8 + 5 + 2)) and made["EM"] == 0                # "days" of 13 words and 2
    assert made["word pieces"] == 33


def test_a_refusal_is_wrong_and_its_citations_are_undefined():
    made = eval_answers.measures(outcome("I could not find this in the available documents.", refused=SAID, answer="find"))
    assert (made["F1"], made["right"], made["answered"], made["packed"]) == (0, 0, 0, 1)
    assert made["citation precision"] is made["cited evidence"] is None
    assert eval_answers.measures(outcome("No.", packed=(), refused=BELOW))["word pieces"] is None
    assert eval_answers.measures(outcome(RIGHT, answer=None))["F1"] is None             # nobody wrote one


def unanswerable(refused, kind="near"):
    return outcome(RIGHT, pieces=(), refused=refused, kind=f"unanswerable-{kind}", answer=None)


def test_refusals_are_right_only_where_there_is_no_answer():
    asked = [outcome(RIGHT), *[outcome("No.", refused=SAID)] * 3, unanswerable(""), unanswerable(SAID),
             *[unanswerable(BELOW, "far")] * 2]
    assert eval_answers.refusals(asked) == grading.Refusals(1, 3, 1, 3)
    text = eval_answers.refusal_text(asked)
    assert "of the unanswerable questions alone: 0.750 of 4 (near 0.500 of 2, far 1.000 of 2)" in text
    assert "answered in vain: 0.250 of 4" in text and "refused in vain: 0.750 of 4" in text
    assert "the share that was right: 0.500" in text                   # 3 of 6
    table = eval_answers.refusal_table({8: asked})
    assert "| answerable, k = 8 | 4 | 1 | 0 | 3 |" in table and "| far, k = 8 | 2 | 0 | 2 | 0 |" in table


def test_the_table_of_losses_adds_up():
    asked = {8: [outcome(RIGHT), outcome("No.", refused=SAID), outcome(RIGHT, pieces=None, kind="table"), unanswerable("")]}
    rows = eval_answers.losses_table(asked).splitlines()
    assert rows[2] == "| exact, k = 8 | 2 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1 | 0 |"
    assert rows[3] == "| table, k = 8 | 1 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |"
    assert rows[4] == "| all, k = 8 | 3 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 1 | 0 |"


def test_reading_is_judged_where_the_evidence_was_packed_and_neighbours_where_both_are_defined():
    few = {"packed": [1, 0, 1, 0, 0, 0], "right": [1, 0, 0, 0, 0, 0], "F1": [None, 1, 1, 1, 1, 1]}
    many = {"packed": [1] * 6, "right": [1] * 6, "F1": [1, None, 0, 0, 0, 0]}
    table = eval_answers.quality_table({3: few, 20: many})
    assert table.splitlines()[2] == "| 3 | 0.333 | 0.167 | 1.000 | 0.500 |"
    [row] = eval_answers.neighbours_table({3: few, 20: many}, ("right", "F1")).splitlines()[2:]
    assert row.startswith("| 3 to 20 | +0.833 (") and row.endswith("| -1.000 (too few questions for an interval), no "
                                                                  "difference shown |")


def test_figures_by_hand():
    asked = [outcome(RIGHT, pool=("travel", "leave")), outcome("Per diem is 40 euros. [S2]", pool=("travel",)),
             unanswerable(SAID), unanswerable("")]
    found = {name.removesuffix(", here"): each["value"] for name, each in eval_answers.figures(asked, "here").items()}
    assert found["hit rate at 8"] == found["recall at 50"] == found["right answers"] == 1 / 2
    assert (found["citation accuracy"], found["cited evidence"]) == (1, 1 / 2)
    assert (found["refusal correctness"], found["refused in vain"], found["word pieces of a prompt"]) == (1 / 2, 0, 33)


def test_nothing_is_embedded_twice():
    class Counting:
        name, dimensions, count = "counting", 2, 0

        def encode(self, texts, kind, batch_size=None):
            self.count += len(texts)
            return np.array([[len(text), kind == "query"] for text in texts], np.float32)

        def token_vectors(self, text, kind="document"):
            self.count += 1
            return text

    counting = Counting()
    made = eval_answers.Remembering(counting)
    assert made.encode(["a", "bb", "a"]).tolist() == [[1, 0], [2, 0], [1, 0]] and counting.count == 2
    assert made.encode(["bb", "a"], "query").tolist() == [[2, 1], [1, 1]] and counting.count == 4
    assert made.encode([]).shape == (0, 2) and made.token_vectors("a") == made.token_vectors("a") == "a"
    assert counting.count == 5 and made.name == "counting"


# -- The whole of it ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asked(descriptions):
    """Every fourth question, at the default k."""
    questions, index = eval_questions.load_questions()[::eval_answers.EVERY], copy.copy(descriptions[1])
    index.embedder = eval_answers.Remembering(index.embedder)
    return eval_answers.ask_all(questions, documents.load_descriptions(), index, (eval_answers.K,))[eval_answers.K]


def test_no_figure_has_moved(asked):
    said = eval_figures.moved(eval_figures.read(), eval_answers.figures(asked, "every fourth question"))
    assert not said, "\n".join(said)


def test_the_guard_fails_when_a_figure_moves(asked):
    found = eval_answers.figures(asked, "every fourth question")
    assert {f"{name}, every fourth question" for name in ("hit rate at 8", "citation accuracy", "refusal correctness")} < (
        found.keys())
    for name, figure in found.items():
        kept = eval_figures.read() | {name: {**figure, "value": figure["value"] - 2 * figure["tolerance"]}}
        [said] = eval_figures.moved(kept, found)
        assert said.startswith(f"{name} moved from ") and "beyond its tolerance" in said


def test_an_answer_that_quotes_the_wrong_sentence_moves_a_figure(asked):
    """Not the file is changed, but the reader: each answer becomes the next question's."""
    worse = [each._replace(answer=other.answer) for each, other in zip(asked, asked[1:] + asked[:1])]
    said = eval_figures.moved(eval_figures.read(), eval_answers.figures(worse, "every fourth question"))
    assert any(each.startswith("right answers") for each in said)


def test_asking_is_what_the_pipeline_does(asked, descriptions):
    _, index = descriptions
    reader = functools.partial(answering.extractive, embedder=index.embedder)
    for each in asked[:3]:
        answer = answering.ask(each.question["question"], index, reader=reader)
        assert answer.text == each.answer.text and answer.refused == each.answer.refused
        assert [hit.chunk["id"] for hit in answer.hits] == [hit.chunk["id"] for hit in each.answer.hits]
        assert each.pool[:8] == [(hit.chunk["doc_id"], hit.chunk["start"], hit.chunk["end"]) for hit in answer.hits]


def test_results_and_figures_were_made_together():
    text, kept = (eval_answers.RESULTS / "answers.md").read_text(encoding="utf-8"), eval_figures.read()
    correct = kept["refusal correctness, all questions"]["value"]
    assert f"of the unanswerable questions alone: {correct:.3f}" in text
    assert json.loads(eval_figures.FIGURES.read_text())["made by"] in text
    [row] = re.findall(r"^\| 8 \| 0\..*$", text, re.MULTILINE)[:1]
    assert f"| {kept['right answers, all questions']['value']:.3f} |" in row


def test_own_documents(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pets.md").write_text("# Pets\n\nThe cat weighs 4 kg. The dog sleeps.\n", encoding="utf-8")
    rows = [{"question": "How many kg does the cat weigh?", "evidence": [{"doc_id": "pets.md", "quote": "weighs 4 kg"}]},
            {"question": "Which page has the table?", "evidence": [{"doc_id": "pets.md", "quote": "lost by the parser"}]},
            {"question": "Who is the king of France?", "evidence": []}]
    file = tmp_path / "own.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert eval_answers.main(["--docs", str(tmp_path / "docs"), "--questions", str(file)]) == 0
    text = capsys.readouterr().out
    assert "| all, k = 8 | 2 | 1 | 1 | 0 |" in text and "refusal correctness" not in text.split("k = 8. ")[0]
    file.write_text(json.dumps(rows[2]), encoding="utf-8")
    assert eval_answers.main(["--docs", str(tmp_path / "docs"), "--questions", str(file)]) == 1
    assert "no question has evidence" in capsys.readouterr().err


def test_options_that_do_not_go_together(capsys):
    for arguments in (["--docs", "x"], ["--questions", "x"], ["--docs", "x", "--questions", "y", "--check"]):
        with pytest.raises(SystemExit):
            eval_answers.main(arguments)
    assert "belong together" in capsys.readouterr().err


def test_the_picture_is_drawn(tmp_path):
    values = {k: {name: [0.0, 1.0, 1.0, 0.0, k / 20] for name in ("packed", "any quote", "right", "F1")} | {
        "word pieces": [None, 100 * k, 150 * k]} for k in (3, 20)}
    eval_answers.plot(values, "made by hand", tmp_path / "answers.png")
    from matplotlib import image
    height, width, _ = image.imread(tmp_path / "answers.png").shape
    assert width > height > 300
