"""Second half of the lesson on Claude: the real SDK against a server of our own.

Nothing leaves this machine: the server listens on 127.0.0.1 and sends back what a test puts into it.
"""

import inspect
import json
import logging
import os
import re
import threading
import time
import traceback
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import llm

KEY = "sk-ant-SECRET-0123456789"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """Neither the variables nor the profile of whoever runs the tests may decide anything."""
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "RAG_")):
            monkeypatch.delenv(name)
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(scope="module", autouse=True)
def client_of_this_module():
    """One client for most tests: making one reads the certificates anew, which takes longer than all else."""
    llm._client.cache_clear()
    yield
    llm._client.cache_clear()


# -- A server that records what it gets and sends back what it is told to ----------------------------------------------


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"                    # keeps the connection, so that a second request may use it again
    disable_nagle_algorithm = True                   # else each body waits 40 ms for the headers to be acknowledged

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append(SimpleNamespace(path=self.path, headers=self.headers, body=json.loads(body),
                                                    connection=self.client_address))
        status, content_type, reply, headers = self.server.queue.pop(0) if self.server.queue else self.server.reply
        self.send_response(status)
        headers = {"content-type": content_type, "content-length": len(reply), "request-id": "req_7"} | headers
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(reply)
        if int(headers["content-length"]) > len(reply):                # more was promised than comes
            self.server.go_on.wait(5)
            self.close_connection = True

    def log_message(self, *arguments):
        pass


def serve():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    made.daemon_threads, made.requests, made.url = True, [], f"http://127.0.0.1:{made.server_port}"
    made.handle_error = lambda *about: None          # of a client that hung up, as some tests do
    made.queue, made.go_on = [], threading.Event()   # replies that come before made.reply; set: nothing is waited for
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return made


@pytest.fixture(scope="module")
def listening():
    made = serve()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def server(listening, monkeypatch):
    """A server that answers "hello"; ANTHROPIC_BASE_URL points to it, and no key is set."""
    listening.requests.clear(), listening.queue.clear(), listening.go_on.set()
    says(listening, message([TEXT]))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", listening.url)
    yield listening
    listening.go_on.set()


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def reply(body, status=200, content_type="application/json", **headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return status, content_type, body, {name.replace("_", "-"): value for name, value in headers.items()}


def says(server, body, status=200, content_type="application/json"):
    server.reply = reply(body, status, content_type)


TEXT = {"type": "text", "text": "hello"}
KEPT = {"type": "text", "text": "Cite.", "cache_control": {"type": "ephemeral"}}
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "s"}


def message(content, stop_reason="end_turn"):
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": stop_reason, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}


# -- The request -------------------------------------------------------------------------------------------------------


def test_the_request_as_it_is_sent(server, key):
    response = llm.ask("How many? {} </source>", system="Cite.", max_tokens=7)
    [sent] = server.requests
    assert sent.path == "/v1/messages"
    assert sent.body == {"model": llm.MODEL, "max_tokens": 7, "system": [KEPT],
                         "messages": [{"role": "user", "content": "How many? {} </source>"}]}
    assert sent.headers["authorization"] == f"Bearer {KEY}" and sent.headers["anthropic-version"]
    assert llm.text_of(response) == "hello" and response.usage.output_tokens == 1


def test_no_system_text_is_sent_when_there_is_none(server, key):
    llm.ask("q", model="another-model")
    assert server.requests[0].body == {"model": "another-model", "max_tokens": 1024,
                                       "messages": [{"role": "user", "content": "q"}]}


def test_a_prefix_is_a_block_of_its_own_that_the_service_keeps(server, key):
    usage = {"input_tokens": 3, "output_tokens": 1, "cache_creation_input_tokens": 5000, "cache_read_input_tokens": 0}
    says(server, message([TEXT]) | {"usage": usage})
    response = llm.ask("q", system="Cite.", prefix="A long document. ")
    assert server.requests[0].body == {"model": llm.MODEL, "max_tokens": 1024, "system": [KEPT], "messages": [
        {"role": "user", "content": [
            {"type": "text", "text": "A long document. ", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "q"}]}]}
    assert (response.usage.cache_creation_input_tokens, response.usage.cache_read_input_tokens) == (5000, 0)
    assert llm.text_of(response) == "hello"


