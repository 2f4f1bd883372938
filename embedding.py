"""Step 11 of 22 — Text in, unit vectors out: which model, its limits, and a cache. Before: encoder.py. Next: index.py.

An embedding model turns a text into a point so that texts about the same thing lie close together. All points have
distance 1 from the origin, so that the cosine of two texts is the dot product of their vectors (toy: 0.6 * 0.8 +
0.8 * 0.6 = 0.96). This module decides everything around the model: who runs it, what must stand in front of a question
and of a document, how many word pieces it reads, how long vectors are, and which texts were embedded before.

    texts        strings; a text is a question (kind="query") or a chunk (kind="document")
    prefix       what a model wants to see in front of a text of that kind       all-MiniLM-L6-v2: nothing
    word piece   a word or a part of one, what the model reads one at a time     "carbonara" -> carbon ##ara
    token        here and later: a word piece, not one of bm25.py's tokens
    specials     word pieces that stand for no text: [CLS] first and [SEP] last
    max_tokens   how many word pieces it reads, specials included                256; the rest is cut, with a warning
    vector       one row of `dimensions` numbers, of length 1                    384
    offsets      where a word piece stands in its text: (start, end) in characters; specials have (0, 0)
    backend      who runs the model: "numpy" (encoder.py), which can do what is shaped like BERT, or the library
                 "sentence-transformers", which can do nearly all, but takes seconds to start
    cache        a file of vectors (vector_cache.py), so that only new texts are embedded

Trap: this model's tokenizer.json says "cut at 128, and fill up to 128", which is right neither for counting nor for
embedding. Nothing here relies on it: counting turns both off, embedding cuts at max_tokens.

Not here: training, images; models that are no transformers (they have no vector for each word piece).
"""

import functools
import os
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
from tqdm import tqdm

import encoder
import model_files
import ranking
import vector_cache

KINDS = ("query", "document")
PORTION = 1000          # texts that are embedded before their vectors are put into the cache
SHORT = 64              # word pieces of a text whose token vectors are kept as well: at most 100 KB

# What well-known families were trained to see in front of a text; the first pattern that fits the name counts. Without
# it they still answer, only worse, and nothing says so. A model's own settings (its "prompts") come before this table.
PREFIXES = (
    (r"\be5-.*instruct", {"query": "Instruct: Given a web search query, retrieve relevant passages that answer the "
                                   "query\nQuery: ", "document": ""}),
    (r"\be5-(small|base|large)", {"query": "query: ", "document": "passage: "}),
    (r"\bbge-(small|base|large)-en", {"query": "Represent this sentence for searching relevant passages: ",
                                      "document": ""}),
    (r"\bbge-(small|base|large)-zh(?!-noinstruct)", {"query": "为这个句子生成表示以用于检索相关文章：", "document": ""}),
    (r"\bnomic-embed-text", {"query": "search_query: ", "document": "search_document: "}),
)


# -- The model ---------------------------------------------------------------------------------------------------------


