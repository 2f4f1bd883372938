"""Beside step 7 — What does a web page say? HTML as text and blocks, for documents.py.

    text       what a reader sees: entities decoded, white space collapsed, a blank line between blocks
    rows       lines of a list ("- item", "1. item"), a table ("2026 | 5", one a row) or a quote
    container  ul, ol, table or blockquote; the outermost becomes one block
    break      where a paragraph ends, at the start or end of such an element; words are what was read since the last
    part       markup.Part: a block in lines of the text

    <h1>Leave</h1><table><tr><th>year<th>days<tr><td>2026<td>5</table>     becomes a heading and a table, whose first
                                                                           two lines are its header:
    Leave

    year | days
    --- | ---
    2026 | 5

Nothing raises: ends without a start are ignored, what was never closed ends with what is around it. The standard
library's parser takes quadratic time for input made to hurt, such as many comments that never close; the methods that
do are replaced.

Not here: layout by CSS, scripts that write text, frames.
"""

import re
from collections import Counter
from html import unescape
from html.parser import HTMLParser

import rst
from markup import Part, to_blocks, under

DROPPED = {"script", "style", "template", "noscript"}
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
TABLE_PARTS = {"caption", "td", "th", "tr", "thead", "tbody", "tfoot"}
CONTAINERS = {"ul": "list", "ol": "list", "table": "table", "blockquote": "quote"}
BREAKS = HEADINGS | CONTAINERS.keys() | TABLE_PARTS | set("""address article aside body button center dd details dialog
    div dl dt fieldset figcaption figure footer form head header hr html legend li main menu nav option p pre section
    select summary textarea title""".split())