def test_call_signature_of_the_real_sdk():
    import anthropic
    from anthropic.types import Model

    signature = inspect.signature(anthropic.Anthropic(api_key="k").messages.create)
    signature.bind(model=llm.MODEL, max_tokens=1, messages=[{"role": "user", "content": "q"}], system="s")
    # what version 1 of the SDK took away; should one come back, this is the place to notice
    for gone in ("temperature", "top_p", "top_k"):
        assert gone not in signature.parameters and gone not in inspect.getsource(llm._prepared)
    assert llm.MODEL in str(Model)                   # an id that this SDK knows


def test_the_model_is_not_deprecated(server, key):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert llm.text_of(llm.ask("q")) == "hello"


def test_a_client_of_ones_own_needs_no_key_in_the_environment(server, monkeypatch):
    import anthropic

    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    own = anthropic.Anthropic(api_key="another", base_url=server.url, max_retries=0)
    assert llm.text_of(llm.ask("q", client=own)) == "hello"
    assert server.requests[0].headers["authorization"] == "Bearer another"


def test_one_client_and_one_connection_for_all_questions(server, key):
    for _ in range(3):
        llm.ask("q")
    assert len(server.requests) == 3 and len({sent.connection for sent in server.requests}) == 1


def test_a_changed_environment_is_honoured(server, key, monkeypatch):
    llm.ask("q")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "second-key")
    llm.ask("q")
    assert [sent.headers["authorization"] for sent in server.requests] == [f"Bearer {KEY}", "Bearer second-key"]
    other = serve()
    says(other, message([{"type": "text", "text": "from elsewhere"}]))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", other.url)
    assert llm.text_of(llm.ask("q")) == "from elsewhere" and len(server.requests) == 2
    other.shutdown()
    other.server_close()


