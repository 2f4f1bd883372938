"""Second half of the lesson on embedding: the right weights, the right prefix, and vectors that can be relied on."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

import embedding
import encoder
import model_files


@pytest.fixture(scope="module")
def bert(random_bert):
    return random_bert()


@pytest.fixture(scope="module")
def small(bert):
    """An embedder with random weights: 32 numbers, reads 64 word pieces."""
    return embedding.load_embedder(bert)


@pytest.fixture(scope="module")
def plain():
    """The default embedder without a cache."""
    return embedding.load_embedder()


@pytest.fixture
def copy(bert, tmp_path):
    """copy(name, **settings): a copy of the small model in a folder of that name, with prompts in its settings."""
    def make(name="model", **settings):
        folder = Path(shutil.copytree(bert, tmp_path / name))
        if settings:
            (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
        return folder
    return make


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_unit_rows_by_hand():
    assert embedding.unit_rows([[3, 4], [0, 0], [-2, 0]]).tolist() == np.float32([[3/5, 4/5], [0, 0], [-1, 0]]).tolist()
    assert embedding.unit_rows(np.float32([[3e-30, 4e-30], [3e30, 4e30]])) == approx(np.array([[0.6, 0.8]] * 2))


def test_unit_rows_of_huge_and_tiny_numbers():
    assert embedding.unit_rows([[3e200, 4e200], [3e-200, 4e-200]]) == approx(np.array([[0.6, 0.8], [0.6, 0.8]]))


def test_default_model(embedder):
    assert (embedder.name, embedder.dimensions, embedder.max_tokens) == ("all-MiniLM-L6-v2", 384, 256)
    assert embedder.prefixes == {"query": "", "document": ""}


def test_tokens_by_hand(embedder):
    assert embedder.count_tokens("carbonara is good") == 1 + 2 + 1 + 1 + 1       # [CLS] carbon ##ara is good [SEP]
    vectors, offsets = embedder.token_vectors("carbonara is good")
    assert offsets.tolist() == [[0, 0], [0, 6], [6, 9], [10, 12], [13, 17], [0, 0]]
    assert vectors.shape == (6, 384) and vectors.dtype == np.float32


def test_offsets_count_characters_not_bytes(embedder):
    text = "naïve 👍 日本 end"
    _, offsets = embedder.token_vectors(text)
    assert [text[start:end] for start, end in offsets] == ["", "naïve", "👍", "日", "本", "end", ""]


def test_no_text_at_all(embedder):
    assert embedder.encode([]).shape == (0, 384) and embedder.encode([]).dtype == np.float32
    assert embedder.count_tokens("") == 2
    assert embedder.token_vectors("")[1].tolist() == [[0, 0], [0, 0]]
    assert np.linalg.norm(embedder.encode([""])) == approx(1, abs=1e-6)


def test_closer_in_meaning_is_closer(embedder):
    [question] = embedder.encode(["my connection keeps dropping"], kind="query")
    close, far = embedder.encode(["The server closes the socket: reset by peer.", "Bake the bread for an hour."])
    assert question @ close > question @ far


# -- Limits: the tokenizer's own settings say 128, the model reads 256 -------------------------------------------------


def test_counting_neither_cuts_nor_fills_up(plain, library):
    for n in (1, 126, 127, 254, 255, 1000):
        assert plain.count_tokens("cat " * n) == library.count_tokens("cat " * n) == n + 2


@pytest.mark.filterwarnings("ignore::encoder.TruncationWarning")
def test_256_word_pieces_are_read_and_no_more(embedder):
    text = "The cat sat on the mat. " * 100
    words = text.split()
    assert len(embedder.token_vectors(text)[0]) == 256
    whole, read, less = embedder.encode([text, text[:embedder.token_vectors(text)[1][-2, 1]], " ".join(words[:110])])
    assert whole @ read == approx(1, abs=1e-6)
    assert whole @ less < 1 - 1e-4                       # 110 words and 19 full stops: what 128 would leave


# -- Oracles -----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::encoder.TruncationWarning")
def test_equals_sentence_transformers(plain, library):
    texts = ["a cat", "The quick brown fox.", "x " * 300, "", "naïve 👍", "birds fly"]
    theirs = library._model.model.encode(texts)
    for embedder in (plain, library):
        assert embedder.encode(texts) == approx(theirs, abs=1e-6)
        assert embedder.encode(texts, kind="query") == approx(theirs, abs=1e-6)


@pytest.mark.filterwarnings("ignore::encoder.TruncationWarning")
def test_backends_read_alike(plain, library):
    for text in ("carbonara is good", "", " naïve 👍 日本 [SEP] end\n", "cat " * 300):
        (ours, our_offsets), (theirs, their_offsets) = plain.token_vectors(text), library.token_vectors(text)
        assert our_offsets.tolist() == their_offsets.tolist() and ours == approx(theirs, abs=1e-4)     # of length 5
        assert plain.count_tokens(text) == library.count_tokens(text)
    for name in ("name", "dimensions", "max_tokens", "prefixes"):
        assert getattr(plain, name) == getattr(library, name)


def test_vectors_are_the_mean_of_the_token_vectors(embedder):
    text = "Up to five days can be carried over."
    mean = embedder.token_vectors(text)[0].mean(axis=0)
    assert embedder.encode([text])[0] == approx(mean / np.linalg.norm(mean), abs=1e-6)


# -- Properties --------------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.text(st.sampled_from("cat dog é👍日,X1"), max_size=12), max_size=12)


@settings(deadline=None, max_examples=15)
@given(texts=TEXTS, kind=st.sampled_from(embedding.KINDS), data=st.data())
def test_order_and_repetition_change_no_bit(small, texts, kind, data):
    vectors = small.encode(texts, kind)
    again = data.draw(st.permutations(range(len(texts)))) + data.draw(st.sampled_from([[], list(range(len(texts)))]))
    assert (small.encode([texts[i] for i in again], kind) == vectors[again]).all()
    assert vectors.shape == (len(texts), 32) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors.astype(float), axis=1) == approx(np.ones(len(texts)), abs=1e-6)


@settings(deadline=None, max_examples=8)
@given(texts=TEXTS)
def test_one_at_a_time_company_changes_no_bit(small, texts):
    alone = [small.encode([text])[0].tolist() for text in texts]
    assert small.encode(texts, batch_size=1).tolist() == alone


@settings(deadline=None, max_examples=25)
@given(text=st.text(st.sampled_from("cat dog é👍日,X1"), max_size=100))
def test_offsets_lie_in_the_text_in_order(small, text):
    vectors, offsets = small.token_vectors(text)
    starts, ends = offsets[1:-1].T
    assert offsets[0].tolist() == offsets[-1].tolist() == [0, 0]
    assert (starts < ends).all() and (starts[1:] >= ends[:-1]).all() and ends.max(initial=0) <= len(text)
    assert len(vectors) == len(offsets) == min(64, small.count_tokens(text))


def test_order_changes_no_bit_of_texts_that_share_batches(plain):
    texts = [f"the cat sat on the mat number {i}" for i in range(10, 25)]
    texts.append(("a " * 16)[:len(texts[0])])            # as many letters, twice the word pieces: fills up its batch
    vectors = plain.encode(texts, batch_size=4)
    rotated = texts[3:] + texts[:3]
    assert (plain.encode(rotated, batch_size=4) == np.roll(vectors, -3, axis=0)).all()


def test_any_iterable_of_texts_will_do(small):
    expected = small.encode(["cat", "dog"]).tolist()
    for texts in (("cat", "dog"), iter(["cat", "dog"]), np.array(["cat", "dog"])):
        assert small.encode(texts).tolist() == expected


# -- Shorter vectors ---------------------------------------------------------------------------------------------------


def test_dimensions_cut_and_scale_to_length_1_again(bert, small):
    short = embedding.load_embedder(bert, dimensions=5)
    first = small.encode(["the cat", "birds fly"])[:, :5]
    lengths = np.linalg.norm(first, axis=1, keepdims=True)
    assert short.dimensions == 5 and short.encode([]).shape == (0, 5)
    assert short.encode(["the cat", "birds fly"]) == approx(first / lengths, abs=1e-6)
    assert embedding.load_embedder(bert, dimensions=np.int64(32)).encode(["a"]).tolist() == small.encode(["a"]).tolist()


@pytest.mark.parametrize("dimensions, error", [(0, ValueError), (-1, ValueError), (33, ValueError), (2.5, TypeError),
                                               (True, TypeError)])
def test_dimensions_that_the_model_does_not_have(bert, dimensions, error):
    with pytest.raises(error, match="dimensions must be"):
        embedding.load_embedder(bert, dimensions=dimensions)


# -- Prefixes ----------------------------------------------------------------------------------------------------------

QUESTION = "carry over"


BOTH = pytest.mark.parametrize("backend", embedding.BACKENDS)


@BOTH
def test_own_prefixes_go_in_front_once(copy, small, backend):
    # the default prompt is the trap: the library puts it in front of every text that comes without a prompt
    both = embedding.load_embedder(copy(prompts={"query": "query : ", "document": "passage : "},
                                        default_prompt_name="query"), backend)
    for kind, prefix in (("query", "query : "), ("document", "passage : ")):
        expected = small.encode([prefix + QUESTION])
        assert both.encode([QUESTION], kind) == approx(expected, abs=1e-6)
        assert both.encode([prefix + QUESTION], kind) == approx(expected, abs=1e-6)      # already there
    one = embedding.load_embedder(copy("one", prompts={"query": "query : "}, default_prompt_name="query"), backend)
    assert one.encode([QUESTION]) == approx(small.encode([QUESTION]), abs=1e-6)


@BOTH
@pytest.mark.parametrize("prompts, default, query, document", [
    ({"query": "query : ", "passage": "passage : "}, None, "query : ", "passage : "),
    ({"query": "query : ", "document": "", "passage": "passage : "}, None, "query : ", "passage : "),
    ({"query": "query : "}, "query", "query : ", ""),
    ({"leave": "leave "}, "leave", "leave ", "leave "),
    ({"leave": "leave "}, None, "", "")])
def test_what_a_model_calls_its_prompts(copy, prompts, default, query, document, backend):
    loaded = embedding.load_embedder(copy(prompts=prompts, default_prompt_name=default), backend)
    assert loaded.prefixes == {"query": query, "document": document}


@pytest.mark.parametrize("name, query, document", [
    ("intfloat/e5-base-v2", "query: ", "passage: "), ("intfloat/multilingual-e5-small", "query: ", "passage: "),
    ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
    ("BAAI/bge-large-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", ""), ("BAAI/bge-large-zh-noinstruct", "", ""),
    ("BAAI/bge-m3", "", ""), ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
    ("sentence-transformers/all-MiniLM-L6-v2", "", ""), ("/home/e5-base/all-mpnet-base-v2", "", "")])
def test_known_families(name, query, document):
    assert embedding.known_prefixes(name) == {"query": query, "document": document}


def test_instructed_models_get_an_instruction():
    prefixes = embedding.known_prefixes("intfloat/multilingual-e5-large-instruct")
    assert prefixes["query"].startswith("Instruct: ") and prefixes["query"].endswith("\nQuery: ")


def test_argument_before_own_settings_before_family(copy):
    e5 = copy("e5-small")
    assert embedding.load_embedder(e5).prefixes == {"query": "query: ", "document": "passage: "}
    own = copy("e5-base", prompts={"query": "unused "})
    assert embedding.load_embedder(own).prefixes == {"query": "unused ", "document": ""}
    given_one = embedding.load_embedder(e5, prefixes={"query": ""})
    assert given_one.prefixes == {"query": "", "document": "passage: "}


@BOTH
def test_a_prefix_is_counted_but_stands_at_no_place(copy, small, backend):
    prefixed = embedding.load_embedder(copy(), backend, prefixes={"document": "passage : "})
    assert prefixed.count_tokens("the cat") == 1 + 2 + 2 + 1             # [CLS] passage : the cat [SEP]
    assert prefixed.count_tokens("the cat", kind="query") == 1 + 2 + 1
    vectors, offsets = prefixed.token_vectors("the cat")
    assert offsets.tolist() == [[0, 0], [0, 0], [0, 0], [0, 3], [4, 7], [0, 0]]
    assert vectors == approx(small.token_vectors("passage : the cat")[0], abs=1e-5)


@pytest.mark.parametrize("prefixes", [{"passage": "x"}, {"query": None}, {"query": 3}])
def test_prefixes_that_are_none(bert, prefixes):
    with pytest.raises(ValueError, match="prefixes must be"):
        embedding.load_embedder(bert, prefixes=prefixes)


# -- Planted bugs ------------------------------------------------------------------------------------------------------


def test_a_default_prompt_on_top_of_the_prefix_is_caught(copy, small, monkeypatch):
    monkeypatch.setattr(embedding.SentenceTransformersModel, "encode",
                        lambda self, texts, prefix, batch_size: self.model.encode([prefix + text for text in texts]))
    with pytest.raises(AssertionError):
        test_own_prefixes_go_in_front_once(copy, small, "sentence-transformers")


def test_a_cut_without_scaling_is_caught(bert, small, monkeypatch):
    monkeypatch.setattr(embedding, "unit_rows", lambda rows: rows)
    with pytest.raises(AssertionError):
        test_dimensions_cut_and_scale_to_length_1_again(bert, small)


def test_the_tokenizer_s_own_limit_is_caught(plain, monkeypatch):
    own = tokenizers.Tokenizer.from_file(str(plain._model.folder / "tokenizer.json"))
    monkeypatch.setattr(plain._model.encoder, "tokenizer", own)
    with pytest.raises(AssertionError):
        test_counting_neither_cuts_nor_fills_up(plain, plain)


# -- Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts, message", [
    ("a bare string", "write \\[text\\]"), (b"bytes", "write \\[text\\]"), (["a", None], "number 1 is a NoneType"),
    ([3], "number 0 is a int"), ([["a"]], "number 0 is a list"), ([{"text": "a"}], "dict: pass its \"text\"")])
def test_texts_that_are_no_list_of_strings(small, texts, message):
    with pytest.raises(TypeError, match=message):
        small.encode(texts)


def test_one_text_that_is_no_string(small):
    for method in (small.count_tokens, small.token_vectors):
        with pytest.raises(TypeError, match="must be strings"):
            method(["a"])


def test_half_a_character(small):
    with pytest.raises(ValueError, match="text number 1 holds half a character"):
        small.encode(["a", "b \ud800"])


@pytest.mark.parametrize("kind", ["passage", "", None])
def test_a_kind_that_is_none(small, kind):
    for method in (lambda: small.encode([], kind), lambda: small.count_tokens("a", kind),
                   lambda: small.token_vectors("a", kind)):
        with pytest.raises(ValueError, match="kind must be 'query' or 'document'"):
            method()


def test_a_batch_of_nothing(small):
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        small.encode(["a"], batch_size=0)


def test_a_backend_that_is_none():
    with pytest.raises(ValueError, match="no backend 'onnx'; there is: 'numpy', 'sentence-transformers'"):
        embedding.load_embedder(backend="onnx")


# -- Which backend -----------------------------------------------------------------------------------------------------


@pytest.fixture
def unsupported(copy):
    """A model that takes the greatest of the word pieces' numbers: encoder.py cannot."""
    folder = copy("greatest")
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": True}))
    return folder


