"""Second half of the lesson on searching: every stage by hand, nothing leaks, and bad input says what is wrong."""

import functools
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from test_index import CHANGES, CHUNKER, DOCUMENTS, Embedder, again, apply, built, chunks_of, document

import chunking
import fusion
import index
import queries
import search
import toy

QUESTIONS = ["the cat dog", "zebra birds", "???"]
USERS = st.sampled_from([None, "hr", ["staff"], ["hr", "staff"], ["nobody"]])
WAYS = [dict(mode="dense"), dict(mode="lexical", scorer=None), dict(weight=0.5), dict(fuse=search.by_rank, scorer=None),
        dict(where={"latest": True}, neighbours=1), dict(where={"product": "x"}, whole=9),
        dict(history=[("user", "the quick dog"), ("assistant", "birds")], rewrites=["decompose"])]


def told(made, user, k=3):
    """All that a user can get out of a search: hits, what was traced, why, and errors."""
    found = []
    for question in QUESTIONS:
        for way in WAYS:
            trace = {}
            hits = search.search(question, made, user, k=k, trace=trace, **way)
            del trace["timings"]
            found += [hits, trace, [search.explain(hit, question, made, user) for hit in hits]]
    for wrong in (dict(where={"secret": "x"}), dict(where={"doc_id": ("x", "y")}), dict(k_each=1)):
        with pytest.raises(ValueError) as caught:
            search.search("cat", made, user, **wrong)
        found.append(str(caught.value))
    return found


def by_hand():
    """The toy corpus, with its own vectors."""
    chunks = [{"id": f"d{number}#0", "doc_id": f"d{number}", "position": 0, "text": text, "vector": vector}
              for number, (text, vector) in enumerate(zip(toy.DOCUMENTS, toy.VECTORS))]
    made = index.Index.build(chunks, toy.Topics())
    made.embedder = AsToyAsks()
    return made


class AsToyAsks(toy.Topics):
    """The toy corpus' own question vector."""

    def encode(self, texts, kind="document", batch_size=None):
        return np.array([toy.QUERY_VECTOR for _ in texts], np.float32)


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_every_stage_of_the_toy_corpus():
    made, reverse = by_hand(), lambda question, texts: [-toy.DOCUMENTS.index(text) for text in texts]
    trace = {}
    hits = search.search(toy.QUESTION, made, k=4, fuse=search.by_rank, scorer=reverse, trace=trace)
    assert [hit.chunk["doc_id"] for hit in hits] == ["d0", "d1", "d2", "d3"] and hits[1].score == -1
    ranks = {stage: {hit.chunk["doc_id"]: hit.ranks[stage].rank for hit in hits if stage in hit.ranks}
             for stage in ("dense", "lexical", "fused", "reranked")}
    assert ranks["dense"] == {f"d{position}": rank for rank, position in enumerate(toy.DENSE_RANKING, start=1)}
    assert ranks["lexical"] == {f"d{position}": rank for rank, position in enumerate(toy.BM25_RANKING, start=1)}
    fused = fusion.rrf([toy.DENSE_RANKING, toy.BM25_RANKING])
    assert ranks["fused"] == {f"d{position}": rank for rank, (position, _) in enumerate(fused, start=1)}
    assert hits[2].ranks["fused"].score == dict(fused)[2] and hits[0].ranks["dense"].score == approx(0.96)
    assert trace["stages"]["fused"] == [(f"d{position}#0", score) for position, score in fused]
    assert [name for name, _ in trace["stages"]["lexical"]] == [f"d{position}#0" for position in toy.BM25_RANKING]


@pytest.mark.parametrize("mode, stages", [("dense", {"dense", "reranked"}), ("lexical", {"lexical", "reranked"}),
                                          ("hybrid", {"dense", "lexical", "fused", "reranked"})])
def test_a_mode_asks_only_its_retrievers(mode, stages):
    hits = search.search(toy.QUESTION, by_hand(), mode=mode)
    assert {stage for hit in hits for stage in hit.ranks} == stages and hits[0].score == hits[0].ranks["reranked"].score
    assert len(hits) == (3 if mode == "lexical" else 4)                # "birds fly" shares no word