# -- The key -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", " ", "\n", "\t \n"])
def test_no_key_no_client_and_no_request(server, monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    llm._client.cache_clear()
    assert not llm.has_key()
    with pytest.raises(llm.MissingKey, match="set the environment variable ANTHROPIC_API_KEY.*extractive reader"):
        llm.ask("q")
    assert server.requests == [] and llm._client.cache_info().currsize == 0


def test_a_token_does_not_stand_in_for_the_key(server, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    assert not llm.has_key()
    with pytest.raises(llm.MissingKey):
        llm.ask("q")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    llm.ask("q")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("value", [KEY + "\n", f"  {KEY} ", KEY + "\r\n", KEY + "\u00a0"])
def test_white_space_around_the_key_is_cut_off(server, monkeypatch, value):
    monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    assert llm.has_key()
    llm.ask("q")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("value", [KEY + " x", KEY + "\nx", KEY + "é", "\u200b" + KEY, KEY + "\u2013", KEY + "\x7f",
                                   KEY + "\udcff"])
def test_a_key_that_no_header_can_carry(server, monkeypatch, value):
    monkeypatch.setenv("ANTHROPIC_API_KEY", value)
    with pytest.raises(ValueError, match="ANTHROPIC_API_KEY") as caught:
        llm.ask("q")
    assert KEY not in "".join(traceback.format_exception(caught.value)) and server.requests == []


def test_the_key_is_in_no_log_and_no_repr(server, key, caplog):
    caplog.set_level(logging.DEBUG)
    for name in ("anthropic", "httpx2", "httpcore2"):
        caplog.set_level(logging.DEBUG, logger=name)
    response = llm.ask("q")
    shown = caplog.text, repr(response), repr(llm._client), str(llm._client.cache_info()), repr(vars(llm))
    assert caplog.text and not any(KEY in text for text in shown)


@pytest.mark.parametrize("value", ["", " ", "127.0.0.1:80", "localhost", "ftp://x", "https://", "https://a b",
                                   "http://127.0.0.1:abc", "http://[::1", "http://\u200b.invalid"])
def test_an_address_without_a_protocol(key, monkeypatch, value):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", value)
    with pytest.raises(ValueError, match="ANTHROPIC_BASE_URL must be"):
        llm.ask("q")


@pytest.mark.parametrize("content", [5, True, "text", {"text": "a"}])
def test_blocks_that_are_no_list_are_no_answer(server, key, content):
    says(server, message(content))
    with pytest.raises(llm.NoAnswer, match="empty"):
        llm.text_of(llm.ask("q"))


def test_a_newline_after_the_address(server, key, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url + "\n")
    assert llm.text_of(llm.ask("q")) == "hello"


# -- Bad input, refused before any request -----------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, error, match", [
    ({"prompt": None}, TypeError, "prompt must be a string"), ({"prompt": b"q"}, TypeError, "prompt must be a string"),
    ({"prompt": ["q"]}, TypeError, "prompt must be a string"), ({"prompt": ""}, ValueError, "prompt is empty"),
    ({"prompt": " \n"}, ValueError, "prompt is empty"), ({"prompt": "a\ud83d"}, ValueError, "prompt holds half"),
    ({"prefix": 3}, TypeError, "prefix must be a string"), ({"prefix": " "}, ValueError, "the prefix is empty"),
    ({"prefix": "a\ud83d"}, ValueError, "prefix holds half"), ({"prompt": " ", "prefix": "p"}, ValueError, "prompt is"),
    ({"system": 3}, TypeError, "system must be a string"), ({"system": ""}, ValueError, "system is empty"),
    ({"system": "\udc00"}, ValueError, "system holds half"), ({"model": 3}, TypeError, "model must be a string"),
    ({"model": ""}, ValueError, "model is empty"), ({"max_tokens": 0}, ValueError, "max_tokens must be at least 1"),
    ({"max_tokens": -1}, ValueError, "max_tokens must be"), ({"max_tokens": 1.5}, TypeError, "max_tokens must"),
    ({"max_tokens": None}, TypeError, "max_tokens must"), ({"max_tokens": True}, TypeError, "max_tokens must"),
    ({"timeout": 0}, ValueError, "timeout must be"), ({"timeout": -1}, ValueError, "timeout must be"),
    ({"timeout": float("nan")}, ValueError, "timeout must be"), ({"timeout": "9"}, ValueError, "timeout must be"),
    ({"packed": []}, ValueError, "packed must hold"),
    ({"packed": [SimpleNamespace(id="S2")]}, ValueError, "packed must hold all sources of a prompt, S1, S2"),
])
def test_what_cannot_be_asked(server, key, arguments, error, match):
    with pytest.raises(error, match=match):
        llm.ask(**{"prompt": "q", **arguments})
    assert server.requests == []


def test_whole_characters_outside_the_first_plane_are_sent(server, key):
    llm.ask("😀 東 \x00")
    assert server.requests[0].body["messages"][0]["content"] == "😀 東 \x00"


def test_a_silent_server_is_given_up_on_after_two_minutes():
    assert llm._client("some-key", None).timeout == llm.TIMEOUT == 120


# -- Settings, retries, and what fails ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variable, argument, sent", [
    (None, None, llm.MODEL), (" ", None, llm.MODEL), (" a-model ", None, "a-model"), ("a-model", "another", "another")])
def test_the_model_is_the_argument_or_the_variable_or_the_default(server, key, monkeypatch, variable, argument, sent):
    if variable is not None:
        monkeypatch.setenv("RAG_MODEL", variable)
    llm.ask("q", model=argument)
    assert server.requests[0].body["model"] == sent


def test_a_timeout_of_ones_own_reaches_the_request(server, key):
    llm.ask("q", timeout=7.5)
    llm.ask("q")
    assert [sent.headers["x-stainless-timeout"] for sent in server.requests] == ["7.5", "120.0"]


@pytest.fixture
def waits(monkeypatch):
    """How long the SDK would have slept before each retry; it does not."""
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    return slept


ERROR = {"type": "error", "error": {"type": "some_error", "message": "no luck"}}


