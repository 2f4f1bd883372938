"""What is read is what is paid for; the four retrievers rank as their parts do; measures are those of metrics.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import bm25
import chunking
import documents
import eval_spans
import metrics
import rerank
import search
from eval_spans import Cut
from toy import Embedder, Topics


def chunk(text, body, start=0, doc_id="d", **rest):
    return {"doc_id": doc_id, "text": text, "body": body, "start": start, "end": start + len(body), **rest}


# -- Read --------------------------------------------------------------------------------------------------------------


def test_a_breadcrumb_is_paid_for():
    assert eval_spans.read_within([chunk("T\n\na  b", "a  b")], 2) == [("d", 0, 1)]


@pytest.mark.parametrize("words, spans", [
    (0, []), (1, []),                                                   # the breadcrumb alone costs 1
    (2, [("d", 0, 1)]), (3, [("d", 0, 4)]),                             # the one that overflows is cut
    (4, [("d", 0, 4)]),                                                 # nothing is left for the second one's body
    (5, [("d", 0, 4), ("d", 10, 13)]), (99, [("d", 0, 4), ("d", 10, 17)])])
def test_whole_chunks_in_rank_order_and_the_overflowing_one_is_cut(words, spans):
    assert eval_spans.read_within([chunk("T\n\na  b", "a  b"), chunk("T\n\nccc ddd", "ccc ddd", 10)], words) == spans


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(0, 60))
def test_a_budget_is_never_exceeded_and_more_of_it_reads_no_less(lengths, budget):
    chunks, start = [], 0
    for length in lengths:
        body = " ".join(["w"] * length)
        chunks.append(chunk(f"T\n\n{body}", body, start))
        start += len(body) + 1
    text = " ".join(each["body"] for each in chunks)
    read, more = (eval_spans.read_within(chunks, words) for words in (budget, budget + 1))
    paid = sum(len(text[first:last].split()) + 1 for _, first, last in read)
    assert paid <= budget and read == more[:len(read) - 1] + read[-1:] if read else True
    assert sum(last - first for _, first, last in read) <= sum(last - first for _, first, last in more)


def test_words_read_are_those_of_the_text_with_its_breadcrumb():
    assert eval_spans.n_words([chunk("T\n\na  b", "a  b"), chunk("T\n\nccc ddd", "ccc ddd", 10)]) == 6


# -- Measure -----------------------------------------------------------------------------------------------------------

CHUNKS = [chunk("the cat sat", "the cat sat", 0), chunk("on the mat", "on the mat", 12), chunk("oil", "oil", 0, "e")]


def test_measures_by_hand():
    evidence = [[[("d", 4, 14)]]]                                       # "cat sat on": 7 of 10 in the first chunk
    values = eval_spans.measure([CHUNKS], evidence, CHUNKS, k=1)
    assert {name: each[0] for name, each in values.items()} == approx(
        {"recall": 7/10, "precision": 7/11, "IoU": 7 / (11 + 10 - 7), "omega": 9/22, "MRR": 0, "words": 3})
    values = eval_spans.measure([[CHUNKS[2], CHUNKS[1]]], [[[("d", 15, 18)]]], CHUNKS, budget=3)
    assert {name: each[0] for name, each in values.items()} == approx(  # "oil", "on the": the is evidence
        {"recall": 1, "precision": 3 / (3 + 6), "IoU": 3 / (9 + 3 - 3), "omega": 3/10, "MRR": 1/2, "words": 3})


def test_a_copy_is_as_good_as_the_quote():
    values = eval_spans.measure([[CHUNKS[1]]], [[[("d", 0, 3), ("d", 15, 18)]]], CHUNKS, k=5)
    assert (values["recall"][0], values["IoU"][0], values["MRR"][0]) == (1, 3/10, 1)
    assert values["omega"][0] == 6/21                                   # both copies' chunks are counted


def test_nothing_found_is_no_precision_and_no_recall():
    values = eval_spans.measure([[]], [[[("d", 0, 3)]]], CHUNKS, k=5)
    assert np.isnan(values["precision"][0]) and values["recall"][0] == values["MRR"][0] == values["words"][0] == 0


def test_a_single_question_gets_no_interval():
    with pytest.raises(ValueError, match="at least 5"):
        eval_spans.interval([1.0])
    mean, low, high = eval_spans.interval([1, 0, 1, 1, 0])
    assert low < mean == 3/5 < high


# -- Cut and rank ------------------------------------------------------------------------------------------------------

DOCS = documents.load_descriptions(["iris", "linnerud", "wine_data"])
QUESTIONS = ["Who created the iris data?", "How many chin-ups?", "maximum proline", "zzz"]


def test_a_cut_is_its_strategy_s():
    found = Cut("fixed", 50, 10, "words").chunks(DOCS, None)
    assert found == [each for document in DOCS for each in chunking.fixed(document, 50, 10, "words")]
    assert str(Cut("fixed", 50, 10, "words")) == "fixed, 50 words, overlap 10" and str(Cut()) == "structured, 200 tokens"
    with pytest.raises(ValueError, match="no strategy 'round'; there are: fixed"):
        Cut("round").chunks(DOCS, None)
    with pytest.raises(ValueError, match="overlap"):
        Cut("fixed", 5, 5, "words").chunks(DOCS, None)


@pytest.fixture(scope="module")
def ranked():
    chunks = Cut("fixed", 30, 0, "words").chunks(DOCS, None)
    return chunks, eval_spans.rank(chunks, QUESTIONS, Embedder())


def test_each_retriever_ranks_as_its_parts_do(ranked):
    chunks, found = ranked
    texts, embedder = [each["text"] for each in chunks], Embedder()
    vectors, index = embedder.encode(texts), bm25.BM25(map(bm25.tokenize, texts))
    for number, question in enumerate(QUESTIONS):
        cosines = (vectors @ embedder.encode([question])[0]).tolist()
        dense = sorted(range(len(chunks)), key=lambda place: -cosines[place])
        keywords = index.top_k(bm25.tokenize(question), 200)
        assert [each["id"] for each in found["dense"][number]] == [chunks[place]["id"] for place in dense[:200]]
        assert [each["id"] for each in found["bm25"][number]] == [chunks[place]["id"] for place in keywords[0]]
        runs = [[(place, cosines[place]) for place in dense[:100]], list(zip(*map(np.ndarray.tolist, keywords)))[:100]]
        fused = [place for place, _ in search.by_score(runs)]
        assert [each["id"] for each in found["hybrid"][number]] == [chunks[place]["id"] for place in fused]
        scores = rerank.maxsim_scorer(embedder)(question, [texts[place] for place in fused[:50]])
        top = sorted(range(min(50, len(fused))), key=lambda place: -scores[place])
        assert [each["id"] for each in found["rerank"][number]] == [
            chunks[place]["id"] for place in [fused[place] for place in top] + fused[50:]]


def test_nothing_shared_is_nothing_found_by_keywords_alone(ranked):
    _, found = ranked
    assert found["bm25"][3] == [] and len(found["hybrid"][3]) == len(found["dense"][3]) > 0


def test_the_first_fifty_are_reranked_and_the_others_follow():
    chunks = [chunk(f"oil w{number}", f"oil w{number}", 10 * number) for number in range(60)]
    found = eval_spans.rank(chunks, ["oil w59"], Embedder())
    hybrid, reranked = found["hybrid"][0], found["rerank"][0]
    assert len(hybrid) == 60 and reranked[50:] == hybrid[50:] and reranked[:50] != hybrid[:50]
    assert sorted(each["start"] for each in reranked[:50]) == sorted(each["start"] for each in hybrid[:50])
    assert hybrid[0] == reranked[0] == chunks[59]


def test_no_more_words_are_read_than_there_are():
    assert eval_spans.measure([CHUNKS], [[[("d", 0, 3)]]], CHUNKS, budget=99)["words"][0] == 7


def test_nothing_is_embedded_for_keywords():
    chunks = Cut("fixed", 30, 0, "words").chunks(DOCS, None)
    assert list(eval_spans.rank(chunks, QUESTIONS, None, ["bm25"])) == ["bm25"]
    with pytest.raises(ValueError, match="no retriever 'BM25'; there are: dense"):
        eval_spans.rank(chunks, QUESTIONS, None, ["BM25"])


@pytest.mark.parametrize("retriever", eval_spans.RETRIEVERS)
def test_the_best_chunk_comes_first_and_parents_stand_for_their_children(retriever):
    chunks = chunking.parent_child(DOCS[2], 60)
    asked = [chunks[3]["text"], chunks[0]["text"]]
    ranked, other = eval_spans.rank(chunks, asked, Embedder(max_tokens=999), [retriever])[retriever]
    assert (ranked[0]["id"], other[0]["id"]) == (chunks[3]["parent_id"], chunks[0]["parent_id"])
    assert len({parent["id"] for parent in ranked}) == len(ranked)


def test_unit_vectors_of_late_chunks_are_what_is_searched():
    chunks = chunking.late(DOCS[1], 30, embedder=Embedder())
    turned = [{**each, "vector": np.eye(16, dtype=np.float32)[number]} for number, each in enumerate(chunks)]

    class Fixed(Embedder):
        def encode(self, texts, kind="document"):
            assert kind == "query"
            return np.eye(16, dtype=np.float32)[[2]]
    assert eval_spans.rank(turned, ["?"], Fixed(), ["dense"])["dense"][0][0]["id"] == chunks[2]["id"]


def test_a_holder_holds_a_copy_whole():
    assert eval_spans.holds(CHUNKS[1], [("d", 12, 22)]) and eval_spans.holds(CHUNKS[1], [("e", 0, 3), ("d", 15, 18)])
    assert not any(eval_spans.holds(CHUNKS[1], [copy]) for copy in [("d", 11, 15), ("d", 15, 23), ("e", 15, 18)])


def test_recall_is_that_of_the_evidence():
    spans = [eval_spans.span(each) for each in CHUNKS[:1]]
    pieces = [[("d", 0, 3)], [("d", 8, 14)]]
    assert eval_spans.measure([CHUNKS], [pieces], CHUNKS, k=1)["recall"][0] == metrics.evidence_recall(spans, pieces) == (
        1 + 3/6) / 2


def test_topics_that_fit_come_first():
    chunks = [chunk("the cat sat", "the cat sat"), chunk("oil price", "oil price", 12)]
    assert eval_spans.rank(chunks, ["gold"], Topics(), ["dense"])["dense"] == [[chunks[1], chunks[0]]]
