"""Second half of the lesson on files: each format by hand, round trips, trec_eval's own order as oracle, bad lines."""

import contextlib
import csv
import io
import json
import math
import os
import runpy
import struct

import numpy as np
import pytest
import pytrec_eval
from hypothesis import example, given
from hypothesis import strategies as st

import metrics
import trec
from toy import BM25_RANKING, GAINS

ID = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=5).filter(
    lambda text: text.split() == [text] and not set("\0\ufeff") & set(text))
WIDE_ID = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\r\n\0\ufeff"), min_size=1, max_size=5).filter(str.strip)
LARGEST = 3.4028234663852886e38                            # of float32
CLOSE = [0.0, -0.0, 1.0, 1 + 1e-9, 1 + 5e-8, 1 + 1e-7, 1 - 4e-8, 1e-46, -1e-46, 1e-45, 1e39, 1e300, LARGEST, -LARGEST, -1e39]
SCORE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(CLOSE) | st.integers(-3, 3)
RUN = st.dictionaries(ID, st.dictionaries(ID, SCORE, min_size=1, max_size=8), min_size=1, max_size=3)
MEASURES = {"map": "average_precision", "recip_rank": "reciprocal_rank", "ndcg": "ndcg", "ndcg_cut_1": "ndcg@1",
            "ndcg_cut_5": "ndcg@5", "ndcg_cut_10": "ndcg@10"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def text_of(path):
    return path.read_bytes().decode("utf-8")


def ranked(scores):
    """The one order, as its definition says."""
    return sorted(scores, key=lambda document: (-scores[document], document))


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_toy_qrels(tmp_path):
    trec.write_qrels({"toy": GAINS}, tmp_path / "qrels")
    assert text_of(tmp_path / "qrels") == "toy 0 0 1\ntoy 0 1 2\ntoy 0 2 0\ntoy 0 3 0\n"
    assert trec.read_qrels(tmp_path / "qrels") == {"toy": {"0": 1, "1": 2, "2": 0, "3": 0}}


def test_toy_run_from_a_ranking_and_from_scores(tmp_path):
    trec.write_run({"toy": BM25_RANKING, "cos": {0: 0.96, 1: 0.8, 2: 0.0, 3: 0.6}}, tmp_path / "run", tag="ours")
    assert text_of(tmp_path / "run") == ("toy Q0 1 1 3.0 ours\ntoy Q0 3 2 2.0 ours\ntoy Q0 0 3 1.0 ours\n"
                                         "cos Q0 0 1 0.96 ours\ncos Q0 1 2 0.8 ours\ncos Q0 3 3 0.6 ours\ncos Q0 2 4 0.0 ours\n")
    assert trec.read_run(tmp_path / "run") == {"toy": {"1": 3, "3": 2, "0": 1}, "cos": {"0": 0.96, "1": 0.8, "2": 0.0, "3": 0.6}}


def test_the_toy_example_is_measured_alike_in_memory_and_through_the_files(tmp_path):
    trec.write_run({"toy": BM25_RANKING}, tmp_path / "run")
    trec.write_qrels({"toy": GAINS}, tmp_path / "qrels")
    from_files = metrics.evaluate(trec.read_run(tmp_path / "run"), trec.read_qrels(tmp_path / "qrels"))
    assert from_files == metrics.evaluate({"toy": BM25_RANKING}, {"toy": GAINS})


def test_integers_are_ranked_as_numbers_before_they_become_text(tmp_path):
    trec.write_run({"q": {10: 1.0, 9: 1.0}}, tmp_path / "run")         # as text "10" would come before "9"
    assert ranked(trec.read_run(tmp_path / "run")["q"]) == ["9", "10"]


def test_a_query_without_documents_leaves_no_line():
    assert list(trec.run_lines({"q": {}, "r": []})) == [] and list(trec.qrels_lines({"q": {}})) == []


def test_beir_files_as_they_are_published(tmp_path):
    corpus = write(tmp_path / "corpus.jsonl", '{"_id": "4983", "title": "Zölle", "text": "Two\\nlines", "metadata": {"url": "x"}}\n'
                                              '{"_id": "a b", "text": "", "year": 1999}\n'
                                              '{"_id": "c", "title": null, "text": "t", "id": 7}\n')
    assert list(trec.read_corpus(corpus)) == [
        {"id": "4983", "title": "Zölle", "text": "Two\nlines", "metadata": {"url": "x"}},
        {"id": "a b", "title": "", "text": "", "year": 1999}, {"id": "c", "title": "", "text": "t"}]
    queries = write(tmp_path / "queries.jsonl", '{"_id": "0", "text": "What is κ?", "metadata": {}}\n{"_id": "1", "text": "b"}\n')
    assert trec.read_queries(queries) == {"0": "What is κ?", "1": "b"}
    qrels = write(tmp_path / "test.tsv", 'query-id\tcorpus-id\tscore\n0\t4983\t1\n0\ta b\t-1\n1\t"say ""hi"""\t2\n')
    assert trec.read_beir_qrels(qrels) == {"0": {"4983": 1, "a b": 0}, "1": {'say "hi"': 2}}


def test_beir_files_as_they_are_written(tmp_path):
    documents = [{"id": "d#0", "title": "Birds", "text": "birds fly\u2028é", "source": "b.txt", "start": 0}, {"id": "e", "text": ""}]
    trec.write_corpus(iter(documents), tmp_path / "corpus.jsonl")
    assert text_of(tmp_path / "corpus.jsonl") == (
        '{"_id": "d#0", "title": "Birds", "text": "birds fly\\u2028\\u00e9", "source": "b.txt", "start": 0}\n'
        '{"_id": "e", "title": "", "text": ""}\n')
    trec.write_queries({1: "the cat dog"}, tmp_path / "queries.jsonl")
    assert text_of(tmp_path / "queries.jsonl") == '{"_id": "1", "text": "the cat dog"}\n'
    trec.write_beir_qrels({"q 1": {'a"b': 2, "c": 0.0}}, tmp_path / "test.tsv")
    assert text_of(tmp_path / "test.tsv") == 'query-id\tcorpus-id\tscore\nq 1\t"a""b"\t2\nq 1\tc\t0\n'


def test_lesson():
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(trec.__file__, run_name="__main__")
    assert "TREC qrels:\ntoy 0 0 1\ntoy 0 1 2\ntoy 0 2 0\ntoy 0 3 0\n" in output.getvalue()
    assert "\ntoy Q0 0 1 0.96 vectors\ntoy Q0 1 2 0.8 vectors\ntoy Q0 3 3 0.6 vectors\ntoy Q0 2 4 0.0 vectors\n" in output.getvalue()
    assert f"\ntoy Q0 0 1 0.5 ties\ntoy Q0 1 2 {0.5 - 2**-25} ties\ntoy Q0 2 3 {0.5 - 2**-24} ties\n" in output.getvalue()


# -- Ties: the written scores ------------------------------------------------------------------------------------------


def float32(number):
    """Rounded as C rounds, without NumPy; infinite where float32 ends."""
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def test_apart_by_hand():
    assert trec.apart([3, 2, 1]) == [3.0, 2.0, 1.0]
    assert trec.apart([0.96, 0.8, 0.6]) == [0.96, 0.8, 0.6]            # not rounded to float32
    assert trec.apart([1.0, 1.0, 1.0]) == [1, 1 - 2**-24, 1 - 2 * 2**-24]       # below 1, float32 goes by 2**-24
    assert trec.apart([1 + 5e-8, 1.0]) == [1 + 5e-8, 1 - 2**-24]       # both are 1 in float32
    assert trec.apart([1 + 1e-7, 1.0]) == [1 + 1e-7, 1.0]              # 1 + 2**-23 and 1
    assert trec.apart([1.0, 1.0, 1 - 2**-24, 0.5]) == [1, 1 - 2**-24, 1 - 2 * 2**-24, 0.5]   # a lowered one pushes the next
    assert trec.apart([0.0, -0.0]) == [0, -(2**-149)]                  # the smallest float32 there is
    assert trec.apart([1e300, 1e299, 1.0]) == [LARGEST, LARGEST - 2**104, 1]
    assert trec.apart([5.0, -LARGEST, -LARGEST]) == trec.apart([5.0, -1e39, -1e300]) == [3, 2, 1]
    assert trec.apart([]) == []


@given(st.lists(SCORE, max_size=30))
@example([1.0] * 2000)
def test_apart_falls_strictly_in_float32_and_leaves_alone_what_did(scores):
    scores.sort(reverse=True)
    written = trec.apart(scores)
    rounded = [float32(score) for score in written]
    assert all(high > low for high, low in zip(rounded, rounded[1:])) and all(map(math.isfinite, rounded))
    before = [float32(score) for score in scores]
    if all(high > low for high, low in zip(before, before[1:])) and all(map(math.isfinite, before)):
        assert written == scores


# -- Against trec_eval -------------------------------------------------------------------------------------------------


def columns(path):
    """The fields of each line, read by the least possible parser."""
    return [line.split(" ") for line in text_of(path).split("\n")[:-1]]


def as_pytrec_eval_wants(run_path, qrels_path):
    run, qrels = {}, {}
    for query, _, document, _, score, _ in columns(run_path):
        run.setdefault(query, {})[document] = float(score)
    for query, _, document, grade in columns(qrels_path):
        qrels.setdefault(query, {})[document] = int(grade)
    return run, qrels


def trec_eval_ranking(scores):
    """The order in which pytrec_eval ranks {document: score}: one query for each document, alone relevant, tells its rank."""
    names = {f"q{number}": document for number, document in enumerate(scores)}
    evaluator = pytrec_eval.RelevanceEvaluator({name: {document: 1} for name, document in names.items()}, {"recip_rank"})
    found = evaluator.evaluate(dict.fromkeys(names, scores))
    return sorted(scores, key=lambda document: -found[next(n for n, d in names.items() if d == document)]["recip_rank"])


def test_trec_eval_breaks_ties_by_the_greater_id_and_keeps_float32():
    assert trec_eval_ranking({"a": 1.0, "b": 1.0, "é": 1.0, "\U0001f600": 1.0}) == ["\U0001f600", "é", "b", "a"]
    assert trec_eval_ranking({"a": 1 + 5e-8, "b": 1.0}) == ["b", "a"]
    assert trec_eval_ranking({"a": 1 + 1e-7, "b": 1.0}) == ["a", "b"]
    assert trec_eval_ranking({"a": 1e301, "b": 1e300}) == ["b", "a"]


@given(RUN)
@example({"q": dict.fromkeys("abcdefgh", 0.0)})
@example({"q": {str(number): score for number, score in enumerate(CLOSE)}})
def test_a_written_run_is_ranked_everywhere_as_we_rank_it(folder, run):
    trec.write_run(run, folder / "run")
    read = trec.read_run(folder / "run")
    plain, _ = as_pytrec_eval_wants(folder / "run", write(folder / "none", ""))
    assert read == plain == {query: dict(zip(ranked(scores), read[query].values())) for query, scores in run.items()}
    for query, scores in run.items():
        assert ranked(read[query]) == list(read[query]) == ranked(scores)
        assert trec_eval_ranking(plain[query]) == ranked(scores)


def random_runs(n_queries=250, n_documents=40):
    """Runs with ties and near-ties of six kinds, and qrels with at least one relevant document."""
    random, run, qrels = np.random.default_rng(3), {}, {}
    scales = [lambda x: x, lambda x: 1 + x * 1e-8, lambda x: x * 2e38, lambda x: x * 1e-46, lambda x: -x / 7, lambda x: x - 1e39]
    for number in range(n_queries):
        documents = [f"d{i}" for i in random.permutation(n_documents)[:random.integers(1, n_documents)]]
        scale = scales[number % len(scales)]
        run[f"q{number}"] = {document: float(scale(float(x))) for document, x in zip(documents, random.integers(0, 8, len(documents)))}
        gains = {f"d{i}": int(grade) for i, grade in zip(random.permutation(n_documents), random.integers(0, 4, 15))}
        qrels[f"q{number}"] = gains | {documents[0]: 1}
    return run, qrels


def greatest_difference(run_path, qrels_path, run, qrels):
    """Between trec_eval on the files and metrics.evaluate in memory, over all queries and measures."""
    read_run, read_qrels = as_pytrec_eval_wants(run_path, qrels_path)
    assert read_qrels == qrels
    theirs = pytrec_eval.RelevanceEvaluator(read_qrels, {"map", "recip_rank", "ndcg", "ndcg_cut.1,5,10"}).evaluate(read_run)
    ours = metrics.evaluate(run, qrels, list(MEASURES.values())).per_query
    return max(abs(ours[name][query] - theirs[query][their]) for their, name in MEASURES.items() for query in qrels)


def test_equals_trec_eval_through_the_files_ties_and_near_ties_included(tmp_path):
    run, qrels = random_runs()
    trec.write_run(run, tmp_path / "run")
    trec.write_qrels(qrels, tmp_path / "qrels")
    assert greatest_difference(tmp_path / "run", tmp_path / "qrels", run, qrels) < 1e-9
    assert metrics.evaluate(trec.read_run(tmp_path / "run"), trec.read_qrels(tmp_path / "qrels")) == metrics.evaluate(run, qrels)


def apart_in_float64_only(scores):
    written = []
    for score in scores:
        written.append(score if not written or score < written[-1] else math.nextafter(written[-1], -math.inf))
    return written


@pytest.mark.parametrize("planted", [list, apart_in_float64_only, sorted], ids=lambda planted: planted.__name__)
def test_planted_bug_other_scores_break_the_parity(tmp_path, monkeypatch, planted):
    run, qrels = random_runs()
    monkeypatch.setattr(trec, "apart", planted)                        # `list` writes the scores as they are
    trec.write_run(run, tmp_path / "run")
    trec.write_qrels(qrels, tmp_path / "qrels")
    assert greatest_difference(tmp_path / "run", tmp_path / "qrels", run, qrels) > 0.1


def test_negative_grades_are_0_for_the_measures_of_trec_eval_that_we_have(tmp_path):
    random = np.random.default_rng(5)
    run = {f"q{n}": dict(zip(map(str, random.permutation(20)), map(float, range(20, 0, -1)))) for n in range(50)}
    raw = {query: {str(i): int(grade) for i, grade in enumerate(random.integers(-2, 4, 15))} | {"0": 1} for query in run}
    lines = (f"{query} 0 {document} {grade}\n" for query, gains in raw.items() for document, grade in gains.items())
    read = trec.read_qrels(write(tmp_path / "qrels", "".join(lines)))
    assert read == {query: {document: max(grade, 0) for document, grade in gains.items()} for query, gains in raw.items()}
    names = {"map", "recip_rank", "ndcg", "ndcg_cut.5", "P.5", "recall.5", "success.5"}
    assert (pytrec_eval.RelevanceEvaluator(raw, names).evaluate(run) == pytrec_eval.RelevanceEvaluator(read, names).evaluate(run))


# -- Round trips -------------------------------------------------------------------------------------------------------


@given(st.dictionaries(ID, st.dictionaries(ID, st.integers(0, 1000), min_size=1, max_size=5), max_size=3))
def test_trec_qrels_come_back(folder, qrels):
    trec.write_qrels(qrels, folder / "qrels")
    assert trec.read_qrels(folder / "qrels") == qrels


@given(ID, st.lists(ID, unique=True, min_size=1, max_size=8), ID)
def test_a_ranking_comes_back(folder, query, ranking, tag):
    trec.write_run({query: ranking}, folder / "run", tag)
    assert list(trec.read_run(folder / "run").items()) == [(query, dict(zip(ranking, range(len(ranking), 0, -1))))]
    assert [line[3::2] for line in columns(folder / "run")] == [[str(rank), tag] for rank in range(1, len(ranking) + 1)]


@given(st.dictionaries(WIDE_ID, st.dictionaries(WIDE_ID, st.integers(0, 9), min_size=1, max_size=5), max_size=3))
@example({'"': {'a"': 1, '"a': 2, " b ": 3}})
def test_beir_qrels_come_back_and_are_what_a_csv_reader_reads(folder, qrels):
    trec.write_beir_qrels(qrels, folder / "test.tsv")
    assert trec.read_beir_qrels(folder / "test.tsv") == qrels
    with open(folder / "test.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    assert rows == [["query-id", "corpus-id", "score"],
                    *([query, document, str(grade)] for query, gains in qrels.items() for document, grade in gains.items())]


JSON = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2)
DOCUMENT = st.fixed_dictionaries({"id": WIDE_ID, "title": st.text(), "text": st.text()},
                                 optional={"source": st.text(), "acl": st.lists(st.text()), "version": JSON, "metadata": JSON})


