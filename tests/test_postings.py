"""Second half of the lesson on postings: changed equals built at once, in every bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bm25
import postings
from toy import DOCUMENTS, QUESTION

TOY = [bm25.tokenize(text) for text in DOCUMENTS]
QUERY = bm25.tokenize(QUESTION)
TOKENS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "ü", "東京"]), max_size=6)


def built(token_lists):
    return postings.Postings().changed([], np.arange(len(token_lists)), token_lists)


def state(index):
    return {**{name: array.tolist() for name, array in index.arrays().items()}, "vocabulary": index.vocabulary}


def test_by_hand():
    index = built([["b", "a", "b"], ["b"]])
    assert index.vocabulary == {"a": 0, "b": 1}
    assert index.documents.tolist() == [0, 0, 1] and index.counts.tolist() == [1, 2, 1]
    assert index.starts.tolist() == [0, 1, 3] and index.lengths.tolist() == [3, 1]


def test_one_leaves_and_one_comes():
    index = built([["b", "a", "b"], ["b"]]).changed([-1, 1], [0], [["c", "b"]])
    assert index.vocabulary == {"b": 0, "c": 1}                       # nothing is left of a word that has gone
    assert index.documents.tolist() == [0, 1, 0] and index.counts.tolist() == [1, 1, 1]
    assert index.starts.tolist() == [0, 2, 3] and index.lengths.tolist() == [2, 1]


def test_a_document_between_two():
    index = built([["a"], ["b"]]).changed([0, 2], [1], [["a", "b", "b"]])
    assert state(index) == state(built([["a"], ["a", "b", "b"], ["b"]]))


def test_many_words_are_numbered_in_their_order():
    words = [f"w{number:02}" for number in range(50)]                  # so many that no set has them in order by chance
    assert list(built([words[::-1]]).vocabulary) == words


def test_all_leave():
    index = built(TOY).changed([-1] * 4, [], [])
    assert state(index) == state(postings.Postings()) and index.vocabulary == {}
    assert index.top_k(QUERY, 3)[0].tolist() == []


def test_weights_are_those_of_bm25():
    ours, theirs = built(TOY), bm25.BM25(TOY)
    for visible in (None, np.array([True, False, True, True])):
        assert ours.scores(QUERY, visible).tolist() == theirs.scores(QUERY, visible).tolist()
        assert ours.explain(QUERY, 0, visible) == theirs.explain(QUERY, 0, visible)


def test_put_together_from_its_arrays():
    index = built(TOY)
    again = postings.Postings(list(index.vocabulary), **index.arrays())
    assert state(again) == state(index)
    unweighed = {name: array for name, array in index.arrays().items() if name != "weights"}
    assert state(postings.Postings(list(index.vocabulary), **unweighed)) == state(index)


def test_changing_leaves_the_old_one_as_it_was():
    index = built(TOY)
    before = state(index)
    index.changed([0, -1, 2, 3], [1], [["zebra"]])
    assert state(index) == before


@given(st.lists(st.tuples(TOKENS, st.sampled_from(["stays", "leaves", "comes"])), max_size=10), TOKENS)
def test_changed_equals_built_at_once(corpus, query):
    """Each document is there before, or after, or both."""
    before = [(tokens, fate) for tokens, fate in corpus if fate != "comes"]
    after = [(tokens, fate) for tokens, fate in corpus if fate != "leaves"]
    place = iter(number for number, (_, fate) in enumerate(after) if fate == "stays")
    places = [next(place) if fate == "stays" else -1 for _, fate in before]
    new = [number for number, (_, fate) in enumerate(after) if fate == "comes"]
    changed = built([tokens for tokens, _ in before]).changed(places, new, [after[number][0] for number in new])
    fresh = built([tokens for tokens, _ in after])
    assert state(changed) == state(fresh)
    theirs = bm25.BM25([tokens for tokens, _ in after])
    for k in (1, 3, 20):
        found, expected = changed.top_k(query, k), theirs.top_k(query, k)
        assert [each.tolist() for each in found] == [each.tolist() for each in expected]


def test_tokens_are_checked_as_bm25_checks_them():
    with pytest.raises(TypeError, match="one string"):
        postings.Postings().changed([], [0], ["the cat"])
