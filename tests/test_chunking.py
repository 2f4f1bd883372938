"""Nothing is lost, nothing is cut that should stay whole, and every length is what was asked for."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from pytest import approx

import chunking
import documents
import sentences
from toy import Embedder

BLIND = ("fixed", "recursive", "semantic")                             # what promises its size
TEN = " ".join(f"w{number}" for number in range(10))
GOLDEN = Path(__file__).parent / "golden"


def make(text, doc_type="txt", title="", id="d", **rest):
    return {"id": id, "title": title, "text": text, "doc_type": doc_type, **rest}


def bodies(chunks):
    return [chunk["body"] for chunk in chunks]


def cut(strategy, document, size, overlap=0, length="words", embedder=None):
    if strategy in ("semantic", "late") and embedder is None:
        embedder = Embedder(max_tokens=64)
    return chunking.STRATEGIES[strategy](document, size, overlap, length, embedder)


def length_of(text, length, embedder):
    return {"words": lambda: len(text.split()), "characters": lambda: len(text),
            "tokens": lambda: embedder.count_tokens(text)}[length]()


# -- What holds for every strategy, checked on any document ------------------------------------------------------------


def check(document, chunks, size, overlap, length, embedder):
    """The promises that all strategies give."""
    text = document["text"]
    assert [chunk["position"] for chunk in chunks] == list(range(len(chunks)))
    covered = bytearray(len(text))
    for chunk in chunks:
        assert chunk["body"] == text[chunk["start"]:chunk["end"]] and chunk["body"].strip()
        assert chunk["body"].rstrip() == chunk["body"] and chunk["id"] == f"{document['id']}#{chunk['position']}"
        assert chunk["text"].endswith(chunk["body"])
        covered[chunk["start"]:chunk["end"]] = b"x" * (chunk["end"] - chunk["start"])
    assert not [place for place, letter in enumerate(text) if not letter.isspace() and not covered[place]]
    for one, other in zip(chunks, chunks[1:]):
        assert one["start"] < other["start"] and one["end"] < other["end"]
        repeated = text[other["start"]:one["end"]]
        if length == "tokens":
            assert embedder.count_tokens(repeated) - embedder.count_tokens("") <= overlap or not repeated
        else:
            assert length_of(repeated, length, embedder) <= overlap


def check_size(document, chunks, size, length, embedder):
    """Size holds."""
    for chunk in chunks:
        assert length_of(chunk["text" if length == "tokens" else "body"], length, embedder) <= size


def check_atoms(document, chunks, size, length, embedder):
    """What is longer than size is one atom within the limit; what is beyond the limit is cut and marked."""
    for chunk in chunks:
        if length_of(chunk["text" if length == "tokens" else "body"], length, embedder) > size:
            if embedder is None:
                assert length_of(chunk["body"], length, None) <= 2 * size
            else:
                assert embedder.count_tokens(chunk["text"]) <= embedder.max_tokens
            assert not inner_boundaries(document, chunk["start"], chunk["end"])


def inner_boundaries(document, start, end):
    """Offsets at which the chunk could have been cut."""
    found, previous, blocks = [], None, documents.blocks(document)
    if any(block.start >= start for block in itertools.takewhile(lambda block: block.kind == "heading", reversed(blocks))):
        return []                                                      # headings at the very end go with what is there
    for block in blocks:
        if block.end <= start or block.start >= end:
            continue
        announced = block.kind in ("list", "table", "code") and document["text"][:block.start].rstrip().endswith(":")
        if previous and previous.level == 0 and previous.kind != "field" and not announced:
            found.append(block.start)                                  # two blocks, of which the first names nothing
        previous = block
        if block.kind in ("list", "table"):
            found += block.cuts
        elif block.kind in ("paragraph", "quote"):
            found += [block.start + first for first, _ in sentences.split(document["text"][block.start:block.end])[1:]]
    return [cut for cut in found if start < cut < end]


WORDS = st.sampled_from(["alpha", "beta", "gamma.", "Delta", "e", "12.5", "第一句。", "café", "e\u0301", "👩‍👧", "#", "x" * 30,
                         "e.g.", "So?", "a_b", "-", "*", ">>>", "|", "\xa0b", "  c", "\td", "\u200b", "M\x0bM"])
LINES = st.lists(WORDS, min_size=1, max_size=9).map(" ".join)
MARKDOWN = st.one_of(
    LINES, LINES.map("# {}".format), LINES.map("### {}".format), st.just(""), st.just("   "),
    st.lists(LINES, min_size=1, max_size=4).map(lambda lines: "```\n" + "\n".join(lines) + "\n```"),
    st.lists(LINES, min_size=1, max_size=4).map(lambda lines: "\n".join(f"- {line}" for line in lines)),
    st.lists(LINES, min_size=1, max_size=5).map(
        lambda lines: "| a | b |\n|---|---|\n" + "\n".join(f"| {line.replace('|', '')} | 2 |" for line in lines)),
    LINES.map("> {}".format), st.just("```"), st.just("Title\n====="), LINES.map("    {}".format), st.just("\n\n\n"),
    LINES.map("- {}\n\n  more. And more.".format), LINES.map("{}:".format))
RST = st.one_of(
    LINES, LINES.map(lambda line: f"{line}\n{'=' * (len(line) + 3)}"), LINES.map(lambda line: f"{line}\n{'-' * 300}"),
    LINES.map(".. rubric:: {}".format), LINES.map("**{}:**".format), LINES.map(":Field: {}".format), st.just(":Empty:"),
    st.lists(LINES, min_size=1, max_size=4).map(lambda lines: "\n".join(f"- {line}" for line in lines)),
    LINES.map("Code::\n\n    {}".format), LINES.map(">>> {}\n12".format), st.just(".. _label:"), LINES.map("  {}".format),
    st.lists(st.tuples(st.sampled_from(["a", "bb"]), st.sampled_from(["1", "22"])), min_size=1, max_size=4).map(
        lambda rows: "==  ==\nh   h\n==  ==\n" + "\n".join(f"{a:2}  {b}" for a, b in rows) + "\n==  =="))


@st.composite
def any_document(draw):
    doc_type, block = draw(st.sampled_from([("md", MARKDOWN), ("rst", RST), ("txt", LINES)]))
    glue = draw(st.sampled_from(["\n\n", "\n", "\n\n\n"]))
    text = glue.join(draw(st.lists(block, max_size=10)))
    if draw(st.integers(0, 4)) == 0:
        text = "---\nkey: value\n---\n" + text
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return make(text, doc_type, title=draw(st.sampled_from(["", "Pets", "a very long title of a book, " * 9])))


@st.composite
def any_task(draw):
    length = draw(st.sampled_from(["words", "tokens", "characters"]))
    size = draw(st.integers(3, 40))
    embedder = Embedder(max_tokens=draw(st.sampled_from([40, 64]))) if length == "tokens" or draw(st.booleans()) else None
    return draw(any_document()), size, draw(st.integers(0, size - 1)), length, embedder


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
@given(task=any_task())
def test_nothing_is_lost_and_lengths_hold(strategy, task):
    document, size, overlap, length, embedder = task
    chunks = cut(strategy, document, size, overlap, length, embedder)
    if embedder is None and strategy in ("semantic", "late"):
        embedder = Embedder(max_tokens=64)
    check(document, chunks, size, overlap, length, embedder)
    (check_size if strategy in BLIND else check_atoms)(document, chunks, size, length, embedder)
    again = cut(strategy, document, size, overlap, length, embedder)
    assert [repr(chunk) for chunk in again] == [repr(chunk) for chunk in chunks]


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
@pytest.mark.parametrize("length, size, overlap", [("words", 60, 12), ("tokens", 64, 10), ("characters", 300, 50)])
def test_nothing_is_lost_in_the_descriptions(strategy, length, size, overlap):
    embedder = Embedder(max_tokens=128)
    for document in documents.load_descriptions():
        chunks = cut(strategy, document, size, overlap, length, embedder)
        check(document, chunks, size, overlap, length, embedder)
        (check_size if strategy in BLIND else check_atoms)(document, chunks, size, length, embedder)


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
@pytest.mark.parametrize("text", ["", " ", "  \n", "\n\r\n\t \u2003"])
def test_nothing_gives_no_chunk(strategy, text):
    assert cut(strategy, make(text), 5) == []


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
def test_ids_do_not_depend_on_other_documents(strategy):
    one, other = make("Cats sleep. Dogs bark. " * 9, id="a"), make("Birds fly. " * 9, id="b")
    alone = [chunk["id"] for chunk in cut(strategy, other, 6)]
    cut(strategy, one, 6)
    assert [chunk["id"] for chunk in cut(strategy, other, 6)] == alone and len(set(alone)) == len(alone)


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
@pytest.mark.parametrize("text", ["x" * 100_000, "第一句。" * 25_000, "word " * 20_000, "a. " * 30_000])
def test_one_giant_line(strategy, text):
    document = make(text)
    chunks = cut(strategy, document, 400, 40, "characters", Embedder(max_tokens=2_000))
    check(document, chunks, 400, 40, "characters", None)


def test_strategies_cut_at_different_places():
    [document] = documents.load_descriptions(["twenty_newsgroups"])
    cuts = {strategy: tuple(chunk["start"] for chunk in cut(strategy, document, 80, embedder=Embedder()))
            for strategy in ("fixed", "recursive", "semantic", "structured")}
    assert len(set(cuts.values())) == 4


# -- What a chunk carries ----------------------------------------------------------------------------------------------


def test_text_is_breadcrumb_blank_line_body():
    [chunk] = cut("structured", make("# Leave Policy\n\n## Carry-over\n\nFive days.", "md", title="Leave Policy"), 50)
    assert chunk["section_path"] == ["Leave Policy", "Carry-over"]
    assert chunk["text"] == "Leave Policy > Carry-over\n\n# Leave Policy\n\n## Carry-over\n\nFive days."


def test_another_title_stands_before_the_headings():
    [chunk] = cut("structured", make("# Rules\n\nFive days.", "md", title="Leave Policy"), 50)
    assert chunk["text"].startswith("Leave Policy > Rules\n\n")


def test_no_title_and_no_section_give_no_breadcrumb():
    assert [chunk["text"] for chunk in cut("structured", make("Five days."), 50)] == ["Five days."]


def test_metadata_and_page_come_along():
    document = make("one two\nthree four", pages=[0, 8], acl=["hr"], effective_date="2026-01-01")
    chunks = cut("fixed", document, 2)
    assert [(chunk["page"], chunk["acl"], chunk["effective_date"]) for chunk in chunks] == [
        (1, ["hr"], "2026-01-01"), (2, ["hr"], "2026-01-01")]


def test_tokens_count_specials_and_breadcrumb():
    embedder = Embedder()
    chunks = cut("fixed", make(TEN, title="Pets"), 8, 0, "tokens", embedder)        # 2 specials, 1 for the title: 5 words
    assert bodies(chunks) == ["w0 w1 w2 w3 w4", "w5 w6 w7 w8 w9"]
    assert {embedder.count_tokens(chunk["text"]) for chunk in chunks} == {8}


def test_a_long_breadcrumb_leaves_half_of_the_size():
    chunks = cut("fixed", make(TEN, title="b c d e f g h i j k"), 12, 0, "tokens", Embedder())
    assert [chunk["text"] for chunk in chunks][0] == "b c d e f\n\nw0 w1 w2 w3 w4"      # 2 + 5 + 5


# -- Bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
@pytest.mark.parametrize("size, overlap, length, error, message", [
    (5, 5, "words", ValueError, "overlap must be below size"), (5, 6, "words", ValueError, "not 6 of 5"),
    (0, 0, "words", ValueError, "size must be at least 1"), (5, -1, "words", ValueError, "overlap must be at least 0"),
    (2.5, 0, "words", TypeError, "whole number"), (True, 0, "words", TypeError, "whole number"),
    (5, 0, "lines", ValueError, "'words', 'tokens' or 'characters'"),
    (65, 0, "tokens", ValueError, "at most 64"), (2, 0, "tokens", ValueError, "above 2")])
def test_bad_sizes_are_refused_before_any_work(strategy, size, overlap, length, error, message):
    class NoText(dict):
        def __getitem__(self, key):
            raise AssertionError("the document was touched")
    with pytest.raises(error, match=message):
        cut(strategy, NoText(), size, overlap, length, Embedder(max_tokens=64))


@pytest.mark.parametrize("strategy, length", [("semantic", "words"), ("late", "words"), ("fixed", "tokens")])
def test_what_needs_an_embedder_says_so(strategy, length):
    with pytest.raises(ValueError, match=r"pass embedder=load_embedder\(\)"):
        chunking.STRATEGIES[strategy](make("a b"), 5, 0, length)


# -- 1. fixed ----------------------------------------------------------------------------------------------------------


def test_fixed_windows_are_those_of_the_lesson():
    import rag
    for document in rag.load_documents():
        for size, overlap in [(50, 10), (300, 50), (2000, 50), (7, 6)]:
            ours = chunking.fixed(document, size, overlap)
            assert [(c["start"], c["end"]) for c in ours] == [(c["start"], c["end"]) for c in rag.chunk([document], size, overlap)]


def test_fixed_by_hand():
    assert bodies(cut("fixed", make(TEN), 4, 1)) == ["w0 w1 w2 w3", "w3 w4 w5 w6", "w6 w7 w8 w9"]
    assert bodies(cut("fixed", make(TEN), 5)) == ["w0 w1 w2 w3 w4", "w5 w6 w7 w8 w9"]


def test_words_without_a_piece_are_not_repeated():
    chunks = cut("fixed", make("a b \u200b \u200b c d e"), 4, 0, "tokens", Zero())
    assert all(one["end"] <= other["start"] for one, other in zip(chunks, chunks[1:]))


class Zero(Embedder):
    """An embedder that leaves out what a model's tokenizer leaves out."""

    def count_tokens(self, text, kind="document"):
        return len(text.replace("\u200b", " ").split()) + 2


