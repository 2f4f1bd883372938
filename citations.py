"""Step 17 of 22 — Where did each sentence come from? Parse, validate, repair, resolve. Before: prompt.py.
Next: rag.py.

A model is asked to cite like [S2]: the second of the sources that were packed into its prompt. What it writes is text,
and nothing forces it to keep to that. So its text is read for everything that is meant as a citation, each number is
held against the sources there were, and what is left leads to characters of a document that anyone can open.

    text        the answer as the model wrote it               "A is red [1, 2]. B is blue. [9]"
    packed      the sources of the prompt, in order; source 1 is packed[0], whatever its document is called
    n_sources   how many there were                            2
    citation    (start, end, numbers, status), offsets into    (9, 15, (1, 2), "valid")
                `text`; numbers in order, none twice           (28, 31, (9,), "out_of_range")
    sentence    (start, end, citations): what follows the      (0, 16, [the first]), (17, 27, [the second])
                full stop belongs to the sentence before it
    place       where a source stands: {"doc_id", "start", "end", "body", ...}, body == document["text"][start:end]
    repaired    the same answer, each valid citation in the    "A is red [S1][S2]. B is blue. [9]"
                one form of the prompt

A line is read from left to right; the first of these that fits takes its characters, and only the last may cite:

    escape      \\[1\\]
    code        `x [1]`, ended by as many backticks on the same line; fences ``` and ~~~ of any length
    address     https://x.org/a[1]        tag    <a name="[1]">
    brackets    [ ［ 【 ... ] ］ 】, doubled or not, any closing any; and (S1), which stands free and exists

What may stand in brackets: numbers, each with or without S or a name before it (source, doc, ref, cite, ^), joined by
comma, semicolon, &, "and" or blanks, or as a range; and "†" with what follows. But not:

    link        [1](x.html)     [[1]](x.html)     [1]: http://x.org     [^1]: a note
    index       arr[1]          the policy][1]    Fig. [1]     a number without S, glued to a name or another bracket
    year        [2024]          [2019-2024]       four digits from 1900 that no source has, unless written S2024

Status: "valid" if every number is between 1 and n_sources; "out_of_range" if one is not, and then none of them counts;
"malformed" for what is meant as a citation but cannot be read without guessing: [S3-S1], [S1, p. 3], [Source: Policy].
Neither is repaired, since every repair would be a guess, nor resolved. A range that is out of range is its two ends.

What stays wrong, since the form alone does not tell:

    "It is red[1]."                not read, for it could be arr[1]; red[S1], red【1】 and red[^1] are
    "It lies in [1, 2]."           taken for citations, as are a quoted text's own [1]
    "`x\\n[1]`"                     read, since a line is read alone; code that is only indented is read too
    a table                        is one sentence

Not here: whether a source supports its sentence, and citation precision and recall (grading.py); whether what is quoted
stands in it (quotes.py); what is to be done about an uncited sentence (answering.py).
"""

import functools
import re
from bisect import bisect_right
from typing import NamedTuple

import ranking
import sentences


class Citation(NamedTuple):
    """One citation: text[start:end] names the sources `numbers`; status "valid", "out_of_range" or "malformed"."""

    start: int
    end: int
    numbers: tuple
    status: str


# -- What stands in brackets -------------------------------------------------------------------------------------------

LONGEST = 400                                                          # characters between two brackets
DASH, COMMA = "‐‑‒–—−-", ",;，；、&"              # subtle: the hyphen last, since these stand in [ ] of patterns
NAME = r"(?:\^|(?:sources?|doc(?:ument)?s?|ref(?:erence)?s?|cit(?:e|ations?))[\s:._]*)"
NUMBER = rf"{NAME}?(?:s\s?)?\d{{1,18}}"
ITEM = rf"{NUMBER}(?:\s*[{DASH}]\s*{NUMBER})?"
CONTENT = re.compile(rf"\s*{ITEM}(?:(?:\s*(?:[{COMMA}]|and)\s*|\s+){ITEM})*\s*(?:†[^`]*)?", re.IGNORECASE)
PART = re.compile(rf"([{DASH}]?)\s*{NAME}?(?:s\s?)?(\d+)", re.IGNORECASE)
BARE = re.compile(rf"(?:[\d\s{COMMA}{DASH}]|and)*")
MEANT = re.compile(rf"\s*(?:{NAME}(?:s\s?)?\d|s\d|sources?\s*:|(?!.*\d{{4}})\d[\d\s{COMMA}{DASH}]*\Z)",
                   re.IGNORECASE | re.DOTALL)


