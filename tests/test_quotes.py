"""Second half of the lesson on quotes: what stands in a source, what does not, and where."""

import unicodedata
from typing import NamedTuple

from hypothesis import assume, example, given
from hypothesis import strategies as st

import prompt
import quotes

BODY = "Up to five days may be rolled over,\nto be used by the end of March; “unused” days – if any – are void."


class Source(NamedTuple):
    """A source of a prompt, as far as quotes need it."""

    places: list


def source(*bodies, start=100):
    return Source([{"doc_id": f"d{number}", "start": start, "end": start + len(body), "body": body}
                   for number, body in enumerate(bodies)])


def statuses(text, *sources):
    return [quote.status for quote in quotes.check_quotes(text, sources)]


def test_a_quote_by_hand():
    text = 'It says “five days may be rolled over” [1].'
    [quote] = quotes.check_quotes(text, [source(BODY)])
    assert text[quote.start:quote.end] == "five days may be rolled over"
    assert quote == (9, 37, "verified", [(1, "d0", 106, 134)])
    assert BODY[106 - 100:134 - 100] == "five days may be rolled over"


def test_what_counts_as_a_quote():
    for text, expected in [
        ('"a b c" [1]', 1), ("“a b c” [1]", 1), ("„a b c“ [1]", 1), ("„a b c” [1]", 1), ("«a b c» [1]", 1), ("「第一二」[1]", 1),
        ('"a b" [1]', 0), ("'a b c' [1]", 0), ("`print(\"a b c\")` [1]", 0), ('```\n"a b c"\n```', 0), ('"a b\nc" [1]', 0),
        ('5" and 6" and 7" [1]', 0), ('"a b c" and "d e f" [1]', 2), ('(“a b c”) [1]', 1), ('"a b [1]" c', 0), ("", 0),
    ]:
        assert len(statuses(text, source("x"))) == expected, text


def test_typesetting_decides_nothing():
    for quoted in ["rolled over, to be used by", "rolled over,  to\tbe used by", "rolled over, to be used by", "rolled\u200b over",
                   "used by the end of March; 'unused' days", "days - if any - are", "days — if any — are void.", "ﬁve days may",
                   "ｆｉｖｅ days may", "five days may,", "five days may.", "five days may be …", "ro\xadlled over, to"]:
        quoted = quoted.replace("'unused'", "„unused‟")
        assert quotes._stands(quoted, [(1, source(BODY).places[0], *quotes.fold(BODY))]), quoted
    assert statuses("“five days may be” [1]", source(BODY)) == ["verified"]


def test_a_changed_word_is_not_verified():
    for quoted in ["ten days may be rolled over", "Five days may be", "five day may be", "ive days may be", "five days may b",
                   "five may be rolled over", "days five may be", "five days may be used"]:
        assert statuses(f"“{quoted}” [1]", source(BODY)) == ["unverified"], quoted


def test_what_an_ellipsis_leaves_out():
    def spans(quoted):
        [quote] = quotes.check_quotes(f"“{quoted}” [1]", [source(BODY)])
        return [BODY[start - 100:end - 100] for _, _, start, end in quote.stands]
    parts = ["five days may be", "used by the end of March"]
    assert spans("five days may be ... used by the end of March") == parts
    assert spans("five days may be … used by the end of March") == parts
    assert spans("five days may be [...] used by the end of March.") == parts
    assert spans("five days may be […] used by the end of March") == parts
    assert spans("used by the end of March ... five days may be") == []                      # the other way round
    assert spans("five days may be ... sold at the end") == []
    assert spans("five ... days ... may ... void") == []                                     # words, no passages


def test_an_ellipsis_of_the_source_is_a_character_like_others():
    assert statuses('"from 0...16 in steps" [1]', source("It runs from 0...16 in steps.")) == ["verified"]


