"""Second half of the lesson on reStructuredText: each construct by hand, what holds for any text, all descriptions."""

import contextlib
import io
import re
import runpy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import documents
import rst

DESCRIPTIONS = {document["id"]: document["text"] for document in documents.load_descriptions()}
SIMPLE = "=== ===\na   b\n=== ===\nc   1\n    2\nd   3\n=== ===\n"
GRID = "+---+---+\n| a | b |\n+===+===+\n| c | 1 |\n|   | 2 |\n+---+---+\n| d | 3 |\n+---+---+\n"


def parts(text):
    """(kind, text) of each block."""
    return [(block.kind, text[block.start:block.end]) for block in rst.blocks(text)]


def kinds(text):
    return " ".join(block.kind for block in rst.blocks(text))


def outline(text):
    """(level, path) of each block, the path as one string."""
    return [(block.level, "/".join(block.section_path)) for block in rst.blocks(text)]


def pieces(text, block):
    """The block's text, cut at every cut."""
    places = [block.start, *block.cuts, block.end]
    return [text[start:end] for start, end in zip(places, places[1:])]


def only(text):
    [block] = rst.blocks(text)
    return block


# -- Lines -------------------------------------------------------------------------------------------------------------


def test_a_line_ends_at_cr_lf_or_both_and_at_nothing_else():
    assert rst.line_spans("a\r\nb\rc\n\nd") == [(0, 1), (3, 4), (5, 6), (7, 7), (8, 9)]
    assert rst.line_spans("a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b\n") == [(0, 10)]
    assert rst.line_spans("") == [] and rst.line_spans("\n") == [(0, 0)] and rst.line_spans("\n\r") == [(0, 0), (1, 1)]


@given(st.text("ab \t\r\n\x0b\x85\u2028"))
def test_line_spans_are_what_bytes_split_into(text):
    assert [text[start:end].encode() for start, end in rst.line_spans(text)] == text.encode().splitlines()


# -- Headings ----------------------------------------------------------------------------------------------------------


def test_levels_are_the_order_of_first_appearance():
    text = "A\n~\n\nB\n=\n\nC\n-\n\nD\n=\n\nx\n\nE\n~\n"
    assert outline(text) == [(1, "A"), (2, "A/B"), (3, "A/B/C"), (2, "A/D"), (0, "A/D"), (1, "E")]


def test_over_and_under_is_another_style_than_under():
    assert outline("===\nA\n===\n\nB\n===\n\n===\nC\n===\n") == [(1, "A"), (2, "A/B"), (1, "C")]
    assert parts("=====\n A b\n=====\n") == [("heading", "=====\n A b\n=====")]


def test_two_sections_of_one_name_are_two():
    assert outline("U\n=\none\n\nU\n=\ntwo") == [(1, "U"), (0, "U"), (1, "U"), (0, "U")]


def test_an_adornment_is_as_long_as_its_title():
    assert kinds("Title\n=====\n") == kinds("Title\n======  \n") == kinds("Ti\n==\n") == "heading"
    assert parts("Title\n====\n\nx") == [("paragraph", "Title\n===="), ("paragraph", "x")]


@pytest.mark.parametrize("text", ["====\nA\n----\n", "===\nA\n\n", "==\nAbc\n==\n", "A\n=-=\n", "a b\n= =\n", " A\n==\n", "A\n ==\n",
                                  "x\nA\n==\n", "----\n\nA\n", "A\n\n--\n", "====", "===\n===\n===\n", "A\n٣٣\n", "A\n__a\n", "ab\n::\n"])
def test_no_heading(text):
    assert "heading" not in kinds(text)


def test_a_transition_is_a_paragraph_and_ends_no_section():
    assert [*zip(kinds(text := "A\n=\n\nx\n\n----\n\ny").split(), outline(text))][2:] == [("paragraph", (0, "A"))] * 2


def test_a_label_above_the_overline_and_a_number_in_the_title():
    assert kinds(".. _a:\n===\nA\n===\n") == "field heading"
    assert outline("1. Intro\n========\n") == [(1, "1. Intro")]


