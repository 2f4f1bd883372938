"""Beside step 15 — What is this chunk about, when it does not say so? Contextual retrieval.

"Revenue grew 3% over the previous quarter." Whose revenue, and which quarter? The document said so, two pages earlier;
a chunk is searched without its document. So a sentence or two that say where it stands are put in front of it before it
is embedded and indexed (chunking.searched_text), and never shown or cited. Trap: the embedder must have room for them,
or the chunk's end is not read; cut chunks 100 tokens smaller, and ask chunking.unseen_pieces.

    chunk["context"]   50 to 100 tokens         "From Acme's report on the second quarter of 2023."
    from_document      the context without a model: names and first sentences of the document itself
    from_claude        the context a small fast model writes with the whole document in view, one call for each chunk
    prefix, prompt     what is sent: the document, which the service keeps and reads again, and the chunk after it
    Usage              the tokens of all calls, by what they cost
    ContextCache       a file of what the model wrote, so that nothing is asked twice

Published for a context of Claude's: 1 - recall@20 falls from 5.7% to 3.7% with contextual embeddings, to 2.9% with
contextual BM25 as well, and to 1.9% with a reranker on top, for about $1.02 per million document tokens. Anthropic,
"Introducing Contextual Retrieval" (2024); others' figures, on others' documents.

What a model writes about a stranger's document is a stranger's text. Here it can only be searched; what is too short,
too long, a refusal or a copy of the chunk (`fault`) is replaced by the context from the document, and so is what could
not be had.

Not here: what it buys on our questions; late chunking, which lets the embedding model itself read around a chunk. A
chunk that has its vector already keeps it: a context then reaches keyword search alone.
"""

import hashlib
import json
import re
import threading
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import bm25
import documents
import llm
import queries
import sentences

# The most a context may hold, counted without a model. Those from the scikit-learn descriptions (120-word chunks) have
# 43 word pieces in the median, and 144 at most, where a sentence has links in it.
WORDS, CHARACTERS = 60, 600
LEAST = 4                      # words that a first sentence, and a model's context, must have to say anything
WORKERS = 4                    # calls at the same time, once the document is in the service's cache
MARK = b'{"contexts": 1}'      # the first line of a ContextCache

SITUATE = f"""Say in 50 to 100 tokens where `chunk` stands in `document` and what it is about, so that a search finds \
it: the names, dates and things that it leaves out or calls "it". Reply with that context only, on one line, in the \
language of the document. {queries.DATA}"""


# -- From the document itself ------------------------------------------------------------------------------------------


def from_document(chunks, document):
    """The chunks, each with a context from its document: new dicts, in the same order. No model is needed.

    A context has the title and the headings above the chunk, unless chunk["text"] says them already, as a breadcrumb
    does: words that stand there twice would count twice, in BM25 and in the vector. Then the first sentence of the
    document and that of the section, unless the chunk holds them itself. At most WORDS words; "" if nothing is to add.

    ValueError for a chunk that is no slice of this document.

    >>> text = "# Report\\n\\nAcme sold more in spring 2023.\\n\\n# Revenue\\n\\nIt grew 3%."
    >>> chunk = {"id": "a.md#1", "doc_id": "a.md", "title": "Report", "section_path": ["Revenue"],
    ...          "start": 53, "end": 64, "body": "It grew 3%.", "text": "Report > Revenue\\n\\nIt grew 3%."}
    >>> [each["context"] for each in from_document([chunk], {"id": "a.md", "text": text})]
    ['Acme sold more in spring 2023.']
    """
    chunks = _checked(chunks, document)
    leads = _leads(document) if chunks else {}
    return [{**chunk, "context": _context(chunk, leads)} for chunk in chunks]


def _checked(chunks, document):
    chunks = list(chunks)
    for chunk in chunks:
        body = document["text"][chunk["start"]:chunk["end"]]
        if (chunk["doc_id"], chunk["body"]) != (document["id"], body):
            raise ValueError(f"chunk {chunk['id']!r} is no slice of document {document['id']!r} as it is now: cut the "
                             "document again")
    return chunks


