"""Documents are the files, unchanged."""

import sys
from pathlib import Path

import pytest

import documents

FOURTEEN = ["breast_cancer", "california_housing", "covtype", "diabetes", "digits", "iris", "kddcup99", "lfw", "linnerud",
            "olivetti_faces", "rcv1", "species_distributions", "twenty_newsgroups", "wine_data"]


def test_all_fourteen_in_the_order_of_their_ids():
    assert [document["id"] for document in documents.load_descriptions()] == FOURTEEN


def test_text_is_the_file_unchanged_and_source_its_path():
    for document in documents.load_descriptions():
        assert document["text"].encode() == Path(document["source"]).read_bytes()
        assert Path(document["source"]).stem == document["id"] and document["doc_type"] == "rst"


def test_titles_are_the_first_headings():
    titles = {document["id"]: document["title"] for document in documents.load_descriptions()}
    assert titles["wine_data"] == "Wine recognition dataset"
    assert titles["digits"] == "Optical recognition of handwritten digits dataset"
    assert all(title and not title.startswith((".", "-", "=")) for title in titles.values())


def test_names_pick_and_order():
    assert [document["id"] for document in documents.load_descriptions(["iris", "digits"])] == ["iris", "digits"]
    assert documents.load_descriptions([]) == []


def test_scikit_learn_is_not_imported():
    before = "sklearn" in sys.modules
    documents.load_descriptions()
    assert ("sklearn" in sys.modules) == before


def test_unknown_name_lists_what_there_is():
    with pytest.raises(ValueError, match="'wine'.*wine_data"):
        documents.load_descriptions(["iris", "wine"])


def test_one_string_is_no_list_of_names():
    with pytest.raises(TypeError, match=r"\['iris'\]"):
        documents.load_descriptions("iris")


@pytest.mark.parametrize("text, title", [
    ("Title\n=====\nbody", "Title"), ("A\r\n-\r\nb", "A"), ("Über\n----", "Über"), ("Long title\n---\n\nReal\n----", "Real"),
    ("no heading", None), ("", None), ("\n----\n", None), ("a b\n= =\n", None), ("text\nmore", None),
])
def test_first_heading(text, title):
    assert documents.first_heading(text) == title


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "broken.rst"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(ValueError, match="broken.rst is not UTF-8"):
        documents._read(path)


def test_line_ends_are_kept(tmp_path):
    path = tmp_path / "dos.rst"
    path.write_bytes(b"T\r\n-\r\nbody\r\n")
    assert documents._read(path)["text"] == "T\r\n-\r\nbody\r\n"


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(documents, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install scikit-learn"):
        documents.load_descriptions()