def test_numpy_integers_are_whole_numbers():
    assert bodies(cut("fixed", make(TEN), np.int64(5))) == bodies(cut("fixed", make(TEN), 5))


@pytest.mark.parametrize("document", [{"text": "a"}, {"id": "d", "text": None}, {"id": "d", "text": b"a"}, {"id": "d"}])
def test_what_is_no_document_is_refused(document):
    with pytest.raises(TypeError, match="a document is a dict"):
        cut("fixed", document, 5)


# -- 2. recursive ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, size, expected", [
    ("a b\n\nc d", 3, ["a b", "c d"]),                                  # a paragraph's end before a space
    ("a\nb c\nd", 5, ["a\nb c", "d"]),                                  # a line's end
    ("So. It is", 7, ["So.", "It is"]),                                 # a sentence's end before a space
    ("abcdefgh", 3, ["abc", "def", "gh"]),                              # no separator at all
    ("ab cd", 5, ["ab cd"]), ("ab cd", 4, ["ab", "cd"]), ("ab  cd", 3, ["ab", "cd"]),
    ("a\r\n\r\nb c\r\nd", 7, ["a", "b c\r\nd"]),
    ("第一句。第二句。第三句。", 4, ["第一句。", "第二句。", "第三句。"])])
def test_recursive_by_hand(text, size, expected):
    assert bodies(cut("recursive", make(text), size, length="characters")) == expected