class Embedder:
    """Turns texts into unit vectors. Made by `load_embedder`.

    name        the model's name or folder, as it was given
    dimensions  how many numbers a vector has
    max_tokens  how many word pieces the model reads, prefix and specials included; what follows is cut
    prefixes    {"query": ..., "document": ...}: what is put in front of each text of that kind
    cache       its VectorCache, which has size() and clear(), or None
    """

    def __init__(self, model, name, dimensions, prefixes, cache=None):
        self.name, self.prefixes, self.max_tokens, self.cache = name, prefixes, model.max_tokens, cache
        self.dimensions = model.dimensions if dimensions is None else dimensions
        if self.dimensions > model.dimensions:
            raise ValueError(f"dimensions must be at most {model.dimensions}, which {name} makes, not {dimensions}")
        self._model = model

    def encode(self, texts, kind="document", batch_size=None):
        """The unit vectors of `texts`, float32 [n, dimensions]; of no texts, [0, dimensions].

        Equal texts get equal vectors, and the order of the texts does not matter. What shares a batch with a text does:
        it moves a vector by about 1e-7. With batch_size=1 (slower) and no cache a vector is the same to the last bit,
        whatever else is embedded; by default a backend decides how large its batches are. Long work has a progress bar.

        Warns (encoder.TruncationWarning) of texts that are longer than what the model reads, when they are embedded,
        not when they come from the cache. Raises TypeError for a bare string or for texts that are no strings,
        ValueError for another kind.
        """
        texts, prefix = encoder.check_texts(texts), self._prefix(kind)
        batch_size = None if batch_size is None else ranking.check_k(batch_size, least=1, name="batch_size")
        texts = [text.removeprefix(prefix) for text in texts]          # the prefix is never there twice
        different = sorted(set(texts), key=lambda text: (-len(text), text))
        if not different:
            return np.zeros((0, self.dimensions), np.float32)
        rows = self._rows(different, prefix, batch_size)               # [n_different, dim]
        # Matryoshka models put the most important numbers first: cut, then scale to length 1 again
        rows = unit_rows(rows[:, :self.dimensions])                    # -> [n_different, dimensions]
        place = {text: row for row, text in enumerate(different)}
        return rows[[place[text] for text in texts]]                   # -> [n, dimensions]

    def _rows(self, texts, prefix, batch_size):
        """The model's own rows [n, dim] of different texts, the known ones from the cache."""
        keys = {text: vector_cache.key_of(self._model.identity, prefix, text) for text in texts} if self.cache else {}
        stored = self.cache.get(keys.values(), self._model.dimensions) if self.cache else {}
        known = {text: stored[key] for text, key in keys.items() if key in stored}
        new = [text for text in texts if text not in known]
        hidden = True if len(new) <= PORTION else None                 # None: a bar, if somebody is watching
        for start in tqdm(range(0, len(new), PORTION), unit=f" x {PORTION} texts", disable=hidden):
            portion = new[start:start + PORTION]
            rows = dict(zip(portion, self._model.encode(portion, prefix, batch_size)))     # each row [dim]
            if self.cache:
                self.cache.put({keys[text]: row for text, row in rows.items()})
            known |= rows
        return np.array([known[text] for text in texts])

    def token_vectors(self, text, kind="document"):
        """The last hidden state of every word piece: (vectors float32 [n_tokens, dim], offsets int [n_tokens, 2]).

        Offsets are character positions in `text`, (0, 0) for what does not stand in it: the specials, and the prefix.
        At most max_tokens word pieces; `dimensions` does not cut these vectors, and they have no particular length.
        """
        prefixed = self._prefixed(text, kind)
        vectors, offsets = self._token_rows(prefixed)
        return vectors, np.maximum(offsets - (len(prefixed) - len(text)), 0)

    def _token_rows(self, text):
        """The model's own token_vectors, those of a short text from the cache: offsets are two more numbers a row."""
        if self.cache is None:
            return self._model.token_vectors(text)
        key, dim = vector_cache.key_of(f"word pieces, {self._model.identity}", "", text), self._model.dimensions
        for rows in self.cache.get([key], dim + 2, many=True).values():                    # [n_tokens, dim + 2]
            return np.ascontiguousarray(rows[:, :dim]), rows[:, dim:].astype(int)
        vectors, offsets = self._model.token_vectors(text)
        if len(vectors) <= SHORT and len(text) < 2**24:                # float32 holds whole numbers up to there
            self.cache.put({key: np.hstack([vectors, offsets])})
        return vectors, offsets

    def count_tokens(self, text, kind="document"):
        """How many word pieces `text` has, specials and prefix included, without cutting: compare with max_tokens."""
        return self._model.count_tokens(self._prefixed(text, kind))

    def _prefix(self, kind):
        if kind not in KINDS:
            raise ValueError(f"kind must be 'query' or 'document', not {kind!r}")
        return self.prefixes[kind]

    def _prefixed(self, text, kind):
        [text] = encoder.check_texts([text])
        prefix = self._prefix(kind)
        return text if text.startswith(prefix) else prefix + text


def load_embedder(name="all-MiniLM-L6-v2", backend=None, cache=None, *, dimensions=None, prefixes=None):
    """Load an embedding model: an Embedder.

    name        a model's name, or a folder that holds one
    backend     "numpy" or "sentence-transformers"; by default "numpy" if it can run this model
    cache       the path of a file for vectors, or None. With a cache, weights are read when the first text comes that
                is not there: until then nobody notices damaged ones, which have no vectors there either
    dimensions  keep only the first so many numbers of each vector (for models trained to allow it: Matryoshka)
    prefixes    {"query": ..., "document": ...}, or one of them: overrides what the model's own settings ask for, which
                overrides the table PREFIXES; "" for none

    Raises FileNotFoundError if the weights are nowhere (with the ways to get them), ValueError if they are damaged or
    incomplete, for a backend that is unknown or cannot run the model (model_files.UnsupportedModel says why), and for
    dimensions that the model does not have.

    >>> embedder = load_embedder()
    >>> vectors = embedder.encode(["a cat sits on a mat", "a kitten lies on a rug", "interest rates rise"])
    >>> vectors.shape, embedder.max_tokens, embedder.count_tokens("a cat sits on a mat")
    ((3, 384), 256, 8)
    >>> bool(vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2])
    True
    """
    if backend not in (None, *BACKENDS):
        raise ValueError(f"there is no backend {backend!r}; there is: {', '.join(map(repr, BACKENDS))}")
    dimensions = None if dimensions is None else ranking.check_k(dimensions, least=1, name="dimensions")
    prefixes = _check_prefixes(prefixes)
    folder = model_files.find_folder(name)
    model_files.check_embedder_files(folder)
    model = _load_model(folder, backend, lazy=cache is not None)
    return Embedder(model, os.fspath(name), dimensions, {**(model.prompts or known_prefixes(name)), **prefixes},
                    None if cache is None else vector_cache.VectorCache(cache))


