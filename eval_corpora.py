"""Beside step 19 — Which documents, and which questions, is retrieval measured over? The descriptions, and docstrings.

The labelled descriptions are short, and fourteen. So there is a second, harder corpus that nobody had to label: the
docstrings of installed packages, whose first line says in a few words what the rest is about. The first line is the
question; what should be found is the rest, among two thousand others. Joined by source file, they are long documents.

    Labelled    chunks and questions whose evidence is known, side by side
    evidence    for each piece that an answer needs, the spans of its copies (metrics.py)
    summary     a docstring's first paragraph                           "Compute the standard deviation."
    rest        what follows; the chunk is its beginning, at most 128 word pieces, which the model reads whole
    groups      what questions share, so that it can be resampled: the description, or the source file
    where       a filter (filters.py) for the part of the corpus that a question is about: the description, or the
                package (product: "sklearn.cluster")

A docstring's own name is not in its text, since summaries often repeat it. It is the chunk's title: a title boost or a
context brings it in.

    modules     long documents: scikit-learn's longest source files, each the docstrings' rests one after the other, far
                too long to be read in one piece; the evidence is the rest's first paragraph, if that is prose

What it cannot show: a summary is written by whoever wrote the rest, and is no question; one chunk is right, though
others may say as much (a function and the class that does the same).

Not here: what is done with them (eval_sweep.py, eval_stages.py).
"""

import ast
import importlib.util
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import chunking
import contextual
import documents
import eval_questions

LONGEST, PROSE = 8, 12                  # source files; the least words of a paragraph that is asked for
PACKAGES = ("numpy", "sklearn")
PIECES, WORDS, SAMPLE = 128, 25, 400   # word pieces of a chunk, the least words of a rest, how many questions are asked


class Labelled(NamedTuple):
    """Chunks, and for each question what answers it.

    in_context  the chunks with a context each (contextual.py)
    evidence    [n_questions] lists of pieces
    kinds       [n_questions] a question's type
    groups      [n_questions] the document, or source file, that a question is about
    where       [n_questions] a filter that keeps the part of the corpus that the question is about
    """

    name: str
    chunks: list
    in_context: list
    questions: list
    evidence: list
    kinds: list
    groups: list
    where: list


def descriptions(name, docs, labelled, **cut):
    """The descriptions, cut by their structure as `cut` says (chunking.structured), with the labelled questions."""
    texts = {document["id"]: document["text"] for document in docs}
    chunks = [chunking.structured(document, **cut) for document in docs]
    labelled = [each for each in labelled if each["evidence"]]
    doc_ids = [each["doc_id"] for each in labelled]
    return Labelled(name, sum(chunks, []), sum(map(contextual.from_document, chunks, docs), []),
                    [each["question"] for each in labelled],
                    [eval_questions.evidence_spans(each, texts) for each in labelled],
                    [each["type"] for each in labelled], doc_ids, [{"doc_id": doc_id} for doc_id in doc_ids])


def read_docstrings(folder, package):
    """Yield (module, name, docstring) of the public modules, functions, classes and methods in a package's folder.

    The files are read, not imported.
    """
    for path in sorted(folder.rglob("*.py")):
        parts = [package, *path.relative_to(folder).with_suffix("").parts]
        if not any(part in ("tests", "testing") or part.startswith(("test_", "conftest")) for part in parts):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            module = ".".join(part for part in parts if not part.startswith("_"))
            yield from ((".".join(parts), name, text) for name, text in _described(tree, module))


def _described(node, name):
    if not isinstance(node, (ast.If, ast.Try)) and (text := ast.get_docstring(node)):
        yield name, text
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.If, ast.Try)):
            yield from _described(child, name)
        elif isinstance(child, (ast.FunctionDef, ast.ClassDef)) and not child.name.startswith("_"):
            if not isinstance(node, ast.FunctionDef):
                yield from _described(child, f"{name}.{child.name}")


