"""A budget is spent as it says, evidence is where the labels say, and the comparison notices a difference."""

import numpy as np
import pytest

import chunking
import documents
import eval_strategies as experiment
from toy import Embedder


def chunk(text, body, start=0, doc_id="d", **rest):
    return {"doc_id": doc_id, "text": text, "body": body, "start": start, "end": start + len(body), **rest}


@pytest.mark.parametrize("words, spans", [
    (0, []), (1, []),                                                   # the breadcrumb alone costs 1
    (2, [("d", 0, 1)]), (3, [("d", 0, 4)]),                             # the one that overflows is cut
    (4, [("d", 0, 4)]),                                                 # nothing is left for the second one's body
    (5, [("d", 0, 4), ("d", 10, 13)]), (99, [("d", 0, 4), ("d", 10, 17)])])
def test_whole_chunks_in_rank_order_and_the_overflowing_one_is_cut(words, spans):
    assert experiment.read_within([chunk("T\n\na  b", "a  b"), chunk("T\n\nccc ddd", "ccc ddd", 10)], words) == spans


def test_evidence_has_a_piece_for_each_quote_or_group():
    question = {"evidence": [{"doc_id": "a", "quote": "cat"}, {"doc_id": "a", "quote": "dog", "group": 1},
                             {"doc_id": "b", "quote": "hound", "group": 1}]}
    texts = {"a": "cat dog cat", "b": "a hound, a cat"}
    assert experiment.evidence_spans(question, texts) == [
        [("a", 0, 3), ("a", 8, 11)], [("a", 4, 7), ("b", 2, 7)]]        # a quote is looked up in its own document only


def test_every_quote_of_the_labelled_set_is_found():
    texts = {document["id"]: document["text"] for document in documents.load_descriptions()}
    questions = experiment.load_questions()
    assert len(questions) >= 60 and sum(not each["evidence"] for each in questions) >= 15
    assert {each["doc_id"] for each in questions} - {None} == texts.keys()
    assert all(experiment.evidence_spans(each, texts) for each in questions if each["evidence"])


def test_without_breadcrumb_a_chunk_keeps_its_repeated_header():
    assert experiment.without_breadcrumb(chunk("T > A\n\nh\nrow\n\nrow", "row\n\nrow"))["text"] == "h\nrow\n\nrow"


@pytest.mark.parametrize("retriever", ["dense", "BM25"])
def test_the_best_chunk_comes_first_and_parents_stand_for_their_children(retriever):
    [document] = documents.load_descriptions(["wine_data"])
    chunks = chunking.parent_child(document, 60)
    ranked, other = experiment.rank(chunks, [chunks[3]["text"], chunks[0]["text"]], Embedder(max_tokens=999), retriever)
    assert (ranked[0]["id"], other[0]["id"]) == (chunks[3]["parent_id"], chunks[0]["parent_id"])
    assert len({parent["id"] for parent in ranked}) == len(ranked)


@pytest.fixture(scope="module")
def measured():
    return experiment.measure(Embedder())


def test_every_cell_is_measured_for_every_answerable_question(measured):
    recalls, cut = measured
    assert recalls.keys() == {(name, retriever, breadcrumb, budget) for name in experiment.CUTS
                              for retriever in ("dense", "BM25") for breadcrumb in (True, False)
                              for budget in experiment.BUDGETS}
    assert {len(each) for each in recalls.values()} == {sum(bool(q["evidence"]) for q in experiment.load_questions())}
    for name, retriever, breadcrumb, budget in recalls:                 # more to read never finds less
        less, more = recalls[name, retriever, breadcrumb, 250], recalls[name, retriever, breadcrumb, 500]
        assert all(a <= b for a, b in zip(less, more))


def test_strategies_yield_different_boundaries(measured):
    _, cut = measured
    starts = {name: tuple((chunk["doc_id"], chunk["start"]) for chunk in cut[name]) for name in experiment.CUTS}
    assert len(set(starts.values())) == len(starts) - 1                 # late takes structured's spans


def test_the_report_shows_a_difference_where_there_is_one(measured):
    recalls, cut = measured
    better = {key: [1.0] * len(each) if key[0] == "structured" else each for key, each in recalls.items()}
    lines = experiment.report(better, cut).splitlines()
    [row] = [line for line in lines if line.startswith("| structured")]
    assert row.count("1.000") == 8
    assert all("**shown**" in line for line in lines if line.startswith("- "))
    equal = {key: recalls["fixed", "dense", True, 250] for key in recalls}
    assert "**shown**" not in experiment.report(equal, cut)


def test_the_picture_is_drawn(tmp_path):
    [document] = documents.load_descriptions(["linnerud"])
    experiment.plot(document, Embedder(), tmp_path / "bands.png")
    from matplotlib import image
    height, width, _ = image.imread(tmp_path / "bands.png").shape
    assert width > height > 300


def test_unit_vectors_of_late_chunks_are_what_is_searched():
    chunks = chunking.late(documents.load_descriptions(["linnerud"])[0], 30, embedder=Embedder())
    turned = [{**chunk, "vector": np.eye(16, dtype=np.float32)[number]} for number, chunk in enumerate(chunks)]

    class Fixed(Embedder):
        def encode(self, texts, kind="document"):
            assert kind == "query"
            return np.eye(16, dtype=np.float32)[[2]]
    assert experiment.rank(turned, ["?"], Fixed(), "dense")[0][0]["id"] == chunks[2]["id"]
