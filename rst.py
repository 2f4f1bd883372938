r"""Step 6 of 22 — Where are the parts of a reStructuredText file? Before: trec.py. Next: documents.py.

A chunk should begin and end where the author made a cut. reStructuredText says where that is by blank lines,
indentation and the marks at the start of a line, so one pass over the lines finds every part.

    text       the file as it was loaded                toy: "Wine\n----\n\n:Date: 1988\n\nA copy."
    line       ends at \r\n, \n or \r, at nothing else  toy: 6, of which 4 are not blank
    block      a part: its kind, and text[start:end]    toy: heading 0:9, field 11:22, paragraph 24:31
    level      > 0 for a block that names the next ones toy: heading 1, field 2, paragraph 0
    path       the names a block lies under             toy: ("Wine",), ("Wine", "Date"), ("Wine",)
    indent     columns in front of a line's text; a tab reaches to the next multiple of 8
    gap        a blank line stands in front of this line
    construct  what the grammar calls the thing that starts at a line: bullet, field, simple (a table), directive, ...
    place      where indented content stands: inside a directive or the body of a field; the first place is the file

Headings are known by their adornment alone: a line of one repeated punctuation character under the title, or over and
under it. A style's level is the order in which the file first uses it, so "===" may be level 1 here and level 2 there;
"===" under a title and "===" over and under it are two styles. An adornment must be as long as its title in characters
(docutils counts a Chinese one as two columns, and lets a line of four or more pass with a warning).

Many files have one such heading and are divided by other means. So these are headings too, one level below the real
one they stand under: `.. rubric:: Name` and a line that is all bold, up to the next of them, and `.. dropdown:: Name`,
whose indented content alone lies under it. A field names its body, and an empty one the table, list or code below it.

The grammar is that of docutils, "reStructuredText Markup Specification", and constructs are asked for in its order:
an enumerator whose next line is neither indented nor another item ("A. Einstein was\na physicist") starts a paragraph.
Nothing is an error: what has no valid form is a paragraph, or a table up to where it breaks, and no text is lost.

Not here: inline markup, includes, substitution, display widths, section numbers, what a directive does.
"""

import re
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import NamedTuple


class Block(NamedTuple):
    """A part of a document: text[start:end], whole lines, from the start of its first line (indentation included) to
    the end of its last line that is not blank, without that line's end. Blocks stand in order and never overlap;
    between them there is only white space.

    kind          heading, paragraph, list, table, code, field or quote
    level         > 0 for a block that names what follows: a heading (1 is the highest), a field, the head of a Python
                  class or function; 0 for every other block, and for fields that name nothing: labels, front matter
    section_path  the names of the headings (and the field) the block lies under, outermost first; a block that names
                  something has its own name last
    cuts          offsets, start < cut < end, increasing, before which the block may be cut: starts of lines where a
                  row, outermost item, example or statement begins; none between a table's header and its first row
    header        (start, end) of the text that each piece of the block repeats: a table's header with its border, the
                  head of the function that this code is the body of; None for most
    """

    kind: str
    start: int
    end: int
    level: int
    section_path: tuple
    cuts: tuple = ()
    header: tuple | None = None


# -- The marks at the start of a line. Possessive quantifiers (++, *+) keep every match linear -------------------------

