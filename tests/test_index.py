"""Second half of the lesson on the index: nothing leaks, what grew equals what is built, and what is saved comes back."""

import functools
import random
import tempfile
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

import bm25
import chunking
import cosine
import index
import saving
import toy

CHUNKER = functools.partial(chunking.fixed, size=3)
TEXTS = st.lists(st.sampled_from("the cat dog mat birds fly quick".split()), min_size=0, max_size=8).map(" ".join)
IDS = ["a", "a#1", "b", "c", "d"]
QUESTIONS = ["the cat dog", "birds fly", "zebra", "", "the the mat mat"]
WHERES = [None, {"product": "x"}, {"product": ["x", "y"], "latest": True}, {"effective_date": (">=", "2025-06-01")},
          {"latest": True}, {"version": "3"}]
DOCUMENTS = st.fixed_dictionaries(
    {"title": st.sampled_from(["", "Leave 2025", "Leave 2026"]), "text": TEXTS},
    optional={"acl": st.sampled_from([["everyone"], ["hr"], ["staff"], [], ["hr", "staff"]]),
              "product": st.sampled_from("xy"), "version": st.sampled_from("12"),
              "effective_date": st.sampled_from(["2025-01-01", "2026-01-01"])})


class Embedder(toy.Embedder):
    """Counts what it embeds."""

    def __init__(self, max_tokens=256):
        super().__init__(max_tokens)
        self.embedded = []

    def encode(self, texts, kind="document", batch_size=None):
        self.embedded += texts if kind == "document" else []
        assert kind == "query" or batch_size == 1                     # or vectors would depend on their company
        return np.array([encoded(text) for text in texts], np.float32).reshape(-1, self.dimensions)


@functools.cache
def encoded(text):
    return toy.Embedder().encode([text])[0]


def document(id, text="the cat sat on the mat", **metadata):
    return {"id": id, "title": "", "text": text, **metadata}


def chunks_of(documents, chunker=CHUNKER):
    return [chunk for each in documents for chunk in chunker(each)]


def built(documents, embedder=None):
    return index.Index.build(chunks_of(documents), embedder or Embedder(), CHUNKER)


def again(made):
    """`made`, saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        made.save(folder)
        return index.Index.load(folder, made.embedder, CHUNKER)


def state(made):
    return {"chunks": made.chunks, "vectors": made.vectors.tobytes(), "given": made.given.tolist(),
            "terms": made.postings.vocabulary, **{k: v.tolist() for k, v in made.postings.arrays().items()}}


def seen(made, user, k=3):
    """All that a user can get out of an index: ids, texts and scores, or an error's text."""
    visible, found = made.visible(user), []
    for where in WHERES:
        allowed = made.mask(user, where)
        found.append([made.chunks[position] for position in np.flatnonzero(allowed)])
        for question in QUESTIONS:
            for positions, scores in (made.dense(question, k, allowed), made.lexical(question, k, allowed, visible)):
                found.append([(made.chunks[place], score) for place, score in zip(positions, scores.tolist())])
    for wrong in ({"product": ("x", "y")}, {"secret": "x"}, {"effective_date": "soon"}):
        with pytest.raises(ValueError) as caught:
            made.mask(user, wrong)
        found.append(str(caught.value))
    return found


# -- By hand -----------------------------------------------------------------------------------------------------------


def toy_index():
    chunks = [{"id": f"d{number}#0", "doc_id": f"d{number}", "position": 0, "text": text, "vector": vector}
              for number, (text, vector) in enumerate(zip(toy.DOCUMENTS, toy.VECTORS))]
    return index.Index.build(chunks, toy.Topics())