def test_recursive_overlap_begins_at_a_separator():
    assert bodies(cut("recursive", make("One two. Three four. Five six."), 4, 2)) == [
        "One two. Three four.", "Three four. Five six."]


@pytest.mark.parametrize("text, size, overlap", [("  a\xa0b\xa0c", 2, 1), ("\t" + "\xa0".join(["mot"] * 300), 200, 50)])
def test_no_cut_falls_into_the_indentation(text, size, overlap):
    document = make(text)
    check(document, cut("recursive", document, size, overlap), size, overlap, "words", None)


# -- 3. semantic -------------------------------------------------------------------------------------------------------


class Topics:
    """An embedder that knows two topics: how many of a text's words are of each."""

    name, max_tokens, dimensions = "topics", 256, 2

    def encode(self, texts, kind="document"):
        counts = np.array([[text.count("cat") + 1e-9, text.count("stock") + 1e-9] for text in texts])
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)

    def count_tokens(self, text, kind="document"):
        return len(text.split()) + 2


PETS, MONEY = ["One cat sat.", "A cat ran.", "My cat ate."], ["The stock rose.", "A stock fell.", "No stock moved."]


def semantic(text, size, **settings):
    return bodies(chunking.semantic(make(text), size, 0, "words", Topics(), **settings))