NUMBER = r"(?:\d++|[A-Za-z]|[ivxIVX]++|\#)"
OPTION = r"(?:--?\w[\w-]*+|/[A-Za-z])(?:[ =](?:[A-Za-z][\w-]*+|<[^<>]++>))?+"
CODE = "code|code-block|sourcecode|parsed-literal|math|raw|doctest|testsetup|testcode|testoutput"
FIELD = re.compile(r":(?![:\s])((?:[^:\\]|\\.|:(?![\s`]|$))++)(?<!\s):(?:\s+|$)")          # :func:`x` is no field
DIRECTIVE = re.compile(r"\.\.\s+(\w++(?:[-.+:]\w++)*+) ?::(?:\s+(.*))?$")
MARKS = {                                              # in the order of docutils
    "bullet": r"[-+*•‣⁃](?:\s|$)",
    "enumerated": rf"(?:\({NUMBER}\)|{NUMBER}[.)])(?:\s|$)",
    "field": FIELD.pattern,
    "option": rf"{OPTION}(?:, {OPTION})*+(?:  |$)",
    "doctest": r">>>(?:\s|$)",
    "paragraph": r"\|(?:\s|$)",                        # a line block
    "grid": r"\+-[-+]*-\+$",
    "simple": r"=++(?: ++=++)++$",
    "footnote": r"\.\.\s+\[[\w\#*.-]++\](?:\s|$)",
    "target": r"\.\.\s+(?:_.*:(?:\s|$)|\|)|__\s",      # .. _label:   .. |substitution|   __ anonymous
    "rubric": r"\.\.\s+(?i:rubric) ?::\s",
    "dropdown": r"\.\.\s+(?i:dropdown) ?::\s",
    "table_directive": r"\.\.\s+(?i:list-table|csv-table) ?::(?:\s|$)",
    "code_directive": rf"\.\.\s+(?i:{CODE}) ?::(?:\s|$)",
    "directive": DIRECTIVE.pattern,
    "comment": r"\.\.(?:\s|$)",
}
MARK = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in MARKS.items()))
RULE = re.compile(r"(?:=[ =]*|-[ -]*)$")               # a border, or the line under cells that span columns
GRID_HEADER = re.compile(r"\+=[=+]*=\+$")
ADORNMENT = re.compile(r"(?!::$)([!-/:-@\[-`{-~])\1*+$")
BOLD = re.compile(r"\*\*([^*\s:][^*]*)\*\*:?$")
HEADER_ROWS = re.compile(r":header-rows: *(\d{1,4})\b")

LISTS = {"bullet", "enumerated", "option", "footnote", "definition"}
OWNED = LISTS | {"simple", "grid", "doctest", "table_directive", "code_directive"}     # by an empty field above them

# -- Lines -------------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line that is not blank; a blank one is only remembered as the `gap` before the next."""

    number: int         # counted from 1, blank lines too
    start: int          # offsets of the whole line, without its line end
    end: int
    indent: int
    text: str           # without indentation and trailing white space
    gap: bool


def line_spans(text):
    r"""(start, end) of every line of a text, without its line end; a line end at the very end begins no further line.

    >>> line_spans("a\r\nb\x0c\u2028c\n\nd\r")
    [(0, 1), (3, 7), (8, 8), (9, 10)]
    """
    # subtle: str.splitlines would also break at \x0b, \x0c, \x1c to \x1e, \x85, \u2028 and \u2029
    spans, start = [], 0
    for line_end in re.finditer(r"\r\n|\n|\r", text):
        spans.append((start, line_end.start()))
        start = line_end.end()
    return spans + [(start, len(text))] * (start < len(text))


def _lines(text):
    lines, gap = [], True
    for number, (start, end) in enumerate(line_spans(text), start=1):
        full = text[start:end].rstrip()
        if full:
            content = full.lstrip(" \t\v\f")
            indent = len(full[:len(full) - len(content)].expandtabs(8))
            lines.append(Line(number, start, end, indent, content, gap))
        gap = not full
    return lines


def _mark(text):
    found = MARK.match(text)
    return found and found.lastgroup


# -- The parser --------------------------------------------------------------------------------------------------------


@dataclass
class Place:
    """Where indented content stands. It ends at the first line that is not indented more than `outer`."""

    outer: int
    base: int                       # the least indent inside so far; a deeper paragraph is a quote
    level: int                      # of the heading or field that the content belongs to
    path: tuple
    rubric: tuple | None = None     # (level, path) of the rubric or bold line in force

    @property
    def here(self):
        """(level, path) that a block at this place lies under."""
        return self.rubric or (self.level, self.path)


