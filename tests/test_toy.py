"""The toy corpus is what its legend says, and its two rankings are what the retrievers really return."""

import numpy as np
import pytest

import bm25
import ranking
import toy


def test_lengths_are_6_5_2_and_3_and_their_mean_4():
    lengths = [len(text.split()) for text in toy.DOCUMENTS]
    assert lengths == [6, 5, 2, 3] and sum(lengths) / 4 == 4


def test_question_words_stand_in_3_2_and_2_documents():
    assert [sum(word in text.split() for text in toy.DOCUMENTS) for word in toy.QUESTION.split()] == [3, 2, 2]


def test_vectors_are_unit_and_their_cosines_those_of_the_legend():
    vectors, query = np.array(toy.VECTORS), np.array(toy.QUERY_VECTOR)
    assert (vectors**2).sum(axis=1) == pytest.approx([1, 1, 1, 1]) and (query**2).sum() == pytest.approx(1)
    assert vectors @ query == pytest.approx([0.96, 0.8, 0.0, 0.6])


def test_the_two_rankings_are_those_of_the_retrievers():
    index = bm25.BM25([bm25.tokenize(text) for text in toy.DOCUMENTS])
    assert index.top_k(bm25.tokenize(toy.QUESTION), k=4)[0].tolist() == toy.BM25_RANKING
    assert ranking.top_k(np.array(toy.VECTORS) @ np.array(toy.QUERY_VECTOR), k=4).tolist() == toy.DENSE_RANKING