@functools.lru_cache(1 << 12)                                          # an answer has the same few again and again
def read_content(inner, n_sources):
    """(numbers, status) of what stands between brackets, or None if it is no citation.

    >>> read_content("1-3, S5", 8), read_content("7-9", 8), read_content("S3-S1", 8), read_content("2024", 8)
    (((1, 2, 3, 5), 'valid'), ((7, 9), 'out_of_range'), ((), 'malformed'), None)
    """
    if len(inner) > LONGEST:
        return None
    if not CONTENT.fullmatch(inner):
        return ((), "malformed") if MEANT.match(inner) else None
    parts = [(dash, int(digits)) for dash, digits in PART.findall(inner.partition("†")[0])]
    if BARE.fullmatch(inner) and max(n_sources, 1899) < parts[0][1] <= 9999:
        return None
    numbers = []
    for dash, number in parts:
        if dash and number < numbers[-1]:
            return (), "malformed"
        if dash and 1 <= numbers[-1] and number <= n_sources:          # subtle: else [1-999999999] fills the memory
            numbers.extend(range(numbers[-1] + 1, number))
        numbers.append(number)
    valid = all(1 <= number <= n_sources for number in numbers)
    return tuple(dict.fromkeys(numbers)), "valid" if valid else "out_of_range"


# -- Where the brackets stand ------------------------------------------------------------------------------------------

TOKEN = re.compile(r"""
    \\.
  | (?P<ticks>`+)
  | (?:(?:https?|ftp)://|www\.)(?:(?!\[S\d)[^\s<>`])*+                 # an address ends before [S1], not before [1]
  | <[a-z/!][^<>`]*+(?P<tag>>?)
  | (?<!\S)\((?P<round>s\d[^()\[\]`]*+)(?P<shut>(?:\)(?![\]］】]))?)
  | (?P<open>[\[［【]++)(?P<inner>[^\[\]［］【】]*+)(?P<close>[\]］】]*+)   # takes whole runs: [[[[ is looked at once
    """, re.VERBOSE | re.IGNORECASE)
TICKS = re.compile("`+")
LINK = re.compile(r"""\(\s*+(?:<[^<>`]*+>|[^\s()<>`]*+(?:\([^\s()`]*+\)[^\s()<>`]*+)*+)
                      (?:\s++(?:"[^"`]*+"|'[^'`]*+'|\([^()`]*+\)))?+\s*+\)""", re.VERBOSE)
DEFINITION = re.compile(r":[ \t]*(?:[<#]|mailto:|\S*/)\S*")
INDEXED = re.compile(r"(?:(?<!\w)[A-Za-z_]\w*|(?:[Ff]igs?\.|Figures?|Tab\.|Tables?|[Ee]qs?\.|Equations?) )\Z",
                     re.ASCII)
FENCE = re.compile(r"([ \t>]*+(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+)(?:(`{3,})[^`]*|(~{3,}).*)\Z")
FENCE_END = re.compile(r"([ \t>]*)(`{3,}|~{3,})\s*\Z")
SPACE = re.compile(r"\s")
PATIENCE = 4000               # characters of a line; a longer one is only looked at again when it has doubled, or ended