def test_the_weight_is_the_rerankers_share():
    """0.25 * MaxSim + 0.75 * BM25, both stretched to 0..1: BM25 prefers document 1, the reranker document 2."""
    scorer = lambda question, texts: [float(text == "birds fly") for text in texts]         # noqa: E731
    hits = search.search(toy.QUESTION, by_hand(), k=4, scorer=scorer, weight=0.25)
    assert [hit.chunk["doc_id"] for hit in hits] == ["d1", "d3", "d0", "d2"]
    assert hits[0].score == approx(0.75) and hits[3].score == approx(0.25)


def test_the_reranker_reads_what_is_searched_context_included():
    made, texts = index.Index.build([{"id": "a#0", "doc_id": "a", "position": 0, "text": "five days",
                                      "context": "Leave policy."}], Embedder()), []
    search.search("leave", made, scorer=lambda question, given: texts.extend(given) or [1.0])
    assert texts == ["Leave policy.\n\nfive days"]


def test_a_name_counts_twice_for_keywords():
    made = built([document("a", "INV-2291 cat"), document("b", "cat mat INV-1")])
    trace = {}
    hits = search.search("cat INV-2291", made, mode="lexical", scorer=None, trace=trace)
    assert trace["identifiers"] == ["INV-2291"]
    tokens = ["cat", "inv-2291", "inv", "2291", "inv-2291", "inv", "2291"]
    assert hits[0].score == made.postings.scores(tokens)[0]


def test_timings_are_of_every_stage():
    trace = {}
    search.search("cat", built([document("a")]), trace=trace)
    assert list(trace["timings"]) == ["rewrite", "retrieve", "fuse", "rerank"] and min(trace["timings"].values()) >= 0


def test_no_more_than_k_each_are_reranked():
    texts = []
    scorer = lambda question, given: texts.extend(given) or [0.0] * len(given)              # noqa: E731
    search.search(toy.QUESTION, by_hand(), k=1, k_each=1, scorer=scorer)
    assert texts == [toy.DOCUMENTS[0]]                                 # two firsts: the lower position


def test_bm25_in_the_last_score_counts_what_is_visible():
    """All of the weight is BM25's: for who may not see c, "cat" is as rare as "dog"; for hr it is rarer."""
    docs = [document("a", "cat"), document("b", "dog"), document("c", "dog", acl=["hr"])]
    scorer = lambda question, given: [0.0] * len(given)                # noqa: E731
    scores = {user: [hit.score for hit in search.search("cat dog", built(docs), user, weight=0, scorer=scorer)]
              for user in (None, "hr")}
    assert scores[None] == [1, 1] and scores["hr"] == [1, 0, 0]


# -- What is read of what was found ------------------------------------------------------------------------------------


def windows(texts, size=4, overlap=0):
    return built_by(functools.partial(chunking.fixed, size=size, overlap=overlap), texts)


def built_by(chunker, texts):
    docs = [document(f"d{number}", text) for number, text in enumerate(texts)]
    return index.Index.build(chunks_of(docs, chunker), Embedder(), chunker)


def test_of_chunks_that_overlap_by_more_than_half_the_best_stays():
    made = windows(["a b c d cat f g h i j"], size=4, overlap=3)        # each window shares three of four words
    hits = search.search("cat", made, scorer=None)
    spans = [(hit.chunk["start"], hit.chunk["end"]) for hit in hits]
    assert len(spans) < len(made.chunks) == 7
    assert all(2 * (min(b, d) - max(a, c)) <= min(b - a, d - c) for a, b in spans for c, d in spans if (a, b) != (c, d))


def test_equal_texts_at_different_places_both_stay():
    made = windows(["cat dog cat dog cat dog", "cat dog"], size=2)
    assert len(search.search("cat", made)) == len(made.chunks) == 4


def test_a_header_that_two_chunks_share_makes_no_duplicate():
    header = "h" * 200 + "\n\n"
    chunks = [{"id": f"a#{number}", "doc_id": "a", "position": number, "text": header + body, "start": 10 * number,
               "end": 10 * number + 9} for number, body in enumerate(["cat", "dog"])]
    assert len(search.search("cat dog", index.Index.build(chunks, Embedder()))) == 2