def test_two_errors_and_then_an_answer(server, key, waits):
    server.queue += [reply(ERROR, 529), reply(ERROR, 429, retry_after=7)]
    assert llm.text_of(llm.ask("q")) == "hello"
    assert [sent.headers["x-stainless-retry-count"] for sent in server.requests] == ["0", "1", "2"]
    assert 0.375 <= waits[0] <= 0.5 and waits[1:] == [7]               # half a second, less at random; what was asked


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_after_three_errors_it_is_one(server, key, waits, status):
    import anthropic

    says(server, ERROR, status)
    with pytest.raises(anthropic.APIStatusError, match="no luck"):
        llm.ask("q")
    assert len(server.requests) == 1 + llm.RETRIES == 3 and len(waits) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
def test_what_would_fail_again_is_sent_once(server, key, waits, status):
    says(server, ERROR, status)
    with pytest.raises(llm.failures(), match="no luck"):
        llm.ask("q")
    assert len(server.requests) == 1 and waits == []


@pytest.mark.parametrize("send", [llm.ask, llm.count_tokens, lambda prompt, **more: llm.stream(prompt, print, **more)],
                         ids=["ask", "count_tokens", "stream"])
class TestEveryRequest:
    def test_a_silent_server(self, server, key, waits, send):
        import anthropic

        server.go_on.clear()
        server.reply = reply(b"", content_length=9)
        with pytest.raises((anthropic.APITimeoutError, llm.NoAnswer)) as caught:
            send("q", timeout=0.05)
        assert isinstance(caught.value, llm.failures())

    def test_nobody_listens(self, key, waits, monkeypatch, send):
        import anthropic

        monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
        with pytest.raises(anthropic.APIConnectionError):
            send("q")
        assert len(waits) == llm.RETRIES

    def test_no_key(self, server, send):
        with pytest.raises(llm.MissingKey):
            send("q")
        assert server.requests == []

    @pytest.mark.parametrize("body", [b"", b"oops", b'{"content": [', b"\xff", b'{"a": ' + b"9" * 5000 + b"}",
                                      b"[" * 100_000])
    def test_broken_json(self, server, key, send, body):
        says(server, body)
        with pytest.raises(llm.NoAnswer):
            send("q")

    def test_a_body_that_ends_too_early(self, server, key, waits, send):
        server.reply = reply(b'{"content"', content_length=99)
        with pytest.raises(llm.failures()):
            send("q")

    @pytest.mark.parametrize("status", [400, 401, 429, 529])
    def test_the_key_is_nowhere_even_if_the_server_repeats_it(self, server, key, waits, send, status, caplog, capfd):
        caplog.set_level(logging.DEBUG)
        says(server, {"type": "error", "error": {"type": "e", "message": f"bad key {KEY}"}}, status)
        with pytest.raises(llm.NoAnswer, match="ANTHROPIC_API_KEY") as caught:
            send("q")
        shown = [str(caught.value), repr(caught.value), caplog.text, *capfd.readouterr(),
                 "".join(traceback.format_exception(caught.value))]
        assert caplog.text and not any(KEY in text for text in shown)


@pytest.mark.parametrize("stop_reason, came", [("max_tokens", "The answer is 17"), (None, "hello"), ("refusal", "")])
def test_what_came_is_kept_beside_the_message_of_the_error(server, key, stop_reason, came):
    says(server, message([THINKING, {"type": "text", "text": came}], stop_reason))
    with pytest.raises(llm.NoAnswer) as caught:
        llm.text_of(llm.ask("q"))
    assert caught.value.partial == came and "17" not in repr(caught.value)


# -- Streams -----------------------------------------------------------------------------------------------------------


def sse(*events):
    """The body of a stream of server-sent events."""
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def events(*blocks, stop_reason="end_turn", output=5):
    """The events of a whole message: each block is a list of pieces of text, or of citations (dicts)."""
    started = message([], None) | {"usage": {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 1}}
    yield {"type": "message_start", "message": started}
    for index, pieces in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
        for piece in pieces:
            yield {"type": "content_block_delta", "index": index, "delta":
                   {"type": "text_delta", "text": piece} if isinstance(piece, str) else
                   {"type": "citations_delta", "citation": piece}}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None},
           "usage": {"output_tokens": output}}
    yield {"type": "message_stop"}


WHOLE = list(events(["There are", " 178", " of them."]))