@given(st.lists(DOCUMENT, max_size=4, unique_by=lambda document: document["id"]))
def test_documents_come_back_whatever_their_text(folder, documents):
    trec.write_corpus(documents, folder / "corpus.jsonl")
    assert list(trec.read_corpus(folder / "corpus.jsonl")) == documents
    records = [json.loads(line) for line in text_of(folder / "corpus.jsonl").splitlines()]     # splitlines: no U+2028 inside
    assert [(record["_id"], record["text"]) for record in records] == [(each["id"], each["text"]) for each in documents]


@given(st.dictionaries(WIDE_ID, st.text(), max_size=4))
def test_queries_come_back(folder, queries):
    trec.write_queries(queries, folder / "queries.jsonl")
    assert trec.read_queries(folder / "queries.jsonl") == queries


def test_a_corpus_is_read_and_written_document_by_document(tmp_path):
    def documents():
        yield {"id": "a", "text": "x"}
        assert [path.name for path in tmp_path.iterdir()] != ["corpus.jsonl"]      # the place is still empty
        yield {"id": "b", "text": "y"}

    trec.write_corpus(documents(), tmp_path / "corpus.jsonl")
    reader = trec.read_corpus(tmp_path / "corpus.jsonl")
    assert next(reader)["id"] == "a"
    trec.write_corpus(trec.read_corpus(tmp_path / "corpus.jsonl"), tmp_path / "corpus.jsonl")   # onto itself
    assert [document["id"] for document in trec.read_corpus(tmp_path / "corpus.jsonl")] == ["a", "b"]