def test_the_toy_corpus():
    made = toy_index()
    positions, scores = made.dense(toy.QUERY_VECTOR, 3, made.mask())
    assert positions.tolist() == [0, 1, 3] and scores == approx([0.96, 0.8, 0.6], abs=1e-7)
    positions, scores = made.lexical(toy.QUESTION, 9, made.mask(), made.visible())
    expected = bm25.BM25([bm25.tokenize(text) for text in toy.DOCUMENTS]).top_k(bm25.tokenize(toy.QUESTION), 9)
    assert positions.tolist() == toy.BM25_RANKING and scores.tolist() == expected[1].tolist()


def test_k_results_come_back_when_k_allowed_ones_exist():
    made = built([document(f"d{number}", product="x" if number % 10 == 0 else "y") for number in range(50)])
    allowed = made.mask(None, {"product": "x"})
    assert allowed.sum() == 10
    assert len(made.dense("the cat", 10, allowed)[0]) == 10
    assert len(made.lexical("the", 10, allowed, made.visible())[0]) == 10


def test_conditions_keep_the_statistics_of_what_is_visible():
    made = built([document("a", "cat", product="x"), document("b", "cat dog"), document("c", "dog bird", acl=["hr"])])
    by_hand = bm25.BM25([["cat"], ["cat", "dog"]]).scores(["cat"])[0]
    for where in (None, {"product": "x"}):
        positions, scores = made.lexical("cat", 1, made.mask(None, where), made.visible())
        assert positions.tolist() == [0] and scores.tolist() == [by_hand]


def test_chunks_are_ordered_by_document_then_position():
    made = built([document("b", "1 2 3 4 5 6 7"), document("B"), document("a#1"), document("a")])
    assert [chunk["id"] for chunk in made.chunks] == ["B#0", "B#1", "a#0", "a#1", "a#1#0", "a#1#1", "b#0", "b#1", "b#2"]


def test_documents_may_come_in_any_order():
    docs = [document("a", "the cat"), document("b", "dog"), document("c", "birds fly the mat quick")]
    assert state(built(reversed(docs))) == state(built(docs))
    assert built(reversed(docs)).lexical("birds", 3, np.ones(4, bool), np.ones(4, bool))[0].tolist() == [2]


def test_ten_chunks_are_ordered_as_numbers():
    made = built([document("a", "w " * 33)])
    assert [chunk["position"] for chunk in made.chunks] == list(range(11))


def test_the_context_is_searched_and_not_shown():
    embedder = Embedder()
    [chunk] = CHUNKER(document("a", "five days"))
    made = index.Index.build([chunk | {"context": "From the leave policy."}], embedder)
    assert embedder.embedded == ["From the leave policy.\n\nfive days"]
    assert made.lexical("policy", 1, made.mask(), made.visible())[0].tolist() == [0]
    assert made.chunks[0]["text"] == "five days"


def test_a_chunks_own_vector_is_used_and_no_other_text_gets_it():
    embedder, own = Embedder(), np.eye(16, dtype=np.float32)[3]
    late = {**CHUNKER(document("a"))[0], "vector": own}
    made = index.Index.build([late], embedder, CHUNKER)
    assert embedder.embedded == [] and (made.vectors[0] == own).all() and made.given.tolist() == [True]
    assert "vector" not in made.chunks[0] and "vector" in late        # the caller's chunk is left alone
    made.add([document("b")])
    assert embedder.embedded == ["the cat sat", "on the mat"] and not (made.vectors[1] == own).any()
    made.update([document("b", "the cat sat")])
    assert len(embedder.embedded) == 2 and made.given.tolist() == [True, False]


# -- Only what changed is embedded -------------------------------------------------------------------------------------