def test_semantic_cuts_where_the_topic_turns():
    # with a neighbour on either side, the vectors turn from (1, 0) by two steps; the greater distance is in the middle
    assert semantic(" ".join(PETS + MONEY), 20, percentile=75) == [" ".join(PETS), " ".join(MONEY)]


def test_semantic_one_topic_and_one_sentence_have_no_turn():
    assert semantic(" ".join(PETS), 20) == [" ".join(PETS)]
    assert semantic("One cat sat.", 20) == ["One cat sat."]


def test_semantic_caps_at_the_last_sentence_that_fits():
    assert semantic(" ".join(PETS), 7) == ["One cat sat. A cat ran.", "My cat ate."]


def test_semantic_has_a_floor():
    assert len(semantic(" ".join(PETS + MONEY), 40, percentile=75)) == 1                   # 9 words are under 40 // 4


def test_semantic_cuts_and_marks_a_sentence_beyond_the_cap():
    chunks = chunking.semantic(make("cat " * 30), 12, 0, "words", Topics())
    assert [len(chunk["body"].split()) for chunk in chunks] == [12, 12, 6] and all(chunk["split"] for chunk in chunks)


# -- 4. structured -----------------------------------------------------------------------------------------------------


def test_blocks_under_one_heading_share_a_chunk_and_headings_part_them():
    text = "# A\n\none\n\n- two\n- three\n\n# B\n\nfour"
    assert bodies(cut("structured", make(text, "md"), 20)) == ["# A\n\none\n\n- two\n- three", "# B\n\nfour"]


def test_a_table_is_cut_between_rows_and_repeats_its_header():
    rows = [f"| r{number} | {number} |" for number in range(4)]
    text = "# T\n\n| name | n |\n|---|---|\n" + "\n".join(rows)
    chunks = cut("structured", make(text, "md"), 22)                    # 2 words a heading, 5 + 1 a header, 5 a row
    assert bodies(chunks) == ["# T\n\n| name | n |\n|---|---|\n" + "\n".join(rows[:2]), "\n".join(rows[2:])]
    assert chunks[1]["text"] == "T\n\n| name | n |\n|---|---|\n" + "\n".join(rows[2:])


def test_a_list_is_cut_between_items_and_a_paragraph_between_sentences():
    assert bodies(cut("structured", make("- a b\n- c d\n- e f", "md"), 6)) == ["- a b\n- c d", "- e f"]
    assert bodies(cut("structured", make("A b c. D e f. G h i.", "md"), 7)) == ["A b c. D e f.", "G h i."]


def test_overlap_is_a_whole_sentence_so_that_a_fact_at_a_boundary_stands_whole():
    text = "Cats sleep a lot. They roll over five days. Dogs bark at night."
    assert bodies(cut("structured", make(text), 10, 5)) == [
        "Cats sleep a lot. They roll over five days.", "They roll over five days. Dogs bark at night."]


def test_a_fence_stays_whole_up_to_the_limit_and_is_cut_at_blank_lines_beyond():
    code = "```\na b\nc d\n\ne f\ng h\n```"
    assert bodies(cut("structured", make(code, "md"), 6)) == [code]     # 10 words: at most 2 x 6
    chunks = cut("structured", make(code, "md"), 4)
    assert bodies(chunks) == ["```\na b\nc d", "e f\ng h\n```"] and all(chunk["split"] for chunk in chunks)


def test_the_limit_is_what_the_embedder_reads():
    code = "```\n" + "a b\n" * 12 + "```"                               # 24 words, as many pieces, and 6 backticks
    assert len(cut("structured", make(code, "md"), 10, 0, "words", Embedder(max_tokens=32))) == 1
    assert len(cut("structured", make(code, "md"), 10, 0, "words", Embedder(max_tokens=31))) > 1


def test_a_fence_is_not_cut_for_the_sake_of_its_caption():
    fence = "```\n" + "w\n" * 36 + "```"                               # 38 words: at most 2 x 20
    assert bodies(cut("structured", make("Output is what the program printed:\n\n" + fence, "md"), 20)) == [
        "Output is what the program printed:", fence]


def test_a_heading_stays_with_the_beginning_of_a_long_item():
    chunks = cut("structured", make("# A\n\n- " + "w " * 9 + "end. " + "V " * 12, "md"), 10)
    assert bodies(chunks)[0].startswith("# A\n\n- w") and all(chunk["split"] for chunk in chunks)


@pytest.mark.parametrize("n_lines", [1, 3, 7])
def test_what_leads_is_not_lost_behind_many_blank_lines(n_lines):
    for size in (6, 8, 10):
        document = make("# A" + "\n" * n_lines + "b" * 13, "md")
        check(document, cut("structured", document, size, 0, "characters"), size, 0, "characters", None)


def test_a_label_before_a_heading_that_fills_the_model_is_not_lost():
    document = make(".. _k:\n\nh h h h h h\n===========\n\nw.", "rst")
    check(document, cut("structured", document, 10, 0, "tokens", Embedder(10)), 10, 0, "tokens", Embedder(10))


def test_every_piece_behind_a_long_row_repeats_the_header():
    text = "| a | b |\n|---|---|\n| " + "x " * 60 + "| 1 |\n| " + "y " * 60 + "| 2 |"
    first, *rest = cut("structured", make(text, "md"), 20)
    assert len(rest) > 6 and all(chunk["text"].startswith("| a | b |\n|---|---|\n") for chunk in rest)
    assert "text" in first and first["text"] == first["body"]