# -- What others write -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["q1 Q0 a 1 2.5 t\nq1 Q0 b 2 -1e-3 t", "\ufeffq1\tQ0\ta\t1\t2.5\tt\r\nq1\tQ0  b\t2 -.001\tt\r\n",
                                     "\n  q1 Q0 a x +2.50 t  \n \t\n\nq1 0 b 1 -1E-3 t\n\n", "q1 Q0 b 1 -0.001 t\nq1 Q0 a 2 25.e-1 t"])
def test_white_space_blank_lines_windows_files_and_other_numbers(tmp_path, content):
    assert trec.read_run(write(tmp_path / "run", content)) == {"q1": {"a": 2.5, "b": -0.001}}


def test_a_mark_and_windows_line_ends_in_the_other_files(tmp_path):
    assert trec.read_qrels(write(tmp_path / "f", "\ufeffq 0 a 1\r\n\r\n\ufeffq 0 b +02\r\n")) == {"q": {"a": 1, "b": 2}}     # two joined
    assert trec.read_beir_qrels(write(tmp_path / "f", "\ufeff\r\nquery-id\tcorpus-id\tscore\r\nq\ta b\t1 \r\n")) == {"q": {"a b": 1}}
    assert trec.read_queries(write(tmp_path / "f", '\ufeff{"_id": "q", "text": "t"}\r\n\r\n')) == {"q": "t"}