class _Parser:
    """One pass over the lines. Each method named after a construct adds the block that starts at line i, and perhaps
    a Place for what is inside it, and returns the number of the line to go on with."""

    def __init__(self, text):
        self.lines = _lines(text)
        self.blocks = []
        self.styles = {}                                               # style of a heading -> its level
        self.places = [Place(-1, 0, 0, ())]                            # the file; headings and bodies are put on top

    def step(self, i):
        """Add the block that starts at line i, once the places that end above it are closed."""
        indent = self.lines[i].indent
        while indent <= self.places[-1].outer:
            self.places.pop()
        self.places[-1].base = min(self.places[-1].base, indent)
        construct = self.construct(i)
        return self.list(i, construct) if construct in LISTS else getattr(self, construct)(i)

    def add(self, kind, i, end, level=0, path=None, cuts=(), header=None):
        """Add the block of lines i to end - 1; `cuts` are lines, `header` is the last line of the header."""
        start, path = self.lines[i].start, self.places[-1].here[1] if path is None else path
        self.blocks.append(Block(kind, start, self.lines[end - 1].end, level, path,
                                 tuple(self.lines[k].start for k in cuts),
                                 None if header is None else (start, self.lines[header].end)))
        return end

    # What starts here? Each question looks at no more than three lines.

    def construct(self, i):
        """The name of the construct that starts at line i."""
        line, below = self.lines[i], self.below(i)
        name, deeper = _mark(line.text), below is not None and below.indent > line.indent
        if name and (deeper or not (name == "enumerated" and below and _mark(below.text) != name
                                    or name == "option" and "  " not in line.text)):       # nothing but the option
            return name
        if self.title(i):
            return "heading"
        if deeper and not ADORNMENT.match(line.text):
            return "definition"
        alone = below is None or below.indent < line.indent
        return "bold" if alone and line.indent == self.places[-1].base and BOLD.match(line.text) else "paragraph"

    def title(self, i):
        """(title, style, number of lines) of the section heading at line i, or None. It stands at column 0."""
        n_lines = 3 if ADORNMENT.match(self.lines[i].text) else 2
        part = self.lines[i:i + n_lines]
        if len(part) < n_lines or any(line.gap for line in part[1:]) or part[0].indent or part[-1].indent:
            return None
        title, rules = part[-2], part[:-2] + part[-1:]
        style = "".join(rule.text[0] for rule in rules)                # two characters if over and under the title
        adorned = all(ADORNMENT.match(rule.text) and len(rule.text) >= len(title.text) for rule in rules)
        fits = style[0] == style[-1] and not ADORNMENT.match(title.text)
        return (title.text, style, n_lines) if adorned and fits else None

    # Where does it end? Each line is passed once or twice, for what is passed is part of the block.

    def below(self, i):
        """The next line, or None if there is none or a blank line between."""
        return self.lines[i + 1] if i + 1 < len(self.lines) and not self.lines[i + 1].gap else None

    def run(self, i, least):
        """The line after those that follow line i without a blank line and with an indent of at least `least`."""
        while (below := self.below(i)) is not None and below.indent >= least:
            i += 1
        return i + 1

    def alike(self, i, characters):
        """The line after those right below line i that are indented as it and start with one of `characters`."""
        while (below := self.below(i)) and below.text[0] in characters and below.indent == self.lines[i].indent:
            i += 1
        return i + 1

    def inside(self, i, indent):
        """The first line from i on that is not indented more than `indent`."""
        while i < len(self.lines) and self.lines[i].indent > indent:
            i += 1
        return i

    def head(self, i):
        """The line after a directive's own: after its mark, the rest of its argument and its options."""
        below, argument = self.below(i), DIRECTIVE.match(self.lines[i].text)[2]
        return self.run(i, self.lines[i].indent + 1) if argument or below and below.text[0] == ":" else i + 1

    # Headings, fields, and other blocks that have something inside.

    def heading(self, i):
        """A real heading: it ends all others of its level or lower ones, with their rubrics."""
        title, style, n_lines = self.title(i)
        level = self.styles.setdefault(style, len(self.styles) + 1)
        while self.places[-1].level >= level:
            self.places.pop()
        self.places.append(Place(-1, 0, level, (*self.places[-1].path, title)))
        return self.add("heading", i, i + n_lines, level)

    def bold(self, i):
        return self.sub_heading(i, i + 1, BOLD.match(self.lines[i].text)[1].rstrip(": "))

    def rubric(self, i):
        return self.sub_heading(i, self.head(i), self.argument(i))

    def dropdown(self, i):
        """A heading for what is indented below it."""
        end = self.sub_heading(i, self.head(i), self.argument(i))
        here, self.places[-1].rubric = self.places[-1].rubric, None    # subtle: it ends a rubric above it, too
        self.open(end, self.lines[i].indent, *here)
        return end

    def sub_heading(self, i, end, name):
        place = self.places[-1]
        place.rubric = level, path = place.level + 1, (*place.path, name)
        return self.add("heading", i, end, level, path)

    def argument(self, i):
        rest = (self.lines[k].text for k in range(i + 1, self.head(i)))
        return " ".join([DIRECTIVE.match(self.lines[i].text)[2], *takewhile(lambda text: text[0] != ":", rest)])

    def directive(self, i):
        end = self.add("paragraph", i, self.head(i))
        self.open(end, self.lines[i].indent, *self.places[-1].here)
        return end

    def field(self, i):
        """Its line and the rest of its first paragraph; its further body, or what an empty one owns, lies under it."""
        line, mark = self.lines[i], FIELD.match(self.lines[i].text)
        level, path = self.places[-1].here
        level, path, below, end = level + 1, (*path, mark[1]), self.below(i), i + 1
        empty = mark.end() == len(line.text)
        if not empty or below and below.indent > line.indent and self.construct(end) == "paragraph":
            end = self.run(i, line.indent + 1)
        self.add("field", i, end, level, path)
        if self.open(end, line.indent, level, path):
            return self.literal(end, self.lines[end - 1])
        if empty and end == i + 1 < len(self.lines) and self.lines[end].indent == line.indent \
                and self.construct(end) in OWNED:
            self.places.append(Place(line.indent - 1, line.indent, level, path))
            end = self.step(end)
            self.places.pop()
        return end

    def open(self, i, indent, level, path):
        """Add a place for what is indented more than `indent` from line i on, if anything is."""
        if i == len(self.lines) or self.lines[i].indent <= indent:
            return False
        self.places.append(Place(indent, self.lines[i].indent, level, path))
        return True

    # Text, lists, targets and comments.

    def paragraph(self, i):
        line = self.lines[i]
        kind = "quote" if line.indent > self.places[-1].base else "paragraph"
        return self.literal(self.add(kind, i, self.run(i, line.indent)), line)

    def list(self, i, construct):
        """An item, with all that is indented below it, and the items of the same construct that follow."""
        indent, cuts = self.lines[i].indent, []
        end = self.inside(i + 1, indent)
        while end < len(self.lines) and self.lines[end].indent == indent and self.construct(end) == construct:
            cuts.append(end)
            end = self.inside(end + 1, indent)
        return self.add("list", i, end, cuts=cuts)

    def target(self, i):
        return self.add("field", i, self.run(i, self.lines[i].indent + 1))

    def comment(self, i):
        empty = self.lines[i].text == ".." and self.below(i) is None   # subtle: then what follows is no part of it
        return self.add("paragraph", i, i + 1 if empty else self.inside(i + 1, self.lines[i].indent))

    # Code.

    def doctest(self, i):
        return self.code(i, i, self.run(i, self.lines[i].indent))

    def code_directive(self, i):
        return self.code(i, self.head(i), self.inside(i + 1, self.lines[i].indent))

    def literal(self, i, line):
        """The literal block at line i, if the paragraph above it, as indented as `line`, ends with two colons."""
        if i == len(self.lines) or not self.lines[i - 1].text.endswith("::"):
            return i
        end, quote = self.inside(i, line.indent), self.lines[i].text[0]
        if end == i and self.lines[i].indent == line.indent and ADORNMENT.match(quote):      # a quoted literal block
            end = self.alike(i, quote)
        if end > i and self.lines[i - 1].text == "::" and self.blocks[-1].start == self.lines[i - 1].start:
            self.blocks.pop()                                          # a paragraph of two colons is only a mark
            return self.code(i - 1, i, end)
        return self.code(i, i, end) if end > i else i

    def code(self, i, content, end):
        examples = [k for k in range(content, end) if self.lines[k].text.startswith(">>>")]
        return self.add("code", i, end, cuts=examples[1:] if examples else [
            k for k in range(content + 1, end) if self.lines[k].gap])

    # Tables.

    def simple(self, i):
        """A table between borders of "=". A line whose first column is empty goes on with the row above."""
        end, header = self.simple_borders(i)
        first = i if header is None else header
        second_column = self.lines[i].indent + self.lines[i].text.index(" ")
        return self.add("table", i, end, header=header, cuts=[
            k for k in range(first + 2, end) if not RULE.match(self.lines[k].text)
            and (self.lines[k].indent < second_column or RULE.match(self.lines[k - 1].text))])

    def simple_borders(self, i):
        """(the line after the table, the border under its header or None). Rows may have blank lines between them."""
        found = []
        for k in range(i + 1, len(self.lines)):
            if self.lines[k].indent < self.lines[i].indent or self.lines[k].gap and self.title(k):
                break
            if _mark(self.lines[k].text) == "simple":
                found.append(k)
                if len(found) == 2 or self.below(k) is None:
                    break
        if not found:                                                  # never closed: up to the next blank line
            return self.run(i, self.lines[i].indent), None
        return found[-1] + 1, found[0] if len(found) == 2 else None

    def grid(self, i):
        """A table of "+", "-" and "|". The line under a row belongs to it."""
        end = self.alike(i, "+|")
        header = next((k for k in range(i, end) if GRID_HEADER.match(self.lines[k].text)), None)
        rows = [k for k in range(i + 1, end) if _mark(self.lines[k - 1].text) == "grid" and k > (header or 0)]
        return self.add("table", i, end, header=header, cuts=rows if header else rows[1:])

    def table_directive(self, i):
        """A list-table or csv-table: the directive is the header, with the header rows, if it names any."""
        end, head = self.inside(i + 1, self.lines[i].indent), self.head(i)
        options = "\n".join(self.lines[k].text for k in range(i + 1, head))
        n_header = int(mark[1]) if (mark := HEADER_ROWS.search(options)) else 0
        rows = self.table_rows(i, head, end)[n_header:]
        return self.add("table", i, end, cuts=rows[1:],
                        header=rows[0] - 1 if rows and (n_header or ":header:" in options) else None)

    def table_rows(self, i, head, end):
        """The lines at which the rows start."""
        if "list-table" in DIRECTIVE.match(self.lines[i].text)[1].lower():
            return [k for k in range(head, end) if self.lines[k].indent == self.lines[head].indent
                    and _mark(self.lines[k].text) == "bullet"]
        quotes = accumulate((self.lines[k].text.count('"') for k in range(head, end)), initial=0)
        return [k for k, n_quotes in zip(range(head, end), quotes) if n_quotes % 2 == 0]      # else a cell goes on


