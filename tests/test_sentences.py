"""Second half of the lesson on sentences: pairs by hand, each rule alone, a slow definition as oracle, long inputs."""

import contextlib
import io
import runpy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import documents
import sentences
from sentences import split


def cut(text):
    return [text[start:end] for start, end in split(text)]


def marked(text):
    """A pair by hand: | where a sentence must end, white space around it left out of both."""
    return [piece.strip() for piece in text.split("|")], text.replace("|", "")


# -- By hand -----------------------------------------------------------------------------------------------------------

GOLDEN = [
    "Dr. Lee paid 3.14 USD, e.g. for pie.| He left.",
    "See Fig. 3.| It shows (cf. Eq. 7) that.| It is so.",
    "the U.S. economy grew.| Then it fell.",
    "in the U.S.| He left",
    "It is a U.S. Census table of St. John and Gov. Brown.",
    "R.A. Fisher, J. R. R. Tolkien and J.-I. Takeuchi wrote.| George W. Bush did not.",
    "K. He, X. Zhang, S. Ren and J. Sun (2015).| Next.",
    "Well... maybe.| So... Then he left.".replace("... Then", "...| Then"),
    "Well… maybe…| Then he left. …| So it was.",
    "One . . . two.| Three.",
    'He said "Go."| Then left.',
    "“Go.”| ‘Stay.’| «Non.»| (See above.)| [See below.]| Next.",
    '"Go!" he said.| "Why?" asked she.',
    "What?!| No.| Really?!?| Yes!!",
    "Smith et al. 1992 agree.| Lee et al.| The rest, too.",
    "pp. 97-101, vol. 3, No. 5, nos. 3-4, p. 7, ch. 2.| Next.",
    "The answer is no.| He left.| No.| 3 people came.".replace("No.| 3", "No. 3"),
    "that is, i.e. Oslo vs. Rome, approx. 3 km.| Next.",
    "On Jan. 3 and in Dec. 1999 at 5 p.m. on Main St. it rained, etc.| The sun came at 6 a.m.| We left.",
    "Acme Inc. Oslo grew, Acme Ltd. and Lee & Co. fell.| Mrs. Lee, Ph.D., left.",
    "It costs 3.14 or .5 or 1,000.50.| It is v1.2.3.| Use v1.2.4.| Next.",
    "Read http://a.b/c?d=e!f.| Run a.b.cd, x.py.| Open setup.py.| See example.com.| Next.",
    "It is there: see https://a.b/c.| https://d.e/f is gone.",
    "a.b!c?d…e has no space",
    "iPhone sells.| 3 people came.| iPhone 4 sold.| x1 too.| np.dot is fast.| fetch_it is not.| .NET is.",
    "He left.| **remove** it.| *So* be it.| ``x`` is y.| :func:`f` is z.",
    "It is ``x``.| **Bold.**| See `link`_.| It is so [1]_.| *Em.*| _Em._| Next.",
    "It grew.[3]| Then it fell.[12][a]| Next.",
    "1. First.| Next.\n|2. Second\n|10) Third\n|(4) Fourth\n|b) Fifth\n|(c) Sixth\n|#. Seventh",
    "Items:\n|- one. two\n|* three\n|+ four\n|• five\n|  - six\nwrapped - here\n-7 is a number",
    "Open it.| 2. Close it.| 3. Go.",
    ":Creator: R.A. Fisher\n|:Donor: M. Marshall\n|:Date: July\n:func:`f` is no field",
    ".. [1] K. Lee. Oslo.\n|.. [2] See it.\n|.. rubric:: Notes".replace("Lee. O", "Lee.| O"),
    "A wrapped\nline, e.g.\nthis, is\nno end.| It\nis so",
    "a title\n\n|a text\n   \n|more",
    "a wrapped\r\nline.\r\n|- item\r\n\r\n|text, e.g.\r\nthis.| Next.\r\r|old\rMac",
    "第一句。|第二句！|真的吗？|「行く。」|次。|(完。)| （完。）|ok?！|了。。",
    "Is it (sic!) so?| It is (!) so [...] Indeed.| Yes.",
    'Use [K. Lee, "Trees." Oslo 1992], and (in part. Mostly) this.| (He left. She stayed.)| So.',
    "It was open (so he said. He left.\n\n|She stayed) too.",
    "`Faces in the Wild.\n<https://a.b/c.pdf>`_ by Lee.| Next.",
    "He left .| She stayed .",
    "Prof.                              Lee left" + " " * 40 + ".| Next.",
    "हम गए। वे आए। Ок.| Он ушёл.| Élan.| Ça va.",
    "Yahoo! is big, Jeopardy! too.| Guess?",
    "? ! ..",
    "One\n|100) two\n|100. three\n1000. four",
    "好！|ok？|go。|Dr. Lee.| 次",
    "(See above.)| Look at b) now.| It was (early.| She stayed (late).",
    "It was (so.\n\n|She left.| He stayed.)| So",
    "He met Dr...| Then he left.| Dr.?| No!",
    "He left." + " " * 30 + "|1. First",
]