@pytest.mark.parametrize("length", ["words", "tokens"])
def test_a_header_of_more_than_half_the_size_is_not_repeated(length):
    text = f"| {'word ' * 30}| b |\n|---|---|\n" + "".join(f"| {number} | {number} |\n" for number in range(30))
    chunks = cut("structured", make(text, "md"), 60, 0, length, Embedder())
    assert len(chunks) > 2 and all(chunk["text"] == chunk["body"] for chunk in chunks)


def test_a_long_list_item_is_cut_between_its_sentences_and_marked():
    chunks = cut("structured", make("- " + "A b c. " * 6 + "\n- Short.", "md"), 8)          # 19 words: above 2 x 8
    assert [chunk.get("split", False) for chunk in chunks] == [True, True, True]
    assert bodies(chunks)[0] == "- A b c. A b c."


def test_a_wrapped_item_is_not_cut_at_its_lines():
    text = "- A b c d e\n  f g. H i j k l\n  m n. O p q r."
    assert bodies(cut("structured", make(text, "md"), 8)) == ["- A b c d e\n  f g.", "H i j k l\n  m n.", "O p q r."]


def test_a_heading_goes_with_what_follows_and_headings_chain():
    text = "# A\n\n## B\n\n" + "One two three. " * 3
    assert bodies(cut("structured", make(text, "md"), 9))[0] == "# A\n\n## B\n\nOne two three."


def test_a_heading_without_text_goes_with_the_next_section():
    assert bodies(cut("structured", make("# A\n\n# B\n\none two", "md"), 9)) == ["# A\n\n# B\n\none two"]


def test_what_follows_an_indented_section_is_outside_of_it():
    text = "T\n=\n\n.. dropdown:: More\n\n  one\n\ntwo"
    assert [chunk["section_path"] for chunk in cut("structured", make(text, "rst"), 20)] == [["T", "More"], ["T"]]


def test_a_heading_at_the_end_goes_with_what_is_before():
    assert bodies(cut("structured", make("# A\n\none two\n\n# B", "md"), 5)) == ["# A\n\none two\n\n# B"]


def test_a_label_and_front_matter_go_with_the_heading():
    assert len(cut("structured", make("---\ntitle: x\n---\n\n# A\n\none", "md"), 12)) == 1
    [first, second] = cut("structured", make("T\n=\n\none\n\n.. _b:\n\nB\n-\n\ntwo", "rst"), 12)
    assert second["body"].startswith(".. _b:\n\nB") and second["section_path"] == ["T", "B"]


def test_a_colon_goes_with_the_list_that_it_announces():
    text = "Eggs are white. They hold:\n\n- yolk\n- more"
    assert bodies(cut("structured", make(text, "md"), 9)) == [text]
    assert bodies(cut("structured", make("One two three.\n\nThey hold:\n\n- yolk\n- more", "md"), 6)) == [
        "One two three.", "They hold:\n\n- yolk\n- more"]


def test_small_fields_share_a_chunk_and_a_long_one_names_its_own():
    text = "T\n=\n\n:Number: 178\n:Donor: Ann\n:Notes:\n    - a b c d\n    - e f g h\n"
    chunks = cut("structured", make(text, "rst"), 11)
    assert [chunk["section_path"] for chunk in chunks] == [["T"], ["T", "Notes"]]
    assert chunks[0]["body"] == "T\n=\n\n:Number: 178\n:Donor: Ann"


def test_a_function_is_whole_and_its_later_pieces_repeat_its_head():
    text = 'def f(a):\n    """Say it."""\n    b = a\n    c = b\n    return c\n'
    assert bodies(cut("structured", make(text, "py", id="m.py"), 20)) == [text.rstrip()]
    chunks = cut("structured", make(text, "py", id="m.py"), 4)
    assert bodies(chunks)[0].startswith('def f(a):\n    """Say it."""')
    assert chunks[-1]["text"].startswith("f\n\ndef f(a):\n") and chunks[-1]["body"].endswith("return c")


# -- The descriptions: nothing is cut that should stay whole -----------------------------------------------------------


@pytest.mark.parametrize("size", [120, 200, 400])
def test_structured_cuts_no_row_example_item_or_sentence_of_the_descriptions(size):
    for document in documents.load_descriptions():
        text, chunks = document["text"], cut("structured", document, size)
        cuts = {chunk["start"] for chunk in chunks[1:]}
        for block in documents.blocks(document):
            allowed = {block.start, *block.cuts}
            if block.kind in ("paragraph", "quote", "field"):
                allowed |= {block.start + first for first, _ in sentences.split(text[block.start:block.end])}
            inside = {cut for cut in cuts if block.start < cut < block.end}
            assert inside <= allowed and (block.kind not in ("code", "heading") or not inside)
        for chunk in chunks:
            assert not chunk.get("split") and chunk["section_path"][0] == document["title"]
            assert chunk["text"].startswith(" > ".join(chunk["section_path"]) + "\n\n")
            for block in documents.blocks(document):
                if block.kind == "table" and block.header and block.start < chunk["start"] < block.end:
                    assert text[slice(*block.header)] + "\n" + chunk["body"] in chunk["text"]


def test_each_chunk_of_a_description_names_its_section():
    [document] = documents.load_descriptions(["iris"])
    assert [chunk["section_path"][1:] for chunk in cut("structured", document, 130)] == [
        ["Data Set Characteristics"], ["Data Set Characteristics"], ["References"]]