@pytest.mark.parametrize("line, message", [("[" * 100_000, "nested too deeply"), ('{"_id": "b", "text": "t", "x": NaN}', "NaN is no JSON")])
def test_json_that_only_python_would_read_is_reported_by_line(tmp_path, line, message):
    path = write(tmp_path / "f", '{"_id": "a", "text": "t"}\n' + line + "\n")
    with pytest.raises(ValueError, match=f"line 2: .*{message}"):
        list(trec.read_corpus(path))


def test_empty_trec_and_jsonl_files_hold_nothing(tmp_path):
    path = write(tmp_path / "f", "")
    assert trec.read_run(path) == trec.read_qrels(path) == trec.read_queries(path) == {} and list(trec.read_corpus(path)) == []


def test_ties_of_others_get_our_order_and_writing_them_again_makes_it_everyones(tmp_path):
    read = trec.read_run(write(tmp_path / "f", "q Q0 b 1 1 t\nq Q0 a 2 1 t\n"))
    assert ranked(read["q"]) == ["a", "b"] and trec_eval_ranking(read["q"]) == ["b", "a"]
    trec.write_run(read, tmp_path / "f")
    assert trec_eval_ranking(trec.read_run(tmp_path / "f")["q"]) == ["a", "b"]


# -- Bad lines ---------------------------------------------------------------------------------------------------------

