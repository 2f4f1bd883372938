"""Curves are of the same questions at every size; misses have one kind each, by hand; the cut is where the model stops."""

from collections import Counter

import numpy as np
import pytest
from pytest import approx

import eval_corpora
import eval_spans
import eval_sweep
import metrics
from eval_spans import Cut
from eval_sweep import KINDS, SETTINGS
from toy import Embedder, Topics

SIZES = (12, 40, 10**6)


@pytest.fixture(scope="module")
def corpus():
    found = eval_corpora.labelled_descriptions()
    few = [number for number, pieces in enumerate(found.evidence) if all(
        copy[0] in ("iris", "linnerud") for copies in pieces for copy in copies)]
    return found._replace(docs=[each for each in found.docs if each["id"] in ("iris", "linnerud")],
                          questions=[found.questions[number] for number in few],
                          evidence=[found.evidence[number] for number in few])


@pytest.fixture(scope="module")
def found(corpus):
    return eval_sweep.sweep(corpus, Embedder(max_tokens=64), SIZES)


def test_every_size_is_measured_over_the_same_questions(corpus, found):
    n = len(corpus.questions)
    assert list(found) == list(SIZES) and n > 12
    for each in found.values():
        assert set(each.values) == {(name, setting) for name in eval_spans.RETRIEVERS for setting in SETTINGS}
        assert {len(values) for measures in each.values.values() for values in measures.values()} == {n}
        assert {len(kinds) for kinds in each.misses.values()} == {n} == {len(each.inside)}
    assert found[10**6].chunks == 2 < found[40].chunks < found[12].chunks


def test_a_whole_document_is_read_by_five_chunks_and_not_by_a_budget(corpus, found):
    values = found[10**6].values
    assert values["dense", "5 chunks"]["recall"].mean() == 1            # 5 of 2 documents: everything is sent
    assert values["dense", "250 words"]["recall"].mean() < 1
    words = sum(len(document["text"].split()) + len(document["title"].split()) for document in corpus.docs)
    assert values["dense", "5 chunks"]["words"][0] == words


def test_a_budget_is_spent_and_a_bigger_one_finds_no_less(found):
    for each in found.values():
        for name in eval_spans.RETRIEVERS:
            less, more = (each.values[name, f"{budget} words"] for budget in ("250", "500"))
            assert (less["words"] <= 250).all() and (less["recall"] <= more["recall"] + 1e-12).all()


def test_unseen_rises_with_size_and_is_nothing_where_all_is_read(found):
    unseen = [each.unseen for each in found.values()]
    assert unseen[0] == approx(0, abs=0.05) and unseen == sorted(unseen) and unseen[-1] > 0.5


def test_a_hit_is_inside_beyond_or_the_miss_has_a_kind(found):
    for each in found.values():
        for kinds in each.misses.values():
            assert set(kinds) <= {None, *KINDS}
            # what no chunk holds whole can be no hit
            assert all(kind is not None or inside is not None for kind, inside in zip(kinds, each.inside))
        assert "beyond" not in each.misses["bm25"] and "diluted" not in each.misses["bm25"]


# -- By hand -----------------------------------------------------------------------------------------------------------

TEXT = "the cat sat on the mat. " + "oil rose and gold rose. " * 3 + "a rose is red."
DOC, OTHER = {"id": "d", "title": "", "text": TEXT}, {"id": "e", "title": "", "text": "oil " * 12}


def asked(*spans, docs=(DOC,), question="oil"):
    return eval_corpora.Asked("toy", list(docs), [question] * len(spans), [[[each]] for each in spans])


def kinds_of(corpus, size, embedder, retriever="dense"):
    return eval_sweep.sweep(corpus, embedder, (size,), (retriever,))[size].misses[retriever]


def test_the_model_reads_up_to_its_limit():
    embedder = Topics()
    embedder.max_tokens = 8                                             # six words, and two specials
    [chunk] = Cut("fixed", 99, 0, "words").chunks([DOC], embedder)
    assert TEXT[:eval_sweep.read_until(chunk, embedder)].split() == TEXT.split()[:6]
    titled = {**chunk, "text": "My Pets\n\n" + chunk["body"]}            # two words of them are the breadcrumb's
    assert TEXT[:eval_sweep.read_until(titled, embedder)].split() == TEXT.split()[:4]
    short = {**chunk, "text": "a b c d e f g\n\n" + chunk["body"]}       # nothing of the body is read
    assert eval_sweep.read_until(short, embedder) == 0


def test_evidence_is_inside_beyond_or_cut_apart():
    embedder = Topics()
    embedder.max_tokens = 8
    chunks = Cut("fixed", 12, 0, "words").chunks([DOC], embedder)
    ends = [eval_sweep.read_until(chunk, embedder) for chunk in chunks]
    first, last = TEXT.split()[:12], chunks[0]["end"]
    assert chunks[0]["body"].split() == first and ends[0] == TEXT.index("oil")
    assert eval_sweep.is_inside([[("d", 0, 3)]], chunks, ends) is True
    assert eval_sweep.is_inside([[("d", 24, 27)]], chunks, ends) is False       # "oil", the seventh word
    assert eval_sweep.is_inside([[("d", 0, 3)], [("d", 24, 27)]], chunks, ends) is False
    assert eval_sweep.is_inside([[("d", last - 3, last + 3)]], chunks, ends) is None
    assert eval_sweep.is_inside([[("d", 24, 27), ("d", 0, 3)]], chunks, ends) is True    # a copy is inside


