"""Two formats become the same questions; what is wrong with a label is said with its line."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import documents
import eval_questions


def write(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def line(question="Where?", quote="on the mat", **rest):
    return json.dumps({"question": question, "evidence": [{"doc_id": "cats", "quote": quote}], **rest})


def reference(content="on the mat", start=12, end=22):
    return {"content": content, "start_index": start, "end_index": end}


def as_csv(*rows):
    quoted = ['"' + value.replace('"', '""') + '"' for row in rows for value in row]
    lines = [",".join(quoted[first:first + 3]) for first in range(0, len(quoted), 3)]
    return "\n".join(["question,references,corpus_id", *lines]) + "\n"


TEXTS = {"cats": "the cat sat on the mat", "cats.md": "the cat sat on the mat"}


def test_a_line_with_a_question_and_a_quote_is_enough(tmp_path):
    [found] = eval_questions.load_questions(write(tmp_path, "q.jsonl", line() + "\n"))
    assert found == {"id": None, "type": "own", "doc_id": "cats", "answer": None, "question": "Where?", "line": 1,
                     "evidence": [{"doc_id": "cats", "quote": "on the mat"}]}
    assert eval_questions.evidence_spans(found, TEXTS) == [[("cats", 12, 22)]]


def test_a_csv_row_says_the_same(tmp_path):
    path = write(tmp_path, "q.CSV", as_csv(("Where?", json.dumps([reference(), reference("the", 0, 3)]), "cats")))
    [found] = eval_questions.load_questions(path)
    assert (found["question"], found["doc_id"], found["line"]) == ("Where?", "cats.md", 2)
    assert eval_questions.evidence_spans(found, TEXTS) == [[("cats.md", 12, 22)], [("cats.md", 0, 3), ("cats.md", 15, 18)]]


def test_offsets_are_code_points_and_line_ends_stay(tmp_path):
    text = "\U0001f600 é\r\nthe mat"
    path = write(tmp_path, "q.csv", as_csv(("Where?", json.dumps([reference("the mat", 5, 12)]), "d")))
    (tmp_path / "d.md").write_bytes(text.encode())
    docs = documents.load_folder(tmp_path)
    assert eval_questions.answerable(eval_questions.load_questions(path), docs)[1] == [[[("d.md", 5, 12)]]]


def test_many_references_and_a_byte_order_mark(tmp_path):
    many = json.dumps([reference()] * 5000)                            # beyond the csv module's limit of 131,072
    [found] = eval_questions.load_questions(write(tmp_path, "q.csv", "\ufeff" + as_csv(("Where?", many, "cats"))))
    assert len(found["evidence"]) == 5000


def test_our_own_set_is_read():
    questions, docs = eval_questions.load_questions(), documents.load_descriptions()
    texts, evidence, asked = eval_questions.answerable(questions, docs)
    assert len(questions) == 222 and len(texts) == len(evidence) == len(asked) == 160
    assert [each["line"] for each in questions] == list(range(1, 223))
    assert all(text == question["question"] for text, question in zip(texts, asked))


BAD_LINES = {
    "no JSON": ('{"question": "Where?"', "line 2 is no JSON"),
    "a list": ("[1]", "line 2: a question must be an object"),
    "no question": ('{"evidence": []}', 'line 2: .*"question"'),
    "a blank question": (line(question=" "), 'line 2: .*"question"'),
    "no evidence": ('{"question": "Where?"}', 'line 2: "evidence" must be a list'),
    "evidence that is no list": ('{"question": "Where?", "evidence": "mat"}', 'line 2: "evidence" must be a list'),
    "a blank quote": (line(quote=" "), 'line 2: .*"quote"'),
    "a quote without document": ('{"question": "Where?", "evidence": [{"quote": "mat"}]}', 'line 2: .*"doc_id"'),
}


@pytest.mark.parametrize("bad, message", BAD_LINES.values(), ids=BAD_LINES)
def test_a_malformed_line_is_named(tmp_path, bad, message):
    with pytest.raises(ValueError, match=message):
        eval_questions.load_questions(write(tmp_path, "q.jsonl", line() + "\n" + bad + "\n"))


BAD_TABLES = {
    "no column": ("question,corpus_id\nWhere?,cats\n", "no column 'references'"),
    "no JSON": (as_csv(("Where?", "on the mat", "cats")), "line 2: references must be a JSON list"),
    "no references": (as_csv(("Where?", "", "cats")), "line 2: references must be"),
    "a missing key": (as_csv(("Where?", '[{"content": "mat"}]', "cats")), "line 2: .*start_index"),
    "an object": (as_csv(("Where?", '{"content": "mat"}', "cats")), "line 2: references must be"),
    "a short row": ("question,references,corpus_id\nWhere?\n", "line 2: references must be"),
    "an open quote": ('question,references,corpus_id\n"Where?', "no CSV after line 1"),
    "a blank question": (as_csv((" ", json.dumps([reference()]), "cats")), "line 2: a question must be"),
}


@pytest.mark.parametrize("bad, message", BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_malformed_row_is_named(tmp_path, bad, message):
    with pytest.raises(ValueError, match=message):
        eval_questions.load_questions(write(tmp_path, "q.csv", bad))


@pytest.mark.parametrize("name, text", [("q.jsonl", ""), ("q.jsonl", "\n \n"), ("q.csv", ""),
                                        ("q.csv", "question,references,corpus_id\n")])
def test_an_empty_file_is_an_error(tmp_path, name, text):
    with pytest.raises(ValueError, match="holds no question"):
        eval_questions.load_questions(write(tmp_path, name, text))


def test_a_file_that_is_not_utf_8_or_not_there(tmp_path):
    with pytest.raises(ValueError, match="not UTF-8"):
        eval_questions.load_questions(write(tmp_path, "q.jsonl", b'{"question": "\xff"}'))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        eval_questions.load_questions(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize("piece, message", [
    ({"doc_id": "cat", "quote": "mat"}, "no document 'cat'; the nearest of 2: cats"),
    ({"doc_id": "cats", "quote": "sat in the mat"}, "most like it is 'sat on the mat'"),
    ({"doc_id": "cats", "quote": "the mat", "start": 14, "end": 21}, "begins at 15"),
    ({"doc_id": "cats", "quote": "the mat", "start": -7, "end": 22}, "from -7 to 22"),
    ({"doc_id": "cats", "quote": "the mat", "start": "15", "end": 22}, "from '15' to 22"),
])
def test_a_label_that_is_not_true_is_an_error_with_its_line(piece, message):
    with pytest.raises(ValueError, match=f"line 7: .*{message}"):
        eval_questions.answerable([{"question": "Where?", "evidence": [piece], "line": 7}],
                   [{"id": name, "text": text} for name, text in TEXTS.items()])


def test_only_unanswerable_questions_are_an_error():
    with pytest.raises(ValueError, match="every question is unanswerable"):
        eval_questions.answerable([{"question": "Where?", "evidence": [], "line": 1}], [])


def test_evidence_has_a_piece_for_each_quote_or_group():
    question = {"evidence": [{"doc_id": "a", "quote": "cat"}, {"doc_id": "a", "quote": "dog", "group": 1},
                             {"doc_id": "b", "quote": "hound", "group": 1}]}
    texts = {"a": "cat dog cat", "b": "a hound, a cat"}
    assert eval_questions.evidence_spans(question, texts) == [
        [("a", 0, 3), ("a", 8, 11)], [("a", 4, 7), ("b", 2, 7)]]        # a quote is looked up in its own document only


def nearest_by_definition(quote, text):
    wanted, words = quote.split(), text.split()
    windows = [words[start:start + len(wanted)] for start in range(max(1, len(words) - len(wanted) + 1))]
    return " ".join(max(windows, key=lambda window: sum(min(window.count(word), wanted.count(word))
                                                        for word in set(wanted))))


words = st.lists(st.sampled_from("abcd"), min_size=1, max_size=9).map(" ".join)


def test_the_nearest_stretch_by_hand():
    assert eval_questions.nearest("a b", "a c b") == "a c" and eval_questions.nearest("a b", "a c b c a b") == "a b"
    assert eval_questions.nearest("a b c", "a") == "a" and eval_questions.nearest("a", "") == ""


@given(words, words)
def test_the_nearest_stretch_is_that_of_the_definition(quote, text):
    found, right = (each(quote, text).split() for each in (eval_questions.nearest, nearest_by_definition))
    wanted = quote.split()
    shared = [sum(min(each.count(word), wanted.count(word)) for word in set(wanted)) for each in (found, right)]
    assert shared[0] == shared[1] and " ".join(found) in text


def test_the_line_of_a_question_is_the_file_s():
    asked = json.dumps({"question": "When?\u2028And where?", "evidence": []}, ensure_ascii=False)
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), "q.jsonl", f"\n{line()}\n\n{asked}\n")
        found = [(each["line"], each["question"]) for each in eval_questions.load_questions(path)]
    assert found == [(2, "Where?"), (4, "When?\u2028And where?")]


def test_offsets_of_something_else_are_an_error():
    with pytest.raises(ValueError, match="begins at 15"):
        eval_questions.evidence_spans({"evidence": [{"doc_id": "cats", "quote": "the mat", "start": 14, "end": 21}]}, TEXTS)
