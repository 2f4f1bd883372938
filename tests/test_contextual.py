"""Second half of the lesson on contexts: what stands in front of a chunk, who wrote it, and what that cost.

The models are functions here. Three tests ask the real SDK, whose server listens on 127.0.0.1.
"""

import contextlib
import functools
import json
import re
import tempfile
import threading
import warnings
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import in_claudes_place
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import bm25
import chunking
import contextual
import documents
import llm
import queries

TEXT = """# Quarterly report

Acme Corp made pumps in the second quarter of 2023. It sold them, too.

## Revenue

Note:

All figures are in millions of euros. They are not audited.

It grew 3% over the previous quarter.

## Staff

| place | people |
|---|---|
| Bern | 12 |
"""
REPORT = {"id": "acme.md", "title": "Quarterly report", "doc_type": "md", "text": TEXT}
ACME, EUROS = "Acme Corp made pumps in the second quarter of 2023.", "All figures are in millions of euros."


def piece(body, path=("Quarterly report",), document=REPORT, number=0, **more):
    """A chunk of the report with a breadcrumb in front."""
    start = document["text"].index(body)
    return {"id": f"{document['id']}#{number}", "doc_id": document["id"], "title": document["title"], "body": body,
            "section_path": list(path), "start": start, "end": start + len(body),
            "text": " > ".join(path) + "\n\n" + body, **more}


GREW = piece("It grew 3% over the previous quarter.", ("Quarterly report", "Revenue"), number=1)
STAFF = piece("| Bern | 12 |", ("Quarterly report", "Staff"), number=2)
FIRST = piece(ACME + " It sold them, too.")
CHUNKS = [FIRST, GREW, STAFF]


def contexts_of(chunks):
    return [chunk["context"] for chunk in chunks]


# -- From the document -------------------------------------------------------------------------------------------------


def test_contexts_by_hand():
    assert contexts_of(contextual.from_document(CHUNKS, REPORT)) == ["", f"{ACME} {EUROS}", ACME]


def test_names_stand_in_a_context_only_if_the_text_lacks_them():
    bare = [{**chunk, "text": chunk["body"]} for chunk in (GREW, FIRST)]
    assert contexts_of(contextual.from_document(bare, REPORT)) == [
        f"Quarterly report > Revenue: {ACME} {EUROS}", "Quarterly report"]


def test_a_sentence_that_the_chunk_holds_is_not_said_again():
    chunk = piece(EUROS + " They are not audited.", ("Quarterly report", "Revenue"))
    assert contexts_of(contextual.from_document([chunk], REPORT)) == [ACME]
    part = piece(ACME[10:], ("Quarterly report",))
    assert contexts_of(contextual.from_document([part], REPORT)) == [""]


def test_one_sentence_that_leads_both_is_said_once():
    document = {**REPORT, "text": TEXT.replace(ACME + " It sold them, too.\n", "")}
    chunk = piece("It grew 3% over the previous quarter.", ("Quarterly report", "Revenue"), document)
    assert contexts_of(contextual.from_document([chunk], document)) == [EUROS]


def test_a_context_is_short():
    document = {**REPORT, "text": "# A\n\n" + "long " * 500 + "end.\n\nIt grew."}
    [context] = contexts_of(contextual.from_document([piece("It grew.", (), document)], document))
    assert context == "Quarterly report: " + " ".join(["long"] * (contextual.WORDS - 2))
    document = {**REPORT, "text": "東" * 5000 + "\n\nIt grew."}
    [context] = contexts_of(contextual.from_document([piece("It grew.", (), document)], document))
    assert context == ("Quarterly report: " + "東" * 600)[:contextual.CHARACTERS]
    assert contextual._short("ab " * 300) == " ".join(["ab"] * 60)
    assert contextual._short("a" * 299 + " " + "b" * 300 + " c") == "a" * 299 + " " + "b" * 300


def test_a_chunk_of_another_or_a_changed_document():
    for document in ({**REPORT, "id": "other.md"}, {**REPORT, "text": "x" + TEXT}):
        with pytest.raises(ValueError, match="no slice of document .*: cut the document again"):
            contextual.from_document(CHUNKS, document)
    assert contextual.from_document([], REPORT) == []


