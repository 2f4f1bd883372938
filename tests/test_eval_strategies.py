"""Each way to cut is measured over the same questions, with and without breadcrumbs, and differences are marked."""

import numpy as np
import pytest

import documents
import eval_corpora
import eval_strategies
from eval_strategies import COLUMNS, CUTS, OVERLAPS
from toy import Embedder


def test_without_breadcrumb_a_chunk_keeps_its_repeated_header():
    assert eval_strategies.without_breadcrumb({"title": "T", "text": "T > A\n\nh\nrow\n\nrow"})["text"] == "h\nrow\n\nrow"


def test_windows_overlap_by_their_share():
    words = " ".join(f"w{number}" for number in range(250))
    toy = eval_corpora.Asked("toy", [{"id": "d", "title": "", "text": words}], ["w1"] * 5, [[[("d", 0, 2)]]] * 5)
    found = eval_strategies.measure_overlaps(toy, Embedder())
    assert [chunks[1]["body"].split()[0] for chunks, _ in found.values()] == ["w100", "w90", "w80", "w70", "w60", "w50"]


def test_what_a_breadcrumb_adds_is_with_it_less_without():
    ones, zeros = ({column: np.full(9, value) for column in COLUMNS} for value in (1.0, 0.0))
    assert "**+1.000" in eval_strategies.breadcrumb_table({"structured": ([], ones, zeros)})
    assert "**-1.000" in eval_strategies.breadcrumb_table({"structured": ([], zeros, ones)})


def test_bold_is_what_is_shown():
    assert eval_strategies._marked("x", np.ones(9), np.zeros(9)) == "**x**"
    assert eval_strategies._marked("x", np.ones(9), np.ones(9)) == "x"


@pytest.fixture(scope="module")
def corpus():
    """Two descriptions, and the questions that they answer."""
    found, names = eval_corpora.labelled_descriptions(), {"iris", "lfw"}
    few = [number for number, pieces in enumerate(found.evidence)
           if {copy[0] for copies in pieces for copy in copies} <= names]
    return found._replace(docs=[each for each in found.docs if each["id"] in names],
                          questions=[found.questions[number] for number in few],
                          evidence=[found.evidence[number] for number in few])


@pytest.fixture(scope="module")
def measured(corpus):
    return eval_strategies.measure(corpus, Embedder())


def test_every_cell_is_measured_for_every_question(corpus, measured):
    assert measured.keys() == CUTS.keys()
    for chunks, *both in measured.values():
        for values in both:
            assert list(values) == COLUMNS and {len(each) for each in values.values()} == {len(corpus.questions)}
            for name in eval_strategies.RETRIEVERS:                          # more to read never finds less
                assert (values[name, 250] <= values[name, 500] + 1e-12).all()


def test_strategies_yield_different_boundaries(measured):
    starts = {name: tuple((chunk["doc_id"], chunk["start"]) for chunk in chunks) for name, (chunks, *_) in measured.items()}
    assert len(set(starts.values())) == len(starts) - 1                 # late takes structured's spans


def test_sizes_are_those_of_the_names(measured):
    count = Embedder().count_tokens
    assert max(count(chunk["text"]) for chunk in measured["fixed"][0]) <= 200
    assert max(len(chunk["body"]) for chunk in measured["fixed, 500 characters (tutorials)"][0]) <= 500
    windows = measured["fixed, 300 words, overlap 50 (rag.py)"][0]
    assert max(len(chunk["body"].split()) for chunk in windows) == 300
    first, second = measured["fixed, 800 pieces, overlap 400"][0][:2]
    assert 300 <= count(first["body"][second["start"] - first["start"]:]) <= 402


def test_overlap_repeats_its_share_and_makes_more_chunks(corpus):
    found = eval_strategies.measure_overlaps(corpus, Embedder())
    counts = [len(chunks) for chunks, _ in found.values()]
    assert tuple(found) == OVERLAPS and counts == sorted(counts) and counts[-1] > 1.5 * counts[0]
    first, second = found[50][0][:2]
    assert first["body"].split()[50:] == second["body"].split()[:50]
    rows = eval_strategies.overlap_table(found).splitlines()[2:]
    assert len(rows) == len(OVERLAPS) and "+" not in rows[0] and all("to" in row for row in rows[1:])


def test_a_difference_is_marked_where_there_is_one(measured):
    n = len(measured["fixed"][1]["dense", 250])
    ones, zeros = ({column: np.full(n, value) for column in COLUMNS} for value in (1.0, 0.0))
    better = {name: (chunks, ones if name == "structured" else zeros, zeros) for name, (chunks, *_) in measured.items()}
    rows = eval_strategies.recall_table(better).splitlines()
    assert all(("**0.000**" in row) != ("structured |" in row) for row in rows[2:] if not row.startswith("| structured,"))
    assert eval_strategies.verdicts(better).count(f"worse in {len(COLUMNS)} of {len(COLUMNS)}") == len(CUTS) - 1
    crumbs = eval_strategies.breadcrumb_table(better).splitlines()[2:]
    assert [row.count("**+1.000 (+1.00 to +1.00)**") for row in crumbs] == [
        len(COLUMNS) if name == "structured" else 0 for name in CUTS]
    equal = {name: (chunks, ones, ones) for name, (chunks, *_) in measured.items()}
    tables = eval_strategies.recall_table(equal) + eval_strategies.breadcrumb_table(equal) + eval_strategies.verdicts(equal)
    assert "**" not in tables and tables.count("no difference shown in 6 of 6") == len(CUTS) - 1


def test_the_pictures_are_drawn(measured, tmp_path):
    [document] = documents.load_descriptions(["linnerud"])
    eval_strategies.plot_bands(document, Embedder(), tmp_path / "bands.png")
    eval_strategies.plot_recalls(measured, "seed 0", tmp_path / "recalls.png")
    from matplotlib import image
    for name in ("bands.png", "recalls.png"):
        assert image.imread(tmp_path / name).shape[1] > image.imread(tmp_path / name).shape[0] > 300
