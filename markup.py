"""Beside step 7 — Where are the parts of Markdown and Python? What documents.py is made of, for files that are text.

    lines    [(start, end), ...] of the text, from rst.line_spans; a line is known by its number, from 0
    part     Part(first=0, last=1, kind="heading", ...): a Block counted in lines; `last` is not in it
    run      (first, last) of lines that are not blank and stand together
    path     the names of the headings, or classes and functions, around here: ("Index", "add")
    state    markdown-it's, in the middle of a text; state.tokens what it has found so far
    node     a statement in Python's syntax tree

A format names the parts that it knows, and the lines between them become paragraphs (to_blocks). So nothing is lost,
and plain text is the format that knows no part.

Markdown is read by markdown-it-py (CommonMark and tables), asked for its blocks only and only for the outer two levels,
with a shortcut for plain paragraphs: 1.5 times as fast as the library alone, and the same blocks.

Not here: the words inside a paragraph; headings inside quotes and lists, which begin no section.
"""

import ast
import functools
import itertools
import re
import types
import warnings
from typing import NamedTuple

from rst import Block

# -- Parts ------------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A Block counted in lines: lines[first:last]; cuts are line numbers, header is (first, last)."""

    first: int
    last: int
    kind: str
    level: int = 0
    path: tuple = ()
    cuts: list | tuple = ()
    header: tuple | None = None


def to_blocks(text, lines, parts):
    """Parts as Blocks; lines in no part become paragraphs of the section they stand in."""
    found, line, path = [], 0, ()
    for part in [*parts, Part(len(lines), len(lines), "end")]:
        between = [Part(*run, "paragraph", 0, path) for run in runs(text, lines, line, part.first)]
        for first, last, kind, level, path, cuts, header in [*between, part]:
            while first < last and is_blank(text, lines[first]):
                first += 1
            while first < last and is_blank(text, lines[last - 1]):
                last -= 1
            if first < last:
                cuts = tuple(lines[cut][0] for cut in cuts if first < cut < last)
                header = header and (lines[header[0]][0], lines[header[1] - 1][1])
                found.append(Block(kind, lines[first][0], lines[last - 1][1], level, path, cuts, header))
        line = part.last
    return found


def is_blank(text, line):
    return not text[line[0]:line[1]].strip()


def runs(text, lines, first, last):
    """(first, last) of each run of lines that are not blank."""
    start = None
    for line in range(first, last):
        if is_blank(text, lines[line]):
            if start is not None:
                yield start, line
            start = None
        elif start is None:
            start = line
    if start is not None:
        yield start, last


def under(stack, level, name):
    """The section path of a heading; stack holds (level, name) of those around here, and now of this one too."""
    while stack and stack[-1][0] >= level:                             # subtle: by level, not by the stack's length
        stack.pop()
    stack.append((level, name))
    return tuple(name for _, name in stack)


# -- Markdown ---------------------------------------------------------------------------------------------------------

DEEPEST = 18            # levels of quotes and lists (a list has two) that are looked into; markdown-it would stop at 20
MAY_INTERRUPT = frozenset("`~>*-_+#<=|:0123456789")   # with these a line begins that ends a paragraph or underlines it
FIRST = {"fence": "`~", "blockquote": ">", "hr": "*-_", "list": "*-+0123456789", "reference": "[", "html_block": "<",
         "heading": "#"}
AHEAD = 64              # lines
LONGEST_NAME = 1000     # characters of a heading in which markup is looked for