class Stream:
    """Finds citations in a text that comes in pieces: the same, wherever the pieces are cut.

    A citation is handed out as soon as nothing that follows can change it: after the next white space, or, where a
    backtick, bracket or tag is still open, at the end of the line.

    >>> stream = Stream(n_sources=2)
    >>> [stream.feed(piece) for piece in ("A is red [", "S1", "]", ".", " B")], stream.close()
    ([[], [], [], [], [Citation(start=9, end=13, numbers=(1,), status='valid')]], [])
    """

    def __init__(self, n_sources):
        self.n_sources = ranking.check_k(n_sources, name="n_sources")
        self.pieces, self.size, self.wait = [], 0, 0                   # what has come of the line
        self.base, self.at, self.cited = 0, 0, -1    # where the line begins, is read up to, and last had a citation end
        self.fence, self.code = None, []             # the fence that is open; (start, end, "X" inline or " " in fences)

    def feed(self, piece):
        """The citations that are certain now and were not before."""
        if not isinstance(piece, str):
            raise TypeError(f"the text must be a string, not a {type(piece).__name__}")
        self.pieces.append(piece)
        self.size += len(piece)
        if "\n" not in piece and (self.size < self.wait or not SPACE.search(piece)):
            return []
        *lines, rest = "".join(self.pieces).split("\n")
        found = [citation for line in lines for citation in self._whole_line(line)]
        if not self.fence and not FENCE.match(rest):
            word = "" if rest[-1:].isspace() else "".join(rest.rsplit(None, 1)[-1:])
            found += self._scan(rest[:len(rest) - len(word)], whole=False)
        # subtle: what is undecided is read again, so only when a quarter more has come, or it would be read n times
        more = (len(rest) - self.at) // 4 if len(rest) < PATIENCE else len(rest)
        self.pieces, self.size, self.wait = [rest], len(rest), len(rest) + more
        return found

    def close(self):
        """The last citations, when no more text comes. What was cut off in the middle of one is none."""
        pieces, self.pieces, self.size = self.pieces, [], 0
        return self._whole_line("".join(pieces))

    def _whole_line(self, line):
        if self._in_fence(line):
            self.code.append((self.base, self.base + len(line), " "))
            found = []
        else:
            found = self._scan(line, whole=True)
        self.base, self.at, self.cited = self.base + len(line) + 1, 0, -1
        return found

    def _in_fence(self, line):
        """Whether the line is of a fenced block, its first and last line included. (CommonMark 0.31, section 4.5.)"""
        if self.fence and ">" in self.fence[0] and not line.lstrip().startswith(">"):
            self.fence = None                                          # the quotation has ended, and its code with it
        if not self.fence:
            match = FENCE.match(line)
            self.fence = match and (match[1], match[2] or match[3])
            return bool(match)
        (margin, run), match = self.fence, FENCE_END.match(line)
        if match and match[2].startswith(run) and len(match[1]) <= len(margin) + 3:
            self.fence = None
        return True

    def _scan(self, line, whole):
        """The citations from self.at on. `whole`: nothing more comes in this line, so nothing is undecided."""
        found, runs = [], {}
        while match := TOKEN.search(line, self.at):
            if match["ticks"]:
                step = self._code(line, match, runs), None
            elif match.lastgroup is None:                              # an escape or an address
                step = match.end(), None
            elif match[match.lastgroup]:
                step = (match.end(), None) if match["tag"] else self._brackets(line, match, whole)
            else:                                                      # nothing closes it
                step = None if match.end() == len(line) else _past(match), None
            if step[0] is None and not whole:
                return found
            self.at = _past(match) if step[0] is None else step[0]
            if step[1]:
                found.append(step[1])
        self.at = len(line)
        return found

    def _code(self, line, match, runs):
        """Where the code that begins with these backticks ends, or None. runs: {length: starts, the last one first}."""
        if not runs:
            for run in reversed([*TICKS.finditer(line, match.start())]):
                runs.setdefault(len(run[0]), []).append(run.start())
        starts = runs.get(len(match[0]), [])
        while starts and starts[-1] < match.end():
            starts.pop()
        if not starts:
            return None
        end = starts[-1] + len(match[0])
        self.code.append((self.base + match.start(), self.base + end, "X"))
        return end

    def _brackets(self, line, match, whole):
        """(where to go on, the citation or None); where is None if that is not decided yet."""
        inner, after = match["round"] or match["inner"], match.end()
        if line.startswith("(", after) and "`" not in inner:
            link = LINK.match(line, after)
            if link or not whole:
                return link and link.end(), None
        if line.startswith(":", after) and match.start() < 40 and not line[:match.start()].strip(" \t>"):
            if not whole or inner.startswith("^") or DEFINITION.match(line, after):
                return after if whole else None, None
        reading = read_content(inner, self.n_sources)
        if not reading or self._is_text(line, match, reading[1]):
            return _past(match), None
        start, end = match.span()
        if not match["round"]:                                         # of [[[1]] the outermost bracket is text
            depth = min(len(match["open"]), len(match["close"]))
            start, end = match.end("open") - depth, match.start("close") + depth
        self.cited = end
        return after, Citation(self.base + start, self.base + end, *reading)

    def _is_text(self, line, match, status):
        """Whether numbers in brackets are an index or a figure's; round ones, which say less, must be valid."""
        if match["round"]:
            return status != "valid"
        before = line[max(0, match.start() - 40):match.start()]
        glued = INDEXED.search(before) or before.endswith("]") and self.cited != match.start()
        return bool(glued and match["open"].endswith("[") and BARE.fullmatch(match["inner"]))


def _past(match):
    """Where to go on if a token is only text: behind its first character, or its opening brackets or backticks."""
    return match.end("ticks") if match["ticks"] else match.end("open") if match["open"] else match.start() + 1