HEADER = "query-id\tcorpus-id\tscore\n"
BAD = [
    (trec.read_run, "q Q0 a 1 2.5 t\nq Q0 b 2 2.5\n", 2, "expected 6 columns (query, Q0, document, rank, score, tag), found 5"),
    (trec.read_run, "q Q0 my file 1 2.5 t\n", 1, "expected 6 columns"),
    *((trec.read_run, f"q Q0 a 1 {score} t\n", 1, f"the score must be a finite number, not '{score}'")
      for score in ("x", "nan", "inf", "-Infinity", "1e999", "1_0", "1,5", "0x1", ".", "٣")),
    (trec.read_run, "q Q0 a 1 2 t\n\nr Q0 a 1 1 t\nq Q0 a 2 1 t\n", 4, "document 'a' comes twice in query 'q'"),
    (trec.read_run, b"q Q0 a 1 2 t\nq Q0 \xff 2 1 t\n", 2, "'utf-8' codec can't decode byte 0xff"),
    (trec.read_qrels, "q a 1\n", 1, "expected 4 columns (query, 0, document, grade), found 3"),
    (trec.read_qrels, "q Q0 a 1 2.5 t\n", 1, "expected 4 columns (query, 0, document, grade), found 6"),
    *((trec.read_qrels, f"q 0 a {grade}\n", 1, f"the grade must be a whole number, not '{grade}'") for grade in ("1.0", "x", "1_0", "-")),
    (trec.read_qrels, "q 0 a 1\nq 0 a 1\n", 2, "document 'a' comes twice in query 'q'"),
    (trec.read_beir_qrels, "q\ta\t1\n", 1, r"expected the header 'query-id\tcorpus-id\tscore', found 'q\ta\t1'"),
    (trec.read_beir_qrels, "\nquery_id\tcorpus_id\tscore\nq\ta\t1\n", 2, "expected the header"),
    (trec.read_beir_qrels, "", 1, "found an empty file"),
    (trec.read_beir_qrels, HEADER + "q a 1\n", 2, "expected 3 columns (query-id, corpus-id, score), found 1"),
    (trec.read_beir_qrels, HEADER + "\ta\t1\n", 2, "an id must not be empty"),
    (trec.read_beir_qrels, HEADER + "q\t \t1\n", 2, "an id must not be empty"),
    (trec.read_beir_qrels, HEADER + "q\ta\t\n", 2, "the grade must be a whole number, not ''"),
    (trec.read_beir_qrels, HEADER + 'q\t"a\t1\n', 2, "no TSV"),
    (trec.read_beir_qrels, HEADER + "q\ta\t1\nq\ta\t0\n", 3, "document 'a' comes twice in query 'q'"),
    *((read, *rest) for read in (trec.read_queries, lambda path: list(trec.read_corpus(path))) for rest in [
        ('{"_id": "a", "text": "t"}\n{"_id": "b", "text": \n', 2, "no JSON: Expecting value at column 22"),
        ('["a"]\n', 1, "expected a JSON object with _id and text, found '[\"a\"]'"),
        ('{"text": "t"}\n', 1, "_id missing"), ('{"_id": "a"}\n', 1, "text missing"), ("{}\n", 1, "_id and text missing"),
        ('{"_id": "", "text": "t"}\n', 1, "an id must not be empty"), ('{"_id": 7, "text": "t"}\n', 1, "_id must be a string, not 7"),
        ('{"_id": "a", "text": null}\n', 1, "text must be a string, not None"),
        ('{"_id": "a", "title": [], "text": ""}\n', 1, "title must be a string, not []"),
        ('{"_id": "a", "text": "t"}\n{"_id": "a", "text": "u"}\n', 2, "the id 'a' comes twice")]),
]


