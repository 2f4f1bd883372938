"""Parts of Markdown and Python: the known faults, goldens, markdown-it as it comes as oracle, any text is covered."""

import re
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import documents
import markup
from documents import blocks
from test_documents import ENDINGS, MARKDOWN, check_blocks, only, parts, paths, pieces

# -- Markdown: the known faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fence", ["```", "~~~", "`````", "~~~~"])
def test_a_hash_inside_a_fence_starts_no_section(fence):
    text = f"# T\n{fence}sh\n# no\n{fence}\nx"
    assert parts("a.md", text) == [("heading", "# T"), ("code", f"{fence}sh\n# no\n{fence}"), ("paragraph", "x")]
    assert {path for _, _, path in paths("a.md", text)} == {("T",)}


def test_four_spaces_are_code_and_no_heading():
    assert parts("a.md", "# T\n\n    # indented code\n    x = 1") == [("heading", "# T"), ("code", "# indented code\n    x = 1")]


def test_an_unclosed_fence_reaches_to_the_end():
    assert parts("a.md", "# A\n```\nx\n## B\ny") == [("heading", "# A"), ("code", "```\nx\n## B\ny")]


def test_a_fence_keeps_tabs_and_spaces():
    text = "```py\ndef f():\n\treturn\u00a01\n```"
    block = only("a.md", text, "code")
    assert text[block.start:block.end] == text


def test_a_paragraph_break_stays():
    assert parts("a.md", "# H\n\na\n\nb") == [("heading", "# H"), ("paragraph", "a"), ("paragraph", "b")]


def test_two_sections_of_one_name_are_two():
    assert parts("a.md", "## Usage\none\n## Usage\ntwo") == [
        ("heading", "## Usage"), ("paragraph", "one"), ("heading", "## Usage"), ("paragraph", "two")]
    assert {path for _, _, path in paths("a.md", "## Usage\none\n## Usage\ntwo")} == {("Usage",)}


def test_underlined_headings():
    assert paths("a.md", "Title\n=====\nbody\n\nPart\n----\nmore") == [
        ("heading", 1, ("Title",)), ("paragraph", 0, ("Title",)), ("heading", 2, ("Title", "Part")), ("paragraph", 0, ("Title", "Part"))]


def test_a_lone_dash_underlines_and_a_rule_after_a_blank_line_does_not():
    assert paths("a.md", "text\n-") == [("heading", 2, ("text",))]
    assert paths("a.md", "text\n\n---\n\nmore") == [("paragraph", 0, ())] * 3


@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_crlf_makes_two_paragraphs_with_offsets_into_the_text(name):
    assert [(block.start, block.end) for block in blocks({"id": name, "text": "a\r\n\r\nb"})] == [(0, 1), (5, 6)]
    assert [(block.start, block.end) for block in blocks({"id": name, "text": "a\rb\r\rc"})] == [(0, 3), (5, 6)]


def test_no_carriage_return_in_a_section_path():
    assert paths("a.md", "# T\r\n\r\nx\r\n") == [("heading", 1, ("T",)), ("paragraph", 0, ("T",))]


# -- Markdown: the rest ------------------------------------------------------------------------------------------------

GUIDE = """# The `k` [parameter](x) ##

Text about *k*,
in two lines.

- one
  - deeper

  more
- two

| k | recall |
|---|--------|
| 1 | 0.5    |
| 3 | 0.7    |
| 5 | 0.8    |

> quoted
lazily

[x]: http://example.org
[y]: http://example.org

### Deep ###
## Less deep
"""


