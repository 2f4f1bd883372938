"""Step 10 of 22 — How does text become a vector? Before: chunking.py. Next: embedding.py.

A BERT-shaped encoder looks every word piece up in a table and then lets the pieces of a text read one another, layer
after layer, until each row of numbers says what its piece means in this text. Their mean is the text's vector.

    ids        numbers of a text's word pieces, [CLS] in front, [SEP] behind   "birds fly" -> 101 5055 4875 102
    types      0 for every piece; in a pair of texts, 1 for the second one's   0 0 0 0
    dim        how many numbers a word piece has                               MiniLM: 384; toy: 2
    hidden     one row for each word piece [n_tokens, dim]                     toy: [[2, 0], [0, 2]]
    head       a part of the dim numbers that reads on its own                 MiniLM: 12 of 32 numbers; toy: 1 of 2
    queries    what each piece looks for                                       toy: [[sqrt(2) ln 3, 0], [0, 0]]
    keys       what each piece offers                                          toy: [[1, 0], [0, 1]]
    values     what each piece passes on to those that look for it             toy: [[4, 0], [0, 4]]
    scores     queries @ keys.T / sqrt(2), then softmax makes shares of them   toy: [[3/4, 1/4], [1/2, 1/2]]
    attended   every piece's shares of the values                              toy: [[3, 1], [2, 2]]
    inner      the wide middle of the feed-forward part [n_tokens, inner]      MiniLM: 1536
    run        texts of equal length that stand one after another: (start, n_texts, length)

First the definition, one function for each equation and one text at a time, then the fast form, which must equal it.
The fast form puts the word pieces of many texts into one array, without padding: a text's rows read one another only,
so nothing has to be masked. The mean "over the mask" of other programs is here the mean over the text's rows.

Vaswani and others, "Attention Is All You Need" (2017). Devlin and others, "BERT" (2019). Ba, Kiros and Hinton, "Layer
Normalization" (2016). Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016). Reimers and Gurevych,
"Sentence-BERT" (2019). Wang and others, "MiniLM" (2020).

Not here: how the tokenizer cuts words into pieces, training, decoders, relative positions (MPNet, DeBERTa), float16.
"""

import itertools
import math
import os
import sys
import threading
import warnings
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tqdm import tqdm

import model_files
import ranking

BATCH = 2048            # word pieces in a batch: enough for fast products, and its arrays stay near the cache
BLOCK = 32768           # numbers that are worked on at a time where each is touched many times: 128 KB
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
ONE_AT_A_TIME = threading.Lock()

# -- The definition: one equation each ---------------------------------------------------------------------------------


def embed(ids, places, types, words, positions, kinds):
    """The sum of three learned rows: of the piece, of its place in the text, of its type (Devlin 2019, figure 2).

    formula: embedded = words[ids] + positions[places] + kinds[types]

    >>> embed([1, 0], [0, 1], [0, 0], words=np.eye(2), positions=np.array([[5, 5], [6, 6]]), kinds=np.zeros((1, 2)))
    array([[5., 6.],
           [7., 6.]])
    """
    return words[ids] + positions[places] + kinds[types]               # three times [n_tokens, dim] -> [n_tokens, dim]


def layer_norm(rows, gain, shift, epsilon):
    """Each row brought to mean 0 and variance 1, then scaled and shifted as learned (Ba 2016, equations 3 and 4).

    formula: normed = gain * (rows - mean(rows)) / sqrt(variance(rows) + epsilon) + shift

    >>> layer_norm(np.array([[3.0, 1.0], [2.0, 2.0]]), gain=10, shift=1, epsilon=1e-12)
    array([[11., -9.],
           [ 1.,  1.]])
    """
    mean, variance = rows.mean(axis=1, keepdims=True), rows.var(axis=1, keepdims=True)     # each [n_tokens, 1]
    return gain * (rows - mean) / np.sqrt(variance + epsilon) + shift


