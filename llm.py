"""Step 14 of 22 — Ask Claude, or, without a key, quote the best sentence. Before: rerank.py. Next: queries.py.

Retrieval has found the pages; somebody has to read them. Two readers live here. Claude reads the whole prompt and
writes an answer: that needs the environment variable ANTHROPIC_API_KEY, a network, and money. The extractive reader
needs none of them: it cannot write, it only quotes the sentence that fits the question best, or says "I don't know".

    prompt     what Claude is asked: sources and question, one string; `system` holds the rules
    prefix     a text in front of many prompts, say a document: the service keeps it for five minutes and reads it from
               there, for less money
    response   what came back: blocks (the text among them) and stop_reason, which says why the model stopped writing
    sources    chunks, dicts with a "title" and a "body"; the first has number 1
    unit       a quotable piece of a body: a sentence, a bullet, a field with its value, a row of a table
    quote      the best unit and its source's number             toy: "the dog chased the cat [2]"

The reader is the whole pipeline once more in small, with sentences for chunks: cosine finds candidates, MaxSim chooses
among them, and a threshold decides whether the best is good enough. The number is the last thing in its answer; other
brackets belong to the quoted text.

Not here: streaming, tools, temperature (the service does not take one any more, so the same prompt may
get another answer tomorrow); sentence boundaries in general.
"""

import functools
import json
import os
import re
import sys
import urllib.parse

import index
import ranking
import rerank

MODEL = "claude-sonnet-5-5"
TIMEOUT = 120.0                # seconds that a server may be silent; the SDK's own ten minutes look like a hang
UNKNOWN = "I don't know"
CANDIDATES = 5                 # how many units MaxSim looks at: 3, 5 or 10 gave 32 right quotes of 40, all of them 33

# The least MaxSim of a quote. Measured over the scikit-learn descriptions (300-word chunks, k = 3) with 40 questions
# that they answer, 20 near ones that they do not ("How many instances are in the titanic dataset?") and 20 far ones:
#     threshold   0.4   0.5   0.6   0.65   0.7
#     right        32    32    29     29    22    of 40: the quote holds the answer
#     wrong         8     8     7      4     2    of 40: it does not
#     near          5    11    17     19    19    of 20 refused
#     far          18    20    20     20    20    of 20 refused
# No threshold parts them cleanly. A wrong quote costs more than a refusal, so not 0.5; but not 0.65 either: on other
# texts (leave rules, a recipe, error messages; 18 questions with an answer) 0.5 gave 13 right, 0.6 10, and 0.65 only 8.
THRESHOLD = 0.6


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
    request = {"model": _check_text(model, "model"), "max_tokens": ranking.check_k(max_tokens, 1, "max_tokens"),
               "messages": [{"role": "user", "content": _content(prompt, prefix)}]}
    if system is not None:
        request["system"] = _check_text(system, "system")
    client = _client(_key(), _base_url()) if client is None else client
    try:
        return client.messages.create(**request)
    except (json.JSONDecodeError, RecursionError) as error:
        raise NoAnswer("the server's answer is no JSON: ask again, or check ANTHROPIC_BASE_URL") from error


def _content(prompt, prefix):
    _check_text(prompt, "prompt")
    if prefix is None:
        return prompt
    # the service keeps all that stands up to the mark, system included
    cached = {"type": "text", "text": _check_text(prefix, "prefix"), "cache_control": {"type": "ephemeral"}}
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
                         "one, and the extractive reader (llm.extractive_answer) answers instead")
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


def _check_text(text, name):
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a string, not a {type(text).__name__}")
    if not text.strip():
        raise ValueError(f"the {name} is empty")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"the {name} holds half a character (a surrogate); decode it with errors='replace'")
    return text


# -- The extractive reader ---------------------------------------------------------------------------------------------


