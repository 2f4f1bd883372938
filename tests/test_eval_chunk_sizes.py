"""The break experiment gives the published numbers, counts what it says it counts, and notices when it does not."""

import pytest

import eval_chunk_sizes as experiment
import eval_corpora
import eval_sweep
import rag
from toy import Embedder


@pytest.fixture(scope="module")
def rows():
    docs = rag.load_documents()
    return {size: experiment.measure(size, docs, rag.embedder()) for size in experiment.SIZES}


@pytest.mark.parametrize("size, chunks, hits, words", [(50, 50, 15, 152), (300, 10, 20, 672), (2000, 6, 20, 1108)])
def test_published_numbers(rows, size, chunks, hits, words):
    row = rows[size]
    assert (len(row.chunks), sum(row.found), int(row.words_sent)) == (chunks, hits, words)


def test_published_misses_at_50_words(rows):
    assert experiment.misses(rows[50]) == {
        "What is petal width's class correlation?", "How many flowers are in the iris data?",
        "Which paper is the diabetes data from?", "What is the maximum proline in wine?",
        "What is field 10 in the breast cancer data?"}


def test_expected_rows_are_as_measured_and_a_changed_one_is_noticed(rows):
    assert experiment.verdict(rows.values()) == "As expected, and with the same misses."
    lucky = rows[50]._replace(found=[True] * 20)
    assert "NOT as expected" in experiment.verdict([lucky]) and "other misses" in experiment.verdict([lucky])


def test_half_of_the_word_pieces_are_never_seen_at_300_words(rows):
    assert rows[50].unseen == pytest.approx(0, abs=0.01) and rows[300].unseen == pytest.approx(0.5, abs=0.05)
    assert rows[2000].unseen > rows[300].unseen


def test_three_chunks_of_ten_are_a_third_of_everything(rows):
    assert rows[300].share_sent == pytest.approx(1/3, abs=0.03)


def test_strict_hits_are_hits(rows):
    for row in rows.values():
        assert all(found or not strict for found, strict in zip(row.found, row.found_strictly))


def test_every_answer_stands_in_its_document_and_a_wrong_one_is_noticed(monkeypatch):
    docs = rag.load_documents()
    experiment.check_answers(docs)
    monkeypatch.setattr(experiment, "QUESTIONS", [("How many?", "999999", "wine_data")])
    with pytest.raises(AssertionError, match="999999"):
        experiment.check_answers(docs)


@pytest.mark.parametrize("body, answer, whole", [
    ("in 2005", "20", False), ("20", "20", True), ("20.", "20", True), ("(20)", "20", True), ("20.5", "20", False),
    ("0.20", "20", False), ("0..16.", "0..16", True), ("a 30-year", "30", True), ("Least Angle\n Regression", "Least Angle Regression", True),
    ("Malignant", "Malignant", True), ("99.7 14.3", "99.7", True), ("99.75", "99.7", False)])
def test_whole_tokens(body, answer, whole):
    assert experiment.holds({"doc_id": "d", "body": body}, answer, "d") is whole
    assert not experiment.holds({"doc_id": "other", "body": body}, answer, "d")


def test_unseen_share_by_hand():
    class Counter:
        max_tokens = 10

        def count_tokens(self, text):
            return len(text.split()) + 2

    chunks = [{"text": "w " * 8}, {"text": "w " * 12}]                # 8 of 8 read, 8 of 12 read
    assert experiment.unseen_share(chunks, Counter()) == (0 + 4) / (8 + 12)


def test_a_miss_is_explained_by_the_rank_of_the_answer_and_what_stood_above_it(rows):
    text = experiment.explain(rows[50])
    assert text.count("\n- ") == 5 and text.count("\n    1. ") == 5
    for line in text.splitlines():
        if line.startswith("- "):
            assert "rank" in line and int(line.split("rank ")[1].split(",")[0]) > 3 or "boundary" in line
    assert experiment.explain(rows[300]).endswith("none")


def test_the_expectation_is_printed_before_the_measurement(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(experiment, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(experiment, "CURVE", ())
    swept = []
    monkeypatch.setattr(experiment, "sweep", lambda corpora, embedder, explained: swept.extend([corpora, explained]))
    assert experiment.main(["--explain"]) == 0
    assert [corpus.name for corpus in swept[0]] == ["descriptions", "modules"] and swept[1] is True
    out = capsys.readouterr().out
    assert out.startswith("About ")
    assert 0 <= out.index("Expected") < out.index("Measured") < out.index("What the hit rate hides") < out.index("Misses")
    written = (tmp_path / "results" / "chunk_sizes.md").read_text()
    assert "| 50 | 50 | 15/20 |" in written
    assert (tmp_path / "results" / "chunk_sizes.png").read_bytes().startswith(b"\x89PNG")


def test_the_sweep_writes_its_tables_and_its_picture(capsys, monkeypatch, tmp_path):
    text = "the cat sat on the mat. " + "the price of oil rose again. " * 30
    corpus = eval_corpora.Asked("toy", [{"id": "d", "title": "Pets", "text": text}], ["Where did the cat sit?"] * 5,
                                [[[("d", 12, 22)]]] * 5)
    monkeypatch.setattr(experiment, "RESULTS", tmp_path)
    experiment.sweep([corpus], Embedder(), explained=True)
    out, written = capsys.readouterr().out, (tmp_path / "sizes.md").read_text()
    assert "## toy: 1 documents, 186 words, 5 questions" in written and "toy, whole words, dense:" in out
    assert eval_sweep.data_hash([corpus]) in written and "seed 0" in written
    assert (tmp_path / "sizes.png").read_bytes().startswith(b"\x89PNG")