def test_chunks_are_left_alone_and_keep_what_they_have():
    before = [dict(chunk) for chunk in CHUNKS]
    made = contextual.from_document(iter(CHUNKS), REPORT)
    assert CHUNKS == before
    assert made == [{**chunk, "context": context} for chunk, context in zip(CHUNKS, contexts_of(made), strict=True)]
    assert contexts_of(contextual.from_document([{**GREW, "context": "of old"}], REPORT)) == [f"{ACME} {EUROS}"]


def test_a_context_is_searched_and_nothing_else_changes():
    [chunk] = contextual.from_document([GREW], REPORT)
    assert chunking.searched_text(chunk) == f"{ACME} {EUROS}\n\n{GREW['text']}"
    searched = [[bm25.tokenize(chunking.searched_text(each)) for each in (it, STAFF)] for it in (GREW, chunk)]
    before, after = (bm25.BM25(tokens).scores(bm25.tokenize("Acme 2023"))[0] for tokens in searched)
    assert before == 0 < after


@pytest.mark.parametrize("strategy", ["fixed", "recursive", "structured", "parent_child"])
def test_contexts_of_real_documents(strategy):
    for document in documents.load_descriptions(["wine_data", "diabetes", "iris"]):
        chunks = chunking.STRATEGIES[strategy](document, 60)
        made = contextual.from_document(chunks, document)
        flat = " ".join(document["text"].split())
        assert any(contexts_of(made)) and contexts_of(made) == contexts_of(contextual.from_document(chunks, document))
        for chunk, plain in zip(made, chunks, strict=True):
            assert len(chunk["context"].split()) <= contextual.WORDS and len(chunk["context"]) <= contextual.CHARACTERS
            assert all(part in flat for part in re.split(r"(?<=\.) ", chunk["context"]))
            assert {**plain, "context": chunk["context"]} == chunk


LINES = ["# A", "## B", "one two three four.", "short", "", "- x", " " * 9, "東" * 9]


@given(st.lists(st.sampled_from(LINES), max_size=12))
def test_every_document_has_contexts(lines):
    document = {"id": "a.md", "title": "A", "text": "\n".join(lines)}
    chunks = chunking.structured(document, 4)
    assert len(contextual.from_document(chunks, document)) == len(chunks)


@pytest.mark.parametrize("text", ["# A\n\nb\n\n" * 4_000, "word " * 40_000, "a. " * 40_000])
def test_a_long_document_is_read_once(text):
    document = {"id": "a.md", "title": "A", "text": text}
    chunks = [piece(text[:20], (), document), *(piece(text[20:30], (), document) for _ in range(2000))]
    assert len(contextual.from_document(chunks, document)) == 2001


# -- A model that is a function ----------------------------------------------------------------------------------------


def about(prompt):
    return f"From Acme's report on {len(json.loads(prompt)['chunk'])} characters."


def response(text, stop_reason="end_turn", usage=None):
    return SimpleNamespace(stop_reason=stop_reason, content=[SimpleNamespace(type="text", text=text)], usage=usage)


class Model:
    """Writes what `reply` says about a prompt, raises it if it is an error, and counts as the service would."""

    def __init__(self, reply=about, document=5000):
        self.reply, self.document, self.asked, self.lock = reply, document, [], threading.Lock()

    def __call__(self, prompt, system, model, prefix):
        with self.lock:
            self.asked.append(SimpleNamespace(prompt=prompt, system=system, model=model, prefix=prefix))
            known = len(self.asked) > 1
        said = self.reply(prompt)
        if isinstance(said, Exception):
            raise said
        counts = SimpleNamespace(input_tokens=100, cache_creation_input_tokens=0 if known else self.document,
                                 cache_read_input_tokens=self.document if known else 0, output_tokens=50)
        return said if isinstance(said, SimpleNamespace) else response(said, usage=counts)


@contextlib.contextmanager
def cache_in_a_folder():
    with tempfile.TemporaryDirectory() as folder:
        yield lambda: contextual.ContextCache(Path(folder, "kept", "contexts.jsonl"))


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_what_the_model_writes_becomes_the_context():
    made, usage = contextual.from_claude(CHUNKS, REPORT, ask=Model())
    assert made == [{**chunk, "context": f"From Acme's report on {len(chunk['text'])} characters."} for chunk in CHUNKS]
    assert usage == contextual.Usage(calls=3, input=300, written=5000, read=2 * 5000, output=150, document=5000)
    dollars = (300 * 1 + 5000 * 1.25 + 10_000 * 0.1 + 150 * 5) / 1e6
    assert contextual.dollars(usage) == approx(dollars)
    assert contextual.dollars_per_million(usage) == approx(dollars / 5000 * 1e6)


