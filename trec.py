"""Step 5 of 22 — How do other tools read our results? TREC and BEIR files. Before: metrics.py. Next: rst.py.

Retrieval research exchanges its results as plain text. Whoever writes the same columns can be checked by trec_eval,
and whoever reads them has the judgements of every public collection.

    qrels    {query: {document: grade}}, what people judged          toy: {"toy": {"0": 1, "1": 2, "2": 0, "3": 0}}
    run      {query: {document: score}} or {query: ranking}          toy: {"toy": [1, 3, 0]}
    tag      the name of the system that made a run
    ids      come back as strings: a run read from a file finds nothing in qrels whose ids are integers

    TREC qrels          query 0 document grade                       toy: toy 0 1 2
    TREC run            query Q0 document rank score tag             toy: toy Q0 1 1 3.0 keywords
    BEIR corpus.jsonl   {"_id": ..., "title": ..., "text": ...}      one JSON object a line, more keys allowed
    BEIR queries.jsonl  {"_id": ..., "text": ...}
    BEIR qrels          query-id, corpus-id, score                   tabs between, and this header above

The trap is the tie. trec_eval ignores the rank column: it sorts by score, and of equal scores it puts the greater
document id first (its bytes compared), where we put the smaller. "Equal" is wider there than here, for scores may be
kept as float32, in which 1 and 1 + 5e-8 are the same. So no two written scores of a query are equal: `apart` keeps a
score that lies below the one above it in float32 too, and lowers any other by the least that float32 can show. The
order survives in every reader. Writing ranks as scores would do that as well, but whoever fuses runs needs scores.

A file that is not as it should be is one ValueError that names the file and its bad lines, up to ten of them. Files
are written under another name in the same folder and renamed when complete, so a failure leaves the old file.

The columns are described at the top of trec_eval's get_trec_results.c and get_qrels.c (github.com/usnistgov/trec_eval)
and read by BEIR's data_loader.py (github.com/beir-cellar/beir), which takes the TSV with the quotes of CSV. Chunk ids
hold a "#": trec_eval's of 2020 to 2024 took it for a comment (its issue 46), those before and after do not.

Not here: compressed files, downloads, preference judgements. The columns `0`, `Q0` and rank are ignored when read.
The steps after this one do not need it: skip it at first reading if nobody else reads your results.
"""

import csv
import json
import math
import operator
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

HEADER = ("query-id", "corpus-id", "score")
MOST_BAD_LINES = 10                                                    # a file of the wrong kind is not listed in full
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")   # float() would also take 1_000 and nan

# -- Ties: what score to write? ----------------------------------------------------------------------------------------


def apart(scores):
    """The scores of a ranking, best first, as floats that fall from place to place, also when rounded to float32.

    A score stays as it is where it falls; else it becomes the next float32 below the one above it. Where float32 has
    nothing left below (its end is at -3.4e38), all are replaced by n, ..., 2, 1.

    >>> apart([0.5, 0.5, 0.25])
    [0.5, 0.4999999701976776, 0.25]
    >>> apart([0.0, -1e300, -1e301])
    [3.0, 2.0, 1.0]
    """
    written, above = [], math.inf
    with np.errstate(over="ignore"):                                   # beyond 3.4e38 a float32 is infinite
        scores = np.asarray(scores, dtype=float)                       # [n]
        for score, rounded in zip(scores.tolist(), scores.astype(np.float32).tolist()):
            if rounded >= above:                                       # subtle: compared as float32, kept as float64
                score = rounded = float(np.nextafter(np.float32(above), np.float32(-math.inf)))
            written.append(score)
            above = rounded
    return written if above > -math.inf else apart(range(len(written), 0, -1))


def _rank(query, answer):
    """(documents, scores), best first: higher score, then smaller document. A ranking gets the scores n, ..., 2, 1."""
    if isinstance(answer, (str, bytes, set, frozenset)):
        raise TypeError(f"query {query!r}: a ranking must be a list, best first, not a {type(answer).__name__}")
    if not isinstance(answer, Mapping):
        documents = list(answer)
        return documents, range(len(documents), 0, -1)
    if not all(map(math.isfinite, answer.values())):
        raise ValueError(f"query {query!r}: a score is NaN or infinite")
    documents = sorted(sorted(answer), key=answer.get, reverse=True)
    return documents, [answer[document] for document in documents]


# -- TREC --------------------------------------------------------------------------------------------------------------


