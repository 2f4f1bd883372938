"""Beside step 18 — Who answers, from what, and does it hold? Guard, packing, reading, checking, one repair.

    search -> guard -> pack -> read -> check -> (repair once) -> Answer

An answer is worth as much as one can check of it. So nobody is asked if the best chunk fits the question badly; what is
read is packed into numbered sources; each valid number in the answer opens the very characters of the document that it
stands for; and an answer without one valid citation is a failure, however well it reads. Further sentences without one
are asked about once, and then listed.

    guard     refuse without asking a model: nothing was found, or nothing that reaches the calibrated threshold
    reader    who makes a text of a Prompt: `claude`, `native` (Claude too, citing by the service's own means), or
              `extractive`, which quotes; a function reader(question, prompt) -> Read. The question is the one that was
              searched; the prompt holds the user's own words, and what was said before
    refused   "" or why there is no answer to trust: NOTHING, BELOW, SAID (the model says so), UNCITED
    repair    the form of citations is mended; then, if sentences lack one, a model is asked once more, and told which

A refusal is written down, if a log is given: what people ask in vain is what the documents lack.

Not here: whether a source supports what cites it.
"""

import functools
import json
import os
import re
import time
import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import citations
import corpus
import llm
import prompt as packing
import queries
import reader as extracts
import refusal
from prompt import REFUSAL
from search import search

NOTHING, BELOW = "nothing was found", "the best that was found fits the question badly"
SAID, UNCITED = "the reader found no answer in the sources", "it has no valid citation"
SAYS = "says:"
REPAIR = """

Your answer was:

{answer}

These sentences have no valid citation: {sentences}
Write the answer again: cite a source for every factual sentence, or leave the sentence out. Add nothing else."""


class Answer(NamedTuple):
    """What was answered, and all that it rests on."""

    text: str
    citations: list        # citations.Reference: which sentence, which source, which characters of which document
    refused: str           # "" if the text is an answer; else why not
    packed: list           # prompt.Source: what the reader saw; [S1] is the first
    usage: dict            # tokens: input, written, read, output; {} if no model was asked
    timings: dict          # seconds by stage
    reader: str            # who read: a model's name, "extractive reader", or "nobody"
    hits: list             # search.Hit
    dropped: list          # (chunk, why): found, and not packed
    uncited: list          # spans of the sentences without a valid citation
    searched: str          # the question as it was searched
    prompt: packing.Prompt | None = None               # what the reader was sent


class Read(NamedTuple):
    """What a reader wrote."""

    text: str
    usage: dict        # tokens; {}: it only quotes, so it is not asked about sentences without citations
    name: str


# -- Three readers -----------------------------------------------------------------------------------------------------


def claude(question, prompt, write=None, keep=False, client=None):
    """Claude's answer to a Prompt. Raises llm.failures().

    write   a function to which the text goes as it comes; what is returned has been checked
    keep    send the sources apart, so that the service keeps them for the next question about the same
    """
    prefix, _, user = prompt.user.rpartition("\n\n") if keep else (None, None, prompt.user)
    settings = {"system": prompt.system, "prefix": prefix, "client": client}
    return _read_of(llm.ask(user, **settings) if write is None else llm.stream(user, write, **settings))


def native(question, prompt, client=None):
    """Claude's answer with citations that the service itself makes, not the text: they come as the same marks."""
    rules = "".join(line for line in prompt.system.splitlines(keepends=True) if not line.startswith("- Cite every"))
    asked = prompt.user.partition("</sources>")[2].strip()             # what stands behind the sources
    return _read_of(llm.ask(asked, system=rules, packed=prompt.packed, client=client))


def _read_of(response):
    return Read(llm.text_of(response), llm.usage_of(response),
                str(getattr(response, "model", None) or llm.default_model()))


def extractive(question, prompt, embedder):
    """The best one to three sentences or rows of the packed sources, a paragraph each, with its citation; or REFUSAL.

    Where sources are versions of one series, the newest answers and the older one is named.
    """
    passages = [{"title": source.title, **place, "number": number}
                for number, source in enumerate(prompt.packed, start=1) for place in source.places]
    found = extracts.candidates(question, passages, embedder)
    least = refusal.threshold("reader", embedder.name)
    quotes, older = extracts.choose(found, passages, embedder, extracts.THRESHOLD if least is None else least)
    lines = [_cited(quote, passages) for quote in quotes]
    for quote in older:
        date = passages[quote.passage].get("effective_date")
        lines.append(f"An older version{f', effective {date[:10]},' if date else ''} {SAYS} {_cited(quote, passages)}")
    return Read("\n\n".join(lines) or REFUSAL, {}, "extractive reader")