@pytest.mark.parametrize("pair", GOLDEN)
def test_pairs_by_hand(pair):
    pieces, text = marked(pair)
    assert cut(text) == pieces


@pytest.mark.parametrize("pair", [
    "Yahoo!| Inc grew.", "We chose plan B. Nobody left.", "By K.| He and R. Lee.", "he left. she stayed.",
    "See page\n|12. It is red.", "“好。”|他说。", "z. B.| Oslo".replace("B.| ", "B. "), "Guess e. g.| Oslo"])
def test_what_the_docstring_says_stays_wrong(pair):
    pieces, text = marked(pair)
    assert cut(text) == pieces


def test_blank_text_has_no_sentence():
    assert [split(text) for text in ("", " ", "\n\n", " \r\n\t\x0b\x85\u2028 ")] == [[]] * 4


def test_offsets_are_those_of_the_text_as_it_is():
    assert split("  😀 e\u0301.\r\n\r\n B. ") == [(2, 7), (12, 14)]


def test_only_three_characters_end_a_line():
    for space in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029":
        assert cut(f"one{space}{space}two{space}- three") == [f"one{space}{space}two{space}- three"]


def test_anything_but_a_string_is_refused():
    for wrong in (None, b"One.", ["One."]):
        with pytest.raises(TypeError, match="string"):
            split(wrong)


@pytest.mark.parametrize("text, reason", [
    ("1. First", "bare"), ("... so", "bare"), ("It left. then", "goes on"), ("etc. , and", "goes on"), ("See Dr. Lee", "abbreviation"),
    ("See no. 5", "number"), ("By A. Lee", "no opener"), ("The U.S. Census", "no opener"), ("He (!) Left", "bracket"),
    ("He (left. Then) so", "bracket"), ("He left. Then", None), ("In the U.S. Then", None), ("See no. Lee", None), ("第一。第二", None)])
def test_each_rule_decides_alone(text, reason):
    assert [reason for _, _, reason in sentences.places(text)] == [reason]


@pytest.mark.parametrize("before, after, n_sentences", [(149, 148, 1), (150, 148, 2), (149, 149, 2)])
def test_brackets_that_stand_far_apart_do_not_count(before, after, n_sentences):
    text = "Go (" + "b" * before + ". " + "C" * after + ")"            # the stop stands at 4 + before, the bracket at 3
    assert len(split(text)) == n_sentences


@pytest.mark.parametrize("name", ["NEVER_LAST", "NUMBERED", "SELDOM_LAST", "OPENERS", "GOING_ON", "CLOSING", "NEAR"])
def test_the_pairs_miss_each_list_that_is_taken_away(monkeypatch, name):
    if name == "CLOSING":
        pattern = sentences.PLACE.pattern.replace(sentences.CLOSING, "'")
        monkeypatch.setattr(sentences, "PLACE", sentences.re.compile(pattern, sentences.re.VERBOSE))
    else:
        monkeypatch.setattr(sentences, name, type(getattr(sentences, name))())
    assert any(cut(text) != pieces for pieces, text in map(marked, GOLDEN))