def _leads(document):
    """{section path: (start, end, sentence)}: the first sentence in each section and its sub-sections; (): of all."""
    leads = {}
    for block in documents.blocks(document):
        sections = [block.section_path[:depth] for depth in range(len(block.section_path) + 1)]
        if block.kind == "paragraph" and any(section not in leads for section in sections):
            piece = document["text"][block.start:min(block.end, block.start + 2 * CHARACTERS)]
            start, end = next(iter(sentences.split(piece)), (0, 0))
            if len(bm25.tokenize(piece[start:end])) >= LEAST:          # no "Note:"
                for section in sections:
                    leads.setdefault(section, (block.start + start, block.start + end, _short(piece[start:end])))
    return leads


def _context(chunk, leads):
    path = tuple(chunk.get("section_path", ()))
    names = [name for name in dict.fromkeys([chunk.get("title", ""), *path]) if name not in chunk["text"]]
    near = next((leads[path[:depth]] for depth in range(len(path), -1, -1) if path[:depth] in leads), None)
    # subtle: of the document's lead and the section's, which may be one; neither if the chunk holds a part of it
    said = [text for start, end, text in dict.fromkeys(filter(None, [leads.get(()), near]))
            if end <= chunk["start"] or chunk["end"] <= start]
    return _short(": ".join(filter(None, [" > ".join(names), " ".join(said)])))


