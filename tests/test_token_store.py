"""Token vectors that are kept within a budget: the same vectors whether kept, computed, saved, or loaded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rerank
import toy
import token_store

TEXTS = ["cat", "cat oil", "oil gold price", "", "the mat"]
texts = st.lists(st.sampled_from(TEXTS), max_size=8)


def listed(found):
    return [each.tolist() for each in found]


def test_by_hand():
    store = token_store.TokenStore(toy.Topics(), budget=12)                        # three words of two numbers of two bytes
    assert listed(store.vectors(["cat", "oil gold price", "cat oil"])) == [
        [[1, 0]], [[0, 1], [0, 1], [0, 1]], [[1, 0], [0, 1]]]
    assert list(store.kept) == ["cat", "cat oil"] and store.size == 4 + 8       # three words did not fit beside one
    store.forget(["cat", "never seen"])
    assert list(store.kept) == ["cat oil"] and store.size == 8


def test_what_is_kept_is_not_computed_again():
    store = token_store.TokenStore(toy.Topics())
    store.vectors(TEXTS)
    store.embedder = None
    assert len(store.vectors(TEXTS)) == len(TEXTS)


def test_what_left_makes_room():
    store = token_store.TokenStore(toy.Topics(), budget=4)
    store.vectors(["cat"])
    store.forget(["cat"])
    store.vectors(["oil"])
    assert list(store.kept) == ["oil"] and store.size == 4


def test_specials_are_left_out_and_lengths_are_one():
    vectors = token_store.word_vectors(np.array([(9.0, 9.0), (3.0, 4.0), (9.0, 9.0)]), np.array([(0, 0), (0, 2), (0, 0)]))
    assert vectors.astype(np.float16).tolist() == np.float16([[0.6, 0.8]]).tolist()


@given(texts, texts, st.integers(0, 60))
def test_scores_do_not_tell_what_was_kept(before, asked, budget):
    stores = [token_store.TokenStore(toy.Embedder(), budget) for budget in (0, budget, 10**6)]
    stores[1].vectors(before)
    results = [rerank.maxsim_scorer(store.embedder, store)("the cat sat", asked) for store in stores]
    assert results[0] == results[1] == results[2]
    assert stores[1].size == sum(each.nbytes for each in stores[1].kept.values()) <= budget


@given(texts, st.lists(st.sampled_from(TEXTS), unique=True), st.integers(0, 60))
def test_arrays_come_back(before, order, budget):
    store, again = token_store.TokenStore(toy.Topics(), budget), token_store.TokenStore(toy.Topics(), budget)
    store.vectors(before)
    again.take(order, **store.arrays(order))
    assert again.kept.keys() <= store.kept.keys() and again.size <= store.size
    assert {text for text in order if len(store.kept.get(text, ()))} == again.kept.keys()
    assert listed(again.kept.values()) == listed(store.kept[text] for text in again.kept)


def test_fill_stops_at_the_first_text_that_does_not_fit():
    store, read = token_store.TokenStore(toy.Topics(), budget=14), []
    store.embedder.token_vectors = lambda text: read.append(text) or toy.Topics().token_vectors(text)
    store.fill(TEXTS)
    assert list(store.kept) == ["cat", "cat oil"] and read == TEXTS[:3]


def test_equal_texts_are_saved_once():
    store = token_store.TokenStore(toy.Topics())
    store.vectors(["cat oil"])
    arrays = store.arrays(["cat oil", "mat", "cat oil"])
    assert len(arrays["token_vectors"]) == 2 and arrays["token_starts"].tolist() == [0, 2, 2, 2]


@pytest.mark.parametrize("budget", [-1, float("nan")])
def test_budgets_that_are_none(budget):
    with pytest.raises(ValueError, match="a number of bytes, at least 0"):
        token_store.TokenStore(toy.Topics(), budget)


def test_rounding_to_float16_moves_a_score_by_less_than_a_thousandth(embedder):
    chunks, question = ["Alcohol in wine: 13.0 on average.", "Bread is baked for an hour."], "How strong is the wine?"
    kept = rerank.maxsim_scorer(embedder, token_store.TokenStore(embedder))(question, chunks)
    fresh = rerank.maxsim_scorer(embedder)(question, chunks)
    assert max(abs(a - b) for a, b in zip(kept, fresh)) < 1e-3