def streams(server, body, **headers):
    server.reply = reply(body if isinstance(body, bytes) else sse(*body), content_type="text/event-stream", **headers)


def test_a_stream_is_written_as_it_comes_and_returned_whole(server, key):
    streams(server, WHOLE)
    written = []
    response = llm.stream("q", written.append, system="Cite.", max_tokens=7)
    assert written == ["There are", " 178", " of them."]
    assert llm.text_of(response) == "There are 178 of them." and response.stop_reason == "end_turn"
    assert llm.usage_of(response) == {"input": 3, "written": 0, "read": 40, "output": 5}
    [sent] = server.requests
    assert sent.body == {"model": llm.MODEL, "max_tokens": 7, "system": [KEPT], "stream": True,
                         "messages": [{"role": "user", "content": "q"}]}


def test_a_stream_waits_for_nothing_but_the_next_piece(server, key):
    server.go_on.clear()                                               # the server holds back the end ...
    streams(server, WHOLE[:4], content_length=9999)
    with pytest.raises(llm.NoAnswer) as caught:
        llm.stream("q", lambda piece: server.go_on.set())              # ... until the first pieces are written
    assert caught.value.partial == "There are 178"


@pytest.mark.parametrize("n_events", range(len(WHOLE)))
def test_row_32_a_cut_stream_is_no_answer(server, key, n_events):
    streams(server, WHOLE[:n_events])
    written = []
    with pytest.raises(llm.NoAnswer, match="broke off.*without message_stop") as caught:
        llm.stream("q", written.append)
    assert written == ["There are", " 178", " of them."][:max(0, n_events - 2)]
    assert caught.value.partial == "".join(written)
    assert "178" not in str(caught.value)


DELTA = WHOLE[2]
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize("body, headers, said", [
    (sse(*WHOLE[:3], OVERLOADED), {}, "Overloaded"),
    (sse(*WHOLE[:3]) + b"event: content_block_delta\ndata: {oops\n\n", {}, "no JSON"),
    (sse(*WHOLE[:3]), {"content_length": 9999}, "peer closed"),
    (sse(*WHOLE[:3], DELTA | {"index": 7}), {}, "broke off"),
    (sse(*WHOLE[:3], DELTA | {"delta": {"type": "text_delta", "text": None}}), {}, "broke off"),
    (sse(*WHOLE[:3], DELTA | {"delta": None}), {}, "broke off")],
    ids=["an error of the service", "broken JSON", "connection lost", "no such block", "no text", "no delta"])
def test_a_stream_that_turns_bad_keeps_what_came(server, key, body, headers, said):
    streams(server, body, **headers)
    with pytest.raises(llm.NoAnswer, match=said) as caught:
        llm.stream("q", lambda piece: None)
    assert caught.value.partial == "There are" and len(server.requests) == 1       # it is not asked again


@pytest.mark.parametrize("body, content_type", [
    (b"", "text/event-stream"), (b"It works!", "text/plain"), (sse(*WHOLE[1:]), "text/event-stream"),
    (sse({"type": "message_stop"}), "text/event-stream"), (json.dumps(message([TEXT])).encode(), "application/json")])
def test_a_stream_that_is_none(server, key, body, content_type):
    says(server, body, content_type=content_type)
    with pytest.raises(llm.NoAnswer, match="broke off") as caught:
        llm.stream("q", print)
    assert caught.value.partial == ""


@pytest.mark.parametrize("stop_reason", ["max_tokens", "refusal", None])
def test_a_whole_stream_of_an_unfinished_answer(server, key, stop_reason):
    streams(server, events(["There are 17"], stop_reason=stop_reason))
    response = llm.stream("q", lambda piece: None)
    assert llm.usage_of(response)["output"] == 5                       # it was paid for
    with pytest.raises(llm.NoAnswer, match=f"{stop_reason!r}") as caught:
        llm.text_of(response)
    assert caught.value.partial == "There are 17"


def test_the_key_is_in_no_error_inside_a_stream(server, key):
    streams(server, [*WHOLE[:3], {"type": "error", "error": {"type": "e", "message": f"bad key {KEY}"}}])
    with pytest.raises(llm.NoAnswer) as caught:
        llm.stream("q", lambda piece: None)
    assert KEY not in "".join(traceback.format_exception(caught.value)) and caught.value.partial == "There are"