def test_lesson():
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(sentences.__file__, run_name="__main__")
    assert "\nThen it went to the U.S.\nIt is in load_iris.\n``load_wine`` too.\n" in output.getvalue()
    assert "\n    number        vol. 7, no. 2, pp. 17\n" in output.getvalue()


# -- The descriptions --------------------------------------------------------------------------------------------------


def flat(text):
    return [" ".join(piece.split()) for piece in cut(text)]


def test_references_of_iris_as_they_were_read():
    text = documents.load_descriptions(["iris"])[0]["text"]
    assert flat(text[text.index("The famous"):text.index("This is perhaps")]) == [
        "The famous Iris database, first used by Sir R.A. Fisher.", "The dataset is taken from Fisher's paper.",
        "Note that it's the same as in R, but not as in the UCI Machine Learning Repository, which has two wrong data points."]
    assert flat(text[text.index("  - Fisher, R.A."):]) == [
        '- Fisher, R.A. "The use of multiple measurements in taxonomic problems" Annual Eugenics, 7, Part II, 179-188 (1936); '
        'also in "Contributions to Mathematical Statistics" (John Wiley, NY, 1950).',
        "- Duda, R.O., & Hart, P.E. (1973) Pattern Classification and Scene Analysis.", "(Q327.D83) John Wiley & Sons.",
        "ISBN 0-471-22361-1.", "See page 218.",
        '- Dasarathy, B.V. (1980) "Nosing Around the Neighborhood: A New System Structure and Classification Rule for '
        'Recognition in Partially Exposed Environments".',
        "IEEE Transactions on Pattern Analysis and Machine Intelligence, Vol. PAMI-2, No. 1, 67-71.",
        '- Gates, G.W. (1972) "The Reduced Nearest Neighbor Rule".', "IEEE Transactions on Information Theory, May 1972, 431-433.",
        "- See also: 1988 MLC Proceedings, 54-64.",
        'Cheeseman et al"s AUTOCLASS II conceptual clustering system finds 3 classes in the data.', "- Many, many more ..."]


@pytest.mark.parametrize("name, sentence", [
    ("wine_data", "(1) S. Aeberhard, D. Coomans and O. de Vel, Comparison of Classifiers in High Dimensional Settings, Tech. Rep. "
                  "no. 92-02, (1992), Dept. of Computer Science and Dept. of Mathematics and Statistics, James Cook University of "
                  "North Queensland."),
    ("breast_cancer", 'Separating plane described above was obtained using Multisurface Method-Tree (MSM-T) [K. P. Bennett, '
                      '"Decision Tree Construction Via Linear Programming." Proceedings of the 4th Midwest Artificial '
                      'Intelligence and Cognitive Science Society, pp. 97-101, 1992], a classification method which uses linear '
                      'programming to construct a decision tree.'),
    ("california_housing", "A block group is the smallest geographical unit for which the U.S. Census Bureau publishes sample data "
                           "(a block group typically has a population of 600 to 3,000 people)."),
    ("kddcup99", ".. [3] K. Yamanishi, J.-I. Takeuchi, G. Williams, and P. Milne."),
    ("twenty_newsgroups", "**remove** should be a tuple containing any subset of ``('headers', 'footers', 'quotes')``, telling it to "
                          "remove headers, signature blocks, and quotation blocks respectively."),
    ("species_distributions", "The dataset is provided by Phillips et. al. (2006)."),
    ("digits", "For info on NIST preprocessing routines, see M. D. Garris, J. L. Blue, G. T. Candela, D. L. Dimmick, J. Geist, P. J. "
               "Grother, S. A. Janet, and C. L. Wilson, NIST Form-Based Handprint Recognition System, NISTIR 5469, 1994.")])
def test_sentences_of_the_descriptions(name, sentence):
    assert sentence in flat(documents.load_descriptions([name])[0]["text"])


