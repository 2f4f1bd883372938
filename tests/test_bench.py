"""The races run ours and the peer in turn and report ratios; here with stand-ins, since speed is no test."""

import numpy as np
import pytest

import bench


def clock(monkeypatch, seconds):
    """Let each call of a stand-in take as long as `seconds` says, without waiting."""
    now = [0.0]
    monkeypatch.setattr(bench.time, "perf_counter", lambda: now[0])

    def make(name):
        def run():
            now[0] += seconds[name].pop(0)
        return run
    return make


def test_ratio_is_the_peers_time_by_ours_round_by_round_after_a_warm_up(monkeypatch):
    make = clock(monkeypatch, {"ours": [9, 1, 2, 1], "peer": [9, 3, 2, 2]})
    result = bench.race("task", make("ours"), make("peer"), "peer", target=2.0, rounds=3)
    assert result.ratios == [3/1, 2/2, 2/1] and (result.ours, result.peers) == (1, 2)


def test_neither_always_comes_first():
    calls = []
    bench.race("task", lambda: calls.append("ours"), lambda: calls.append("peer"), "peer", rounds=4)
    assert calls[2:] == ["ours", "peer", "peer", "ours", "ours", "peer", "peer", "ours"]


def test_table_says_whether_the_target_is_met_by_the_median():
    lines = bench.table([bench.Race("a", "p", 1e-3, 2e-3, [1.0, 2.0, 9.0], 2.0), bench.Race("b", "p", 1, 1, [1.9], 2.0),
                         bench.Race("c", "p", 2e-6, 1e-9, [1.0], None)]).splitlines()
    assert lines[2] == "| a | p | 1 ms | 2 ms | 2.00 (1.00 to 9.00) | 2.00 | met |"
    assert lines[3].endswith("| 1.90 (1.90 to 1.90) | 2.00 | missed |")
    assert lines[4] == "| c | p | 2 µs | 1 ns | 1.00 (1.00 to 1.00) |  |  |"


def test_synthetic_corpus_is_seeded_and_its_questions_come_from_documents():
    corpus, asked = bench.synthetic_corpus(50, n_words=20, vocabulary=100)
    assert bench.synthetic_corpus(50, n_words=20, vocabulary=100) == (corpus, asked)
    assert {len(document) for document in corpus} == {20} and len(asked) == 200
    assert all(len(query) == 6 and any(set(query) <= set(document) for document in corpus) for query in asked)


def test_vectors_are_unit_rows():
    vectors = bench.unit_vectors(25_000, dim=8)
    assert vectors.dtype == np.float32 and np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(25_000), abs=1e-6)


def test_a_wrong_ranking_stops_the_race():
    class Wrong:
        def top_k_many(self, asked, k):
            return [(np.array([1]), np.array([1.0]))]

        def top_k_by_definition(self, query, k):
            return np.array([0]), np.array([1.0])

    with pytest.raises(AssertionError):
        bench._check_bm25(Wrong(), None, [["a"]])


def test_the_counter_counts_like_the_model(embedder):
    counter = bench._Counter()
    for text in ("", "the cat", "spaghetti carbonara, 3.14"):
        assert counter.count_tokens(text) == embedder.count_tokens(text) == counter.count_inside(text) + 2
