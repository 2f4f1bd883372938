"""The README tells the truth: its blocks run, its table is made of the modules, its numbers stand in results/, and what
it names is there."""

import argparse
import doctest
import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import eval_chunk_sizes
import rag
import reading_order

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FLAT = " ".join(README.split())


# -- Blocks ------------------------------------------------------------------------------------------------------------


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


def test_it_shows_what_make_run_prints():
    [command] = recipe("run")
    printed = subprocess.run(command.split(), cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    assert console_blocks()["make run"] == printed


PROGRAMS = {"rag.py": rag.main, "eval_chunk_sizes.py": eval_chunk_sizes.main}


def test_it_shows_what_its_commands_print(monkeypatch):
    monkeypatch.chdir(ROOT)
    commands = [command for command in console_blocks() if not command.startswith("make ")]
    assert len(commands) >= 2
    for command in commands:
        program, module, *arguments = shlex.split(command)
        assert program == ".venv/bin/python"
        with redirect_stdout(io.StringIO()) as printed:
            PROGRAMS[module](arguments)
        assert console_blocks()[command] == printed.getvalue().strip()


def test_its_python_does_what_it_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    [block] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    test = doctest.DocTestParser().get_doctest(block, {}, "README", "README.md", 0)
    assert len(test.examples) >= 4
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_block_is_of_a_kind_that_is_run():
    assert set(re.findall(r"^```(\w+)", README, re.MULTILINE)) <= {"console", "python", "mermaid"}


# -- What it is made of ------------------------------------------------------------------------------------------------


def test_the_first_screen_has_at_most_100_words():
    first = README[:README.index("\n## ")]
    assert len(re.sub(r"```.*?```", "", first, flags=re.DOTALL).split()) <= 100
    assert list(console_blocks())[:2] == ["make run", "make test"]


def test_the_reading_order_is_that_of_the_modules():
    assert reading_order.table() in README, "`.venv/bin/python tests/reading_order.py` prints today's table"


# -- What it names -----------------------------------------------------------------------------------------------------


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)#\s]+)\)", README)
    assert len(links) > 60
    assert not [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()]


def test_every_file_that_is_named_exists():
    names = {name for name in re.findall(r"`([\w./-]+\.(?:py|md|jsonl|png|json|html))`", README)}
    missing = [name for name in names if not (ROOT / name).exists()]
    assert len(names) > 20 and set(missing) <= {"module.py"}            # "python module.py" stands for each of them


def test_every_target_that_is_named_exists():
    for target in re.findall(r"\bmake (run|test|experiment|bench|mutants)\b", README):
        assert recipe(target)


def options_of(main):
    """The option strings that a program takes, as its --help names them."""
    with redirect_stdout(io.StringIO()) as printed, pytest.raises(SystemExit):
        main(["--help"])
    return set(re.findall(r"(?<![\w-])--[a-z-]+", printed.getvalue()))


def test_every_option_that_is_named_exists():
    known = set.union(*map(options_of, PROGRAMS.values()))
    named = set(re.findall(r"(?<![\w-])--[a-z-]+(?=[\s`])", README))
    assert len(named) > 5 and named <= known


# -- Its numbers -------------------------------------------------------------------------------------------------------


def cells(path, heading, row, table=0):
    """{column: cell} of one row of a results file: of the `table`-th table under the heading that begins like that."""
    text = (ROOT / "results" / path).read_text(encoding="utf-8")
    section = re.split(r"^#+ ", text, flags=re.MULTILINE)
    [found] = [each for each in section if each.startswith(heading)] if heading else [text]
    tables = re.findall(r"(?:^\|.*\n?)+", found, re.MULTILINE)
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in tables[table].splitlines()]
    [values] = [each for each in rows if each[0] == row]
    return dict(zip(head, values))