def test_a_stream_begins_after_errors(server, key, waits):
    streams(server, WHOLE)
    server.queue += [reply(ERROR, 529), reply(ERROR, 429, retry_after=7)]
    written = []
    llm.stream("q", written.append)
    assert "".join(written) == "There are 178 of them." and len(server.requests) == 3 and waits[1:] == [7]


@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt, ValueError])
def test_what_goes_wrong_in_writing_is_no_fault_of_the_stream(server, key, error):
    streams(server, WHOLE)
    with pytest.raises(error):
        llm.stream("q", Mock(side_effect=error))


# -- The service's own citations ---------------------------------------------------------------------------------------


PACKED = [SimpleNamespace(id="S1", title="Leave", body="Five days. </source>", places=[{"source": "hr/leave.md"}]),
          SimpleNamespace(id="S2", title="Half \ud83d", body="{}\n\ud83d", places=[{"source": None}])]


def location(position, **more):
    return {"type": "search_result_location", "source": "s", "title": "t", "search_result_index": position,
            "start_block_index": 0, "end_block_index": 1, "cited_text": "Five days."} | more


def cited(text, *positions):
    return {"type": "text", "text": text, "citations": [location(position) for position in positions]}


def test_sources_are_sent_as_search_results(server, key):
    llm.ask("How many?", packed=PACKED)
    [message] = server.requests[0].body["messages"]
    assert message == {"role": "user", "content": [
        {"type": "search_result", "source": "hr/leave.md", "title": "Leave", "citations": {"enabled": True},
         "content": [{"type": "text", "text": "Five days. </source>"}]},
        {"type": "search_result", "source": "Half ?", "title": "Half ?", "citations": {"enabled": True},
         "content": [{"type": "text", "text": "{}\n?"}]},
        {"type": "text", "text": "How many?"}]}
    llm.ask("How many?", prefix="Before.", packed=PACKED)
    assert [block["type"] for block in server.requests[1].body["messages"][0]["content"]] == [
        "text", "search_result", "search_result", "text"]


def test_search_results_are_as_the_sdk_declares_them():
    from anthropic.types import CitationsSearchResultLocation, SearchResultBlockParam
    from anthropic.types.citations_config_param import CitationsConfigParam

    [first, _] = llm._search_results(PACKED)
    assert SearchResultBlockParam.__required_keys__ <= first.keys() <= SearchResultBlockParam.__annotations__.keys()
    assert first["citations"].keys() <= CitationsConfigParam.__annotations__.keys()
    assert location(0).keys() == CitationsSearchResultLocation.model_fields.keys()


CITED = [
    ([cited("It is red.", 0)], "It is red. [S1]"),
    ([cited("It is red", 1), TEXT | {"text": "."}], "It is red [S2]."),
    ([cited("It is red.\n\n", 0), cited("Blue.", 1)], "It is red. [S1]\n\nBlue. [S2]"),
    ([cited("Both.", 0, 1), TEXT | {"text": " Hm."}], "Both. [S1][S2] Hm."),
    ([cited("Twice.", 1, 0, 1)], "Twice. [S2][S1]"),
    ([THINKING, TEXT, cited(" world", 0)], "hello world [S1]"),
    ([cited("It grew", 0), TEXT | {"text": "(2024)."}], "It grew [S1] (2024)."),
    ([cited("```\nx = 1\n```", 0), TEXT | {"text": "\nYes."}], "```\nx = 1\n```\n[S1]\nYes."),
    ([cited("Out of range.", 6)], "Out of range. [S7]"),
    ([cited("None.")], "None."), ([TEXT | {"citations": None}], "hello"), ([TEXT | {"citations": 5}], "hello"),
    ([TEXT | {"citations": [{"type": "of_a_new_kind"}, None, {}]}], "hello"),
    ([TEXT | {"citations": [location("no number"), location(None), location(-1)]}], "hello"),
]


