"""The README's table "Read in this order", made of the modules themselves: `.venv/bin/python tests/reading_order.py`."""

import ast
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from test_house import BESIDE, ORDER, ROOT, STEP, code_lines

CHAPTERS = {0: "Before the first step", 1: "I. Ranking", 6: "II. Documents", 9.6: "III. Vectors", 14: "IV. Answers",
            18: "V. The whole, measured", 99: "Beside everything"}
FORMULAS = {  # module: (its formula's left side, where it comes from)
    "bm25": ("tf_part", "Lucene's BM25; Kamphuis et al., ECIR 2020, Table 1"),
    "fusion": ("rrf_term", "Cormack, Clarke and Büttcher, SIGIR 2009, section 2"),
    "metrics": ("dcg", "Järvelin and Kekäläinen, TOIS 2002, eq. 2, with log2(rank + 1)"),
    "chunking": ("distance", "Kamradt, 2023, level 4"),
    "encoder": ("attended", "Vaswani et al., 2017, eq. 1"),
    "cosine": ("rounding_error", "Jeannerod and Rump, SIAM J. Matrix Anal. Appl. 2013"),
    "rerank": ("maxsim", "Khattab and Zaharia, SIGIR 2020, eq. 3, as a mean"),
    "refusal": ("auroc", "Hanley and McNeil, Radiology 1982"),
    "grading": ("citation_recall", "Gao et al., EMNLP 2023, section 3"),
}


def number(name):
    return {**STEP, **BESIDE}[name]


def question(name):
    """What the docstring's first sentences ask."""
    text = " ".join(ast.get_docstring(ast.parse((ROOT / f"{name}.py").read_text(encoding="utf-8"))).split("\n\n")[0].split())
    title = re.sub(r"^(Step \d+ of 22|Beside [\w. ]+?) — ", "", text)
    return re.split(r" Before: | Next: ", title)[0]


def formula(name):
    if name not in FORMULAS:
        return ""
    left, source = FORMULAS[name]
    [line] = re.findall(rf"^ *formula: ({left} = .*)$", (ROOT / f"{name}.py").read_text(encoding="utf-8"), re.MULTILINE)
    return f"`{line}` ({source})"


def last_line(name):
    """The last line that the lesson prints, or what a program leaves behind."""
    golden = ROOT / "tests" / "golden" / "lessons" / f"{name}.txt"
    if golden.exists():
        line = golden.read_text(encoding="utf-8").rstrip().splitlines()[-1].strip().replace("|", "\\|")
        return f"`{line[:60]}{'…' if len(line) > 60 else ''}`"
    return PROGRAMS.get(name, "")


PROGRAMS = {
    "rag": "answers three questions, or yours", "eval_chunk_sizes": "[sizes](results/sizes.md)",
    "eval_strategies": "[strategies](results/strategies.md)", "eval_stages": "[stages](results/stages.md)",
    "eval_answers": "[answers](results/answers.md)", "refusal": "[refusal](results/refusal.md)",
    "failure_modes": "a table of fifteen stories", "watch": "[a page](data/watch.html)", "bench": "[bench](results/bench.md)",
}


def table():
    """One row for each module, chapter by chapter."""
    modules = sorted(({**STEP, **BESIDE}.keys() & {path.stem for path in ROOT.glob("*.py")}), key=number)
    rows, chapters = [], dict(CHAPTERS)
    for name in modules:
        for first in [first for first in chapters if first <= number(name)]:
            rows.append(f"| | **{chapters.pop(first)}** | | | |")
        step = STEP[name] if name in ORDER else ""
        lines = len(code_lines(ROOT / f"{name}.py"))
        rows.append(f"| {step} | [`{name}.py`]({name}.py) {lines} | {question(name)} | {formula(name)} | {last_line(name)} |")
    return "\n".join(["| step | module, code lines | the question it answers | formula (source) | `.venv/bin/python module.py` "
                      "ends with |", "|---:|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(table())