def markdown_parts(text, lines, top):
    """The parts from line `top` on: the outermost tokens of markdown-it, and cuts at the items of outermost lists."""
    from markdown_it.rules_block import StateBlock

    source = re.sub("\r\n?", "\n", text) if "\r" in text else text      # the same lines
    state = StateBlock(source, _markdown(), {}, [])
    state.push = functools.partial(_push, state)
    state.md.block.tokenize(state, top, state.lineMax)
    parts, stack, path = [], [], ()
    for token, inner in zip(state.tokens, [*state.tokens[1:], None]):
        if token.type == "list_item_open":
            parts[-1].cuts.append(token.map[0])
        if token.level > 0:
            continue
        (first, last), kind = token.map, token.type.removesuffix("_open")
        if kind == "heading":
            name = _plain(inner.content) or " ".join(text[lines[first][0]:lines[last - 1][1]].split())
            path = under(stack, int(token.tag[1]), name)
            parts.append(Part(first, last, "heading", int(token.tag[1]), path))
        elif kind == "table":
            parts.append(Part(first, last, "table", 0, path, range(first + 3, last), (first, first + 2)))
        elif kind in ("fence", "code_block"):
            fence = kind == "fence"                     # its first line and its last are never left alone
            stretches = runs(text, lines, first + fence, last - fence)
            parts.append(Part(first, last, "code", 0, path, [start for start, _ in stretches][1:]))
        else:
            kind = {"bullet_list": "list", "ordered_list": "list", "blockquote": "quote"}.get(kind, "paragraph")
            parts.append(Part(first, last, kind, 0, path, []))
    return parts


@functools.cache
def _markdown():
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    for rule in parser.block.ruler.__rules__:
        asked = _in_steps(rule.fn) if rule.name == "blockquote" else rule.fn
        if rule.name in FIRST:
            parser.block.ruler.at(rule.name, _at(FIRST[rule.name], asked), {"alt": rule.alt})
    parser.block.ruler.before("table", "shortcut", _shortcut)
    return parser


def _at(characters, rule):
    """The rule, asked only about lines that begin with one of these characters."""
    def asked(state, line, end, silent):
        start = state.bMarks[line] + state.tShift[line]
        return state.src[start:start + 1] in characters and rule(state, line, end, silent)

    characters = frozenset(characters)
    return asked


def _in_steps(rule):
    """The rule for quotes, shown a few lines first, and more if the quote takes them all.

    It prepares every line that might continue a quote, even of one that ends at once, and again for the next quote.
    """
    def asked(state, line, end, silent):
        """The rule, on no more lines than it takes."""
        ahead, before = AHEAD, len(state.tokens)
        while True:
            stop = min(line + ahead, end)
            found = rule(state, line, stop, silent)
            if silent or not found or stop == end or state.line < stop - 1:
                return found
            del state.tokens[before:]
            ahead *= 16

    return asked


def _push(state, kind, tag, nesting):
    """In place of StateBlock.push, which makes a costly Token for every cell of a table: keep the two outer levels."""
    level = state.level - (nesting < 0)
    state.level += nesting
    token = types.SimpleNamespace(type=kind, tag=tag, level=level)
    if level < 2 and nesting >= 0:
        state.tokens.append(token)
    return token


def _shortcut(state, line, end, silent):
    """A rule asked before all others. It takes at once a paragraph none of whose lines could begin anything else, where
    the others would look at each line some fifteen times. Too deep inside, it takes any lines."""
    if state.level >= DEEPEST:
        state.line = line + 1
        # subtle: all that belongs here, for what is left over would be looked through once more at each level
        while state.line < end and (state.isEmpty(state.line) or not 0 <= state.sCount[state.line] < state.blkIndent):
            state.line += 1
        return True
    source, starts, indents, ends = state.src, state.bMarks, state.tShift, state.eMarks
    at = source[starts[line] + indents[line]]
    if at == "[" or at in MAY_INTERRUPT or state.is_code_block(line):
        return False
    following = line + 1
    while following < state.lineMax and (at := starts[following] + indents[following]) < ends[following]:
        if source[at] in MAY_INTERRUPT:
            return False
        following += 1
    state.push("paragraph", "p", 0).map = (line, following)
    state.line = following
    return True


def _plain(heading):
    """A heading's words without emphasis, links and code marks.

    >>> _plain("The `k` [parameter](x)")
    'The k parameter'
    """
    if len(heading) <= LONGEST_NAME and re.search(r"[\\`*_\[<&\n]", heading):
        [line] = _markdown().parseInline(heading)
        heading = "".join(" " if token.type.endswith("break") else token.content
                          for token in line.children if token.type != "html_inline")
    return " ".join(heading.split())


