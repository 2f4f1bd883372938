"""Second half of the lesson on the cache: whatever happens to the file, no crash, no wrong vector, no lost file."""

import os
import runpy
import sqlite3
import subprocess
import sys
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embedding
import encoder
import model_files
import vector_cache
from vector_cache import CacheWarning, VectorCache

KEY, OTHER = vector_cache.key_of("m", "", "a"), vector_cache.key_of("m", "", "b")
TOY = np.float32([0.6, 0.8])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new folder" / "v.sqlite"


@pytest.fixture
def cache(path):
    """A cache with one vector in it."""
    made = VectorCache(path)
    made.put({KEY: TOY})
    return made


def sql(path, *statements):
    file = sqlite3.connect(path)
    with file:
        rows = [file.execute(*statement).fetchall() for statement in statements]
    file.close()
    return rows[-1]


def bits(vectors):
    return {key: vector.tobytes() for key, vector in vectors.items()}


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_what_is_put_in_comes_out_to_the_last_bit(cache, path):
    assert bits(cache.get([KEY, OTHER, KEY], 2)) == {KEY: TOY.tobytes()}
    assert VectorCache(path).get([KEY], 2)[KEY].dtype == np.float32
    cache.put({KEY: np.float32([1, 0]), OTHER: np.float32([0, 1e-42])})          # a number below the normal ones too
    assert {key: row.tolist() for key, row in cache.get([OTHER, KEY], 2).items()} == {
        KEY: [1, 0], OTHER: np.float32([0, 1e-42]).tolist()}


def test_stored_as_bytes_of_float32_with_their_check(cache, path):
    assert sql(path, ("SELECT * FROM vectors",)) == [
        (KEY, bytes.fromhex("9a99193fcdcc4c3f"), zlib.crc32(KEY + bytes.fromhex("9a99193fcdcc4c3f")))]
    assert sql(path, ("PRAGMA application_id",)) == [(int.from_bytes(b"RAG1", "big"),)]


def test_reading_makes_no_file(path):
    assert VectorCache(path).get([KEY], 2) == {} and VectorCache(path).size() == (0, 0)
    VectorCache(path).clear()
    assert not path.parent.exists()


def test_size_and_clear(cache, path):
    cache.put({vector_cache.key_of("m", "", str(number)): np.ones(384, np.float32) for number in range(200)})
    assert cache.size() == (201, path.stat().st_size) and path.stat().st_size > 201 * 4
    before = path.stat().st_size
    cache.clear()
    assert cache.size().entries == 0 and path.stat().st_size < before / 5 and cache.get([KEY], 2) == {}


@given(*[st.tuples(*[st.text(max_size=4)] * 3)] * 2)
def test_other_parts_have_another_key(a, b):
    assert (vector_cache.key_of(*a) == vector_cache.key_of(*b)) == (a == b) and len(vector_cache.key_of(*a)) == 32


