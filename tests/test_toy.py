"""The toy corpus is what its legend says, its two rankings are what the retrievers return, and so are other legends."""

import ast
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest

import bm25
import cosine
import encoder
import metrics
import postings
import ranking
import reader
import refusal
import rerank
import rst
import toy
import trec
import watch


def test_lengths_are_6_5_2_and_3_and_their_mean_4():
    lengths = [len(text.split()) for text in toy.DOCUMENTS]
    assert lengths == [6, 5, 2, 3] and sum(lengths) / 4 == 4


def test_question_words_stand_in_3_2_and_2_documents():
    assert [sum(word in text.split() for text in toy.DOCUMENTS) for word in toy.QUESTION.split()] == [3, 2, 2]


def test_vectors_are_unit_and_their_cosines_those_of_the_legend():
    vectors, query = np.array(toy.VECTORS), np.array(toy.QUERY_VECTOR)
    assert (vectors**2).sum(axis=1) == pytest.approx([1, 1, 1, 1]) and (query**2).sum() == pytest.approx(1)
    assert vectors @ query == pytest.approx([0.96, 0.8, 0.0, 0.6])


def test_the_two_rankings_are_those_of_the_retrievers():
    index = bm25.BM25([bm25.tokenize(text) for text in toy.DOCUMENTS])
    assert index.top_k(bm25.tokenize(toy.QUESTION), k=4)[0].tolist() == toy.BM25_RANKING
    assert ranking.top_k(np.array(toy.VECTORS) @ np.array(toy.QUERY_VECTOR), k=4).tolist() == toy.DENSE_RANKING


# -- "toy:" in the legends of all modules, each value computed anew ----------------------------------------------------

ROOT = Path(__file__).parent.parent
TOKENS = [text.split() for text in toy.DOCUMENTS]
LENGTHS = [len(tokens) for tokens in TOKENS]
COSINES = ((np.array(toy.VECTORS) @ toy.QUERY_VECTOR).round(6) + 0.0).tolist()
SPAN, RETRIEVED = (0, 4, 14), [(0, 0, 7), (0, 4, 11)]
COPIES = [(number, match.start(), match.end())
          for number, text in enumerate(toy.DOCUMENTS) for match in re.finditer("the cat", text)]
ASKED = (0, toy.DOCUMENTS[0].index("on the mat"), len(toy.DOCUMENTS[0]))
SCORES, GOOD = (0.9, 0.6, 0.7, 0.2), (1, 1, 0, 0)
QUERIES, KEYS, VALUES = [[2**0.5 * np.log(3), 0], [0, 0]], [[1, 0], [0, 1]], [[4, 0], [0, 4]]
QUESTION_VECTORS, TEXT_VECTORS = ((1, 0), (0, 1)), ((0.8, 0.6), (0.6, 0.8), (0, 1))
RST = "Wine\n----\n\n:Date: 1988\n\nA copy."
BLOCKS = rst.blocks(RST)


def df(term):
    return sum(term in tokens for tokens in TOKENS)


def plain(rows):
    return np.round(rows, 6).astype(int).tolist()


