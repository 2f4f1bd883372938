"""Lengths are what counting says, separators are taken coarsest first, and packing keeps pieces whole."""

import pytest
from hypothesis import given, strategies as st

import cutting
from toy import Embedder

TEXTS = st.text(st.sampled_from("ab \n\t\u3000\u2003é第,."), max_size=40)


def make(text, size=10, overlap=0, length="words", embedder=None):
    return cutting.Cutter({"id": "d", "title": "", "text": text}, size, overlap, length, embedder)


# -- Ruler -------------------------------------------------------------------------------------------------------------


@given(TEXTS)
def test_words_are_those_of_str_split(text):
    starts, ends = cutting._words(text)
    assert [text[start:end] for start, end in zip(starts, ends)] == text.split()


def test_spaces_of_other_scripts_part_words():
    assert cutting._words("a\u2003b\u3000第") == ([0, 2, 4], [1, 3, 5])


def test_no_white_space_lies_beyond_the_table():
    assert not [code for code in range(0x3001, 0x110000) if chr(code).isspace()]


@given(TEXTS, st.data())
def test_words_between_are_counted(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert cutting.Ruler(text, "words").measure(start, end) == len(text[start:end].split())
    assert cutting.Ruler(text, "characters").measure(start, end) == end - start


@given(TEXTS)
def test_tokens_of_a_whole_text_are_its_word_pieces(text):
    embedder = Embedder()
    ruler = cutting.Ruler(text, "tokens", embedder, heaviest=100)
    assert ruler.measure(0, len(text)) == embedder.count_tokens(text) - 2


@given(TEXTS, st.integers(1, 4), st.data())
def test_a_stretch_of_tokens_never_counts_too_few(text, heaviest, data):
    embedder, start = Embedder(), data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert cutting.Ruler(text, "tokens", embedder, heaviest).measure(start, end) >= embedder.count_tokens(text[start:end]) - 2


def test_tokens_equal_the_models_own_count(embedder):
    import documents
    for document in documents.load_descriptions():
        ruler = cutting.Ruler(document["text"], "tokens", embedder, heaviest=99)
        assert ruler.measure(0, len(document["text"])) == embedder.count_tokens(document["text"]) - 2


@given(TEXTS, st.sampled_from(["words", "tokens", "characters"]), st.integers(1, 9), st.data())
def test_reach_is_the_farthest_that_fits_and_back_its_mirror(text, length, room, data):
    ruler, place = cutting.Ruler(text, length, Embedder(), heaviest=1), data.draw(st.integers(0, len(text)))
    reach, back = ruler.reach(place, room), ruler.back(place, room)
    assert back <= place and ruler.measure(back, place) <= room
    assert reach >= min(place + 1, len(text)) and ruler.measure(place, reach) <= room or text[place:place + 1].strip()
    farther = [end for end in range(reach + 1, len(text) + 1) if ruler.measure(place, end) <= room]
    assert not [end for end in farther if text[reach:end].strip()]


def test_a_heavy_word_is_measured_by_its_letters():
    ruler = cutting.Ruler("a carbonara b", "tokens", Embedder(), heaviest=2)    # carb onar a: three pieces
    assert ruler.measure(2, 11) == 9 and ruler.reach(0, 4) == 5         # "a", and 3 letters
    assert cutting.Ruler("a carbonara b", "tokens", Embedder(), heaviest=3).measure(2, 11) == 3


def test_each_different_word_is_counted_once():
    embedder, counted = Embedder(), []
    embedder.count_tokens = lambda text: counted.append(text) or len(text.split()) + 2
    cutting.Ruler("the cat " * 1000, "tokens", embedder, heaviest=9)
    assert sorted(counted) == ["", "cat", "the"]


# -- Separators --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, expected", [
    ("a\n\nb\nc. d e", 3), ("a\nb. c d", 2), ("a b. c d e", 5), ("a b", 2), ("abc", 3), ("a。b c", 2), ("a\r\n\r\nb c", 5)])
