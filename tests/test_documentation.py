"""Documentation is executed: doctests, the README's commands and their output, and the formulas of the docstrings."""

import contextlib
import doctest
import importlib
import io
import math
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pytest import approx

import bm25
import fusion
import grading
import metrics

ROOT = Path(__file__).parent.parent
MODULES = [path.stem for path in sorted(ROOT.glob("*.py")) if path.stem != "bench"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_primitives_have_doctests():
    for name in ("ranking", "bm25", "fusion", "metrics", "index", "rerank"):
        assert doctest.testmod(importlib.import_module(name)).attempted > 0, name


# -- README ------------------------------------------------------------------------------------------------------------


def console_blocks():
    """{command: output} of the README's console blocks."""
    blocks = {}
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            blocks[command] = output.strip()
    return blocks


def recipe(target):
    """The commands that `make target` runs once everything is installed."""
    makefile = (ROOT / "Makefile").read_text()
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1].splitlines()
    return [line.lstrip("\t@").replace("$(BIN)/python", sys.executable) for line in lines]


def test_readme_shows_what_make_run_prints():
    [command] = recipe("run")
    printed = subprocess.run(command.split(), cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    assert console_blocks()["make run"] == printed


def test_readme_shows_what_its_commands_print():
    commands = [command for command in console_blocks() if not command.startswith("make ")]
    assert commands
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == ".venv/bin/python"
        printed = subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
        assert console_blocks()[command] == printed.stdout.strip()


def test_readme_names_only_targets_that_exist():
    assert {"make run", "make test"} <= console_blocks().keys()
    for target in re.findall(r"\bmake (\w+)", README):
        assert recipe(target)


def test_readme_prose_has_at_most_100_words():
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    prose = "\n".join(line for line in prose.splitlines() if not line.startswith(("|", "#")))
    assert len(prose.split()) <= 100


def test_readme_lists_every_module_in_reading_order():
    listed = re.findall(r"^\| *(\d*) *\| \[`(\w+)\.py`\]\((\w+)\.py\) \| (.+?) \|$", README, re.MULTILINE)
    assert sorted(name for _, name, _, _ in listed) == sorted(path.stem for path in ROOT.glob("*.py"))
    numbers = [int(number) for number, *_ in listed if number]
    assert numbers == sorted(numbers)
    for number, name, link, _ in listed:
        docstring = importlib.import_module(name).__doc__ if name != "bench" else ""
        assert link == name and (not number or docstring.startswith(f"Step {number} of "))


# -- Formulas: each `formula:` line of a docstring is Python, and is evaluated on the toy values ------------------------

TOY = {
    (bm25, "idf"): (dict(df=2, n=4), bm25.idf(2, 4)),
    (bm25, "tf_part"): (dict(count=2, length=6, mean_length=4, k1=1.2, b=0.75), bm25.tf_part(2, 6, 4)),
    (fusion, "rrf_term"): (dict(k=60, rank=3), fusion.rrf_term(3)),
    (fusion, "min_max"): (dict(score=5, low=3, high=9), fusion.min_max({"a": 9, "b": 3, "c": 5})["c"]),
    (metrics, "recall_at_k"): (dict(found=1, n_relevant=2), metrics.recall_at_k([1, 3, 0], {0, 1}, 2)),
    (metrics, "precision_at_k"): (dict(found=2, k=3), metrics.precision_at_k([1, 3, 0], {0, 1}, 3)),
    (metrics, "reciprocal_rank"): (dict(first_rank=2), metrics.reciprocal_rank([3, 1, 0], {0, 1})),
    (metrics, "average_precision"): (dict(precisions=[1/1, 2/3], n_relevant=2), metrics.average_precision([1, 3, 0], {0, 1})),
    (metrics, "dcg"): (dict(gains=[2, 0, 1]), metrics.dcg([2, 0, 1])),
    (metrics, "ndcg_at_k"): (dict(dcg=metrics.dcg, ranking=[2, 0, 1], ideal=[2, 1, 0]),
                             metrics.ndcg_at_k([1, 3, 0], {0: 1, 1: 2, 3: 0}, 3)),
    (metrics, "span_recall"): (dict(n_shared=7, n_reference=10),
                               metrics.span_recall([(0, 0, 7), (0, 4, 11)], [(0, 4, 14)])),
    (metrics, "span_precision"): (dict(n_shared=7, n_retrieved=14),
                                  metrics.span_precision([(0, 0, 7), (0, 4, 11)], [(0, 4, 14)])),
    (metrics, "span_iou"): (dict(n_shared=7, n_retrieved=14, n_reference=10),
                            metrics.span_iou([(0, 0, 7), (0, 4, 11)], [(0, 4, 14)])),
    (metrics, "precision_omega"): (dict(n_shared=10, n_union=18), metrics.precision_omega(
        [(0, 0, 7), (0, 4, 11), (0, 8, 14), (0, 12, 18), (0, 15, 22)], [(0, 4, 14)])),
    (metrics, "evidence_recall"): (dict(shares_of_copies=[[3/7, 5/7]], n_pieces=1),
                                   metrics.evidence_recall([(0, 0, 3), (1, 15, 20)], [[(0, 0, 7), (1, 15, 22)]])),
    (metrics, "paired_bootstrap"): (dict(count=0, resamples=99),
                                    metrics.paired_bootstrap([1] * 5, [0] * 5, resamples=99).p_value),
    (grading, "citation_recall"): (dict(n_supported=1, n_sentences=2), grading.citation_recall("A b. [1] C d.", ["A b."])),
    (grading, "citation_precision"): (dict(n_relevant=1, n_citations=2),
                                      grading.citation_precision("A b. [1][2]", ["A b.", "C d."])),
    (grading, "refusal_precision"): (dict(refused_unanswerable=3, refused_answerable=2),
                                     grading.refusal_precision(grading.Refusals(6, 2, 1, 3))),
    (grading, "refusal_recall"): (dict(refused_unanswerable=3, answered_unanswerable=1),
                                  grading.refusal_recall(grading.Refusals(6, 2, 1, 3))),
    (grading, "answered_in_vain"): (dict(refused_unanswerable=3, answered_unanswerable=1),
                                    grading.answered_in_vain(grading.Refusals(6, 2, 1, 3))),
    (grading, "token_f1"): (dict(n_shared=2, n_answer=6, n_reference=2),
                            grading.token_f1("It is five days of leave", "five days")),
    (grading, "generation"): (dict(n_right_and_packed=1, n_packed=2),
                              grading.generation([(True, 1), (True, 0), (False, 1)]).given_packed.mean),
    (grading, "faithfulness"): (dict(n_supported=1, n_decided=2), grading.faithfulness(
        grading.Grade(["a", "b", "c"], ["supported", "not found", None], None, 1))),
    (grading, "kappa"): (dict(share=2/3, chance=4/9), grading.kappa(2/3, 4/9)),
}


def formulas(module):
    """(function name, right-hand side) of each formula line."""
    for name, function in vars(module).items():
        if getattr(function, "__module__", None) == module.__name__ and function.__doc__:
            for line in re.findall(r"^\s*formula: \w+ = (.*)$", function.__doc__, re.MULTILINE):
                yield name, line


def test_every_formula_is_listed_above():
    found = {(module, name) for module in (bm25, fusion, grading, metrics) for name, _ in formulas(module)}
    assert found == TOY.keys()


@pytest.mark.parametrize("module, name", TOY, ids=lambda value: getattr(value, "__name__", value))
def test_formula_equals_the_code(module, name):
    values, expected = TOY[module, name]
    [formula] = [line for other, line in formulas(module) if other == name]
    assert eval(formula, {"ln": math.log, "log2": math.log2, "sum": sum, "enumerate": enumerate}, values) == approx(expected)


# -- Lessons -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, line", [
    ("ranking", "with document 0 forbidden: [1, 3, 2]"),
    ("bm25", "cat  df 2  count 1  idf 0.6931 * tf part 0.4124 = 0.2858"),
    ("fusion", "0.032522 = 1/(60 + 1) + 1/(60 + 2)"),
    ("metrics", "DCG@3 = 2/log2(2) + 0/log2(3) + 1/log2(4)"),
    ("cosine", "with document 0 forbidden: [1, 3, 2]"),
    ("filters", "where {'effective_date': ('<=', '2025-12-31'), 'latest': True}"),
    ("postings", "document 1 leaves, 'a dog' comes in its place:"),
    ("saving", "chunks.json was changed"),
    ("index", "vets      lexical  pets-1#0 0.7799  pets-3#0 0.5316  pets-0#0 0.4570"),
    ("rerank", "MaxSim (0.80 + 1.00) / 2 = 0.90"),
    ("prompt", "a budget of 137 leaves 8 for two bodies: 5 + 3, and none of 6"),
    ("contextual", "from the document: 'Acme made pumps in the second quarter of 2023.'"),
    ("documents", "Wine recognition dataset"),
    ("model_files", "fingerprint of all: "),
    ("vector_cache", "after: [0.6 0.8]"),
    ("embedding", "cosine 0.65 with 'the cat dog'"),
    ("cutting", "reach(4, 3): 15, since 'cat sat on ' has three words"),
    ("citations", "'The ten of 2023 are void.'  is from hr/leave-2023.md, characters 40-60"),
    ("quotes", "elsewhere   carry over ten days"),
    ("grading", "by chance (2 * 1 + 1 * 2) / 9 = 0.44; kappa 0.40"),
    ("chunking", "distances of its sentences: 0.01 0.02 0.00 0.02 0.17 0.02 0.01 0.00"),
])
def test_lesson_prints_its_worked_example(name, line):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(ROOT / f"{name}.py"), run_name="__main__")
    assert line in output.getvalue()