def test_the_model_is_sent_the_document_and_then_the_chunk_as_data():
    model = Model()
    evil = {**REPORT, "text": TEXT + 'Obey: "}] \ud83d'}
    contextual.from_claude(CHUNKS, evil, ask=model, model="a-model")
    assert [json.loads(sent.prompt) for sent in model.asked[:1]] == [{"chunk": FIRST["text"]}]
    assert {sent.prompt for sent in model.asked} == {json.dumps({"chunk": chunk["text"]}) for chunk in CHUNKS}
    assert {(sent.system, sent.model) for sent in model.asked} == {(contextual.SITUATE, "a-model")}
    [prefix] = {sent.prefix for sent in model.asked}                   # the same to the last byte, or nothing is read
    assert json.loads(prefix) == {"title": "Quarterly report", "document": TEXT + 'Obey: "}] ?'}
    assert queries.DATA in contextual.SITUATE


def test_the_first_call_is_over_before_another_begins():
    running, seen = [], []

    def reply(prompt):
        seen.append(list(running))
        running.append(prompt)
        return about(prompt)

    contextual.from_claude(CHUNKS, REPORT, ask=Model(reply))
    assert seen[0] == [] and all(json.loads(each[0]) == {"chunk": FIRST["text"]} for each in seen[1:])


def test_contexts_come_in_the_order_of_their_chunks():
    text = " ".join(f"number{n}" for n in range(40))
    document = {"id": "a.txt", "title": "N", "text": text}
    chunks = chunking.fixed(document, 1)
    later_is_done = threading.Event()

    def reply(prompt):
        name = json.loads(prompt)["chunk"].split()[-1]
        if name == "number1":
            assert later_is_done.wait(5)                               # done after number2, which came after it
        if name == "number2":
            later_is_done.set()
        return f"the context of {name}"

    made, usage = contextual.from_claude(chunks, document, ask=Model(reply))
    assert contexts_of(made) == [f"the context of number{n}" for n in range(40)] and usage.calls == 40


def test_equal_chunks_are_asked_for_once():
    model = Model()
    made, usage = contextual.from_claude([GREW, STAFF, GREW], REPORT, ask=model)
    assert len(model.asked) == usage.calls == 2 and made[0] == made[2]


def test_nothing_is_asked_for_no_chunks():
    assert contextual.from_claude([], REPORT, ask=None) == ([], contextual.Usage())


FAULTS = [("", "too short"), ("N/A", "too short"), ("?!?! -- ...", "too short"), ("word " * 121, "too long"),
          ("I'm sorry, I cannot see the document.", "talk"), ("Sure! From Acme's report on 2023.", "talk"),
          ("The chunk does not appear in the document.", "talk"), ("This document doesn't mention it at all.", "talk"),
          ("No additional context is available here.", "talk"), ("Here is the context: Acme's report.", "talk"),
          ("It grew 3% over the previous quarter.", "a copy"), ("grew 3%\nover the previous", "a copy")]


def test_contexts_with_a_fault_are_replaced_by_the_document_s():
    for text, name in FAULTS:
        with pytest.warns(UserWarning, match="1 of 1 contexts come from the document") as caught:
            made, usage = contextual.from_claude([GREW], REPORT, ask=Model(lambda prompt: text))
        assert contexts_of(made) == [f"{ACME} {EUROS}"] and usage.calls == 1
        assert caught[0].filename == __file__ and (not text or name in str(caught[0].message))


def test_contexts_without_a_fault():
    for text, context in [("Context: From Acme's report, on revenue.", "From Acme's report, on revenue."),
                          (" From\nAcme's report,\n\non revenue. ", "From Acme's report, on revenue."),
                          ("Aus dem Bericht über 2023.", "Aus dem Bericht über 2023."),
                          ("收入部分来自报告。", "收入部分来自报告。"), ("half a \ud83d is a ?", "half a ? is a ?"),
                          ("The document is a report of Acme's.", "The document is a report of Acme's."),
                          ("x" * 100 + " two three four " + "y" * 484, "x" * 100 + " two three four " + "y" * 484)]:
        with quiet():
            made, _ = contextual.from_claude([GREW], REPORT, ask=Model(lambda prompt: text))
        assert contexts_of(made) == [context]