def test_only_changed_texts_are_embedded():
    embedder = Embedder()
    made = built([document("a", "1 2 3 4 5 6"), document("b", "7 8 9")], embedder)
    for change, expected in [
        (lambda: made.update([document("a", "1 2 3 4 5 0")]), ["4 5 0"]),
        (lambda: made.update([document("a", "1 2 3 4 5 0", acl=["hr"])]), []),               # only who may see it
        (lambda: made.add([document("c", "7 8 9 x")]), ["x"]),                               # known from another one
        (lambda: made.remove(["b"]), []),
        (lambda: made.add([document("b", "7 8 9 y y y y y y")]), ["y y y"]),                 # twice, embedded once
        (lambda: made.sync([document("b", "7 8 9 y y y y y y"), document("e", "z")]), ["z"]),
    ]:
        embedder.embedded.clear()
        change()
        assert embedder.embedded == expected
    assert made.mask("hr").sum() == 4


def test_an_update_that_hides_hides_at_once():
    made = built([document("a"), document("b", "the dog")])
    made.update([document("a", acl=["hr"])])
    assert seen(made, None) == seen(built([document("b", "the dog")]), None)


def test_sync_says_what_it_did_and_cuts_only_that():
    cut = []
    made = index.Index.build([], Embedder(), lambda each: cut.append(each["id"]) or CHUNKER(each))
    docs = [document("a"), document("b"), document("c", "")]
    for change, expected in [
        (docs, (["a", "b", "c"], [], [])), (docs, ([], [], [])),
        ([document("a", "new"), docs[1]], ([], ["a"], ["c"])),
        ([document("a", "new", version="2"), document("d")], (["d"], ["a"], ["b"])),
        (iter([]), ([], [], ["a", "d"])),
    ]:
        cut.clear()
        assert made.sync(change) == expected
        assert sorted(cut) == sorted(expected[0] + expected[1])
    assert made.chunks == [] and made.documents == {}


def test_sync_does_not_trust_what_came_as_chunks():
    made = built([document("a"), document("b")])
    assert made.sync([document("a")]) == ([], ["a"], ["b"])
    assert made.sync([document("a")]) == ([], [], []) and again(made).sync([document("a")]) == ([], [], [])


# -- Incremental equals fresh ------------------------------------------------------------------------------------------

CHANGES = st.lists(st.tuples(st.sampled_from(["add", "update", "remove", "sync", "save"]), st.sets(st.sampled_from(IDS)),
                             st.lists(DOCUMENTS, min_size=5, max_size=5)), max_size=6)


def apply(made, now, change, ids, docs):
    """One random change to an index and to `now`, {id: document}: the index, saved and loaded if that was it."""
    new = {id: {"id": id, **each} for id, each in zip(IDS, docs) if id in ids}
    new = {id: each for id, each in new.items() if change == "sync" or (id in now) == (change in ("update", "remove"))}
    if change == "sync":
        now.clear()
    if change == "remove":
        made.remove(new)
        for id in new:
            del now[id]
    elif change == "save":
        return again(made)
    else:
        getattr(made, change)(reversed(new.values()))
        now.update(new)
    return made


@given(CHANGES, st.randoms(use_true_random=False))
def test_what_grew_equals_what_is_built_at_once(changes, shuffler):
    made, now = index.Index.build([], Embedder(), CHUNKER), {}
    for change in changes:
        made = apply(made, now, *change)
    docs = list(now.values())
    shuffler.shuffle(docs)
    fresh = built(docs)
    assert state(made) == state(fresh)
    for user in (None, "hr", ["staff", "hr"]):
        assert seen(made, user) == seen(fresh, user)


# -- No leak -----------------------------------------------------------------------------------------------------------


@given(CHANGES, st.lists(DOCUMENTS, max_size=6), st.sampled_from([None, "hr", ["staff"], ["hr", "staff"], ["nobody"]]))
def test_nothing_of_what_is_forbidden_shows(changes, more, user):
    """After any changes, saves and loads, a user finds, to the bit, what an index of their documents alone gives."""
    now = {f"b{number}": {"id": f"b{number}", **each} for number, each in enumerate(more)}
    made = built(now.values())
    for change in changes:
        now = {id: each for id, each in now.items() if id in made.documents}           # blank ones made no chunk
        made = apply(made, now, *change)
    groups = {"everyone", *([user] if isinstance(user, str) else user or [])}
    theirs = [each for each in now.values() if groups & set(each.get("acl", ["everyone"]))]
    assert seen(made, user) == seen(built(theirs), user)


