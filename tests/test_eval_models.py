"""Two toy models over a corpus that can be ranked by hand; options, own documents, and models that cannot be had."""

import json

import numpy as np
import pytest

import eval_corpora
import eval_models
import eval_stages

TEXTS = ["cat", "oil", "cat oil", "dog"]


class Numbers:
    """An embedder of three numbers: cats, oil, and how much a text is about a dog, which only the last number tells."""

    name, dimensions, max_tokens = "numbers", 3, 4
    prefixes = {"query": "", "document": ""}

    def encode(self, texts, kind="document", batch_size=None):
        rows = [["cat" in text, "oil" in text, 2 * ("dog" in text)] for text in texts]
        return eval_models.embedding.unit_rows(np.array(rows, float) + 0.001)

    def count_tokens(self, text, kind="document"):
        return len(text.split()) + 2


def labelled():
    chunks = [{"id": f"{text}#0", "doc_id": text, "title": "", "text": text, "start": 0, "end": len(text)}
              for text in TEXTS]
    return eval_corpora.Labelled("toy", chunks, [], ["dog", "oil"], [[[("dog", 0, 3)]], [[("cat oil", 4, 7)]]], [], [], [])


def test_dimensions_are_cut_and_what_they_knew_is_lost():
    three, two = eval_models.measure(labelled(), Numbers(), Numbers(), (3, 2))
    assert three.values["MRR"].tolist() == [1, 1 / 2]                  # "oil" itself comes before "cat oil"
    assert two.values["MRR"].tolist() == [1 / 2, 1 / 2]                # without the third number "dog" looks like "cat oil"
    assert (three.dimensions, two.dimensions) == (3, 2) and three.unseen == 0


def test_all_dimensions_by_default():
    [result] = eval_models.measure(labelled(), Numbers(), Numbers())
    assert result.dimensions == 3 and result.milliseconds > 0 and result.values["recall@5"].tolist() == [1, 1]


def test_dimensions_that_a_model_does_not_have():
    for wrong in (4, 0):
        with pytest.raises(ValueError, match=f"numbers makes vectors of 3 numbers, so {wrong} of them cannot be kept"):
            eval_models.measure(labelled(), Numbers(), Numbers(), (3, wrong))


def test_what_the_model_does_not_read_is_told():
    short = Numbers()
    short.max_tokens = 3                                               # one word and the specials
    [result] = eval_models.measure(labelled(), short, short)
    assert result.unseen == 1 / 5                                      # "oil" of "cat oil"


def test_the_report_compares_with_the_first_row():
    text = eval_models.report(labelled(), eval_models.measure(labelled(), Numbers(), Numbers(), (3, 2)))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| numbers")]
    assert [row[1] for row in rows] == ["3", "2"] and [row[7] for row in rows] == ["12", "8"]
    assert rows[0][5] == "" and rows[1][5] == "+0.000 (too few questions for an interval)"


@pytest.fixture
def own(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "pets.md").write_text("# Pets\n\nThe cat weighs 4 kg. The dog sleeps.\n", encoding="utf-8")
    rows = [{"question": "How heavy is the cat?", "evidence": [{"doc_id": "pets.md", "quote": "weighs 4 kg"}]},
            {"question": "How heavy is the horse?", "evidence": []}]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return ["--docs", str(tmp_path / "docs"), "--questions", str(tmp_path / "own.jsonl")]


def test_own_documents_and_a_folder_with_another_model(own, random_bert, capsys):
    other = str(random_bert())
    assert eval_stages.main(["--model", "all-MiniLM-L6-v2", other, *own, "--dimensions", "32", "16"]) == 0
    text = capsys.readouterr().out
    assert "1 questions over 1 chunks" in text
    assert [text.count(f"| {name} | {d} | 1.000 |") for name in ("all-MiniLM-L6-v2", other) for d in (32, 16)] == [1] * 4


def test_a_model_that_cannot_be_had(own, capsys):
    assert eval_stages.main(["--model", "nobody/has-this-model", *own]) == 1
    said = capsys.readouterr().err
    assert "no weights" in said and "Ways to get them" in said and "Traceback" not in said


def test_a_label_that_is_not_true(own, tmp_path, capsys):
    wrong = {"question": "How heavy is the cat?", "evidence": [{"doc_id": "pets.md", "quote": "weighs 5 kg"}]}
    (tmp_path / "own.jsonl").write_text(json.dumps(wrong), encoding="utf-8")
    assert eval_stages.main(["--model", "all-MiniLM-L6-v2", *own]) == 1
    assert "line 1: the quote 'weighs 5 kg' does not stand in pets.md" in capsys.readouterr().err


@pytest.mark.parametrize("arguments, said", [(["--docs", "x"], "belong together"), (["--dimensions", "8"], "need --model"),
                                             (["--model", "m", "--questions", "x"], "belong together")])
def test_options_that_do_not_go_together(arguments, said, capsys):
    with pytest.raises(SystemExit):
        eval_stages.main(arguments)
    assert said in capsys.readouterr().err
