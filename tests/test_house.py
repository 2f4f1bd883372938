"""The house rules: every module is a numbered step, imports only lower steps, stays small, and starts light."""

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ["ranking", "bm25", "fusion", "metrics", "trec", "rst", "documents", "sentences", "chunking", "encoder",
         "embedding", "index", "rerank", "llm", "queries", "prompt", "citations", "rag", "eval_chunk_sizes",
         "eval_stages", "failure_modes", "watch"]
STEP = {name: number for number, name in enumerate(ORDER, start=1)}
BESIDE = {"toy": 0, "markup": 6.4, "webpage": 6.6, "cutting": 8.5, "model_files": 9.6, "vector_cache": 10.5,
          "cosine": 11.2, "filters": 11.4, "postings": 11.6, "saving": 11.8, "token_store": 11.9, "reader": 14.5,
          "contextual": 15.5, "quotes": 17.3, "search": 17.6, "corpus": 17.7, "refusal": 17.8, "answering": 17.9,
          "grading": 17.95, "eval_questions": 17.75, "eval_corpora": 18.4, "eval_spans": 18.5, "eval_sweep": 18.7, "eval_own": 18.8,
          "eval_strategies": 19.5, "bench": 99, "bench_encoder": 99.5,
          "bench_scale": 99.7}                       # no steps: parts of one
MODULES = sorted(ROOT.glob("*.py"))
LIGHT = {"numpy", "tqdm", "typing"}                  # what may be imported at the top of a module besides the standard library


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def code_lines(path):
    """Numbers of the lines that hold code: no blanks, comments or docstrings."""
    source = path.read_text(encoding="utf-8")
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines = {line for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in silent
             for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def functions(path):
    """(name, code lines) of every function and method."""
    lines = code_lines(path)
    return [(f"{path.name}:{node.name}", len(lines & set(range(node.lineno, node.end_lineno + 1))))
            for node in ast.walk(parse(path)) if isinstance(node, ast.FunctionDef)]


def imports(nodes):
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    return names


def at_the_top(path):
    return imports(parse(path).body)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
class TestEachModule:
    def test_is_a_step_of_the_house_with_a_test_file(self, path):
        assert path.stem in STEP or path.stem in BESIDE
        assert (ROOT / "tests" / f"test_{path.stem}.py").exists()

    def test_opens_with_its_number_and_its_neighbours(self, path):
        docstring = ast.get_docstring(parse(path))
        if path.stem in STEP:
            present = [name for name in ORDER if (ROOT / f"{name}.py").exists()]
            place = present.index(path.stem)
            assert docstring.startswith(f"Step {STEP[path.stem]} of 22 — ")
            flat = " ".join(docstring.split())
            assert place == 0 or f"Before: {present[place - 1]}.py." in flat
            assert place == len(present) - 1 or f"Next: {present[place + 1]}.py." in flat
            assert "Not here:" in docstring

    def test_imports_only_lower_steps(self, path):
        numbers = STEP | BESIDE
        everywhere = imports(ast.walk(parse(path))) & numbers.keys()
        assert not [name for name in everywhere if numbers[name] >= numbers[path.stem]]

    def test_imports_nothing_heavy_at_the_top(self, path):
        allowed = LIGHT | STEP.keys() | BESIDE.keys() | sys.stdlib_module_names
        assert path.stem == "bench" or at_the_top(path) <= allowed

    def test_fits_its_budget(self, path):
        assert len(code_lines(path)) <= 300
        assert not [(name, size) for name, size in functions(path) if size > 30]

    def test_is_declared_in_the_package(self, path):
        assert path.stem.startswith("bench") or f'"{path.stem}"' in (ROOT / "pyproject.toml").read_text()

    def test_lines_fit_the_page_and_public_functions_are_described(self, path):
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= 120
        public = [node for node in ast.walk(parse(path)) if isinstance(node, (ast.FunctionDef, ast.ClassDef))
                  and not node.name.startswith("_")]
        short = {name for name, size in functions(path) if size <= 4}
        assert not [node.name for node in public
                    if not ast.get_docstring(node) and f"{path.name}:{node.name}" not in short]


def test_the_median_function_has_under_8_lines():
    assert statistics.median(size for path in MODULES for _, size in functions(path)) < 8


def test_no_four_lines_stand_in_two_modules():
    """Imports apart, and lines that only close a bracket."""
    places = defaultdict(set)
    for path in MODULES:
        imported = {line for node in ast.walk(parse(path)) if isinstance(node, (ast.Import, ast.ImportFrom))
                    for line in range(node.lineno, node.end_lineno + 1)}
        source = path.read_text(encoding="utf-8").splitlines()
        lines = [source[line - 1].strip() for line in sorted(code_lines(path) - imported)]
        lines = [line for line in lines if line.strip(")]}, ")]
        for start in range(len(lines) - 3):
            places[tuple(lines[start:start + 4])].add(path.name)
    assert not {lines: names for lines, names in places.items() if len(names) > 1}


def loaded_by(statement):
    """Top-level packages that are loaded after `statement`, in a fresh interpreter, and what the statement printed."""
    program = f"import sys\n{statement}\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    return set(subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
               .stdout.split())


def test_the_primitives_load_numpy_and_nothing_heavier():
    outside = loaded_by("import ranking, bm25, fusion, metrics") - sys.stdlib_module_names - loaded_by("import numpy")
    assert outside <= {"ranking", "bm25", "fusion", "metrics"}


def test_importing_rag_loads_no_model_library_and_no_client():
    heavy = {"torch", "transformers", "sentence_transformers", "sklearn", "scipy", "anthropic", "matplotlib", "huggingface_hub"}
    assert not loaded_by("import rag") & heavy


def test_every_dependency_is_pinned_to_one_version():
    text = (ROOT / "pyproject.toml").read_text()
    listed = [name for block in re.findall(r"^(?:dependencies|pdf|dev|bench|mutants) = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
              for name in re.findall(r'"([^"]+)"', block)]
    assert listed and not [name for name in listed if not re.fullmatch(r"[\w.-]+==[\w.]+", name)]
    constraints = set((ROOT / "constraints.txt").read_text().lower().replace("_", "-").split())
    assert {name.lower().replace("_", "-") for name in listed} <= constraints
