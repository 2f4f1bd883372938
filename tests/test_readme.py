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
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+(?=[\s`])", README))
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


def sizes(corpus, setting, row):
    """A row of results/sizes.md; headings repeat, so the corpus' part is cut out first."""
    text = (ROOT / "results" / "sizes.md").read_text(encoding="utf-8")
    part = re.split(r"^## ", text, flags=re.MULTILINE)[{"descriptions": 1, "modules": 2}[corpus]]
    lines = re.search(rf"^### {re.escape(setting)}\n\n((?:\|.*\n)+)", part, re.MULTILINE)[1].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    [values] = [each for each in rows if each[0] == row]
    return dict(zip(head, values))


def best(corpus, curve):
    text = (ROOT / "results" / "sizes.md").read_text(encoding="utf-8")
    part = re.split(r"^## ", text, flags=re.MULTILINE)[{"descriptions": 1, "modules": 2}[corpus]]
    [_, name, size, recall, equal] = re.search(rf"^(\| {re.escape(curve)}) \| (.*?) \| (.*?) \| (.*?) \|$", part,
                                               re.MULTILINE).group(0, 1, 2, 3, 4)
    return size, recall, str(len(equal.split(", ")))


def number(cell):
    """The number that a cell begins with, without marks."""
    return re.match(r"\**([+-]?[\d.,]+%?)", cell)[1]


def recall(corpus, setting, row, retriever="dense"):
    return number(sizes(corpus, setting, row)[f"{retriever}, recall"])


def classic():
    found = {row: cells("chunk_sizes.md", "", row) for row in ("50", "300", "2,000")}
    assert found["300"]["hits"] == found["2,000"]["hits"]
    return found["50"]["hits"], found["300"]["hits"], found["2,000"]["share sent"]


def overlaps():
    text = (ROOT / "results" / "strategies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [1-5]0% \|.*$", text, re.MULTILINE)
    found = [cell for row in rows for cell in row.strip("| ").split(" | ")[2:]]
    shown = [cell for cell in found if cell.startswith("**")]
    assert all(cell.startswith("**-") for cell in shown)
    return str(len(found)), str(len(shown))


def read_and_unread(corpus, row):
    found = sizes(corpus, "What the model does not read", row)
    return [found["unseen"], *(found[f"{part}, {name} hits"] for name in ("dense", "bm25") for part in ("inside", "beyond"))]


def strategies(table, row, column):
    return number(cells("strategies.md", *[("Six ways", row), ("What a breadcrumb", row)][table])[column])


def nothing_is_shown_for_bm25():
    text = (ROOT / "results" / "strategies.md").read_text(encoding="utf-8").split("## What a breadcrumb")[0]
    rows = re.findall(r"^\| (?:[a-z_]+|\w.*) \| \d+ \|.*$", text, re.MULTILINE)
    assert len(rows) > 8 and not any("**" in cell for row in rows for cell in row.strip("| ").split(" | ")[4:6])
    return ()


def stage(corpus, name, column):
    return number(cells("stages.md", corpus, name)[column])


def refusals():
    text = (ROOT / "results" / "refusal.md").read_text(encoding="utf-8")
    return re.search(r"(\d+ of \d+) far, (\d+ of \d+) near", text).groups()


DESCRIPTIONS = "descriptions, 120 words"
CLAIMS = {
    "{0} questions find their answer in three chunks; at 300 and at 2,000 words all {1} do": classic,
    "three of six are {2} of everything": classic,
    "a recall of {} at 16 words and of {} at 1,000": lambda: [
        recall("descriptions", "5 chunks", row) for row in ("16", "1,000")],
    "grows from {} to {} words": lambda: [sizes("descriptions", "5 chunks", row)["words read"] for row in ("16", "1,000")],
    "it is {} at 16 words and {} with whole documents": lambda: [
        recall("descriptions", "500 words", row) for row in ("16", "whole")],
    "hybrid search is best at {} words with {}, and {} of 11 sizes cannot be told from the best": lambda: best(
        "descriptions", "500 words, hybrid"),
    "recall in 500 words is {} at 16 words, {} at 75, and {} at 500": lambda: [
        recall("modules", "500 words", row) for row in ("16", "75", "500")],
    "At 300 words {} of the modules is never read. Where the evidence stands inside what is read, vectors find {} of it, "
    "beyond it {}; BM25, which reads all, {} and {}.": lambda: read_and_unread("modules", "300"),
    "by structure, vectors find {} in 250 words; in windows of 500 characters, every tutorial's default, {}.": lambda: [
        strategies(0, row, "dense, 250 words") for row in ("structured", "fixed, 500 characters (tutorials)")],
    "For BM25 no way to cut is shown to be better": nothing_is_shown_for_bm25,
    "adds {} to vectors, {} to hybrid search": lambda: [
        strategies(1, "structured", f"{name}, 250 words") for name in ("dense", "hybrid")],
    "it only takes words: {}.": lambda: [strategies(1, "late", "dense, 250 words")],
    "of {} comparisons with none, {} show a difference, and both are losses": overlaps,
    "recall@1 goes from {} to {} over the descriptions": lambda: [
        stage(DESCRIPTIONS, name, "recall@1") for name in ("RRF", "MaxSim")],
    "by {}, not shown, over docstrings": lambda: [stage("docstrings", "MaxSim", "recall@1 gained")],
    "RRF adds {} to vectors at rank 1, fusing by scores {}": lambda: [
        stage(DESCRIPTIONS, name, "recall@1 gained") for name in ("RRF", "min-max")],
    "the guard refuses {} questions about something else, and {} near misses": refusals,
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_finding_has_today_s_numbers(claim):
    assert claim.format(*CLAIMS[claim]()) in FLAT


def test_there_are_ten_findings_with_their_numbers():
    section = README.split("## What the experiments found")[1].split("\n## ")[0]
    found = re.split(r"^\d+\. ", section, flags=re.MULTILINE)[1:]
    assert len(found) == 10
    said = " ".join(claim.format(*values()) for claim, values in CLAIMS.items())
    for finding in found:                                               # no number with decimals that no claim holds
        for value in re.findall(r"[+-]?\d+\.\d+|\d+%", finding.split("\n\n")[0]):
            assert value in said, value


BENCH = {  # a ratio in the README: (task, peer) in results/bench.md
    "1.42 at 20,000 documents": ("BM25, top 10, 200 questions, 20,000 documents", "bm25s, NumPy"),
    "3.95 at 200,000": ("BM25, top 10, 200 questions, 200,000 documents", "bm25s, NumPy"),
    "Numba backend 0.49": ("BM25, top 10, 200 questions, 20,000 documents", "bm25s, Numba"),
    "and 1.20": ("BM25, top 10, 200 questions, 200,000 documents", "bm25s, Numba"),
    "| 138.67 |": ("BM25, top 10, 5 questions, 20,000 documents", "rank-bm25"),
    "| 2.86;": ("cosine, top 10 of 1,000,000 x 384, 2 threads", "faiss, flat"),
    "64 questions at once 3.45": ("cosine, top 10 of 1,000,000 x 384, 2 threads, 64 questions at once", "faiss, flat"),
    "| 1.04 |": ("six measures, 10,000 questions x 100 documents", "pytrec_eval"),
    "| 1.14 |": ("recursive, 800 characters, docstrings", "LangChain, strings only"),
    "| 5.72, ": ("recursive, 200 word pieces, docstrings", "LangChain"),
    ", 10.52 |": ("recursive, 200 word pieces, docstrings", "semchunk"),
    "one question 1.40": ("encoder, 20 questions, one after the other", "sentence-transformers"),
    "long texts 0.80": ("encoder, 100 texts of 256 word pieces", "sentence-transformers"),
}


@pytest.mark.parametrize("said", BENCH)
def test_a_ratio_is_the_measured_one(said):
    task, peer = BENCH[said]
    text = (ROOT / "results" / "bench.md").read_text(encoding="utf-8")
    ratio = re.search(rf"^\| {re.escape(task)} \| {re.escape(peer)} \|[^|]*\|[^|]*\| ([\d.]+) \(", text, re.MULTILINE)[1]
    assert said in FLAT and ratio in said
