"""The labelled questions, held to what data/README.md says of them; the validator is tested by breaking the labels."""

import copy
import hashlib
import json
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import documents

DATA = Path(__file__).parent.parent / "data"
README = (DATA / "README.md").read_text(encoding="utf-8")
LINES = (DATA / "questions.jsonl").read_bytes().decode("utf-8").split("\n")
QUESTIONS = [json.loads(line) for line in LINES if line]
TEXTS = {document["id"]: document["text"] for document in documents.load_descriptions()}

KEYS = ["id", "question", "type", "doc_id", "evidence", "answer"]
LEAST = {"exact": 25, "paraphrase": 35, "table": 20, "multi": 12, "conversational": 12,
         "unanswerable-near": 40, "unanswerable-far": 22}
LEAST_ANSWERABLE, LEAST_OF_A_DOCUMENT = 120, dict.fromkeys(TEXTS, 6) | {"linnerud": 5}


# -- The validator -----------------------------------------------------------------------------------------------------


def faults(questions, texts):
    """What is wrong with the labels, a line each; [] if nothing is. `texts`: {doc_id: text}, of any documents."""
    def each(*checks):
        return [f"{question.get('id')}: {fault}" for question in questions for check in checks
                for fault in check(question, texts)]

    # subtle: what has the wrong shape cannot be looked into, so its faults are reported alone
    return each(shape_faults) or each(type_faults, evidence_faults, answer_faults) + list(set_faults(questions))


def shape_faults(question, texts):
    unanswerable = str(question.get("type")).startswith("unanswerable")
    if list(question) != KEYS + ["why"] * unanswerable:
        yield f"the keys are {list(question)}"
    for key in question.keys() - {"evidence"}:
        may_be_null = key in ("doc_id", "answer") and question[key] is None
        if not (may_be_null or isinstance(question[key], str) and question[key].strip()):
            yield f"{key} is no text"
    for piece in question.get("evidence", []):
        if list(piece) not in (["doc_id", "quote"], ["doc_id", "quote", "group"]):
            yield f"the evidence has the keys {list(piece)}"
        if type(piece.get("group", 0)) not in (int, str):
            yield "a group is an integer or a short string"


def type_faults(question, texts):
    kind, doc_id = question["type"], question["doc_id"]
    if kind not in LEAST:
        yield f"there is no type {kind!r}"
    elif kind.startswith("unanswerable"):
        if question["evidence"] or question["answer"] is not None:
            yield "unanswerable, and yet it has evidence or an answer"
        if doc_id is not None if kind == "unanswerable-far" else doc_id not in texts:
            yield f"the document of an {kind} question cannot be {doc_id!r}"
    elif not question["evidence"] or question["answer"] is None:
        yield "answerable, and yet it lacks evidence or an answer"
    elif doc_id not in [piece["doc_id"] for piece in question["evidence"]]:
        yield f"none of the evidence is in {doc_id}"


def evidence_faults(question, texts):
    for piece in question["evidence"]:
        doc_id, quote = piece["doc_id"], piece["quote"]
        text = texts.get(doc_id, "")
        if doc_id not in texts:
            yield f"there is no document {doc_id!r}"
        elif not quote.strip() or quote != quote.strip():
            yield f"the quote {quote!r} is blank or has white space around it"
        elif (count := text.count(quote)) != 1:
            yield f"{quote!r} stands {count} times in {doc_id}, not once"
        elif not re.search(rf"(?<!\w){re.escape(quote)}(?!\w)", text):
            yield f"{quote!r} cuts a word of {doc_id}"
        elif len(quote.split()) > 40:
            yield f"{quote!r} is long: which part of it answers?"
    for group, number in Counter(piece["group"] for piece in question["evidence"] if "group" in piece).items():
        if number < 2:
            yield f"group {group} has one quote only"


def answer_faults(question, texts):
    kind, asked = question["type"], question["question"]
    quotes = " ".join(piece["quote"] for piece in question["evidence"])
    if kind == "multi" and n_needed(question) < 2:
        yield "multi, and yet one quote answers it"
    if kind == "table" and not any(piece["quote"] in table for piece in question["evidence"]
                                   for table in tables(texts.get(piece["doc_id"], ""))):
        yield "table, and yet no quote is in a table"
    if kind == "conversational" and len(asked.split()) > 12:
        yield "conversational, and yet longer than 12 words"
    content = {word for word in words(asked) if len(word) >= 4}
    shared = content & set(words(quotes))
    if kind == "paraphrase" and len(shared) > len(content) / 4:
        yield f"paraphrase, and yet it shares {sorted(shared)} with its evidence"
    if kind != "multi":                              # multi: the pieces may be added up
        for number in numbers(question["answer"] or "") - numbers(quotes):
            yield f"no quote has the answer's {number}"