def test_golden_markdown():
    found = blocks({"id": "guide.md", "text": GUIDE})
    k = "The k parameter"
    assert [(block.kind, block.level, block.section_path) for block in found] == [
        ("heading", 1, (k,)), ("paragraph", 0, (k,)), ("list", 0, (k,)), ("table", 0, (k,)), ("quote", 0, (k,)),
        ("paragraph", 0, (k,)), ("heading", 3, (k, "Deep")), ("heading", 2, (k, "Less deep"))]
    assert pieces({"text": GUIDE}, found[2]) == ["- one\n  - deeper\n\n  more", "- two"]
    assert pieces({"text": GUIDE}, found[3])[1:] == ["| 3 | 0.7    |", "| 5 | 0.8    |"]
    assert GUIDE[slice(*found[3].header)] == "| k | recall |\n|---|--------|"
    assert GUIDE[found[4].start:found[4].end] == "> quoted\nlazily"


def test_code_is_cut_after_blank_lines_but_no_fence_line_stands_alone():
    text = "```py\n\na = 1\n\n\nb = 2\n\n```"
    assert pieces({"text": text}, only("a.md", text, "code")) == ["```py\n\na = 1", "b = 2\n\n```"]
    text = "    a\n\n    b\n"
    assert pieces({"text": text}, only("a.md", text, "code")) == ["a", "b"]


@pytest.mark.parametrize("heading, name", [
    ("# Plain", "Plain"), ("# __init__ *a* **b** ~~c~~", "init a b ~~c~~"), ("# `__init__` and max_iter", "__init__ and max_iter"),
    ("# ![logo](x.png) Name", "logo Name"), ("# A \\# b &amp; c", "A # b & c"), ("# C#", "C#"), ("# a <b>c</b>", "a c"),
    ("##", "##"), ("# ![](x.png)", "# ![](x.png)"), ("\u2028\n===", "==="), ("a\n*b*\n===", "a b"), ("# " + "*x* " * 300, ("*x* " * 300).strip()),
])
def test_names_of_headings(heading, name):
    assert paths("a.md", heading)[0][2] == (name,)


def test_headings_in_quotes_and_lists_are_no_sections():
    assert [kind for kind, _ in parts("a.md", "> # no\n\n- # no\n\ntext")] == ["quote", "list", "paragraph"]


def test_html_in_markdown_is_a_paragraph():
    assert parts("a.md", "<div>\n# no\n</div>\n\n# yes") == [("paragraph", "<div>\n# no\n</div>"), ("heading", "# yes")]


@pytest.mark.parametrize("deep", [">" * 10_000 + " a", "- " * 10_000 + "a", "> - " * 5_000 + "a"])
def test_deep_nesting_loses_nothing_and_swallows_nothing(deep):
    kinds = parts("a.md", f"{deep}\n\n# After\n\ntext\n")
    assert kinds[0][1] == deep and kinds[1:] == [("heading", "# After"), ("paragraph", "text")]


@pytest.mark.parametrize("lines", ["> <pre>\nb\n", "> a|b\n> -|-\nc\n", ">" * 20 + " a\nb\n", "- " * 12 + "a\nb\n", "> - ```\nb\n"])
def test_the_lines_that_are_looked_at_grow_with_the_text(lines, monkeypatch):
    from markdown_it.rules_block import StateBlock
    looks, is_code_block = [], StateBlock.is_code_block
    monkeypatch.setattr(StateBlock, "is_code_block", lambda state, line: looks.append(line) or is_code_block(state, line))
    counts = []
    for repeats in (200, 400):
        looks.clear()
        blocks({"id": "a.md", "text": lines * repeats})
        counts.append(len(looks))
    assert counts[1] < 2.3 * counts[0]


def outline_by_markdown_it(text):
    """(kind, first line, last line) of each token of the outermost level, from the library as it comes."""
    lines = re.split("\r\n|\r|\n", text)
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.level == 0 and token.map:
            first, last = token.map
            while last > first and not lines[last - 1].strip():
                last -= 1
            found.append((token.type.removesuffix("_open"), first, last))
    return found


KINDS = {"bullet_list": "list", "ordered_list": "list", "blockquote": "quote", "fence": "code", "code_block": "code",
         "html_block": "paragraph", "hr": "paragraph"}