def test_a_quote_is_held_against_the_sources_of_its_own_sentence():
    sources = source(BODY), source("Ten days may be carried over.")
    assert statuses("“Ten days may be carried” [2].", *sources) == ["verified"]
    assert statuses("“Ten days may be carried” [1].", *sources) == ["elsewhere"]
    assert statuses("“Ten days may be carried”. [2] It is so [1].", *sources) == ["verified"]
    assert statuses("“Ten days may be carried”. It is so [2].", *sources) == ["elsewhere"]
    assert statuses("“Ten days may be carried” [9].", *sources) == ["elsewhere"]
    assert statuses("“Ten days may be sold” [2].", *sources) == ["unverified"]
    assert statuses("“Ten days may be carried”", *sources) == ["elsewhere"]
    assert statuses("“Ten days may be carried” [1].") == ["unverified"]


def test_what_the_prompt_shows_otherwise_can_be_quoted_either_way():
    body = "Write </source> at the end of it."
    chunk = {"doc_id": "html.md", "title": "HTML", "start": 7, "end": 7 + len(body), "body": body, "text": body}
    packed = prompt.build_prompt("How does it end?", [chunk], count=len).packed
    for quoted in ("Write </source> at the end", "Write ‹/source> at the end"):
        [quote] = quotes.check_quotes(f"“{quoted}” [S1].", packed)
        assert quote.stands == [(1, "html.md", 7, 33)]


def test_a_quote_over_two_sentences_has_the_citation_behind_it():
    assert statuses("“It is red. It was blue.” [1]", source("It is red. It was blue.")) == ["verified"]


def test_a_citation_within_a_quote_is_none_of_its_words():
    assert statuses("“five days [1] may be” so.", source(BODY)) == ["verified"]
    assert statuses("“five days [1] may be” so.", source("five days [1] may be so")) == ["verified"]


def test_every_place_of_a_source_is_named():
    [quote] = quotes.check_quotes("“a b c” [1]", [source("a b c", "x", "so a b c")])
    assert quote.stands == [(1, "d0", 100, 105), (1, "d2", 103, 108)]


def test_a_quote_is_looked_for_behind_a_place_where_it_is_part_of_a_word():
    [quote] = quotes.check_quotes("“ten days off” [1]", [source("often days off, ten days offer, ten days off")])
    assert quote.stands == [(1, "d0", 132, 144)]


def test_folding_by_hand():
    assert quotes.fold("") == ("", [])
    assert quotes.fold("a\u200b \n b") == ("a b", [(0, 1), (2, 5), (5, 6)])
    assert quotes.fold("½") == ("1⁄2", [(0, 1)] * 3)
    assert quotes.fold("e\u0301x")[1] == [(0, 2), (0, 2), (2, 3)]
    assert quotes.fold("’“–") == ("'\"-", [(0, 1), (1, 2), (2, 3)])
    assert quotes.fold("ｶﾞ")[0] == quotes.fold("ガ")[0]


LETTERS = st.text("ab é\u0301\u0323ậﬁ½…\n\xa0“”–’ＡＢ가각ガ", max_size=25)


@given(LETTERS)
@example("â\u0323")
@example("ậ")
def test_one_text_in_any_unicode_form_is_one(text):
    folded = quotes.fold(text)[0]
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert quotes.fold(unicodedata.normalize(form, text))[0] == folded


@given(LETTERS)
def test_every_folded_character_comes_from_where_it_says(text):
    folded, spans = quotes.fold(text)
    assert len(folded) == len(spans) and spans == sorted(spans)
    for character, (start, end) in zip(folded, spans):
        assert character in quotes.fold(text[start:end])[0]


@given(st.lists(st.sampled_from("up to five days a year, ﬁve café – “so” it's".split()), min_size=3, max_size=12), st.data())
def test_whatever_stands_in_a_source_is_verified_at_its_place(words, data):
    first = data.draw(st.integers(0, len(words) - 3))
    last = data.draw(st.integers(first + 3, len(words)))
    quoted = " ".join(words[first:last])
    assume(len(quotes.citations.WORD.findall(quoted)) >= 3 and not set("“”") & set(quoted))
    body = "\n ".join(words)
    [quote] = quotes.check_quotes(f"It is “{quoted}” [1].", [source(body)])
    assert quote.status == "verified"
    [(_, _, start, end)] = quote.stands
    assert quotes.fold(body[start - 100:end - 100])[0] == quotes.fold(quoted)[0].strip(" .,;:!?")