@pytest.mark.parametrize("content, text", CITED)
def test_citations_stand_behind_what_they_support(server, key, content, text):
    says(server, message(content))
    assert llm.text_of(llm.ask("q", packed=PACKED)) == text


def test_citations_by_hand():
    blocks = [SimpleNamespace(type="text", text=text, citations=[SimpleNamespace(search_result_index=position)])
              for text, position in (("It is red.\n\n", 0), ("Blue", 2))]
    end = SimpleNamespace(type="text", text=".", citations=None)
    assert llm.text_of(SimpleNamespace(stop_reason="end_turn", content=[*blocks, end])
                       ) == "It is red. [S1]\n\nBlue [S3]."
    with pytest.raises(llm.NoAnswer) as caught:
        llm.text_of(SimpleNamespace(stop_reason=None, content=blocks))
    assert caught.value.partial == "It is red.\n\nBlue"


def test_citations_in_a_stream(server, key):
    streams(server, events(["It is", location(0), " red."], [" Blue.", location(1)]))
    written = []
    response = llm.stream("q", written.append, packed=PACKED)
    assert "".join(written) == "It is red. Blue." and llm.text_of(response) == "It is red. [S1] Blue. [S2]"
    assert response.content[0].citations[0].cited_text == "Five days."


def test_what_came_of_an_unfinished_answer_has_no_citations(server, key):
    says(server, message([cited("It is red.", 0)], "max_tokens"))
    with pytest.raises(llm.NoAnswer) as caught:
        llm.text_of(llm.ask("q", packed=PACKED))
    assert caught.value.partial == "It is red."
    says(server, message([cited(" ", 0)]))
    with pytest.raises(llm.NoAnswer, match="empty"):
        llm.text_of(llm.ask("q", packed=PACKED))


# -- Counting ----------------------------------------------------------------------------------------------------------


def test_tokens_are_counted_by_the_service(server, key):
    says(server, {"input_tokens": 7})
    assert llm.count_tokens("q", system="Cite.", prefix="Before.") == 7
    [sent] = server.requests
    assert sent.path == "/v1/messages/count_tokens"
    assert sent.body == {"model": llm.MODEL, "system": [KEPT], "messages": [{"role": "user", "content": [
        KEPT | {"text": "Before."}, {"type": "text", "text": "q"}]}]}
    for body in ({}, {"input_tokens": None}, {"input_tokens": "7"}, []):
        says(server, body)
        with pytest.raises(llm.NoAnswer, match="counts no tokens"):
            llm.count_tokens("q")


def test_usage_by_hand():
    usage = SimpleNamespace(input_tokens=1, cache_creation_input_tokens=2, cache_read_input_tokens=3, output_tokens=4)
    assert llm.usage_of(SimpleNamespace(usage=usage)) == {"input": 1, "written": 2, "read": 3, "output": 4}
    none = SimpleNamespace(usage=SimpleNamespace(input_tokens="9"))
    for nothing in (None, "text", SimpleNamespace(usage=None), none):
        assert llm.usage_of(nothing) == {"input": 0, "written": 0, "read": 0, "output": 0}


# -- Answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content, text", [
    ([TEXT], "hello"), ([THINKING, TEXT], "hello"), ([TEXT, TEXT], "hellohello"),
    ([TEXT, {"type": "of_a_new_kind", "data": 1}, {"type": "text", "text": " you"}], "hello you"),
    ([{"type": "text", "text": None}, TEXT], "hello"), ([{"type": "text", "text": "{}[1]"}], "{}[1]")])
@pytest.mark.parametrize("stop_reason", ["end_turn", "stop_sequence"])
def test_text_blocks_are_joined_and_others_left_out(server, key, content, text, stop_reason):
    says(server, message(content, stop_reason))
    assert llm.text_of(llm.ask("q")) == text


@pytest.mark.parametrize("stop_reason, advice", [
    ("refusal", "declines"), ("max_tokens", "larger max_tokens"), (None, "broke off"), ("tool_use", "does not offer"),
    ("pause_turn", "does not offer"), ("model_context_window_exceeded", "fewer or shorter sources"),
    ("of_a_new_kind", "does not offer"), (["a list"], "does not offer")])
