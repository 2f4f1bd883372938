"""CONTRIBUTING.md and CHANGELOG.md name only what exists, and say what the house enforces."""

import importlib
import re
from pathlib import Path

import pytest
import tomllib
from test_readme import recipe

ROOT = Path(__file__).parent.parent
CONTRIBUTING, CHANGELOG = ((ROOT / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "CHANGELOG.md"))


@pytest.mark.parametrize("text", [CONTRIBUTING, CHANGELOG], ids=["CONTRIBUTING", "CHANGELOG"])
def test_every_name_exists(text):
    spans = re.findall(r"`([^`]+)`", text)
    paths = [path for span in spans
             for path in re.findall(r"(?:[\w-]+/)*[\w-]+\.(?:py|md|toml|txt)\b|results/|tests/golden/\w+", span)]
    assert paths and not [path for path in paths if not (ROOT / path).exists()]
    for target in re.findall(r"`make (\w+)`", text):
        assert recipe(target)


def test_commands_are_one_page_and_name_a_python_that_the_makefile_makes():
    assert len(CONTRIBUTING.split()) <= 700
    for command in re.findall(r"^\| `([^`]+)`", CONTRIBUTING, re.MULTILINE):
        assert re.match(r"make \w+$|(?:\w+=\w+ )?\.venv/bin/python ", command), command
    profiles = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    assert all(f'register_profile("{name}"' in profiles for name in re.findall(r"HYPOTHESIS_PROFILE=(\w+)", CONTRIBUTING))


def test_budgets_are_those_of_the_house():
    house = (ROOT / "tests" / "test_house.py").read_text(encoding="utf-8")
    assert "size > 30" in house and "at most 30 code lines" in CONTRIBUTING
    assert "<= 300" in house and "a module at most 300" in CONTRIBUTING
    assert "<= 120" in house and "a line at most 120 characters" in CONTRIBUTING
    assert "< 8" in house and "median under 8" in CONTRIBUTING
    assert hasattr(importlib.import_module("test_planted_bugs"), "BUGS")


def test_the_newest_entry_is_the_version_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert re.search(r"^## (\S+)", CHANGELOG, re.MULTILINE)[1] == version


def test_numbers_of_the_changelog():
    questions = (ROOT / "data" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    policies = [path for path in (ROOT / "data" / "hr").rglob("*") if path.is_file()]
    assert f"{len(questions)} labelled questions" in CHANGELOG and f"{len(policies)} policies" in CHANGELOG
    unanswerable = [line for line in questions if '"type": "unanswerable-' in line]
    assert f"{len(unanswerable)} of them unanswerable" in CHANGELOG
