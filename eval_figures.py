"""Beside step 20 — Has a figure moved that nobody meant to move?

A change that makes an answer worse breaks no test of a function. So the figures of the experiments are committed, each
with a tolerance, and a test computes a quick part of them anew (tests/test_eval_answers.py).

    figures     {"hit rate at 8, all questions": {"value": 0.95, "tolerance": 0.0094}}       results/figures.json
    tolerance   how far a figure may move by rounding alone, on another machine: of a share one question may tip, and
                not two, so it is one question and a half
    moved       further than that, up or down: what got better has to be written down as well

Not here: what the figures mean (eval_answers.py); whether a difference is more than luck (metrics.paired_bootstrap).
"""

import json
from pathlib import Path

FIGURES = Path(__file__).parent / "results" / "figures.json"


def share(value, n):
    """The figure of a share of n questions, or of a mean of values from 0 to 1.

    >>> share(0.75, 100)
    {'value': 0.75, 'tolerance': 0.015}
    """
    return {"value": round(value, 4), "tolerance": round(1.5 / n, 4)}


def amount(value):
    """The figure of an amount, such as tokens, that may move by a hundredth."""
    return {"value": round(value, 1), "tolerance": round(value / 100, 1)}


def moved(kept, found):
    """For each found figure that is further from what was kept than its tolerance a sentence that says so.

    What is found and was not kept is named too; what was kept and is not found was not measured this time.

    >>> moved({"hit rate": share(0.9, 30)}, {"hit rate": share(0.75, 30)})
    ['hit rate moved from 0.9 to 0.75, by -0.15: 0.1 beyond its tolerance of 0.05']
    """
    said = [f"{name} is not in {FIGURES.name}: `python eval_answers.py` writes it"
            for name in found.keys() - kept.keys()]
    for name in found.keys() & kept.keys():
        old, tolerance, new = kept[name]["value"], kept[name]["tolerance"], found[name]["value"]
        beyond = abs(new - old) - tolerance
        if not beyond <= 1e-9:                                         # True for NaN
            said.append(f"{name} moved from {old:g} to {new:g}, by {new - old:+.3g}: {beyond:.3g} beyond its tolerance "
                        f"of {tolerance:g}")
    return sorted(said)


def read(path=FIGURES):
    """The figures as they were committed."""
    return json.loads(path.read_text(encoding="utf-8"))["figures"]


def write(figures, made, path=FIGURES):
    """Keep the figures; `made` says by which command and of which data."""
    path.write_text(json.dumps({"made by": made, "figures": figures}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    kept = {"hit rate at 8": share(38 / 40, 40), "word pieces of a prompt": amount(1434)}
    for hits, pieces in ((38, 1440), (37, 1434), (36, 1434), (40, 1300)):
        said = moved(kept, {"hit rate at 8": share(hits / 40, 40), "word pieces of a prompt": amount(pieces)})
        print(f"{hits}/40 hits, {pieces} word pieces:", "; ".join(said) or "nothing moved")