def _cited(quote, passages):
    # subtle: a bracket of the source's own is escaped, or it would be a citation of ours
    text = quote.text
    for start, end, *_ in reversed(citations.parse(text, len(passages))):
        text = text[:start] + "\\" + text[start:end - 1] + "\\" + text[end - 1:]
    return f"{text} [S{passages[quote.passage]['number']}]"


# -- The pipeline ------------------------------------------------------------------------------------------------------


def ask(question, index, user=None, history=None, *, where=None, reader=None, threshold="calibrated",
        budget_tokens=6000, order="best_first", log=None, **settings):
    """Search, read, check: an Answer.

    reader      reader(question, prompt) -> Read; by default Claude if there is a key, else the extractive reader
    threshold   the least score of the best hit; "calibrated": as measured for MaxSim, and none for another scorer
    log         a file to which each refusal is added, as a line of JSON
    settings    of search.search; by default a model, if there is a key, rewrites a follow-up question

    Raises what search and build_prompt raise (a budget in which no source fits), and of Claude llm.failures().
    """
    reader = reader or (claude if llm.has_key() else functools.partial(extractive, embedder=index.embedder))
    settings.setdefault("ask", queries.claude if llm.has_key() else None)
    if threshold == "calibrated":
        own = settings.get("scorer", "maxsim") == "maxsim" and settings.get("weight", 1.0) == 1.0
        threshold = refusal.threshold("maxsim", index.embedder.name) if own else None
    history = None if history is None else list(history)
    _touch(log)
    trace = {}
    hits = search(question, index, user, where, history, trace=trace, **settings)
    answer = Answer(REFUSAL, [], "", [], {}, trace["timings"], "nobody", hits, [], [], trace["question"])
    if not hits:
        answer = answer._replace(refused=NOTHING)
    elif threshold is not None and hits[0].score < threshold:
        answer = answer._replace(refused=BELOW)
    else:
        # the hits before what stands around them: if the budget ends, it ends there
        chunks = [*(hit.chunk for hit in hits), *(chunk for hit in hits for chunk in hit.around)]
        different = {(chunk["doc_id"], chunk["id"]): chunk for chunk in chunks}
        made = functools.partial(packing.build_prompt, question, list(different.values()), budget_tokens, order,
                                 history=history)
        answer = _read(answer, reader, made)
    return _logged(answer, question, log)


def read_whole(question, sources, reader=None, *, embedder=None, history=None, budget_tokens=corpus.LONG_CONTEXT,
               log=None):
    """An Answer from all of `sources` (corpus.whole_corpus), without searching. Raises as `ask` does."""
    reader = reader or (functools.partial(claude, keep=True) if llm.has_key()
                        else functools.partial(extractive, embedder=embedder))
    answer = Answer(REFUSAL, [], "", [], {}, {}, "nobody", [], [], [], question)
    _touch(log)
    if sources:
        answer = _read(answer, reader, functools.partial(_whole_prompt, question, sources, budget_tokens, history))
    else:
        answer = answer._replace(refused=NOTHING)
    return _logged(answer, question, log)


def _whole_prompt(question, sources, budget_tokens, history):
    """A Prompt with all of the sources, or ValueError."""
    made = packing.build_prompt(question, sources, budget_tokens, count=corpus.tokens, history=history)
    if lost := [chunk["id"] for chunk, why in made.dropped if "fit" in why]:
        raise ValueError(f"the whole corpus does not fit into a prompt with tags and rules: no room for {lost[0]!r} "
                         f"({len(lost)} in all); search instead")
    return made


def _read(answer, reader, made):
    """The answer, read from the Prompt that made() makes, and checked."""
    start = time.perf_counter()
    prompt = made()
    packed = time.perf_counter()
    read = reader(answer.searched, prompt)
    done = time.perf_counter()
    answer = answer._replace(prompt=prompt, packed=prompt.packed, dropped=prompt.dropped, reader=read.name)
    answer = _checked(answer, read)
    if answer.uncited and answer.refused != SAID and read.usage:       # a model can be asked again, a quote cannot
        answer = _asked_again(answer, prompt, reader)
    return answer._replace(timings={**answer.timings, "pack": packed - start, "read": done - packed,
                                    "check": time.perf_counter() - done})


def _checked(answer, read):
    """The answer with what was read, its citations resolved."""
    n, usage = len(answer.packed), {kind: answer.usage.get(kind, 0) + count for kind, count in read.usage.items()}
    if not isinstance(read.text, str):
        raise TypeError(f"a reader must give Read(text, usage, name) with a string as text, not {read.text!r:.60}")
    plain = citations.removed(read.text, citations.parse(read.text, n))
    if _refuses(plain):
        return answer._replace(text=plain, citations=[], refused=SAID, uncited=[], usage=usage)
    text = citations.repair(read.text, n)
    found = citations.resolve(text, answer.packed)
    return answer._replace(text=text, citations=found, refused="" if found else UNCITED, usage=usage,
                           uncited=citations.uncited(text, n) if read.usage else [])


