"""Beside step 19 — Which questions are asked, and what would answer them? Labelled questions in two formats.

A label says which words of which document answer a question, not which chunk: chunks change, words do not.

    JSONL       one object a line, as in data/questions.jsonl; own files need only `question` and `evidence`
                {"question": "Where did the cat sit?", "evidence": [{"doc_id": "cats", "quote": "on the mat"}]}
    CSV         columns question, references, corpus_id; references is a JSON list of content, start_index and
                end_index in code points of corpus_id.md (the format of Chroma's "Evaluating Chunking Strategies", 2024)
    evidence    for each piece that an answer needs, the spans of its copies: metrics.py.    [[("cats", 4, 14)]]
    group       quotes of one group say the same, so that one of them is enough; every other quote is needed
    unanswerable  evidence is an empty list

Both formats become the same dicts, and a label that is not true of its document is an error with its line number: a
question that nothing answers would be held against the chunks.

Not here: what makes a good question (data/README.md), the validator of our own set (tests/test_questions.py).
"""

import csv
import difflib
import io
import json
from collections import Counter
from pathlib import Path

import metrics

LABELLED = Path(__file__).parent / "data" / "questions.jsonl"
COLUMNS = ("question", "references", "corpus_id")


def load_questions(path=LABELLED):
    """The questions of a JSONL or CSV file: dicts with id, question, type, doc_id, evidence, answer, and the line.

    Raises OSError for a file that cannot be read, and ValueError, with the line, for one that is empty or malformed.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from None
    read = _csv_rows if path.suffix.lower() == ".csv" else _jsonl_rows
    questions = []
    for line, row in read(text, path):
        try:
            questions.append(_checked(row) | {"line": line})
        except ValueError as error:
            raise ValueError(f"{path}, line {line}: {error}") from None
    if not questions:
        raise ValueError(f"{path} holds no question: one a line is needed (data/README.md shows the format)")
    return questions


def _jsonl_rows(text, path):
    for line, each in enumerate(text.split("\n"), start=1):            # subtle: splitlines would cut at U+2028
        if each.strip():
            try:
                yield line, json.loads(each)
            except ValueError as error:
                raise ValueError(f"{path}, line {line} is no JSON: {error}") from None


def _csv_rows(text, path):
    csv.field_size_limit(max(len(text), 131_072))                      # a question may have many references
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        if missing := set(COLUMNS) - set(rows.fieldnames or COLUMNS):
            raise ValueError(f"{path} has no column {sorted(missing)[0]!r}: a CSV needs {', '.join(COLUMNS)}")
        for row in rows:
            yield rows.line_num, _from_csv(row, f"{path}, line {rows.line_num}")
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV after line {rows.line_num}: {error}") from None


def _from_csv(row, where):
    """A row in the words of our own format: each reference is a quote."""
    try:
        references = json.loads(row["references"] or "")
        evidence = [{"doc_id": f"{row['corpus_id']}.md", "quote": each["content"], "start": each["start_index"],
                     "end": each["end_index"]} for each in references]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{where}: references must be a JSON list of objects with content, start_index and end_index "
                         f"({type(error).__name__}: {error})") from None
    return {"question": row["question"], "evidence": evidence}


def _checked(row):
    if not isinstance(row, dict) or not isinstance(row.get("question"), str) or not row["question"].strip():
        raise ValueError('a question must be an object with a "question" that is not blank')
    if not isinstance(row.get("evidence"), list):
        raise ValueError('"evidence" must be a list: of quotes, or empty if nothing answers the question')
    for piece in row["evidence"]:
        if not isinstance(piece, dict) or not all(
                isinstance(piece.get(key), str) and piece[key].strip() for key in ("doc_id", "quote")):
            raise ValueError(f'evidence needs objects with a "doc_id" and a "quote" that are not blank, not {piece!r}')
    first = row["evidence"][0]["doc_id"] if row["evidence"] else None
    return {"id": None, "type": "own", "doc_id": first, "answer": None} | row


# -- Where the evidence stands -----------------------------------------------------------------------------------------


def evidence_spans(question, texts):
    """What must be retrieved: for each quote, or group of quotes that say the same, the spans where it stands.

    A quote is looked for in its own document only. Raises ValueError for a document that is not in `texts`, a quote
    that does not stand in it (with the stretch that is most like it), and offsets where something else stands.

    >>> quotes = [{"doc_id": "a", "quote": "cat"}, {"doc_id": "b", "quote": "dog"}]
    >>> evidence_spans({"evidence": quotes}, {"a": "cat, cat", "b": "a dog"})
    [[('a', 0, 3), ('a', 5, 8)], [('b', 2, 5)]]
    """
    pieces = {}
    for number, each in enumerate(question["evidence"]):
        key = ("group", each["group"]) if "group" in each else number
        pieces.setdefault(key, []).extend(_copies(each, texts))
    return list(pieces.values())


def _copies(piece, texts):
    doc_id, quote = piece["doc_id"], piece["quote"]
    if doc_id not in texts:
        near = difflib.get_close_matches(doc_id, texts, n=3, cutoff=0) or ["none"]
        raise ValueError(f"there is no document {doc_id!r}; the nearest of {len(texts)}: {', '.join(near)}")
    text = texts[doc_id]
    if quote not in text:
        raise ValueError(f"the quote {quote!r} does not stand in {doc_id}; most like it is {nearest(quote, text)!r}")
    start, end = piece.get("start"), piece.get("end")
    if start is not None and (type(start) is not int or type(end) is not int or text[max(0, start):end] != quote):
        raise ValueError(f"{doc_id} has {text[max(0, start):end] if type(start) == type(end) == int else None!r} from "
                         f"{start!r} to {end!r}, not {quote!r}, which begins at {text.find(quote)}")
    return metrics.find_copies(quote, {doc_id: text})


def nearest(quote, text):
    """The stretch of `text`, of as many words as `quote`, that has most words in common with it; of several the first.

    >>> nearest("the cat sits", "A dog slept while the cat sat on the mat.")
    'while the cat'
    """
    words, wanted = text.split(), Counter(quote.split())
    n, have, best, at = sum(wanted.values()), Counter(), -1, 0
    shared = 0
    for end, word in enumerate(words):                                 # a window moves on: one word comes, one goes
        shared += have[word] < wanted[word]
        have[word] += 1
        if end >= n:
            gone = words[end - n]
            have[gone] -= 1
            shared -= have[gone] < wanted[gone]
        if shared > best:
            best, at = shared, max(0, end + 1 - n)
    return " ".join(words[at:at + n])


def answerable(questions, docs):
    """(texts, evidence, questions) of those that something in `docs` answers. ValueError, with the line, as above."""
    texts, evidence = {document["id"]: document["text"] for document in docs}, []
    asked = [each for each in questions if each["evidence"]]
    for each in asked:
        try:
            evidence.append(evidence_spans(each, texts))
        except ValueError as error:
            raise ValueError(f"line {each.get('line', '?')}: {error}") from None
    if not asked:
        raise ValueError("every question is unanswerable: there is no evidence that could be found")
    return [each["question"] for each in asked], evidence, asked


if __name__ == "__main__":
    from toy import DOCUMENTS

    texts = {f"document {number}": text for number, text in enumerate(DOCUMENTS)}
    for quotes in (["document 0", "cat sat on"], ["document 1", "the"], ["document 0", "cat sits on"]):
        question = {"evidence": [dict(zip(("doc_id", "quote"), quotes))]}
        try:
            print(f"{quotes[1]!r} in {texts[quotes[0]]!r}: {evidence_spans(question, texts)}")
        except ValueError as error:
            print(error)