def test_the_library_runs_what_encoder_cannot(unsupported):
    found = embedding.load_embedder(unsupported)
    assert isinstance(found._model, embedding.SentenceTransformersModel)
    greatest = found.token_vectors("the cat")[0].max(axis=0)
    assert found.encode(["the cat"])[0] == approx(greatest / np.linalg.norm(greatest), abs=1e-6)


def test_numpy_on_request_for_what_it_cannot_run(unsupported):
    with pytest.raises(model_files.UnsupportedModel, match="here are the poolings mean and cls, but not .*max"):
        embedding.load_embedder(unsupported, backend="numpy")


@BOTH
def test_what_is_cut_is_reported(bert, backend):
    found = embedding.load_embedder(bert, backend)
    with pytest.warns(encoder.TruncationWarning, match=r"1 of 2 texts have more than the 64 word pieces .*up to 72"):
        found.encode(["cat " * 70, "cat"])
    with pytest.warns(encoder.TruncationWarning, match="1 of 1"):
        assert len(found.token_vectors("cat " * 70)[0]) == 64


def test_numpy_loads_no_model_library():
    program = ("import sys, rag, rerank; rag.main([]); rerank.rerank('cat', [{'text': 'a cat'}]);"
               "print(*sys.modules.keys() & {'torch', 'transformers', 'sentence_transformers', 'scipy', 'huggingface_hub'}, '.')")
    result = subprocess.run([sys.executable, "-c", program], cwd=Path(embedding.__file__).parent, check=True,
                            capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "."