@np.vectorize
def gelu_by_definition(x):
    """x times the probability that a normal random number is below x (Hendrycks and Gimpel 2016, section 2).

    formula: gelu = x * (1 + erf(x / sqrt(2))) / 2

    >>> round(float(gelu_by_definition(1.0)), 4), round(float(gelu_by_definition(-1.0)), 4)     # 0.8413 is below 1
    (0.8413, -0.1587)
    """
    return float(x) * (1 + math.erf(x / math.sqrt(2))) / 2


def softmax(scores):
    """Scores as positive shares; each row adds up to 1.

    formula: shares = exp(scores) / sum(exp(scores))

    >>> softmax(np.log([[3.0, 1.0], [5.0, 5.0]])).round(4)
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))       # the same shares, and exp cannot overflow
    return powers / powers.sum(axis=-1, keepdims=True)


def attention(queries, keys, values):
    """What each piece reads from the others, in one head of d numbers (Vaswani 2017, equation 1).

    formula: attended = softmax(queries @ keys.T / sqrt(d)) @ values

    >>> toy = [[math.sqrt(2) * math.log(3), 0], [0, 0]], [[1, 0], [0, 1]], [[4, 0], [0, 4]]
    >>> attention(*map(np.array, toy)).round(4)                         # 3/4 of (4, 0) and 1/4 of (0, 4); half of each
    array([[3., 1.],
           [2., 2.]])
    """
    return softmax(queries @ keys.T / math.sqrt(keys.shape[1])) @ values                   # shares [n_tokens, n_tokens]


def linear(rows, weight, bias):
    """Sums of a row's numbers, weighted as learned, once for each number of the result: [n, n_in] -> [n, n_out].

    formula: sums = rows @ weight.T + bias

    >>> linear(np.array([[3, 4]]), weight=np.array([[1, 1], [2, 0], [0, 5]]), bias=np.array([0, 0, 1]))
    array([[ 7,  6, 21]])
    """
    # few rows are multiplied nearly twice as fast from the other side
    sums = rows @ weight.T if len(rows) > 64 else np.ascontiguousarray((weight @ np.ascontiguousarray(rows.T)).T)
    return np.add(sums, bias, out=sums)


# What a layer has learned, in pairs: (weight [n_out, n_in], bias [n_out]), or (gain, shift) of a norm, each [dim].
#     qkv   [3 * dim, dim]: queries, keys and values in one product
#     mix   [dim, dim]: mixes what the heads have read          norm_1    after reading
#     up    [inner, dim], down [dim, inner]: the feed-forward   norm_2    after it
Layer = namedtuple("Layer", "qkv mix norm_1 up down norm_2")


def heads_of(hidden, layer, n_heads):
    """(queries, keys, values) of each head, every one [n_tokens, dim / n_heads] (Vaswani 2017, section 3.2.2)."""
    parts = np.split(linear(hidden, *layer.qkv), 3 * n_heads, axis=1)
    return list(zip(parts[:n_heads], parts[n_heads:2 * n_heads], parts[2 * n_heads:]))


def layer_by_definition(hidden, layer, n_heads, epsilon, activate):
    """Read the other pieces, then think about each alone; add what was there before, and norm, both times.

    formula: middle = layer_norm(hidden + linear(concatenate(heads), mix))
    formula: hidden = layer_norm(middle + linear(activate(linear(middle, up)), down))
    (Vaswani 2017, sections 3.1 to 3.3; Devlin 2019 put GELU in the place of ReLU.)
    """
    heads = [attention(*head) for head in heads_of(hidden, layer, n_heads)]                # n_heads of [n_tokens, d]
    middle = layer_norm(hidden + linear(np.concatenate(heads, axis=1), *layer.mix), *layer.norm_1, epsilon)
    inner = activate(linear(middle, *layer.up))                                            # [n_tokens, inner]
    return layer_norm(middle + linear(inner, *layer.down), *layer.norm_2, epsilon)         # [n_tokens, dim]


def mean_pool(rows):
    """A text's vector is the mean of its rows, those of [CLS] and [SEP] too (Reimers and Gurevych 2019, section 3).

    formula: vector = sum(rows) / n_tokens

    >>> mean_pool(np.array([[1, 3], [5, 5]]))
    array([3., 4.])
    """
    return rows.mean(axis=-2)                                          # [..., n_tokens, dim] -> [..., dim]


# by their names in a pooling's settings: some models are trained to make the row of [CLS] the vector of the text
POOLINGS = {"mean": mean_pool, "cls": lambda rows: rows[..., 0, :]}    # [..., n_tokens, dim] -> [..., dim]


def unit(vectors):
    """Scaled to length 1, so that a dot product of two vectors is their cosine; zeros stay zeros.

    formula: scaled = vector / sqrt(sum(vector * vector))

    >>> unit(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    return vectors / np.maximum(1e-12, np.sqrt((vectors * vectors).sum(axis=-1, keepdims=True)))       # / [..., 1]


# -- The fast form: many texts in one array, in place, a block that fits the cache at a time ---------------------------

# x / (1 + exp(x * p(x * x))) is x times the normal probability, to 7e-8, if p has these factors, of the highest power
# first. They come from weighted least squares, weighted anew until the greatest error was least; the highest power's is
# negative, so p is too, however large x is.
NORMAL = (-3.6187259e-09, 2.67293707e-07, -7.94622597e-06, 0.000110555881, 6.59095265e-05, -0.0726678227, -1.59576899)


def gelu(x):
    """gelu_by_definition of float32 numbers, in place: 17 passes over x, and no erf, which NumPy does not have."""
    with np.errstate(over="ignore"):                                   # exp(x) = inf is right: x / inf = 0
        square = x * x
        exponent = square * NORMAL[0] + NORMAL[1]
        for coefficient in NORMAL[2:]:                                 # Horner's rule
            exponent *= square
            exponent += coefficient
        exponent *= x
        np.exp(exponent, out=exponent)
    return np.divide(x, np.add(exponent, 1, out=exponent), out=x)


def gelu_tanh(x):
    """GELU's older approximation through tanh, with which some models were trained, in place: errors up to 5e-4.

    formula: gelu = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2
    """
    return np.multiply(x, 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))), out=x)


