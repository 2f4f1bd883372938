"""Step 14 of 22 — Ask Claude, or, without a key, quote the best sentence. Before: rerank.py. Next: queries.py.

Retrieval has found the pages; somebody has to read them. Claude reads the whole prompt and writes an answer: that needs
the environment variable ANTHROPIC_API_KEY, a network, and money. Without them the extractive reader answers
(reader.py), which can only quote.

    prompt     what Claude is asked: sources and question, one string; `system` holds the rules
    prefix     a text in front of many prompts, say a document: the service keeps it for five minutes and reads it from
               there, for less money
    packed     the sources alone, where the service itself is to say which of them a sentence comes from
    response   what came back: blocks (the text among them) and stop_reason, which says why the model stopped writing;
               usage counts the tokens

The environment variable RAG_MODEL names the model, else it is MODEL. What fails for a moment (429, 5xx, no connection)
is tried again, RETRIES times, by the SDK: after half a second, then a second, or after what the service's retry-after
says, however long that is.

Not here: tools; temperature (the service does not take one any more, so the same prompt may get another answer
tomorrow); which sentence of a source is meant, since the service points to whole blocks, and a source is one.
"""

import contextlib
import functools
import math
import os
import re
import sys
import urllib.parse

import ranking

MODEL = "claude-sonnet-5-5"    # unless RAG_MODEL names another
RETRIES = 2                    # so a question is sent three times at most
TIMEOUT = 120.0                # seconds that a server may be silent; the SDK's own ten minutes look like a hang
UNKNOWN = "I don't know"


class MissingKey(RuntimeError):
    """No ANTHROPIC_API_KEY is set, so Claude cannot be asked."""


class BadSetting(ValueError):
    """ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL is set to something that cannot be one."""


class NoAnswer(RuntimeError):
    """The service sent something back, but not a finished answer; `partial` holds the text that came, "" if none."""

    def __init__(self, message, partial=""):
        super().__init__(message)
        self.partial = partial


def failures():
    """What the functions here raise for reasons outside the program, for an except clause.

    No key or a bad one, a refusal, a cut answer, and whatever the SDK says about the network or the service.
    """
    sdk = sys.modules.get("anthropic")                                 # not loaded: then it has raised nothing
    return (MissingKey, BadSetting, NoAnswer) + ((sdk.AnthropicError,) if sdk else ())


# -- Claude ------------------------------------------------------------------------------------------------------------


def has_key():
    """Is there a key, so that Claude can be asked?"""
    return bool(os.environ.get("ANTHROPIC_API_KEY", "").strip())


def default_model():
    """The model that answers: the one that RAG_MODEL names, else MODEL."""
    return os.environ.get("RAG_MODEL", "").strip() or MODEL


def ask(prompt, system=None, model=None, max_tokens=1024, client=None, prefix=None, packed=None, timeout=None):
    """Send one prompt to Claude and return the service's response: an anthropic.types.Message, unless the server errs.

    prompt      what to answer; `system`, if given, holds the rules for answering, and is marked for the service's cache
    model       its name; by default that of default_model()
    max_tokens  the most word pieces the model may write, thinking included
    client      an anthropic.Anthropic of your own; by default one for ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL
    prefix      a text in front of the prompt, a block of its own that is written to the service's cache; later calls
                with the same model, system and prefix read it from there (usage_of says what was). Trap: below some
                length, which depends on the model, nothing is cached, and nothing is said
    packed      sources with the ids S1, S2, ... in this order, each with a title, body and places (Sources of
                prompt.py), between prefix and prompt as blocks of their own, which no text can imitate. The service
                then says which source a stretch of the answer comes from: text_of writes it behind as [S1]
    timeout     how many seconds the server may be silent; by default the client's, TIMEOUT

    Before any request: TypeError or ValueError for a prompt, prefix, system or model that is no text or blank, for
    max_tokens below 1, a timeout that is no time, for a key or address that no header or request can carry;
    MissingKey without a key. After it: the SDK's own exceptions (all of them anthropic.AnthropicError), NoAnswer if
    what came back is no JSON.
    """
    client, request = _prepared(prompt, system, model, max_tokens, client, prefix, packed, timeout)
    with _guarded(client):
        return client.messages.create(**request)


def stream(prompt, write, **settings):
    """As `ask`, but the text goes to write(piece) as it comes; returns the response when it is complete.

    settings  those of `ask`; with `packed`, what is written has no citations yet, text_of(response) has

    Raises what `ask` does, and NoAnswer, with what came as its `partial`, if the stream breaks off or turns to
    nonsense. Trap: what was written is on the screen then, so say that it is no answer.

    >>> stream("How many?", print)                                      # doctest: +SKIP
    There are
     178 [1].
    """
    client, request = _prepared(prompt, **settings)
    with contextlib.ExitStack() as stack:
        with _guarded(client):
            events = stack.enter_context(client.messages.stream(**request))
        pieces = _pieces(client, events)
        while isinstance(piece := next(pieces), str):
            write(piece)
        return piece


