"""What is asked: an index that is never older than the documents, conditions, and whether to search at all."""

import pytest

import corpus
import documents
import index
import saving
from test_index import Embedder, state


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text)
    return corpus.read_folder(folder)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    write(tmp_path / "docs", leave="# Leave\n\nFive days.\n", travel="# Travel\n\nBy train.\n")
    return tmp_path / "docs"


def test_an_index_is_built_once_then_only_what_changed_is_embedded(folder, tmp_path, capsys):
    saved, embedder = tmp_path / "saved", Embedder()
    first = corpus.open_index(corpus.read_folder(folder), embedder, saved)
    assert len(embedder.embedded) == 2 + 1 and "index: 2 added, 0 updated, 0 removed" in capsys.readouterr().err
    embedder.embedded.clear()
    assert state(corpus.open_index(corpus.read_folder(folder), embedder, saved)) == state(first)
    assert embedder.embedded == [index.PROBE] and capsys.readouterr().err == ""
    (folder / "travel.md").unlink()
    docs = write(folder, leave="# Leave\n\nTen days.\n", parking="# Parking\n\nBehind the house.\n")
    changed = corpus.open_index(docs, embedder, saved)
    assert capsys.readouterr().err == "index: 1 added, 1 updated, 1 removed\n"
    assert state(changed) == state(corpus.open_index(docs, Embedder())) == state(index.Index.load(saved, Embedder()))


def test_a_document_that_differs_in_its_metadata_alone_is_a_changed_one(folder, tmp_path):
    docs = corpus.read_folder(folder)
    corpus.open_index(docs, Embedder(), tmp_path / "saved")
    docs[0]["acl"] = ["hr"]
    assert corpus.open_index(docs, Embedder(), tmp_path / "saved").visible().tolist() == [False, True]


def test_an_index_of_other_chunks_is_not_used(folder, tmp_path, monkeypatch):
    docs = corpus.read_folder(folder)
    before = corpus.open_index(docs, Embedder(), tmp_path / "saved")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(corpus, "SIZE", 4)
        after = corpus.open_index(docs, Embedder(), tmp_path / "saved")
    assert len(after.chunks) > len(before.chunks)


def test_what_is_saved_has_the_token_vectors_too(folder, tmp_path):
    corpus.open_index(corpus.read_folder(folder), Embedder(), tmp_path / "saved")
    loaded = corpus.open_index(corpus.read_folder(folder), Embedder(), tmp_path / "saved")
    assert len(loaded.token_store.kept) == 2


def test_a_damaged_index_says_what_to_do(folder, tmp_path):
    corpus.open_index(corpus.read_folder(folder), Embedder(), tmp_path / "saved")
    (tmp_path / "saved" / saving.POINTER).write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        corpus.open_index(corpus.read_folder(folder), Embedder(), tmp_path / "saved")


def test_an_index_with_other_titles_is_built_anew(folder, tmp_path):
    docs = corpus.read_folder(folder)
    other = index.Index.build([], Embedder(), title_boost=0)
    other.save(tmp_path / "saved")
    assert corpus.open_index(docs, Embedder(), tmp_path / "saved").title_boost == 1
    assert index.Index.load(tmp_path / "saved", Embedder()).title_boost == 1


def test_a_file_is_no_folder_for_an_index(folder):
    with pytest.raises(ValueError, match="leave.md is a file: give a folder"):
        corpus.open_index(corpus.read_folder(folder), Embedder(), folder / "leave.md")


def test_an_index_that_another_process_is_saving_is_used_all_the_same(folder, tmp_path, monkeypatch):
    def busy(self, folder):
        raise BlockingIOError("another process is saving")

    monkeypatch.setattr(index.Index, "save", busy)
    with pytest.warns(UserWarning, match="the index is not saved: another process"):
        assert len(corpus.open_index(corpus.read_folder(folder), Embedder(), tmp_path / "saved").chunks) == 2


def test_what_could_not_be_read_is_named(folder, capsys):
    (folder / "latin.md").write_bytes(b"caf\xe9")
    assert len(corpus.read_folder(folder)) == 2 and "latin.md is not UTF-8" in capsys.readouterr().err


def test_a_context_is_searched_and_another_context_makes_another_index(folder, tmp_path, capsys):
    docs = write(folder, report="# Report\n\nAcme grew a lot in spring.\n\n# Costs\n\nRent fell by 3%.\n")
    plain = corpus.open_index(docs, Embedder(), tmp_path / "saved")
    capsys.readouterr()
    made = corpus.open_index(docs, Embedder(), tmp_path / "saved", "document")
    assert "3 updated" in capsys.readouterr().err
    costs = next(chunk for chunk in made.chunks if "Rent" in chunk["body"])
    assert costs["context"] == "Acme grew a lot in spring." and "Acme" not in costs["text"]
    assert all("context" not in chunk for chunk in plain.chunks)
    assert state(corpus.open_index(docs, Embedder(), tmp_path / "saved", "document")) == state(made)


def test_without_a_key_claudes_contexts_come_from_the_document(folder, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.warns(UserWarning, match="ANTHROPIC_API_KEY"):
        made = corpus.open_index(corpus.read_folder(folder), Embedder(), context="claude")
    assert all("context" in chunk for chunk in made.chunks)


# -- Conditions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts, latest, where", [
    ([], False, {}), ([], True, {"latest": True}), (["product=a"], False, {"product": ["a"]}),
    (["product=a", "product=b=c"], False, {"product": ["a", "b=c"]}), (["title="], False, {"title": [""]}), ([" title = A b "], False, {"title": ["A b"]}),
    (["effective_date<2025-01-01"], True, {"effective_date": ("<", "2025-01-01"), "latest": True}),
    (["created_at<=2025-12-31", "created_at>=2025-01-01"], False, {"created_at": ("2025-01-01", "2025-12-31")})])
def test_conditions(texts, latest, where):
    assert corpus.conditions(texts, latest) == where


@pytest.mark.parametrize("texts", [["product"], ["=a"], ["x>1", "x>2"], ["x>=1", "x=2"], ["x=1", "x<2"],
                                   ["x>=1", "x<=2", "x<=3"], ["x==1"], ["latest=true"]])
def test_conditions_that_are_none(texts):
    with pytest.raises(ValueError, match="looks like|does not go with|write --latest"):
        corpus.conditions(texts)


# -- Is retrieval needed? ----------------------------------------------------------------------------------------------


def docs_of(*acls):
    return [documents.Document(id=f"d{number}", title=f"T{number}", text="x" * 40, acl=acl, doc_type="md")
            for number, acl in enumerate(acls)]


def test_the_whole_corpus_is_what_the_user_may_see():
    docs = docs_of(["hr"], ["everyone"], [])
    assert [each["id"] for each in corpus.whole_corpus(docs, None, {})] == ["d1"]
    [first, _] = corpus.whole_corpus(docs, "hr", {})
    assert first["text"] == "T0\n\n" + "x" * 40 and first["body"] == docs[0]["text"][first["start"]:first["end"]]
    assert corpus.whole_corpus(docs, "hr", {"doc_id": "d1"})[0]["id"] == "d1"


def test_what_fits_is_advised_to_be_read_at_once_and_what_does_not_is_refused():
    assert "about 200,000 tokens" in corpus.advice(200_000) and corpus.advice(200_001) == ""
    huge = [{**docs_of(["everyone"])[0], "text": "x" * 4 * 200_004}]
    with pytest.raises(ValueError, match="about 200,004 tokens do not fit into a prompt"):
        corpus.whole_corpus(huge, None, {})