def test_table_borders_are_no_headings():
    assert kinds("a\n\n=== ===\nb   c\n=== ===\n") == "paragraph table" and "heading" not in kinds("a b c\n== ==\n")


# -- Sub-headings ------------------------------------------------------------------------------------------------------


def test_rubrics_and_bold_lines_are_siblings_one_level_below_the_real_heading():
    text = "T\n=\n\n**A b:**\n\nx\n\n.. rubric:: B\n   :class: c\n\ny\n\n**C**:\n\nS\n-\n\nz"
    assert outline(text) == [(1, "T"), (2, "T/A b"), (0, "T/A b"), (2, "T/B"), (0, "T/B"), (2, "T/C"), (2, "T/S"), (0, "T/S")]
    assert parts(text)[3] == ("heading", ".. rubric:: B\n   :class: c")


@pytest.mark.parametrize("text", ["**A** b", "**A**\nb", "a **B**", "**A** **B**", "**A", "****", "**:**", "** A**", "**A**::",
                                  "    **A**", "- **A**", "**A**\n  b"])
def test_a_line_that_is_not_all_bold_is_no_heading(text):
    assert "heading" not in kinds(text)


def test_only_what_is_indented_is_in_a_dropdown():
    text = "T\n=\n\n**A**\n\n.. dropdown:: Two\n  words\n  :open:\n\n    x\n\n  **B**\n\n  - y\n\nz\n\n.. dropdown:: E\n\nq"
    assert parts(text)[2] == ("heading", ".. dropdown:: Two\n  words\n  :open:")
    assert outline(text)[2:] == [(2, "T/Two words"), (0, "T/Two words"), (3, "T/Two words/B"), (0, "T/Two words/B"),
                                 (0, "T"), (2, "T/E"), (0, "T")]


def test_without_a_real_heading_sub_headings_have_level_1():
    assert outline("**A**\n\n:f: x\n\n.. dropdown:: B\n\n  .. dropdown:: C\n\n    x\n") == [
        (1, "A"), (2, "A/f"), (1, "B"), (2, "B/C"), (0, "B/C")]
    assert kinds(".. rubric::\n\n.. dropdown::\n\n   x") == "paragraph paragraph paragraph"            # no name, no heading


# -- Fields and targets ------------------------------------------------------------------------------------------------


def test_a_field_names_its_body():
    text = "T\n=\n\n:A: one\n  two\n\n  three\n:B:\n  - x\n  - y\n:C:\n    four\n\n    :D: five\n\nsix"
    assert parts(text)[1:] == [("field", ":A: one\n  two"), ("paragraph", "  three"), ("field", ":B:"), ("list", "  - x\n  - y"),
                               ("field", ":C:\n    four"), ("field", "    :D: five"), ("paragraph", "six")]
    assert outline(text)[1:] == [(2, "T/A"), (0, "T/A"), (2, "T/B"), (0, "T/B"), (2, "T/C"), (3, "T/C/D"), (0, "T")]


@pytest.mark.parametrize("owned", [SIMPLE, GRID, "- a\n- b\n", ">>> 1\n", ".. csv-table::\n\n   a,b\n", ".. code:: c\n\n   x\n"])
def test_an_empty_field_owns_the_table_list_or_code_below_it(owned):
    assert outline(f":A:\n\n{owned}\nx") == [(1, "A"), (0, "A"), (0, "")]
    assert outline(f":A: b\n\n{owned}")[1] == (0, "")


@pytest.mark.parametrize("other", ["x", "**B**", "B\n=", ".. note:: x", "    x\n\ny"])
def test_an_empty_field_owns_nothing_else(other):
    assert outline(f":A:\n\n{other}")[-1][1] in ("", "B")


def test_a_field_with_a_literal_block():
    assert parts(":A: try::\n\n    x\n\ny")[1:] == [("code", "    x"), ("paragraph", "y")]


@pytest.mark.parametrize("text", [":func:`x` is", ":func:`x`: y", ":a", ": a: b", ":a :b", "::", ":a:b", ":a\\:"])
def test_no_field(text):
    assert kinds(text) == "paragraph"


