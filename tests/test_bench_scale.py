"""What bench_scale.py measures with is put together rightly; speed is no test."""

import json
from itertools import islice

import numpy as np
import pytest

import bench
import bench_scale
import index as indexes
from bench_scale import CASES, WAYS, Result


@pytest.fixture(scope="module")
def index():
    return indexes.Index.build(bench_scale.make_chunks(1000), bench_scale.StandIn())


def result(n=1000, **hybrid):
    """A Result in which everything takes 10 ms, and hybrid what is said."""
    times = {case: {way: [0.010] * 3 for way in WAYS} for case in CASES}
    for case, seconds in hybrid.items():
        times[{"all": "all", "filtered": "1% filter"}[case]]["hybrid"] = seconds
    return Result(n, {"build": 1.0, "update one": 0.5, "save": 2.0, "load": 0.25},
                  {"vectors": 4e6, "postings": 3e6, "chunks and the rest": 2e6, "peak while building": 20e6}, times)


def test_chunks_and_questions_are_seeded_and_have_unit_vectors():
    chunks = list(islice(bench_scale.make_chunks(50), 50))
    assert [each["text"] for each in chunks] == list(bench_scale.texts(50))
    assert {len(each["text"].split()) for each in chunks} == {40}
    asked = bench_scale.make_questions(5)
    assert [text for _, text in asked] == [text for _, text in bench_scale.make_questions(5)]
    assert all(len(text.split()) == 6 for _, text in asked)
    for vector in (*(each["vector"] for each in chunks), *(vector for vector, _ in asked)):
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_the_cases_find_all_one_in_a_hundred_and_nine_in_ten(index):
    found = {case: int(index.mask(*each).sum()) for case, each in CASES.items()}
    assert found == {"all": 1000, "1% filter": 10, "10% hidden": 900}
    assert [int(index.visible(user).sum()) for user, _ in CASES.values()] == [1000, 1000, 900]


def test_the_stand_in_gives_the_same_text_the_same_vector_of_length_1():
    one, two, again = bench_scale.StandIn().encode(["a", "b", "a"])
    assert one.tolist() == again.tolist() != two.tolist() and np.linalg.norm(one) == pytest.approx(1, abs=1e-6)


def test_every_way_is_timed_for_every_question(index):
    times = bench_scale.measure_questions(index, bench_scale.make_questions(3))
    assert {case: {way: len(each) for way, each in ways.items()} for case, ways in times.items()} == {
        case: dict.fromkeys(WAYS, 3) for case in CASES}
    assert all(seconds > 0 for ways in times.values() for each in ways.values() for seconds in each)


def test_hybrid_takes_the_masks_once_both_retrievers_and_the_fusion(index, monkeypatch):
    ticks = iter([0, 1, 11, 111, 1111])
    monkeypatch.setattr(bench_scale.time, "perf_counter", lambda: next(ticks))
    [(vector, text)] = bench_scale.make_questions(1)
    _, times = bench_scale.ask(index, vector, text, None, None)
    assert times == {"masks": 1, "dense": 1 + 10, "lexical": 1 + 100, "hybrid": 1111}


def test_one_size_is_measured_from_building_to_loading():
    n, steps, memory, _ = bench_scale.measure(200, bench_scale.make_questions(1))
    assert n == 200 and list(steps) == ["build", "update one", "save", "load"] and min(steps.values()) > 0
    assert memory["vectors"] == 200 * 384 * 4 and memory["peak while building"] > memory["postings"] > 0


def test_races_are_against_the_target_and_against_no_filter():
    against_target, against_all = bench_scale.races(result(all=[0.1, 0.3, 0.2], filtered=[0.1, 0.1, 0.05]))
    assert against_target.ratios == pytest.approx([0.15 / 0.1, 0.15 / 0.3, 0.15 / 0.2])
    assert against_all.ratios == pytest.approx([0.1 / 0.1, 0.3 / 0.1, 0.2 / 0.05])
    assert (against_target.ours, against_all.ours, against_all.peers) == (0.2, 0.1, 0.2)
    assert against_target.target == against_all.target == 1 and "150 ms" in bench.table([against_target])


def test_report_has_a_line_for_each_case_and_one_for_each_size():
    lines = bench_scale.report([result(all=[0.01, 0.02, 0.03]), result(n=10_000)]).splitlines()
    assert lines[2] == "| 1,000 | all | 10.0 (10.0) | 10.0 (10.0) | 10.0 (10.0) | 20.0 (29.0) | 10.0 (10.0) | 2.00 |"
    assert lines[-1] == "| 10,000 | 1.00 s | 0.50 s | 2.00 s | 0.25 s | 4 MB | 3 MB | 2 MB | 20 MB |"
    assert len(lines) == 2 + 6 + 3 + 2 and len({line.count("|") for line in lines[:8]}) == 1


def test_the_picture_is_drawn(tmp_path):
    bench_scale.plot([result(), result(n=10_000)], tmp_path / "scale.png")
    assert (tmp_path / "scale.png").read_bytes().startswith(b"\x89PNG")


def test_small_prints_what_bench_reads_and_writes_nothing(monkeypatch, capsys):
    monkeypatch.setattr(bench_scale, "measure", lambda n, asked: result(n))
    monkeypatch.setattr(bench_scale, "plot", None)
    assert bench_scale.main(["--small"]) == 0
    *races, note = map(json.loads, capsys.readouterr().out.splitlines())
    assert [bench.Race(*race).peer for race in races] == ["150 ms", "without the filter"] and note.endswith(
        "1.00 (200 chunks), 1.00 (1,000 chunks)")
