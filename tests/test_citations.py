"""Second half of the lesson on citations: the forms that models write and what each means, the same in any pieces."""

import re
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import citations
import prompt

N = 8                                                # how many sources there are, unless a test says otherwise


class Source(NamedTuple):
    """A source of a prompt, as far as citations need it."""

    places: list


def parse(text, n):
    return citations.parse(text, n)


def repair(text, n):
    return citations.repair(text, n)


def place(doc_id, body="Some text.", start=100, **more):
    return {"doc_id": doc_id, "start": start, "end": start + len(body), "body": body, **more}


def readings(text, n=N):
    """What a text cites, in brief: a tuple of numbers, "out 9", or "malformed"."""
    return [each.numbers if each.status == "valid" else
            " ".join(["out", *map(str, each.numbers)]) if each.status == "out_of_range" else each.status
            for each in parse(text, n)]


def numbers(text, n=N):
    return [number for each in parse(text, n) if each.status == "valid" for number in each.numbers]


# -- The forms ---------------------------------------------------------------------------------------------------------

READ = {                                             # text -> what it cites
    "A [S1].": [(1,)], "A [1].": [(1,)], "A [s1].": [(1,)], "A [ 1 ].": [(1,)], "A [S 1].": [(1,)], "A [01].": [(1,)],
    "A [1, 2].": [(1, 2)], "A [1,2].": [(1, 2)], "A [1; 2].": [(1, 2)], "A [1 2].": [(1, 2)], "A [1 and 2].": [(1, 2)],
    "A [S1, S2].": [(1, 2)], "A [S1; S3].": [(1, 3)], "A [S1 & S3].": [(1, 3)], "A [S2, S1, S2].": [(2, 1)],
    "A [S1, S2 and S3].": [(1, 2, 3)], "A [1][2].": [(1,), (2,)], "A [1] [2].": [(1,), (2,)],
    "A [1-3].": [(1, 2, 3)], "A [1–3].": [(1, 2, 3)], "A [1 — 3].": [(1, 2, 3)], "A [S1-S3].": [(1, 2, 3)],
    "A [S1-3].": [(1, 2, 3)], "A [1-2, 5].": [(1, 2, 5)], "A [3-3].": [(3,)],
    "A [[1]].": [(1,)], "A [[S1]].": [(1,)], "A [[1, 2]].": [(1, 2)], "A [[1], [2]].": [(1,), (2,)], "A [[[1]].": [(1,)],
    "A 【1】.": [(1,)], "A 【1†source】.": [(1,)], "A 【1†L3-L5】.": [(1,)], "A 【1】【2】.": [(1,), (2,)], "A ［1］.": [(1,)],
    "A ［１］.": [(1,)], "A [١].": [(1,)], "A【1】.": [(1,)], "第一[1]。": [(1,)], "A [1】.": [(1,)], "A 【【1】】.": [(1,)],
    "A [Source 1].": [(1,)], "A [source: S1].": [(1,)], "A [Sources 1, 2].": [(1, 2)], "A [SOURCE 1].": [(1,)],
    "A [Source 1, Source 3].": [(1, 3)], "A [doc_1].": [(1,)], "A [Document 2].": [(2,)], "A [ref 2].": [(2,)],
    "A [cite:1].": [(1,)], "A [^1].": [(1,)], "A[^1].": [(1,)], "A [^1][^2].": [(1,), (2,)],
    "A (S1).": [(1,)], "A (S1, S2).": [(1, 2)], "(S1) A.": [(1,)], "(A [1]).": [(1,)], "A ([1], [2]).": [(1,), (2,)],
    "red[S1].": [(1,)], "5%[1].": [(1,)], "in 2020[1].": [(1,)], "**red**[1].": [(1,)], "`red`[1].": [(1,)],
    "“red”[1].": [(1,)], "red.[1]": [(1,)], "[1] A.": [(1,)], "- [1]": [(1,)], "| A | [1] |": [(1,)], "> A [1]": [(1,)],
    "[1]: A is red.": [(1,)], "A [1] (2020).": [(1,)], "A [1](see there).": [(1,)], "A [1] (x.html).": [(1,)],
    "<sup>[1]</sup>": [(1,)], "A\\\\[1].": [(1,)], "A ` B [1].": [(1,)], "A `` B ` C [1].": [(1,)],
    "A `x\nB` [1].": [(1,)], "x < y [1], z > y": [(1,)], "see https://x.org/a [1]": [(1,)],
    "see https://x.org/a[S1]": [(1,)], "~~A~~ [1].": [(1,)], "Fig. 3 [1].": [(1,)], "Fig. [S1].": [(1,)], "A [": [],
    # no source has that number
    "A [0].": ["out 0"], "A [9].": ["out 9"], "A [S9].": ["out 9"], "A [999].": ["out 999"], "A [1, 9].": ["out 1 9"],
    "A [7-9].": ["out 7 9"], "A [1-999999999].": ["out 1 999999999"], "A [S2024].": ["out 2024"],
    "A [1, 2024].": ["out 1 2024"], "A 【9†source】.": ["out 9"], "A [1899].": ["out 1899"], "A [12345].": ["out 12345"],
    "A [123456789012345678].": ["out 123456789012345678"], "A [0-2].": ["out 0 2"], "A [9][1].": ["out 9", (1,)],
    # meant as a citation, but to be guessed at
    "A [3-1].": ["malformed"], "A [S3-S1].": ["malformed"], "A [1,].": ["malformed"], "A [1,,2].": ["malformed"],
    "A [S1, p. 3].": ["malformed"], "A [S1: Leave policy].": ["malformed"], "A [Source: Leave policy].": ["malformed"],
    "A [S1-].": ["malformed"], "A [S1a].": ["malformed"],
    # none
    "": [], "A.": [], "A [2024].": [], "A [2019-2024].": [], "A [2024-01-05].": [], "A [2024, 2025].": [], "A [sic].": [],
    "A [May 2024].": [], "A [Lee 2024].": [], "arr[1]": [], "arr[1] is": [], "a_1[0][1]": [], "f(arr[1, 2])": [],
    "x[[1]]": [], "a[b[1]]": [], "A [1.5].": [], "A [-1].": [], "A [1:2].": [], "A [10%].": [], "A [1st].": [], "A [].": [],
    "A (1).": [], "f(S1)": [], "Galaxy (S9)": [], "A ¹.": [], "A {1}.": [], "A <1>.": [], "A &#91;1&#93;.": [], "A [S1": [],
    "A [S1)": [], "A [S1,\nS2]": [], "A [source].": [], "A [S].": [], "A [1234567890123456789].": [],
    "`[1]`": [], "`arr [1]`": [], "`` ` [1] ``": [], "A `[1]` B `[2]`.": [], "`a\\` [1]": [(1,)],
    "```\n[1]\n```": [], "```py\nx[1]\n```\nDone [2]": [(2,)], "~~~\n[1]\n~~~\n[2]": [(2,)], "````\n```\n[1]\n````\n[2]": [(2,)],
    "```\n[1]\n~~~\n[1]\n```\n[2]": [(2,)], "```\n[1]": [], "- ```\n  [1]\n  ```\n  [2]": [(2,)], "  ```\n[1]\n  ```\n[2]": [(2,)],
    "> ```\n> [1]\n> ```\n> [2]": [(2,)], "> ```\n> [1]\nDone [2]": [(2,)], "```\n    ```\n[1]\n```\n[2]": [(2,)],
    "``` a ``` [1]": [(1,)], "```\n[1]\n``` x\n[1]\n`````\n[2]": [(2,)], "```\r\n[1]\r\n```\r\n[2]": [(2,)], "``\n[1]\n``": [(1,)],
    "[1](http://x.org)": [], "[1](x.html)": [], "[1](<a b>)": [], '[1](x "a b")': [], "[1](x(y)z)": [], "[[1]](http://x.org)": [],
    "![1](x.png)": [], "[A](x.html#[1])": [], "【1】(x.html)": [], "[1]()": [], "[the policy][1]": [], "[1]: http://x.org": [],
    "  [1]: <x> 'A'": [], "[1]: policy/leave.md": [], "[^1]: The leave policy.": [], "> [1]: http://x.org": [],
    "https://x.org/a[1]": [], "http://x.org/?q=[1]&r=[2]": [], "www.x.org/[1]": [], "<https://x.org/[1]>": [],
    '<a name="[1]">': [], "\\[1\\]": [], "\\[1]": [], "\\`[1]\\`": [(1,)], "- [ ] A": [], "- [x] A": [], "- [x] A [1]": [(1,)],
    "Fig. [1]": [], "Figure [1]": [], "see fig. [1]": [], "Table [2]": [], "Eq. [3]": [], "[Figure 1]": [], "[Fig. 2]": [],
    "[Table 1]": [], "[[Leave policy]]": [], "[Step 1]": [], "]1[": [],
}