def test_colons_in_the_name_of_a_field():
    assert outline(":a:b: c") == [(1, "a:b")] and outline(":param int x: c: d") == [(1, "param int x")]


@pytest.mark.parametrize("target", [".. _a:", ".. _a b: https://x.y", ".. __: x", "__ x", ".. |a| image:: b\n   :alt: c"])
def test_targets_and_substitutions_are_fields_that_name_nothing(target):
    text = f"T\n=\n\n{target}\n\nx"
    assert kinds(text) == "heading field paragraph" and outline(text)[1:] == [(0, "T"), (0, "T")]


def test_fields_at_the_top():
    assert rst.fields(":a: 1\n\n.. _b:\n\nT\n=\n:c:\n  2\r\n  3\n\n  4\n\n.. x\n\n:d: 5\n\ne\n\n:f: 6") == [
        ("a", "1", 1), ("c", "2 3 4", 7), ("d", "5", 15)]
    for text in ("", "x\n\n:a: 1", "T\n=\n\n**B**\n\n:a: 1", "T\n=\n\nU\n=\n\n:a: 1", "  :a: 1"):
        assert rst.fields(text) == []
    assert rst.fields("\r\n:Effective date: 2024-01-31\r\n") == [("Effective date", "2024-01-31", 2)]


# -- Tables ------------------------------------------------------------------------------------------------------------


def test_simple_table():
    assert pieces(SIMPLE, only(SIMPLE)) == ["=== ===\na   b\n=== ===\nc   1\n    2\n", "d   3\n=== ==="]
    assert only(SIMPLE).header == (0, len("=== ===\na   b\n=== ==="))


def test_simple_table_without_a_header():
    text = "=== ===\na   b\nc   1\n=== ===\n\nx"
    assert pieces(text, rst.blocks(text)[0]) == ["=== ===\na   b\n", "c   1\n=== ==="]
    assert rst.blocks(text)[0].header is None


def test_simple_table_with_spans_blank_lines_and_an_indent():
    text = "  == == ==\n  A     B\n  ----- --\n  a  b  c\n  == == ==\n  1  2  3\n  ----- --\n     4  5\n\n  6  7  8\n  == == ==\n"
    block = only(text)
    assert text[block.header[1]:][:8] == "\n  1  2 " and block.kind == "table"
    assert pieces(text, block)[1:] == ["     4  5\n\n", "  6  7  8\n  == == =="]


def test_grid_table():
    assert pieces(GRID, only(GRID)) == [GRID[:GRID.index("| d")], "| d | 3 |\n+---+---+"]
    assert only(GRID).header == (0, GRID.index("\n| c"))
    bare = "+--+--+\n|a |b |\n+--+  |\n|c |  |\n+--+--+\n|d |e |\n+--+--+"
    assert pieces(bare, only(bare)) == [bare[:bare.index("|d")], "|d |e |\n+--+--+"] and only(bare).header is None


def test_list_table_and_csv_table():
    text = ".. list-table:: T\n   :header-rows: 1\n\n   * - a\n     - b\n   * - c\n     - d\n\n   * - e\n     - f\n"
    assert pieces(text, only(text))[1:] == ["   * - e\n     - f"] and text[only(text).header[1]:].startswith("\n   * - c")
    text = '.. csv-table::\n   :header: "a", "b"\n\n   c, "d\n   e"\n   f, g\n'
    assert pieces(text, only(text))[1:] == ["   f, g"] and text[:only(text).header[1]].endswith('"b"')
    text = ".. csv-table::\n\n   a, b\n   c, d\n"
    assert pieces(text, only(text))[1:] == ["   c, d"] and only(text).header is None
    assert only(".. list-table::\n   :header-rows: 9\n\n   * - a\n").cuts == ()


