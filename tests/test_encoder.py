"""Second half of the lesson on the encoder: every equation by hand, then the fast form against two oracles."""

import json
import math
import re
import runpy
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

import documents
import encoder
from encoder import CrossEncoder, Encoder, TruncationWarning
from model_files import UnsupportedModel

TEXTS = ["the cat sat on the mat", "", "birds fly", "a dog chased the cat " * 20, "naïve 👍 日本 x", "zzz", "the quick dog"]


@pytest.fixture(scope="module")
def bert(random_bert):
    return random_bert()


@pytest.fixture(scope="module")
def small(bert):
    """An encoder with random weights: 32 numbers, reads 64 word pieces."""
    return Encoder(bert)


@pytest.fixture(scope="module")
def minilm(embedder, library):
    """all-MiniLM-L6-v2, and the library's model of it."""
    return embedder._model.encoder, library._model.model


@pytest.fixture
def copy(bert, tmp_path):
    return Path(shutil.copytree(bert, tmp_path / "model"))


def write(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def change(path, **settings):
    write(path, json.loads(path.read_text()) | settings)


def quietly(function, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        return function(*arguments, **keywords)


# -- By hand -----------------------------------------------------------------------------------------------------------


def test_attention_by_hand():
    queries, keys, values = np.array([[math.sqrt(2) * math.log(3), 0], [0, 0]]), np.eye(2), np.array([[4, 0], [0, 4]])
    assert encoder.softmax(np.array([math.log(3), 0])) == approx(np.array([3 / 4, 1 / 4]))
    assert encoder.attention(queries, keys, values) == approx(np.array([[3/4 * 4, 1/4 * 4], [1/2 * 4, 1/2 * 4]]))


def test_the_other_equations_by_hand():
    assert encoder.layer_norm(np.array([[3.0, 1.0]]), 10, 1, 3)[0] == approx(np.array([1 + 10 / 2, 1 - 10 / 2]))     # 1 + 3 = 2²
    assert encoder.linear(np.array([[3, 4]]), np.array([[1, 1], [2, 0]]), np.array([0, 1])).tolist() == [[3 + 4, 2 * 3 + 1]]
    assert encoder.unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[3 / 5, 4 / 5], [0, 0]]
    assert encoder.gelu_by_definition(0) == 0 and encoder.gelu_by_definition(40) == 40


def test_one_layer_by_hand():
    """The toy in one head, but with keys that are twice as large: so the shares are 9/10 and 1/10, not 3/4 and 1/4."""
    identity, none = np.eye(2), np.zeros(2)
    pick = np.concatenate([[[math.sqrt(2) * math.log(3) / 2, 0], [0, 0]], identity, 2 * identity])    # queries, keys, values
    layer = encoder.Layer((pick, np.zeros(6)), (identity, none), (np.ones(2), none), (identity, none), (identity, none),
                          (np.ones(2), np.array([0, 5])))
    hidden = np.array([[2.0, 0.0], [0.0, 2.0]])
    [head] = encoder.heads_of(hidden, layer, 1)
    assert head[0] == approx(np.array([[math.sqrt(2) * math.log(3), 0], [0, 0]])) and head[2] == approx(2 * hidden)
    # piece 0 scores 2 ln 3 and 0: 9/10 and 1/10 of the values (4, 0) and (0, 4); piece 1 half of each
    middle = encoder.layer_norm(hidden + np.array([[3.6, 0.4], [2.0, 2.0]]), np.ones(2), none, 1e-12)
    assert middle == approx(np.array([[1, -1], [-1, 1]]))
    result = encoder.layer_by_definition(hidden, layer, 1, 1e-12, lambda x: np.maximum(x, 0))
    assert result == approx(np.array([[1, -1 + 5], [-1, 1 + 5]]))            # (1, -1) + (1, 0) is (2, -1), normed (1, -1)


def test_embedding_and_pooling_by_hand():
    words, positions, kinds = np.array([[1, 2], [3, 4]]), np.array([[10, 20], [30, 40]]), np.array([[100, 0], [0, 100]])
    assert encoder.embed([1, 0], [0, 1], [0, 1], words, positions, kinds).tolist() == [
        [3 + 10 + 100, 4 + 20 + 0], [1 + 30 + 0, 2 + 40 + 100]]
    assert encoder.POOLINGS["mean"](np.array([[1, 3], [5, 5], [0, 1]])).tolist() == [(1 + 5 + 0) / 3, (3 + 5 + 1) / 3]
    assert encoder.POOLINGS["cls"](np.array([[1, 3], [5, 5]])).tolist() == [1, 3]


def test_cuts_by_hand():
    assert encoder.cut([101, 7, 8, 9, 102], 3) == [101, 7, 102] and encoder.cut([101, 7, 102], 3) == [101, 7, 102]
    assert encoder.longest_first(5, 5, 7) == (3, 4) and encoder.longest_first(6, 5, 7) == (4, 3)
    assert encoder.longest_first(2, 9, 7) == (2, 5) and encoder.longest_first(9, 2, 7) == (5, 2)


def test_add_and_norm_by_hand():
    rows = encoder.add_and_norm(np.float32([[1, 0], [0, 0]]), np.float32([[2, 1], [0, 8]]), np.float32([10, 10]), np.float32([0, 1]), 3)
    # (3, 1) has mean 2 and variance 1, and 1 + 3 = 2²; (0, 8) has 4 and 16
    assert rows == approx(np.array([[10 / 2, -10 / 2 + 1], [-40 / 19**0.5, 40 / 19**0.5 + 1]]), abs=1e-5)


def test_a_fast_layer_equals_the_definition_text_by_text():
    random = np.random.default_rng(0)
    pair = lambda *shape: (random.normal(size=shape).astype(np.float32), random.normal(size=shape[0]).astype(np.float32))     # noqa: E731
    layer = encoder.Layer(pair(12, 4), pair(4, 4), (np.ones(4), np.zeros(4)), pair(6, 4), pair(4, 6), (np.ones(4), np.ones(4)))
    hidden, runs = random.normal(size=(10, 4)).astype(np.float32), [(0, 2, 3), (6, 1, 4)]
    expected = [encoder.layer_by_definition(hidden[start:end].astype(float), layer, 2, 1e-3, encoder.gelu_by_definition)
                for start, end in ((0, 3), (3, 6), (6, 10))]
    assert encoder.fast_layer(hidden.copy(), runs, layer, 2, 1e-3, encoder.gelu) == approx(np.concatenate(expected), abs=1e-5)


def test_gelu_is_exact_to_a_rounding_of_float32():
    x = np.concatenate([np.linspace(-12, 12, 40_001), np.linspace(-1e-3, 1e-3, 1001)]).astype(np.float32)
    true = np.array([value * 0.5 * math.erfc(-value / math.sqrt(2)) for value in x.astype(float).tolist()])
    wrong = abs(encoder.gelu(x.copy()) - true)
    assert (wrong <= 1.5e-7 * np.maximum(1, abs(x)) + 5e-8).all()       # a float32 next to 1 is 1.2e-7 away
    assert encoder.gelu_by_definition(x[::100]) == approx(true[::100], abs=1e-7)
    exact = np.polyval(encoder.NORMAL, x.astype(float) ** 2)                 # the polynomial itself, without rounding
    with np.errstate(over="ignore"):
        assert abs(x / (1 + np.exp(x * exact)) - true).max() < 7e-8


def test_gelu_far_out():
    x = np.float32([1e3, 1e10, 3e38, -1e3, -1e10, -3e38, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.gelu(x.copy()).tolist() == [*x[:3].tolist(), 0, 0, 0, 0]


# -- Batches -----------------------------------------------------------------------------------------------------------

LENGTHS = st.lists(st.integers(2, 600), max_size=80)


@given(LENGTHS, st.none() | st.integers(1, 9))
def test_batches_hold_every_text_once_the_longest_first(lengths, batch_size):
    found = encoder.batches(lengths, batch_size)
    flat = [position for batch in found for position in batch]
    assert sorted(flat) == list(range(len(lengths)))
    assert flat == sorted(flat, key=lambda position: (-lengths[position], position))
    for batch in found:
        assert len(batch) <= batch_size if batch_size else sum(lengths[i] for i in batch) < encoder.BATCH + 600


@given(LENGTHS)
def test_runs_are_texts_of_equal_length_side_by_side(lengths):
    runs = encoder.runs_of(lengths)
    assert [length for _, n_texts, length in runs for _ in range(n_texts)] == lengths
    assert [start for start, _, _ in runs] == [sum(n * length for _, n, length in runs[:i]) for i in range(len(runs))]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(2, 60))
def test_longest_first_equals_cutting_one_by_one(n_a, n_b, room):
    a, b = n_a, n_b
    while a + b > room:
        a, b = (a - 1, b) if a > b or (a == b and n_a <= n_b) else (a, b - 1)
    assert encoder.longest_first(n_a, n_b, room) == (a, b)


# -- The fast form equals the definition, and the library ---------------------------------------------------------------

SHAPES = [dict(), dict(num_hidden_layers=1, num_attention_heads=1), dict(hidden_size=48, num_attention_heads=3),
          dict(intermediate_size=24, hidden_act="relu"), dict(hidden_act="gelu_new", layer_norm_eps=1e-3),
          dict(vocab_size=128, type_vocab_size=1, initializer_range=0.6)]


@pytest.fixture(scope="module")
def other(bert, tmp_path_factory):
    """other(number, pooling, normalize, **settings): a model of another shape, which reads 64 word pieces."""
    import torch
    from transformers import BertConfig, BertModel

    def make(pooling="mean", normalize=False, **settings):
        folder = Path(shutil.copytree(bert, tmp_path_factory.mktemp("other") / "model"))
        config = BertConfig.from_pretrained(bert, **settings)
        torch.manual_seed(1)
        BertModel(config).save_pretrained(folder)
        write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": config.hidden_size, "pooling_mode": pooling})
        steps = json.loads((folder / "modules.json").read_text())
        last = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
        (folder / "2_Normalize").mkdir()
        write(folder / "modules.json", steps + [last] * normalize)
        return folder
    return make


@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_models_of_other_shapes(other, number):
    from sentence_transformers import SentenceTransformer

    folder = other(("mean", "cls")[number % 2], number % 3 == 0, **SHAPES[number])
    model = Encoder(folder)
    vectors = quietly(model.encode, TEXTS)
    assert vectors == approx(SentenceTransformer(str(folder)).encode(TEXTS), abs=1e-5)
    for text in TEXTS:
        hidden = quietly(model.token_vectors, text)[0]
        ids = encoder.cut(model.tokenizer.encode(text).ids, 64)
        assert hidden == approx(model.states(ids, [0] * len(ids))[-1], abs=2e-5)


def test_scores_that_exp_cannot_take():
    qkv = np.random.default_rng(0).normal(size=(10, 96)).astype(np.float32) * 30
    attended = encoder.attend(qkv.copy(), [(0, 1, 4), (4, 2, 3)], 4)
    for start, end in ((0, 4), (4, 7), (7, 10)):
        parts = np.split(qkv[start:end].astype(float), 12, axis=1)
        heads = [encoder.attention(*parts[head::4]) for head in range(4)]
        assert attended[start:end] == approx(np.concatenate(heads, axis=1), abs=1e-3)


def test_many_heads_and_long_texts_are_worked_on_in_blocks(small, monkeypatch):
    expected = quietly(small.encode, TEXTS)
    monkeypatch.setattr(encoder, "BLOCK", 100)
    monkeypatch.setattr(encoder, "BATCH", 40)
    assert quietly(small.encode, TEXTS) == approx(expected, abs=1e-6)


WRITTEN = st.lists(st.text(st.sampled_from("cat dog é👍日,X1"), max_size=40), max_size=12)


@settings(max_examples=20)
@given(texts=WRITTEN, data=st.data())
def test_company_and_order_do_not_matter(small, texts, data):
    order = data.draw(st.permutations(range(len(texts))))
    vectors = small.encode(texts)
    assert vectors.shape == (len(texts), 32) and vectors.dtype == np.float32
    assert small.encode([texts[i] for i in order]) == approx(vectors[order], abs=5e-6)       # of length 5 to 6
    alone = [small.encode([text])[0].tolist() for text in texts]
    assert small.encode(texts, batch_size=1).tolist() == alone


def test_batches_on_all_cores_equal_one_batch(small, monkeypatch):
    texts = ["the cat sat", "on", "mat " * 30, "a dog"] * 50
    expected = small.encode(texts[:4])
    monkeypatch.setattr(encoder, "CORES", 3)
    assert len(encoder.batches([30] * 200)) > 1
    assert small.encode(texts) == approx(np.tile(expected, (50, 1)), abs=1e-6)


# -- MiniLM ------------------------------------------------------------------------------------------------------------


def test_equals_sentence_transformers_on_real_texts(minilm):
    ours, theirs = minilm
    descriptions = " ".join(document["text"] for document in documents.load_descriptions(["iris", "digits"]))
    words = " ".join([descriptions, encoder.__doc__, json.__doc__, re.__doc__, math.__doc__]).split()
    texts = [" ".join(words[start:start + size]) for start, size in zip(range(0, 2000, 10), [*range(1, 8), 60] * 24)]
    texts += ["", " \n", "👍🏽👩‍👩‍👧", "日本語のテキスト", "x" * 10_000, "a\x00b\ufeff", "[SEP] [MASK]", " ".join(words[:600])]
    vectors, expected = quietly(ours.encode, texts), theirs.encode(texts)
    assert abs(vectors - expected).max() < 1e-5 and np.linalg.norm(vectors, axis=1) == approx(1, abs=1e-6)
    for query in range(0, len(texts), 10):
        order = np.argsort(-(vectors @ vectors[query]))
        assert (np.diff((expected @ expected[query])[order]) <= 1e-6).all()
    alone = [quietly(ours.encode, [text])[0] for text in texts[::25]]
    assert np.array(alone) == approx(vectors[::25], abs=1e-6)


def test_fast_equals_definition(minilm):
    ids = minilm[0].tokenizer.encode("carbonara is good").ids
    states = minilm[0].states(ids, [0] * len(ids))
    assert len(states) == 1 + 6 and {state.shape for state in states} == {(6, 384)}
    vector = encoder.unit(encoder.mean_pool(states[-1]))
    assert minilm[0].encode(["carbonara is good"])[0] == approx(vector, abs=1e-6)


def test_256_word_pieces_are_read_and_the_rest_is_reported(minilm):
    model = minilm[0]
    assert (model.max_tokens, model.dimensions, model.count_tokens("cat " * 300)) == (256, 384, 302)
    with pytest.warns(TruncationWarning, match=r"2 of 3 texts have more than the 256 word pieces that the model reads \(up to 302\)"):
        one, two, _ = model.encode(["cat " * 300, "cat " * 255, "cat " * 254])
    assert one == approx(two, abs=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.encode(["cat " * 254])[0] == approx(one, abs=1e-6)


def test_offsets_count_characters(minilm):
    text = "naïve 👍 日本 end"
    vectors, offsets = minilm[0].token_vectors(text)
    assert [text[start:end] for start, end in offsets] == ["", "naïve", "👍", "日", "本", "end", ""]
    assert vectors.shape == (7, 384) and minilm[0].encode([text])[0] == approx(encoder.unit(vectors.mean(axis=0)), abs=1e-6)
    with pytest.warns(TruncationWarning):
        vectors, offsets = minilm[0].token_vectors("cat " * 300)
    assert len(vectors) == len(offsets) == 256 and offsets[[0, 254, 255]].tolist() == [[0, 0], [253 * 4, 253 * 4 + 3], [0, 0]]


def test_a_prefix_stands_in_front(small):
    assert small.encode(["the cat"], prefix="passage : ").tolist() == small.encode(["passage : the cat"]).tolist()


def test_no_text_at_all(small):
    assert small.encode([]).shape == (0, 32) and small.encode(iter(["cat"])).shape == (1, 32)


# -- Cross-encoder -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [1, 3])
def test_cross_encoder_equals_the_library(random_bert, labels):
    import torch
    from sentence_transformers import CrossEncoder as Theirs

    folder = random_bert(labels)
    pairs = [(a, b) for a in ("the cat", "", "dog " * 40, "cat " * 90) for b in ("birds fly", "", "mat " * 41, "mat " * 90)]
    model = CrossEncoder(folder)
    with pytest.warns(TruncationWarning, match="8 of 16"):
        ours = model.predict(pairs)
    theirs = Theirs(str(folder), activation_fn=torch.nn.Identity()).predict(pairs)
    assert ours.shape == (16, labels) and ours == approx(theirs.reshape(16, labels), abs=1e-5)
    assert model.predict([]).shape == (0, labels)
    encoding = model.tokenizer.encode("the cat", "birds fly")
    cls = model.states(encoding.ids, encoding.type_ids)[-1][:1]
    logits = encoder.linear(np.tanh(encoder.linear(cls, *model.pooler)), *model.classifier)
    assert ours[0] == approx(logits[0], abs=1e-5)


def test_a_cross_encoder_needs_its_head_and_pairs(bert, random_bert):
    with pytest.raises(ValueError, match="no cross-encoder"):
        CrossEncoder(bert)
    model = CrossEncoder(random_bert(1))
    for pairs in (["cat"], [("a", 3)], [("a",)]):
        with pytest.raises((TypeError, ValueError)):
            model.predict(pairs)


# -- Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", ["bare", b"bytes", [3], ["a", None], [{"text": "a"}]])
def test_texts_that_are_none(small, texts):
    with pytest.raises(TypeError, match="must be (a list of )?strings"):
        small.encode(texts)


def test_half_a_character(small):
    with pytest.raises(ValueError, match="number 0 holds half a character"):
        small.encode(["\ud800"])


@pytest.mark.parametrize("file, settings, message", [
    ("config.json", dict(model_type="distilbert"), "model_type 'distilbert'"),
    ("config.json", dict(position_embedding_type="relative_key"), "position_embedding_type"),
    ("config.json", dict(hidden_act="silu"), "hidden_act 'silu'"), ("config.json", dict(is_decoder=True), "is_decoder"),
    ("1_Pooling/config.json", dict(pooling_mode_mean_tokens=False, pooling_mode_max_tokens=True), "poolings mean and cls"),
    ("1_Pooling/config.json", dict(pooling_mode_cls_token=True), "poolings mean and cls"),
    ("1_Pooling/config.json", dict(include_prompt=False), "include_prompt"),
    ("sentence_bert_config.json", dict(do_lower_case=True), "do_lower_case")])
def test_models_that_are_not_here(copy, file, settings, message):
    change(copy / file, **settings)
    with pytest.raises(UnsupportedModel, match=message):
        Encoder(copy)


@pytest.mark.parametrize("settings, message", [
    (dict(num_attention_heads=5), "cannot be"), (dict(hidden_size=None), "cannot be"), (dict(num_hidden_layers=0), "cannot be"),
    (dict(num_hidden_layers=1), "encoder.layer.1.attention.output.LayerNorm.bias, for which"),
    (dict(num_hidden_layers=3), r"encoder.layer.2.attention.self.query.weight must have the shape \(32, 32\), not \(0,\)"),
    (dict(intermediate_size=63), r"intermediate.dense.weight must have the shape \(63, 32\), not \(64, 32\)"),
    (dict(vocab_size=79), "word_embeddings.weight must have")])
def test_settings_that_do_not_fit_the_weights(copy, settings, message):
    change(copy / "config.json", **settings)
    with pytest.raises(ValueError, match=message):
        Encoder(copy)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "modules.json", "1_Pooling/config.json"])
def test_files_that_are_missing_or_cut_short(copy, name):
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[:len(content) // 2])
    with pytest.raises(ValueError, match=f"{name} is damaged or of another kind"):
        Encoder(copy)
    (copy / name).unlink()
    with pytest.raises(ValueError, match=f"holds no .*{Path(name).name}|no .*safetensors, or no tokenizer"):
        Encoder(copy)


def test_another_models_tokenizer(copy, minilm):
    minilm[0].tokenizer.save(str(copy / "tokenizer.json"))
    with pytest.raises(ValueError, match="does not fit the model: it has 30522 word pieces"):
        Encoder(copy)


# -- The door ----------------------------------------------------------------------------------------------------------


def test_encoding_loads_no_model_library(bert):
    program = (f"import encoder, sys; encoder.Encoder({str(bert)!r}).encode(['cat']); "
               "print(*sys.modules.keys() & {'torch', 'transformers', 'scipy', 'sentence_transformers', 'huggingface_hub'})")
    result = subprocess.run([sys.executable, "-c", program], cwd=Path(encoder.__file__).parent, check=True, capture_output=True)
    assert not result.stdout.split()


def test_limits_are_known_without_the_weights(copy):
    (copy / "model.safetensors").write_bytes(b"")
    assert encoder.limits(copy) == (64, 32)
    change(copy / "config.json", model_type="distilbert")
    with pytest.raises(UnsupportedModel):
        encoder.limits(copy)


def test_picture(minilm, tmp_path):
    tokens, shares, _ = encoder.first_head(minilm[0], "birds fly")
    assert tokens == ["[CLS]", "birds", "fly", "[SEP]"] and shares.sum(axis=1) == approx(np.ones(4))
    encoder.draw(minilm[0], tmp_path / "attention.png", "birds fly")
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")


def test_lesson(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["encoder.py", "carbonara"])
    runpy.run_path(encoder.__file__, run_name="__main__")
    printed = capsys.readouterr().out
    assert "after layer 6: [4, 384], the row of 'carbon'" in printed
    assert re.search(r"##ara \|.{4}\| \d+ \d+ \d+ \d+", printed)
    close, far = map(float, re.search(r"cosine ([\d.]+) with .*, (-?[\d.]+) with", printed).groups())
    assert close > 0.5 > 0.1 > far


# -- Settings and weights that are not what they should be -------------------------------------------------------------


@pytest.fixture
def folder(random_bert, tmp_path):
    return shutil.copytree(random_bert(), tmp_path / "copy")


def change(path, **settings):
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.is_file() else {}), **settings}))