def _load_model(folder, backend, lazy):
    if backend is None:
        try:
            return NumpyModel(folder, lazy)
        except model_files.UnsupportedModel:
            backend = "sentence-transformers"
    return BACKENDS[backend](folder, lazy)


# -- Vectors and prefixes ----------------------------------------------------------------------------------------------


def unit_rows(vectors):
    """`vectors` [n, dim] with every row scaled to length 1, float32. A row of zeros stays what it is.

    >>> unit_rows([[3.0, 4.0], [0.0, 0.0]]).tolist() == np.float32([[0.6, 0.8], [0.0, 0.0]]).tolist()
    True
    """
    vectors = np.asarray(vectors, dtype=np.float64)                    # subtle: squares of small float32 would vanish
    greatest = abs(vectors).max(axis=1, keepdims=True, initial=0)      # [n, 1]: and of the smallest float64
    vectors = vectors / np.where(greatest == 0, 1, greatest)
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))  # [n, 1]
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def known_prefixes(name):
    """The prefixes of the family that a model's name tells, by kind.

    >>> known_prefixes("intfloat/e5-base-v2")
    {'query': 'query: ', 'document': 'passage: '}
    >>> known_prefixes("all-MiniLM-L6-v2")
    {'query': '', 'document': ''}
    """
    last = Path(name).name.lower()
    return next((prefixes for pattern, prefixes in PREFIXES if re.search(pattern, last)), dict.fromkeys(KINDS, ""))


def own_prefixes(prompts, default=None):
    """The prefixes that a model's own settings ask for, by kind, or None if they ask for none.

    `prompts` and `default` are "prompts" and "default_prompt_name" in the model's config_sentence_transformers.json.

    >>> own_prefixes({"query": "search_query: ", "passage": "search_document: "})
    {'query': 'search_query: ', 'document': 'search_document: '}
    >>> own_prefixes({"query": "", "document": ""}) is None
    True
    """
    query = prompts.get("query") or ""
    # subtle: whoever calls it "passage" may have an empty "document" beside it, which must not hide it
    document = next((prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), "")
    if query or document:
        return {"query": query, "document": document}
    if default and prompts.get(default):
        return dict.fromkeys(KINDS, prompts[default])
    return None


# -- Who runs the model ------------------------------------------------------------------------------------------------


class NumpyModel:
    """One backend: encoder.py. A backend has three methods and four attributes.

    max_tokens and dimensions are the model's own; prompts is what `own_prefixes` found in its settings; identity, a
    string, is another one for whatever makes other vectors (without a cache: None). Texts come here with their prefix
    in front, except to `encode`: some models leave the prefix out of their average. lazy, for use with a cache: the
    weights are read when they are needed.
    """

    def __init__(self, folder, lazy=False):
        self.folder = folder
        self.max_tokens, self.dimensions = encoder.limits(folder)
        path = Path(folder) / "config_sentence_transformers.json"
        settings = model_files.read_settings(path) if path.is_file() else {}
        self.prompts = own_prefixes(settings.get("prompts") or {}, settings.get("default_prompt_name"))
        self.identity = self._look() if lazy else None
        if not lazy:
            self.encoder                                               # read now, so that damage is noticed now

    def _look(self):
        # subtle: who changes the code wants to see what that changes, not the vectors of the day before
        code = " ".join(map(model_files.sha256_of, (encoder.__file__, model_files.__file__)))
        return f"numpy {code} tokenizers {version('tokenizers')} {model_files.fingerprint(self.folder)}"

    @functools.cached_property
    def encoder(self):
        """The Encoder, read when it is first needed."""
        loaded = encoder.Encoder(self.folder)
        if self.identity not in (None, self._look()):
            raise ValueError(f"the files in {self.folder} have changed since load_embedder looked at them: load again")
        return loaded

    def encode(self, texts, prefix, batch_size=None):
        """One row for each text [n, dim], of whatever length the model gives it."""
        return self.encoder.encode(texts, prefix, batch_size)

    def token_vectors(self, text):
        """(vectors float32 [n_tokens, dim], offsets int [n_tokens, 2]) of the first max_tokens word pieces."""
        return self.encoder.token_vectors(text)

    def count_tokens(self, text):
        """How many word pieces, specials included, without cutting."""
        return self.encoder.count_tokens(text)