def test_tables_that_are_not_closed_lose_nothing():
    assert parts("== ==\na  b\n\nx") == [("table", "== ==\na  b"), ("paragraph", "x")]
    assert parts("== ==\na  b\n== ==\nc  d\n\nx") == [("table", "== ==\na  b\n== =="), ("paragraph", "c  d"), ("paragraph", "x")]
    assert parts("  == ==\n  a  b\n== ==\nx") == [("table", "  == ==\n  a  b"), ("table", "== ==\nx")]
    assert parts("== ==\na  b\n\nT\n=\n\n== ==\nc  d\n== ==")[::2] == [("table", "== ==\na  b"), ("table", "== ==\nc  d\n== ==")]
    assert parts("+--+\n  |a |\n") == [("table", "+--+"), ("quote", "  |a |")]
    assert parts("+--+\n| a\nb\n\nx") == [("table", "+--+\n| a"), ("paragraph", "b"), ("paragraph", "x")]


# -- Code --------------------------------------------------------------------------------------------------------------


def test_literal_blocks():
    assert parts("a::\n\n  x\n\n    y\n z\n\nb") == [("paragraph", "a::"), ("code", "  x\n\n    y\n z"), ("paragraph", "b")]
    assert parts("a\nb ::\n\n> x\n> y\n\nc") == [("paragraph", "a\nb ::"), ("code", "> x\n> y"), ("paragraph", "c")]
    assert parts("a::\n\n  # T\n  ===\n\n  - b") == [("paragraph", "a::"), ("code", "  # T\n  ===\n\n  - b")]
    assert parts("::\n\n  x\n\nb") == [("code", "::\n\n  x"), ("paragraph", "b")]
    assert parts("a::\n\nb") == [("paragraph", "a::"), ("paragraph", "b")]


def test_code_is_cut_at_examples_or_after_blank_lines():
    text = ">>> 1\n1\n>>> for x in y:\n...     z\n\n>>> 2"
    assert [pieces(text, block) for block in rst.blocks(text)] == [[">>> 1\n1\n", ">>> for x in y:\n...     z"], [">>> 2"]]
    text = "a::\n\n  x\n  y\n\n  z\n"
    assert pieces(text, rst.blocks(text)[1]) == ["  x\n  y\n\n", "  z"]


@pytest.mark.parametrize("name", ["code", "code-block", "sourcecode", "parsed-literal", "math", "CODE-BLOCK"])
def test_code_directives_are_one_block(name):
    text = f".. {name}:: x\n   :a: b\n\n   c\n\n   d\ne"
    assert kinds(text) == "code paragraph" and pieces(text, rst.blocks(text)[0])[1:] == ["   d"]


# -- Lists and text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    "- a\n  b\n\n  c\n\n- d\n", "* a\n* d\n  - e\n", "• a\n+ d\n", "1. a\n2. d\n", "(i) a\n\n(ii) d\n", "a) b\n#. d\n", "#. a\n\n   b\n#. d",
    "-a  b\n--long=x, -y <z>  d\n", "/V\n   b\n-d e  f", "a\n  b\n\n  c\nd\n  e\n", ".. [1] a\n   b\n\n.. [#x] d\n", ".. [A1] a\n.. [B2] d"])
def test_neighbouring_items_are_one_list_cut_between_them(text):
    block = only(text)
    assert block.kind == "list" and len(block.cuts) == 1
    assert re.match(r"[-*+(/d]|2\.|#\.|\.\. \[[#B]", text[block.cuts[0]:])


def test_an_enumerator_over_an_unindented_line_starts_a_paragraph():
    assert parts("(1) S. A, B,\nTitle.\n\n(2) C.\n") == [("paragraph", "(1) S. A, B,\nTitle."), ("list", "(2) C.")]
    assert kinds("A. Einstein was\na physicist") == "paragraph" and kinds("1. a\nb") == "paragraph"


@pytest.mark.parametrize("text", ["-a", "*a* b", "**a**b", "mix. a", "1.5 a", "(12 a", "--x y z", "-x", "a\nb", "| a\n  b", "|", ".. a\n\n  b",
                                  "...", "====\n  a", ".. a:: b\n   c", ".. a-b.c:d::", ".. a::b"])
def test_a_paragraph(text):
    assert parts(text) == [("paragraph", text)]


def test_quotes_and_odd_indentation():
    assert parts("a\n\n    b\n    c\n\n  d\n e\nf") == [("paragraph", "a"), ("quote", "    b\n    c"), ("quote", "  d"), ("quote", " e"),
                                                       ("paragraph", "f")]
    assert kinds(".. tip::\n\n\ta\n\n        b\n \tc\n") == "paragraph paragraph paragraph"          # a tab reaches to column 8