@pytest.mark.parametrize("read, content, number, message", BAD)
def test_a_bad_line_is_reported_with_file_and_number(tmp_path, read, content, number, message):
    path = write(tmp_path / "file", content)
    with pytest.raises(ValueError) as caught:
        read(path)
    first, *lines = str(caught.value).split("\n  ")
    assert first == f"{path} cannot be read:"
    assert len(lines) == 1 and lines[0].startswith(f"line {number}: ") and message in lines[0]


def test_all_bad_lines_are_in_one_error(tmp_path):
    path = write(tmp_path / "qrels", "q 0 a 1\nq 0 a\nq 0 b x\nq 0 a 2\nq 0 c 1\n")
    with pytest.raises(ValueError) as caught:
        trec.read_qrels(path)
    assert [line.partition(": ")[0] for line in str(caught.value).split("\n  ")[1:]] == ["line 2", "line 3", "line 4"]


def test_of_a_file_of_the_wrong_kind_ten_lines_are_named(tmp_path):
    path = write(tmp_path / "corpus.jsonl", '{"_id": "a", "text": "t"}\n' + "q 0 a 1\n" * 1000)
    with pytest.raises(ValueError) as caught:
        list(trec.read_corpus(path))
    lines = str(caught.value).split("\n  ")[1:]
    assert [line.partition(": ")[0] for line in lines[:-1]] == [f"line {number}" for number in range(2, 12)]
    assert lines[-1] == "and perhaps more: the rest was not read"