@settings(max_examples=300)
@given(MARKDOWN, st.sampled_from([1, 2, 64]))
@example(["- a", "> b", "c", "==="], 64)
@example(["> - a", "b", "", "c"], 64)
@example(["[a]: b", "==="], 64)
@example(["[a]: b", "    code"], 64)
def test_blocks_are_those_of_markdown_it(lines, ahead):
    text = "\n".join(lines)
    if documents._front_matter(text)[0] or "\x0c" in lines or "\u2028" in lines:
        return                                       # blank to us, a paragraph to CommonMark
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    with mock.patch.object(markup, "AHEAD", ahead):
        found = blocks({"id": "a.md", "text": text})
    ours = {(block.kind, starts.index(block.start), text.count("\n", 0, block.end) + 1) for block in found}
    theirs = [(KINDS.get(kind, kind), first, last) for kind, first, last in outline_by_markdown_it(text)]
    assert not [each for each in theirs if each[1] < each[2] and each not in ours]
    covered = {line for _, first, last in theirs for line in range(first, last)}
    rest = {(kind, first, last) for kind, first, last in ours if (kind, first, last) not in theirs}       # definitions
    assert all(kind == "paragraph" and not covered & set(range(first, last)) for kind, first, last in rest)


# -- Python ------------------------------------------------------------------------------------------------------------

MODULE = '''"""Ranks.

Ties go first.

>>> rank()
1
>>> rank()
2
"""
import os

# the limit
K = 3; N = 4
M = 5


@cache
def rank(a,
         b="é"):  # two
    """Rank.

    Slowly.
    """
    total = a

    # now b
    def inner(): return b
    return total


class Index:
    size = 0

    def add(self): pass

    class Inner:
        async def go(self):
            "Go."
            await self

# the end
'''


def test_golden_python():
    document = {"id": "ranks.py", "text": MODULE}
    found = blocks(document)
    assert [(block.kind, block.level, block.section_path) for block in found] == [
        ("paragraph", 0, ()), ("paragraph", 0, ()), ("code", 0, ()), ("code", 0, ()),
        ("code", 1, ("rank",)), ("paragraph", 0, ("rank",)), ("paragraph", 0, ("rank",)), ("code", 0, ("rank",)),
        ("code", 1, ("Index",)), ("code", 0, ("Index",)), ("code", 2, ("Index", "add")), ("code", 2, ("Index", "Inner")),
        ("code", 3, ("Index", "Inner", "go")), ("paragraph", 0, ("Index", "Inner", "go")), ("code", 0, ("Index", "Inner", "go")),
        ("code", 0, ())]
    assert pieces(document, found[2]) == [">>> rank()\n1", '>>> rank()\n2\n"""']
    assert pieces(document, found[3]) == ["import os", "# the limit\nK = 3; N = 4", "M = 5"]
    assert pieces(document, found[7]) == ["total = a", "# now b\n    def inner(): return b", "return total"]
    head = '@cache\ndef rank(a,\n         b="é"):  # two'
    assert MODULE[found[4].start:found[4].end] == head and MODULE[slice(*found[7].header)] == head
    assert MODULE[slice(*found[9].header)] == "class Index:" and MODULE[found[-1].start:] == "# the end\n"


@pytest.mark.parametrize("code", ["def f(): return 1", "class A: pass", "def f(a,\n      b): return a", "class A: x = 1; y = 2",
                                  "@d\ndef f(): pass", 'def f(): "doc"', "def f(): return [\n1,\n2]", "def é(): return 'é'"])
def test_a_definition_on_one_line_is_one_block(code):
    [block] = blocks({"id": "a.py", "text": code})
    assert (block.kind, block.level, block.end) == ("code", 1, len(code))