def test_directives_with_content():
    text = "T\n=\n\n.. note:: a\n   b\n\n   c\n\n   - d\n\n     e\n\n.. figure:: f\n   :alt: g\n\n   h\n\n.. tip::\n   - i\n\n..\n\n  j"
    assert parts(text)[1:] == [
        ("paragraph", ".. note:: a\n   b"), ("paragraph", "   c"), ("list", "   - d\n\n     e"), ("paragraph", ".. figure:: f\n   :alt: g"),
        ("paragraph", "   h"), ("paragraph", ".. tip::"), ("list", "   - i"), ("paragraph", ".."), ("quote", "  j")]
    assert set(outline(text)[1:]) == {(0, "T")}


# -- What holds for any text -------------------------------------------------------------------------------------------

LINES = ["", "", "", "a", "b c", "Title", "=====", "-----", "~~~", "- a", "* b", "1. a", "(a) b", "#. c", "a::", "::", ">>> 1", "> q", "| v",
         ":f:", ":f: a", ":func:`x`", "== ==", "=== ===", "-- --", "x  y", "+--+--+", "+==+==+", "|a |b |", ".. note::", ".. note:: a",
         ".. code:: c", ".. rubric:: R", ".. dropdown:: D", ".. list-table::", ".. csv-table:: T", ":header-rows: 1", ":header: a", '"a', "* - a",
         "- b", ".. _l:", ".. [1] a", "..", ".. c", "**B**", "**B:**", "-o  d", "--opt", "__ u", "\x0c", "\0", "\x85", "é\u2028x", "🙂", "\t"]
TEXTS = st.lists(st.tuples(st.sampled_from(["", "", "", " ", "  ", "   ", "\t", "      "]), st.sampled_from(LINES),
                           st.sampled_from(["\n", "\n", "\n", "\n\n", "\r\n", "\r", " \n"])).map("".join), max_size=25).map("".join)


def check(text):
    """All that is promised of the blocks of any text."""
    found, end, line_starts = rst.blocks(text), 0, {start for start, _ in rst.line_spans(text)}
    for block in found:
        assert block.start < block.end and not text[end:block.start].strip()
        assert block.start in line_starts and (block.end == len(text) or text[block.end] in "\r\n")
        end = block.end
        assert (block.level > 0) <= (block.kind in ("heading", "field")) and (block.kind == "heading") <= (block.level > 0)
        assert block.level == 0 or block.section_path
        assert all(block.start < cut < block.end and cut in line_starts for cut in block.cuts)
        assert list(block.cuts) == sorted(set(block.cuts)) and all(map(str.strip, pieces(text, block)))
        if block.header:
            start, header_end = block.header
            assert block.kind == "table" and block.start == start < header_end <= block.end
            assert all(cut > header_end and text[header_end:cut].strip() for cut in block.cuts)
    assert not text[end:].strip()
    return found


@given(TEXTS)
@example(GRID[:-10])
@example("".join(map(chr, range(300))))
def test_every_character_lies_in_one_block_of_whole_lines(text):
    assert check(text) == rst.blocks(text)


@given(st.text(max_size=60))
def test_any_text_at_all(text):
    check(text)
    rst.fields(text)


@given(TEXTS)
def test_line_ends_do_not_matter(text):
    unix = text.replace("\r\n", "\n").replace("\r", "\n")

    def shape(text):
        return [(*block[3:5], block.kind, len(block.cuts), bool(block.header)) for block in rst.blocks(text)]

    assert shape(unix) == shape(unix.replace("\n", "\r\n")) == shape(unix.replace("\n", "\r"))


@given(TEXTS, TEXTS)
def test_a_section_does_not_depend_on_the_one_above(above, below):
    alone = parts(f"Last\n====\n\n{below}")
    assert parts(f"{above}\n\nLast\n====\n\n{below}")[-len(alone):] == alone


# -- Known faults ------------------------------------------------------------------------------------------------------


