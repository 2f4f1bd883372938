"""Beside step 9 — How long is a stretch of a document, and where may it be cut? What chunking.py is made of.

    length      what is counted: "words", "characters" or "tokens"
    token       a word piece: what a model reads in place of words; "carbonara" is three of them, carb onar a
    specials    two more pieces that a model wants around every text, [CLS] and [SEP]
    weight      what a word counts for: 1, or the number of its word pieces
    measure     the length of text[start:end]; a word that begins before it or ends behind it counts whole
    reach       from a start, the last place that is at most so far away
    breadcrumb  what stands in front of every body: "Title > Section"
    room        what is left for the body
    Span        text[start:end] on its way to become a chunk
    Piece       what should stay whole; as many neighbours as fit become a Span

    "the cat sat on the mat"     in words, from 4 ("cat"): measure(4, 14) = 3, reach(4, 3) = 15 (the second "the")

Words are weighed once for a document; after that each length is a difference of two running sums, found by bisection.
So cutting costs time in proportion to the text, whatever is counted.

Not here: where the parts of a document are (documents.py), which of these tools makes which chunks (chunking.py).
"""

import functools
import re
from bisect import bisect_left, bisect_right
from itertools import takewhile
from typing import NamedTuple

import numpy as np

import documents
from ranking import check_k

# From the coarsest to the finest; a cut falls behind the separator. After the last one: wherever a unit ends.
SEPARATORS = (("\n\n", "\r\n\r\n"), ("\n", "\r"), (". ", "? ", "! ", "。", "？", "！"), (" ", "\t"))
BEHIND = {separator: len(separator) - len(separator.rstrip()) for level in SEPARATORS for separator in level}
NOT_BLANK = re.compile(r"\S")
METADATA = ("source", "doc_type", *documents.Metadata.__annotations__)


# -- Length ------------------------------------------------------------------------------------------------------------


class Ruler:
    """Measures stretches of one text, whose words are weighed once.

    For tokens a word weighs its word pieces: a model cuts each word into pieces without looking at the others. A word
    of more than `heaviest` pieces may have to be cut itself, so its letters are weighed one by one, which never counts
    too few. (Trap: one letter can have several pieces, as Korean ones do, and exceed a very small size.) Characters
    need no weights.
    """

    def __init__(self, text, length, embedder=None, heaviest=1):
        self.text, self.characters = text, length == "characters"
        if self.characters:
            return
        self.starts, self.ends = _words(text, length == "tokens")
        if length == "tokens":
            weights, self.starts, self.ends = _word_pieces(text, self.starts, self.ends, embedder, heaviest)
            self.before = [0, *np.cumsum(weights, dtype=np.int64).tolist()]
        else:
            self.before = range(len(self.starts) + 1)                  # the weight of all words before each

    def measure(self, start, end):
        """The length of text[start:end].

        >>> Ruler("the cat sat on the mat", "words").measure(4, 14)      # "cat sat on"
        3
        """
        if self.characters or start >= end:
            return max(0, end - start)
        return max(0, self.before[bisect_left(self.starts, end)] - self.before[bisect_right(self.ends, start)])

    def reach(self, start, room):
        """The last offset such that the stretch from `start` to it is at most `room` long; at least one word on.

        >>> Ruler("the cat sat on the mat", "words").reach(4, 3)         # up to the second "the"
        15
        """
        if self.characters:
            return min(start + room, len(self.text))
        first = bisect_right(self.ends, start)
        behind = max(bisect_right(self.before, self.before[first] + room) - 1, first + 1)
        return self.starts[behind] if behind < len(self.starts) else len(self.text)

    def back(self, end, room):
        """The start of the first word such that the stretch from it to `end` is at most `room` long.

        >>> Ruler("the cat sat on the mat", "words").back(14, 2)         # "sat on"
        8
        """
        if self.characters or room == 0:
            return max(0, end - room)
        behind = bisect_left(self.starts, end)
        first = bisect_left(self.before, self.before[behind] - room)
        return self.starts[first] if first < behind else end