def blocks(text):
    r"""The Blocks of a reStructuredText file, in order: every character that is not white space lies in exactly one.

    Nothing is raised, whatever the text. Work grows with the number of characters, whatever they are.

    >>> for block in blocks("Wine\n----\n\n:Date: 1988\n\nA copy."):
    ...     print(block.kind, block.start, block.end, block.level, block.section_path)
    heading 0 9 1 ('Wine',)
    field 11 22 2 ('Wine', 'Date')
    paragraph 24 31 0 ('Wine',)
    """
    parser, i = _Parser(text), 0
    while i < len(parser.lines):
        i = parser.step(i)
    return parser.blocks


def fields(text):
    r"""(name, value, line number) of the field list at the top of a file: before the first heading, or right below it.

    Labels and comments may stand between. Lines count from 1; the lines of a longer value are joined by one space.

    >>> fields("Wine\n====\n\n:version: 2\n:title: Wines of\n    the world\n\nText\n\n:Date: 1988")
    [('version', '2', 4), ('title', 'Wines of the world', 5)]
    """
    parser, found, i, allowed = _Parser(text), [], 0, {"field", "target", "comment", "heading"}
    while i < len(parser.lines) and (construct := parser.construct(i)) in allowed and parser.lines[i].indent == 0:
        line, end = parser.lines[i], parser.inside(i + 1, 0)
        if construct == "field":
            mark = FIELD.match(line.text)
            value = [line.text[mark.end():], *(parser.lines[k].text for k in range(i + 1, end))]
            found.append((mark[1], " ".join(value).strip(), line.number))
        if construct == "heading":
            end = i + parser.title(i)[2]
            allowed.remove("heading")
        i = end
    return found


TEXT = """\
Wine
----

:Statistics:

======= ====
         Min
======= ====
Alcohol 11.0
Ash     1.36
======= ====

.. dropdown:: Usage

   >>> load_wine()

It is a copy.
"""

if __name__ == "__main__":
    print(f"{'kind':9} level  {'path':17} {'first words':23} cuts")
    for block in blocks(TEXT):
        first_words = " ".join(TEXT[block.start:block.end].split()[:3])
        path = " > ".join(block.section_path)
        print(f"{block.kind:9} {block.level:5}  {path:17} {first_words:23} {len(block.cuts):4}")