def test_descriptions_cut_alike_by_the_definition_and_with_other_line_ends():
    for document in documents.load_descriptions():
        text = document["text"]
        assert split(text) == split_by_definition(text)
        for line_end in ("\r\n", "\r"):
            assert flat(text.replace("\n", line_end)) == flat(text)


# -- The oracle: character by character, without regular expressions ---------------------------------------------------


def split_by_definition(text):
    cuts, i, sentence = [0], 0, skip(text, 0, str.isspace)
    while i < len(text):
        start, i = i, i + 1
        if text[start] == "\n" or text[start] == "\r" and text[i:i + 1] != "\n":
            if new_line_cuts(text, i):
                cuts.append(i)
                sentence = skip(text, i, str.isspace)
        elif end := stop_end(text, start):
            i = end
            if cuts_by_definition(text, sentence, start, end):
                cuts.append(end)
                sentence = skip(text, end, str.isspace)
    pieces = [(skip(text, a, str.isspace), a + len(text[a:b].rstrip())) for a, b in zip(cuts, cuts[1:] + [len(text)])]
    return [(a, b) for a, b in pieces if a < b]


def skip(text, i, test, most=10**9):
    first = i
    while i < len(text) and i - first < most and test(text[i]):
        i += 1
    return i


def new_line_cuts(text, i):
    end = skip(text, i, lambda c: c not in "\r\n")
    line = text[i:end].lstrip()
    if not line:
        return end < len(text)
    mark = line.split()[0]
    if len(mark) < len(line):
        inner = mark.rstrip(".)").lstrip("(")
        number, letter = inner.isdecimal() and len(inner) <= 3, len(inner) == 1 and inner.isascii() and inner.isalpha()
        if mark in ("-", "*", "+", "•", "..", "#.") or number and mark == inner + ".":
            return True
        if (number or letter) and mark in (inner + ")", "(" + inner + ")"):
            return True
    colon = line.find(":", 2)
    return line[0] == ":" and line[1:2].isalnum() and 2 <= colon <= 62 and (line + text[end:end + 1])[colon + 1:colon + 2].isspace()


def stop_end(text, start):
    """The end of the stop and what closes after it, or None where no sentence might end."""
    closing, stops = sentences.CLOSING.replace("\\", ""), sentences.STOP
    if text[start] in sentences.WIDE:
        return skip(text, skip(text, start, lambda c: c in stops + sentences.WIDE), lambda c: c in closing)
    if text[start] not in stops or start and text[start - 1] in stops:
        return None
    end, before = skip(text, start, lambda c: c in stops), None
    while end != before:
        before, end = end, skip(text, end, lambda c: c in closing)
        note = text[end:end + 5].partition("]")
        if note[1] and note[0][0] == "[" and note[0][1:] and all(c.isalnum() or c == "_" for c in note[0][1:]):
            end += len(note[0]) + 1
    return end if end == len(text) or text[end].isspace() else None


def cuts_by_definition(text, sentence, start, end):
    so_far = text[sentence:start]
    core = so_far[skip(so_far, 0, lambda c: not c.isalnum()):]
    letter = len(core) == 1 and core.isascii() and core.isalpha()
    if len(so_far) < 20 and (not core or letter or core.isdecimal() and len(core) <= 3):
        return False
    if text[start] in sentences.WIDE:
        return True
    space = skip(text, end, str.isspace)
    opened = skip(text, space, lambda c: c in "\"'“‘«‹([")
    done = skip(text, opened, str.isalnum, most=20)
    word, after = text[opened:done], text[done:done + 1]
    code = after == "_" or text[done:done + 3] == "://" or after == "." and all(
        c.isalnum() or c == "_" for c in text[done + 1:done + 3].ljust(2))
    if word.isalpha() and word.islower() and not code or not word and after and not code and after in ",;)]}<.!?…":
        return False
    if text[start] == "." and text[start + 1:start + 2] not in tuple(sentences.STOP):
        opens = word in sentences.OPENERS and space == opened and not after.strip() and not code
        if abbreviates(text[max(sentence, start - 24):start], word, opens):
            return False
    return text[start - 1] not in "([" and not any(within(text, sentence, start, end, *pair) for pair in ("()", "[]"))