def pairs(found, words=WORDS):
    """[(module, name, summary, rest)] of docstrings, those left out whose rest is short, or who share either one.

    >>> pairs([("m", "m.f", "Count.\\n\\nOne, two."), ("m", "m.g", "Sum."), ("m", "m.h", "Sort.\\n\\nOne, two.")], 2)
    [('m', 'm.f', 'Count.', 'One, two.')]
    """
    split = [(module, name, " ".join(text.partition("\n\n")[0].split()), text.partition("\n\n")[2].strip())
             for module, name, text in found]
    long = [each for each in split if each[2] and len(each[3].split()) >= words]
    summaries, rests = Counter(each[2] for each in long), {}
    for each in long:
        if summaries[each[2]] == 1:
            rests.setdefault(each[3], each)                            # of equal rests the first
    return list(rests.values())


class Asked(NamedTuple):
    """Documents, uncut, and for each question its text and the evidence."""

    name: str
    docs: list
    questions: list
    evidence: list


def labelled_descriptions(name="descriptions"):
    """The fourteen descriptions with the labelled questions that they answer: Asked."""
    docs = documents.load_descriptions()
    return Asked(name, docs, *eval_questions.answerable(eval_questions.load_questions(), docs)[:2])


def modules(name="modules", package="sklearn", longest=LONGEST):
    """The longest source files of a package as documents of docstrings without their summaries, which ask: Asked."""
    files = {}
    for module, _, summary, rest in pairs(read_docstrings(_folder(package), package)):
        files.setdefault(module, []).append((summary, rest))
    names = sorted(files, key=lambda module: -sum(len(rest) for _, rest in files[module]))[:longest]
    docs, asked = [], []
    for module in sorted(names):
        text = "\n\n\n".join(rest for _, rest in files[module])
        docs.append(documents.Document(id=module, title=module, text=text, source=module, doc_type="rst"))
        asked += [{"question": summary, "evidence": [{"doc_id": module, "quote": rest.partition("\n\n")[0]}]}
                  for summary, rest in files[module] if _is_prose(rest.partition("\n\n")[0])]
    return Asked(name, docs, *eval_questions.answerable(asked, docs)[:2])


def _is_prose(paragraph):
    return len(paragraph.split()) >= PROSE and "---" not in paragraph and not paragraph.startswith((".. ", ">>>"))


def _folder(package):
    return Path(importlib.util.find_spec(package).submodule_search_locations[0])


def docstrings(name, embedder, packages=PACKAGES, sample=SAMPLE, words=WORDS):
    """The docstrings of installed packages: one chunk of at most 128 word pieces from each, where it begins.

    The name is not in the text, as summaries often repeat it: it is the title, which counts with a title boost or in
    the context. The questions are a seeded sample.
    """
    found = [each for package in packages for each in read_docstrings(_folder(package), package)]
    chunks, in_context, rows = [], [], pairs(found, words)
    for module, title, _, rest in tqdm(rows, desc="docstrings", leave=False, disable=None):
        document = {"id": f"{module}:{title}", "title": "", "text": rest[:20 * PIECES], "doc_type": "rst",
                    "product": ".".join(module.split(".")[:2])}
        chunk = chunking.recursive(document, PIECES, 0, "tokens", embedder)[0]
        chunks.append({**chunk, "title": title})
        in_context += contextual.from_document(chunks[-1:], document)
    picked = np.sort(np.random.default_rng(0).permutation(len(rows))[:sample]).tolist()
    spans = [(chunk["doc_id"], chunk["start"], chunk["end"]) for chunk in chunks]
    return Labelled(name, chunks, in_context, [rows[number][2] for number in picked],
                    [[[spans[number]]] for number in picked], ["summary"] * len(picked),
                    [rows[number][0] for number in picked],
                    [{"product": chunks[number]["product"]} for number in picked])


if __name__ == "__main__":
    found = [("rose", "rose.oil", "Press oil.\n\nRoses are pressed twice."), ("rose", "rose.gold", "Press oil.\n\nNo."),
             ("cat", "cat.sit", "Sit on the mat.")]
    for _, name, summary, rest in pairs(found, words=3):
        print(f"question {summary!r}, to be found: {rest!r}, title {name!r}")