def set_faults(questions):
    ids = [question["id"] for question in questions]
    if ids != [f"q{number:03}" for number in range(1, len(ids) + 1)]:
        yield "the ids are not q001, q002, ... in order"
    seen = Counter(" ".join(words(question["question"])) for question in questions)
    yield from (f"asked {number} times: {question}" for question, number in seen.items() if number > 1)
    runs = Counter(doc_id for doc_id, _ in groupby(question["doc_id"] for question in questions))
    yield from (f"the questions on {doc_id} do not stand together" for doc_id, number in runs.items() if number > 1)


def too_few(questions):
    """Where this set is smaller than it promises to be, a line each."""
    types = Counter(question["type"] for question in questions)
    answerable = Counter(question["doc_id"] for question in questions if question["evidence"])
    yield from (f"{types[kind]} {kind} questions, not {least}" for kind, least in LEAST.items() if types[kind] < least)
    yield from (f"{answerable[doc_id]} answerable questions on {doc_id}, not {least}"
                for doc_id, least in LEAST_OF_A_DOCUMENT.items() if answerable[doc_id] < least)
    if answerable.total() < LEAST_ANSWERABLE:
        yield f"{answerable.total()} answerable questions, not {LEAST_ANSWERABLE}"


def words(text):
    return re.findall(r"\w+", text.casefold())


def numbers(text):
    return set(re.findall(r"\d(?:[\d.,]*\d)?", text))


def n_needed(question):
    """How many pieces an answer needs: the quotes without a group, and one for each group."""
    groups = [piece.get("group") for piece in question["evidence"]]
    return groups.count(None) + len(set(groups) - {None})


def tables(text):
    """The parts between blank lines that open with a border of RST or a bar of Markdown."""
    return [part for part in re.split(r"\n[ \t]*\n", text) if part.lstrip().startswith(("===", "+-", "|"))]


# -- The set -----------------------------------------------------------------------------------------------------------


def test_the_texts_are_those_that_were_labelled():
    digest = hashlib.sha256("".join(TEXTS.values()).encode("utf-8")).hexdigest()
    assert f"`{digest}`" in README, (
        "scikit-learn's descriptions have changed since they were labelled. Compare them with the version that "
        "data/README.md names, correct the labels that test_no_faults reports, look again whether the unanswerable "
        f"questions still are, then write the new version and SHA-256 into data/README.md: {digest}")


def test_no_faults():
    assert faults(QUESTIONS, TEXTS) == []


def test_as_many_as_promised():
    assert list(too_few(QUESTIONS)) == []


def test_a_line_is_a_question_as_json_writes_it():
    assert LINES.pop() == ""                         # the file ends with a line end
    assert LINES == [json.dumps(question, ensure_ascii=False) for question in QUESTIONS]


def test_readme_counts_each_type_and_its_examples_stand_in_the_file():
    rows = re.findall(r"^\| `([\w-]+)` \| (\d+) \| .* \| (.+) \|$", README, re.MULTILINE)
    assert {kind: int(number) for kind, number, _ in rows} == Counter(question["type"] for question in QUESTIONS)
    asked = {(question["type"], question["question"]) for question in QUESTIONS}
    assert {(kind, example) for kind, _, example in rows} <= asked


def test_pieces_by_hand():
    assert n_needed({"evidence": [{}, {"group": 1}, {"group": 1}, {"group": 2}, {"group": 2}]}) == 3
    assert numbers("0.5-0.9, 4x4, 1,797.") == {"0.5", "0.9", "4", "1,797"}
    assert tables("a\n\n=== ==\n x  1\n=== ==\n\nb") == ["=== ==\n x  1\n=== =="]


# -- Broken labels -----------------------------------------------------------------------------------------------------


def first(questions, kind):
    return next(question for question in questions if question["type"] == kind)


def requote(questions, quote):
    questions[0]["evidence"][0]["quote"] = quote


def move_to_the_front(questions):
    questions.insert(0, questions.pop(100))
    for number, question in enumerate(questions, start=1):
        question["id"] = f"q{number:03}"


def grouped(questions):
    return next(question for question in questions if any("group" in piece for piece in question["evidence"]))