LEGENDS = {                                          # (module, what stands first on the line): what stands behind "toy:"
    ("bm25", "token_lists"): f'[{json.dumps(TOKENS[0][:3])[:-1]}, ...], ...]',
    ("bm25", "n"): str(len(TOKENS)),
    ("bm25", "df"): f"the {df('the')}, cat {df('cat')}, dog {df('dog')}",
    ("bm25", "count"): f'"the" stands {["", "once", "twice"][TOKENS[0].count("the")]} in document 0',
    ("bm25", "length"): str(LENGTHS)[1:-1],
    ("bm25", "mean_length"): f"{sum(LENGTHS) / 4:.0f}",
    ("bm25", "norm"): f"{1 - 0.75 + 0.75 * LENGTHS[0] / 4} for document 0",
    ("cosine", "query_vector"): str(toy.QUERY_VECTOR),
    ("cosine", "vectors"): f"{['', '', 'two', '', 'four'][len(toy.VECTORS)]} rows of two numbers",
    ("cosine", "score"): str(cosine.cosine_top_k(toy.QUERY_VECTOR, toy.VECTORS, 4)[1][[0, 1, 3, 2]].round(6).tolist()),
    ("encoder", "dim"): str(len(KEYS[0])),
    ("encoder", "hidden"): "[[2, 0], [0, 2]]",
    ("encoder", "head"): f"1 of {len(KEYS[0])}",
    ("encoder", "queries"): f"[[sqrt(2) ln {np.exp(QUERIES[0][0] / 2**0.5):.0f}, 0], [0, 0]]",
    ("encoder", "keys"): str(KEYS),
    ("encoder", "values"): str(VALUES),
    ("encoder", "scores"): "[[{}/4, {}/4], [{}/2, {}/2]]".format(*np.ravel(plain(
        encoder.softmax(np.array(QUERIES) @ np.transpose(KEYS) / 2**0.5) * [[4], [2]]))),
    ("encoder", "attended"): str(plain(encoder.attention(*map(np.array, (QUERIES, KEYS, VALUES))))),
    ("eval_spans", "toy:"): '"on the mat" is asked for, "{}" is read: recall {:.0f}, precision {:.0f}/22'.format(
        toy.DOCUMENTS[0], metrics.span_recall([(0, 0, 22)], [ASKED]), 22 * metrics.span_precision([(0, 0, 22)], [ASKED])),
    ("fusion", "rankings"): f"{[toy.BM25_RANKING, toy.DENSE_RANKING]}, from keywords and from vectors",
    ("metrics", "ranking"): f"BM25_RANKING = {toy.BM25_RANKING}",
    ("metrics", "relevant"): str({item for item, grade in toy.GAINS.items() if grade}),
    ("metrics", "gains"): f"GAINS = {toy.GAINS}",
    ("metrics", "span"): f'{SPAN} is "{toy.DOCUMENTS[0][4:14]}" in document 0',
    ("metrics", "n_shared"): '{}, when "{}" and "{}" are retrieved'.format(
        metrics.n_shared_by_definition(RETRIEVED, [SPAN]), *(toy.DOCUMENTS[0][start:end] for _, start, end in RETRIEVED)),
    ("metrics", "evidence"): '"the cat" stands in documents {} and {}:'.format(*(number for number, *_ in COPIES)),
    ("postings", "places"): "[0, -1, 2, 3], the second leaves",
    ("postings", "new_places"): "[1], in its place",
    ("ranking", "scores"): f"cosines {COSINES}",
    ("ranking", "ranking"): f"{ranking.top_k(COSINES, 4).tolist()}; later modules also rank ids",
    ("reader", "quote"): f'"{toy.DOCUMENTS[1]}" of passage 1',
    ("refusal", "good"): f"scores {SCORES}, good {GOOD}",
    ("refusal", "threshold"): f"{refusal.best_threshold(SCORES, GOOD)}, between 0.2 and 0.6",
    ("refusal", "AUROC"): f"3 of 4 pairs: {refusal.auroc(SCORES[:2], SCORES[2:])}",
    ("refusal", "error"): "({:.0f} + {:.0f}/2) / 2 = 0.25".format(
        *np.array(refusal._errors(np.array(SCORES), np.array(GOOD, bool), 0.4)) * (1, 2)),
    ("rerank", "toy:"): f"question {QUESTION_VECTORS}, text {TEXT_VECTORS}",
    ("rst", "text"): json.dumps(RST),
    ("rst", "line"): f"{len(rst.line_spans(RST))}, of which {sum(map(bool, RST.splitlines()))} are not blank",
    ("rst", "block"): ", ".join(f"{block.kind} {block.start}:{block.end}" for block in BLOCKS),
    ("rst", "level"): ", ".join(f"{block.kind} {block.level}" for block in BLOCKS),
    ("rst", "path"): str([block.section_path for block in BLOCKS])[1:-1].replace("'", '"'),
    ("token_store", "toy:"): f'"cat oil" is {tuple(map(tuple, plain(toy.Topics().token_vectors("cat oil")[0][1:-1])))}',
    ("trec", "qrels"): json.dumps({"toy": {str(item): grade for item, grade in toy.GAINS.items()}}),
    ("trec", "run"): json.dumps({"toy": toy.BM25_RANKING}),
    ("trec", "TREC qrels"): list(trec.qrels_lines({"toy": toy.GAINS}))[1],
    ("trec", "TREC run"): next(iter(trec.run_lines({"toy": toy.BM25_RANKING}, tag="keywords"))),
    ("vector_cache", "vector"): f"{toy.QUERY_VECTOR} -> {np.float32(toy.QUERY_VECTOR).tobytes().hex(' ')}",
    ("watch", "mark"): json.dumps(watch._marks([(1, 0, 4, 9)])[1, 0][0]),
    ("watch", "toy:"): str((100 * np.array(QUESTION_VECTORS) @ np.transpose(TEXT_VECTORS)).round().astype(int).tolist()),
    ("vector_cache", "check"): f"{zlib.crc32(b'k' + np.float32(toy.QUERY_VECTOR).tobytes()):#010x}",
}


def legends(path):
    """((module, what stands first), the value) of each line of a module's docstring that gives a value on the toys."""
    for line in ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).splitlines():
        if match := re.match(r" +((?:\S+ )*\S+)?.*?\btoy(?:, [^:]*)?: (.*)", line):
            yield (path.stem, match[1] or "toy:"), match[2]


def test_every_toy_value_of_a_legend_is_what_the_code_computes():
    assert dict(found for path in sorted(ROOT.glob("*.py")) for found in legends(path)) == LEGENDS


def test_what_stands_beside_those_lines():
    assert f"[{COPIES}]" in metrics.__doc__ and rerank.maxsim(QUESTION_VECTORS, TEXT_VECTORS) == pytest.approx(0.9)
    assert (0 + 1 / 2) / 2 == 0.25 and reader.units(toy.DOCUMENTS[1]) == [(0, len(toy.DOCUMENTS[1]))]
    index = postings.Postings().changed([], [0, 1, 2, 3], TOKENS).changed([0, -1, 2, 3], [1], [["a", "dog"]])
    assert index.lengths.tolist() == [LENGTHS[0], 2, *LENGTHS[2:]]