def _pieces(client, events):
    """The pieces of text of a stream, and at last the response."""
    came, response, broken = [], None, None
    try:
        with _guarded(client):
            for event in events:
                if event.type == "text":
                    came.append(event.text)
                    yield event.text
                elif event.type == "message_stop":
                    response = event.message
    except Exception as error:         # of the network, the service, or the SDK, which takes any event for a sound one
        broken = error
    # subtle: a stream that just ends raises nothing, and the SDK hands on what it has as if that were all
    if response is None:
        raise NoAnswer("the stream broke off, so this is no finished answer: ask again, or check ANTHROPIC_BASE_URL "
                       f"({broken or 'it ended without message_stop'})", "".join(came)) from broken
    yield response


def count_tokens(prompt, **settings):
    """How many input tokens the service counts for what `ask` would send, with the same settings; it costs a request.

    Raises what `ask` does, and NoAnswer if the server names no number.
    """
    client, request = _prepared(prompt, **settings)
    del request["max_tokens"]
    with _guarded(client):
        count = getattr(client.messages.count_tokens(**request), "input_tokens", None)
    if not isinstance(count, int):
        raise NoAnswer("the server counts no tokens: check ANTHROPIC_BASE_URL")
    return count


@contextlib.contextmanager
def _guarded(client):
    """What goes wrong in a request becomes one of failures(), and none that shows the key."""
    try:
        yield
    except (ValueError, RecursionError) as error:                      # letters, brackets or digits that JSON has not
        raise NoAnswer("the server's answer is no JSON: ask again, or check ANTHROPIC_BASE_URL") from error
    except failures() as error:
        key = getattr(client, "api_key", None)
        if key and key in str(error):
            raise NoAnswer("the server's error message holds the key, so it is not shown: check ANTHROPIC_API_KEY and "
                           "ANTHROPIC_BASE_URL") from None
        raise


def _prepared(prompt, system=None, model=None, max_tokens=1024, client=None, prefix=None, packed=None, timeout=None):
    """The client, and what it is to send."""
    model = default_model() if model is None else check_text(model, "model")
    request = {"model": model, "max_tokens": ranking.check_k(max_tokens, 1, "max_tokens"),
               "messages": [{"role": "user", "content": _content(prompt, prefix, packed)}]}
    if system is not None:
        request["system"] = [_kept(check_text(system, "system"))]
    if timeout is not None and not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
        raise ValueError(f"timeout must be a number of seconds above 0, not {timeout!r}")
    client = _client(_key(), _base_url()) if client is None else client
    # subtle: said in each request, or the SDK has a ValueError of its own for a large max_tokens
    return client, request | {"timeout": client.timeout if timeout is None else timeout}


def _content(prompt, prefix, packed):
    check_text(prompt, "prompt")
    if prefix is None and packed is None:
        return prompt
    # the service keeps all that stands up to the mark, system included
    front = [] if prefix is None else [_kept(check_text(prefix, "prefix"))]
    return [*front, *_search_results(packed), {"type": "text", "text": prompt}]


def _kept(text):
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def _search_results(packed):
    if packed is not None and [source.id for source in packed] != [f"S{n + 1}" for n in range(len(packed) or 1)]:
        raise ValueError("packed must hold all sources of a prompt, S1, S2, ... in this order: the service counts them")
    return [{"type": "search_result", "source": _sound(source.places[0].get("source") or source.title),
             "title": _sound(source.title), "content": [{"type": "text", "text": _sound(source.body)}],
             "citations": {"enabled": True}} for source in packed or ()]


def _sound(text):
    return text.encode("utf-8", "replace").decode()                    # "?" for half characters


def usage_of(response):
    """The tokens of a response by what they cost: neither written nor read, written to the cache, read from it, output.

    All that was sent are the first three together; thinking counts as output. 0 where the server gave none.

    >>> usage_of("<html>")
    {'input': 0, 'written': 0, 'read': 0, 'output': 0}
    """
    names = {"input": "input_tokens", "written": "cache_creation_input_tokens", "read": "cache_read_input_tokens",
             "output": "output_tokens"}
    counts = {kind: getattr(getattr(response, "usage", None), name, None) for kind, name in names.items()}
    return {kind: count if isinstance(count, int) else 0 for kind, count in counts.items()}