def test_every_form_has_its_reading():
    assert len(READ) >= 60
    assert {text: readings(text) for text in READ} == READ


def test_every_form_is_read_alike_beside_others():
    for text, expected in READ.items():
        if "\n" not in text:
            assert readings(f"B [S2].\n{text}\nC 【3】.") == [(2,), *expected, (3,)], text


def test_spans_by_hand():
    assert parse("A [1, 2]. 【9】 [S3-S1]", 8) == [(2, 8, (1, 2), "valid"), (10, 13, (9,), "out_of_range"),
                                               (14, 21, (), "malformed")]
    assert [each[:2] for each in parse("A [[1]]. [[[2]] [3]] (S4).", 8)] == [(2, 7), (10, 15), (16, 19), (21, 25)]
    assert [each[:2] for each in parse("ab [1]\r\n\n```\n[1]\n```\n [2]", 8)] == [(3, 6), (22, 25)]


def test_the_example_of_the_lesson():
    text = "A is red [1, 2]. B is blue. [9]"
    assert parse(text, 2) == [(9, 15, (1, 2), "valid"), (28, 31, (9,), "out_of_range")]
    assert citations.by_sentence(text, 2) == [(0, 16, parse(text, 2)[:1]), (17, 27, parse(text, 2)[1:])]
    assert repair(text, 2) == "A is red [S1][S2]. B is blue. [9]"