@pytest.mark.parametrize("name, content, message", [
    ("config.json", [], "config.json is damaged"), ("1_Pooling/config.json", [1], "config.json is damaged"),
    ("modules.json", [1], "modules.json is damaged"), ("modules.json", [{}], "modules.json is damaged"),
    ("modules.json", {"a": 1}, "modules.json is damaged"), ("sentence_bert_config.json", [], "is damaged")])
def test_settings_of_another_kind_are_refused(folder, name, content, message):
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        Encoder(folder)


@pytest.mark.parametrize("epsilon", ["1e-12", None, -5.0, 0.0, 5.0])
def test_an_impossible_epsilon_is_refused(folder, epsilon):
    change(folder / "config.json", layer_norm_eps=epsilon)
    with pytest.raises(ValueError, match="layer_norm_eps cannot be"):
        Encoder(folder)


def test_what_only_the_library_can_run_is_said_to_be_unsupported(folder):
    change(folder / "config.json", hidden_act=["gelu"])
    with pytest.raises(UnsupportedModel, match="hidden_act"):
        Encoder(folder)
    change(folder / "config.json", hidden_act="gelu")
    change(folder / "tokenizer_config.json", truncation_side="left")
    with pytest.raises(UnsupportedModel, match="at their beginning"):
        Encoder(folder)


def rewrite(folder, edit):
    from safetensors.numpy import load_file, save_file
    weights = load_file(folder / "model.safetensors")
    save_file(edit(weights), folder / "model.safetensors")


def test_old_names_of_norms_are_known(folder):
    expected = Encoder(folder).encode(["the cat sat"])
    rewrite(folder, lambda weights: {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
        "LayerNorm.bias", "LayerNorm.beta"): array for name, array in weights.items()})
    assert (Encoder(folder).encode(["the cat sat"]) == expected).all()


def test_weights_that_are_no_numbers_are_refused(folder):
    rewrite(folder, lambda weights: {name: np.where(array > 0.5, np.nan, array) for name, array in weights.items()})
    with pytest.raises(ValueError, match="holds NaN or infinity"):
        Encoder(folder)
    rewrite(folder, lambda weights: {name: np.nan_to_num(array).astype(np.int8) for name, array in weights.items()})
    with pytest.raises(UnsupportedModel, match="I8"):
        Encoder(folder)


def test_a_prefix_with_half_a_character_and_a_batch_of_none_are_refused(folder):
    with pytest.raises(ValueError, match="half a character"):
        Encoder(folder).encode(["a"], prefix="\ud83d")
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        Encoder(folder).encode(["a"], batch_size=0)