# by their names in config.json: (as defined, fast and in place)
ACTIVATIONS = {"gelu": (gelu_by_definition, gelu), "relu": (lambda x: np.maximum(x, 0, out=x),) * 2,
               "gelu_new": (gelu_tanh, gelu_tanh), "gelu_pytorch_tanh": (gelu_tanh, gelu_tanh)}


def blocks(rows):
    """`rows` [n, width] cut into views of about BLOCK numbers."""
    return np.array_split(rows, -(-rows.size // BLOCK)) if rows.size > BLOCK else [rows]   # splitting takes 10 µs


def add_and_norm(rows, before, gain, shift, epsilon):
    """layer_norm(before + rows), written over `rows`."""
    for part, old in zip(blocks(rows), blocks(before)):
        part += old
        part -= part.mean(axis=1, keepdims=True)
        variance = np.einsum("td,td->t", part, part) / part.shape[1]   # [n_tokens, dim] -> [n_tokens]
        part *= (1 / np.sqrt(variance + epsilon))[:, None]
        part *= gain
        part += shift
    return rows


def attend(qkv, runs, n_heads):
    """Attention in every head of every text: [n_tokens, 3 * dim] -> [n_tokens, dim]. Scales the queries in place."""
    dim = qkv.shape[1] // 3
    qkv[:, :dim] /= math.sqrt(dim // n_heads)                          # fewer numbers to divide than scores
    attended = np.empty((len(qkv), dim), np.float32)
    for start, n_texts, length in runs:
        rows, shape = slice(start, start + n_texts * length), (n_texts, length, -1, n_heads, dim // n_heads)
        views = qkv[rows].reshape(shape).transpose(2, 0, 3, 1, 4)      # -> [3, n_texts, n_heads, length, d]
        # subtle: both are views, so what is written to `out` is written to `attended`; -1 is 3 above, here 1
        [out] = attended[rows].reshape(shape).transpose(2, 0, 3, 1, 4)
        step = max(1, 8 * BLOCK // (n_texts * length * length))        # heads at a time
        for first in range(0, n_heads, step):
            _attend(*views[:, :, first:first + step], out[:, first:first + step])
    return attended


def _attend(queries, keys, values, out):
    scores = queries @ keys.swapaxes(-1, -2)                           # [..., length, d] @ [..., d, length]
    # subtle: shares stay the same whatever is subtracted from a row; so nothing is, where exp is safe from overflow
    if not -60 < scores.min() <= scores.max() < 60:
        scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    np.matmul(scores, values, out=out)                                 # -> [..., length, d]
    out /= np.einsum("...qk->...q", scores)[..., None]                 # softmax's division, done on d numbers a row


def fast_layer(hidden, runs, layer, n_heads, epsilon, activate):
    """layer_by_definition for the texts of a batch: [n_tokens, dim] -> [n_tokens, dim]."""
    attended = attend(linear(hidden, *layer.qkv), runs, n_heads)
    middle = add_and_norm(linear(attended, *layer.mix), hidden, *layer.norm_1, epsilon)
    inner = linear(middle, *layer.up)                                  # [n_tokens, inner]
    for part in blocks(inner):
        activate(part)
    return add_and_norm(linear(inner, *layer.down), middle, *layer.norm_2, epsilon)


# -- A model: its settings, its weights, its word pieces ---------------------------------------------------------------

COUNTS = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size", "vocab_size",
          "max_position_embeddings", "type_vocab_size")                # of config.json: nothing of it is written here


class TruncationWarning(UserWarning):
    """Some texts are longer than what the model reads."""


class Bert:
    """A BERT-shaped model, read from `folder`: config.json, tokenizer.json, *.safetensors.

    layers      a Layer for each                            max_tokens  how many word pieces it reads, with specials
    tables      of word pieces, places and types            tokenizer   cuts a text into word pieces

    Raises UnsupportedModel for a model of another shape, ValueError for files that are missing, damaged or do not fit
    one another.
    """

    def __init__(self, folder):
        self.folder = folder = Path(folder)
        self.config = config = _read_config(folder / "config.json")
        dim, n_heads, n_layers, inner, n_pieces, n_places, n_types = (config[name] for name in COUNTS)
        self.stored = model_files.read_weights(folder)
        self.tables = [self._take(f"embeddings.{name}_embeddings.weight", n, dim)
                       for name, n in (("word", n_pieces), ("position", n_places), ("token_type", n_types))]
        self.norm = self._pair("embeddings.LayerNorm", dim)
        self.layers = [self._layer(f"encoder.layer.{number}.", dim, inner) for number in range(n_layers)]
        if extra := [name for name in self.stored if name.startswith("encoder.layer.")]:
            raise ValueError(f"{folder} holds the weights {min(extra)}, for which its config.json has no place")
        self.n_heads, self.epsilon = n_heads, config["layer_norm_eps"]
        self.define, self.activate = ACTIVATIONS[config["hidden_act"]]
        self.tokenizer = model_files.read_tokenizer(folder, n_pieces)
        self.max_tokens = model_files.max_tokens(folder, n_places)

    def _take(self, name, *shape):
        if (weights := self.stored.pop(name, np.empty(0))).shape != shape:           # (0,): it is missing
            raise ValueError(f"{self.folder}: {name} must have the shape {shape}, not {weights.shape}: wrong weights")
        return weights

    def _pair(self, name, *shape):
        return self._take(f"{name}.weight", *shape), self._take(f"{name}.bias", shape[0])

    def _layer(self, name, dim, inner):
        three = [self._pair(f"{name}attention.self.{part}", dim, dim) for part in ("query", "key", "value")]
        parts = [("attention.output.dense", dim, dim), ("attention.output.LayerNorm", dim),
                 ("intermediate.dense", inner, dim), ("output.dense", dim, inner), ("output.LayerNorm", dim)]
        return Layer([*map(np.concatenate, zip(*three))], *(self._pair(name + part, *shape) for part, *shape in parts))

    def states(self, ids, types):
        """By definition: `hidden` of one text, before the first layer and after each, [n_tokens, dim] every time."""
        states = [layer_norm(embed(ids, np.arange(len(ids)), types, *self.tables), *self.norm, self.epsilon)]
        for layer in self.layers:
            states.append(layer_by_definition(states[-1], layer, self.n_heads, self.epsilon, self.define))
        return states

    def forward(self, ids, types, runs):
        """The last `hidden` of the texts of a batch, one after another: float32 [n_tokens, dim]."""
        places = np.concatenate([np.tile(np.arange(length), n_texts) for _, n_texts, length in runs])
        hidden = layer_norm(embed(ids, places, types, *self.tables), *self.norm, self.epsilon)
        for layer in self.layers:
            hidden = fast_layer(hidden, runs, layer, self.n_heads, self.epsilon, self.activate)
        return hidden

    def _read(self, texts, what="texts"):
        """The tokenizer's reading of texts, or of pairs of texts, not cut. Warns of those that will be."""
        encodings = self.tokenizer.encode_batch(texts)
        warn_of_cuts(list(map(len, encodings)), self.max_tokens, what, stacklevel=3)
        return encodings

    def run(self, texts, finish, width, batch_size=None):
        """finish(hidden, runs) -> [n_texts, width] of texts given as (ids, types), in batches: float32 [n, width]."""
        rows = np.empty((len(texts), width), np.float32)

        def work(batch):
            ids, types = (np.concatenate(each) for each in zip(*(texts[position] for position in batch)))
            runs = runs_of([len(texts[position][0]) for position in batch])
            rows[batch] = finish(self.forward(ids, types, runs), runs)
        for_each(work, batches([len(ids) for ids, _ in texts], batch_size))
        return rows


def batches(lengths, batch_size=None):
    """Positions of texts, the longest first, in lists of about BATCH word pieces, or fewer so that all cores have some.

    >>> batches([3, 9, 5, 9], batch_size=3)
    [[1, 3, 2], [0]]
    """
    order = sorted(range(len(lengths)), key=lambda position: -lengths[position])
    most = min(BATCH, max(BATCH // 8, -(-sum(lengths) // CORES)))
    ends = itertools.accumulate(lengths[position] for position in order)
    numbers = (place // batch_size if batch_size else (end - 1) // most for place, end in enumerate(ends))
    return [list(batch) for _, batch in itertools.groupby(order, lambda position: next(numbers))]


def runs_of(lengths):
    """The runs of texts of equal length: [(start, n_texts, length)], starts counted in word pieces.

    >>> runs_of([9, 9, 5])
    [(0, 2, 9), (18, 1, 5)]
    """
    groups = [(len(list(group)), length) for length, group in itertools.groupby(lengths)]
    starts = itertools.accumulate((n_texts * length for n_texts, length in groups), initial=0)
    return [(start, *group) for start, group in zip(starts, groups)]


def for_each(work, batches):
    """work(batch) for every batch, several at a time, each on one core; with a progress bar if it takes long."""
    if len(batches) < 2:                                               # its products spread over the cores themselves
        return [work(batch) for batch in batches]
    from threadpoolctl import threadpool_limits

    # subtle: the limit is the whole process's, and two that set it at once would not restore it; hence the lock
    with ONE_AT_A_TIME, threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(CORES) as pool:
        return list(tqdm(pool.map(work, batches), total=len(batches), unit="batch", delay=2, leave=False, disable=None))


def _read_config(path):
    config = model_files.read_settings(path)
    here = {"model_type": ["bert"], "position_embedding_type": ["absolute", None], "is_decoder": [False, None],
            "hidden_act": ACTIVATIONS}
    if other := [f"{name} {config.get(name)!r}" for name, known in here.items() if config.get(name) not in list(known)]:
        raise model_files.UnsupportedModel(f"{path} asks for {', '.join(other)}: try backend='sentence-transformers'")
    model_files.check_formats(path.parent)
    counts, epsilon = [config.get(name) for name in COUNTS], config.get("layer_norm_eps")
    if not all(isinstance(n, int) and n > 0 for n in counts) or counts[0] % counts[1] or not (
            isinstance(epsilon, float) and 0 < epsilon < 1):
        raise ValueError(f"{path}: layer_norm_eps cannot be {epsilon!r}, or {', '.join(COUNTS)} cannot be {counts}")
    return config


def warn_of_cuts(lengths, limit, what, stacklevel):
    """Warn (TruncationWarning) if some of the `lengths`, in word pieces, are beyond the limit."""
    if n_cut := sum(length > limit for length in lengths):
        warnings.warn(f"{n_cut} of {len(lengths)} {what} have more than the {limit} word pieces that the model reads "
                      f"(up to {max(lengths)}): only their beginning counts", TruncationWarning, stacklevel + 1)


# -- Text in, vectors out ----------------------------------------------------------------------------------------------


class Encoder(Bert):
    """A sentence encoder from `folder`: as Bert, and modules.json says how the rows become one vector (mean or [CLS]).

    dimensions  how many numbers a vector has

    Raises as Bert, and UnsupportedModel for other poolings and further steps.
    """

    def __init__(self, folder):
        transformer, self.pool, self.normalize = _steps(Path(folder))
        super().__init__(transformer)
        self.dimensions = self.config["hidden_size"]

    def encode(self, texts, prefix="", batch_size=None):
        """The vectors of `texts`, `prefix` in front of each: float32 [n, dimensions], of length 1 if the model says so.

        Texts of like length share a batch, of at most `batch_size` texts if that is given, which moves a vector by
        about 1e-7. With batch_size=1 (slower) a vector is the same to the last bit, whatever else is encoded.

        Warns (TruncationWarning) of texts with more than max_tokens word pieces, whose rest is not read. Raises
        TypeError for a bare string or for texts that are no strings.
        """
        batch_size = None if batch_size is None else ranking.check_k(batch_size, least=1, name="batch_size")
        [prefix], texts = check_texts([prefix]), check_texts(texts)
        pieces = [cut(each.ids, self.max_tokens) for each in self._read([prefix + text for text in texts])]
        vectors = self.run([(ids, [0] * len(ids)) for ids in pieces], self._pool, self.dimensions, batch_size)
        return unit(vectors) if self.normalize else vectors

    def token_vectors(self, text):
        """(the last hidden [n_tokens, dim] of one text, offsets int [n_tokens, 2]): where each piece stands in `text`.

        Specials stand at (0, 0). Warns as encode does: then only the first max_tokens pieces are there.
        """
        [encoding] = self._read(check_texts([text]))
        ids, offsets = cut(encoding.ids, self.max_tokens), cut(encoding.offsets, self.max_tokens)
        return self.forward(ids, [0] * len(ids), [(0, 1, len(ids))]), np.array(offsets)

    def count_tokens(self, text):
        """How many word pieces `text` has, specials included, without cutting: compare with max_tokens."""
        return len(self.tokenizer.encode(*check_texts([text])).ids)

    def _pool(self, hidden, runs):
        return np.concatenate([self.pool(hidden[start:start + n_texts * length].reshape(n_texts, length, -1))
                               for start, n_texts, length in runs])    # [n_tokens, dim] -> [n_texts, dim]


def limits(folder):
    """(max_tokens, dimensions) of the sentence encoder in `folder`, from its settings alone. Raises as Encoder does."""
    transformer, _, _ = _steps(Path(folder))
    config = _read_config(transformer / "config.json")
    return model_files.max_tokens(transformer, config["max_position_embeddings"]), config["hidden_size"]


def _steps(folder):
    """(the transformer's folder, the pooling, whether to normalise) by modules.json."""
    kinds, paths = zip(*model_files.read_steps(folder) or [("none", folder)])
    if kinds not in (("Transformer", "Pooling"), ("Transformer", "Pooling", "Normalize")):
        raise model_files.UnsupportedModel(f"{folder}: here are Transformer, Pooling and Normalize, not {list(kinds)}")
    return paths[0], _pooling(model_files.read_settings(paths[1] / "config.json")), len(kinds) > 2


def _pooling(settings):
    """What makes one vector of rows, by the settings of a pooling: a name, in older files one flag for each way."""
    flags = [name.split("_")[2] for name in settings if name.startswith("pooling_mode_") and settings[name] is True]
    way = settings.get("pooling_mode") or " and ".join(flags)
    if way not in POOLINGS or not settings.get("include_prompt", True):
        raise model_files.UnsupportedModel(f"here are the poolings {' and '.join(POOLINGS)}, but not {settings}")
    return POOLINGS[way]


class CrossEncoder(Bert):
    """A model that reads two texts as one, [CLS] question [SEP] text [SEP], and scores how well they fit.

    n_labels is how many numbers a pair gets; max_tokens may be lowered. Raises as Bert.
    """

    def __init__(self, folder):
        super().__init__(folder)
        self.n_labels, dim = len(self.config.get("id2label") or ["0", "1"]), self.config["hidden_size"]
        if self.config.get("architectures") != ["BertForSequenceClassification"] or len(self.tables[2]) < 2:
            raise ValueError(f"{folder} holds a model of the kind {self.config.get('architectures')}: no cross-encoder")
        self.pooler = self._pair("pooler.dense", dim, dim)             # [dim, dim]
        self.classifier = self._pair("classifier", self.n_labels, dim)

    def predict(self, pairs, batch_size=None):
        """The logits of (question, text) pairs: float32 [n, n_labels]; 1 / (1 + exp(-logit)) makes a probability.

        Of a pair that is too long, the longer text is cut first. Warns of those; raises TypeError for other pairs.
        """
        encodings = self._read([tuple(check_texts(pair)) for pair in pairs], "pairs")
        pieces = [self._cut(each.ids, sum(each.type_ids)) for each in encodings]
        return self.run(pieces, self._logits, self.n_labels, batch_size)

    def _cut(self, ids, n_b):
        n_a = len(ids) - n_b                                           # [CLS] a [SEP], and b [SEP]
        keep_a, keep_b = longest_first(n_a - 2, n_b - 1, self.max_tokens - 3)
        return (cut(ids[:n_a], keep_a + 2) + cut(ids[n_a:], keep_b + 1), [0] * (keep_a + 2) + [1] * (keep_b + 1))

    def _logits(self, hidden, runs):
        """From the row of [CLS] of each text (Devlin 2019, section 4.1).

        formula: logits = linear(tanh(linear(cls, pooler)), classifier)
        """
        cls = np.concatenate([hidden[start:start + n_texts * length:length] for start, n_texts, length in runs])
        return linear(np.tanh(linear(cls, *self.pooler)), *self.classifier)                # -> [n_texts, n_labels]


def cut(pieces, keep):
    """The first `keep` word pieces, of which the last stays the special that ends a text.

    >>> cut(["[CLS]", "birds", "fly", "high", "[SEP]"], 4)
    ['[CLS]', 'birds', 'fly', '[SEP]']
    """
    return pieces if len(pieces) <= keep else [*pieces[:keep - 1], pieces[-1]]


def longest_first(n_a, n_b, room):
    """How much of two texts is kept if they have room for `room` pieces together: the longer one is cut first.

    >>> longest_first(4, 100, 20), longest_first(100, 100, 21), longest_first(4, 5, 20)
    ((4, 16), (10, 11), (4, 5))
    """
    keep_a = min(n_a, max(room - n_b, (room + (n_a > n_b)) // 2))      # of equal texts the second keeps the odd piece
    return keep_a, min(n_b, room - keep_a)


def check_texts(texts):
    """`texts` as a list. Raises TypeError unless they are strings, ValueError for half a character (a surrogate)."""
    if isinstance(texts, (str, bytes, dict)):
        raise TypeError("texts must be a list of strings: for one text write [text]")
    for number, text in enumerate(texts := list(texts)):
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings; number {number} is a {type(text).__name__}"
                            + (": pass its \"text\"" if isinstance(text, dict) else ""))
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"text number {number} holds half a character (a surrogate): it was decoded from bytes "
                             "in a wrong way; decode with errors='replace'") from None
    return texts


# -- The lesson: python encoder.py "a sentence" ------------------------------------------------------------------------

SENTENCES = ("A kitten sleeps on the sofa.", "On the couch lies a young cat.", "Interest rates rose again in March.")


def first_head(encoder, text):
    """(tokens, what the last layer's first head reads: shares [n_tokens, n_tokens], `states`) of a text."""
    encoding = encoder.tokenizer.encode(text)
    ids, tokens = (cut(each, encoder.max_tokens) for each in (encoding.ids, encoding.tokens))
    states = encoder.states(ids, [0] * len(ids))
    [queries, keys, _], *_ = heads_of(states[-2], encoder.layers[-1], encoder.n_heads)    # [n_tokens, d]
    return tokens, attention(queries, keys, np.eye(len(ids))), states                      # shares of the unit matrix


def show(encoder, text="birds fly"):
    """Print how `text` becomes a vector: word pieces, shapes, what the last layer's first head reads, and cosines."""
    print("toy, attended:", attention(2**0.5 * np.log([[3, 1], [1, 1]]), np.eye(2), 4 * np.eye(2)).round(2).tolist())
    tokens, shares, states = first_head(encoder, text)
    for number, hidden in enumerate(states):
        print(f"after layer {number}: {list(hidden.shape)}, the row of {tokens[1]!r}: {hidden[1, :4].round(3)} ...")
    print("\nLast layer, first head: what percentage each word piece (row) reads of each (column)")
    for token, row in zip(tokens, shares):
        print(f"{token:>12} |{''.join(' ░▒▓█'[int(4.99 * share)] for share in row)}|", *(100 * row).astype(int))
    a, b, c, vector = encoder.encode([*SENTENCES, text])
    print(f"\nvector, {len(vector)} numbers: {vector[:4].round(4)} ...\n{SENTENCES[0]!r}: cosine {a @ b:.2f} with "
          f"{SENTENCES[1]!r}, {a @ c:.2f} with {SENTENCES[2]!r}")


def check(encoder, folder, n=2000):
    """Compare with sentence-transformers, over n texts of 0 to 600 words from scikit-learn's descriptions."""
    import documents
    from sentence_transformers import SentenceTransformer

    words = " ".join(document["text"] for document in documents.load_descriptions()).split() * 2
    texts = [" ".join(words[start % (len(words) // 2):][:start % 601]) for start in range(0, 7 * n, 7)]
    ours, theirs = encoder.encode(texts), SentenceTransformer(str(folder)).encode(texts)   # [n, dim]
    steps = [np.diff(theirs[ranking.top_k(ours @ query, 10)] @ query).max() for query in ours]     # > 0: swapped
    print(f"{n} texts: differences up to {abs(ours - theirs).max():.1e}, {sum(np.greater(steps, 1e-6))} other rankings")


def draw(encoder, path, text="A kitten sleeps on the sofa because it is tired."):
    """The shares that `show` prints, as a picture: each row is a word piece that reads, each column one it reads."""
    from matplotlib import colors, figure

    tokens, shares, _ = first_head(encoder, text)                      # [n_tokens, n_tokens]
    picture = figure.Figure(figsize=(7, 6.2), layout="constrained")
    axes, places = picture.subplots(), range(len(tokens))
    # subtle: [CLS] gets most, so the scale goes by the square root, or all other cells would look empty
    shown = axes.imshow(shares, cmap="Blues", norm=colors.PowerNorm(0.5, 0, 1))
    picture.colorbar(shown, shrink=0.8, ticks=[0, 0.01, 0.05, 0.2, 0.5, 1], label="share of what the row reads")
    axes.set(yticks=places, yticklabels=tokens, title=f"What the last layer's first head reads in\n{text!r}")
    axes.set_xticks(places, tokens, rotation=60, ha="right", rotation_mode="anchor")
    picture.savefig(path, dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    folder = model_files.find_folder("all-MiniLM-L6-v2")
    if sys.argv[1:] == ["--check"]:
        check(Encoder(folder), folder)
    elif sys.argv[1:] == ["--picture"]:
        draw(Encoder(folder), Path(__file__).parent / "results" / "attention.png")
    else:
        show(Encoder(folder), " ".join(sys.argv[1:]) or "birds fly")