def test_repair_by_hand():
    for text, expected in [("A [1, 1, 3-4].", "A [S1][S3][S4]."), ("A【1†source】.", "A[S1]."), ("A [[1], [2]].", "A [[S1], [S2]]."),
                           ("A [[[1]] (S2).", "A [[S1] [S2]."), ("A [Source 2].", "A [S2]."), ("A [S2].", "A [S2]."),
                           ("A [1][9] [1, 9].", "A [S1][9] [1, 9]."), ("A [S3-S1] [S1, p. 3].", "A [S3-S1] [S1, p. 3]."),
                           ("arr[1] [2024] \\[1\\] [1](x)", "arr[1] [2024] \\[1\\] [1](x)"), ("A [1\r\n[2]", "A [1\r\n[S2]")]:
        assert repair(text, N) == expected


def test_the_number_of_sources_decides():
    assert [parse("[2024]", n) for n in (0, 2023)] == [[], []]
    assert parse("[2024]", 2024) == [(0, 6, (2024,), "valid")]
    assert parse("[9999] [1900]", 8) == [] and readings("[1899] [10000]") == ["out 1899", "out 10000"]
    assert parse("[1]", 0) == [(0, 3, (1,), "out_of_range")]


def test_of_a_long_line_between_brackets_nothing_is_read():
    assert readings("[" + ", ".join(["1"] * 130) + "]") == [(1,)]               # 388 characters
    assert readings("[" + ", ".join(["1"] * 140) + "]") == []


def test_bad_input_is_named():
    for bad in (None, b"[1]", 1):
        with pytest.raises(TypeError, match="the text must be a string"):
            parse(bad, 1)
    with pytest.raises(ValueError, match="n_sources"):
        parse("[1]", -1)
    with pytest.raises(TypeError, match="n_sources"):
        parse("[1]", "8")