BROKEN = {  # what is done to a copy of the set -> what the validator says
    "keys": (lambda qs: qs[0].update(note="?"), "the keys are"),
    "key order": (lambda qs: qs[0].update(answer=qs[0].pop("answer"), id=qs[0].pop("id")), "the keys are"),
    "no why": (lambda qs: first(qs, "unanswerable-far").pop("why"), "the keys are"),
    "blank why": (lambda qs: first(qs, "unanswerable-far").update(why=" "), "why is no text"),
    "blank question": (lambda qs: qs[0].update(question=" "), "question is no text"),
    "evidence without document": (lambda qs: qs[0]["evidence"][0].pop("doc_id"), "the evidence has the keys"),
    "group": (lambda qs: grouped(qs)["evidence"][0].update(group=[1]), "a group is"),
    "unknown type": (lambda qs: qs[0].update(type="hard"), "q001: there is no type 'hard'"),
    "unanswerable with answer": (
        lambda qs: first(qs, "unanswerable-near").update(answer="42"), "unanswerable, and yet"),
    "unanswerable with evidence": (
        lambda qs: first(qs, "unanswerable-near").update(evidence=qs[0]["evidence"]), "unanswerable, and yet"),
    "near nothing": (lambda qs: first(qs, "unanswerable-near").update(doc_id=None), "cannot be None"),
    "far with document": (lambda qs: first(qs, "unanswerable-far").update(doc_id="iris"), "cannot be 'iris'"),
    "no evidence": (lambda qs: qs[0].update(evidence=[]), "lacks evidence"),
    "no answer": (lambda qs: qs[0].update(answer=None), "lacks evidence or an answer"),
    "evidence elsewhere": (lambda qs: qs[0].update(doc_id="iris"), "none of the evidence is in iris"),
    "unknown document": (lambda qs: qs[0]["evidence"][0].update(doc_id="boston"), "there is no document 'boston'"),
    "blank quote": (lambda qs: requote(qs, ""), "is blank"),
    "space around": (lambda qs: requote(qs, ":Number of Instances: 569\n"), "white space around"),
    "not verbatim": (lambda qs: requote(qs, ":Number of instances: 569"), "stands 0 times in breast_cancer"),
    "line break lost": (lambda qs: requote(qs, "needle aspirate (FNA)"), "stands 0 times"),
    "stands twice": (lambda qs: requote(qs, "(standard error)"), "stands 10 times in breast_cancer"),
    "cut word": (lambda qs: requote(qs, "umber of Instances: 569"), "cuts a word"),
    "cut number": (lambda qs: requote(qs, ":Number of Instances: 56"), "cuts a word"),
    "long quote": (lambda qs: requote(qs, TEXTS["breast_cancer"].strip()), "is long"),
    "answer is a number": (lambda qs: qs[0].update(answer=569), "answer is no text"),
    "group of one": (lambda qs: qs[0]["evidence"][0].update(group=1), "group 1 has one quote only"),
    "one piece": (lambda qs: first(qs, "multi")["evidence"].pop(), "multi, and yet"),
    "no table": (lambda qs: qs[0].update(type="table"), "no quote is in a table"),
    "long-winded": (lambda qs: first(qs, "conversational").update(question="well " * 13), "longer than 12 words"),
    "no paraphrase": (
        lambda qs: qs[0].update(type="paraphrase", question="Number of instances?"), "shares ['instances', 'number']"),
    "wrong number": (lambda qs: qs[0].update(answer="596"), "no quote has the answer's 596"),
    "duplicate id": (lambda qs: qs[1].update(id="q001"), "the ids are not"),
    "duplicate question": (lambda qs: qs[1].update(question=qs[0]["question"].upper() + "?"), "asked 2 times"),
    "left home": (move_to_the_front, "do not stand together"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_labels_are_reported(name):
    change, message = BROKEN[name]
    broken = copy.deepcopy(QUESTIONS)
    change(broken)
    assert any(message in fault for fault in faults(broken, TEXTS)), faults(broken, TEXTS)


@given(st.data())
def test_one_changed_character_of_a_quote_is_reported(data):
    question = data.draw(st.sampled_from([question for question in QUESTIONS if question["evidence"]]))
    piece = data.draw(st.sampled_from(question["evidence"]))
    position = data.draw(st.integers(0, len(piece["quote"]) - 1))
    changed = piece | {"quote": piece["quote"][:position] + "\N{SNOWMAN}" + piece["quote"][position + 1:]}
    broken = question | {"evidence": [changed if other is piece else other for other in question["evidence"]]}
    [fault] = evidence_faults(broken, TEXTS)
    assert "stands 0 times" in fault


@pytest.mark.parametrize("kept, message", [
    (lambda question: question["type"] != "table", "0 table questions, not 20"),
    (lambda question: question["doc_id"] != "iris", "0 answerable questions on iris, not 6"),
    (lambda question: question["type"].startswith("un"), "0 answerable questions, not 120"),
])
def test_a_smaller_set_is_reported(kept, message):
    assert message in list(too_few([question for question in QUESTIONS if kept(question)]))


def test_a_changed_text_is_reported():
    changed = TEXTS | {"iris": TEXTS["iris"].replace("50 in each", "fifty in each")}
    assert any("stands 0 times in iris" in fault for fault in faults(QUESTIONS, changed))
