"""How many small changes to a module do its tests notice? `make mutants`; takes minutes, writes results/mutants.md.

Each module is mutated in a copy, where its own tests alone have to notice. In the copy, tables of formulas are
functions and nothing is cached, since mutmut changes neither code outside functions nor decorated functions. A mutant
that no test can notice has its reason in the module's test file:
    # survives in FUNCTION: `PIECE OF THE NEW LINE`: REASON
"""

import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

SETTINGS = """[mutmut]
source_paths = .
only_mutate = {0}.py
pytest_add_cli_args_test_selection = tests/test_{0}.py
do_not_mutate_patterns = ^ +raise
timeout_constant = 5
timeout_multiplier = 5
use_git_change_detection = false
[tool:pytest]
"""
TABLE = r"\b(IDF|TF_PART|GAIN|MEASURES|NEED_K)\b"
INTRODUCTION = f"""# Mutants

`make mutants`: mutmut {version("mutmut")} changes one thing at a time in a module (an operator, a number, a name, an
argument, a default), and the module's own test file has to turn red. Hypothesis draws 15 examples for each property,
the same in every run. An endless loop counts as killed. Not mutated: the texts of errors, docstrings, and code outside
functions other than the tables of formulas, such as the tokenizer's regular expressions.

The survivors are listed below, each with the reason why no test can tell it from the original. One without a reason
makes the command fail.

| module | mutants | killed | score | survived, explained | survived, not explained |
|---|---|---|---|---|---|
"""


def prepare(module, modules, folder):
    """Lay out a copy in which mutmut changes one module and runs that module's tests."""
    (folder / "tests").mkdir(parents=True)
    for name in ["toy.py", *(f"{each}.py" for each in modules), "tests/conftest.py", f"tests/test_{module}.py"]:
        shutil.copy(name, folder / name)
    source = Path(f"{module}.py").read_text().replace("@functools.lru_cache", "# ")
    source = re.sub(r"^(\w+\(\)) = {", r"def \1: return {", re.sub(TABLE, r"\1()", source), flags=re.MULTILINE)
    (folder / f"{module}.py").write_text(source)
    (folder / "setup.cfg").write_text(SETTINGS.format(module))


def mutmut(folder, *arguments):
    """What a mutmut command prints; stops if it fails."""
    command = [Path(sys.executable).with_name("mutmut"), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def describe(folder, name, reasons):
    """A survivor as a line of the report, and whether its reason is known."""
    function = re.sub(r".*(\.x_|ǁ)|__mutmut_\d+", "", name)
    old, new = (re.findall(rf"^\{sign}(?!\{sign})(.*)", mutmut(folder, "show", name), re.MULTILINE)[0] for sign in "-+")
    why = [reason for where, piece, reason in reasons if where == function and piece in new and piece not in old]
    return f"- `{function}`: `{re.split('  +#', new.strip())[0]}`:\n  {why[0] if why else 'not explained'}", bool(why)


def main(modules):
    """Mutate each module in turn and write the report; returns the exit status."""
    rows, survivors, left = [], [], 0
    shutil.rmtree("build/mutants", ignore_errors=True)
    for module in modules:
        folder = Path("build/mutants", module)
        prepare(module, modules, folder)
        mutmut(folder, "run", "--max-children", "1")
        found = dict(re.findall(r"^ *(\S+): (.+)", mutmut(folder, "results", "--all", "true"), re.MULTILINE))
        tests = (folder / f"tests/test_{module}.py").read_text()
        reasons = re.findall(r"^# survives in (\w+): `(.+?)`: (.+)", tests, re.MULTILINE)
        alive = [describe(folder, name, reasons) for name, status in found.items() if status not in ("killed", "timeout")]
        explained, killed = sum(why for _, why in alive), len(found) - len(alive)
        score = f"{100 * killed / len(found):.1f}%"
        rows.append(f"| {module} | {len(found)} | {killed} | {score} | {explained} | {len(alive) - explained} |\n")
        survivors += [f"\n## Survivors in {module}\n\n", *(f"{line}\n" for line, _ in alive)] if alive else []
        left += len(alive) - explained
        print(rows[-1], end="", flush=True)
    Path("results/mutants.md").write_text(INTRODUCTION + "".join(rows) + "".join(survivors))
    return (f"{left} mutants survive without a reason: see results/mutants.md" if left else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