@settings(max_examples=20)
@given(st.lists(DOCUMENTS, min_size=1, max_size=6))
def test_what_is_forbidden_may_even_be_broken(docs):
    docs = [{"id": f"b{number}", **each, "acl": ["staff"] if number % 2 else ["everyone"]}
            for number, each in enumerate(docs)]
    made, theirs = built(docs), built(docs[::2])
    made.vectors[~made.visible()] = np.nan
    assert seen(made, None) == seen(theirs, None)


def test_many_chunks_leak_nothing_either():
    """Thousands, so that sums, blocks and common words take other paths than in small corpora."""
    words, dice = [f"w{number}" for number in range(300)], random.Random(0)
    docs = [document(f"d{number:04}", " ".join(dice.choices(words, weights=[1 / (1 + i) for i in range(300)], k=12)),
                     acl=[dice.choice(["everyone", "hr"])]) for number in range(2000)]
    whole = index.Index.build(chunks_of(docs, functools.partial(chunking.fixed, size=6)), toy.Embedder())
    part = index.Index.build([chunk for chunk in whole.chunks if chunk["acl"] == ["everyone"]], toy.Embedder())
    # the last one scores too much for exact sums: the order of its terms must not depend on hidden chunks either
    for question in ("w0 w1 w2 w299", "w0", "w7 w7 w50 w120 w3", " ".join(words), "w5 w9 w13 w21 " * 9000):
        for name in ("dense", "lexical"):
            results = []
            for made in (whole, part):
                visible = [made.visible()] * (name == "lexical")
                positions, scores = getattr(made, name)(question, 50, made.mask(), *visible)
                results.append(([made.chunks[position]["id"] for position in positions], scores.tolist()))
            assert results[0] == results[1] and len(results[0][0]) == 50


# -- Save and load -----------------------------------------------------------------------------------------------------


def test_there_and_back():
    made = built([document("a", acl=["hr"], effective_date="2025-01-01"), document("b", "ein Ölbild"), document("c", "")])
    loaded = again(made)
    assert state(loaded) == state(made) and loaded.documents == made.documents
    assert seen(loaded, "hr") == seen(made, "hr")
    assert state(again(index.Index.build([], Embedder()))) == state(index.Index.build([], Embedder()))


def test_loading_embeds_nothing_but_the_probe(tmp_path):
    made = built([document("a")])
    made.save(tmp_path)
    embedder = Embedder()
    loaded = index.Index.load(tmp_path, embedder)
    assert embedder.embedded == [index.PROBE] and isinstance(loaded.vectors.base, np.memmap)


class Another(Embedder):
    """The same name, but other weights."""

    def encode(self, texts, kind="document", batch_size=None):
        return super().encode(texts, kind, batch_size)[:, ::-1]


@pytest.mark.parametrize("embedder", [Another(), Embedder(max_tokens=128), toy.Topics()],
                         ids=["other weights", "another limit", "another model"])
def test_a_changed_model_is_an_error_that_says_what_to_do(tmp_path, embedder):
    built([document("a")]).save(tmp_path)
    with pytest.raises(ValueError, match=r"was made with the model toy \(16 numbers, 256 word pieces\).*embed all again"):
        index.Index.load(tmp_path, embedder)


def test_the_same_model_under_another_name_is_welcome(tmp_path):
    built([document("a")]).save(tmp_path)
    embedder = Embedder()
    embedder.name = "/models/toy"
    assert len(index.Index.load(tmp_path, embedder).chunks) == 2