# -- Known faults ------------------------------------------------------------------------------------------------------


def test_numbers_count_from_1():
    packed = [Source([place("a")]), Source([place("b")])]
    assert [each.places[0].doc_id for each in citations.resolve("x [1] y [2]", packed)] == ["a", "b"]
    assert readings("x [0] y [3]", 2) == ["out 0", "out 3"] and citations.resolve("x [0] y [3]", packed) == []


def test_sources_without_a_name_of_their_own_keep_their_numbers():
    packed = [Source([place("same", body, source=None)]) for body in ("one", "two", "three")]
    assert [(each.number, each.places[0].end) for each in citations.resolve("a [1] b [2] c [3]", packed)] == [
        (1, 103), (2, 103), (3, 105)]


def test_a_number_out_of_range_grounds_nothing():
    assert readings("x [999]", 1) == ["out 999"]
    assert citations.uncited("It is red [999].", 1) == [(0, 16)]
    assert citations.resolve("It is red [999].", [Source([place("a")])]) == []


def test_one_mapping_for_text_and_list():
    packed = [Source([place(doc_id, start=start)]) for doc_id in "abc" for start in (0, 50)]          # 6 of 3 documents
    [reference] = citations.resolve("It is red [6].", packed)
    assert (reference.number, reference.places[0].doc_id, reference.places[0].start) == (6, "c", 50)


def test_code_is_no_citation_and_stays_as_it_is():
    text = "```py\nx[1]\ny = [1, 2]\n```\nDone [2], not `z [3]`."
    assert numbers(text) == [2]
    assert repair(text, N) == "```py\nx[1]\ny = [1, 2]\n```\nDone [S2], not `z [3]`."


def test_a_citation_after_the_full_stop_belongs_to_the_sentence_before():
    text = "A is red. [1] B is blue. [2]"
    assert cited_by(text) == {"A is red.": [1], "B is blue.": [2]}
    assert citations.uncited(text, 2) == []


def test_a_cut_stream_cites_nothing_that_was_not_finished():
    stream = citations.Stream(12)
    assert [*stream.feed("A is red [S2]. B is blue [S1"), *stream.close()] == [(9, 13, (2,), "valid")]
    assert repair("B is blue [S1", 12) == "B is blue [S1"              # it may have been going to be [S12]


def test_citing_everything_is_read_as_citing_everything():
    packed = [Source([place(str(number))]) for number in range(1, 9)]
    for text in ("All of it is so [S1-S8].", "All of it is so [1][2][3][4][5][6][7][8]."):
        assert [each.number for each in citations.resolve(text, packed)] == list(range(1, 9))


def test_hardly_citing_is_seen():
    text = "A is red [1]. B is blue. C is green."
    assert [text[start:end] for start, end in citations.uncited(text, 1)] == ["B is blue.", "C is green."]


# -- In pieces ---------------------------------------------------------------------------------------------------------


def in_pieces(text, cuts, n=N):
    stream, found = citations.Stream(n), []
    for start, end in zip([0, *cuts], [*cuts, len(text)]):
        found += stream.feed(text[start:end])
    return found + stream.close()


def test_every_form_is_read_alike_at_every_cut():
    for text in READ:
        whole = parse(text, N)
        assert all(in_pieces(text, [cut]) == whole for cut in range(len(text) + 1)), text
        assert in_pieces(text, range(1, len(text))) == whole, text


def test_every_form_is_read_alike_at_every_cut_when_a_word_follows():
    for text in READ:
        longer = f"B [1] {text} [2] C"
        assert all(in_pieces(longer, [cut]) == parse(longer, N) for cut in range(len(longer) + 1)), text
        assert in_pieces(longer, range(1, len(longer))) == parse(longer, N), text


def test_a_citation_comes_with_the_word_after_it():
    stream = citations.Stream(2)
    assert [len(stream.feed(piece)) for piece in ("A is ", "red [", "1", "]", ". ", "B `", "x [2] ", "` [2", "] ")] == [
        0, 0, 0, 0, 1, 0, 0, 0, 1]
    assert stream.close() == []


