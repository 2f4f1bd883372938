"""Documentation is executed: doctests, and the formulas of the docstrings; the README has a file of its own."""

import ast
import doctest
import importlib
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from pytest import approx

import bm25
import chunking
import cosine
import encoder
import fusion
import grading
import metrics
import refusal
import rerank
import toy

ROOT = Path(__file__).parent.parent
MODULES = [path.stem for path in sorted(ROOT.glob("*.py")) if path.stem != "bench"]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_the_primitives_have_doctests():
    for name in ("ranking", "bm25", "fusion", "metrics", "index", "rerank"):
        assert doctest.testmod(importlib.import_module(name)).attempted > 0, name


# -- Formulas: each `formula:` line of a docstring is Python, and is evaluated on the toy values ------------------------

HEAD = np.array([[math.sqrt(2) * math.log(3), 0], [0, 0]]), np.eye(2), 4 * np.eye(2)            # the toy of encoder.py
HIDDEN = np.array([[2.0, 0.0], [0.0, 2.0]])
LAYER = encoder.Layer((np.arange(12).reshape(6, 2) / 10, np.ones(6)), (np.eye(2), np.zeros(2)), (np.ones(2), np.zeros(2)),
                      (np.array([[1, 2], [3, 4], [5, 6]]), np.ones(3)), (np.ones((2, 3)), np.array([0, 5])),
                      (np.ones(2), np.zeros(2)))
CROSS_ENCODER = SimpleNamespace(pooler=LAYER.mix, classifier=LAYER.up)
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
    (refusal, "auroc"): (dict(n_greater=3, n_equal=0, n_good=2, n_other=2), refusal.auroc([0.9, 0.6], [0.7, 0.2])),
    (rerank, "maxsim"): (dict(question_vectors=np.eye(2), text_vectors=np.array([(0.8, 0.6), (0.6, 0.8), (0, 1)])),
                         rerank.maxsim([(1, 0), (0, 1)], [(0.8, 0.6), (0.6, 0.8), (0, 1)])),
    (cosine, "rounding_error"): (dict(dim=3, query_length=2, row_length=5), cosine.rounding_error(3, 2, 5)),
    (chunking, "semantic"): (dict(vectors=toy.Topics().encode(["A cat sat.", "Oil rose."])),
                             chunking._distances("A cat sat. Oil rose.", [(0, 10), (11, 20)], toy.Topics(), 0)[0]),
    (encoder, "embed"): (dict(words=np.eye(2), ids=[1, 0], positions=np.array([[5, 5], [6, 6]]), places=[0, 1],
                              kinds=np.ones((1, 2)), types=[0, 0]),
                         encoder.embed([1, 0], [0, 1], [0, 0], np.eye(2), np.array([[5, 5], [6, 6]]), np.ones((1, 2)))),
    (encoder, "layer_norm"): (dict(rows=np.array([[3.0, 1.0]]), gain=2, shift=1, epsilon=3),
                              encoder.layer_norm(np.array([[3.0, 1.0]]), 2, 1, 3)),
    (encoder, "gelu_by_definition"): (dict(x=0.7), encoder.gelu_by_definition(0.7)),
    (encoder, "gelu_tanh"): (dict(x=0.7), encoder.gelu_tanh(np.array([0.7]))),
    (encoder, "softmax"): (dict(scores=np.array([0.3, 2.0])), encoder.softmax(np.array([0.3, 2.0]))),
    (encoder, "attention"): (dict(zip(("queries", "keys", "values"), HEAD), d=2), encoder.attention(*HEAD)),
    (encoder, "linear"): (dict(rows=np.array([[3, 4]]), weight=np.array([[1, 1], [2, 0], [0, 5]]), bias=np.array([0, 0, 1])),
                          encoder.linear(np.array([[3, 4]]), np.array([[1, 1], [2, 0], [0, 5]]), np.array([0, 0, 1]))),
    (encoder, "layer_by_definition"): (
        dict(hidden=HIDDEN, heads=[encoder.attention(*head) for head in encoder.heads_of(HIDDEN, LAYER, 1)],
             mix=LAYER.mix, up=LAYER.up, down=LAYER.down, activate=encoder.gelu_by_definition,
             linear=lambda rows, learned: encoder.linear(rows, *learned), concatenate=np.hstack,
             layer_norm=lambda rows: encoder.layer_norm(rows, 1, 0, 1e-3)),
        encoder.layer_by_definition(HIDDEN, LAYER, 1, 1e-3, encoder.gelu_by_definition)),
    (encoder, "mean_pool"): (dict(rows=np.array([[1, 3], [5, 5]]), n_tokens=2), encoder.mean_pool(np.array([[1, 3], [5, 5]]))),
    (encoder, "unit"): (dict(vector=np.array([3.0, 4.0])), encoder.unit(np.array([3.0, 4.0]))),
    (encoder, "_logits"): (dict(cls=HIDDEN[:1], pooler=LAYER.mix, classifier=LAYER.up, tanh=np.tanh,
                                linear=lambda rows, learned: encoder.linear(rows, *learned)),
                           encoder.CrossEncoder._logits(CROSS_ENCODER, HIDDEN, [(0, 1, 2)])),
}
KNOWN = {"ln": math.log, "log2": math.log2, "sqrt": np.sqrt, "exp": np.exp, "erf": math.erf, "tanh": math.tanh, "pi": math.pi,
         "mean": np.mean, "variance": np.var, "softmax": encoder.softmax}


def formulas(name):
    """(function or method, [(left-hand side, right-hand side)]) of each docstring of a module that holds formulas."""
    for node in ast.walk(ast.parse((ROOT / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            if found := re.findall(r"^\s*formula: (\w+) = (.*)$", ast.get_docstring(node) or "", re.MULTILINE):
                yield node.name, found


def test_every_formula_of_every_module_is_listed_above():
    found = {(name, function): lines for name in [*MODULES, "bench"] for function, lines in formulas(name)}
    assert found.keys() == {(module.__name__, function) for module, function in TOY}
    written = sum(path.read_text(encoding="utf-8").count("formula: ") for path in ROOT.glob("*.py"))
    assert written == sum(map(len, found.values()))


@pytest.mark.parametrize("module, name", TOY, ids=lambda value: getattr(value, "__name__", value))
def test_formula_equals_the_code(module, name):
    values, expected = TOY[module, name]
    # a text's word pieces are rows, so the sum of an array is one row; Python's own sum does just that
    values = {**values, "sum": sum}
    for left, right in dict(formulas(module.__name__))[name]:
        values[left] = eval(right, KNOWN, values)                      # a second formula goes on from the first
    assert values[left] == approx(expected)