def test_default_path(monkeypatch):
    monkeypatch.setenv("RAG_IN_NUMPY_CACHE", "/x/y.sqlite")
    assert vector_cache.default_path() == Path("/x/y.sqlite")
    monkeypatch.setenv("RAG_IN_NUMPY_CACHE", "")
    assert vector_cache.default_path() is None
    monkeypatch.delenv("RAG_IN_NUMPY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert vector_cache.default_path() == Path("/c/rag-in-numpy/vectors.sqlite")
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        monkeypatch.setenv("HOME", "/h")
        assert vector_cache.default_path() == Path("/h/.cache/rag-in-numpy/vectors.sqlite")


def test_the_tests_have_a_cache_of_their_own(embedder):
    assert embedder.cache.path == Path(os.environ["RAG_IN_NUMPY_CACHE"]) and "tmp" in str(embedder.cache.path)


def test_lesson_and_report(capsys, monkeypatch, cache):
    runpy.run_path(vector_cache.__file__, run_name="__main__")
    printed = capsys.readouterr().out
    assert "before: {}" in printed and "after: [0.6 0.8]" in printed and "another prefix: {}" in printed
    monkeypatch.setenv("RAG_IN_NUMPY_CACHE", str(cache.path))
    for option, entries in (("--size", 1), ("--clear", 0)):
        monkeypatch.setattr(sys, "argv", ["vector_cache.py", option])
        runpy.run_path(vector_cache.__file__, run_name="__main__")
        assert f": {entries} vectors, " in capsys.readouterr().out


# -- Files that are no cache -------------------------------------------------------------------------------------------


def foreign_database(path):
    sql(path, ("CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB, crc INTEGER)",))


def other_tables(path):
    sql(path, ("CREATE TABLE other (x)",), (f"PRAGMA application_id = {vector_cache.MARK}",))


USELESS = {"text": lambda path: path.write_text("my diary, not a database, " * 100),
           "short": lambda path: path.write_bytes(b"x"),
           "pickle": lambda path: path.write_bytes(b"\x80\x04\x95 a pickle"),
           "another program's": foreign_database, "marked, without the table": other_tables}


@pytest.mark.parametrize("name", USELESS)
@pytest.mark.parametrize("first", ["get", "put"])
def test_a_useless_file_is_renamed_and_a_new_one_begun(path, name, first):
    path.parent.mkdir()
    USELESS[name](path)
    Path(f"{path}-journal").write_bytes(b"")
    before = path.read_bytes()
    cache = VectorCache(path)
    with pytest.warns(CacheWarning, match=r"v.sqlite is damaged or no cache .*: it is now .*v.sqlite.set-aside-1, and"):
        assert cache.get([KEY], 2) == {} if first == "get" else cache.put({KEY: TOY}) is None
    assert Path(f"{path}.set-aside-1").read_bytes() == before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put({KEY: TOY})
        assert bits(cache.get([KEY], 2)) == {KEY: TOY.tobytes()}


def test_set_aside_twice_keeps_both(path):
    path.parent.mkdir()
    for number in (1, 2):
        path.write_text(f"diary {number}")
        with pytest.warns(CacheWarning, match=f"set-aside-{number}"):
            VectorCache(path).put({KEY: TOY})
    assert [Path(f"{path}.set-aside-{number}").read_text() for number in (1, 2)] == ["diary 1", "diary 2"]


def test_another_process_was_quicker_to_set_it_aside(path, monkeypatch):
    path.parent.mkdir()
    path.write_text("diary")
    cache, look = VectorCache(path), VectorCache._inode
    numbers = iter([-1])                                               # the file that was opened is there no longer
    monkeypatch.setattr(VectorCache, "_inode", lambda self: next(numbers, None) or look(self))
    with pytest.warns(CacheWarning, match="cannot be read"):           # twice useless: given up, but nothing renamed
        assert cache.get([KEY], 2) == {}
    assert path.read_text() == "diary"


def test_every_cut_and_every_flipped_bit(cache, path):
    """Of a file that was cut or changed anywhere: the right vector, or none; never a wrong one, never a crash."""
    cache.put({vector_cache.key_of("m", "", str(number)): np.float32([number, 1]) for number in range(20)})
    whole, answers = path.read_bytes(), set()
    random = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        for trial in range(120):
            damaged = bytearray(whole)
            if trial % 2:
                damaged[random.integers(len(whole))] ^= 1 << random.integers(8)
            else:
                del damaged[random.integers(len(whole)):]
            path.write_bytes(damaged)
            answers.add(tuple(bits(VectorCache(path).get([KEY], 2)).values()))
            for left in path.parent.glob("*.set-aside-*"):
                left.unlink()
    assert answers == {(), (TOY.tobytes(),)}


# -- Rows that are wrong -----------------------------------------------------------------------------------------------

LONGER = np.float32([1, 2, 3]).tobytes()
NAN = np.float32([np.nan, 1]).tobytes()


@pytest.mark.parametrize("vector, crc", [
    (TOY.tobytes()[:-1] + b"\x00", zlib.crc32(KEY + TOY.tobytes())), (TOY.tobytes(), 7), (TOY.tobytes(), None),
    (LONGER, zlib.crc32(KEY + LONGER)), (b"", zlib.crc32(KEY)), (NAN, zlib.crc32(KEY + NAN)), ("0.6 0.8", 0), (None, 0),
    (3, 0)])
def test_a_damaged_row_is_not_there_and_replaced(cache, path, vector, crc):
    sql(path, ("UPDATE vectors SET vector = ?, crc = ?", (vector, crc)))
    with pytest.warns(CacheWarning, match="1 of 1 vectors in .* are damaged: they are computed again"):
        assert cache.get([KEY], 2) == {}
    cache.put({KEY: TOY})
    assert bits(cache.get([KEY], 2)) == {KEY: TOY.tobytes()}


def test_rows_that_changed_places(cache, path):
    cache.put({OTHER: np.float32([1, 0])})
    sql(path, ("UPDATE vectors SET (vector, crc) = (SELECT vector, crc FROM vectors WHERE key = ?)", (OTHER,)))
    with pytest.warns(CacheWarning, match="1 of 2"):
        assert list(cache.get([KEY, OTHER], 2)) == [OTHER]


def test_nan_is_not_kept(cache):
    cache.put({KEY: np.float32([np.nan, 1]), OTHER: np.float32([np.inf, 1])})
    assert bits(cache.get([KEY, OTHER], 2)) == {KEY: TOY.tobytes()}


# -- Places where nothing can be written -------------------------------------------------------------------------------


def connect(monkeypatch, prepare=None, **changed):
    """Let every connection be opened with other settings, or prepared by a statement."""
    original = sqlite3.connect

    def other(path, **settings):
        file = original(changed.pop("name", lambda path: path)(path), **settings | changed)
        if prepare:
            file.execute(prepare)
        return file
    monkeypatch.setattr(vector_cache.sqlite3, "connect", other)


def test_a_file_that_cannot_be_written_can_be_read(cache, path, monkeypatch):
    original = sqlite3.connect
    monkeypatch.setattr(vector_cache.sqlite3, "connect",
                        lambda path, **settings: original(f"file:{path}?mode=ro", uri=True, **settings))
    assert list(cache.get([KEY], 2)) == [KEY]
    with pytest.warns(CacheWarning, match="cannot be written .*readonly.*: going on without"):
        cache.put({OTHER: TOY})
    with warnings.catch_warnings():
        warnings.simplefilter("error")                                 # said once
        cache.put({OTHER: TOY})
        assert list(cache.get([KEY, OTHER], 2)) == [KEY]


def test_a_full_disk(cache, path, monkeypatch):
    connect(monkeypatch, "PRAGMA max_page_count = 3")
    with pytest.warns(CacheWarning, match="cannot be written .*full.*: going on without"):
        cache.put({vector_cache.key_of("m", "", str(number)): np.ones(384, np.float32) for number in range(9)})
    assert bits(cache.get([KEY], 2)) == {KEY: TOY.tobytes()} and cache.size().entries == 1      # all or none


def test_a_file_that_another_process_holds(cache, path, monkeypatch):
    monkeypatch.setattr(vector_cache, "PATIENCE", 0)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.warns(CacheWarning, match="cannot be read .*locked.*: going on without"):
        assert cache.get([KEY], 2) == {}
    holder.close()
    assert list(VectorCache(path).get([KEY], 2)) == [KEY]              # nothing was set aside


@pytest.mark.parametrize("where", ["a folder", "below a file"])
def test_a_path_that_no_file_can_have(tmp_path, where):
    (tmp_path / "file").write_text("x")
    path = tmp_path if where == "a folder" else tmp_path / "file" / "v.sqlite"
    cache = VectorCache(path)
    with pytest.warns(CacheWarning, match="going on without"):
        cache.put({KEY: TOY})
        assert cache.get([KEY], 2) == {} and cache.size().entries == 0
    assert (tmp_path / "file").read_text() == "x"


# -- Two processes -----------------------------------------------------------------------------------------------------

PROGRAM = """
import sys, warnings, numpy, vector_cache
warnings.simplefilter("error")
cache = vector_cache.VectorCache(sys.argv[1])
keys = [vector_cache.key_of("m", "", str(number)) for number in range(60)]
for number, key in enumerate(keys):
    cache.put({key: numpy.float32([number, 1])})
    for known, row in cache.get(keys, 2).items():
        assert row.tolist() == [keys.index(known), 1]
"""


def test_two_processes_write_the_same_keys(path):
    both = [subprocess.Popen([sys.executable, "-c", PROGRAM, path], cwd=Path(vector_cache.__file__).parent,
                             stderr=subprocess.PIPE) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in both] == [(b"", 0)] * 2
    found = VectorCache(path).get([vector_cache.key_of("m", "", str(number)) for number in range(60)], 2)
    assert [row.tolist() for row in found.values()] == [[number, 1] for number in range(60)]
    assert not list(path.parent.glob("*.set-aside-*"))


# -- With an embedder --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bert(random_bert):
    return random_bert()


class Counting:
    """Counts the texts that the models of a backend embed."""

    def __init__(self, monkeypatch, backend=embedding.NumpyModel):
        self.texts, original = [], backend.encode

        def encode(model, texts, prefix, batch_size=None):
            self.texts += texts
            return original(model, texts, prefix, batch_size)
        monkeypatch.setattr(backend, "encode", encode)


@pytest.mark.parametrize("backend", embedding.BACKENDS)
def test_only_what_is_new_is_embedded(bert, path, monkeypatch, backend):
    counting = Counting(monkeypatch, embedding.BACKENDS[backend])
    expected = embedding.load_embedder(bert, backend).encode(["cat", "dog", "birds"])
    del counting.texts[:]
    first = embedding.load_embedder(bert, backend, cache=path)
    vectors = first.encode(["cat", "dog"])
    again = embedding.load_embedder(bert, backend, cache=path).encode(["birds", "cat", "dog", "cat"])
    assert counting.texts == ["cat", "dog", "birds"]
    assert again.tolist() == [again[0].tolist(), *vectors.tolist(), vectors[0].tolist()]
    assert again[[1, 2, 0]] == pytest.approx(expected, abs=1e-6)
    assert first.cache.size().entries == 3
    first.cache.clear()
    assert embedding.load_embedder(bert, backend, cache=path).encode(["cat"]) == pytest.approx(expected[:1], abs=1e-6)


def test_without_a_cache_all_is_embedded(bert, monkeypatch):
    counting, plain = Counting(monkeypatch), embedding.load_embedder(bert)
    plain.encode(["cat"]), plain.encode(["cat"])
    assert counting.texts == ["cat", "cat"] and plain.cache is None


@pytest.mark.parametrize("backend", embedding.BACKENDS)
def test_token_vectors_of_short_texts_are_kept(bert, path, monkeypatch, backend):
    plain = embedding.load_embedder(bert, backend, prefixes={"query": "query : "})
    cached = [embedding.load_embedder(bert, backend, cache=path, prefixes={"query": "query : "}) for _ in range(2)]
    monkeypatch.setattr(embedding, "SHORT", 12)
    for text, kind in (("the cat 👍 sat", "document"), ("the cat", "query"), ("", "query"), ("cat " * 11, "document")):
        expected, offsets = plain.token_vectors(text, kind)
        for each in cached:                                            # computed, then found
            found, places = each.token_vectors(text, kind)
            assert found.tolist() == expected.tolist() and places.tolist() == offsets.tolist()
            assert found.dtype == np.float32 and places.dtype.kind == "i"
    assert cached[0].cache.size().entries == 3                         # 13 word pieces are too many
    cached[0].encode(["the cat 👍 sat"])
    assert cached[0].cache.size().entries == 4                         # a vector of the same text is another thing


def test_known_texts_need_no_weights(bert, path, monkeypatch):
    embedder = embedding.load_embedder(bert, cache=path)
    vectors, tokens = embedder.encode(["cat", "dog"]), embedder.token_vectors("cat")[0]
    monkeypatch.setattr(encoder, "Encoder", lambda folder: pytest.fail("the weights were read"))
    again = embedding.load_embedder(bert, cache=path)
    assert again.encode(["dog", "cat"]).tolist() == vectors[::-1].tolist()
    assert again.token_vectors("cat")[0].tolist() == tokens.tolist()


@pytest.mark.parametrize("n, many, whole", [(2, False, True), (4, False, False), (4, True, True), (0, True, True), (3, True, False)])
def test_lengths(cache, n, many, whole):
    cache.put({OTHER: np.ones(n, np.float32)})
    with warnings.catch_warnings(record=not whole):
        assert len(cache.get([OTHER], 2, many)) == whole


@pytest.fixture
def change(bert, tmp_path):
    """change(edit): a copy of the small model after edit(folder)."""
    import shutil

    def make(edit):
        folder = Path(shutil.copytree(bert, tmp_path / "copy"))
        edit(folder)
        return folder
    return make


def other_weights(folder):
    from safetensors.numpy import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    tensors["embeddings.LayerNorm.bias"] = tensors["embeddings.LayerNorm.bias"] + 1
    save_file(tensors, folder / "model.safetensors")


def other_setting(folder):
    text = (folder / "config.json").read_text()
    (folder / "config.json").write_text(text.replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))