def test_a_long_line_in_letters_is_looked_at_seldom(monkeypatch):
    looks = []
    scan = citations.Stream._scan
    monkeypatch.setattr(citations.Stream, "_scan", lambda self, line, whole: looks.append(len(line) - self.at) or scan(self, line, whole))
    for text in ("`` [1] " * 3000, ("`` " + "` [1] " * 300 + "\n") * 5, "[1] " * 3000):
        looks.clear()
        assert in_pieces(text, range(1, len(text))) == parse(text, N)
        assert sum(looks) < 10 * len(text)                             # not len(text)**2 / 3


SOUP = st.lists(st.sampled_from(["[", "]", "[[", "]]", "[1]", "[S2]", "[1, 2]", "[9]", "【1】", "［", "】", "†", "(", ")", "(S1)", "](x)",
                                 "`", "``", "```", "~~~", "\n", "\n\n", " ", "  ", "\\", "<", "<a ", ">", "http://x", "www.", ":", ": /x",
                                 "-", ",", ";", "1", "2", "S", "s3", "Source ", "^", "x", "arr", "Fig. ", "2024", "A is red.", " B", "é",
                                 "> ", "- ", "!", "\r", "\u2028", "“", '"']), max_size=25).map("".join)


@given(SOUP, st.data())
def test_anything_is_read_alike_at_any_cuts(text, data):
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    assert in_pieces(text, sorted(cuts)) == parse(text, N)
    assert in_pieces(text, range(1, len(text))) == parse(text, N)


# -- Properties --------------------------------------------------------------------------------------------------------


@given(SOUP, st.integers(0, 3))
def test_spans_lie_in_the_text_in_order_and_apart(text, n):
    end = 0
    for citation in parse(text, n):
        assert end <= citation.start < citation.end <= len(text)
        assert "\n" not in text[citation.start:citation.end]
        assert len(set(citation.numbers)) == len(citation.numbers)
        assert citation.status != "valid" or citation.numbers and all(1 <= each <= n for each in citation.numbers)
        end = citation.end


@given(SOUP)
@example("[【1】]")
@example("[[[1]] [(S1)] [[1], [2]] 【1】: http://x")
@example("arr[S1, S2][3]")
@example("(S1)][1]")
@example("(S1)](S1)")
def test_repair_keeps_the_numbers_and_does_nothing_twice(text):
    repaired = repair(text, N)
    assert numbers(repaired) == numbers(text)
    assert [each for each in readings(repaired) if isinstance(each, str)] == [
        each for each in readings(text) if isinstance(each, str)]
    assert repair(repaired, N) == repaired
    for start, end, cited, status in parse(repaired, N):
        assert status != "valid" or repaired[start:end] == f"[S{cited[0]}]"


@given(SOUP)
def test_repair_changes_nothing_but_citations(text):
    kept, at = [], 0
    for start, end, _, status in parse(text, N):
        if status == "valid":
            kept, at = [*kept, text[at:start]], end
    pattern = r"(?:\[S\d\])+".join(map(re.escape, [*kept, text[at:]]))
    assert re.fullmatch(pattern, repair(text, N))


@given(st.text("ab [1]`\\", max_size=30).map("a ".__add__))             # not a fence
@example("\\``[1]`")
def test_code_is_what_a_markdown_parser_says_it_is(text):
    from markdown_it import MarkdownIt

    def code(text):
        return [token.content for token in MarkdownIt("zero").enable(["backticks", "escape"]).parseInline(text)[0].children
                if token.type == "code_inline"]
    assert code(repair(text, N)) == code(text)
    _, found = citations.read(text, N)
    assert [text[start:end].strip("`").strip() for start, end, _ in found] == [each.strip("`").strip() for each in code(text)]


@given(SOUP)
def test_every_line_of_a_fence_stays_as_it_is(text):
    block = "````\n" + text.replace("`", "'").replace("~", "-") + "\n````"
    assert repair(f"A [1]\n{block}\nB 【2】", N) == f"A [S1]\n{block}\nB [S2]"


