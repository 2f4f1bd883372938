"""What several test files share: no network, a cache of their own, one embedder and its oracle, small random models."""

import os

import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"                   # before any import of the hub's library
CACHE = tempfile.TemporaryDirectory()                # and never the cache of whoever runs the tests
os.environ["RAG_IN_NUMPY_CACHE"] = os.path.join(CACHE.name, "vectors.sqlite")

import contextlib                                    # noqa: E402
import json                                          # noqa: E402
import threading                                     # noqa: E402
from http.server import ThreadingHTTPServer          # noqa: E402

import pytest                                        # noqa: E402
from hypothesis import Phase, settings               # noqa: E402

# The suite is the same in every run; HYPOTHESIS_PROFILE=search looks for new counterexamples, and takes its time.
settings.register_profile("suite", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("search", max_examples=2000, deadline=None)
# for `make mutants`: a test only has to fail, so nothing is shrunk
settings.register_profile("mutants", max_examples=15, deadline=None, derandomize=True,
                          phases=[Phase.explicit, Phase.generate])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

WORDS = "the a cat dog sat on mat chased birds fly quick carry over unused leave days next year query : passage".split()


@pytest.fixture(scope="session")
def embedder():
    """The default embedder, all-MiniLM-L6-v2, the very one that rag.py uses."""
    import rag

    return rag.embedder()


@pytest.fixture(scope="session")
def descriptions(embedder):
    """The fourteen descriptions: ({doc_id: text}, their Index as rag.py makes it), which no test changes."""
    import corpus
    import documents

    docs = documents.load_descriptions()
    return {each["id"]: each["text"] for each in docs}, corpus.open_index(docs, embedder)


@pytest.fixture(scope="session")
def library():
    """The same model run by sentence-transformers, the oracle; its own object is library._model.model."""
    import embedding

    return embedding.load_embedder(backend="sentence-transformers")


@pytest.fixture(scope="session")
def random_bert(tmp_path_factory):
    """random_bert(labels=0): a folder with a small BERT of seeded random weights that reads 64 word pieces.

    Without labels it is an embedding model (mean of 32 numbers), with labels a cross-encoder.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel, BertTokenizer

    def make(labels=0):
        folder = tmp_path_factory.mktemp("bert")
        letters = "bcdefghijklmnopqrstuvwxyz"        # "a" is a word already
        pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, "##a", *("##" + x for x in letters)]
        BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}).save_pretrained(folder)
        config = BertConfig(vocab_size=len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                            intermediate_size=64, max_position_embeddings=64, initializer_range=0.3,
                            num_labels=labels or 1)
        torch.manual_seed(0)
        (BertForSequenceClassification if labels else BertModel)(config).save_pretrained(folder)
        if not labels:
            write_settings(folder, "modules.json", [
                {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])
            write_settings(folder, "sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": False})
            write_settings(folder, "1_Pooling/config.json",
                           {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
        return folder
    return make


def write_settings(folder, name, content):
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(content))


@contextlib.contextmanager
def in_claudes_place(handler, monkeypatch, tmp_path, **attributes):
    """A server in Claude's place; neither the variables nor the profile of whoever runs the tests decide anything."""
    import llm

    for name in [name for name in os.environ if name.startswith(("ANTHROPIC_", "RAG_QUERY", "RAG_MODEL"))]:
        monkeypatch.delenv(name)
    made = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    made.daemon_threads, made.requests = True, []
    vars(made).update(attributes)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    for name, value in (("HOME", str(tmp_path)), ("NO_PROXY", "127.0.0.1"), ("ANTHROPIC_API_KEY", "sk-test"),
                        ("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{made.server_port}")):
        monkeypatch.setenv(name, value)
    llm._client.cache_clear()
    yield made
    llm._client.cache_clear()
    made.shutdown()
    made.server_close()
