"""Beside step 17 — Do the quoted words stand in the source?

Of all that an answer says, what it quotes is easiest to check: the words stand in the source that the sentence cites,
or they do not. Typesetting must not decide it, so both are folded before they are compared, and every character
remembers where it came from.

    text     the answer                              "It is “up to five days” [1]."
    place    where a source stands: {"doc_id", "start", "end", "body"}
    folded   one kind of quotation marks and dashes, one blank for any white space, ligatures and the like taken apart
    quote    (start, end, status, stands): offsets into `text` between the marks, and into the documents
    status   verified     in a source that its sentence cites
             elsewhere    in another one of the packed sources only: a wrong citation
             unverified   in none, to the letter

Quoted are three words or more between "..." “...” „...“ «...» or 「...」 on one line; fewer are names and terms.

Not here: 'single' marks, which are apostrophes too; quotes with another capital, ending or word: whoever changes a
quote has to say so, with [...] where something is left out; block quotations.
"""

import re
import unicodedata
from bisect import bisect_right
from typing import NamedTuple

import citations
import prompt

QUOTE = re.compile(r"""(?<!\w)"(?=\S)([^"\n]*+)"(?!\w)|“([^“”\n]*+)”|„([^„“”\n]*+)[“”]|«([^«»\n]*+)»|「([^「」\n]*+)」""")
ELLIPSIS = re.compile(r"\[ ?\.\.\. ?\]|\.\.\.")
SAME = str.maketrans(dict.fromkeys("‘’‚‛′", "'") | dict.fromkeys("“”„‟«»", '"') | dict.fromkeys(citations.DASH, "-")
                     | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\xad"))
LEAST, LEAST_PART = 3, 2      # words of a quote, and of its parts where there is an ellipsis


class Quote(NamedTuple):
    """The words text[start:end] between quotation marks, and where they stand: [(number, doc_id, start, end)].

    status: "verified" in a source that the sentence cites, "elsewhere" in another one only, or "unverified".
    """

    start: int
    end: int
    status: str
    stands: list


def check_quotes(text, packed):
    """Every passage of three words or more in quotation marks, held against the sources: [Quote].

    It must stand there to the letter, but for white space, Unicode form (NFKC), kinds of quotation marks and dashes,
    invisible characters, punctuation at its ends, and what an ellipsis leaves out: then each part has a place.

    >>> from types import SimpleNamespace as Made
    >>> source = Made(places=[{"doc_id": "leave", "start": 40, "end": 62, "body": "up to\\nfive days a year"}])
    >>> check_quotes('It is “up to five days” [1]. "Ten days a year." [1]', [source])[0]
    Quote(start=7, end=22, status='verified', stands=[(1, 'leave', 40, 55)])
    """
    packed = list(packed)
    folded = [(number, place, *fold(prompt.shown(place["body"]))) for number, source in enumerate(packed, start=1)
              for place in source.places]
    found, code = citations.read(text, len(packed))
    cited = [(start, end, {number for each in inside if each.status == "valid" for number in each.numbers})
             for start, end, inside in citations.assign(text, found, code)]
    plain, ends, quotes = citations.without(text, found, code), [end for _, end, _ in cited], []
    for match in QUOTE.finditer(citations.without(text, [], code)):
        start, end = match.span(match.lastindex)
        if len(citations.WORD.findall(plain[start:end])) >= LEAST:
            # as it is, for a source has brackets too; or else without the citations that stand in it
            stands = _stands(text[start:end], folded) or _stands(plain[start:end], folded)
            numbers = _cited(cited, bisect_right(ends, start), end)
            here = [each for each in stands if each[0] in numbers]
            status = "verified" if here else "elsewhere" if stands else "unverified"
            quotes.append(Quote(start, end, status, here or stands))
    return quotes


def _cited(cited, first, end):
    """The numbers that the sentences cite from the `first` on that begin before `end`."""
    numbers = set()
    while first < len(cited) and cited[first][0] < end:
        numbers |= cited[first][2]
        first += 1
    return numbers


def fold(text):
    """The text as quotes are compared, and for each of its characters (start, end) in the text as it was.

    Decomposed (NFKD) where the definition composes (NFKC): the same texts become equal, and characters keep a place.

    >>> fold("“ﬁve\\n  days”")
    ('"five days"', [(0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (4, 7), (7, 8), (8, 9), (9, 10), (10, 11), (11, 12)])
    """
    folded, spans, start = [], [], 0
    while start < len(text):
        end = start + 1
        # subtle: accents belong to their letter, and may be in any order; 30 is Unicode's own bound (Annex 15)
        while end < len(text) and end - start < 30 and unicodedata.combining(text[end]):
            end += 1
        for character in unicodedata.normalize("NFKD", text[start:end]).translate(SAME):
            if not character.isspace():
                folded.append(character)
                spans.append((start, end))
            elif folded and folded[-1] == " ":
                spans[-1] = spans[-1][0], end
            else:
                folded.append(" ")
                spans.append((start, end))
        start = end
    return "".join(folded), spans


def _stands(quote, folded):
    """[(number, doc_id, start, end)] of the places, given folded, where the quote stands."""
    quote = fold(prompt.shown(quote))[0]                               # as the model saw it, which is as long
    return [(number, place["doc_id"], place["start"] + spans[start][0], place["start"] + spans[end - 1][1])
            for number, place, body, spans in folded for start, end in _parts(quote, body)]


def _parts(quote, body):
    """[(start, end)] of the whole quote in the body, or of its parts round ellipses, in order; [] if one lacks."""
    for parts in [quote], ELLIPSIS.split(quote):
        found, at = [], 0
        for part in (part.strip(" .,;:!?") for part in parts):
            at = _find(part, body, at) if part else at
            if at < 0 or part and len(parts) > 1 and len(citations.WORD.findall(part)) < LEAST_PART:
                break
            found += [(at, at + len(part))] if part else []
            at += len(part)
        else:
            return found
    return []


def _find(part, body, at):
    """Where `part` stands in `body` from `at` on, not within a word; or -1."""
    while (at := body.find(part, at)) >= 0:
        end = at + len(part)
        if not (_joined(body[at - 1:at], part[0]) or _joined(part[-1], body[end:end + 1])):
            break
        at += 1
    return at


def _joined(left, right):
    return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()


if __name__ == "__main__":
    from types import SimpleNamespace

    BODIES = "Up to five days may be rolled over, to be\nused by March.", "Employees may carry over ten days."
    PACKED = [SimpleNamespace(places=[{"doc_id": f"leave-{year}", "start": 100, "end": 100 + len(body), "body": body}])
              for year, body in zip((2026, 2023), BODIES)]
    ANSWER = ("It says “Up to five days ... to be used by March.” [1] They could \"carry over ten days\" before [2]. "
              "Nobody must «carry over ten days» [1]. They may not \"carry over all days\" [2].")
    print(ANSWER)
    for start, end, status, stands in check_quotes(ANSWER, PACKED):
        print(f"{status:10}  {ANSWER[start:end]}")
        for number, doc_id, first, last in stands:
            print(f"            {doc_id}, characters {first} to {last}: {BODIES[number - 1][first - 100:last - 100]!r}")