def test_each_kind_of_miss():
    many = [{"id": f"x{number}", "title": "", "text": "oil price gold"} for number in range(5)]
    cut = asked(("d", 4, 20), docs=[DOC, OTHER])
    assert kinds_of(cut, 2, Topics()) == ["cut"]                        # "cat sat on the" is longer than two words
    limited = Topics()
    limited.max_tokens = 8
    beyond = asked(("d", len(TEXT) - 14, len(TEXT)), docs=[DOC, *many])
    assert kinds_of(beyond, 99, limited) == ["beyond"]
    assert kinds_of(beyond, 99, limited, "bm25") == ["wrong"]           # keywords know no limit: others are shorter
    diluted = asked(("d", 24, 47), docs=[DOC, *many], question="oil rose")
    # "oil rose and gold rose." alone is (.5, 4.5)/5; the others are pure oil, with it in a text on cats they win
    assert kinds_of(diluted, 99, Topics()) in (["wrong"], ["diluted"])
    assert kinds_of(asked(("d", 4, 7), docs=[DOC, *many]), 99, Topics()) == ["wrong"]
    same = {"id": "s", "title": "", "text": " ".join(["oil"] * 7 + ["cat"])}
    assert kinds_of(asked(("s", 28, 31), docs=[same]), 1, Topics()) == ["pool"]
    assert kinds_of(asked(("s", 0, 3), docs=[same]), 1, Topics()) == [None]
    long = {"id": "l", "title": "", "text": " ".join(["oil"] * 60 + ["cat"])}
    assert kinds_of(asked(("l", 240, 243), docs=[long]), 1, Topics()) == ["far"]


def test_a_diluted_chunk_would_win_without_what_stands_around_it():
    mixed = {"id": "m", "title": "", "text": "oil price gold. cat mat cat mat"}
    others = [{"id": f"x{number}", "title": "", "text": "oil cat oil"} for number in range(5)]
    corpus = asked(("m", 0, 14), docs=[mixed, *others], question="oil")
    assert kinds_of(corpus, 99, Topics()) == ["diluted"]
    assert kinds_of(corpus, 3, Topics()) == [None]


# -- What is printed ---------------------------------------------------------------------------------------------------


def with_recalls(*recalls):
    """Sizes 1, 2, ... with the given recalls, one list of questions each."""
    values = [{("dense", setting): {**dict.fromkeys(eval_spans.MEASURES, np.ones(len(each))),
                                    "recall": np.array(each, float)} for setting in SETTINGS} for each in recalls]
    return {number: eval_sweep.Size(1, 0.0, each, {"dense": [None] * len(recalls[0])}, [True] * len(recalls[0]))
            for number, each in enumerate(values, start=1)}


def test_no_difference_is_shown_between_equals_and_one_is_between_others():
    found = with_recalls([0] * 20, [1] * 20, [1] * 19 + [0])
    assert eval_sweep.is_shown(eval_sweep.compare(found, 2, 1, "dense", "5 chunks"))
    assert not eval_sweep.is_shown(eval_sweep.compare(found, 3, 2, "dense", "5 chunks"))
    assert eval_sweep.best(found, "dense", "500 words") == (2, [2, 3])
    text = eval_sweep.neighbours_table(found, ["dense"])
    assert "| 1 to 2 | **+1.000**" in text and "| 2 to 3 | -0.050 |" in text


def test_a_difference_is_that_of_the_questions():
    found = with_recalls([0, 1, 0, 1, 0], [1, 1, 0, 0, 1])
    assert eval_sweep.compare(found, 2, 1, "dense", "5 chunks") == metrics.paired_bootstrap([1, 1, 0, 0, 1], [0, 1, 0, 1, 0])


def test_the_report_has_every_size_and_counts_add_up(corpus, found):
    text = eval_sweep.report(corpus, found, eval_spans.RETRIEVERS)
    assert text.count("\n| whole |") == len(SETTINGS) + 1 + len(eval_spans.RETRIEVERS)
    rows = [line.split("|")[2:-1] for line in eval_sweep.kinds_table(found, "dense").splitlines()[2:]]
    assert [sum(map(int, row)) for row in rows] == [len(corpus.questions)] * len(SIZES)
    explained = eval_sweep.explain(corpus, found, "dense")
    missed = Counter(kind is not None for each in found.values() for kind in each.misses["dense"])[True]
    assert sum(line.startswith("  ") for line in explained.splitlines()) == missed > 0


def test_the_picture_is_drawn_and_the_hash_is_of_the_data(corpus, found, tmp_path):
    eval_sweep.plot([(corpus, found)], "seed 0", tmp_path / "sizes.png")
    assert (tmp_path / "sizes.png").read_bytes().startswith(b"\x89PNG")
    changed = corpus._replace(questions=[*corpus.questions[:-1], "Another?"])
    assert eval_sweep.data_hash([corpus]) == eval_sweep.data_hash([corpus]) != eval_sweep.data_hash([changed])
