"""Own documents: the figures are those of the measures, and bad input ends with a message that says what to mend."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

import eval_chunk_sizes
import eval_own
import metrics
import rag
from eval_spans import Cut
from toy import Embedder

TEXTS = {"pets": "# Pets\n\nThe cat sat on the mat.\n\nThe dog chased the cat.\n\nBirds fly high.",
         "oil": "# Oil\n\nThe price of oil rose.\n\nGold fell, and so did silver."}
ASKED = [("Where did the cat sit?", "sat on the mat", "pets"), ("Who chased the cat?", "The dog", "pets"),
         ("What do birds do?", "Birds fly", "pets"), ("What rose?", "price of oil", "oil"),
         ("What fell?", "Gold fell", "oil"), ("And silver?", "so did silver", "oil")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(rag, "embedder", Embedder)
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.md").write_text(text)
    return tmp_path


def as_jsonl(rows=ASKED):
    return "".join(json.dumps({"question": question, "evidence": [{"doc_id": f"{name}.md", "quote": quote}]}) + "\n"
                   for question, quote, name in rows)


def as_csv(rows=ASKED):
    lines = ["question,references,corpus_id"]
    for question, quote, name in rows:
        start = TEXTS[name].index(quote)
        references = json.dumps([{"content": quote, "start_index": start, "end_index": start + len(quote)}])
        lines.append(f'{question},"' + references.replace('"', '""') + f'",{name}')
    return "\n".join(lines) + "\n"


def run(folder, questions, *options, name="asked.jsonl"):
    path = folder.parent / f"{folder.name}-{name}"
    path.write_text(questions)
    return eval_chunk_sizes.main(["--docs", str(folder), "--questions", str(path), *options])


pytestmark = pytest.mark.filterwarnings("ignore:.*everything is read")
KEYS = {"recall_mean", "recall_sd", "precision_mean", "iou_mean", "precision_omega_mean", "questions", "chunks", "seconds"}


def result(recall, precision):
    values = dict.fromkeys(("IoU", "omega", "MRR", "words"), np.ones(len(recall)))
    return eval_own.Result(Cut(), "bm25", 9, values | {"recall": np.array(recall), "precision": np.array(precision)}, 1.0)


def test_means_and_deviations_by_hand():
    found = result([1.0, 0, 0.5, 0.5, 0.5], [0.5, np.nan, 0.25, 0.25, 0.5]).figures()
    assert (found["recall_mean"], found["recall_sd"]) == (0.5, approx(np.sqrt((0.25 + 0.25) / 5)))
    assert (found["precision_mean"], found["undefined"]) == ((0.5 + 0.25 + 0.25 + 0.5) / 4, 1)
    assert found["recall_interval"] is not None


def test_too_few_are_not_spread():
    assert result([1.0], [1.0]).figures()["recall_sd"] is None
    assert result([1.0] * 4, [1.0] * 4).figures()["recall_interval"] is None


def test_three_questions_of_which_one_is_unanswerable():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pets.md").write_text(TEXTS["pets"])
        asked = Path(folder) / "asked.jsonl"
        asked.write_text(as_jsonl(ASKED[:2]) + json.dumps({"question": "Why?", "evidence": []}) + "\n")
        docs, questions, evidence, unanswerable = eval_own.load(Path(folder), asked)
    assert ([each["id"] for each in docs], len(questions), len(evidence), unanswerable) == (["pets.md"], 2, 2, 1)


def test_options_are_noticed():
    class Options:
        docs = questions = strategy = size = overlap = length = retriever = n = budget = json = None
    assert not eval_own.is_asked_for(Options())
    Options.n = 0
    assert eval_own.is_asked_for(Options())


@pytest.mark.parametrize("text, name", [(as_jsonl(), "asked.jsonl"), (as_csv(), "asked.csv")])
def test_both_formats_give_the_same_figures(folder, capsys, text, name):
    out = folder.parent / f"{name}.json"
    assert run(folder, text, "--strategy", "fixed", "--size", "4", "--length", "words", "--retriever", "bm25", "--n", "2",
               "--json", str(out), name=name) == 0
    [found] = json.loads(out.read_text())
    assert KEYS <= found.keys() and (found["questions"], found["strategy"], found["retriever"]) == (6, "fixed", "bm25")
    docs, questions, evidence, _ = eval_own.load(folder, folder.parent / f"{folder.name}-{name}")
    [result] = eval_own.measure(docs, questions, evidence, None, [Cut("fixed", 4, 0, "words")], ["bm25"], n=2)
    assert found["recall_mean"] == approx(float(np.mean(result.values["recall"])))
    assert found["recall_sd"] == approx(float(np.sqrt(np.mean((result.values["recall"] - found["recall_mean"])**2))))
    assert found["chunks"] == result.chunks == 4 + 4
    shown = capsys.readouterr().out
    assert "2 documents, 6 answerable questions; 0 without evidence" in shown and "fixed, 4 words, bm25" in shown


def test_every_combination_is_a_configuration(folder):
    out = folder.parent / "many.json"
    run(folder, as_jsonl(), "--strategy", "fixed", "recursive", "--size", "4", "9", "--overlap", "0", "1", "--length", "words",
        "--retriever", "dense", "hybrid", "--budget", "8", "--json", str(out))
    found = json.loads(out.read_text())
    assert len(found) == 16 == len({tuple(each[key] for key in ("strategy", "size", "overlap", "retriever")) for each in found})
    assert all(each["words_mean"] <= 8 for each in found)


def test_measures_by_hand(folder):
    docs, questions, evidence, _ = eval_own.load(folder, write(folder, as_jsonl(ASKED[:1])))
    [result] = eval_own.measure(docs, questions, evidence, None, [Cut("fixed", 10**6, 0, "words")], ["bm25"], n=1)
    found = result.figures()
    assert found["recall_mean"] == 1 and found["precision_mean"] == approx(14 / len(TEXTS["pets"]))
    assert found["iou_mean"] == found["precision_omega_mean"] == found["precision_mean"]
    assert metrics.span_precision([("pets.md", 0, len(TEXTS["pets"]))], evidence[0][0]) == found["precision_mean"]


def write(folder, text):
    path = folder.parent / "q.jsonl"
    path.write_text(text)
    return path


def test_a_single_question_gets_neither_sd_nor_interval(folder, capsys):
    out = folder.parent / "one.json"
    run(folder, as_jsonl(ASKED[:1]), "--retriever", "bm25", "--json", str(out))
    [found] = json.loads(out.read_text())
    assert found["recall_sd"] is None and found["recall_interval"] is None
    assert "No interval: 1 questions are too few" in capsys.readouterr().out


def test_nothing_found_is_counted_as_undefined(folder):
    [result] = eval_own.measure(*eval_own.load(folder, write(folder, as_jsonl([("zzz?", "The dog", "pets")])))[:3], None,
                                [Cut("fixed", 9, 0, "words")], ["bm25"])
    assert result.figures()["precision_mean"] is None and result.figures()["undefined"] == 1
    assert "undefined" in eval_own.report([result])


def test_more_than_there_is_is_said(folder):
    with pytest.warns(UserWarning, match="50 chunks are to be read, but fixed, 9 words gives only 4"):
        list(eval_own.measure(*eval_own.load(folder, write(folder, as_jsonl()))[:3], None,
                              [Cut("fixed", 9, 0, "words")], ["bm25"], n=50))


def test_unanswerable_ones_are_left_out_and_counted(folder, capsys):
    text = as_jsonl() + json.dumps({"question": "Why?", "evidence": []}) + "\n"
    run(folder, text, "--retriever", "bm25")
    assert "6 answerable questions; 1 without evidence are left out" in capsys.readouterr().out


BAD = {
    "an empty file": ("", (), "holds no question"),
    "a malformed line": (as_jsonl() + "{", (), "line 7 is no JSON"),
    "a quote that is not there": (as_jsonl([("Who?", "The dog chases the cat.", "pets")]), (), "most like it is 'The dog chased the cat.'"),
    "a document that is not there": (as_jsonl([("Who?", "dog", "dogs")]), (), "line 1: there is no document 'dogs.md'"),
    "an overlap as long as the chunk": (as_jsonl(), ("--size", "5", "--overlap", "5", "--length", "words"), "overlap"),
    "no chunk to read": (as_jsonl(), ("--n", "0"), "n must be"),
    "no word to read": (as_jsonl(), ("--budget", "0"), "budget must be"),
    "two limits": (as_jsonl(), ("--n", "5", "--budget", "9"), "give one of them"),
    "a folder that is not there": (as_jsonl(), ("--json", "/no/such/folder/x.json"), "there is no folder"),
}


@pytest.mark.parametrize("text, options, message", BAD.values(), ids=BAD)
def test_bad_input_is_a_message(folder, capsys, text, options, message):
    with pytest.raises(SystemExit) as end:
        run(folder, text, *options)
    assert end.value.code == 2 and message in capsys.readouterr().err


def test_documents_and_questions_belong_together(folder, capsys):
    for options in (["--docs", str(folder)], ["--questions", str(folder / "q.jsonl")]):
        with pytest.raises(SystemExit):
            eval_chunk_sizes.main(options)
        assert "belong together" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        eval_chunk_sizes.main(["--docs", str(folder / "none"), "--questions", str(folder / "none.jsonl")])
    assert "none" in capsys.readouterr().err


def test_without_documents_the_descriptions_are_measured(folder, capsys):
    assert eval_chunk_sizes.main(["--size", "60", "--length", "words", "--retriever", "bm25"]) == 0
    assert "14 documents, 160 answerable questions; 62 without evidence" in capsys.readouterr().out