def parse(text, n_sources):
    """The citations in an answer to a prompt with `n_sources` sources, in order: [Citation].

    Raises TypeError for a text that is no string, TypeError or ValueError for n_sources that is no whole number >= 0.

    >>> [(numbers, status) for _, _, numbers, status in parse("A [1, 2]. B 【3†source】. C arr[1], [2024], `x[1]`.", 2)]
    [((1, 2), 'valid'), ((3,), 'out_of_range')]
    """
    return read(text, n_sources)[0]


def read(text, n_sources):
    """The citations of a text, and its code: [(start, end, "X" in a line or " " in fences)]."""
    stream = Stream(n_sources)
    return stream.feed(text) + stream.close(), stream.code


def repair(text, n_sources):
    """The text with every valid citation in the prompt's form, [S1] or [S1][S2]; everything else stays as it is.

    Only form changes: no number appears or disappears. A citation that is out of range or malformed is left to be seen.

    >>> repair("A [1-3]. B [[2]]. C [Source 1; 1]. D [9]. E `x[1]`.", 3)
    'A [S1][S2][S3]. B [S2]. C [S1]. D [9]. E `x[1]`.'
    """
    pieces, at = [], 0
    for start, end, numbers, status in parse(text, n_sources):
        if status == "valid":
            pieces += [text[at:start], *(f"[S{number}]" for number in numbers)]
            at = end
    return "".join(pieces) + text[at:]


# -- Sentences ---------------------------------------------------------------------------------------------------------

WORD = re.compile(r"[\u2e80-\ud7ff]|[^\W_\u2e80-\ud7ff]+")           # in scripts without blanks, one character


class Sentence(NamedTuple):
    """text[start:end] without the citations behind its full stop, and all its citations, of whatever status."""

    start: int
    end: int
    citations: list


def by_sentence(text, n_sources):
    """The sentences of an answer, without code, and the citations of each.

    A citation belongs to the sentence it stands in, else to the one before it; but at the beginning of a line to what
    follows on this line. An answer that has citations only has no sentence for them.

    >>> text = "A is red. [1] B is blue. [2]"
    >>> [(text[start:end], [each.numbers for each in citations]) for start, end, citations in by_sentence(text, 2)]
    [('A is red.', [(1,)]), ('B is blue.', [(2,)])]
    """
    return assign(text, *read(text, n_sources))


def assign(text, citations, code):
    """`by_sentence` for a text that `read` has read."""
    plain = without(text, citations, code)
    found = [Sentence(start, end, []) for start, end in sentences.split(plain) if re.search(r"\w", plain[start:end])]
    starts, breaks = [sentence.start for sentence in found], [each.start() for each in re.finditer("\n", text)]
    for citation in citations if found else ():
        place = max(bisect_right(starts, citation.start) - 1, 0)
        line = bisect_right(breaks, citation.start)
        opens_line = found[place].end <= citation.start and bisect_right(breaks, found[place].end - 1) < line
        if opens_line and place + 1 < len(found) and bisect_right(breaks, starts[place + 1]) == line:
            place += 1
        found[place].citations.append(citation)
    return found


def without(text, citations, code):
    """The text, as long as it was, with blanks for citations and fences, and X for code that is part of a sentence.

    A citation that stands before a full stop is X as well: "plan B [1]." must not end like an abbreviation, in "B.".
    """
    pieces, at = [], 0
    for start, end, fill in sorted([*code, *((start, end, "") for start, end, _, _ in citations)]):
        between = text[at:start]
        pieces.append(between if between.strip(" ,;") or not at else " " * len(between))      # [1], [2]
        before = text[max(0, start - 2):start].rstrip()
        stops = text.startswith(sentences.STOPS, end) and not before.endswith(sentences.STOPS)
        pieces.append((fill or " X"[stops]) * (end - start))
        at = end
    return re.sub(r"\( *\)", lambda match: " " * len(match[0]), "".join(pieces) + text[at:])        # ([1])


def removed(text, found, start=0, end=None):
    """text[start:end] without the citations `found` in it, in order, and without the blanks in front of each.

    >>> removed("It is five [1] days. [2]", parse("It is five [1] days. [2]", 2))
    'It is five days.'
    """
    pieces, end = [], len(text) if end is None else end
    for citation in found:
        if start <= citation.start < end:
            pieces.append(text[start:citation.start].rstrip(" "))
            start = citation.end
    return "".join(pieces) + text[start:end]