def test_no_document_comes_after_a_bad_line(tmp_path):
    reader = trec.read_corpus(write(tmp_path / "f", '{"_id": "a", "text": "t"}\n{}\n{"_id": "b", "text": "t"}\n'))
    assert next(reader)["id"] == "a"
    with pytest.raises(ValueError, match="line 2"):
        next(reader)


def test_a_missing_file(tmp_path):
    for read in (trec.read_run, trec.read_qrels, trec.read_queries, trec.read_beir_qrels):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing")


# -- What cannot be written --------------------------------------------------------------------------------------------

UNWRITABLE = [
    *((trec.write_run, {"q": {name: 1.0}}, "white space") for name in ("my file.md", "", "a\tb", "a\n", "\u00a0", "a\u2028b", "\0", "\ufeffa")),
    (trec.write_run, {"q 1": {"a": 1.0}}, "white space"), (trec.write_run, {"q 1": []}, "white space"),
    (trec.write_run, {"q": {"\ud800": 1.0}}, "surrogates"),
    (trec.write_run, {"q": ["a", "b", "a"]}, "the id 'a' comes twice in query 'q'"),
    (trec.write_run, {"q": {1: 2.0, 2: 1.0}, 1: ["a"], "1": ["b"]}, "the id '1' comes twice"),
    (trec.write_run, {"q": {"a": math.nan}}, "query 'q': a score is NaN"), (trec.write_run, {"q": {"a": -math.inf}}, "infinite"),
    (trec.write_run, {"q": {"a": np.float32("inf")}}, "infinite"),
    (trec.write_qrels, {"q": {"a b": 1}}, "white space"),
    *((trec.write_qrels, {"q": {"a": grade}}, "query 'q': the grade of 'a'") for grade in (-1, 0.5, math.nan, math.inf)),
    (trec.write_beir_qrels, {"q": {"a\tb": 1}}, "tab"), (trec.write_beir_qrels, {"q\n": {"a": 1}}, "line break"),
    (trec.write_beir_qrels, {"\ufeffq": {"a": 1}}, "byte order mark"),
    (trec.write_beir_qrels, {" ": {"a": 1}}, "empty"), (trec.write_beir_qrels, {"q": {"a": -1}}, "grade"),
    (trec.write_corpus, [{"id": "a", "text": "t"}, {"id": "a", "text": "u"}], "the id 'a' comes twice"),
    (trec.write_corpus, [{"text": "t"}], "_id must be a string, not None"), (trec.write_corpus, [{"id": "", "text": "t"}], "empty"),
    (trec.write_corpus, [{"id": "a"}], "text must be a string, not None"),
    (trec.write_corpus, [{"id": "a", "text": "t", "x": math.nan}], "JSON"),
    (trec.write_queries, {"q": None}, "text must be a string"), (trec.write_queries, {1: "a", "1": "b"}, "the id '1' comes twice"),
]