def extractive_answer(question, sources, embedder):
    """The unit of `sources` that fits the question best, verbatim, and its source's number; or UNKNOWN.

    sources   dicts with a "title" and a "body", numbered from 1; none: UNKNOWN, and no model is touched
    embedder  an Embedder (embedding.py)

    White space in a quote is collapsed; of equal units the first source's is quoted. TypeError or ValueError for a
    question that is no text or blank.

    >>> extractive_answer("Who chased the cat?", [], embedder=None)
    "I don't know"
    """
    _check_text(question, "question")
    places = {}
    for number, source in enumerate(sources, start=1):
        for unit in units(source["body"]):
            if unit != source["title"]:                                # a title fits every question, and answers none
                # the title goes in front as it does for chunks: ":Number of Instances: 178" says not of what
                places.setdefault(f"[{source['title']}] {unit}", (unit, number))
    if not places:
        return UNKNOWN
    text, score = _best(question, list(places), embedder)
    unit, number = places[text]
    return f"{unit} [{number}]" if score >= THRESHOLD else UNKNOWN


def _best(question, texts, embedder):
    """The best of `texts` and its MaxSim. Comparing one vector a text is quick; MaxSim sees more, and costs more."""
    [query_vector] = embedder.encode([question], kind="query")         # [1, dim] -> [dim]
    positions, _ = index.cosine_top_k(query_vector, embedder.encode(texts), CANDIDATES)
    candidates = [{"text": texts[position]} for position in positions]
    [(best, score)] = rerank.rerank(question, candidates, top_k=1, scorer=rerank.maxsim_scorer(embedder))
    return best["text"], score


_SILENT = re.compile(r"[\W_]*$|\s*\.\.\s")             # blank, a rule (----, ====, |---|), a directive (.. rubric:: X)
_MARK = re.compile(r"\s*(:[^:]+:(\s|$)|[-*+•|#>]+\s|\(?\d{1,3}[.)]\s)")         # a field, a bullet, a row, (1) or 1.
_GAP = re.compile(r"[^\s.!?)] {2,}\S")                 # columns; two blanks after a full stop are only an old custom
_SENTENCE_END = re.compile(
    r"""(?:(?<=[.!?])|(?<=[.!?][)"'\]]))"""            # not the stop inside 14.8 or 0..16: white space must follow,
    r"\s+(?=[\"'(\[]?[A-Z0-9])"                        # and then a capital letter or a digit
    # not after "R.", "Dr.", "Rep.", "et al."; the price: nor after a sentence whose last word is "Bob"
    r"(?<!\b[A-Z]\.\s)(?<!\b[A-Z][a-z]\.\s)(?<!\b[A-Z][a-z]{2}\.\s)(?<!\bal\.\s)")


def units(body):
    """The pieces of a body that can be quoted, in order, each with its white space collapsed.

    >>> units(":Creator: R. A. Fisher\\n:Range: 0..16\\n\\nAlcohol  11.0  14.8\\nAsh  1.36  3.23")
    [':Creator: R. A. Fisher', ':Range: 0..16', 'Alcohol 11.0 14.8', 'Ash 1.36 3.23']
    >>> units("The data is a\\ncopy. It has 14.8 in it.")
    ['The data is a copy.', 'It has 14.8 in it.']
    """
    pieces, goes_on = [], False
    for line in body.splitlines():
        if _SILENT.match(line):
            goes_on = False
            continue
        marked = bool(_MARK.match(line))
        row = not marked and bool(_GAP.search(line.strip()))
        if goes_on and not marked and not row:
            pieces[-1].append(line)                                    # a wrapped line goes on with the one before
        else:
            pieces.append([line])
        goes_on = not row
    return [unit for lines in pieces for unit in _SENTENCE_END.split(" ".join(" ".join(lines).split()))]


if __name__ == "__main__":
    import embedding
    from toy import DOCUMENTS

    print("who would answer here:", MODEL if has_key() else "the extractive reader, since no ANTHROPIC_API_KEY is set")
    sources = [{"title": "Animals", "body": text} for text in DOCUMENTS]
    texts = [f"[Animals] {text}" for text in DOCUMENTS]
    embedder = embedding.load_embedder()
    # the second question shows what a threshold costs: a right sentence is refused
    for question in ("Who chased the cat?", "Where did the cat sit?", "What is the capital of France?"):
        best, score = _best(question, texts, embedder)
        print(f"{question} -> {extractive_answer(question, sources, embedder)}")
        print(f"    best: {best!r}, MaxSim {score:.2f}, {'above' if score >= THRESHOLD else 'below'} {THRESHOLD}")