@pytest.mark.parametrize("head", ["def f():", "def f(a=(1,\n      2)):  # a: b", "def f(\n    a,  # note\n    # more\n):", "@d(\n  1)\n@e\nclass é(B, x='é'):"])
@pytest.mark.parametrize("between", ["", "\n", "    # why\n", "\n# why\n\n"])
def test_the_head_ends_at_its_colon(head, between):
    text = f"{head}\n{between}    x = 1\n"
    first, second = blocks({"id": "a.py", "text": text})
    assert text[first.start:first.end] == head == text[slice(*second.header)]


@pytest.mark.parametrize("docstring, kinds", [
    ('"""One."""', ["paragraph"]), ('"""\nOne.\n\nTwo.\n\n"""', ["paragraph", "paragraph"]), ('""">>> 1\n1\n"""', ["code"]),
    ('"""\n>>> 1\n1\n\nText\n"""', ["code", "paragraph"]), ('"""\n\nOne.\n"""', ["paragraph", "paragraph"]),
    ('"""One:\n>>> 1\n1\n\n>>> 2\n2\n"""', ["paragraph", "code", "code"]), ("'One.'; x = 1", ["code"]),
])
def test_docstrings_are_prose_and_examples(docstring, kinds):
    assert [kind for kind, _ in parts("a.py", docstring)] == kinds


@pytest.mark.parametrize("text", ["def f(:\n\nx = 1", "x = '\0'\n\ny", "(" * 300 + "\n\nx", "-" * 100_000 + "1\n\nx",
                                  "a" + ".b" * 100_000 + "\n\nx =", "if x:\n" * 5000 + "\n\ny"])
def test_what_python_cannot_read_is_plain_text(text):
    assert [kind for kind, _ in parts("a.py", text)] == ["paragraph", "paragraph"]


def test_no_quotes_alone_in_front_of_an_example():
    text = '"""\n>>> 1\n1\n>>> 2\n2\n"""'
    assert pieces({"text": text}, only("a.py", text, "code")) == ['"""\n>>> 1\n1', '>>> 2\n2\n"""']


def test_python_warnings_stay_inside(recwarn):
    assert parts("a.py", "x = '\\d'") == [("code", "x = '\\d'")] and not recwarn.list


def test_form_feeds_and_line_ends_do_not_shift_the_lines():
    for ending in ("\n", "\r\n", "\r"):
        text = "import a\n\x0c\nclass B:\n    x = '\x1c\u2028'\n    def f(self):\n        return 1\n".replace("\n", ending)
        assert [block[4] for block in blocks({"id": "a.py", "text": text})] == [(), ("B",), ("B",), ("B", "f"), ("B", "f")]
        check_blocks(text, blocks({"id": "a.py", "text": text}))


STATEMENT = st.recursive(
    st.sampled_from(["x = 1", "'''a\n\n>>> b'''", "x = 1; y = 2", "# note", "", "def f(): pass", "x = [\n1,\n]", "é = 'é'", "'doc'", "pass"]),
    lambda inner: st.tuples(st.sampled_from(["def f():", "class A:  # c", "if x:", "@d\nclass B(C,\n D):", "async def g(a=\n1):", "for a in b:"]),
                            st.lists(inner, min_size=1, max_size=4)).map(
        lambda pair: pair[0] + "\n" + "\n".join("    " + line for each in [*pair[1], "pass"] for line in each.split("\n"))),
    max_leaves=12)


@settings(max_examples=150)
@given(st.lists(STATEMENT, max_size=5), ENDINGS)
def test_any_python_has_blocks_that_cover_its_text(statements, ending):
    text = "\n".join(statements).replace("\n", ending)
    found = blocks({"id": "a.py", "text": text})
    check_blocks(text, found)
    assert not text.strip() or {block.kind for block in found} & {"code"} or "'''" in text or "'doc'" in text


def test_this_projects_own_modules():
    for path in sorted(Path(documents.__file__).parent.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        found = blocks({"id": path.name, "text": text})
        check_blocks(text, found)
        names = re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)
        assert [block.section_path[0] for block in found if block.level == 1] == names