def test_children_are_searched_and_parents_are_read():
    text = "# Leave\n\nThe cat sat on the mat. The dog slept.\n\n# Stock\n\nOil rose. Gold fell. Birds fly.\n"
    chunker = functools.partial(chunking.parent_child, size=5)
    made = index.Index.build(chunker(document("d0", text, doc_type="md")), Embedder(), chunker)
    hits = search.search("the dog", made, k=9)
    assert hits[0].found["text"].endswith("The dog slept.") and "The cat sat" in hits[0].chunk["body"]
    assert text[hits[0].chunk["start"]:hits[0].chunk["end"]] == hits[0].chunk["body"]
    parents = [hit.chunk["id"] for hit in hits]
    assert len(set(parents)) == len(parents) < len(made.chunks)        # two children of one parent are one hit


def test_a_parent_of_which_a_part_is_hidden_is_not_read():
    child = {"doc_id": "a", "parent_id": "a#p0", "parent_start": 0, "parent_end": 11, "parent_body": "cat SECRET."}
    made = index.Index.build([
        {**child, "id": "a#0", "position": 0, "text": "cat", "body": "cat", "start": 0, "end": 3},
        {**child, "id": "a#1", "position": 1, "text": "SECRET.", "body": "SECRET.", "start": 4, "end": 11, "acl": ["hr"]}],
        Embedder())
    [hit] = search.search("cat", made)
    assert hit.chunk["body"] == "cat" and search.search("cat", made, "hr")[0].chunk["body"] == "cat SECRET."


def test_an_explanation_adds_up_to_the_score():
    made = built([document("a", "what is max_iter"), document("b", "birds fly")])
    [hit] = search.search("what is max_iter?", made, mode="lexical", scorer=None)
    words = search.explain(hit, "what is max_iter?", made)[1]
    assert sum(float(each) for each in re.findall(r" (\d\.\d\d) \(in", words)) == approx(hit.score, abs=0.03)


def ids(hit):
    return [chunk["id"] for chunk in hit.around]


def test_neighbours_come_with_a_hit_as_far_as_they_may_be_seen():
    chunks = [{"id": f"{doc}#{number}", "doc_id": doc, "position": number, "text": word, "body": word}
              for doc in "ab" for number, word in enumerate("bird mat cat fly the".split())]
    chunks[1]["acl"] = ["hr"]
    made = index.Index.build(chunks, Embedder())
    where = {"doc_id": "a"}
    [hit] = search.search("cat", made, where=where, k=1, neighbours=1, mode="lexical")
    assert ids(hit) == ["a#2", "a#3"]
    assert ids(search.search("cat", made, "hr", where, k=1, neighbours=1, mode="lexical")[0]) == ["a#1", "a#2", "a#3"]
    assert ids(search.search("the", made, where={"doc_id": "b"}, k=1, neighbours=2, mode="lexical")[0]) == ["b#2", "b#3", "b#4"]
    assert ids(search.search("cat", made, where=where, k=1)[0]) == []
    for chunk in made.chunks:
        chunk.pop("body")
    assert ids(search.search("cat", made, where=where, k=1, neighbours=1, mode="lexical")[0]) == ["a#2", "a#3"]


def test_short_documents_come_whole():
    made = windows(["the cat sat on the mat", "birds fly quick " * 4], size=3)
    hits = {hit.chunk["doc_id"]: hit for hit in search.search("cat birds", made, mode="lexical", whole=6)}
    assert ids(hits["d0"]) == ["d0#0", "d0#1"] and ids(hits["d1"]) == [hits["d1"].chunk["id"]]


# -- Queries -----------------------------------------------------------------------------------------------------------


def says(**replies):
    """A model with one reply for each kind of request."""
    kinds = {queries.REWRITE: "rewrite", queries.DECOMPOSE: "decompose", queries.HYPOTHETICAL: "passage"}
    return lambda prompt, system: replies.get(kinds.get(system, "paraphrases"), "")


def test_a_follow_up_is_searched_as_a_question_that_stands_alone():
    made, trace = built([document("a", "the refund policy"), document("b", "birds fly")]), {}
    hits = search.search("and for EU?", made, history=[("user", "What is the refund policy?"), ("assistant", "30 days")],
                  trace=trace, mode="lexical")
    asked = []
    search.search("and for EU?", made, history=[("user", "What is the refund policy?")],
                  scorer=lambda question, texts: asked.append(question) or [0.0] * len(texts))
    assert asked == [trace["question"]]
    assert trace["question"] == "and for EU? refund policy" and [hit.chunk["doc_id"] for hit in hits] == ["a"]