def _words(text, for_tokens=False):
    """Where the words of a text start, and where they end: those of str.split, ten times as fast as by a pattern.

    Models know fewer kinds of white space: they leave out control characters such as "\\x0b", so that the words on both
    sides become one.

    >>> _words("the  cat\\x0b"), _words("the  cat\\x0b", for_tokens=True)
    (([0, 5], [3, 8]), ([0, 5], [3, 9]))
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    inside = ~_white_space(for_tokens)[np.minimum(codes, 0x3001)]      # [n_characters]
    edges = np.diff(inside.astype(np.int8), prepend=0, append=0)       # [n_characters + 1]: 1 in front of a word
    return np.flatnonzero(edges == 1).tolist(), np.flatnonzero(edges == -1).tolist()


@functools.cache
def _white_space(for_tokens):
    letters = map(chr, range(0x3002))                                  # U+3000 is the last one that is
    return np.array([letter.isspace() and not (for_tokens and letter in "\x0b\x0c\x1c\x1d\x1e\x1f\x85")
                     for letter in letters])


def _word_pieces(text, starts, ends, embedder, heaviest):
    around, known, weights, places = embedder.count_tokens(""), {}, [], []

    def weigh(piece):
        if piece not in known:
            known[piece] = embedder.count_tokens(piece) - around
        return known[piece]

    for start, end in zip(starts, ends):
        weight = weigh(text[start:end])
        if weight <= heaviest:
            weights.append(weight)
            places.append((start, end))
        else:
            weights += [max(1, weigh(letter)) for letter in text[start:end]]
            places += [(offset, offset + 1) for offset in range(start, end)]
    return weights, [start for start, _ in places], [end for _, end in places]


# -- One document -----------------------------------------------------------------------------------------------------


class Span(NamedTuple):
    """A stretch of a document on its way to become a chunk."""

    start: int
    end: int
    path: tuple = ()                    # the section it lies in, for the breadcrumb
    header: tuple | None = None         # (start, end) of what its text repeats
    split: bool = False                 # whether it is a piece of something that should have stayed whole


class Cutter:
    """One document about to be cut: its text, what was asked for, and how long things may be."""

    def __init__(self, document, size, overlap, length, embedder):
        self.size, self.overlap = _check(size, overlap, length, embedder)
        self.length, self.embedder = length, embedder
        self.around = embedder.count_tokens("") if embedder else 0     # specials and prefix
        if length == "tokens" and not self.around < size <= embedder.max_tokens:
            raise ValueError(f"size must be above {self.around}, the word pieces around every text, and at most "
                             f"{embedder.max_tokens}, which {embedder.name} reads: not {size}")
        if not isinstance(document.get("text"), str) or "id" not in document:
            raise TypeError("a document is a dict with an id and a string as text; documents.load_folder makes them")
        self.document, self.text = document, document["text"]
        # subtle: a breadcrumb takes at most half of the size, so a word that takes no more always fits into the other
        self.ruler = Ruler(self.text, length, embedder, heaviest=(size - self.around + 1) // 2)
        returns = "\r" in self.text                                    # without them, half of the searches are spared
        self.separators = [[each for each in level if returns or "\r" not in each] for level in SEPARATORS]
        self.metadata = {key: document[key] for key in METADATA if key in document}
        self._breadcrumbs, self._token_ruler = {}, self.ruler if length == "tokens" else None

    def breadcrumb(self, path):
        """(breadcrumb, its cost): for tokens, as many of its words as take at most half of the size."""
        if path not in self._breadcrumbs:
            title, cost = self.document.get("title") or "", 0
            names = path if path[:1] == (title,) else (title, *path)   # the title is often the first heading
            crumb = " > ".join(filter(None, names))
            if self.length == "tokens":
                half = (self.size - self.around) // 2
                ruler = Ruler(crumb, "tokens", self.embedder, heaviest=half)
                crumb = crumb[:ruler.reach(0, half)].rstrip(" >") if half else ""
                cost = ruler.measure(0, len(crumb))
            self._breadcrumbs[path] = crumb, cost
        return self._breadcrumbs[path]

    def room(self, path=(), header=None):
        """How long a body in the section `path` may be if its text repeats `header`."""
        if self.length != "tokens":
            return self.size
        return self.size - self.around - self.breadcrumb(path)[1] - (self.ruler.measure(*header) if header else 0)

    def header(self, block, start):
        """What a piece of `block` that begins at `start` repeats: nothing if it holds the header, or if header and
        breadcrumb take more than half of the size."""
        if block.header is None or start <= block.header[0]:
            return None
        front = self.ruler.measure(*block.header) + self.breadcrumb(block.section_path)[1]
        return block.header if 2 * front <= self.size - self.around else None

    def fits_limit(self, start, end, path, header=None):
        """Whether an atom that is longer than its room may stay whole: if the embedder can read it with all that stands
        in front of it; without an embedder, if it has at most 2 x size."""
        # subtle: an embedder decides this also where words or characters are counted
        if self.embedder is None:
            return self.ruler.measure(start, end) <= 2 * self.size
        if self._token_ruler is None:
            self._token_ruler = Ruler(self.text, "tokens", self.embedder, heaviest=self.embedder.max_tokens)
        front = self.embedder.count_tokens(self.breadcrumb(path)[0])
        front += self._token_ruler.measure(*header) if header else 0
        return front + self._token_ruler.measure(start, end) <= self.embedder.max_tokens

    def chunks(self, spans):
        """The spans as Chunks: without white space around them, blank ones, and those inside a neighbour."""
        text, kept, last_start, last_end = self.text, [], -1, 0
        for span in spans:
            end = span.end
            while end > span.start and text[end - 1].isspace():
                end -= 1
            if end == span.start or end <= last_end:
                continue
            start = _content(text, span.start)
            if start <= last_start:
                kept.pop()                                             # it lies inside this one
            last_start, last_end = start, end
            kept.append((start, end, span))
        return [self._chunk(position, *each) for position, each in enumerate(kept)]

    def _chunk(self, position, start, end, span):
        document, body = self.document, self.text[start:end]
        crumb, _ = self.breadcrumb(span.path)
        front = (crumb + "\n\n" if crumb else "") + (self.text[slice(*span.header)] + "\n" if span.header else "")
        chunk: documents.Chunk = {
            "id": f"{document['id']}#{position}", "doc_id": document["id"], "position": position,
            "title": document.get("title") or "", "section_path": list(span.path), "body": body, "text": front + body,
            "start": start, "end": end, **self.metadata}
        if "pages" in document:
            chunk["page"] = max(1, bisect_right(document["pages"], start))
        if span.split:
            chunk["split"] = True
        return chunk


def _check(size, overlap, length, embedder):
    if length not in ("words", "tokens", "characters"):
        raise ValueError(f"length must be 'words', 'tokens' or 'characters', not {length!r}")
    size, overlap = check_k(size, least=1, name="size"), check_k(overlap, name="overlap")
    if overlap >= size:
        raise ValueError(f"overlap must be below size, or no chunk moves on: not {overlap} of {size}")
    if length == "tokens" and embedder is None:
        raise ValueError("length='tokens' counts an embedder's word pieces: pass embedder=load_embedder()")
    return size, overlap


def _content(text, start):
    """Where the text goes on at or after `start`: at a line that is not blank, or, within a line, at a character."""
    if start < len(text) and not text[start].isspace():
        return start                                                   # the usual case, quickly
    match = NOT_BLANK.search(text, start)
    if match is None:
        return len(text)
    first = match.start()
    line = max(text.rfind("\n", start, first), text.rfind("\r", start, first)) + 1      # 0: no line begins in between
    return line or (start if start == 0 or text[start - 1] in "\r\n" else first)


# -- Cutting recursively, at separators --------------------------------------------------------------------------------


def recursive_spans(cutter, start, stop, room, overlap=0, glued=0):
    """Spans that hold text[start:stop], each as long as fits, cut behind the last of the coarsest separators.

    The first one ends behind `glued`, if it can: what is in front of it makes no sense alone.
    """
    text, reach_from, spans, covered = cutter.text, cutter.ruler.reach, [], start
    while (start := _content(text, start)) < stop:
        reach = reach_from(start, room)
        # subtle: no cut in the indentation, which would leave a blank span
        low = max(covered, start if not text[start].isspace() else NOT_BLANK.search(text, start).start())
        if reach <= low:
            start = low              # the overlap, or the indentation, leaves no room for what follows
            continue
        end = stop if reach >= stop else _last_separator(cutter, glued if low < glued < reach else low, reach)
        spans.append(Span(start, end))
        covered, start = end, _overlap_start(cutter, start, end, overlap) if overlap else end
        if end == stop:
            break
    return spans


def _last_separator(cutter, low, high):
    """Where text[low:high] is best cut: behind the last of the coarsest separators whose visible part lies in it."""
    for separators in cutter.separators:
        best = low
        for separator in separators:
            # subtle: white space of a separator may lie beyond `high`; it does not count
            found = cutter.text.rfind(separator, low, high + BEHIND[separator])
            if found >= 0 and found + len(separator) > best:
                best = found + len(separator)
        if best > low:
            return best
    return high


def _overlap_start(cutter, start, end, overlap):
    """Where the next chunk starts, to repeat at most `overlap` of the one that ends at `end`."""
    visible = end
    while cutter.text[visible - 1].isspace():                          # ends at the latest where the span is not blank
        visible -= 1
    first = max(cutter.ruler.back(visible, overlap), cutter.ruler.reach(start, 1))
    for separators in cutter.separators:
        best = visible
        for separator in separators:
            found = cutter.text.find(separator, max(0, first - len(separator)), visible)
            if 0 <= found < best - len(separator):
                best = found + len(separator)
        if best < visible:
            return best
    return first if first < visible else end


def within(cutter, stretches, room, glued=0):
    """Spans for stretches, those beyond `room` cut recursively and marked."""
    for start, end in stretches:
        if cutter.ruler.measure(start, end) <= room:
            yield Span(start, end)
        else:
            for span in recursive_spans(cutter, start, end, room, glued=glued):
                yield span._replace(split=True)


# -- Packing pieces ----------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """What structured and semantic put chunks together from: an atom, or a block that fits."""

    start: int
    end: int
    room: int
    path: tuple = ()
    header: tuple | None = None         # what a chunk that starts here repeats
    split: bool = False
    turn: bool = False                  # whether something else begins here


def pack(cutter, pieces, floor=0):
    """Neighbouring pieces, as many as fit, as Spans. A turn ends one that has at least `floor`."""
    spans, group = [], []
    for piece in pieces:
        # subtle: the room of the first piece decides, since its header is repeated; the common path is never longer
        if group and (cutter.ruler.measure(group[0].start, piece.end) > group[0].room
                      or piece.turn and cutter.ruler.measure(group[0].start, group[-1].end) >= floor):
            spans.append(_span(group))
            group = _repeated(cutter, group, piece)
        group.append(piece)
    return spans + [_span(group)] if group else spans


def _repeated(cutter, group, piece):
    """The last pieces of a full group that the next one, which begins with them, repeats."""
    repeated = []
    for last in reversed(group[1:]):                                   # not the first, or nothing moves on
        if (cutter.ruler.measure(last.start, group[-1].end) > cutter.overlap
                or cutter.ruler.measure(last.start, piece.end) > last.room):
            break
        repeated.insert(0, last)
    return repeated


def _span(group):
    path = group[0].path
    for piece in group[1:]:
        path = tuple(name for name, other in takewhile(lambda pair: pair[0] == pair[1], zip(path, piece.path)))
    return Span(group[0].start, group[-1].end, path, group[0].header, any(piece.split for piece in group))


if __name__ == "__main__":
    ruler = Ruler("the cat sat on the mat", "words")
    print(f"words of {ruler.text!r} start at {ruler.starts}, end at {ruler.ends}")
    print(f"measure(4, 14): {ruler.measure(4, 14)} words, {ruler.text[4:14]!r}")
    print(f"reach(4, 3): {ruler.reach(4, 3)}, since {ruler.text[4:ruler.reach(4, 3)]!r} has three words")
    print(f"back(14, 2): {ruler.back(14, 2)}, since {ruler.text[ruler.back(14, 2):14]!r} has two\n")
    document = {"id": "d", "title": "Pets", "text": "The cat sat.\n\nThe dog ran. It\nbarked."}
    cutter = Cutter(document, size=4, overlap=1, length="words", embedder=None)
    print(f"{cutter.text!r}, at most 4 words:")
    for span in recursive_spans(cutter, 0, len(cutter.text), room=4):
        print(f"  behind a separator: {cutter.text[span.start:span.end]!r}")
    words = [Piece(start, end, room=4) for start, end in zip(cutter.ruler.starts, cutter.ruler.ends)]
    for span in pack(cutter, words):
        print(f"  words as pieces, one repeated: {cutter.text[span.start:span.end]!r}")
    print(f"\nin front of each body: {cutter.chunks([Span(0, 12, ('Pets', 'Cats'))])[0]['text'][:11]!r}")
