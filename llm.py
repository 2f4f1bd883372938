"""Step 14 of 22 — Ask Claude, or, without a key, quote the best sentence. Before: rerank.py. Next: queries.py.

Retrieval has found the pages; somebody has to read them. Claude reads the whole prompt and writes an answer: that needs
the environment variable ANTHROPIC_API_KEY, a network, and money. Without them the extractive reader answers
(reader.py), which can only quote.

    prompt     what Claude is asked: sources and question, one string; `system` holds the rules
    prefix     a text in front of many prompts, say a document: the service keeps it for five minutes and reads it from
               there, for less money
    response   what came back: blocks (the text among them) and stop_reason, which says why the model stopped writing

Not here: streaming, tools, temperature (the service does not take one any more, so the same prompt may
get another answer tomorrow).
"""

import functools
import json
import os
import re
import sys
import urllib.parse

import ranking

MODEL = "claude-sonnet-5-5"
TIMEOUT = 120.0                # seconds that a server may be silent; the SDK's own ten minutes look like a hang
UNKNOWN = "I don't know"


class MissingKey(RuntimeError):
    """No ANTHROPIC_API_KEY is set, so Claude cannot be asked."""


class BadSetting(ValueError):
    """ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL is set to something that cannot be one."""


class NoAnswer(RuntimeError):
    """The service sent something back, but not a finished answer."""


def failures():
    """What `ask` and `text_of` raise for reasons outside the program, for an except clause.

    No key or a bad one, a refusal, a cut answer, and whatever the SDK says about the network or the service.
    """
    sdk = sys.modules.get("anthropic")                                 # not loaded: then it has raised nothing
    return (MissingKey, BadSetting, NoAnswer) + ((sdk.AnthropicError,) if sdk else ())


# -- Claude ------------------------------------------------------------------------------------------------------------


def has_key():
    """Is there a key, so that Claude can be asked?"""
    return bool(os.environ.get("ANTHROPIC_API_KEY", "").strip())


def ask(prompt, system=None, model=MODEL, max_tokens=1024, client=None, prefix=None):
    """Send one prompt to Claude and return the service's response: an anthropic.types.Message, unless the server errs.

    prompt      what to answer; `system`, if given, holds the rules for answering
    max_tokens  the most word pieces the model may write, thinking included
    client      an anthropic.Anthropic of your own; by default one for ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL
    prefix      a text in front of the prompt, a block of its own that is written to the service's cache; later calls
                with the same model, system and prefix read it from there. response.usage says what was: all tokens that
                were sent are input_tokens + cache_creation_input_tokens + cache_read_input_tokens. Trap: below some
                length, which depends on the model, nothing is cached, and nothing is said

    Before any request: TypeError or ValueError for a prompt, prefix, system or model that is no text or blank, for
    max_tokens below 1, for a key or address that no header or request can carry; MissingKey without a key. After it:
    the SDK's own exceptions (all of them anthropic.AnthropicError), NoAnswer if what came back is no JSON.
    """
    request = {"model": check_text(model, "model"), "max_tokens": ranking.check_k(max_tokens, 1, "max_tokens"),
               "messages": [{"role": "user", "content": _content(prompt, prefix)}]}
    if system is not None:
        request["system"] = check_text(system, "system")
    client = _client(_key(), _base_url()) if client is None else client
    try:
        return client.messages.create(**request)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NoAnswer("the server's answer is no JSON: ask again, or check ANTHROPIC_BASE_URL") from error


def _content(prompt, prefix):
    check_text(prompt, "prompt")
    if prefix is None:
        return prompt
    # the service keeps all that stands up to the mark, system included
    cached = {"type": "text", "text": check_text(prefix, "prefix"), "cache_control": {"type": "ephemeral"}}
    return [cached, {"type": "text", "text": prompt}]


def text_of(response):
    """The text of a finished answer. Raises NoAnswer for anything else: a part of an answer is not an answer.

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
    if reason not in ("end_turn", "stop_sequence"):
        advice = _ADVICE.get(str(reason), "the model stopped for something that this program does not offer")
        raise NoAnswer(f"no finished answer (stop_reason {reason!r}): {advice}")
    # subtle: not content[0].text, since a thinking block may come first and a block of a new kind has no text
    blocks = response.content if isinstance(response.content, list) else []
    texts = [block.text for block in blocks if getattr(block, "type", None) == "text"]
    text = "".join(part for part in texts if isinstance(part, str))
    if not text.strip():
        raise NoAnswer(f"the answer is empty (stop_reason {reason!r}): ask again, or put the question in other words")
    return text


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

    return anthropic.Anthropic(api_key=key, base_url=base_url, timeout=TIMEOUT)


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

    print("who would answer here:", MODEL if has_key() else "the extractive reader, since no ANTHROPIC_API_KEY is set")
    blocks = [SimpleNamespace(type="thinking", thinking="Which one?"), SimpleNamespace(type="text", text="178 [1]")]
    for reason in ("end_turn", "max_tokens", "refusal", None):
        try:
            print(f"{reason}: {text_of(SimpleNamespace(stop_reason=reason, content=blocks))}")
        except NoAnswer as error:
            print(f"{reason}: {error}")