def unescaped(text):
    """The text with its brackets as they were, before a backslash kept them from being citations.

    >>> unescaped(r"proved in \\[2\\]")
    'proved in [2]'
    """
    return re.sub(r"\\([\[\]【】［］])", r"\1", text)


def uncited(text, n_sources):
    """The spans of the sentences that claim something and have no valid citation: [(start, end)].

    Whatever is neither a heading, a question, a lead-in that ends with a colon, nor a single word claims something.

    >>> text = "Here is the rule:\\n\\nIt is five days [1]. Yes. They expire in March [7]. 178."
    >>> [text[start:end] for start, end in uncited(text, 2)]
    ['They expire in March [7].', '178.']
    """
    citations, code = read(text, n_sources)
    plain = without(text, citations, code)
    return [(start, end) for start, end, cited in assign(text, citations, code)
            if _claims(plain[start:end]) and not any(citation.status == "valid" for citation in cited)]


def _claims(sentence):
    body = sentence.rstrip("\"'”’»)*_ ")
    heading = body.startswith("#") or sentence.startswith("**") and sentence.endswith("**") and body.count("**") == 1
    if heading or body.endswith(("?", "？", ":", "：")):
        return False
    words = WORD.findall(body)
    return len(words) > 1 or any(character.isdigit() for character in body)


# -- What a citation opens ---------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """What can be opened: characters start to end of a document, whose path or address is `source`; None: not known."""

    doc_id: str
    source: str | None
    title: str | None
    section_path: list | None
    page: int | None
    effective_date: str | None
    start: int
    end: int


class Reference(NamedTuple):
    """One number of a valid citation, the span of the sentence it supports (None: there is none), and its places."""

    citation: Citation
    number: int
    sentence: tuple | None
    places: list


def resolve(text, packed):
    """What the valid citations of an answer open: [Reference], in the order of the text.

    packed   the sources of the prompt, in its order: objects with `places`, a list of dicts. A source that was merged
             from several spans, or that stands in several documents, has several, and all are given.

    Raises ValueError for a place without document and offsets, or whose body is not as long as they say.

    >>> from types import SimpleNamespace as Made
    >>> place = {"doc_id": "leave", "source": "hr/leave.md", "start": 40, "end": 50, "body": "five days.", "page": 3}
    >>> [reference] = resolve("It is five days [1].", [Made(places=[place])])
    >>> reference.number, reference.sentence, reference.places[0].source, reference.places[0].page
    (1, (0, 20), 'hr/leave.md', 3)
    """
    opened = [[_opens(place, number) for place in source.places] for number, source in enumerate(packed, start=1)]
    citations, code = read(text, len(opened))
    supports = {citation: (start, end) for start, end, cited in assign(text, citations, code) for citation in cited}
    return [Reference(citation, number, supports.get(citation), opened[number - 1])      # subtle: numbers count from 1
            for citation in citations if citation.status == "valid" for number in citation.numbers]


def _opens(place, number):
    missing = [key for key in ("doc_id", "start", "end", "body") if place.get(key) is None]
    if missing:
        raise ValueError(f"a place of source {number} has no {missing[0]}: what cites it could not be opened")
    if len(place["body"]) != place["end"] - place["start"]:
        raise ValueError(f"a place of source {number} has a body of {len(place['body'])} characters for offsets "
                         f"{place['start']} to {place['end']}: the body must be the document's text between them")
    return Place(*(place.get(field) for field in Place._fields))


if __name__ == "__main__":
    from types import SimpleNamespace

    PACKED = [SimpleNamespace(places=[{"doc_id": name, "source": f"hr/{name}.md", "start": 40, "end": 40 + len(body),
                                       "body": body}])
              for name, body in (("leave-2026", "Up to five days roll over."), ("leave-2023", "Ten days carry over."))]
    ANSWER = "Five days roll over [1]. The ten of 2023 are void. 【2†source】 Nobody may sell days[1]. So the Act [2, 7]."
    print(ANSWER)
    for start, end, numbers, status in parse(ANSWER, len(PACKED)):
        print(f"    {ANSWER[start:end]:10}  {status:12}  {numbers}")
    print("repaired: ", repair(ANSWER, len(PACKED)))
    for reference in resolve(ANSWER, PACKED):
        place = reference.places[0]
        print(f"{ANSWER[slice(*reference.sentence)]!r:28} is from {place.source}, characters {place.start}-{place.end}")
    for start, end in uncited(ANSWER, len(PACKED)):
        print(f"{ANSWER[start:end]!r:28} is from nowhere")