def _refuses(text):
    """Does the text begin with the refusal, however it is written?

    >>> _refuses("**I couldn't find this in the available documents**; its price is missing."), _refuses("I could")
    (True, False)
    """
    words = re.findall(r"[a-z]+", text.casefold().replace("couldn't", "could not").replace("couldn’t", "could not"))
    return " ".join(words).removeprefix("answer ").startswith(" ".join(re.findall("[a-z]+", REFUSAL.casefold())))


def _asked_again(answer, prompt, reader):
    """The answer after one more request, if that has more to show; else, and if it fails, as it was."""
    sentences = [answer.text[start:end] for start, end in answer.uncited]
    more = REPAIR.format(answer=answer.text, sentences=json.dumps(sentences, ensure_ascii=False))
    try:
        again = _checked(answer, reader(answer.searched, prompt._replace(user=prompt.user + packing.shown(more))))
    except llm.failures() as error:
        warnings.warn(f"no second answer, so the first one stands: {error}", stacklevel=2)
        return answer
    better = not again.refused and (answer.refused or len(again.uncited) < len(answer.uncited))
    return again if better else answer._replace(usage=again.usage)


def _touch(path):
    """Find out that a log cannot be written before there is something to lose."""
    if path is not None:
        with Path(path).open("a", encoding="utf-8"):
            pass


def _logged(answer, question, path):
    """The answer; a refusal is added to the file, as a line of JSON."""
    if path is not None and answer.refused:
        row = {"time": datetime.now(timezone.utc).isoformat(timespec="seconds"), "question": question,
               "searched": answer.searched, "refused": answer.refused, "text": answer.text,
               "best": answer.hits[0].score if answer.hits else None}
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return answer


# -- What is shown -----------------------------------------------------------------------------------------------------


def opened(answer):
    """Lines that say what each source that was cited opens: the words themselves if they stand there, else all of it.

    >>> from types import SimpleNamespace as Made
    >>> place = {"doc_id": "leave.md", "start": 40, "end": 59, "body": "Five days. Not ten."}
    >>> cited = citations.resolve("Not ten. [S1]", [Made(places=[place])])
    >>> opened(Made(text="Not ten. [S1]", citations=cited, packed=[Made(places=[place])]))
    ['    [S1] leave.md, characters 51 to 59']
    """
    lines, different = {}, {(each.number, each.sentence): each for each in answer.citations}
    for reference in different.values():
        bodies = [place["body"] for place in answer.packed[reference.number - 1].places]
        said = answer.text[slice(*reference.sentence)].rpartition(SAYS)[2] if reference.sentence else ""
        spans = [stands(said, body) for body in bodies]
        for place, span in zip(reference.places, spans):
            if span or not any(spans):
                lines[_line(reference.number, place, span or (0, place.end - place.start))] = None
    return list(lines)


def stands(sentence, body):
    """(start, end) of the sentence in the body, white space and escaped brackets aside; None if it is not there.

    >>> stands("Not ten.", "Five days. Not\\nten."), stands("Six days.", "Five days.")
    ((11, 19), None)
    """
    words = [re.escape(word) for word in citations.unescaped(sentence).split()]
    found = re.search(r"\s+".join(words), body) if words else None
    return found and found.span()


def _line(number, place, span):
    path = os.path.relpath(place.source) if place.source and os.path.isabs(place.source) else place.source
    parts = [place.title, " > ".join(name for name in place.section_path or [] if name != place.title),
             f"page {place.page}" if place.page else "", path or place.doc_id,
             f"characters {place.start + span[0]} to {place.start + span[1]}"]
    return f"    [S{number}] " + ", ".join(filter(None, parts))


if __name__ == "__main__":
    import embedding
    from index import Index

    BODIES = ["Up to five days of annual leave roll over into the new year.", "Per diem is 40 euros a day."]
    chunks = [{"id": f"{name}#0", "doc_id": name, "position": 0, "title": name, "text": f"{name}\n\n{body}",
               "body": body, "start": 0, "end": len(body)} for name, body in zip(("Leave", "Travel"), BODIES)]
    index = Index.build(chunks, embedding.load_embedder())
    replies = iter(["Five days roll over. [2023]", "Five days roll over [1]."])
    scripted = lambda question, prompt: Read(next(replies), {"input": 1}, "a scripted model")         # noqa: E731
    for question, reader in (("How many days of leave roll over?", None), ("Who is the king of France?", None),
                             ("How many days of leave roll over?", scripted)):
        answer = ask(question, index, reader=reader)
        print(f"{question}\n    {answer.reader}: {answer.text}", f"({answer.refused})" if answer.refused else "")
        print("\n".join(opened(answer)))