def test_each_query_is_searched_the_original_first_and_all_are_fused():
    made, trace = built([document("a", "plan cat"), document("b", "plan dog"), document("c", "birds fly")]), {}
    hits = search.search("plan cat or plan dog", made, trace=trace, rewrites=["paraphrases", "decompose", "hypothetical"],
                  ask=says(paraphrases='["the birds"]', decompose='["plan cat", "plan dog"]', passage="Birds fly."))
    assert trace["queries"] == ["plan cat or plan dog", "the birds", "plan cat", "plan dog"]
    stages = {stage for hit in hits for stage in hit.ranks}
    assert {"dense", "dense 4", "lexical", "lexical 4", "passage", "fused", "reranked"} <= stages
    passage = {hit.ranks["passage"].rank: hit.chunk["doc_id"] for hit in hits if "passage" in hit.ranks}
    assert passage[1] == "c" and "Birds fly." not in str(trace)         # a vector to search with, never shown


def test_what_is_reranked_against_is_the_question_not_its_parts():
    asked = []
    search.search("compare plan A and plan B pricing", built([document("a", "plan")]), rewrites=["decompose"],
           scorer=lambda question, texts: asked.append(question) or [0.0] * len(texts))
    assert asked == ["compare plan A and plan B pricing"]


def test_without_a_model_nothing_is_added():
    trace = {}
    search.search("cat", built([document("a")]), rewrites=["paraphrases", "decompose", "hypothetical"], trace=trace)
    assert trace["queries"] == ["cat"]


# -- Nothing leaks, and what grew equals what is built -----------------------------------------------------------------


@settings(max_examples=25)
@given(CHANGES, st.lists(DOCUMENTS, max_size=5), USERS)
def test_nothing_of_what_is_forbidden_shows(changes, more, user):
    """After any changes, saves and loads: no forbidden id, text, count or score in a hit, a trace or an error."""
    now = {f"b{number}": {"id": f"b{number}", **each} for number, each in enumerate(more)}
    made = built(now.values())
    told(made, "hr")                                                   # somebody else's questions fill the store
    for change in changes:
        now = {id: each for id, each in now.items() if id in made.documents}
        made = apply(made, now, *change)
    groups = {"everyone", *([user] if isinstance(user, str) else user or [])}
    theirs = [each for each in now.values() if groups & set(each.get("acl", ["everyone"]))]
    assert told(made, user) == told(built(theirs), user)


@settings(max_examples=20)
@given(CHANGES, st.randoms(use_true_random=False))
def test_what_grew_equals_what_is_built(changes, shuffler):
    made, now = built([]), {}
    for change in changes:
        now = {id: each for id, each in now.items() if id in made.documents}
        made = apply(made, now, *change)
    docs = [each for id, each in now.items() if id in made.documents]
    shuffler.shuffle(docs)
    assert told(made, "hr") == told(built(docs), "hr")


def test_a_score_does_not_tell_what_the_store_keeps():
    docs = [document(f"d{number}", f"the cat {word}") for number, word in enumerate("dog mat birds fly quick".split())]
    one, other = (index.Index.build(chunks_of(docs), Embedder(), token_budget=budget) for budget in (0, 10**6))
    other.token_store.fill(map(chunking.searched_text, other.chunks))
    assert told(one, None) == told(other, None) == told(again(other), None)
    assert not one.token_store.kept and len(again(other).token_store.kept) == len(other.chunks)


@pytest.mark.parametrize("planted", [
    ("_around", lambda index, position, allowed, neighbours, whole: index.chunks[max(0, position - 1):position + 1]),
    ("explain", lambda hit, question, index, user: str(index.postings.explain(["the"], index.chunks.index(hit.found)))),
])
def test_planted_leaks_are_caught(planted, monkeypatch):
    docs = [document("a", "the cat"), document("b", "the cat", acl=["hr"]), document("c", "birds fly quick the dog")]
    monkeypatch.setattr(search, *planted)
    assert told(built(docs), None) != told(built([docs[0], docs[2]]), None)


def test_k_allowed_ones_come_back_from_among_many_others():
    made = built([document(f"d{number}", "the cat", product="x" if number % 50 == 0 else "y") for number in range(400)])
    for mode in search.MODES:
        assert len(search.search("the cat", made, where={"product": "x"}, mode=mode)) == 8


# -- Exact tokens, and meanings ----------------------------------------------------------------------------------------


