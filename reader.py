"""Beside step 14 — Who answers without a model that writes? A reader that quotes the best sentences, or says no.

The extractive reader cannot write: it points. It is the whole pipeline once more in small, with sentences for chunks:
cosine finds candidates, MaxSim chooses among them, and a threshold decides whether the best is good enough. So it needs
no key, no network and no money, says the same thing each time, and every word of it stands in a source.

    passage    a stretch of a document that was retrieved, with a "title" and a "body"
    unit       a quotable piece of a body, as a span: a sentence, a bullet, a field with its value, a row of a table
    scored     "[title] unit": ":Number of Instances: 178" says not of what; the title helps to score, and is not quoted
    quote      a unit that was chosen                            toy: "the dog chased the cat" of passage 1
    versions   passages of one series (filters.py): if they disagree, the newest answers, and the older one is named

`choose` gives several quotes if they are nearly as good as the best (MARGIN), since a question may need two, and keeps
versions apart: answering.py uses it. `extractive_answer`, for the small program of rag.py, gives the best one alone.

Not here: writing; adding up; finding out that two passages of no common series contradict each other; sentence
boundaries in general (sentences.py).
"""

import re
from typing import NamedTuple

import cosine
import filters
import llm
import rerank
import sentences

CANDIDATES = 10                # how many units MaxSim looks at
MARGIN = 0.02                  # by how much less than the best MaxSim another quote may have
QUOTES = 3                     # at most
LIKE = 0.55                    # the least MaxSim of two units of which the newer takes the older one's place
THRESHOLD = 0.574              # the least MaxSim of a quote: data/thresholds.json, which refusal.py measures


class Quote(NamedTuple):
    """A unit: body[start:end] of the passage with this number, from 0."""

    passage: int
    start: int
    end: int
    text: str          # on one line
    score: float       # MaxSim with the question


# -- What can be quoted ------------------------------------------------------------------------------------------------

# blank, a rule (----, ====, |---|), a directive (.. rubric:: X), a heading (## X), a fence of code
_SILENT = re.compile(r"[\W_]*$|\s*\.\.\s|#{1,6}\s|[\s>]*(?:`{3}|~{3})")
_HEAD = re.compile(r"\|[^\n]*\n[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|?)+[ \t]*\r?$", re.MULTILINE)        # of a table
_MARK = re.compile(r"\s*(:[^:]+:(\s|$)|[-*+•|>]+\s|\(?\d{1,3}[.)]\s)")         # a field, a bullet, a row, (1) or 1.
_GAP = re.compile(r"[^\s.!?)] {2,}\S")                 # columns; two blanks after a full stop are only an old custom
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)?")


def units(body):
    """The spans of a body that can be quoted, in order.

    >>> body = ":Creator: R. A. Fisher\\n:Range: 0..16\\n\\nAlcohol  11.0  14.8\\nThe data is a\\ncopy. It has 14.8."
    >>> [one_line(body[start:end]) for start, end in units(body)]
    [':Creator: R. A. Fisher', ':Range: 0..16', 'Alcohol 11.0 14.8', 'The data is a copy.', 'It has 14.8.']
    """
    pieces, goes_on = [], False
    for found in _LINE.finditer(body):
        line = found[0]
        if _SILENT.match(line):
            goes_on = False
            continue
        marked = bool(_MARK.match(line))
        row = not marked and bool(_GAP.search(line.strip()))
        if goes_on and not marked and not row:
            pieces[-1][1] = found.end()                                # a wrapped line goes on with the one before
        else:
            pieces.append([found.start(), found.end()])
        goes_on = not row
    return [(start + first, start + last) for start, end in pieces for first, last in sentences.split(body[start:end])]


def one_line(text):
    """The text with its white space collapsed."""
    return " ".join(text.split())


# -- What is quoted ----------------------------------------------------------------------------------------------------