# -- Python -----------------------------------------------------------------------------------------------------------

NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def python_parts(text, lines):
    """Docstrings as prose, heads of classes and functions as names, the rest as code; [] if it is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")                            # such as "invalid escape sequence"
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    body, parts, end = tree.body, [], 0
    if docstring := _docstring(body):
        parts, body, end = _prose(text, lines, 0, docstring, ()), body[1:], docstring
    for part in _statements(text, lines, body, end, (), None):
        parts.append(part)
        end = part.last
    return [*parts, Part(end, len(lines), "code")]                    # comments behind the last statement


def _statements(text, lines, nodes, end, path, header, named=True):
    """Yield the parts of statements, the first of which has its line at or after `end`; return where the last ends."""
    for apart, group in itertools.groupby(nodes, lambda node: named and isinstance(node, NAMED)):
        first, starts = end, []
        for node in group:
            if apart:
                end = yield from _definition(text, lines, node, end, path)
                continue
            if _start(node) >= end:                                    # else it stands behind a semicolon
                starts.append(next(runs(text, lines, end, node.end_lineno))[0])     # comments go with what follows
            end = node.end_lineno
        if not apart:
            yield Part(first, end, "code", 0, path, starts, header)
    return end


def _definition(text, lines, node, end, path):
    """Yield the parts of a class or function: comments before it and head, docstring, body; return where it ends."""
    path, body = (*path, node.name), node.body
    line, _ = lines[body[0].lineno - 1]
    colon = _start(body[0])
    if text[line:line + body[0].col_offset].strip():                   # `def f(): return 1`
        colon = node.end_lineno
    while is_blank(text, lines[colon - 1]) or text[slice(*lines[colon - 1])].lstrip().startswith("#"):
        colon -= 1                                                     # back to behind the line of the colon
    yield Part(end, colon, "code", len(path), path)
    end = colon
    if end == node.end_lineno:
        return end
    if docstring := _docstring(body):
        yield from _prose(text, lines, end, docstring, path)
        end, body = docstring, body[1:]
    return (yield from _statements(text, lines, body, end, path, (_start(node), colon), isinstance(node, ast.ClassDef)))


def _start(node):
    """The line of a statement, from 0, or of its first decorator."""
    return min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1


def _docstring(body):
    """Where the docstring ends that these statements begin with, as a line; None without one that has its own lines."""
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        if isinstance(body[0].value.value, str) and not (body[1:] and _start(body[1]) < body[0].end_lineno):
            return body[0].end_lineno


def _prose(text, lines, first, last, path):
    """The parts of a docstring: paragraphs, and as code its examples."""
    parts, words = [], lambda line: text[slice(*lines[line])].strip(" \t\f'\"")
    for start, stop in runs(text, lines, first, last):
        examples = [line for line in range(start, stop) if words(line).startswith(">>>")] or [stop]
        if parts and not any(map(words, range(start, stop))):          # quotes alone go with what is before them
            parts[-1] = parts[-1]._replace(last=stop)
            continue
        if any(map(words, range(start, examples[0]))):                 # or after them
            parts.append(Part(start, examples[0], "paragraph", 0, path))
            start = examples[0]
        if examples[0] < stop:
            parts.append(Part(start, stop, "code", 0, path, examples[1:]))
    return parts


if __name__ == "__main__":
    from rst import line_spans

    page = "# Leave policy\n\nFive days carry over.\n\n| year | days |\n|---|---|\n| 2025 | 10 |\n| 2026 | 5 |\n"
    print("The parts of a page of Markdown, in lines:")
    for first, last, kind, level, path, cuts, header in markdown_parts(page, line_spans(page), 0):
        print(f"{first}:{last}  {kind:10} {' > '.join(path)}  cuts {list(cuts)}  header {header}")