def test_damage_is_reported(tmp_path):
    built([document("a")]).save(tmp_path)
    [path] = tmp_path.glob("*/vectors.npy")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="vectors.npy has .* bytes"):
        index.Index.load(tmp_path, Embedder())
    with pytest.raises(FileNotFoundError, match="nothing is saved"):
        index.Index.load(tmp_path / "nowhere", Embedder())


# -- Bad input ---------------------------------------------------------------------------------------------------------


def test_an_empty_index():
    made = index.Index.build([], Embedder(), CHUNKER)
    assert made.mask("hr", {"product": "x", "latest": True}).tolist() == []
    assert [len(each) for each in made.dense("the cat", 5, made.mask())] == [0, 0]
    assert [len(each) for each in made.lexical("the cat", 5, made.mask(), made.visible())] == [0, 0]
    assert made.sync([]) == ([], [], [])


@pytest.mark.parametrize("question", ["", "?!", "the", "the cat " * 5000, "猫", "\x00"])
def test_any_question(question):
    made = built([document("a"), document("b", "the dog")])
    for positions, scores in (made.dense(question, 3, made.mask()),
                              made.lexical(question, 3, made.mask(), made.visible())):
        assert np.isfinite(scores).all() and len(positions) <= 3


@pytest.mark.parametrize("vector, message", [
    (np.full(16, np.nan), "row a#0 of the vectors has the length nan"), (np.ones(16), "a#0 .* the length 4"),
    (np.full(16, np.inf), "row a#0"), (np.zeros(15), r"vector of chunk 'a#0' has the shape \(15,\)"),
    (np.zeros((1, 16)), "shape"), (np.full(16, 1e30), "row a#0")])
def test_vectors_that_are_none(vector, message):
    made = built([document("b")])
    before = state(made)
    made.chunker = lambda each: [{**chunk, "vector": vector} for chunk in CHUNKER(each)]
    with pytest.raises(ValueError, match=message):
        made.add([document("a")])
    assert state(made) == before and made.documents == {"b": None}


def test_an_embedder_that_makes_nan():
    class Broken(Embedder):
        def encode(self, texts, kind="document", batch_size=None):
            return np.full((len(texts), 16), np.nan, np.float32)
    with pytest.raises(ValueError, match="length nan"):
        built([document("a")], Broken())


def test_a_row_of_zeros_is_a_vector():
    made = index.Index.build([{**CHUNKER(document("a"))[0], "vector": np.zeros(16)}], Embedder())
    assert made.dense("the cat", 1, made.mask())[1].tolist() == [0]


def test_questions_of_another_model():
    made = toy_index()
    with pytest.raises(ValueError, match="made by the same model"):
        made.dense(np.eye(3)[0], 1, made.mask())
    with pytest.raises(ValueError, match="holds NaN"):
        made.dense([np.nan, 1.0], 1, made.mask())


@pytest.mark.parametrize("mask, error", [([True], ValueError), ([1, 1, 1, 1], TypeError), (None, (TypeError, ValueError))])
def test_masks_that_do_not_fit(mask, error):
    made = toy_index()
    good = made.mask()
    with pytest.raises(error):
        made.lexical("cat", 1, mask, good)
    with pytest.raises(error):
        made.lexical("cat", 1, good, mask)
    with pytest.raises(error):
        made.dense("cat", 1, mask)


@pytest.mark.parametrize("change, message", [
    (lambda made: made.add([document("a")]), "already has 'a': use update"),
    (lambda made: made.add([document("b"), document("b")]), "two documents have the same id"),
    (lambda made: made.sync([document("b"), document("b")]), "two documents have the same id"),
    (lambda made: made.update([document("a"), document("b")]), "has no document 'b'"),
    (lambda made: made.remove(["a", "b"]), "has no document 'b'"),
    (lambda made: made.remove([str(number) for number in range(7)]), "'0', '1', '2', '3', '4' and 2 more"),
    (lambda made: made.add([document("b", acl=["hr"], effective_date="soon")]), "effective_date of chunk 'b#0'"),
])
def test_a_change_that_cannot_be_made_changes_nothing(change, message):
    made = built([document("a")])
    before = state(made), dict(made.documents)
    with pytest.raises(ValueError, match=message):
        change(made)
    assert (state(made), made.documents) == before