@pytest.mark.parametrize("name", ["iris", "kddcup99", "twenty_newsgroups"])
def test_golden_chunks(name, embedder):
    assert golden_chunks(name, embedder) == json.loads((GOLDEN / f"chunks_{name}.json").read_text(encoding="utf-8"))


def golden_chunks(name, embedder):
    """Where the pipeline's default cuts, and what its chunks begin with. `python tests/test_chunking.py` writes them."""
    [document] = documents.load_descriptions([name])
    return [[chunk["start"], chunk["end"], " > ".join(chunk["section_path"]), " ".join(chunk["body"].split())[:60]]
            for chunk in chunking.structured(document, 200, 0, "tokens", embedder)]


# -- 5. parent_child ---------------------------------------------------------------------------------------------------


def test_children_lie_in_exactly_one_parent_of_at_most_four_times_their_size():
    for document in documents.load_descriptions():
        children = cut("parent_child", document, 40)
        spans = sorted({(child["parent_start"], child["parent_end"], child["parent_id"]) for child in children})
        assert len({id for *_, id in spans}) == len(spans)
        assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:]))
        for child in children:
            assert child["parent_start"] <= child["start"] and child["end"] <= child["parent_end"]
            assert child["parent_body"] == document["text"][child["parent_start"]:child["parent_end"]]
            assert len(child["parent_body"].split()) <= 4 * 40 or child["parent_body"] == child["body"]


def test_parents_come_in_the_order_of_their_best_child():
    [document] = documents.load_descriptions(["wine_data"])
    children = cut("parent_child", document, 20)
    first, last = children[0], children[-1]
    assert [parent["id"] for parent in chunking.parents([last, first, children[1], last])] == [
        last["parent_id"], first["parent_id"]]
    [parent] = chunking.parents([first])
    assert parent["body"] == first["parent_body"] and parent["text"] == f"{document['title']}\n\n{parent['body']}"


def test_a_parent_is_read_at_the_page_of_its_best_child():
    children = cut("parent_child", make("One two.\nThree four.", pages=[0, 9]), 2)
    assert [parent["page"] for parent in chunking.parents(children[::-1])] == [2]


def test_a_span_inside_another_changes_nothing():
    assert chunking.merge_spans([("a", 0, 30), ("a", 5, 10), ("a", 29, 31)]) == [("a", 0, 31)]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 9)), max_size=8), st.integers(0, 3))
def test_merged_spans_cover_the_same_and_lie_apart(triples, gap):
    spans = [(doc_id, start, start + length) for doc_id, start, length in triples]
    merged = chunking.merge_spans(spans, gap)
    assert merged == sorted(merged)
    for one, other in zip(merged, merged[1:]):
        assert one[0] < other[0] or other[1] > one[2] + gap
    for doc_id, start, end in spans:
        assert [each for each in merged if each[0] == doc_id and each[1] <= start and end <= each[2]]
    assert {each[1] for each in merged} <= {start for _, start, _ in spans}


# -- 6. late -----------------------------------------------------------------------------------------------------------


def test_late_equals_ordinary_mean_pooling_for_a_document_of_one_chunk(embedder):
    document = make("Up to five days may roll over. Use them by the end of March.", title="Leave Policy")
    [chunk] = cut("late", document, 50, embedder=embedder)
    [expected] = embedder.encode([document["text"]])
    assert np.abs(chunk["vector"] - expected).max() < 1e-6 and chunk["vector"].dtype == np.float32


def test_late_counts_the_specials_and_gives_unit_vectors():
    [chunk] = cut("late", make("One two."), 50, embedder=Embedder())
    assert chunk["vector"] == approx(Embedder().encode(["One two."])[0], abs=1e-6)
    first, last = cut("late", make("One. Two."), 1, embedder=Embedder())
    vectors, _ = Embedder().token_vectors("One. Two.")                  # [CLS] One . Two . [SEP]
    assert first["vector"] * np.linalg.norm(vectors[:3].mean(axis=0)) == approx(vectors[:3].mean(axis=0), abs=1e-6)
    assert last["vector"] * np.linalg.norm(vectors[3:].mean(axis=0)) == approx(vectors[3:].mean(axis=0), abs=1e-6)


def test_late_sees_the_whole_document(embedder):
    chunks = {title: cut("late", make(f"{title} grew. It rose by 3%.", title="x"), 4, embedder=embedder)[1]
              for title in ("Acme", "Globex")}
    assert bodies(chunks.values()) == ["It rose by 3%."] * 2
    assert np.abs(chunks["Acme"]["vector"] - chunks["Globex"]["vector"]).max() > 0.01


@pytest.mark.parametrize("n_words, max_tokens", [(5, 64), (61, 64), (62, 64), (63, 64), (500, 64), (500, 20)])
def test_late_counts_every_word_piece_once_whatever_the_windows(n_words, max_tokens):
    embedder = Embedder(max_tokens)                                     # knows no context: windows change no vector
    words = [f"w{number}" for number in range(n_words)]
    chunks = cut("late", make(" ".join(words)), 10, embedder=embedder)
    whole, _ = Embedder(10_000).token_vectors(" ".join(words))          # [CLS], one for each word, [SEP]
    for number, chunk in enumerate(chunks):
        first, last = 10 * number + 1, 10 * number + 1 + len(chunk["body"].split())
        mean = whole[first - (number == 0):last + (number == len(chunks) - 1)].mean(axis=0)
        assert chunk["vector"] == approx(mean / np.linalg.norm(mean), abs=1e-6)


