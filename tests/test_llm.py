"""Second half of the lesson on Claude: the real SDK against a server of our own.

Nothing leaves this machine: the server listens on 127.0.0.1 and sends back what a test puts into it.
"""

import inspect
import json
import logging
import os
import re
import threading
import traceback
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

import llm

KEY = "sk-ant-SECRET-0123456789"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """Neither the variables nor the profile of whoever runs the tests may decide anything."""
    for name in list(os.environ):
        if name.startswith("ANTHROPIC_"):
            monkeypatch.delenv(name)
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    llm._client.cache_clear()
    yield
    llm._client.cache_clear()


# -- A server that records what it gets and sends back what it is told to ----------------------------------------------


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"                    # keeps the connection, so that a second request may use it again

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append(SimpleNamespace(path=self.path, headers=self.headers, body=json.loads(body),
                                                    connection=self.client_address))
        status, content_type, reply = self.server.reply
        self.send_response(status)
        for name, value in (("content-type", content_type), ("content-length", len(reply)), ("request-id", "req_7")):
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *arguments):
        pass


def serve():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    made.daemon_threads, made.requests, made.url = True, [], f"http://127.0.0.1:{made.server_port}"
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
    listening.requests.clear()
    says(listening, message([TEXT]))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", listening.url)
    return listening


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def says(server, body, status=200, content_type="application/json"):
    server.reply = status, content_type, body if isinstance(body, bytes) else json.dumps(body).encode()


TEXT = {"type": "text", "text": "hello"}
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "s"}


def message(content, stop_reason="end_turn"):
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": stop_reason, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}


# -- The request -------------------------------------------------------------------------------------------------------


def test_the_request_as_it_is_sent(server, key):
    response = llm.ask("How many? {} </source>", system="Cite.", max_tokens=7)
    [sent] = server.requests
    assert sent.path == "/v1/messages"
    assert sent.body == {"model": llm.MODEL, "max_tokens": 7, "system": "Cite.",
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
    assert server.requests[0].body == {"model": llm.MODEL, "max_tokens": 1024, "system": "Cite.", "messages": [
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
        assert gone not in signature.parameters and gone not in inspect.getsource(llm.ask)
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
    ({"system": "\udc00"}, ValueError, "system holds half"), ({"model": None}, TypeError, "model must be a string"),
    ({"model": ""}, ValueError, "model is empty"), ({"max_tokens": 0}, ValueError, "max_tokens must be at least 1"),
    ({"max_tokens": -1}, ValueError, "max_tokens must be"), ({"max_tokens": 1.5}, TypeError, "max_tokens must"),
    ({"max_tokens": None}, TypeError, "max_tokens must"), ({"max_tokens": True}, TypeError, "max_tokens must"),
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