def test_a_bare_string_is_no_list_of_ids():
    with pytest.raises(TypeError, match=r"such as \['a'\]"):
        built([document("a")]).remove("a")


def test_without_a_chunker():
    made = index.Index.build(chunks_of([document("a")]), Embedder())
    with pytest.raises(ValueError, match="give Index.build or Index.load a chunker"):
        made.add([document("b")])
    made.remove(["a"])
    assert made.chunks == []


def test_a_chunker_that_makes_chunks_of_another_document():
    made = index.Index.build([], Embedder(), lambda each: CHUNKER(document("x")))
    with pytest.raises(ValueError, match="chunks of 'x' from the document 'a'"):
        made.add([document("a")])


CHUNK = {"id": "a#0", "doc_id": "a", "position": 0, "text": "cat"}


@pytest.mark.parametrize("chunks, error, message", [
    ([CHUNK, CHUNK], ValueError, "'a#0' comes twice"),
    ([CHUNK, {**CHUNK, "doc_id": "b"}], ValueError, "'a#0' comes twice"),
    ([CHUNK, {**CHUNK, "id": "a#1"}], ValueError, "another one has its place"),
    ([{**CHUNK, "id": None}], TypeError, "id is None"), ([{**CHUNK, "position": "0"}], TypeError, "position is '0'"),
    ([{key: CHUNK[key] for key in ("id", "doc_id", "position")}], TypeError, "text is None in 'a#0'"),
    ([{**CHUNK, "acl": "hr"}], TypeError, "the acl of chunk 'a#0'"),
])
def test_chunks_that_are_none(chunks, error, message):
    with pytest.raises(error, match=message):
        index.Index.build(chunks, Embedder())


def test_one_warning_for_all_that_the_model_does_not_read():
    embedder = Embedder(max_tokens=5)                                 # three word pieces and the specials
    with pytest.warns(UserWarning, match="2 of 4 chunks are longer than the 5 word pieces that toy reads: up to 40%"
                                         r" of a chunk \(on average of all 20.0%\)") as caught:
        made = index.Index.build(chunks_of([document("a", "w w w w w v v v v x x x y"), document("b", "z")],
                                           functools.partial(chunking.fixed, size=5)), embedder, CHUNKER)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.add([document("c", "w w w w")])                          # "w w w" and "w" fit


# -- What else an index keeps ------------------------------------------------------------------------------------------


def test_a_boosted_title_counts_as_if_it_stood_there_more_often():
    chunks = [{"id": f"{doc}#0", "doc_id": doc, "position": 0, "title": title, "text": text}
              for doc, title, text in (("a", "cat", "the cat fly"), ("b", "dog", "the dog cat mat fly"))]
    made = again(index.Index.build(chunks, Embedder(), title_boost=2))
    tokens = [["the", "cat", "fly", "cat", "cat"], ["the", "dog", "cat", "mat", "fly", "dog", "dog"]]
    assert made.title_boost == 2 and made.postings.scores(["cat"]).tolist() == bm25.BM25(tokens).scores(["cat"]).tolist()
    made.chunker = CHUNKER
    made.add([{"id": "c", "title": "birds", "text": "fly"}])            # what comes later is boosted as well
    assert made.postings.lengths.tolist() == [5, 7, 4]         # title, text, and the title twice more
    with pytest.raises(ValueError, match="title_boost must be at least 0"):
        index.Index.build([], Embedder(), title_boost=-1)