@given(SOUP)
def test_every_citation_has_one_sentence_if_there_is_any(text):
    found = citations.by_sentence(text, N)
    assert [(start, end) for start, end, _ in found] == sorted((start, end) for start, end, _ in found)
    assert not found or sorted(each for _, _, cited in found for each in cited) == parse(text, N)


# -- Much of anything --------------------------------------------------------------------------------------------------

MUCH = ["[", "]", "[[1", "[1]", "[1](", '[1](a "', "[1](a '", "[1](<", "[1]:", "`", "` ``", "<a", "(s1 ", "(s1", "\\", "[ ", "[1, ",
        "http://", "www.", "```\n", "> ", "- ", "~~~", "[1-8]", "】", "†", "arr[1]", "\n", "a b", " ", "[1\n", "[Source: "]


class Counted:
    """A pattern that counts the characters between where it began to look, and where it stopped."""

    def __init__(self, pattern):
        self.pattern, self.steps = pattern, 0

    def search(self, text, at=0):
        match = self.pattern.search(text, at)
        self.steps += (match.end() if match else len(text)) - at
        return match


def test_the_work_grows_with_the_text_whatever_it_is_made_of():
    original = citations.TOKEN
    try:
        for unit in MUCH:
            for text in (unit * 2000, " " * 2000 + unit * 2000, unit * 2000 + "`]) x"):
                citations.TOKEN = Counted(original)
                parse(text, N)
                # what lies between brackets is read twice, once for what it is and once for what is in it
                assert citations.TOKEN.steps <= 3 * len(text), unit
    finally:
        citations.TOKEN = original


def test_backticks_of_every_length_are_looked_for_once():
    text = " ".join("`" * length for length in range(1, 200))
    counts = {}
    stream = citations.Stream(1)

    class Runs(dict):
        def setdefault(self, length, default):
            counts[length] = counts.get(length, 0) + 1
            return super().setdefault(length, default)
    runs = Runs()
    for match in citations.TICKS.finditer(text):
        assert stream._code(text, match, runs) is None
    assert set(counts.values()) == {1} and len(counts) == 199


def test_a_huge_range_takes_no_room():
    [citation] = parse("[1-999999999999999999]", 10**6)
    assert citation.numbers == (1, 999999999999999999) and citation.status == "out_of_range"


# -- Sentences ---------------------------------------------------------------------------------------------------------


def cited_by(text, n=N):
    return {text[start:end]: [number for each in cited for number in each.numbers]
            for start, end, cited in citations.by_sentence(text, n)}


def test_which_sentence_a_citation_belongs_to():
    for text, expected in [
        ("A is red [1]. B is blue [2].", {"A is red [1].": [1], "B is blue [2].": [2]}),
        ("A is red.[1] B is blue.[2]", {"A is red.": [1], "B is blue.": [2]}),
        ("A is red. [1][2] B is blue.", {"A is red.": [1, 2], "B is blue.": []}),
        ("A is red. [1], [2] B is blue.", {"A is red.": [1, 2], "B is blue.": []}),
        ("A is red. [1]. B is blue.", {"A is red. [1].": [1], "B is blue.": []}),
        ("A is red. ([1]) B is blue.", {"A is red.": [1], "B is blue.": []}),
        ("A [1] is red [2]. B.", {"A [1] is red [2].": [1, 2], "B.": []}),
        ("[1] A is red.\n[2] B is blue.", {"A is red.": [1], "B is blue.": [2]}),
        ("A is red.\n[1]\nB is blue.", {"A is red.": [1], "B is blue.": []}),
        ("A is red.\n\n[1]", {"A is red.": [1]}),
        ("- A is red [1]\n- [2] B is blue", {"- A is red": [1], "- [2] B is blue": [2]}),
        ("We chose plan B [1]. Nobody left.", {"We chose plan B [1].": [1], "Nobody left.": []}),
        ("It is so, e.g. [1] in Oslo. No.", {"It is so, e.g. [1] in Oslo.": [1], "No.": []}),
        ("第一。[1] 第二。[2]", {"第一。": [1], "第二。": [2]}),
        ("Run `a. B [1]` twice. [2]", {"Run `a. B [1]` twice.": [2]}),
        ("A is red.\n```\nx. Y [1]\n```\nB is blue [2].", {"A is red.": [], "B is blue [2].": [2]}),
        ("[1]", {}), ("", {}),
    ]:
        assert cited_by(text) == expected, text


