"""What bench_encoder.py measures with is put together rightly; speed is no test."""

import json
import subprocess
import sys

import numpy as np
import pytest

import bench
import bench_encoder
import encoder


def test_texts_are_as_long_as_they_are_called(embedder):
    long, short = bench_encoder.real_texts(embedder, 3, 50)
    assert all(256 <= embedder.count_tokens(text) <= 350 for text in long) and len(set(long)) == 3
    assert all(10 <= len(text.split()) <= 60 for text in short) and len(short) == 50
    assert bench_encoder.real_texts(embedder, 3, 50) == (long, short)


def test_the_notes_add_up_and_leave_the_encoder_as_it_was(embedder, monkeypatch):
    monkeypatch.setattr(bench_encoder, "peak", lambda: 100.0)
    model = embedder._model.encoder
    before = encoder.linear, encoder.attend, encoder.add_and_norm, encoder.Bert.forward, model.activate
    shares, products = bench_encoder.where_the_time_goes(model, ["the cat sat"] * 40)
    parts = [int(word[:-1]) for word in shares.replace(",", "").split() if word.endswith("%")]
    assert len(parts) == 4 and 50 < sum(parts) <= 102 and "GFLOP/s a core" in products
    assert before == (encoder.linear, encoder.attend, encoder.add_and_norm, encoder.Bert.forward, model.activate)


def test_programs_run_in_a_process_of_their_own(tmp_path):
    result = bench_encoder.program("import os; print(os.environ['RAG_IN_NUMPY_CACHE'])", tmp_path)()
    assert result.stdout.decode().strip() == str(tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        bench_encoder.program("1 / 0")()


def test_bench_reads_races_and_notes(monkeypatch):
    lines = [json.dumps(bench.Race("a", "p", 1.0, 2.0, [2.0], 1.5)), json.dumps("a note")]
    program = f"print({chr(10).join(lines)!r})"
    original = subprocess.Popen
    monkeypatch.setattr(bench.subprocess, "Popen", lambda command, **settings: original([sys.executable, "-c", program], **settings))
    assert list(bench.outside("bench_encoder.py", small=True)) == [bench.Race("a", "p", 1.0, 2.0, [2.0], 1.5), "a note"]
    program = "raise SystemExit(3)"
    with pytest.raises(subprocess.CalledProcessError):
        list(bench.outside("bench_encoder.py", small=True))


def test_a_core_has_a_peak():
    assert 0 < bench_encoder.peak(size=100) < np.inf