@pytest.mark.parametrize("content", [[{"type": "text", "text": "The answer is 17"}], [], None])
def test_an_answer_that_is_not_finished_is_no_answer(server, key, stop_reason, advice, content):
    says(server, message(content, stop_reason))
    with pytest.raises(llm.NoAnswer, match=f"stop_reason {re.escape(repr(stop_reason))}.*{advice}") as caught:
        llm.text_of(llm.ask("q"))
    assert "17" not in str(caught.value)


@pytest.mark.parametrize("content", [[], None, [THINKING], [{"type": "text", "text": " \n"}], "hello", [None]])
def test_a_finished_answer_without_text_is_no_answer(server, key, content):
    says(server, message(content))
    with pytest.raises(llm.NoAnswer, match="empty.*'end_turn'"):
        llm.text_of(llm.ask("q"))


@pytest.mark.parametrize("planted", [
    lambda response: response.content[0].text,                                                         # thinking first
    lambda response: "".join(block.text for block in response.content if block.type == "text")],       # any stop_reason
    ids=["first block", "stop_reason ignored"])
def test_planted_readers_of_responses_are_caught(server, key, planted):
    def reads_well(text_of):
        says(server, message([THINKING, TEXT]))
        assert text_of(llm.ask("q")) == "hello"
        says(server, message([TEXT], "max_tokens"))
        with pytest.raises(llm.NoAnswer):
            text_of(llm.ask("q"))

    reads_well(llm.text_of)
    with pytest.raises((AttributeError, pytest.fail.Exception)):
        reads_well(planted)


@pytest.mark.parametrize("body, content_type", [
    ({}, "application/json"), (b"It works!", "text/plain"), (b"<html>Log in</html>", "text/html"),
    ({"choices": [{"message": {"content": "hello"}}]}, "application/json"), ([], "application/json"),
    (b"null", "application/json")])
def test_a_server_that_is_another(server, key, body, content_type):
    says(server, body, content_type=content_type)
    with pytest.raises(llm.NoAnswer, match="stop_reason None.*ANTHROPIC_BASE_URL"):
        llm.text_of(llm.ask("q"))


@pytest.mark.parametrize("body", [b"", b'{"content": [', b"oops"])
def test_json_that_is_none(server, key, body):
    says(server, body)
    with pytest.raises(llm.NoAnswer, match="ANTHROPIC_BASE_URL"):
        llm.text_of(llm.ask("q"))


@pytest.mark.parametrize("status, name", [
    (400, "BadRequestError"), (401, "AuthenticationError"), (404, "NotFoundError"), (429, "RateLimitError"),
    (500, "InternalServerError"), (529, "OverloadedError")])
def test_errors_of_the_service_come_through_without_the_key(server, status, name):
    import anthropic

    says(server, {"type": "error", "error": {"type": "some_error", "message": "no luck"}}, status)
    with pytest.raises(getattr(anthropic, name), match=f"{status}.*no luck") as caught:
        llm.ask("q", client=anthropic.Anthropic(api_key=KEY, base_url=server.url, max_retries=0))
    error = caught.value
    assert error.status_code == status and error.request_id == "req_7" and isinstance(error, llm.failures())
    shown = str(error), repr(error), repr(error.request), repr(error.request.headers), "".join(
        traceback.format_exception(error))
    assert not any(KEY in text for text in shown)
    assert len(server.requests) == 1


def test_nobody_listens():
    import anthropic

    with pytest.raises(anthropic.APIConnectionError) as caught:
        llm.ask("q", client=anthropic.Anthropic(api_key=KEY, base_url="http://127.0.0.1:1", max_retries=0))
    assert isinstance(caught.value, llm.failures()) and KEY not in "".join(traceback.format_exception(caught.value))


def test_failures_are_what_ask_and_text_of_raise(server, monkeypatch):
    for key in ("", "half a key"):
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        with pytest.raises(llm.failures()):
            llm.ask("q")
    with pytest.raises(llm.failures()):
        llm.text_of("plain text")
    for mistake in (TypeError(), ValueError()):                        # a mistake in the program is not hidden
        assert not isinstance(mistake, llm.failures())