def test_known_fault_crlf():
    assert parts("T\r\n=\r\n\r\na\r\n\r\nb") == [("heading", "T\r\n="), ("paragraph", "a"), ("paragraph", "b")]
    assert outline("T\r\n=\r\n\r\na") == [(1, "T"), (0, "T")]


def test_known_fault_white_space_in_code_is_kept():
    assert parts("a::\n\n\tdef f():\n\t\treturn\u00a01\n")[1] == ("code", "\tdef f():\n\t\treturn\u00a01")


def test_known_fault_a_heading_inside_code_starts_no_section():
    assert outline("T\n=\n\n.. code:: rst\n\n   No\n   ==\n\nx") == [(1, "T"), (0, "T"), (0, "T")]


class Counting(list):
    visits = 0

    def __getitem__(self, key):
        Counting.visits += len(range(*key.indices(len(self)))) if isinstance(key, slice) else 1
        return super().__getitem__(key)


GIANTS = {
    "blank lines": "a\n\n" * 2 + "\n" * 20000 + "b", "headings": "T\n=\n\n" * 2000, "styles": "".join(f"T\n{c}\n\n" for c in "=-~^+*#" * 500),
    "paragraph": "a b\n" * 4000, "list": "- a\n\n" * 3000, "definitions": "a\n  b\n" * 2000, "enumerators": "1. a\nb\n\n" * 2000,
    "simple table": "== ==\n" + "a  b\n" * 4000 + "== ==\n", "simple tables": "== ==\na  b\n== ==\n\n" * 1500, "borders": "== ==\n" * 4000,
    "unclosed tables": "== ==\na  b\n\n" * 2000, "indented borders": "  == ==\n\na\n\n" * 2000, "grid": "+--+\n|a |\n" * 2000, "fields": ":a: b\n" * 4000,
    "empty fields": ":a:\n" * 4000, "owned": ":a:\n\n- b\n\n" * 2000, "comment": "..\n" * 4000, "directives": ".. a::\n" * 4000,
    "quoted": "a::\n\n> b\n\n" * 2000, "colons": "::\n\n" * 3000, "options": "-a\n" * 4000, "examples": ">>> 1\n" * 4000,
    "nested": "".join(" " * n + f".. dropdown:: {n}\n\n" for n in range(300)), "nested lists": "".join(" " * n + "- a\n" for n in range(300)),
    "nested fields": "".join(" " * n + ":a:\n" for n in range(300)), "csv": ".. csv-table::\n\n" + '  "a\n' * 3000,
}


@pytest.mark.parametrize("name", GIANTS)
def test_known_fault_quadratic_work(monkeypatch, name):
    """Every line is looked at a bounded number of times, however the text is made."""
    lines = rst._lines(GIANTS[name])
    monkeypatch.setattr(rst, "_lines", lambda text: Counting(lines))
    Counting.visits = 0
    rst.blocks(GIANTS[name])
    assert Counting.visits < 40 * len(lines) + 40


@pytest.mark.parametrize("line", ["a" * 10**5, "=" * 10**5, "= " * 50000, "=" * 50000 + "x", "+-" * 50000, "- " * 50000, ":" + "a:" * 50000, ":\\" * 50000,
                                  "-a, " * 25000, "--" + "a" * 10**5, "-a <" + "b" * 10**5, ".. " + "a.b:" * 25000, ".. _" + ":" * 10**5,
                                  "**" * 50000, "(" + "1" * 10**5, "i" * 10**5, "`" * 10**5, " " * 10**5 + "a", "\t" * 10**5 + "a", '"' * 10**5])
def test_one_giant_line(line):
    check(line)
    check(f"a\n\n.. csv-table:: {line}\n   {line}\n\n{line}\n\n{line}\nb")


def test_3000_levels_deep():
    deep = "".join(f"{' ' * n}:a:\n" for n in range(0, 3000)) + "x\n"
    assert rst.blocks(deep)[-1].section_path == () and max(block.level for block in rst.blocks(deep)) == 3000