def other_pooling(folder):
    (folder / "1_Pooling" / "config.json").write_text('{"word_embedding_dimension": 32, "pooling_mode": "cls"}')


@pytest.mark.parametrize("edit", [other_weights, other_setting, other_pooling])
def test_another_model_has_other_vectors(bert, path, change, edit):
    old = embedding.load_embedder(bert, cache=path).encode(["the cat"])
    folder = change(edit)
    fresh = embedding.load_embedder(folder).encode(["the cat"])
    assert embedding.load_embedder(folder, cache=path).encode(["the cat"]).tolist() == fresh.tolist() != old.tolist()


def test_a_copy_of_the_model_has_the_same_vectors(bert, path, change, monkeypatch):
    counting = Counting(monkeypatch)
    for folder in (bert, change(lambda folder: None)):
        embedding.load_embedder(folder, cache=path).encode(["cat"])
    assert counting.texts == ["cat"]


def test_prefixes_and_backends_have_vectors_of_their_own_and_dimensions_share(bert, path, monkeypatch):
    ours, theirs = Counting(monkeypatch), Counting(monkeypatch, embedding.SentenceTransformersModel)
    long = embedding.load_embedder(bert, cache=path, prefixes={"query": "query : "})
    as_document, as_query = long.encode(["cat"])[0], long.encode(["cat"], kind="query")[0]
    assert not np.allclose(as_document, as_query) and ours.texts == ["cat", "cat"]
    embedding.load_embedder(bert, "sentence-transformers", cache=path).encode(["cat"])
    assert theirs.texts == ["cat"]
    short = embedding.load_embedder(bert, cache=path, dimensions=5).encode(["cat"])[0]
    assert short == pytest.approx(as_document[:5] / np.linalg.norm(as_document[:5]), abs=1e-6) and len(ours.texts) == 2