def test_a_citation_without_any_sentence_still_opens_its_source():
    [reference] = citations.resolve("[1]", [Source([place("a")])])
    assert reference.sentence is None and reference.places[0].doc_id == "a"


def test_what_claims_something():
    for text, claims in [("It is red.", True), ("Five days.", True), ("178", True), ("红色的。", True), ("- It is red", True),
                         ("Yes.", False), ("Is it red?", False), ("“Is it red?”", False), ("# Leave in 2026", False),
                         ("**Leave in 2026**", False), ("**Five** days are **enough**", True), ("The rules are:", False),
                         ("**The rules are:**", False), ("It is red [9].", True), ("It is red [Source: A].", True),
                         ("It is red [1].", False), ("", False), ("...", False), ("```\nIt is red.\n```", False)]:
        assert bool(citations.uncited(text, N)) == claims, text


# -- What a citation opens ---------------------------------------------------------------------------------------------


def test_a_citation_opens_everything_that_is_known_of_its_source():
    known = dict(source="hr/leave.md", title="Leave", section_path=["Leave", "Carry-over"], page=3, effective_date="2026-01-01")
    [reference] = citations.resolve("It is so [1].", [Source([place("leave", "Five days.", 40, **known)])])
    assert reference.citation == (9, 12, (1,), "valid") and reference.sentence == (0, 13)
    assert reference.places == [("leave", "hr/leave.md", "Leave", ["Leave", "Carry-over"], 3, "2026-01-01", 40, 50)]


def test_a_source_that_stands_in_several_places_opens_all_of_them():
    packed = [Source([place("a", start=0), place("a", start=500), place("b", start=7)])]
    [reference] = citations.resolve("It is so [1].", packed)
    assert [(each.doc_id, each.start, each.end) for each in reference.places] == [("a", 0, 10), ("a", 500, 510), ("b", 7, 17)]


def test_what_a_prompt_packed_is_what_a_citation_opens():
    text = "Nothing. It is red. It was blue. Nothing."
    chunks = [{"doc_id": doc_id, "title": "Colours", "source": f"{doc_id}.md", "start": start, "end": end, "text": text[start:end],
               "body": text[start:end], "section_path": ["Now"]} for doc_id, start, end in [("b", 9, 19), ("a", 20, 32), ("c", 9, 19)]]
    packed = prompt.build_prompt("Which colour?", chunks, count=len).packed
    opened = [[(each.source, text[each.start:each.end]) for each in reference.places]
              for reference in citations.resolve("It is red [S1]. It was blue [S2].", packed)]
    assert opened == [[("b.md", "It is red."), ("c.md", "It is red.")], [("a.md", "It was blue.")]]


def test_offsets_are_those_of_the_document():
    text = "Nothing. 🐈 Five days. Nothing."
    start = text.index("Five")
    [reference] = citations.resolve("So it is [S1].", [Source([place("a", "Five days.", start)])])
    assert text[reference.places[0].start:reference.places[0].end] == "Five days."


def test_only_valid_citations_open_anything():
    packed = [Source([place("a")])]
    assert citations.resolve("A [2]. B [S1, p. 3]. C `[1]`. D [1, 2].", packed) == []


def test_what_could_not_be_opened_is_an_error():
    for missing in ("doc_id", "start", "end", "body"):
        with pytest.raises(ValueError, match=f"source 2 has no {missing}"):
            citations.resolve("A.", [Source([place("a")]), Source([place("b") | {missing: None}])])
    with pytest.raises(ValueError, match="body of 10 characters for offsets 100 to 109"):
        citations.resolve("A.", [Source([place("a") | {"end": 109}])])