# -- The descriptions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DESCRIPTIONS)
class TestDescription:
    def test_keeps_what_is_promised(self, name):
        check(DESCRIPTIONS[name])

    def test_has_exactly_one_real_heading(self, name):
        [title] = [block for block in rst.blocks(DESCRIPTIONS[name]) if block.level == 1]
        assert title.kind == "heading"
        assert all(block.section_path[0] == title.section_path[0] for block in rst.blocks(DESCRIPTIONS[name])[1:])

    def test_every_table_row_may_be_cut_off_and_no_other_block_has_a_border(self, name):
        text = DESCRIPTIONS[name]
        tables = [block for block in rst.blocks(text) if block.kind == "table"]
        borders = len(re.findall(r"^=+ +=[= ]*$", text, re.MULTILINE))
        assert sum(len(re.findall(r"^=+ +=[= ]*$", text[block.start:block.end], re.MULTILINE)) for block in tables) == borders
        for block in tables:
            lines = text[block.start:block.end].split("\n")
            n_rows = len(lines) - (4 if block.header else 2)           # borders, and the header's line
            assert (block.header is not None) == (lines[2][0] == "=") and len(block.cuts) == n_rows - 1

    def test_every_example_is_in_code(self, name):
        text = DESCRIPTIONS[name]
        code = "\n".join(part for kind, part in parts(text) if kind == "code")
        assert len(re.findall("^ *>>>", code, re.MULTILINE)) == len(re.findall("^ *>>>", text, re.MULTILINE))

    def test_every_rubric_dropdown_and_field_names_a_part(self, name):
        marks = re.findall(r"^(?:\.\. (?:rubric|dropdown):: (.+)|\*\*(.+?):?\*\*|:([A-Z][\w ]+):(?: .*)?)$", DESCRIPTIONS[name], re.MULTILINE)
        named = [block.section_path[-1] for block in rst.blocks(DESCRIPTIONS[name]) if block.level > 1]
        assert named == ["".join(mark) for mark in marks]


def golden(name):
    """kind, level, last name and first words of each block, but for targets."""
    text = DESCRIPTIONS[name]
    return [f"{block.kind} {block.level} {block.section_path[-1]}: {' '.join(text[block.start:block.end].split()[:2])}"
            for block in rst.blocks(text)[1:]]


SHARED = ["heading 2 Data Set Characteristics: **Data Set", "field 3 Number of Instances: :Number of", "field 3 Number of Attributes: :Number of",
          "field 3 Attribute Information: :Attribute Information:"]
CREDITS = ["field 3 Missing Attribute Values: :Missing Attribute", "field 3 Class Distribution: :Class Distribution:",
           "field 3 Creator: :Creator: R.A.", "field 3 Donor: :Donor: Michael", "field 3 Date: :Date: July,"]


def test_golden_iris():
    assert golden("iris") == [
        "heading 1 Iris plants dataset: Iris plants", *SHARED, "list 0 Attribute Information: - sepal",
        "field 3 Summary Statistics: :Summary Statistics:", "table 0 Summary Statistics: ============== ====", *CREDITS,
        "paragraph 0 Data Set Characteristics: The famous", "paragraph 0 Data Set Characteristics: This is",
        "heading 2 References: .. dropdown::", "list 0 References: - Fisher,"]


def test_golden_wine_data():
    assert golden("wine_data") == [
        "heading 1 Wine recognition dataset: Wine recognition", *SHARED, "list 0 Attribute Information: - Alcohol",
        "field 3 Summary Statistics: :Summary Statistics:", "table 0 Summary Statistics: ============================= ====", *CREDITS,
        *(f"paragraph 0 Data Set Characteristics: {words}" for words in
          ["This is", "The data", "Original Owners:", "Forina, M.", "Citation:", "Lichman, M."]),
        "heading 2 References: .. dropdown::", *(f"paragraph 0 References: {words}" for words in ["(1) S.", "The data", "(2) S."])]


def test_lesson():
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(rst.__file__, run_name="__main__")
    assert [line.split("  ")[0] for line in output.getvalue().splitlines()] == [
        "kind", "heading", "field", "table", "heading", "code", "paragraph"]
    assert re.search(r"table +0  Wine > Statistics ======= ==== Min +1\n", output.getvalue())