def text_of(response):
    """The text of a finished answer. Raises NoAnswer for anything else: a part of an answer is not an answer.

    Where the service named sources of `packed`, they stand behind what comes from them, as [S1] or [S1][S3].

    >>> from types import SimpleNamespace as Made
    >>> blocks = [Made(type="thinking", thinking="Hm."), Made(type="text", text="178 "), Made(type="text", text="[1]")]
    >>> text_of(Made(stop_reason="end_turn", content=blocks))
    '178 [1]'
    >>> text_of(Made(stop_reason="max_tokens", content=blocks))
    Traceback (most recent call last):
    llm.NoAnswer: no finished answer (stop_reason 'max_tokens'): it was cut; ask again with a larger max_tokens
    """
    # subtle: the SDK checks nothing, so a wrong server's answer may be a bare string, or have None for its blocks
    reason = getattr(response, "stop_reason", None)
    blocks = getattr(response, "content", None)
    # subtle: not content[0].text, since a thinking block may come first and a block of a new kind has no text
    blocks = [block for block in (blocks if isinstance(blocks, list) else [])
              if getattr(block, "type", None) == "text" and isinstance(block.text, str)]
    text = "".join(block.text for block in blocks)
    if reason not in ("end_turn", "stop_sequence"):
        advice = _ADVICE.get(str(reason), "the model stopped for something that this program does not offer")
        raise NoAnswer(f"no finished answer (stop_reason {reason!r}): {advice}", text)
    if not text.strip():
        raise NoAnswer(f"the answer is empty (stop_reason {reason!r}): ask again, or put the question in other words")
    return "".join(map(_marked, blocks, [*(block.text for block in blocks[1:]), ""]))


def _marked(block, after):
    """A block's text with the sources that the service names for it behind: "It is red. [S1][S3]"."""
    places = block.citations if isinstance(getattr(block, "citations", None), list) else []
    positions = [getattr(place, "search_result_index", None) for place in places]        # from 0; None: not of `packed`
    marks = dict.fromkeys(f"[S{index + 1}]" for index in positions if isinstance(index, int) and index >= 0)
    if not marks:
        return block.text
    words = block.text.rstrip()                                        # a mark after the line is the next sentence's
    # subtle: "[S1]" and "(2024)" would be a link, and a fence that has a mark behind it would not end
    gap = "\n" if words.rpartition("\n")[2].lstrip().startswith(("```", "~~~")) else " "
    return f"{words}{gap}{''.join(marks)}{block.text[len(words):] or ' ' * after.startswith('(')}"


_ADVICE = {
    "None": "the connection broke off, or this is no message of the service; ask again, or check ANTHROPIC_BASE_URL",
    "max_tokens": "it was cut; ask again with a larger max_tokens",
    "refusal": "the model declines to answer; put the question in other words, or look at what the sources say",
    "model_context_window_exceeded": "the prompt is too long for this model; send fewer or shorter sources",
}


@functools.lru_cache(maxsize=1)
def _client(key, base_url):
    # the cache makes the second question reuse the connection, and another key or address get another client
    import anthropic

    return anthropic.Anthropic(api_key=key, base_url=base_url, timeout=TIMEOUT, max_retries=RETRIES)


def _key():
    # subtle: the SDK would find out only when it sends, and then say "Connection error."; the key itself is never shown
    key = os.environ.get("ANTHROPIC_API_KEY", "").strip()
    if not key:
        raise MissingKey("set the environment variable ANTHROPIC_API_KEY to ask Claude; everything else works without "
                         "one, and the extractive reader (reader.py) answers instead")
    if not re.fullmatch("[!-~]+", key):
        raise BadSetting("ANTHROPIC_API_KEY has white space or a character that is not ASCII inside: copy it again")
    return key


def _base_url():
    url = os.environ.get("ANTHROPIC_BASE_URL")
    if url is None:
        return None
    url = url.strip()
    try:
        parts = urllib.parse.urlsplit(url)
        good = re.fullmatch("[!-~]*", url) and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:                                                 # a port that is no number, half an IPv6 address
        good = False
    if not good:
        raise BadSetting("ANTHROPIC_BASE_URL must be an address that begins with http:// or https://; unset it to "
                         "reach Anthropic itself")
    return url


def check_text(text, name):
    """The text. Raises TypeError if it is none, ValueError if it is blank or holds half a character."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, not a {type(text).__name__}")
    if not text.strip():
        raise ValueError(f"the {name} is empty")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"the {name} holds half a character (a surrogate); decode it with errors='replace'")
    return text


if __name__ == "__main__":
    from types import SimpleNamespace

    who = default_model() if has_key() else "the extractive reader, since no ANTHROPIC_API_KEY is set"
    print("who would answer here:", who)
    blocks = [SimpleNamespace(type="thinking", thinking="Which one?"), SimpleNamespace(type="text", text="178 [1]")]
    for reason in ("end_turn", "max_tokens", "refusal", None):
        try:
            print(f"{reason}: {text_of(SimpleNamespace(stop_reason=reason, content=blocks))}")
        except NoAnswer as error:
            print(f"{reason}: {error}")
    pointers = [SimpleNamespace(search_result_index=0), SimpleNamespace(search_result_index=2)]
    blocks = [SimpleNamespace(type="text", text="There are 178", citations=pointers),
              SimpleNamespace(type="text", text=".")]
    print("cited by the service:", text_of(SimpleNamespace(stop_reason="end_turn", content=blocks)))
