"""Beside step 18 — Which documents are asked, how are they kept, and is retrieval needed at all?

Three ways lead knowledge into an answer. Fine-tuning teaches a style, but cannot name a source and forgets no old fact.
A long context is simple: send everything; it costs more with every word and question, and the middle is read worst.
Retrieval costs the same however much there is, is as fresh as its index, and can be cited.

    whole corpus   what a prompt has room for (LONG_CONTEXT tokens) can be sent whole, if questions are few or need all
                   of a document, and everybody may see everything
    search         when there is more, when it changes daily, when many ask, when users may see different documents
    index          a folder in which chunks, vectors and postings are kept (index.py); what a document says decides
                   whether it is cut and embedded anew, so no answer comes from an old text
    where          conditions (filters.py), as a command line gives them: doc_type=md, effective_date>=2025-01-01

Attention to long prompts is uneven: Liu et al., "Lost in the Middle" (TACL 2024); Modarressi et al., "NoLiMa" (ICML
2025): where question and answer share few words, GPT-4o fell from 99.3% to 69.7% at 32,000 tokens.

Not here: both at once, which is often best: search well, then send larger parents.
"""

import functools
import re
import sys
import warnings
from pathlib import Path

import chunking
import contextual
import documents
import filters
import vector_cache
from index import Index

ROOM = 44                              # word pieces that a context gets beyond the 56 that chunks of SIZE leave free
SIZE = 200                             # word pieces in a chunk, breadcrumb and specials included
LONG_CONTEXT, LETTERS = 200_000, 4      # tokens that a prompt has room for, and how many letters make one, about


def read_folder(folder):
    """The Documents in a person's own folder; the files that could not be read are named on stderr.

    Raises as documents.load_folder does.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        docs = documents.load_folder(folder)                           # if it raises, it says why itself
    for each in caught:
        print(each.message, file=sys.stderr)
    return docs


def cut(document, embedder, size=SIZE, context=""):
    """The chunks of a document: `size` word pieces at most, since MiniLM reads 256; no overlap, for no sentence is cut.

    context   "document" or "claude": what is searched in front of each chunk (contextual.py)
    """
    chunks = chunking.structured(document, size=size, length="tokens", embedder=embedder)
    if context == "document":
        return contextual.from_document(chunks, document)
    if context == "claude":
        chunks, usage = contextual.from_claude(chunks, document, cache=_contexts())
        if usage.calls:
            print(f"contexts of {document['id']}: {usage.calls} calls, {usage.written} tokens written to the service's "
                  f"cache, {usage.read} read from it, ${contextual.dollars_per_million(usage):.2f} for each million "
                  "tokens of documents", file=sys.stderr)
    return chunks


@functools.cache
def _contexts():
    """Where what Claude wrote is kept, beside the vectors."""
    path = vector_cache.default_path()
    return path and contextual.ContextCache(path.with_name("contexts.jsonl"))


def open_index(docs, embedder, folder=None, context=""):
    """An Index that holds `docs` and no others. With a folder, what was saved there is used, changed and saved again.

    What a document says is compared, not when its file was changed: only what differs is cut and embedded. Raises what
    Index.load and Index.save do.
    """
    chunker = functools.partial(cut, embedder=embedder, size=SIZE - ROOM if context else SIZE, context=context)
    fresh = Index.build([], embedder, chunker)
    if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
        raise ValueError(f"{folder} is a file: give a folder for the index, which is made if it is not there")
    try:
        kept = fresh if folder is None else Index.load(folder, embedder, chunker)
    except FileNotFoundError:                                          # the first time
        kept = fresh
    kept = kept if kept.title_boost == fresh.title_boost else fresh
    changes = kept.sync(docs)
    if folder is not None and any(changes):
        kept.token_store.fill(map(chunking.searched_text, kept.chunks))
        try:
            kept.save(folder)
        except BlockingIOError as error:                               # what is asked now can be answered all the same
            warnings.warn(f"the index is not saved: {error}", stacklevel=2)
        print("index:", ", ".join(f"{len(ids)} {name}" for name, ids in zip(("added", "updated", "removed"), changes)),
              file=sys.stderr)
    return kept


CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|=|<|>)(?!=)\s*(.*?)\s*", re.DOTALL)


def conditions(texts, latest=False):
    """`where` (filters.py) from the command line's texts. A field that is given twice may be either, or is a range.

    >>> conditions(["doc_type=md", "doc_type=html", "effective_date>=2025-01-01", "effective_date<=2025-12-31"])
    {'doc_type': ['md', 'html'], 'effective_date': ('2025-01-01', '2025-12-31')}
    """
    where = {}
    for text in texts:
        found = CONDITION.fullmatch(text)
        if not found:
            raise ValueError(f"a condition looks like doc_type=md or effective_date>=2025-01-01, not like {text!r}")
        field, sign, value = found.groups()
        if field == "latest":
            raise ValueError("for the newest versions write --latest")
        before = where.get(field)
        if sign == "=" and isinstance(before, (list, type(None))):
            where[field] = [*(before or []), value]
        elif before is None:
            where[field] = sign, value
        elif {sign, before[0]} == {">=", "<="}:
            where[field] = (value, before[1]) if sign == ">=" else (before[1], value)
        else:
            raise ValueError(f"{text!r} does not go with another condition on {field}: a range is one >= and one <=")
    return {**where, "latest": True} if latest else where


def whole_corpus(docs, user, where):
    """All documents that may be seen, as sources to be read at once. Raises ValueError if they are too long for that.
    """
    masks = filters.Filters([{**document, "doc_id": document["id"]} for document in docs])
    seen = [document for document, yes in zip(docs, masks.matching(where, masks.visible(user))) if yes]
    if (found := size(seen)) > LONG_CONTEXT:
        raise ValueError(f"about {found:,} tokens do not fit into a prompt: leave --whole-corpus out, and search")
    return [{**document, "doc_id": document["id"], "body": document["text"], "start": 0, "end": len(document["text"]),
             "text": f"{document['title']}\n\n{document['text']}"} for document in seen]


def size(texts):
    """About how many tokens Documents or Chunks have."""
    return sum(tokens(each["text"]) for each in texts)


def tokens(text):
    """About how many tokens a text has: no model is asked, so that a large corpus takes no time."""
    return len(text) // LETTERS


def advice(size):
    """What to say when retrieval may not be needed for so many tokens; "" if it is.

    >>> advice(300_000)
    ''
    """
    return "" if size > LONG_CONTEXT else (
        f"all that may be searched here has about {size:,} tokens, little enough to be read at once: --whole-corpus. "
        "Search when it grows, changes daily, is asked often, or may not all be seen by all")


if __name__ == "__main__":
    from toy import DOCUMENTS, Topics

    docs = [{"id": f"pets-{number}", "title": "Pets", "text": text, "doc_type": "txt"}
            for number, text in enumerate(DOCUMENTS)]
    docs[1]["acl"] = ["vets"]
    print(f"{len(open_index(docs, Topics()).chunks)} chunks, about {size(docs)} tokens: {advice(size(docs))}")
    for user in (None, "vets"):
        print(f"{user or 'anonymous'} may be sent:", [source["id"] for source in whole_corpus(docs, user, {})])