def test_the_coarsest_separator_decides(text, expected):
    assert cutting._last_separator(make(text), 0, len(text)) == expected


def test_white_space_of_a_separator_may_lie_beyond():
    assert cutting._last_separator(make("abc. def"), 0, 4) == 5         # "abc." fits into four characters


@pytest.mark.parametrize("text, start, expected", [
    ("  a", 0, 0), ("x  a", 1, 3), ("x\n\n  a", 1, 3), ("x\n  a", 2, 2), (" \n ", 0, 3), ("a", 1, 1), ("\r\n\tb", 0, 2)])
def test_a_line_keeps_its_indentation(text, start, expected):
    assert cutting._content(text, start) == expected


# -- Packing -----------------------------------------------------------------------------------------------------------


def pieces(text, room, **settings):
    """One piece for each word."""
    return [cutting.Piece(start, end, room, **settings) for start, end in zip(*cutting._words(text))]


def packed(cut, pieces, **settings):
    return [cut.text[span.start:span.end] for span in cutting.pack(cut, pieces, **settings)]


def test_as_many_pieces_as_fit():
    assert packed(make("a b c d e"), pieces("a b c d e", 2)) == ["a b", "c d", "e"]
    assert packed(make("a b c d e", overlap=1), pieces("a b c d e", 3)) == ["a b c", "c d e"]
    assert packed(make(""), []) == []


def test_a_piece_beyond_the_room_stands_alone():
    text = "a b c d"
    assert packed(make(text), [cutting.Piece(0, 1, 2), cutting.Piece(2, 5, 1), cutting.Piece(6, 7, 2)]) == ["a", "b c", "d"]


def test_a_turn_ends_a_chunk_that_has_the_floor():
    items = pieces("a b c d", 9)
    items[1] = items[1]._replace(turn=True)
    items[3] = items[3]._replace(turn=True)
    assert packed(make("a b c d"), items, floor=1) == ["a", "b c", "d"]
    assert packed(make("a b c d"), items, floor=2) == ["a b c", "d"]


def test_the_path_of_a_span_is_what_its_pieces_share():
    [span] = cutting.pack(make("a b"), [cutting.Piece(0, 1, 9, ("T", "A")), cutting.Piece(2, 3, 9, ("T", "B"))])
    assert span.path == ("T",)


# -- What stands in front ----------------------------------------------------------------------------------------------


def test_the_title_is_not_said_twice():
    cut = cutting.Cutter({"id": "d", "title": "T", "text": "a"}, 9, 0, "words", None)
    assert [cut.breadcrumb(path)[0] for path in [(), ("T",), ("T", "A"), ("A", "B")]] == ["T", "T", "T > A", "T > A > B"]


@given(st.integers(3, 30), st.lists(st.sampled_from(["a", "bb", "carbonara"]), max_size=12))
def test_a_breadcrumb_takes_at_most_half_of_what_is_there(size, words):
    embedder = Embedder()
    cut = cutting.Cutter({"id": "d", "title": " ".join(words), "text": "a"}, size, 0, "tokens", embedder)
    crumb, cost = cut.breadcrumb(())
    assert cost <= (size - 2) // 2 and embedder.count_tokens(crumb) - 2 <= cost and " ".join(words).startswith(crumb)
    assert cut.room() == size - 2 - cost >= 1


def test_a_header_that_leaves_less_than_half_is_not_repeated():
    text = "h h h h h h\na b"
    from rst import Block
    for size, repeated in [(14, True), (13, False)]:                    # 2 specials, 6 pieces: half of 12
        cut = cutting.Cutter({"id": "d", "title": "", "text": text}, size, 0, "tokens", Embedder())
        header = cut.header(Block("table", 0, len(text), 0, (), (12,), (0, 11)), 12)
        assert header == ((0, 11) if repeated else None)