def run_lines(run, tag="rag-in-numpy"):
    """The lines of a TREC run file, one at a time. A query without documents has none.

    Raises ValueError for an id or tag that is empty or holds white space, an id that comes twice, NaN and infinity;
    TypeError for an id that is neither text nor a whole number, or a ranking without an order (a set).

    >>> print(*run_lines({"q1": {"a": 2, "b": 2, "c": 3}}, tag="ours"), sep="\\n")
    q1 Q0 c 1 3.0 ours
    q1 Q0 a 2 2.0 ours
    q1 Q0 b 3 1.9999998807907104 ours
    """
    tag = _trec_id(tag)
    for query, answer in zip(_unique(run, _trec_id), run.values()):
        documents, scores = _rank(query, answer)
        for rank, (document, score) in enumerate(zip(_unique(documents, _trec_id, query), apart(scores)), 1):
            yield f"{query} Q0 {document} {rank} {score!r} {tag}"


def qrels_lines(qrels):
    """The lines of a TREC qrels file, one at a time. A query without judged documents has none.

    Raises ValueError for a grade that is not a whole number >= 0, and for ids as run_lines.

    >>> print(*qrels_lines({"q1": {"a": 0, "b": 2}}), sep="\\n")
    q1 0 a 0
    q1 0 b 2
    """
    for query, document, grade in _judgements(qrels, _trec_id):
        yield f"{query} 0 {document} {grade}"


def write_run(run, path, tag="rag-in-numpy"):
    """Write a TREC run file that trec_eval ranks exactly as we do. Errors as run_lines; the old file then stays."""
    _write(path, run_lines(run, tag))


def write_qrels(qrels, path):
    """Write a TREC qrels file. Errors as qrels_lines; the old file then stays."""
    _write(path, qrels_lines(qrels))


def read_run(path):
    """{query: {document: score}} of a TREC run file: six columns with any white space between; blank lines are skipped.

    The rank column is ignored, as trec_eval does. In a file of ours no scores tie; in another's they may, and then our
    order (the smaller id first) is not trec_eval's: write the run again, and both read the same.

    Raises ValueError for lines with other columns, a score that is no finite number, a document twice in a query.
    """
    return _read_pairs(path, _parse_result)


def read_qrels(path):
    """{query: {document: grade}} of a TREC qrels file: four columns with any white space between.

    TREC marks junk with negative grades. They are read as 0, judged and not relevant: gains are >= 0 here, and for
    every measure of metrics.py trec_eval treats the two alike (not for bpref and infAP, which are not here).

    Raises ValueError for lines with other columns, a grade that is no whole number, a document twice in a query.
    """
    return _read_pairs(path, _parse_judgement)


def _parse_result(line):
    query, _, document, _, score, _ = _columns(line.split(), ("query", "Q0", "document", "rank", "score", "tag"))
    number = float(score) if NUMBER.fullmatch(score) else math.nan
    if not math.isfinite(number):                                      # subtle: float("1e999") is infinite
        raise ValueError(f"the score must be a finite number, not {score!r}")
    return query, document, number


def _parse_judgement(line):
    query, _, document, grade = _columns(line.split(), ("query", "0", "document", "grade"))
    return query, document, _parse_grade(grade)


def _parse_grade(text):
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(f"the grade must be a whole number, not {text!r}")
    return max(int(text), 0)


def _columns(fields, names):
    if len(fields) != len(names):
        raise ValueError(f"expected {len(names)} columns ({', '.join(names)}), found {len(fields)}")
    return fields


# -- BEIR --------------------------------------------------------------------------------------------------------------


def corpus_lines(documents):
    """The lines of a BEIR corpus.jsonl, one at a time; `documents` may be any iterable, chunks too.

    A Document's `id` becomes `_id`; title, text and whatever else it holds keep their names. Raises ValueError for an
    id that is missing, empty, comes twice or holds a tab or line break, a text or title that is no string, and NaN;
    TypeError for what JSON cannot hold (a vector, a date).

    >>> print(*corpus_lines([{"id": "d1", "title": "Birds", "text": "birds fly", "source": "birds.txt"}]))
    {"_id": "d1", "title": "Birds", "text": "birds fly", "source": "birds.txt"}
    """
    seen = set()
    for document in documents:
        record = {"_id": document.get("id"), "title": document.get("title", ""), "text": document.get("text")}
        _check_record(record, seen)
        yield _json(record | {key: value for key, value in document.items() if key not in ("id", *record)})