def test_an_invoice_among_a_thousand_alike_is_found_by_its_number(embedder):
    """Dense search alone cannot tell the numbers apart; keywords can."""
    numbers = random.Random(0).sample(range(1000, 10_000), 999)
    chunks = [{"id": f"{number}#0", "doc_id": str(number), "position": 0,
               "text": f"Invoice INV-{number} for 20 chairs is due on 2 June."}
              for number in [2291, *(each for each in numbers if each != 2291)]]
    vectors = embedder.encode([chunk["text"] for chunk in chunks])
    made = index.Index.build([{**chunk, "vector": row} for chunk, row in zip(chunks, vectors)], embedder)
    question = "When is INV-2291 due?"
    dense, hybrid = (search.search(question, made, mode=mode, scorer=None) for mode in ("dense", "hybrid"))
    assert hybrid[0].chunk["doc_id"] == "2291" and hybrid[0].ranks["lexical"].rank == 1
    assert dense[0].chunk["doc_id"] == "2290"                          # one digit off
    assert search.search(question, made)[0].chunk["doc_id"] == "2291"         # reranked as well


SUPPORT = ["A socket reset ends the session: the peer closed it. Raise the keep-alive interval.",
           "ERR_CONN_RESET is logged when the remote host closes the port.",
           "Run kubectl rollout undo to go back to the previous release.",
           "The keeping of pets in my office is dropping out of use.",
           "Invoices are paid within 30 days.", "Lunch is served at noon in the canteen."]


def test_my_connection_keeps_dropping_means_a_socket_reset(embedder):
    """Dense search knows what is meant; keywords only find "my", "keeps" and "dropping"."""
    chunks = [{"id": f"{number}#0", "doc_id": str(number), "position": 0, "text": text}
              for number, text in enumerate(SUPPORT)]
    made = index.Index.build(chunks, embedder)
    best = {mode: search.search("my connection keeps dropping", made, mode=mode, scorer=None) for mode in search.MODES}
    assert best["dense"][0].chunk["id"] in ("0#0", "1#0") and best["lexical"][0].chunk["id"] == "3#0"
    assert {"0#0", "1#0"} <= {hit.chunk["id"] for hit in best["hybrid"][:3]}
    for question, expected in (("ERR_CONN_RESET", "1#0"), ("kubectl rollout undo", "2#0")):
        assert search.search(question, made, mode="lexical", scorer=None)[0].chunk["id"] == expected
        assert search.search(question, made)[0].chunk["id"] == expected


# -- Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings, error, message", [
    (dict(question=" \n"), ValueError, "the question is empty"), (dict(question=None), TypeError, "must be a string"),
    (dict(mode="sparse"), ValueError, "mode must be one of dense, lexical, hybrid"),
    (dict(k=9, k_each=8), ValueError, "k_each is 8, but 9 chunks"), (dict(k=-1), ValueError, "k must be at least 0"),
    (dict(k=1.5), TypeError, "k must be a whole number"), (dict(neighbours=-1), ValueError, "neighbours must be"),
    (dict(whole=-1), ValueError, "whole must be"), (dict(weight=2), ValueError, "weight must be between 0 and 1"),
    (dict(rewrites=["synonyms"]), ValueError, "no rewrite 'synonyms'; there are: paraphrases, decompose, hypothetical"),
    (dict(where={"colour": "red"}), ValueError, "no field 'colour'"), (dict(user=3), TypeError, "groups"),
    (dict(history="hello"), TypeError, "history must be a list"),
    (dict(scorer=lambda question, texts: [float("nan")] * len(texts)), ValueError, "NaN"),
])
def test_settings_that_are_wrong(settings, error, message):
    with pytest.raises(error, match=message):
        search.search(**{"question": "cat", "index": built([document("a")]), **settings})


def test_an_empty_index_gives_nothing():
    made = built([])
    assert [search.search("cat", made, mode=mode) for mode in search.MODES] == [[], [], []]
    assert search.search("cat", built([document("a")]), k=0) == []


@pytest.mark.parametrize("question", ["to be or not to be", "?!", "the " * 10_000, "猫はどこ", "\u200b"])
def test_any_question_of_words_or_none(question):
    made = built([document("a", "to be"), document("b", "cat")])
    assert len(search.search(question, made, scorer=None)) == 2


def test_vectors_that_are_no_numbers():
    made = built([document("a"), document("b")])
    made.vectors[1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        search.search("cat", made)
