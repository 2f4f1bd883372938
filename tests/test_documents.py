"""Second half of the lesson on documents: files by hand, metadata, blocks of each format, and what must hold for all."""

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import documents
from documents import Unreadable, blocks, load_file, load_folder

FOURTEEN = ["breast_cancer", "california_housing", "covtype", "diabetes", "digits", "iris", "kddcup99", "lfw", "linnerud",
            "olivetti_faces", "rcv1", "species_distributions", "twenty_newsgroups", "wine_data"]


def write(path, content=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def load(tmp_path, name, content):
    return load_file(write(tmp_path / name, content))


def parts(name, text):
    """[(kind, what stands there)], without white space at its ends."""
    return [(block.kind, text[block.start:block.end].strip()) for block in blocks({"id": name, "text": text})]


def paths(name, text):
    return [(block.kind, block.level, block.section_path) for block in blocks({"id": name, "text": text})]


def pieces(document, block):
    """The block, cut wherever it may be."""
    edges = [block.start, *block.cuts, block.end]
    return [document["text"][start:end].strip() for start, end in zip(edges, edges[1:])]


def only(name, text, kind):
    [block] = [block for block in blocks({"id": name, "text": text}) if block.kind == kind]
    return block


def check_blocks(text, found):
    """Ordered, disjoint, whole lines, not blank at either end; what is left out is white space; cuts and header inside."""
    ends = {0, *(match.end() for match in re.finditer("\r\n|\n|\r", text))}
    stops = {len(text), *(match.start() for match in re.finditer("\r\n|\n|\r", text))}
    end = 0
    for block in found:
        assert end <= block.start < block.end <= len(text) and not text[end:block.start].strip()
        assert block.start in ends and block.end in stops
        assert re.split("\r\n|\n|\r", text[block.start:block.end])[0].strip()
        assert re.split("\r\n|\n|\r", text[block.start:block.end])[-1].strip()
        assert list(block.cuts) == sorted(set(block.cuts) & ends) and all(block.start < cut < block.end for cut in block.cuts)
        assert block.header is None or 0 <= block.header[0] < block.header[1] <= block.end
        assert not block.level or block.section_path[-1]
        end = block.end
    assert not text[end:].strip()


MARKDOWN = st.lists(st.sampled_from([
    "word", "two words", "# h", "#", "===", "---", "- a", "+ b", "* c", "1. x", "2) y", "10. z", "> q", ">", ">> r", "```", "~~~~", "```py",
    "    code", "  in", "\tt", "| a | b |", "|---|---|", "a | b", "--|--", "|-", ":-:", "[a]: b", "[a", "]: c", "'t'", "<div>", "</div>",
    "<!--", "-->", "<b>", "<pre>", "", "", "", " ", "-", "**b**", "`c`", "***", "_ _ _", "=", "- ```", "> ```", "- > x", "  - y", "      z",
    "é", "第一。", "😀", "\u2028", "\x0c", "1986 x", "+1", "$ ls", "-\tz", "> | a | b |", "> |---|---|"]), max_size=14)
ENDINGS = st.sampled_from(["\n", "\n", "\r\n", "\r"])


# -- The descriptions of scikit-learn ----------------------------------------------------------------------------------


def test_all_fourteen_in_the_order_of_their_ids():
    assert [document["id"] for document in documents.load_descriptions()] == FOURTEEN


def test_text_is_the_file_unchanged_and_source_its_path():
    for document in documents.load_descriptions():
        assert document["text"].encode() == Path(document["source"]).read_bytes()
        assert Path(document["source"]).stem == document["id"] and document["doc_type"] == "rst"


def test_titles_are_the_first_headings():
    titles = {document["id"]: document["title"] for document in documents.load_descriptions()}
    assert titles["wine_data"] == "Wine recognition dataset"
    assert titles["digits"] == "Optical recognition of handwritten digits dataset"
    assert all(title and not title.startswith((".", "-", "=")) for title in titles.values())


def test_their_fields_are_none_of_the_known_metadata():
    assert all(document.keys() == {"id", "title", "text", "source", "doc_type"} for document in documents.load_descriptions())


def test_names_pick_and_order():
    assert [document["id"] for document in documents.load_descriptions(["iris", "digits"])] == ["iris", "digits"]
    assert documents.load_descriptions([]) == []


def test_scikit_learn_is_not_imported():
    before = "sklearn" in sys.modules
    documents.load_descriptions()
    assert ("sklearn" in sys.modules) == before


def test_unknown_name_lists_what_there_is():
    with pytest.raises(ValueError, match="'wine'.*wine_data"):
        documents.load_descriptions(["iris", "wine"])


def test_one_string_is_no_list_of_names():
    with pytest.raises(TypeError, match=r"\['iris'\]"):
        documents.load_descriptions("iris")


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(documents, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install scikit-learn"):
        documents.load_descriptions()


# -- A folder ----------------------------------------------------------------------------------------------------------


def test_a_folder_by_hand(tmp_path):
    for name in ("b/Guide.MD", "a.rst", "b/c.htm", "b/run.py", "note.txt", "x.csv", ".hidden.md", ".git/y.md", "b.md"):
        write(tmp_path / name, "# One\n" if name == "b/Guide.MD" else "One")
    loaded = load_folder(tmp_path)
    assert [document["id"] for document in loaded] == ["a.rst", "b.md", "b/Guide.MD", "b/c.htm", "b/run.py", "note.txt"]
    assert [document["doc_type"] for document in loaded] == ["rst", "md", "md", "html", "py", "txt"]
    assert [document["title"] for document in loaded] == ["a", "b", "One", "c", "run.py", "note"]
    assert all(Path(document["source"]).as_posix().endswith("/" + document["id"]) for document in loaded)


def test_the_same_stem_or_name_twice_are_two_ids(tmp_path):
    for name in ("a.md", "a.txt", "x/a.md", "x/a.txt"):
        write(tmp_path / name, "text")
    assert [document["id"] for document in load_folder(tmp_path)] == ["a.md", "a.txt", "x/a.md", "x/a.txt"]


@pytest.mark.parametrize("name, content, reason", [
    ("latin.md", b"caf\xe9", r"latin.md is not UTF-8 text \(byte 3\)"),
    ("utf16.txt", "text".encode("utf-16"), r"utf16.txt is not UTF-8 text \(byte 0\)"),
    ("empty.md", b"", "empty.md has no text"), ("blank.rst", b" \r\n\n", "blank.rst has no text"),
    ("bom.md", b"\xef\xbb\xbf", "bom.md has no text"), ("page.html", b"<script>x</script>", "page.html has no text"),
    ("date.md", b"---\neffective_date: soon\n---\ntext", "date.md, line 2: effective_date must be a date"),
    ("scan.pdf", b"%PDF-1.4 broken", "scan.pdf is a damaged PDF"),
])
def test_a_bad_file_is_reported_by_name_and_the_rest_is_loaded(tmp_path, name, content, reason):
    write(tmp_path / name, content)
    write(tmp_path / "good.md", "text")
    with pytest.warns(Unreadable, match=reason) as caught:
        assert [document["id"] for document in load_folder(tmp_path)] == ["good.md"]
    assert len(caught) == 1
    with pytest.raises(ValueError, match=reason):
        load_file(tmp_path / name)


def test_links_and_pipes_do_not_stop_it(tmp_path):
    write(tmp_path / "a" / "good.md", "text")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self.md").symlink_to(tmp_path / "self.md")
    (tmp_path / "broken.md").symlink_to(tmp_path / "nowhere.md")
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.warns(Unreadable) as caught:
        assert [document["id"] for document in load_folder(tmp_path)] == ["a/good.md"]
    assert [re.search(r"(\w+\.\w+)(?='| is)", str(each.message))[1] for each in caught] == ["broken.md", "pipe.txt", "self.md"]


def test_nothing_to_load_says_what_is_read(tmp_path):
    write(tmp_path / "x.csv", "1,2")
    with pytest.raises(ValueError, match=r"nothing to load.*\.rst \.md"):
        load_folder(tmp_path)
    with pytest.raises(NotADirectoryError):
        load_folder(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        load_folder(tmp_path / "y")


def test_line_ends_are_kept_and_a_byte_order_mark_is_not(tmp_path):
    assert load(tmp_path, "dos.rst", b"\xef\xbb\xbfT\r\n-\r\nbody\r\n")["text"] == "T\r\n-\r\nbody\r\n"


def test_without_a_terminal_there_is_no_progress_bar(tmp_path, capfd):
    write(tmp_path / "a.md", "text")
    load_folder(tmp_path)
    assert capfd.readouterr() == ("", "")


# -- Metadata ----------------------------------------------------------------------------------------------------------

LEAVE = """---
title: "Leave: 2026"   # quoted
effective_date: 2026-01-01
Created-At: 2025-12-01T10:00:00
version: 2.0
acl: [hr, 'the board']
product:
language: en # English
owner: Kim
---
# Leave
"""


def test_front_matter_by_hand(tmp_path):
    document = load(tmp_path, "leave.md", LEAVE)
    assert document | {"source": ""} == {
        "id": "leave.md", "title": "Leave: 2026", "text": LEAVE, "source": "", "doc_type": "md", "language": "en",
        "effective_date": "2026-01-01", "created_at": "2025-12-01T10:00:00", "version": "2.0", "acl": ["hr", "the board"]}
    assert paths("leave.md", LEAVE) == [("field", 0, ()), ("heading", 1, ("Leave",))]


def test_rst_fields_by_hand(tmp_path):
    text = ":Effective date: 2026-01-01\n:ACL: hr, board\n:Date: July, 1988\n:Version: 3\n\nLeave\n=====\n"
    document = load(tmp_path, "leave.rst", text)
    assert (document["effective_date"], document["acl"], document["version"]) == ("2026-01-01", ["hr", "board"], "3")
    assert document["title"] == "Leave" and document["text"] == text and "date" not in document
    assert load(tmp_path, "a.rst", ":acl: [hr, board]\n\nText")["acl"] == ["hr", "board"]


def test_meta_tags_by_hand(tmp_path):
    document = load(tmp_path, "leave.html", '<title>Leave</title><meta name="effective-date" content="2026-01-01"><p>x')
    assert document["title"] == "Leave" and document["effective_date"] == "2026-01-01" and document["text"] == "x"


@pytest.mark.parametrize("acl, groups", [
    ("acl: hr", ["hr"]), ("acl: hr, board", ["hr", "board"]), ("acl: [hr, board]", ["hr", "board"]), ("acl:\n- hr\n  - 'b c'", ["hr", "b c"]),
    ("acl: []", []), ("acl:", []), ('acl: ["a, b", c]  # x', ["a, b", "c"]), ("acl: ''", []),
])
def test_acl_is_a_list_and_without_a_value_nobody(tmp_path, acl, groups):
    assert load(tmp_path, "a.md", f"---\n{acl}\n---\ntext")["acl"] == groups


@pytest.mark.parametrize("line, reason", [
    ("effective_date: 1 May 2026", "line 3: effective_date must be a date like 2026-01-31, not '1 May 2026'"),
    ("created_at: 2026-02-30", "line 3: created_at is no date: '2026-02-30'"), ("updated_at: 20260101", "line 3: updated_at must be"),
    ("effective_date: ٢٠٢٦-٠١-٠١", "line 3"), ("updated_at: 2026-01-01T25:00", "line 3: updated_at is no date"),
    ("acl: [hr", "line 3: acl is not understood"), ("acl: {a: b}", "line 3"), ("title: |\n  x", "line 3: title"),
    ("version: [1, 2]", "line 3: version takes one value"), ("acl:\n- [a]", "line 3"),
    ("version: 1\nx: y\nVersion: 1", "line 5: version is already given in line 3"),
])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_metadata_that_are_not_understood_name_file_and_line(tmp_path, line, reason, ending):
    with pytest.raises(ValueError, match=f"a.md, {reason}"):
        load(tmp_path, "a.md", f"---\nowner: x\n{line}\n---\ntext".replace("\n", ending))


def test_a_malformed_date_in_rst_names_file_and_line(tmp_path):
    with pytest.raises(ValueError, match="a.rst, line 2: effective_date must be"):
        load(tmp_path, "a.rst", ":Version: 1\n:Effective date: soon\n\nText\n")


@pytest.mark.parametrize("text", [
    "---\nversion: 1\ntext", "---\n\nText\n\n---\n", "---\nTitle\n---\nversion: 1", "text\n---\nversion: 1\n---\n",
    " ---\nversion: 1\n---\n", "----\nversion: 1\n---\n", "---\n---\nversion: 1",
])
def test_what_is_no_front_matter(tmp_path, text):
    document = load(tmp_path, "a.md", text)
    assert "version" not in document and "field" not in [kind for kind, _ in parts("a.md", text)]


def test_unknown_names_may_come_twice_and_hold_anything(tmp_path):
    assert load(tmp_path, "a.txt", "---\ntags: {a\ntags: [b\nversion: 1\n---\ntext")["version"] == "1"


def test_dates_with_a_time_are_iso(tmp_path):
    assert load(tmp_path, "a.md", "---\nupdated_at: 2026-01-31 10:30\n---\nx")["updated_at"] == "2026-01-31T10:30"


# -- HTML: the page is read by webpage.py -------------------------------------------------------------------------------


PAGE = """<!DOCTYPE html><html><head><title>Leave &amp; pay</title><style>p {}</style><script>if (a < b) "<h1>"</script></head>
<body><!-- <h1>no</h1> --><h1>Leave <em>policy</em></h1><p>Five   days
carry&nbsp;over<br>at&#32;most.</p><h2>Table</h2>
<table><caption>Days</caption><tr><th>Year<th>Days</tr><tr><td>2025<td>10<tr><td>2026<td><b>5</b>
or<br>6</table><ul><li>one<ol><li>deep<li>deeper</ol><li><p>two</p><p>more</p></ul><pre>
  a

	b &lt; c</pre><blockquote>So <q>be</q> it.</blockquote><img alt="A plot" src="x">"""


def test_golden_html(tmp_path):
    document = load(tmp_path, "leave.html", PAGE)
    assert document["title"] == "Leave & pay" and document["doc_type"] == "html"
    assert document["text"] == """Leave policy

Five days carry over
at most.

Table

Days

Year | Days
--- | ---
2025 | 10
2026 | 5 or 6

- one
  1. deep
  2. deeper
- two
  more

  a

	b < c

So be it.

A plot"""
    found = blocks(document)
    top, table = ("Leave policy",), ("Leave policy", "Table")
    assert [(block.kind, block.level, block.section_path) for block in found] == [
        ("heading", 1, top), ("paragraph", 0, top), ("heading", 2, table), ("paragraph", 0, table), ("table", 0, table),
        ("list", 0, table), ("code", 0, table), ("quote", 0, table), ("paragraph", 0, table)]
    assert pieces(document, found[4]) == ["Year | Days\n--- | ---\n2025 | 10", "2026 | 5 or 6"]
    assert document["text"][slice(*found[4].header)] == "Year | Days\n--- | ---"
    assert pieces(document, found[5]) == ["- one\n  1. deep\n  2. deeper", "- two\n  more"]
    assert pieces(document, found[6]) == ["a", "b < c"]


def test_html_without_its_blocks_is_plain_text():
    assert parts("a.html", "<p>a\n\nb") == [("paragraph", "<p>a"), ("paragraph", "b")]


# -- PDF ---------------------------------------------------------------------------------------------------------------


def pdf(*pages, title=None):
    """A PDF with lines of text on its pages, as small as it can be."""
    contents = [b"BT /F1 12 Tf 72 720 Td 14 TL " + b" ".join(b"(%s) Tj T*" % line.encode() for line in page.split("\n") if line) + b" ET"
                for page in pages]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
               b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for number, content in enumerate(contents):
        objects += [f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
                    "/Resources << /Font << /F1 3 0 R >> >> >>".encode(), b"<< /Length %d >> stream\n%s\nendstream" % (len(content), content)]
    objects.append(f"<< /Title ({title or ''}) >>".encode())
    file, offsets = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return file + b"xref\n0 %d\n0000000000 65535 f \n%strailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1, table, len(objects) + 1, len(objects), len(file))


def test_golden_pdf(tmp_path):
    document = load(tmp_path, "report.pdf", pdf("One.\nTwo.", "Three.", title="The report"))
    assert (document["title"], document["doc_type"]) == ("The report", "pdf")
    assert document["text"] == "One.\nTwo.\nThree." and document["pages"] == [0, 10]
    assert document["text"][document["pages"][1]:] == "Three."
    check_blocks(document["text"], blocks(document))


def test_running_headers_and_footers_are_dropped_from_three_pages_on(tmp_path):
    pages = [f"ACME 2026\nText {word}.\nPage {number}" for number, word in enumerate(["one", "two", "three"], start=9)]
    document = load(tmp_path, "a.pdf", pdf(*pages))
    assert document["text"] == "Text one.\nText two.\nText three." and document["pages"] == [0, 10, 20] and document["title"] == "a"
    assert load(tmp_path, "b.pdf", pdf(*pages[:2]))["text"] == "\n".join(pages[:2])


def test_a_line_on_half_of_the_pages_is_no_header():
    pages = ["H\na", "H\nb", "c", "d"]
    assert documents._without_running_lines(pages) == pages


def test_a_pdf_without_text_is_reported(tmp_path):
    with pytest.raises(ValueError, match="scan.pdf has no text layer"):
        load(tmp_path, "scan.pdf", pdf("", ""))


def test_an_encrypted_pdf_is_reported(tmp_path):
    import pypdf
    writer = pypdf.PdfWriter(clone_from=write(tmp_path / "a.pdf", pdf("Secret.")))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "locked.pdf")
    with pytest.raises(ValueError, match="locked.pdf is encrypted"):
        load_file(tmp_path / "locked.pdf")


def test_without_pypdf_the_report_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pypdf", None)
    write(tmp_path / "a.pdf", pdf("One."))
    write(tmp_path / "b.md", "text")
    with pytest.warns(Unreadable, match=r"a.pdf needs pypdf, the extra `pdf`: .*'\.\[pdf\]'"):
        assert [document["id"] for document in load_folder(tmp_path)] == ["b.md"]


def test_a_page_that_pypdf_stumbles_over_is_damage(tmp_path):
    with pytest.raises(ValueError, match="a.pdf is a damaged PDF"):
        load(tmp_path, "a.pdf", pdf("One.").replace(b"<< /Length", b"<< /Filter /Odd /Length"))


# -- Plain text, and what holds for every format -----------------------------------------------------------------------


def test_golden_text():
    assert parts("a.txt", "One\ntwo\n \t\n\nThree\x0cfour\n") == [("paragraph", "One\ntwo"), ("paragraph", "Three\x0cfour")]


@pytest.mark.parametrize("document, kind", [
    ({"id": "a.md"}, "heading"), ({"id": "a", "doc_type": "markdown"}, "heading"), ({"id": "a.txt", "doc_type": "md"}, "heading"),
    ({"id": "a"}, "paragraph"), ({}, "paragraph"), ({"id": "a.md", "doc_type": "pdf"}, "paragraph"), ({"id": "a.MARKDOWN"}, "heading"),
    ({"id": "a.rst", "doc_type": None}, "paragraph"), ({"id": "a.md", "doc_type": "memo"}, "heading"),
])
def test_the_format_follows_from_the_type_or_the_ending(document, kind):
    assert blocks(document | {"text": "# T"})[0].kind == kind


def test_rst_is_handed_on():
    assert paths("a.rst", "Title\n=====\n\nText") == [("heading", 1, ("Title",)), ("paragraph", 0, ("Title",))]


@settings(max_examples=200)
@given(MARKDOWN, ENDINGS, st.sampled_from(["md", "txt", "py", "rst"]))
def test_every_character_lies_in_one_block(lines, ending, doc_type):
    text = ending.join(lines)
    check_blocks(text, blocks({"id": "a", "text": text, "doc_type": doc_type}))


@given(st.text(st.sampled_from("a#-=`>|:[]<>1.* \t\n\r\x0b\x0c\x85\u2028é😀"), max_size=40), st.sampled_from(["md", "txt", "py", "rst"]))
def test_every_character_lies_in_one_block_of_any_text(text, doc_type):
    check_blocks(text, blocks({"id": "a", "text": text, "doc_type": doc_type}))


@pytest.mark.parametrize("doc_type", ["md", "txt", "py"])
@pytest.mark.parametrize("text", ["\n" * 100_000, "a " * 50_000, "word\n" * 20_000, "# h\n" * 5_000, "- a\n" * 5_000,
                                  "|a|b|\n|-|-|\n" + "|1|2|\n" * 5_000, "[" * 100_000, "`" * 100_000])
def test_large_and_odd_texts_are_covered_too(text, doc_type):
    check_blocks(text, blocks({"id": "a", "text": text, "doc_type": doc_type}))


# -- A restriction is never lost without a word ------------------------------------------------------------------------


@pytest.mark.parametrize("name, text", [
    ("a.md", "---\ntitle: x\nacl:[hr]\n---\nText"), ("a.md", "---\nauthor: x\n\"acl\": [hr]\n---\nText"),
    ("a.md", "---\nauthor: x\n  acl: [hr]\n---\nText"), ("a.md", "---\nacl: [hr]\ntext"), ("a.md", "---\nAuthor: x\nacl: [hr]\n\ntext"),
    ("a.md", "---\nacl: 'hr' 'it'\n---\nText")])
def test_a_mistyped_restriction_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"line \d: acl is not understood"):
        documents.load_file(tmp_path / name)


@pytest.mark.parametrize("name, text, acl", [
    ("a.html", "---\nacl: hr\n---\n<p>Text", ["hr"]), ("a.rst", "---\nacl: hr\n---\n\nText", ["hr"]),
    ("a.py", "---\nacl: hr\n---\n", ["hr"]), ("a.rst", "T\n=\n\n:acl:\n  - hr\n  - it\n\nText", ["hr", "it"]),
    ("a.txt", "---\nacl : hr\n---\nText", ["hr"]), ("a.md", "---\nacl: null\n---\nText", []), ("a.md", "---\nacl: ~\n---\nText", []),
    ("a.rst", ":acl: hr, it-staff\n\nText", ["hr", "it-staff"])])
def test_a_restriction_is_read_in_every_format(tmp_path, name, text, acl):
    (tmp_path / name).write_text(text)
    assert documents.load_file(tmp_path / name)["acl"] == acl


def test_a_rule_at_the_top_restricts_nothing(tmp_path):
    (tmp_path / "a.md").write_text("---\nNote: read this.\n\nThe key is acl: hr.\nacl: see above\n")
    assert "acl" not in documents.load_file(tmp_path / "a.md")


def test_a_name_that_is_not_utf8_is_reported(tmp_path):
    import os
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.txt"), "w") as file:
        file.write("text")
    with pytest.raises(ValueError, match="not UTF-8: rename it"):
        [found] = os.listdir(tmp_path)
        documents.load_file(tmp_path / found)


def test_blank_lines_in_front_of_front_matter_do_not_make_a_secret_public(tmp_path):
    (tmp_path / "pay.md").write_text("\n \n---\nacl: [hr]\n---\n# Pay\n\nGrade 4 earns 40,000.\n")
    [pay] = documents.load_folder(tmp_path)
    assert pay["acl"] == ["hr"] and pay["title"] == "Pay"
