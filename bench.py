"""Side by side with the libraries people would use instead: `make bench`. It comes after every step.

Machines are noisy, so a time alone says little. Here each task is raced: ours and the peer's in turn, on the same data,
in the same process, after a warm-up; what counts is the ratio of each pair, of which the median and the range are
shown. Before a race the results are compared: a fast wrong answer is no answer.

    ratio    peer's time / our time in one round: above 1, ours is faster
    target   the ratio that was asked for

Peers are pinned in the extra `bench`. Everything runs on one thread, except cosine, which has all cores on both sides.

Not here: what is inside a peer; times of other machines.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")    # before numpy is loaded

import argparse                                                        # noqa: E402
import platform                                                        # noqa: E402
import statistics                                                      # noqa: E402
import sys                                                             # noqa: E402
import time                                                            # noqa: E402
from importlib.metadata import version                                 # noqa: E402
from pathlib import Path                                               # noqa: E402
from typing import NamedTuple                                          # noqa: E402

import numpy as np                                                     # noqa: E402

RESULT = Path(__file__).parent / "results" / "bench.md"


class Race(NamedTuple):
    """One line of the table. Times in seconds, medians over the rounds; `ratios` holds one number for each round."""

    task: str
    peer: str
    ours: float
    peers: float
    ratios: list
    target: float | None


def race(task, ours, peer, peer_name, target=None, rounds=7):
    """Time ours() and peer() in turn, `rounds` times after a warm-up: a Race."""
    ours(), peer()
    times = []
    for number in range(rounds):
        order = (ours, peer) if number % 2 == 0 else (peer, ours)      # neither always comes first
        clocked = {each: _clock(each) for each in order}
        times.append((clocked[ours], clocked[peer]))
    return Race(task, peer_name, statistics.median(a for a, _ in times), statistics.median(b for _, b in times),
                [b / a for a, b in times], target)


def _clock(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def table(races):
    """The races as a Markdown table."""
    lines = ["| task | peer | ours | peer's | ratio, median (range) | target | |", "|---|---|---:|---:|---:|---:|---|"]
    for each in races:
        ratio = statistics.median(each.ratios)
        verdict = "" if each.target is None else "met" if ratio >= each.target else "missed"
        target = "" if each.target is None else f"{each.target:.2f}"
        lines.append(f"| {each.task} | {each.peer} | {_time(each.ours)} | {_time(each.peers)} | {ratio:.2f} "
                     f"({min(each.ratios):.2f} to {max(each.ratios):.2f}) | {target} | {verdict} |")
    return "\n".join(lines)


def _time(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def machine():
    """Processor, cores and versions, in words."""
    names = ["numpy", "bm25s", "numba", "rank-bm25", "faiss-cpu", "pytrec-eval-terrier"]
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor()) if sys.platform == "linux" else platform.processor()
    return (f"{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, "
            + ", ".join(f"{name} {version(name)}" for name in names))