class SentenceTransformersModel:
    """The other backend, the library sentence-transformers: as NumpyModel, but never lazy."""

    def __init__(self, folder, lazy=False):
        from sentence_transformers import SentenceTransformer

        with model_files.quiet_loading(folder):
            self.model = SentenceTransformer(str(folder), local_files_only=True, model_kwargs={"dtype": "float32"})
        model_files.check_tensors(self.model[0].auto_model, folder)
        self.max_tokens = self.model.max_seq_length
        positions = getattr(self.model[0].auto_model.config, "max_position_embeddings", self.max_tokens)
        if not isinstance(self.max_tokens, int) or not 3 <= self.max_tokens <= positions:
            raise ValueError(f"max_seq_length is {self.max_tokens!r}, but the model has {positions} positions")
        self.dimensions = self.model.get_embedding_dimension()
        self.prompts = own_prefixes(self.model.prompts, self.model.default_prompt_name)
        names = ("sentence-transformers", "transformers", "tokenizers", "torch")
        self.identity = " ".join([*map(version, names), model_files.fingerprint(folder)]) if lazy else None

    def encode(self, texts, prefix, batch_size=None):
        """As NumpyModel's."""
        encoder.warn_of_cuts(self._lengths([prefix + text for text in texts]), self.max_tokens, "texts", stacklevel=1)
        # subtle: prompt= even where it is empty, or the model's default prompt would be put in front as well
        return self.model.encode(texts, prompt=prefix, batch_size=batch_size or 32, show_progress_bar=False)

    def token_vectors(self, text):
        """As NumpyModel's."""
        import torch

        encoder.warn_of_cuts(self._lengths([text]), self.max_tokens, "texts", stacklevel=1)
        read = self.model.tokenizer(text, truncation=True, max_length=self.max_tokens, padding=False,
                                    return_offsets_mapping=True, return_tensors="pt")
        offsets = read.pop("offset_mapping")[0].numpy()                # [n_tokens, 2]
        with torch.inference_mode():
            hidden = self.model[0](dict(read.to(self.model.device)))["token_embeddings"][0]
        return hidden.float().cpu().numpy(), offsets                   # [n_tokens, dim], [n_tokens, 2]

    def count_tokens(self, text):
        """As NumpyModel's."""
        return self._lengths([text])[0]

    def _lengths(self, texts):
        # verbose=False: the tokenizer would complain about every text that is longer than the model reads
        pieces = self.model.tokenizer(texts, truncation=False, padding=False, verbose=False)["input_ids"]
        return list(map(len, pieces))


BACKENDS = {"numpy": NumpyModel, "sentence-transformers": SentenceTransformersModel}


# -- Checks ------------------------------------------------------------------------------------------------------------


def _check_prefixes(prefixes):
    prefixes = dict(prefixes or {})
    for kind, prefix in prefixes.items():
        if kind not in KINDS or not isinstance(prefix, str):
            raise ValueError(f"prefixes must be a dict of strings for 'query' and 'document', not {kind!r}: {prefix!r}")
    return prefixes


if __name__ == "__main__":
    from toy import DOCUMENTS, QUESTION

    embedder = load_embedder()
    [query_vector] = embedder.encode([QUESTION], kind="query")         # [1, dim] -> [dim]
    cosines = embedder.encode(DOCUMENTS) @ query_vector                # [n, dim] @ [dim] -> [n]
    print(f"{embedder.name}: {embedder.dimensions} numbers a text, reads {embedder.max_tokens} word pieces")
    for position in ranking.top_k(cosines, len(cosines)):
        text = DOCUMENTS[position]
        print(f"cosine {cosines[position]:.2f} with {QUESTION!r}  {embedder.count_tokens(text)} word pieces  {text!r}")
