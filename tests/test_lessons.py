"""Every module is a lesson: what `python module.py` prints is compared with tests/golden/lessons, to the character.

After a change that was meant: `.venv/bin/python tests/test_lessons.py` writes those files anew, all or the named ones.
"""

import contextlib
import io
import os
import re
import runpy
import sys
from collections import defaultdict
from pathlib import Path

import numpy  # noqa: F401  its library must be loaded before its threads can be limited
import pytest
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parent.parent
GOLDEN = ROOT / "tests" / "golden" / "lessons"
PROGRAMS = ("rag", "refusal", "bench", "eval_", "failure_modes", "watch")    # have a command line, and measure or answer
LESSONS = [path.stem for path in sorted(ROOT.glob("*.py")) if not path.stem.startswith(PROGRAMS)]


def lesson(name):
    """What `python name.py` prints, run in this process."""
    arguments, sys.argv = sys.argv, [f"{name}.py"]
    try:
        # one thread: a lesson's products are small, and threads that wait for a busy core take ten times as long
        with contextlib.redirect_stdout(io.StringIO()) as output, threadpool_limits(1):
            runpy.run_path(str(ROOT / f"{name}.py"), run_name="__main__")
    finally:
        sys.argv = arguments
    return output.getvalue()


@pytest.fixture
def without_a_key(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "RAG_QUERY", "RAG_MODEL"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_prints_what_it_printed(name, without_a_key):
    assert lesson(name) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_each_golden_file_is_of_a_lesson():
    assert sorted(path.stem for path in GOLDEN.iterdir()) == LESSONS


def test_what_no_lesson_may_print_is_not_there():
    printed = "\n".join(path.read_text(encoding="utf-8") for path in GOLDEN.iterdir())
    assert str(ROOT) not in printed and not re.search(r"\bobject at 0x|\d (?:ms|seconds)\b", printed)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    os.environ["HF_HUB_OFFLINE"] = "1"
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for each in sys.argv[1:] or LESSONS:
        (GOLDEN / f"{each}.txt").write_text(lesson(each), encoding="utf-8")