def candidates(question, passages, embedder):
    """The units that fit the question best, best first: CANDIDATES Quotes at most, by MaxSim.

    Of equal units of equal titles the first passage's counts, or the newest version's. No model is touched if there is
    nothing to quote.
    Raises TypeError or ValueError for a question that is no text or blank.
    """
    llm.check_text(question, "question")
    places = {}
    for number, passage in enumerate(passages):
        for start, end in units(passage["body"]):
            text = one_line(passage["body"][start:end])
            # a title and a table's head fit many questions, and answer none
            if text != passage["title"] and not _HEAD.match(passage["body"], start):
                quote, key = Quote(number, start, end, text, 0.0), f"[{passage['title']}] {text}"
                if key not in places or _replaces(passage, passages[places[key].passage]):
                    places[key] = quote
    if not places:
        return []
    texts, [query_vector] = list(places), embedder.encode([question], kind="query")        # [1, dim] -> [dim]
    positions, _ = cosine.cosine_top_k(query_vector, embedder.encode(texts), CANDIDATES)
    scored = rerank.rerank(question, [{"text": texts[position]} for position in positions], None,
                           rerank.maxsim_scorer(embedder))
    return [places[each["text"]]._replace(score=score) for each, score in scored]


def choose(found, passages, embedder, threshold=THRESHOLD):
    """(quotes, older): the QUOTES best candidates that are good enough, and of older versions the best one of each.

    Where passages are versions of one series, only what the newest says is a quote: however well an older one fits, it
    no longer holds. In its place stands the unit of the newest that says most nearly the same (MaxSim with the older
    unit, at least LIKE); if there is none, the older one stands alone, named as what it is.
    """
    quotes, older = [], {}
    for quote in found:
        if quote.score < max(threshold, found[0].score - MARGIN):
            break
        passage = passages[quote.passage]
        newest = max(passages, key=lambda each: (_same(each, passage), filters.age_of(each)))
        if not _replaces(newest, passage):
            quotes.append(quote)
        elif filters.series_of(passage) not in older:
            older[filters.series_of(passage)] = quote
            quotes += _alike(quote, passages, newest, embedder)
    return list(dict.fromkeys(quotes))[:QUOTES], list(older.values())


def _same(passage, other):
    return filters.series_of(passage) == filters.series_of(other)


def _replaces(passage, other):
    """Is the passage of a newer version of the other's document?"""
    return _same(passage, other) and filters.age_of(passage) > filters.age_of(other)


def _alike(quote, passages, newest, embedder):
    """The unit of the newest version that is most like an older quote: [Quote], or [] if none is."""
    these = [number for number, each in enumerate(passages)
             if _same(each, newest) and filters.age_of(each) == filters.age_of(newest)]
    found = candidates(quote.text, [passages[number] for number in these], embedder)
    return [each._replace(passage=these[each.passage]) for each in found[:1] if each.score >= LIKE]


def extractive_answer(question, sources, embedder, threshold=THRESHOLD):
    """The unit of `sources` that fits the question best, and its source's number from 1; or llm.UNKNOWN.

    sources   passages; none: llm.UNKNOWN, and no model is touched
    embedder  an Embedder (embedding.py)

    >>> extractive_answer("Who chased the cat?", [], embedder=None)
    "I don't know"
    """
    found = candidates(question, sources, embedder)
    if not found or found[0].score < threshold:
        return llm.UNKNOWN
    return f"{found[0].text} [{found[0].passage + 1}]"


if __name__ == "__main__":
    import embedding
    from toy import DOCUMENTS

    passages = [{"title": "Animals", "body": text} for text in DOCUMENTS]
    embedder = embedding.load_embedder()
    # the second question shows what a threshold costs: a right sentence is refused
    for question in ("Who chased the cat?", "Where did the cat sit?", "What is the capital of France?"):
        best = candidates(question, passages, embedder)[0]
        print(f"{question} -> {extractive_answer(question, passages, embedder)}")
        print(f"    best: '[Animals] {best.text}', MaxSim {best.score:.2f}, "
              f"{'above' if best.score >= THRESHOLD else 'below'} {THRESHOLD}")