@pytest.mark.parametrize("write_file, content, message", UNWRITABLE)
def test_what_cannot_be_written_is_refused_and_the_old_file_stays(tmp_path, write_file, content, message):
    path = write(tmp_path / "file", "old")
    with pytest.raises(ValueError, match=message):
        write_file(content, path)
    assert [each.name for each in tmp_path.iterdir()] == ["file"] and text_of(path) == "old"


@pytest.mark.parametrize("write_file, content", [
    (trec.write_run, {"q": {"a", "b"}}), (trec.write_run, {"q": "ab"}), (trec.write_run, {"q": [None]}), (trec.write_run, {"q": [1.5]}),
    (trec.write_qrels, {"q": {"a"}}), (trec.write_qrels, {("q",): {"a": 1}}),
    (trec.write_corpus, [{"id": "a", "text": "t", "vector": np.zeros(2)}])])
def test_other_types_are_refused(tmp_path, write_file, content):
    with pytest.raises(TypeError):
        write_file(content, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_a_tag_is_one_word(tmp_path):
    for tag in ("", "my system"):
        with pytest.raises(ValueError, match="tag"):
            trec.write_run({"q": ["a"]}, tmp_path / "run", tag)


def test_an_interrupted_corpus_leaves_nothing_behind(tmp_path):
    def documents():
        yield {"id": "a", "text": "x" * 100_000}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trec.write_corpus(documents(), tmp_path / "corpus.jsonl")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_stays_a_link_and_numpy_numbers_are_numbers(tmp_path):
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    trec.write_run({np.int64(3): {np.int64(7): np.float32(0.5)}}, tmp_path / "link", tag="t")
    assert (tmp_path / "link").is_symlink() and text_of(tmp_path / "real") == "3 Q0 7 1 0.5 t\n"
