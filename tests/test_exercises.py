"""Exercises are executed: bugs are planted, solutions meet their oracles, answers are what the lessons print."""

import ast
import contextlib
import importlib
import io
import re
import sys
import types
from pathlib import Path

import pytest
from test_readme import recipe
from test_house import BESIDE, STEP
from test_planted_bugs import with_bug

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "exercises.md").read_text(encoding="utf-8")
# (number, title, kind, module or "", the exercise, its answer)
EXERCISES = re.findall(r"^## (\d+)\. ([^\n]+) \((\w+)(?:, (\w+)\.py)?\)\n"
                       r"(.*?)<details><summary>Answer</summary>\n(.*?)</details>", TEXT, re.MULTILINE | re.DOTALL)


def of_kind(kind):
    return [pytest.param(module, task, answer, id=number)
            for number, _, each, module, task, answer in EXERCISES if each == kind]


def fenced(kind, text):
    [block] = re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return block


def test_each_exercise_has_a_kind_an_answer_and_its_place():
    assert [int(number) for number, *_ in EXERCISES] == list(range(1, TEXT.count("\n## ") + 1))
    kinds = [kind for _, _, kind, *_ in EXERCISES]
    assert len(kinds) >= 16 and set(kinds) == {"explain", "draw", "compute", "build", "break", "measure"}
    assert kinds.count("break") >= 6
    steps = [(STEP | BESIDE)[module] for _, _, _, module, *_ in EXERCISES if module]
    assert steps[:-1] == sorted(steps[:-1]) and len(steps) == len(EXERCISES) - 2     # the last looks back on all


def test_the_lessons_four_are_among_them():
    titles = [title for _, title, *_ in EXERCISES]
    for title in ("Explain retrieval with the open-book exam", "Draw the pipeline and mark four places to fail",
                  "Build it from scratch", "Break it with chunk sizes 50, 300 and 2,000"):
        assert title in titles


# -- Break this line ---------------------------------------------------------------------------------------------------


def red_test(module, answer):
    """(the test file, the named test, which takes no argument)."""
    [(name, test)] = re.findall(r"^Red: `tests/test_(\w+)\.py::(\w+)`", answer, re.MULTILINE)
    assert name == module
    tests = importlib.import_module(f"test_{module}")
    return tests, getattr(tests, test)


@pytest.mark.parametrize("module, task, answer", of_kind("break"))
def test_a_broken_line_turns_the_named_test_red(module, task, answer, monkeypatch):
    removed, added = fenced("diff", task).splitlines()
    assert removed[0] == "-" and added[0] == "+"
    lines = [line for line in (ROOT / f"{module}.py").read_text(encoding="utf-8").splitlines(keepends=True)
             if re.fullmatch(re.escape(removed[1:]) + r"(\s*#.*)?\n", line)]
    assert len(lines) == 1, "the line stands there once, but for its comment"
    tests, test = red_test(module, answer)
    monkeypatch.setattr(tests, module, with_bug(module, lines[0], lines[0].replace(removed[1:], added[1:])))
    with pytest.raises((Exception, pytest.fail.Exception)):
        test()


@pytest.mark.parametrize("module, task, answer", of_kind("break"))
def test_the_named_test_is_green_without(module, task, answer, monkeypatch):
    tests, test = red_test(module, answer)
    monkeypatch.setattr(tests, module, with_bug(module, '"""', '"""'))
    test()


# -- Build -------------------------------------------------------------------------------------------------------------


def asked(task, source, monkeypatch):
    """What the oracle's command prints when `source` is mine.py."""
    mine = types.ModuleType("mine")
    exec(source, mine.__dict__)
    monkeypatch.setitem(sys.modules, "mine", mine)
    [program] = re.findall(r'\A\$ \.venv/bin/python -c "\n(.*)"\n\Z', fenced("console", task), re.DOTALL)
    assert '"' not in program and "$" not in program and "`" not in program and "\\" not in program      # a shell's
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(program, {})
    return output.getvalue()