def _short(text):
    """The text on one line, cut after WORDS words or CHARACTERS characters, between words if it has any."""
    text = " ".join(text.split()[:WORDS])
    if len(text) <= CHARACTERS:
        return text
    space = text.rfind(" ", CHARACTERS // 2, CHARACTERS + 1)           # none in a script without them
    return text[:space if space > 0 else CHARACTERS]


# -- What it costs -----------------------------------------------------------------------------------------------------


class Prices(NamedTuple):
    """Dollars per million tokens. An assumption: look them up for the model you ask.

    As Anthropic published them for Claude Haiku 4.5 (October 2025): writing to the prompt cache for five minutes costs
    1.25 times what input does, reading from it 0.1 times.
    """

    input: float = 1.00
    written: float = 1.25
    read: float = 0.10
    output: float = 5.00


class Usage(NamedTuple):
    """The tokens of some calls, as the service counted them; calls that failed without an answer have none."""

    calls: int = 0
    input: int = 0             # neither written nor read: the chunks, and the document where it is too short to be kept
    written: int = 0           # to the prompt cache
    read: int = 0              # from the prompt cache
    output: int = 0            # thinking included
    document: int = 0          # of the documents: what one call wrote or read (rules included), else characters / 4


def total(usages):
    """The sum of several Usages, say of all documents."""
    return Usage(*map(sum, zip(Usage(), *usages)))


def dollars(usage, prices=Prices()):
    """What the calls cost."""
    return sum(getattr(usage, kind) * getattr(prices, kind) for kind in Prices._fields) / 1e6


def dollars_per_million(usage, prices=Prices()):
    """What the calls cost for each million tokens of documents. ValueError if no document was asked about.

    The published $1.02 follows from what it assumes: documents of 8,000 tokens, each written once and read for each of
    its 10 chunks of 800, 50 tokens of instructions, 100 of context; and from the prices of Claude 3 Haiku. At
    the prices above the same calls cost more:

    >>> published = Usage(calls=10, input=10 * (800 + 50), written=8000, read=10 * 8000, output=10 * 100, document=8000)
    >>> round(dollars_per_million(published, Prices(input=0.25, written=0.30, read=0.03, output=1.25)), 2)
    1.02
    >>> round(dollars_per_million(published), 2)
    3.94
    """
    if usage.document <= 0:
        raise ValueError("no document was asked about, so there is no price for its tokens")
    return dollars(usage, prices) / usage.document * 1e6


# -- From Claude -------------------------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """What one call came to: a text or an error."""

    text: str | None
    usage: Usage
    error: Exception | None = None


def from_claude(chunks, document, ask=llm.ask, model=None, cache=None):
    """(chunks, Usage): the chunks, each with a context that a model wrote, new dicts in the same order; one call each.

    ask     ask(prompt, system=, model=, prefix=) -> response, as llm.ask
    model   its name; by default the one of queries.model()
    cache   a ContextCache; None: every text is asked for anew

    The first call runs alone, since it writes the document to the service's cache, from which the others read. A chunk
    whose call fails, or whose text has a fault, keeps the context from the document, with one warning for all. What
    failed is asked for again when the document is cut again (by an index that was saved: when it has changed); a text
    with a fault is kept in the cache like any other, so that it is not paid for twice, and judged whenever it is read.
    If the first call fails without an answer (no key, no network, a document too long), no more are made.

    Raises ValueError for a chunk that is no slice of this document, and what `ask` raises beyond llm.failures().
    """
    chunks = from_document(chunks, document)
    model = queries.model() if model is None else model
    prefix = _as_json(title=document.get("title", ""), document=document["text"])
    prompts = [_as_json(chunk=chunk["text"]) for chunk in chunks]
    # subtle: the document is hashed once, not once for each of its chunks
    about = _hash(model, SITUATE, prefix)
    keys = [_hash(about, prompt) for prompt in prompts]
    texts = {key: cache.get(key) for key in keys} if cache else {}
    missing = {key: prompt for key, prompt in zip(keys, prompts) if texts.get(key) is None}

    def call(key):
        """The reply for one chunk; a text is kept at once, so that nothing that comes after can lose it."""
        reply = _reply(ask, missing[key], model, prefix)
        if cache and reply.error is None:
            cache.put(key, reply.text)
        return reply

    replies = _call_all(call, list(missing))
    texts |= {key: reply.text for key, reply in zip(missing, replies)}
    contexts = [_tidy(texts.get(key) or "") for key in keys]
    faults = [fault(context, chunk) for context, chunk in zip(contexts, chunks)]
    _warn_of(faults, replies)
    return ([chunk if wrong else {**chunk, "context": context}
             for chunk, context, wrong in zip(chunks, contexts, faults)], _added(replies, document))


def _as_json(**texts):
    return json.dumps(texts, ensure_ascii=False).encode("utf-8", "replace").decode()     # "?" for half characters


def _hash(*decides):
    return hashlib.sha256(json.dumps(decides).encode()).hexdigest()


def _reply(ask, prompt, model, prefix):
    usage = Usage(1)
    try:
        response = ask(prompt, system=SITUATE, model=model, prefix=prefix)
        usage = Usage(1, **llm.usage_of(response))                   # a refusal costs as well
        return Reply(llm.text_of(response), usage)
    except llm.failures() as error:
        return Reply(None, usage, error)


def _call_all(call, keys):
    """The replies, in the order of keys; the first one alone if it is a failure that the others would share."""
    replies = [call(key) for key in keys[:1]]
    if keys and isinstance(replies[0].error, (type(None), llm.NoAnswer)):
        with ThreadPoolExecutor(WORKERS) as pool:
            replies += pool.map(call, keys[1:])
    return replies


def _warn_of(faults, replies):
    if found := [each for each in faults if each]:
        error = next((reply.error for reply in replies if reply.error), None)
        warnings.warn(f"{len(found)} of {len(faults)} contexts come from the document, since the model's could not be "
                      f"had or used: {error or found[0]}", stacklevel=3)


def _added(replies, document):
    kept = max((reply.usage.written + reply.usage.read for reply in replies), default=0)
    n_tokens = kept or -(-len(document["text"]) // 4) if replies else 0
    return total(reply.usage for reply in replies)._replace(document=n_tokens)


_LABEL = re.compile(r"\A(?:the |this chunk's )?context\s*:\s*", re.IGNORECASE)
_declines = re.compile(r"(?i)\W*(?:(?:there is )?no (?:\w+ )?context\b"
                       r"|th(?:e|is) (?:chunk|document|passage) (?:is|was|does|can|could)(?:n['’]t| ?not)\b)").match


def _tidy(text):
    return _LABEL.sub("", " ".join(text.encode("utf-8", "replace").decode().split()))


def fault(context, chunk):
    """Why a context should not stand in front of a chunk, in a word or two; "" if nothing speaks against it.

    >>> fault("I'm sorry, I cannot see the chunk.", {"text": "It grew 3%."})
    'talk'
    >>> fault("From Acme's report on spring 2023.", {"text": "It grew 3%."})
    ''
    """
    faults = {"too short": len(bm25.tokenize(context)) < LEAST, "too long": len(context) > CHARACTERS,
              "talk": queries.talks(context) or _declines(context),
              "a copy": context in " ".join(chunk["text"].split())}
    return next((name for name, found in faults.items() if found), "")


# -- A file of what was written ----------------------------------------------------------------------------------------


class ContextCache:
    """A file of texts, found by the hash of all that decides them: a line of JSON for each, the last one counts.

    A line is added as soon as its text is there, so a crash loses at most the one it was writing. Every line carries a
    CRC-32: damaged ones are passed over, with a warning. A file that does not begin as such a cache does is left alone,
    and where nothing can be read or written, all goes on without: each of these is a warning. Making one touches
    nothing; the file is read when the first text is looked up.
    """

    def __init__(self, path):
        self.path = Path(path).expanduser()
        self._texts, self._writable, self._lock = None, True, threading.Lock()

    def get(self, key):
        """The text of this key, or None."""
        with self._lock:
            return self._read().get(key)

    def put(self, key, text):
        """Keep the text, here and, if it can be written, in the file."""
        with self._lock:
            self._read()[key] = text
            if self._writable:
                try:
                    self._append(_line(key, text))
                except OSError as error:
                    self._give_up(f"cannot be written ({error})")

    def _append(self, line):
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(self.path, "ab") as file:
            # subtle: the line end comes first, so that a line which a crash cut short does not take the next one along
            file.write((b"" if file.tell() else MARK) + b"\n" + line)

    def _read(self):
        if self._texts is None:
            self._texts = {}
            try:
                mark, *lines = self.path.read_bytes().split(b"\n") if self.path.exists() else [b""]
            except OSError as error:
                self._give_up(f"cannot be read ({error})")
                return self._texts
            if not MARK.startswith(mark) or lines and not mark:        # part of it is ours: a crash cut it short
                self._give_up("does not begin as a cache of contexts does: move it away to begin a new one")
                return self._texts
            read = [_checked_line(line) for line in lines if line != MARK]
            self._texts = dict(filter(None, read))
            if damaged := read.count(None):
                warnings.warn(f"{damaged} of {len(read)} contexts in {self.path} are damaged: they are asked for again",
                              stacklevel=2)
        return self._texts

    def _give_up(self, why):
        self._writable = False
        warnings.warn(f"{self.path} {why}: going on without", stacklevel=2)


def _line(key, text):
    return json.dumps({"key": key, "text": text, "crc": zlib.crc32(_hash(key, text).encode())}).encode()


def _checked_line(line):
    """(key, text), or None if this cannot be what `put` wrote."""
    try:
        found = json.loads(line)
        key, text = found["key"], found["text"]
        return (key, text) if isinstance(text, str) and _line(key, text) == line else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


if __name__ == "__main__":
    import chunking

    report = {"id": "acme.md", "title": "Quarterly report", "doc_type": "md", "text": (
        "# Quarterly report\n\nAcme made pumps in the second quarter of 2023.\n\n"
        "## Revenue\n\nIt grew 3% over the previous quarter.\n")}
    cut = chunking.structured(report, 8)
    for chunk in from_document(cut, report):
        print(f"{chunk['body']!r}\n    from the document: {chunk['context']!r}")
    cost = Usage(calls=10, input=8500, written=8000, read=80_000, output=1000, document=8000)
    print("a document of 8,000 tokens in 10 chunks, in dollars:",
          " + ".join(f"{getattr(cost, kind):,} * {price:g}e-6" for kind, price in Prices()._asdict().items()),
          f"= {dollars(cost):.4f}\nper million document tokens: {dollars_per_million(cost):.2f}")