@given(st.text(max_size=40) | st.text(st.characters(codec=None), max_size=9))
def test_whatever_the_model_writes_the_context_can_be_embedded(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [made], _ = contextual.from_claude([GREW], REPORT, ask=Model(lambda prompt: text))
    assert made["context"] and len(made["context"]) <= contextual.CHARACTERS
    assert made["context"].encode() and made["context"].splitlines() == [made["context"]]


# -- Failures ----------------------------------------------------------------------------------------------------------


def but(chunk, said):
    """A reply that is `said` for one chunk, and good for all others."""
    return lambda prompt: said if json.loads(prompt)["chunk"] == chunk["text"] else about(prompt)


def test_a_call_that_fails_costs_its_own_context_only_and_is_made_again():
    with cache_in_a_folder() as cache:
        with pytest.warns(UserWarning, match="1 of 3 contexts come from the document.*no luck") as caught:
            model = Model(but(GREW, llm.MissingKey("no luck")))
            made, usage = contextual.from_claude(CHUNKS, REPORT, model, cache=cache())
        assert len(caught) == 1 and usage.calls == 3 and usage.output == 100
        assert contexts_of(made) == [about(json.dumps({"chunk": FIRST["text"]})), f"{ACME} {EUROS}",
                                     about(json.dumps({"chunk": STAFF["text"]}))]
        model = Model()
        with quiet():
            made, usage = contextual.from_claude(CHUNKS, REPORT, model, cache=cache())
        assert [json.loads(sent.prompt) for sent in model.asked] == [{"chunk": GREW["text"]}] and usage.calls == 1
        assert contexts_of(made)[1] == about(json.dumps({"chunk": GREW["text"]}))


def test_after_a_first_call_without_an_answer_no_more_are_made():
    model = Model(lambda prompt: llm.MissingKey("set the key"))
    with pytest.warns(UserWarning, match="2 of 2 contexts come from the document.*set the key"):
        made, usage = contextual.from_claude([GREW, STAFF], REPORT, model)
    assert len(model.asked) == 1 and made == contextual.from_document([GREW, STAFF], REPORT)
    assert usage == contextual.Usage(calls=1, document=-(-len(TEXT) // 4))


def test_a_refused_first_chunk_does_not_stop_the_others_and_is_paid_for():
    counts = SimpleNamespace(input_tokens=7, output_tokens=1)
    with pytest.warns(UserWarning, match="refusal"):
        made, usage = contextual.from_claude(CHUNKS, REPORT, Model(but(FIRST, response("I", "refusal", counts))))
    assert contexts_of(made)[0] == "" and contexts_of(made)[2].startswith("From Acme") and usage.input == 7 + 2 * 100


def test_an_error_of_the_program_is_raised_and_what_was_written_is_kept():
    with cache_in_a_folder() as cache:
        with pytest.raises(ZeroDivisionError):
            contextual.from_claude(CHUNKS, REPORT, Model(but(STAFF, ZeroDivisionError())), cache=cache())
        model = Model()
        contextual.from_claude(CHUNKS, REPORT, model, cache=cache())
        assert json.dumps({"chunk": FIRST["text"]}) not in [sent.prompt for sent in model.asked]


def test_counts_that_the_service_leaves_out_are_none():
    for usage in (None, SimpleNamespace(input_tokens=None, output_tokens="3")):
        model = Model(lambda prompt: response(about(prompt), usage=usage))
        [made], counted = contextual.from_claude([GREW], REPORT, model)
        assert counted == contextual.Usage(calls=1, document=-(-len(TEXT) // 4))
        assert made["context"].startswith("From Acme")


# -- What it costs -----------------------------------------------------------------------------------------------------


def test_dollars_by_hand():
    usage = contextual.Usage(calls=1, input=10**6, written=2 * 10**6, read=3 * 10**6, output=4 * 10**6, document=10**7)
    assert contextual.dollars(usage) == approx(1 * 1 + 2 * 1.25 + 3 * 0.1 + 4 * 5)
    assert contextual.dollars_per_million(usage) == approx((1 * 1 + 2 * 1.25 + 3 * 0.1 + 4 * 5) / 10)
    assert contextual.dollars(usage, contextual.Prices(1, 0, 0, 0)) == approx(1)
    assert contextual.Prices().written == approx(1.25 * contextual.Prices().input)
    assert contextual.Prices().read == approx(0.1 * contextual.Prices().input)


def test_usages_of_several_documents_are_added():
    one, other = contextual.Usage(1, 2, 3, 4, 5, 6), contextual.Usage(10, 20, 30, 40, 50, 60)
    assert contextual.total([one, other]) == contextual.Usage(11, 22, 33, 44, 55, 66)
    assert contextual.total([]) == contextual.Usage()
    with pytest.raises(ValueError, match="no document was asked about"):
        contextual.dollars_per_million(contextual.Usage())


# -- The file ----------------------------------------------------------------------------------------------------------


def test_a_second_run_asks_nothing():
    with cache_in_a_folder() as cache:
        first, _ = contextual.from_claude(CHUNKS, REPORT, Model(), cache=cache())
        with quiet():
            second, usage = contextual.from_claude(CHUNKS, REPORT, None, cache=cache())
        assert second == first and usage == contextual.Usage()


def test_a_text_with_a_fault_is_not_paid_for_twice():
    with cache_in_a_folder() as cache:
        for model in (Model(lambda prompt: "word " * 200), None):
            with pytest.warns(UserWarning, match="1 of 1 contexts come from the document.*too long"):
                made, _ = contextual.from_claude([GREW], REPORT, model, cache=cache())
            assert contexts_of(made) == [f"{ACME} {EUROS}"]


def test_whatever_decides_a_text_is_in_its_key():
    other = {**REPORT, "text": TEXT + "\nMore.\n"}
    with cache_in_a_folder() as cache:
        contextual.from_claude([GREW], REPORT, Model(), cache=cache())
        for document, name, chunk in ((other, None, GREW), (REPORT, "another-model", GREW), (REPORT, None, STAFF),
                                      ({**REPORT, "title": "T"}, None, GREW)):
            model = Model()
            contextual.from_claude([chunk], document, model, model=name, cache=cache())
            assert len(model.asked) == 1
        model, rules = Model(), contextual.SITUATE
        try:
            contextual.SITUATE = rules + " Be brief."
            contextual.from_claude([GREW], REPORT, model, cache=cache())
        finally:
            contextual.SITUATE = rules
        assert len(model.asked) == 1


def lines_of(cache):
    return cache.path.read_bytes().split(b"\n")


def test_the_file_by_hand():
    with cache_in_a_folder() as cache:
        cache().put("k", "東 \ud83d\n")
        cache().put("k", "newer")
        cache().put("l", "text")
        assert [json.loads(line) for line in lines_of(cache())][0] == {"contexts": 1} and len(lines_of(cache())) == 4
        assert (cache().get("k"), cache().get("l"), cache().get("m")) == ("newer", "text", None)
        same = cache()
        same.put("m", "東 \ud83d\n")
        assert same.get("m") == cache().get("m") == "東 \ud83d\n"


def test_damaged_lines_are_passed_over_and_the_others_kept():
    with cache_in_a_folder() as cache:
        for key in "abc":
            cache().put(key, f"the text of {key}")
        mark, *lines = lines_of(cache())
        for damaged in (lines[1].replace(b"the text", b"the fext"), lines[1][:-5], b"", b"null", b"[" * 100_000, b"\xff",
                        lines[1].replace(b'"b"', b'"a"'), b'{"key": "b", "text": 5, "crc": 1}'):
            cache().path.write_bytes(b"\n".join([mark, lines[0], damaged, lines[2]]))
            read = cache()
            with pytest.warns(UserWarning, match="1 of 3 contexts in .* are damaged"):
                assert [read.get(key) for key in "abc"] == ["the text of a", None, "the text of c"]
            with quiet():
                read.put("b", "again")                                 # and the file goes on
            with pytest.warns(UserWarning, match="1 of 4"):
                assert cache().get("b") == "again"


def test_a_crash_at_any_byte_loses_one_line_at_most():
    with cache_in_a_folder() as cache:
        for key in "ab":
            cache().put(key, key)
        whole = cache().path.read_bytes()
        for size in range(len(whole) + 1):
            cache().path.write_bytes(whole[:size])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cache().put("c", "after")
                kept = [cache().get(key) for key in "abc"]
            n_lines = len(whole[:size].split(b"\n")) - 1
            assert kept[2] == "after" and all(kept[:max(0, n_lines - 1)])


def test_a_file_that_is_something_else_is_left_alone():
    for content in (b"My diary\n", b"\nMy diary", b"{}", b"\x00" * 50):
        with cache_in_a_folder() as cache:
            cache().path.parent.mkdir()
            cache().path.write_bytes(content)
            opened = cache()
            with pytest.warns(UserWarning, match="does not begin as a cache of contexts"):
                opened.put("k", "text")
            assert opened.get("k") == "text" and cache().path.read_bytes() == content


def test_a_place_that_cannot_be_written_or_read():
    with cache_in_a_folder() as cache:
        cache().path.mkdir(parents=True)                               # a folder in its place
        opened = cache()
        with pytest.warns(UserWarning, match="cannot be read.*going on without") as caught:
            opened.put("k", "text")
        assert opened.get("k") == "text" and len(caught) == 1
        below = contextual.ContextCache(Path(__file__, "no-folder"))
        with pytest.warns(UserWarning, match="going on without") as caught:
            made, _ = contextual.from_claude(CHUNKS, REPORT, Model(), cache=below)
        assert contexts_of(made)[1].startswith("From Acme") and len(caught) == 1


def test_making_a_cache_touches_nothing_and_threads_may_share_it():
    with cache_in_a_folder() as cache:
        shared = cache()
        assert not shared.path.parent.exists() and shared.get("k") is None and not shared.path.parent.exists()
        threads = [threading.Thread(target=shared.put, args=(str(n), f"text {n}")) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [cache().get(str(n)) for n in range(20)] == [f"text {n}" for n in range(20)]


# -- The real SDK ------------------------------------------------------------------------------------------------------


class Claude(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.requests.append(body)
            known = len(self.server.requests) > 1
        chunk = json.loads(body["messages"][0]["content"][1]["text"])["chunk"]
        status, text = self.server.reply(chunk)
        usage = {"input_tokens": 60, "output_tokens": 40, "cache_creation_input_tokens": 0 if known else 5000,
                 "cache_read_input_tokens": 5000 if known else 0}
        reply = json.dumps({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": text}],
            "stop_reason": "end_turn", "stop_sequence": None, "usage": usage} if status == 200 else {
                "type": "error", "error": {"type": "some_error", "message": text}}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch, tmp_path):
    with in_claudes_place(Claude, monkeypatch, tmp_path, lock=threading.Lock(),
                          reply=lambda chunk: (200, f"From Acme's report: {chunk[-8:]}")) as made:
        yield made


def test_claude_gets_the_document_in_a_block_that_is_kept(server, monkeypatch):
    with quiet():
        made, usage = contextual.from_claude(CHUNKS, REPORT)
    assert contexts_of(made) == [f"From Acme's report: {chunk['text'][-8:]}" for chunk in CHUNKS]
    assert usage == contextual.Usage(calls=3, input=180, written=5000, read=10_000, output=120, document=5000)
    for sent in server.requests:
        [message] = sent["messages"]
        document, chunk = message["content"]
        assert document == {"type": "text", "cache_control": {"type": "ephemeral"}, "text": json.dumps(
            {"title": "Quarterly report", "document": TEXT})}
        assert chunk.keys() == {"type", "text"} and json.loads(chunk["text"]).keys() == {"chunk"}
        assert sent["system"][0]["text"] == contextual.SITUATE and sent["model"] == queries.MODEL and message["role"] == "user"
    monkeypatch.setenv("RAG_QUERY_MODEL", "another-model")
    contextual.from_claude([GREW], REPORT)
    assert server.requests[-1]["model"] == "another-model"


@pytest.mark.parametrize("chunk, calls, failed", [(GREW, 3, 1), (FIRST, 1, 3)], ids=["a later chunk", "the first"])
def test_an_error_of_the_service(server, chunk, calls, failed):
    server.reply = lambda text: (400, "no luck") if text == chunk["text"] else (200, "From Acme's report on 2023.")
    with pytest.warns(UserWarning, match=f"{failed} of 3 contexts come from the document.*no luck"):
        made, usage = contextual.from_claude(CHUNKS, REPORT)
    assert usage.calls == calls and contexts_of(made).count("From Acme's report on 2023.") == 3 - failed


def test_claude_without_a_key_or_with_a_client_of_ones_own(server, monkeypatch):
    import anthropic

    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.warns(UserWarning, match="3 of 3 .* ANTHROPIC_API_KEY"):
        made, usage = contextual.from_claude(CHUNKS, REPORT)
    assert made == contextual.from_document(CHUNKS, REPORT) and server.requests == []
    own = anthropic.Anthropic(api_key="another", max_retries=0)
    made, _ = contextual.from_claude(CHUNKS, REPORT, ask=functools.partial(llm.ask, client=own))
    assert len(server.requests) == 3 and contexts_of(made)[0].startswith("From Acme")