@pytest.mark.filterwarnings("ignore:.*word pieces")        # half of a chunk of 300 words is not read: rag.py says so
@pytest.mark.parametrize("module, task, answer", of_kind("build"))
def test_the_oracle_calls_the_solution_right(module, task, answer, monkeypatch):
    assert asked(task, fenced("python", answer), monkeypatch) == "right\n"


# what is wrong in a way that a learner might be: the oracle must stop
@pytest.mark.parametrize("number, right, wrong", [
    ("6", "for term in query:", "for term in set(query):"),
    ("6", "total += math.log(1 +", "total += math.log("),
    ("11", "rank + 1)", "rank + 2)"), ("11", "[:k]     #", "     #"),
    ("14", "max(n - overlap, 1)", "n"),
    ("17", " - scores.max(axis=1, keepdims=True)", ""), ("17", "np.sqrt(keys.shape[1])", "keys.shape[1]"),
    ("27", "argsort(-scores", "argsort(scores"), ("27", "size - overlap)", "size)"),
])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:.*word pieces")
def test_the_oracle_stops_at_a_mistake(number, right, wrong, monkeypatch):
    [(task, answer)] = [each[-2:] for each in EXERCISES if each[0] == number]
    solution = fenced("python", answer)
    assert right in solution
    with pytest.raises((AssertionError, ValueError)):
        asked(task, solution.replace(right, wrong), monkeypatch)


def test_a_solution_is_shorter_than_a_page():
    for *_, kind, _, _, answer in EXERCISES:
        if kind == "build":
            ast.parse(fenced("python", answer))
            assert len(fenced("python", answer).splitlines()) <= 20


# -- Compute and measure -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module, task, answer", of_kind("compute"))
def test_the_answer_is_what_the_lesson_prints(module, task, answer):
    printed = (ROOT / "tests" / "golden" / "lessons" / f"{module}.txt").read_text(encoding="utf-8").splitlines()
    lines = fenced("text", answer).splitlines()
    assert lines and not [line for line in lines if line not in printed]


@pytest.mark.parametrize("module, task, answer", of_kind("measure"))
def test_a_measured_answer_stands_in_the_results(module, task, answer):
    """A row may be shown without its last columns."""
    if "```text" in answer:
        [file] = set(re.findall(r"results/\w+\.md", task + answer))
        results = (ROOT / file).read_text(encoding="utf-8").splitlines()
        for line in fenced("text", answer).splitlines():
            assert any(each.startswith(line) for each in results), f"{line} is no longer in {file}"


def test_numbers_in_the_words_of_the_answers():
    """What the prose of the compute exercises works out, worked out."""
    from math import log

    assert "1 / (1 + 1.2 * (0.25 + 0.75 * 3/4)) = 1 / 1.975" in TEXT
    assert 1 + 1.2 * (0.25 + 0.75 * 3/4) == pytest.approx(1.975)
    assert "ln(1 - 0.5 / 5.5), below 0" in TEXT and log(1 + (4 - 5 + 0.5) / (5 + 0.5)) == log(1 - 0.5 / 5.5) < 0
    assert "115 + 6 + 4 + 5 = 130" in TEXT and 115 + 6 + 4 + 5 + 4 + 6 == 140 and 115 + 6 + 2 * 4 + 5 + 3 == 137
    assert "42 = 3 * 12 + 6" in TEXT and 42 == 3 * 12 + 6
    assert "nDCG@3 is 2.5 / 2.6309" in TEXT and 2 / 1 + 0 + 1 / 2 == 2.5


# -- Names -------------------------------------------------------------------------------------------------------------


def test_every_file_function_and_command_exists():
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL))
    for span in spans:
        for path in re.findall(r"(?:[\w-]+/)*[\w-]+\.(?:py|md|jsonl)\b", span):
            assert (ROOT / path).exists() or path in ("mine.py", "module.py", "tests/test_module.py"), path
        if match := re.fullmatch(r"(\w+)\.(\w+)", span):
            if (ROOT / f"{match[1]}.py").exists() and match[2] not in ("py", "md"):
                assert hasattr(importlib.import_module(match[1]), match[2]), span
        if match := re.fullmatch(r"make (\w+)", span):
            assert recipe(match[1])
    assert {"toy.py", "make test", "grading.refusal_recall"} <= set(spans)