def query_lines(queries):
    """The lines of a BEIR queries.jsonl, one at a time, from {id: text}. Errors as corpus_lines.

    >>> print(*query_lines({"q1": "the cat dog"}))
    {"_id": "q1", "text": "the cat dog"}
    """
    seen = set()
    for query, text in queries.items():
        record = {"_id": _beir_id(query), "text": text}
        _check_record(record, seen)
        yield _json(record)


def beir_qrels_lines(qrels):
    """The lines of a BEIR qrels file, one at a time: the header, then tabs. Errors as qrels_lines, but ids may hold
    spaces, though no tab or line break.

    >>> [line.split("\\t") for line in beir_qrels_lines({"q1": {"my file.md": 2}})]
    [['query-id', 'corpus-id', 'score'], ['q1', 'my file.md', '2']]
    """
    yield "\t".join(HEADER)
    for query, document, grade in _judgements(qrels, _beir_id):
        yield f"{_quote(query)}\t{_quote(document)}\t{grade}"


def write_corpus(documents, path):
    """Write a BEIR corpus.jsonl. Errors as corpus_lines; the old file then stays."""
    _write(path, corpus_lines(documents))


def write_queries(queries, path):
    """Write a BEIR queries.jsonl. Errors as query_lines; the old file then stays."""
    _write(path, query_lines(queries))


def write_beir_qrels(qrels, path):
    """Write a BEIR qrels file, such as qrels/test.tsv. Errors as beir_qrels_lines; the old file then stays."""
    _write(path, beir_qrels_lines(qrels))


def read_corpus(path):
    """The Documents of a BEIR corpus.jsonl, one at a time: only their ids are kept in memory.

    `_id` becomes `id`, a missing title "", other keys keep their names (but an `id` beside `_id` gives way). The
    errors, OSError too, come while reading: ValueError for lines that are no JSON object, `_id`, `title` or `text`
    that is no string, an `_id` that is missing, empty or comes twice, a missing `text`. After a bad line no document
    comes any more.
    """
    seen = set()
    return _parsed(path, lambda line: _parse_document(line, seen))


def read_queries(path):
    """{id: text} of a BEIR queries.jsonl; other keys are dropped. Errors as read_corpus."""
    return {query["id"]: query["text"] for query in read_corpus(path)}


def read_beir_qrels(path):
    """{query: {document: grade}} of a BEIR qrels file. Negative grades are read as 0, as read_qrels does.

    Raises ValueError for a wrong or missing header, lines with other columns, an empty id, a grade that is no whole
    number, a document twice in a query.
    """
    return _read_pairs(path, _parse_row, header="\t".join(HEADER))


def _no_constant(name):
    raise ValueError(f"{name} is no JSON")