def abbreviates(before, word, opens):
    last = (before.split() or [""])[-1].lstrip("\"'“‘«‹([{*_`")
    letters = last.replace(".-", ".").split(".")
    initials = all(len(c) == 1 and c.isascii() and c.isalpha() for c in letters) and (len(letters) > 1 or last.isupper())
    return (sentences.NEVER_LAST & {last, last.lower()} or last.lower() in sentences.NUMBERED and word[:1].isdigit()
            or not opens and (initials or sentences.SELDOM_LAST & {last, last.lower()}))


def within(text, sentence, start, end, opening, closing):
    is_open = False
    for i in range(max(sentence, start - sentences.NEAR), end):
        is_open = text[i] == opening and i < start or is_open and text[i] != closing
    for c in text[end:end + sentences.NEAR]:
        if is_open and c in opening + closing:
            return c == closing
    return False


BITS = st.sampled_from([
    *". . . ! ? … 。 ！ ( ) [ ] \" ” ’ * _ ` : , ; - • # < \n \n \r \t \x85 \u2028".split(" "), " ", " ", "\n\n", "\r\n", "\n- ", "\n1. ",
    "\n(a) ", "\n.. ", "\n:F: ", "[1]", "[1]_", "://", "Dr", "e.g", "U.S", "no", "al", "etc", "R.A", "J.-I", "He", "The", "A", "I", "x", "x1",
    "iPhone", "np.dot", "go", "Lee", "1", "12", "1992", "é", "ß", "第", "」", "😀", "a\u0301", "²", "Ⅳ", "x" * 30])
TEXTS = st.lists(BITS, max_size=30).map("".join) | st.text(max_size=40)


@given(TEXTS)
@example("?！ x")
@example("a.\r\n\r\nb\r\n.. c")
@example("x" + " " * 30 + ". Next")
@example("x\n:" + "F" * 61 + ": x\n:" + "F" * 62 + ": x")
def test_equals_the_definition(text):
    assert split(text) == split_by_definition(text)


# -- Properties --------------------------------------------------------------------------------------------------------


@given(TEXTS)
def test_every_character_but_white_space_stands_in_one_sentence(text):
    spans = split(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    assert all(a < b and text[a:b] == text[a:b].strip() for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in zip(spans, spans[1:]))


@given(TEXTS, TEXTS)
def test_paragraphs_are_cut_alone(one, two):
    one, two = (text.translate({ord(c): " " for c in "()[]"}) for text in (one, two))    # brackets look across
    shift = len(one) + 2
    assert split(one + "\n\n" + two) == split(one) + [(a + shift, b + shift) for a, b in split(two)]


# -- Long inputs: quadratic time would show --------------------------------------------------------------

N = 100_000
LONG = {
    "no spaces": ("x" * N, 1), "stops": ("." * (10 * N) + "x", 1), "blank lines": ("a" + "\n" * N + "b", 2), "spaces": ("It." + " " * N + "B", 2),
    "closing marks": ("a" + ".\"" * N + "x", 1), "notes": ("a." + "[1]" * N + "x", 1), "wide": ("第。" * N, N), "items": ("- a\n" * N, N),
    "field": ("\n:" + "a" * N, 1), "indentation": ("\n" + " " * N + "\n" + " " * N + "x", 1), "abbreviations": ("Dr. " * N, 1),
    "open brackets": ("(A b. " * N, N), "initials": ("A. " * N, 1), "spaced stops": (". " * N, 1), "old line ends": ("a\r" * N, 1),
    "one word": ("a. " + "b" * N, 1), "quotes": ("A b. " + "\"" * N + "C", 2), "empty lines with spaces": ("a" + "\r\n \t" * N + "b", 2)}


@pytest.mark.parametrize("kind", LONG)
def test_long_inputs(kind):
    text, n_sentences = LONG[kind]
    assert len(split(text)) == n_sentences