def test_late_takes_the_spans_of_another_strategy():
    document = make("One two three. Four five six.")
    chunks = chunking.late(document, 4, 0, "words", Embedder(), strategy=chunking.fixed)
    assert bodies(chunks) == bodies(chunking.fixed(document, 4)) and all("vector" in chunk for chunk in chunks)


# -- What the model does not see ---------------------------------------------------------------------------------------


def test_unseen_shares_by_hand():
    embedder = Embedder(max_tokens=10)                                  # 8 pieces and 2 specials
    chunks = [{"text": TEN}, {"text": "w1 w2"}, {"text": "w1 w2", "context": TEN}]
    assert chunking.unseen_shares(chunks, embedder).tolist() == [2 / 10, 0, 4 / 12]


def test_control_characters_do_not_part_words_for_a_model():
    embedder = Embedder()
    embedder.count_tokens = lambda text: 2 + sum(-(-len(word.replace("\x0b", "")) // 4) for word in re.split(" ", text) if word)
    chunks = cut("fixed", make(" ".join(["MASK\x0bMASKS"] * 60)), 50, 0, "tokens", embedder)
    assert max(embedder.count_tokens(chunk["text"]) for chunk in chunks) <= 50


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
def test_with_tokens_nothing_is_ever_cut_unseen(strategy, embedder):
    counts = Embedder()                                                 # with the model's word pieces, but quick vectors
    counts.count_tokens = embedder.count_tokens
    for document in documents.load_descriptions(["iris", "twenty_newsgroups"]):
        chunks = cut(strategy, document, 250, 50, "tokens", counts)
        assert not chunking.unseen_shares(chunks, embedder).any()


# -- Work grows in proportion to the text ------------------------------------------------------------------------------

SHAPES = {
    "prose": lambda n: make("The cat sat on the mat. " * n, "md"),
    "paragraphs": lambda n: make("The cat sat.\n\n" * n, "rst"),
    "blank lines": lambda n: make("a" + "\n" * 100 * n + "b", "md"),
    "headings": lambda n: make("# T\n\n" * n, "md"), "deeper headings": lambda n: make("T\n=\n\nx\n\nU\n-\n\n" * n, "rst"),
    "a table": lambda n: make("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * n, "md"),
    "a list": lambda n: make("- one two\n" * n, "md"),
    "nested lists": lambda n: make("".join(f"{'  ' * (i % 40)}- x\n" for i in range(n)), "md"),
    "no spaces": lambda n: make("x" * 20 * n), "fields": lambda n: make(":a: b\n" * n, "rst"),
    "one fence": lambda n: make("```\n" + "a b c\n\n" * n + "```", "md"),
}


def calls(function):
    """How many functions, Python's own included, are called while `function` runs: its work, whatever the machine."""
    import sys
    counts = {"call": 0, "c_call": 0}
    previous = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: counts.__setitem__(event, counts.get(event, 0) + 1))
    try:
        function()
    finally:
        sys.setprofile(previous)
    return counts["call"] + counts["c_call"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strategy", ["fixed", "recursive", "semantic", "structured", "late"])
def test_twice_the_text_is_at_most_2_3_times_the_work(strategy, shape):
    embedder = Embedder(max_tokens=64)
    embedder.encode = lambda texts: np.ones((len(texts), 2)) / np.sqrt(2)          # embedding is not what is counted
    one, two = (calls(lambda: cut(strategy, SHAPES[shape](n), 20, 4, "words", embedder)) for n in (150, 300))
    assert two <= 2.3 * one + 100


def test_the_count_would_notice_quadratic_work():
    def quadratic(n):
        for i in range(n):
            for j in range(i):
                len("")
    assert calls(lambda: quadratic(300)) > 3.5 * calls(lambda: quadratic(150))


# -- Known faults of other projects, each as the kind that it is -------------------------------------------------------


def structured(text, size=200, doc_type="md"):
    return cut("structured", make(text, doc_type), size)


@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_fault_hash_in_a_fence_starts_a_section(fence):
    [chunk] = structured(f"# T\n{fence}sh\n# no\n{fence}\nx")
    assert chunk["section_path"] == ["T"]


def test_fault_indented_code_becomes_a_heading():
    [chunk] = structured("# T\n\n    # indented code\n    x = 1")
    assert chunk["section_path"] == ["T"] and chunk["body"].endswith("    # indented code\n    x = 1")


def test_fault_unclosed_fence_drops_what_follows():
    [chunk] = structured("# A\n```\nx\n## B\ny")
    assert chunk["body"] == "# A\n```\nx\n## B\ny" and chunk["section_path"] == ["A"]


@pytest.mark.parametrize("line", ["\treturn 1", "    return\u00a01", "  \t x"])
def test_fault_white_space_in_fences_is_changed(line):
    code = f"```py\ndef f():\n{line}\n```"
    assert bodies(structured(code)) == [code]


def test_fault_paragraph_breaks_become_line_breaks():
    assert bodies(structured("# H\n\na\n\nb")) == ["# H\n\na\n\nb"]


def test_fault_sections_of_the_same_name_are_merged():
    assert bodies(structured("## Usage\none\n## Usage\ntwo")) == ["## Usage\none", "## Usage\ntwo"]


def test_fault_underlined_headings_are_ignored_and_rules_taken_for_them():
    chunks = structured("Title\n=====\nbody\n\nPart\n----\nmore\n\n---\nend")
    assert [chunk["section_path"] for chunk in chunks] == [["Title"], ["Title", "Part"]]
    assert [chunk["section_path"] for chunk in structured("Part\n-\nmore")] == [["Part"]]


def test_fault_carriage_returns_shift_offsets():
    chunks = structured("# T\r\n\r\na\r\n\r\nb")
    assert bodies(chunks) == ["# T\r\n\r\na\r\n\r\nb"] and chunks[0]["section_path"] == ["T"]
    assert bodies(structured("a b c\r\n\r\nd e", 3)) == ["a b c", "d e"]


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
def test_fault_overlap_of_the_size_loops_for_ever(strategy):
    with pytest.raises(ValueError, match="overlap"):
        cut(strategy, make("abcdefghij"), 5, 5, "characters")


def test_fault_the_last_window_never_ends():
    assert bodies(cut("fixed", make("abcdefghijk"), 4, 1, "characters")) == ["abcd", "defg", "ghij", "jk"]


@pytest.mark.parametrize("overlap", range(10))
def test_fault_overlap_at_each_level_makes_text_that_is_not_in_the_source(overlap):
    text = "Ab cd.\n\nEf gh ij kl."
    assert all(body in text for body in bodies(cut("recursive", make(text), 10, overlap, "characters")))


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
def test_fault_overlap_in_tokens_is_used_as_characters(strategy):
    document = make(" ".join(f"word{number}" for number in range(25)))
    starts = [chunk["start"] for chunk in cut(strategy, document, 8, 4, "tokens", Embedder(max_tokens=64))]
    assert min(starts) == 0 and starts == sorted(set(starts))


@pytest.mark.parametrize("strategy", ["recursive", "semantic", "structured"])
def test_fault_no_spaces_make_one_huge_chunk(strategy):
    assert bodies(cut(strategy, make("第一句。第二句。第三句。"), 4, 0, "characters")) == ["第一句。", "第二句。", "第三句。"]


def test_fault_full_stops_of_abbreviations_and_numbers_end_sentences():
    assert bodies(structured("Dr. Lee paid 3.14 USD, e.g. for pie. He left.", 9)) == [
        "Dr. Lee paid 3.14 USD, e.g. for pie.", "He left."]


def test_fault_the_tail_of_a_chunk_is_never_embedded(embedder):
    with pytest.raises(ValueError, match="at most 256"):
        chunking.structured(make("a"), 257, 0, "tokens", embedder)
    [document] = documents.load_descriptions(["breast_cancer"])
    assert max(chunking.unseen_shares(chunking.fixed(document, 300), embedder)) > 0.5


def test_fault_tables_are_cut_in_a_row_and_lose_their_header():
    rows = [f"| name{number} | {number} | {'x' * 9} |" for number in range(40)]
    header = "| a | b | c |\n|---|---|---|"
    chunks = structured("Caption:\n\n" + header + "\n" + "\n".join(rows), 60)
    assert [row for chunk in chunks for row in chunk["body"].split("\n") if row in rows] == rows
    for chunk in chunks[1:]:                                            # no caption, and no blank line before |---|
        assert chunk["text"].startswith(header + "\n| name") and "Caption" not in chunk["text"]


def test_fault_an_opening_fence_stands_alone():
    body = "```\n" + "a b c d\n" * 30 + "```"
    assert all(len(each.split()) > 1 for each in bodies(structured(f"Text.\n\n{body}", 20)))


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
@pytest.mark.parametrize("text, n_chunks", [("One sentence.", 1), ("", 0), ("  \n", 0)])
def test_fault_one_sentence_or_none_crashes(strategy, text, n_chunks):
    assert len(cut(strategy, make(text), 10, 2)) == n_chunks


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
def test_fault_text_without_punctuation_makes_a_chunk_beyond_every_cap(strategy):
    assert max(len(body.split()) for body in bodies(cut(strategy, make("word " * 3000), 100))) <= 100


@pytest.mark.parametrize("strategy", chunking.STRATEGIES)
@pytest.mark.parametrize("special", ["<|endoftext|>", "[CLS]", "[SEP]", "[PAD]", "<s>"])
def test_fault_names_of_special_tokens_in_the_text_raise(strategy, special, embedder):
    text = f"Before {special} after. And so on."
    assert "".join(bodies(cut(strategy, make(text), 60, 0, "tokens", embedder))) == text


def test_fault_equal_passages_of_two_documents_share_a_parent():
    one, other = (cut("parent_child", make("Same text.", id=id), 10)[0] for id in ("a", "b"))
    assert one["parent_body"] == other["parent_body"] and one["parent_id"] != other["parent_id"]


@pytest.mark.parametrize("strategy", ["recursive", "structured"])
@pytest.mark.parametrize("make_text", [lambda n: "a " * 20 * n + "\n\nb", lambda n: "a" + "\n" * 99 * n,
                                       lambda n: "# T\n\n" + "word word.\n\n" * n])
def test_fault_a_far_blank_line_or_many_of_them_take_quadratic_time(strategy, make_text):
    one, two = (calls(lambda: cut(strategy, make(make_text(n), "md"), 50, 5, "characters")) for n in (500, 1000))
    assert two <= 2.3 * one


def test_fault_strategies_that_are_compared_give_the_same_chunks():
    [document] = documents.load_descriptions(["wine_data"])
    fixed, recursive, structured = (bodies(cut(strategy, document, 60)) for strategy in ("fixed", "recursive", "structured"))
    assert fixed != recursive != structured != fixed


if __name__ == "__main__":
    from embedding import load_embedder

    for name in ("iris", "kddcup99", "twenty_newsgroups"):
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in golden_chunks(name, load_embedder()))
        (GOLDEN / f"chunks_{name}.json").write_text(f"[{lines}]\n", encoding="utf-8")