class Page(HTMLParser):
    """A page of HTML as text, blocks, title and fields. Wrong nesting is no error.

    The outermost list, table or quote becomes one block, whose rows are lines. A heading ends what is open around it.
    """

    def __init__(self, html):
        super().__init__()
        self.lines, self.parts = [], []                       # of the text
        self.stack, self.path = [], ()                        # the headings around here
        self.title, self.fields, self.dropped = "", [], 0     # dropped: how many DROPPED elements are open
        self.words, self.reading = [], None                   # read since the last break; in "title", "pre" or "h1"
        self._new_container()
        self.rawdata = re.sub("\r\n?", "\n", html.replace("\0", "\ufffd"))       # "\0" is our line break <br>
        self.last_comment_end, whole = self.rawdata.rfind("-->"), self.rawdata.rfind(">") + 1
        # subtle: behind the last ">" nothing is a tag, but the parser would look for its end at each "<"
        self.rawdata, rest = self.rawdata[:whole], self.rawdata[whole:]
        self.close()
        self.handle_data(unescape(rest))
        self._end_container()
        self.text, self.title = "\n".join(self.lines), " ".join(self.title.split())
        self.blocks = to_blocks(self.text, rst.line_spans(self.text), self.parts)

    # What the parser calls

    def parse_comment(self, i, report=1):
        """Where the comment at i ends; of one that is never closed only the mark is dropped."""
        return i + 4 if self.last_comment_end < i + 2 else self.rawdata.find("-->", i + 2) + 3

    def parse_html_declaration(self, i):
        """Where <!DOCTYPE ...> or <![if ...]> ends. The library's own method raises for some."""
        return self.rawdata.find(">", i) + 1

    parse_pi = parse_html_declaration

    def handle_data(self, data):
        """Keep text; white space is collapsed later."""
        if self.reading == "title":
            self.title += data
        elif not self.dropped:
            self.words.append(data)

    def handle_starttag(self, tag, attrs):
        """Begin an element."""
        attrs = dict(attrs)
        if tag in DROPPED:
            self.dropped += 1
        elif tag == "meta":
            self.fields.append((attrs.get("name") or "", attrs.get("content") or "", self.getpos()[0]))
        elif tag in ("br", "img"):
            self.handle_data(attrs.get("alt") or "" if tag == "img" else "\0")
        elif tag in BREAKS and not self.dropped and (tag in HEADINGS or self.reading != "pre"):
            if tag in HEADINGS:
                self._end_container()
            if self.tables:
                return self._in_table(tag, True)
            self._end_paragraph()
            if tag in HEADINGS or tag == "pre" or tag == "title" and not self.title:
                self.reading = tag
            elif tag == "li":
                self._begin_item()
            elif tag in CONTAINERS:
                self._open(tag)

    def handle_endtag(self, tag):
        """End an element, or ignore an end without a start."""
        if tag in DROPPED:
            self.dropped = max(0, self.dropped - 1)
        elif tag in BREAKS and not self.dropped and (tag == "pre" or self.reading != "pre"):
            if self.tables:
                return self._in_table(tag, False)
            self._end_paragraph()
            if self.is_open[tag]:
                self._close(tag)

    # What it comes to

    def _emit(self, kind, rows, level=0, cuts=(), header=None):
        self.lines += [""] if self.lines else []
        first = len(self.lines)
        self.lines += rows
        header = (first, first + header) if header else None
        self.parts.append(Part(first, len(self.lines), kind, level, self.path, [first + cut for cut in cuts], header))

    def _take(self):
        lines = [" ".join(line.split()) for line in "".join(self.words).split("\0")]
        self.words = []
        return [line for line in lines if line]

    def _end_paragraph(self):
        reading, self.reading = self.reading, None
        if reading == "pre":
            rows, self.words = "".join(self.words).replace("\0", "\n").removeprefix("\n").split("\n"), []
            while rows and not rows[-1].strip():
                rows.pop()
            if self.open:
                self.rows += rows
            elif rows:
                cuts = [row for row in range(1, len(rows)) if rows[row].strip() and not rows[row - 1].strip()]
                self._emit("code", rows, 0, cuts)
        elif rows := self._take():
            if reading in HEADINGS:
                self.path = under(self.stack, int(reading[1]), " ".join(rows))
                self._emit("heading", [" ".join(rows)], int(reading[1]))
            elif self.open:
                self._add_rows(rows)
            else:
                self._emit("paragraph", rows)

    # Lists, tables and quotes: self.open holds those around here, self.rows the lines of the outermost so far

    def _new_container(self):
        self.open, self.is_open, self.tables = [], Counter(), 0       # [tag, number of items]; tables: how many nested
        self.kind, self.rows, self.cuts, self.header = "", [], [], 0  # header: its number of rows
        self.marker = ""                                              # of the item whose first line comes next
        self.cells, self.cell = [], None                              # (tag, text) of this row; the tag of this cell

    def _end_container(self):
        self._end_row() if self.tables else self._end_paragraph()
        if self.rows:
            self._emit(self.kind, self.rows, 0, sorted(set(self.cuts)), self.header)
        self._new_container()

    def _open(self, tag):
        self.kind = self.kind or CONTAINERS[tag]
        self.open.append([tag, 0])
        self.is_open[tag] += 1
        self.tables = int(tag == "table")

    def _close(self, tag):
        while self.is_open[tag]:                                      # what is open inside it ends too
            closed, _ = self.open.pop()
            self.is_open[closed] -= 1
            if closed == tag:
                break
        if not self.open:
            self._end_container()

    def _begin_item(self):
        if not self.open or self.open[-1][0] == "blockquote":
            self._open("ul")
        self.open[-1][1] += 1
        self.marker = f"{self.open[-1][1]}. " if self.open[-1][0] == "ol" else "- "
        if len(self.open) == 1:
            self.cuts.append(len(self.rows))

    def _add_rows(self, rows):
        indent = "  " * min(len(self.open) - 1, 20)
        hanging = "" if self.open[-1][0] == "blockquote" else "  "
        self.rows += [indent + (hanging if number else self.marker or hanging) + row for number, row in enumerate(rows)]
        self.marker = ""

    def _in_table(self, tag, begins):
        self.tables += (1 if begins else -1) * (tag == "table")
        if self.tables == 0:
            self._end_row()
            self._close("table")
        elif self.tables > 1 or tag not in TABLE_PARTS:
            self.words.append(" ")                                    # a cell is one line, whatever it holds
        elif tag == "caption" and not begins and not self.rows and len(self.open) == 1:
            if caption := self._take():
                self._emit("paragraph", caption)
        elif tag in ("td", "th"):
            self._end_cell()
            self.cell = tag if begins else None
        else:
            self._end_row()

    def _end_cell(self):
        text = " ".join(self._take())
        if self.cell or text:
            self.cells.append((self.cell, text))
        self.cell = None

    def _end_row(self):
        self._end_cell()
        if any(text for _, text in self.cells):
            if len(self.rows) > self.header:
                self.cuts.append(len(self.rows))
            is_header = not self.rows and all(cell == "th" or not text for cell, text in self.cells)
            self.rows.append(" | ".join(text for _, text in self.cells))
            if is_header:
                self.rows.append(" | ".join("---" for _ in self.cells))
                self.header = 2
        self.cells = []


if __name__ == "__main__":
    page = Page("<h1>Leave</h1><p>Five days&nbsp;carry over.<table><tr><th>year<th>days<tr><td>2026<td>5</table>")
    print(page.text, *page.blocks, sep="\n\n")