def test_another_chunker_makes_every_document_a_changed_one():
    docs = [document("a", "the cat sat on the mat"), document("b", "birds fly")]
    made = built([])
    assert made.sync(docs) == (["a", "b"], [], []) and made.sync(docs) == ([], [], [])
    made.chunker = functools.partial(chunking.fixed, size=2)
    assert made.sync(docs) == ([], ["a", "b"], []) and len(made.chunks) == 4
    made.chunker = functools.partial(chunking.fixed, size=2, embedder=Embedder())
    assert made.sync(docs) == ([], ["a", "b"], []) and made.sync(docs) == ([], [], [])


def test_a_chunker_is_told_by_its_name_and_settings():
    assert index._named(functools.partial(chunking.fixed, 3, overlap=1, embedder=Embedder())) == (
        "chunking.fixed(3, embedder=toy, overlap=1)")
    nested = functools.partial(functools.partial(chunking.fixed, size=2), strategy=chunking.recursive)
    assert index._named(nested) == "chunking.fixed(size=2, strategy=chunking.recursive)" and index._named(None) == "None"


def test_token_vectors_leave_with_the_last_chunk_of_their_text_and_are_saved():
    made = built([document("a", "the cat"), document("b", "the cat"), document("c", "birds")])
    made.token_store.fill([chunk["text"] for chunk in made.chunks])
    made.remove(["a"])
    assert set(made.token_store.kept) == {"the cat", "birds"}
    made.remove(["b"])
    assert set(made.token_store.kept) == {"birds"} == set(again(made).token_store.kept)
    assert not index.Index.build(chunks_of([document("a")]), Embedder(), token_budget=0).token_store.kept


@pytest.mark.parametrize("name, change", [
    ("token_vectors", lambda array: array[:1]), ("token_starts", lambda array: array.astype(float)), ("counts", None),
    ("vectors", lambda array: array[:1]), ("starts", lambda array: array[:-1]), ("token_starts", None)])
def test_saved_parts_that_do_not_fit_together(tmp_path, name, change):
    made = built([document("a", "the cat"), document("b", "birds fly")])
    made.token_store.fill([chunk["text"] for chunk in made.chunks])
    arrays = {"vectors": made.vectors, "given": made.given, **made.postings.arrays(),
              **made.token_store.arrays([chunk["text"] for chunk in made.chunks])}
    data = {"model": index._described(made.embedder), "documents": made.documents, "title_boost": 1,
            "terms": list(made.postings.vocabulary), "chunks": made.chunks}
    saving.write(tmp_path, arrays, data)
    assert state(index.Index.load(tmp_path, made.embedder)) == state(made)
    broken = arrays.pop(name)
    saving.write(tmp_path, arrays | ({name: change(broken)} if change else {}), data)
    with pytest.raises(ValueError, match="is incomplete, or its parts do not fit"):
        index.Index.load(tmp_path, made.embedder)


@pytest.mark.parametrize("key, value", [("body", None), ("start", None), ("section_path", "Abc"), ("title", 7)])
def test_fields_of_another_type_are_named(key, value):
    with pytest.raises(TypeError, match=f"{key} of chunk 'a#0' is"):
        index.Index.build([{**CHUNK, key: value}], Embedder())


# -- Planted bugs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module, name, planted", [
    (index.Index, "lexical", lambda self, question, k, allowed, visible: self.postings.top_k(
        bm25.tokenize(question), k, allowed)),
    (index.Index, "visible", lambda self, user=None: np.ones(len(self.chunks), bool)),
    (index, "cosine_top_k", lambda question, vectors, k, allowed: cosine.cosine_top_k(question, vectors, k)),
], ids=["statistics of all", "everybody sees all", "dense without a mask"])
def test_planted_leaks_are_caught(module, name, planted, monkeypatch):
    docs = [document("a", "the cat"), document("b", "the cat", acl=["hr"]), document("c", "birds fly quick the dog")]
    expected = seen(built([docs[0], docs[2]]), None)
    assert seen(built(docs), None) == expected
    monkeypatch.setattr(module, name, planted)
    assert seen(built(docs), None) != expected
