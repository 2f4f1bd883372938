"""Beside bench.py — How fast is the encoder beside sentence-transformers? Run by `make bench`, on all cores.

The races of bench.py run on one thread, which is set before NumPy is loaded; these are about all cores, on both sides,
so they have a process of their own. It prints one line of JSON for each race (the fields of bench.Race) or note.

    pieces    word pieces; MiniLM does about 21 million multiplications and additions for each, and more in long texts
    peak      what one core does in float32 products of big square matrices, the other cores busy with the same
    cold      `make run` without its cache of vectors; warm: with it

Where the time goes is measured on the batches of the first race: each core works on a batch of its own, and the seconds
of all cores are added up by what they were spent on.

Not here: GPUs; other models; sentence-transformers with the ONNX or OpenVINO runtime.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import documents
import embedding
import encoder
import eval_chunk_sizes

ROOT = Path(__file__).parent
QUESTION = "how do i keep the connection from dropping?"
FIRST = {"numpy": f"import embedding; embedding.load_embedder().encode([{QUESTION!r}])",
         "sentence-transformers": "from sentence_transformers import SentenceTransformer as S\nimport model_files\n"
                                  f"S(str(model_files.find_folder('all-MiniLM-L6-v2'))).encode([{QUESTION!r}])"}
RUN = {backend: f"import embedding, rag; e = embedding.load_embedder(backend={backend!r}, cache=rag.vector_cache."
                "default_path()); rag.embedder = lambda: e; rag.main([])" for backend in FIRST}


def real_texts(embedder, n_long, n_short):
    """(texts of 256 word pieces or a few more, texts of 10 to 60 words), all from scikit-learn's descriptions."""
    words = " ".join(document["text"] for document in documents.load_descriptions()).split()
    random, long = np.random.default_rng(0), []
    while len(long) < n_long:
        start = random.integers(len(words) - 400)
        size = next(size for size in range(100, 400, 5)
                    if embedder.count_tokens(" ".join(words[start:start + size])) >= 256)
        long.append(" ".join(words[start:start + size]))
    starts, sizes = random.integers(len(words) - 60, size=n_short), random.integers(10, 61, size=n_short)
    return long, [" ".join(words[start:start + size]) for start, size in zip(starts, sizes)]


def races(small):
    """Every race of the encoder; `small`: fewer texts."""
    from bench import race, wait

    ours, theirs = embedding.load_embedder(), embedding.load_embedder(backend="sentence-transformers")._model.model
    long, short = real_texts(ours, *((20, 100) if small else (100, 1000)))
    assert abs(ours.encode(short) - theirs.encode(short)).max() < 1e-5
    questions = [question for question, _, _ in eval_chunk_sizes.QUESTIONS]
    yield race("encoder, 20 questions, one after the other", lambda: [ours.encode([each]) for each in questions],
               lambda: [theirs.encode([each]) for each in questions], "sentence-transformers", 1 / 0.8, 9)
    for name, texts in (("texts of 256 word pieces", long), ("texts of 10 to 60 words", short)):
        yield race(f"encoder, {len(texts):,} {name}", lambda: ours.encode(texts), lambda: theirs.encode(texts),
                   "sentence-transformers", 1 / 1.3, 3)
    yield from where_the_time_goes(ours._model.encoder, long)
    yield race("encoder, process start to first vector", *(program(FIRST[backend]) for backend in FIRST),
               "sentence-transformers", 5.0, 5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "v.sqlite")
        yield race("make run, cold", program(RUN["numpy"]), program(RUN["sentence-transformers"]),
                   "the sentence-transformers backend, cold", None, 5)
        warm = [program(RUN[backend], path) for backend in RUN]
        yield race("make run, warm", *warm, "the sentence-transformers backend, warm", None, 5)
        yield race("make run, warm", warm[0], lambda: wait(2), "two seconds", 1.0, 3)


def program(code, cache=""):
    """A function that runs a Python program in a new process; `cache`: its file of vectors, "" for none."""
    settings = os.environ | {"RAG_IN_NUMPY_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "ANTHROPIC_API_KEY": ""}
    return lambda: subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=settings, check=True, capture_output=True)


# -- Where the time goes -----------------------------------------------------------------------------------------------

PARTS = {"linear": "products with weights", "attend": "attention (products of pieces, softmax)", "activate": "GELU",
         "add_and_norm": "norms"}


def where_the_time_goes(model, texts):
    """Two notes: the shares of the time, and how near the products are to the peak."""
    spent, flops, lock = Counter(), Counter(), threading.Lock()

    def _timed(name, function):
        def _run(*arguments):
            start = time.perf_counter()
            result = function(*arguments)
            with lock:
                spent[name] += time.perf_counter() - start
                if name == "linear":
                    flops[name] += 2 * len(arguments[0]) * arguments[1].size
            return result
        return _run

    kept = {name: getattr(encoder, name) for name in PARTS if name != "activate"} | {"forward": encoder.Bert.forward}
    activate, model.activate = model.activate, _timed("activate", model.activate)
    for name in PARTS.keys() - {"activate"}:
        setattr(encoder, name, _timed(name, kept[name]))
    encoder.Bert.forward = _timed("forward", kept["forward"])
    try:
        model.encode(texts)
    finally:
        model.activate, encoder.Bert.forward = activate, kept.pop("forward")
        for name, function in kept.items():
            setattr(encoder, name, function)
    shares = [f"{what} {spent[name] / spent['forward']:.0%}" for name, what in PARTS.items()]
    rate = flops["linear"] / spent["linear"] / 1e9
    yield f"encoder, {len(texts)} texts of 256 word pieces: {', '.join(shares)}"
    yield (f"encoder, products with weights: {rate:.0f} GFLOP/s a core, {rate / peak():.0%} of what a core does with "
           "square matrices of 1,536")


def peak(size=1536):
    """GFLOP/s a core in float32 products of square matrices of `size`, all cores at work."""
    from threadpoolctl import threadpool_limits

    a = np.random.default_rng(0).normal(size=(size, size)).astype(np.float32)

    def _work(_):
        start = time.perf_counter()
        for _ in range(20):
            a @ a
        return 20 * 2 * size**3 / (time.perf_counter() - start) / 1e9

    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(encoder.CORES) as pool:
        return float(np.median(list(pool.map(_work, range(2 * encoder.CORES)))))


if __name__ == "__main__":
    warnings.simplefilter("ignore", encoder.TruncationWarning)          # 256 word pieces, or a few more
    for found in races("--small" in sys.argv):
        print(json.dumps(found), flush=True)
