"""Docstrings become pairs of a question and the chunk that should be found; nobody is imported, nothing comes twice."""

import tempfile
from pathlib import Path

import documents
import eval_corpora
import eval_questions
from toy import Embedder

PACKAGE = {
    "__init__.py": '"""All about cats.\n\nThey sit, they sleep, they eat."""\nraise RuntimeError("imported")\n',
    "_big/lions.py": '''
def roar(loud):
    """Roar once.

    The lion roars as loud as it is told to.
    """
    def inner():
        """Not public.

        Since it lies inside another function.
        """

class Lion:
    """A lion of
    any age.

    It has a mane if it is male and grown.
    """
    if True:
        def sleep(self):
            """Sleep for a while.

            Lions sleep up to twenty hours a day.
            """
    def _dream(self):
        """Private.

        Nobody knows what lions dream about.
        """
''',
    "tests/cages.py": 'def cage():\n    """A test.\n\n    Not what users read about."""\n'}


def read():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in PACKAGE.items():
            Path(folder, name).parent.mkdir(exist_ok=True)
            Path(folder, name).write_text(text)
        return list(eval_corpora.read_docstrings(Path(folder), "cats"))


def test_public_docstrings_are_read_and_no_others():
    assert [(module, name) for module, name, _ in read()] == [
        ("cats.__init__", "cats"), ("cats._big.lions", "cats.lions.roar"),
        ("cats._big.lions", "cats.lions.Lion"), ("cats._big.lions", "cats.lions.Lion.sleep")]


def test_a_summary_is_the_first_paragraph_on_one_line():
    found = {name: (summary, rest) for _, name, summary, rest in eval_corpora.pairs(read(), words=5)}
    assert found["cats.lions.Lion"] == ("A lion of any age.", "It has a mane if it is male and grown.")
    assert found["cats"] == ("All about cats.", "They sit, they sleep, they eat.")


def test_shared_summaries_short_rests_and_second_copies_are_left_out():
    found = [("m", "a", "Fit.\n\none two"), ("m", "b", "Fit.\n\nthree four"), ("m", "c", "Sort.\n\nfive six"),
             ("m", "d", "Sort it.\n\nfive six"), ("m", "e", "Add."), ("m", "f", "Sum.\n\nseven"),
             ("m", "g", "Sum.\n\neight nine"), ("m", "h", "")]
    assert [name for _, name, _, _ in eval_corpora.pairs(found, words=2)] == ["c", "g"]
    # a docstring that is too short to be found makes nobody's summary ambiguous: "Sum." is asked once


def test_every_docstring_is_one_chunk_and_the_sample_is_the_same_each_time():
    corpus = eval_corpora.docstrings("small", Embedder(), packages=("json",), sample=5, words=10)
    again = eval_corpora.docstrings("small", Embedder(), packages=("json",), sample=5, words=10)
    assert corpus == again and len(corpus.questions) == 5 < len(corpus.chunks)
    assert len({chunk["doc_id"] for chunk in corpus.chunks}) == len(corpus.chunks)
    assert all(Embedder().count_tokens(chunk["text"]) <= eval_corpora.PIECES for chunk in corpus.chunks)
    assert all(chunk["title"] in chunk["text"] + chunk["context"] for chunk in corpus.in_context)
    chunks = {chunk["doc_id"]: chunk for chunk in corpus.chunks}
    for [[(doc_id, start, end)]], question, module in zip(corpus.evidence, corpus.questions, corpus.groups):
        assert (start, end) == (chunks[doc_id]["start"], chunks[doc_id]["end"])
        assert question not in chunks[doc_id]["text"] and doc_id.startswith(module)


def test_only_answerable_questions_are_asked_of_the_descriptions():
    docs, labelled = documents.load_descriptions(), eval_questions.load_questions()
    corpus = eval_corpora.descriptions("d", docs, labelled, size=120)
    assert len(corpus.questions) == sum(bool(each["evidence"]) for each in labelled) == len(corpus.where)
    assert [chunk["id"] for chunk in corpus.chunks] == [chunk["id"] for chunk in corpus.in_context]
    assert set(corpus.groups) == {document["id"] for document in docs}


def test_modules_are_long_and_a_question_s_evidence_is_a_paragraph_of_prose():
    corpus = eval_corpora.modules(longest=3)
    assert len(corpus.docs) == 3 and min(len(document["text"].split()) for document in corpus.docs) > 5000
    texts = {document["id"]: document["text"] for document in corpus.docs}
    assert len(corpus.questions) == len(set(corpus.questions)) > 15
    for pieces in corpus.evidence:
        [[(doc_id, start, end), *copies]] = pieces                      # one paragraph, which may stand several times
        assert {texts[doc_id][first:last] for _, first, last in copies} <= {texts[doc_id][start:end]}
        paragraph = texts[doc_id][start:end]
        assert len(paragraph.split()) >= eval_corpora.PROSE and "\n\n" not in paragraph and "---" not in paragraph


def test_the_labelled_descriptions_are_all_fourteen():
    corpus = eval_corpora.labelled_descriptions()
    assert (len(corpus.docs), len(corpus.questions), len(corpus.evidence)) == (14, 160, 160)