def _parse_document(line, seen):
    try:
        record = json.loads(line, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except json.JSONDecodeError as error:                              # its own text would speak of a line 1
        raise ValueError(f"no JSON: {error.msg} at column {error.colno}") from None
    if not isinstance(record, dict):
        raise ValueError(f"expected a JSON object with _id and text, found {line[:40]!r}")
    if record.get("title") is None:
        record["title"] = ""
    _check_record(record, seen)
    known = {"id": record.pop("_id"), "title": record.pop("title"), "text": record.pop("text")}
    return known | {key: value for key, value in record.items() if key not in known}


def _check_record(record, seen):
    for key, value in record.items():
        if key in ("_id", "title", "text") and not isinstance(value, str):
            raise ValueError(f"{key} must be a string, not {repr(value)[:40]}")
    if missing := [key for key in ("_id", "text") if key not in record]:
        raise ValueError(f"{' and '.join(missing)} missing")
    if _beir_id(record["_id"]) in seen:
        raise ValueError(f"the id {record['_id']!r} comes twice")
    seen.add(record["_id"])


def _parse_row(line):
    try:
        [fields] = csv.reader([line], delimiter="\t", strict=True)
    except csv.Error as error:                                         # such as a quote that is not closed
        raise ValueError(f"no TSV: {error}") from None
    query, document, grade = _columns(fields, HEADER)
    return _beir_id(query), _beir_id(document), _parse_grade(grade.strip())


def _quote(field):
    """As CSV does: a field with quotes in quotes, those inside doubled."""
    return '"' + field.replace('"', '""') + '"' if '"' in field else field


def _json(record):
    """One line of JSON. ASCII only: some readers would break a line at U+2028, which may stand raw in JSON."""
    return json.dumps(record, ensure_ascii=True, allow_nan=False)


# -- Ids and grades ----------------------------------------------------------------------------------------------------


def _trec_id(name):
    text = _text(name)
    if text.split() != [text] or "\0" in text or "\ufeff" in text:     # NUL ends a text in C; U+FEFF is a file's mark
        raise ValueError(f"{text!r} cannot stand in a TREC file, whose columns end at white space: an id or tag must "
                         "have at least one character, and no white space, NUL or byte order mark")
    return text


def _beir_id(name):
    text = _text(name)
    if not text.strip() or not set("\t\n\r\0\ufeff").isdisjoint(text):
        raise ValueError(f"an id must not be empty and must hold no tab, line break, NUL or byte order mark: {text!r}")
    return text


def _text(name):
    try:
        return name if isinstance(name, str) else str(operator.index(name))
    except TypeError:
        raise TypeError(f"an id must be text or a whole number, not {name!r}") from None


def _unique(names, text, query=None):
    """The ids as texts; ValueError if two are the same, as 1 and "1" are in a file."""
    texts, seen = [text(name) for name in names], set()
    for each in texts:
        if each in seen:
            raise ValueError(f"the id {each!r} comes twice" + (f" in query {query!r}" if query else ""))
        seen.add(each)
    return texts


def _judgements(qrels, text):
    for query, gains in zip(_unique(qrels, text), qrels.values()):
        if not isinstance(gains, Mapping):
            raise TypeError(f"query {query!r}: gains must be a dict of document -> grade, not {type(gains).__name__}")
        for document, grade in zip(_unique(gains, text, query), gains.values()):
            if not 0 <= grade < math.inf or grade != int(grade):
                raise ValueError(f"query {query!r}: the grade of {document!r} must be a whole number >= 0, not {grade}")
            yield query, document, int(grade)


# -- Files -------------------------------------------------------------------------------------------------------------


def _write(path, lines):
    """Write lines to a file beside `path`, then move it there: nobody ever sees half a file."""
    path = Path(path).resolve()                                        # a link stays a link
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _parsed(path, parse, header=None):
    """What parse(line) returns for each line that is not blank; then ValueError with the lines that it refused."""
    bad, awaited = [], header
    with open(path, "rb") as file:                                     # bytes: a line that is no UTF-8 gets its number
        for number, line in enumerate(file, start=1):
            try:
                line = line.decode("utf-8-sig").rstrip("\r\n")         # -sig: without a mark, also inside joined files
                if awaited and line.strip():
                    found, awaited = line, None
                    if found != header:
                        raise ValueError(f"expected the header {header!r}, found {found[:80]!r}")
                elif line.strip():
                    item = parse(line)
                    if not bad:
                        yield item
            except ValueError as error:
                bad.append(f"line {number}: {error}")
            if len(bad) == MOST_BAD_LINES:
                bad.append("and perhaps more: the rest was not read")
                break
    if awaited:
        bad.append(f"line 1: expected the header {header!r}, found an empty file")
    if bad:
        raise ValueError("\n  ".join([f"{path} cannot be read:", *bad]))


def _read_pairs(path, parse, header=None):
    """{query: {document: value}} of lines that hold one such triple each."""
    table = {}

    def keep(line):
        """Put one line into the table."""
        query, document, value = parse(line)
        if document in table.setdefault(query, {}):
            raise ValueError(f"document {document!r} comes twice in query {query!r}")
        table[query][document] = value

    for _ in _parsed(path, keep, header):
        pass
    return table


if __name__ == "__main__":
    from toy import BM25_RANKING, GAINS, QUERY_VECTOR, VECTORS

    cosines = {i: sum(a * b for a, b in zip(vector, QUERY_VECTOR)) for i, vector in enumerate(VECTORS)}
    print("TREC qrels:", *qrels_lines({"toy": GAINS}), sep="\n")
    print("\nTREC run, from scores:", *run_lines({"toy": cosines}, tag="vectors"), sep="\n")
    print("\nTREC run, from a ranking:", *run_lines({"toy": BM25_RANKING}, tag="keywords"), sep="\n")
    print("\nTREC run, all scores equal (trec_eval alone would put 3 first):",
          *run_lines({"toy": dict.fromkeys(GAINS, 0.5)}, tag="ties"), sep="\n")
    print("\nBEIR qrels:", *beir_qrels_lines({"toy": GAINS}), sep="\n")