def test_an_edited_encoder_has_vectors_of_its_own(bert, path, monkeypatch, tmp_path):
    counting = Counting(monkeypatch)
    embedding.load_embedder(bert, cache=path).encode(["cat"])
    (tmp_path / "encoder.py").write_text(Path(encoder.__file__).read_text() + "# edited\n")
    monkeypatch.setattr(encoder, "__file__", str(tmp_path / "encoder.py"))
    embedding.load_embedder(bert, cache=path).encode(["cat"])
    assert counting.texts == ["cat", "cat"]


def test_weights_that_change_between_looking_and_reading(path, change):
    folder = change(lambda folder: None)
    late = embedding.load_embedder(folder, cache=path)
    other_weights(folder)
    with pytest.raises(ValueError, match="have changed since load_embedder looked at them: load again"):
        late.encode(["cat"])
    assert not path.exists()


def test_damaged_weights_are_noticed_when_they_are_needed(path, change):
    folder = change(lambda folder: (folder / "model.safetensors").write_bytes(b"no weights"))
    late = embedding.load_embedder(folder, cache=path)
    with pytest.raises(ValueError, match="model.safetensors is damaged"):
        late.encode(["cat"])


def test_a_long_job_keeps_what_it_has_done(bert, path, monkeypatch):
    monkeypatch.setattr(embedding, "PORTION", 2)
    broken, texts = embedding.load_embedder(bert, cache=path), ["cat dog", "birds", "mat", "a", "on"]
    original, calls = embedding.NumpyModel.encode, []

    def encode(model, texts, prefix, batch_size=None):
        calls.append(texts)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(model, texts, prefix, batch_size)

    monkeypatch.setattr(embedding.NumpyModel, "encode", encode)
    with pytest.raises(KeyboardInterrupt):
        broken.encode(texts)
    assert broken.cache.size().entries == 4
    assert broken.encode(texts) == pytest.approx(embedding.load_embedder(bert).encode(texts), abs=1e-6)
    assert calls[3] == ["a"]


@settings(max_examples=15)
@given(calls=st.lists(st.lists(st.sampled_from(["cat", "dog", "", "the cat", "👍"]), max_size=5), max_size=5))
def test_with_and_without_a_cache_are_alike(bert, tmp_path_factory, calls):
    cached = embedding.load_embedder(bert, cache=tmp_path_factory.mktemp("cache") / "v.sqlite")
    plain = embedding.load_embedder(bert)
    for texts in calls:
        assert cached.encode(texts) == pytest.approx(plain.encode(texts), abs=1e-6)
        assert cached.encode(texts).shape == (len(texts), 32)


def test_a_useless_file_does_not_stop_an_embedder(bert, tmp_path):
    (tmp_path / "v.sqlite").write_text("diary")
    with pytest.warns(CacheWarning, match="set-aside-1"):
        vectors = embedding.load_embedder(bert, cache=tmp_path / "v.sqlite").encode(["cat"])
    assert vectors == pytest.approx(embedding.load_embedder(bert).encode(["cat"]), abs=1e-6)


# -- Planted bugs ------------------------------------------------------------------------------------------------------


def test_a_key_without_the_model_is_caught(bert, path, change, monkeypatch):
    original = vector_cache.key_of
    monkeypatch.setattr(vector_cache, "key_of", lambda model, prefix, text: original("", prefix, text))
    with pytest.raises(AssertionError):
        test_another_model_has_other_vectors(bert, path, change, other_weights)


def test_a_row_without_a_check_is_caught(cache, path, monkeypatch):
    monkeypatch.setattr(vector_cache, "_checked", lambda key, vector, crc, dim, many: np.frombuffer(vector, "<f4"))
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_rows_that_changed_places(cache, path)


def test_a_fingerprint_of_names_alone_is_caught(bert, path, change, monkeypatch):
    monkeypatch.setattr(model_files, "sha256_of", lambda path: "")
    with pytest.raises(AssertionError):
        test_another_model_has_other_vectors(bert, path, change, other_setting)


# -- Damage of single bits ---------------------------------------------------------------------------------------------


def test_a_flipped_bit_in_the_schema_sets_the_file_aside(tmp_path):
    cache = vector_cache.VectorCache(tmp_path / "v.sqlite")
    cache.put({b"k" * 32: np.float32([0.6, 0.8])})
    damaged = bytearray(cache.path.read_bytes())
    damaged[damaged.find(b"CREATE TABLE") + 2] ^= 0x80
    cache.path.write_bytes(damaged)
    with pytest.warns(vector_cache.CacheWarning, match="set-aside-1"):
        assert vector_cache.VectorCache(cache.path).get([b"k" * 32], 2) == {}
    assert (tmp_path / "v.sqlite.set-aside-1").read_bytes() == bytes(damaged)


def test_a_vector_that_became_a_text_costs_only_itself(tmp_path):
    cache = vector_cache.VectorCache(tmp_path / "v.sqlite")
    cache.put({b"a": np.float32([0.6, 0.8]), b"b": np.float32([0.8, 0.6])})
    import sqlite3
    with sqlite3.connect(cache.path) as file:
        file.execute("UPDATE vectors SET vector = cast(x'ff00fe' AS text) WHERE key = ?", (b"a",))
    file.close()
    with pytest.warns(vector_cache.CacheWarning, match="1 of 2 vectors"):
        assert list(vector_cache.VectorCache(cache.path).get([b"a", b"b"], 2)) == [b"b"]


def test_setting_aside_never_writes_over_what_is_there(tmp_path, monkeypatch):
    (tmp_path / "v.sqlite").write_text("my diary, which is no cache")
    (tmp_path / "v.sqlite.set-aside-1").write_text("older")
    monkeypatch.setattr(vector_cache.Path, "exists", lambda self: False)     # another process was quicker
    with pytest.warns(vector_cache.CacheWarning, match="set-aside-2"):
        vector_cache.VectorCache(tmp_path / "v.sqlite").put({b"k": np.float32([1, 0])})
    assert (tmp_path / "v.sqlite.set-aside-1").read_text() == "older"
    assert (tmp_path / "v.sqlite.set-aside-2").read_text() == "my diary, which is no cache"
