"""Step 8 of 22 — Where does a sentence end? Before: documents.py. Next: chunking.py.

At a stop, mostly. But a full stop also closes abbreviations and initials, and what a chunk quotes should be whole. So
each place where a sentence might end is asked for a reason not to cut there:

    text       "Dr. Lee paid 3.14 USD, e.g. for pie. He left."
    sentence   (start, end), offsets into the text as it is: (0, 36), (37, 45); no white space at either end
    place      a stop with its closing quotes, brackets, markup or note, before white space: .  ?!  ."  ).**
    line       a place too: a blank line, and a line that opens an item (- * + • 1. (1) a)), a field or a directive
    word       what stands in front of the stop, without opening quotes and brackets: "Dr", "e.g", "pie"

The rules, in the order asked; the first that holds decides:

    line           cut      a blank line ends a sentence, an item begins one; any other line break is just white space
    bare           no cut   1. First     ... so     nothing stands before the stop yet but a list's number or letter
    wide           cut      第一。第二     。！？ need no white space after them
    goes on        no cut   "Go!" he said     Yahoo! is     etc. , and     lower case, a comma or the like follows
    abbreviation   no cut   Dr. Lee     e.g. Oslo     Fig. 3     words that never stand last (NEVER_LAST)
    number         no cut   No. 5     p. 97     words that are abbreviations before a digit only (NUMBERED)
    no opener      no cut   R.A. Fisher     the U.S. Census     Smith et al. 1992     an initial or SELDOM_LAST; but cut
                            before a word that often begins a sentence (OPENERS): in the U.S. He left
    bracket        no cut   He (!) left     [Lee, "Go." Oslo 1992]     a bracket opened near by, and soon to close
    else           cut

A word with a capital, a digit or an underscore in it, and anything in markup, may begin a sentence in lower case:
"iPhone sells. ``numpy`` too." The first rules of this kind stand in Unicode's Standard Annex 29 (a full stop before
lower case ends nothing); abbreviations are learnt from the text itself, and without lists, by Kiss and Strunk,
"Unsupervised multilingual sentence boundary detection", Computational Linguistics 32(4), 2006, known as Punkt.

What stays wrong, since the words alone do not tell:

    "Yahoo! Inc grew."                 cut after "Yahoo!"
    "We chose plan B. Nobody left."    not cut: B. could be Nobody's initial
    "By K. He and R. Lee."             cut after "K.": he is taken for a pronoun
    "he left. she stayed."             not cut: nobody wrote capitals
    "See page\\n12. It is red."         cut before 12: it begins its line, as a list's number does
    “好。”他说。                       cut after “好。”, though he goes on

Not here: languages that end sentences without stops (Thai), German and other abbreviations ("z. B. Oslo" is cut),
headings, tables and code (they are blocks of their own: split the text of paragraphs, items and quotes).
"""

import re

STOP, WIDE, SPACE = ".!?…", "。！？｡", r"[^\S\r\n]"                     # SPACE: white space within a line
STOPS = tuple(STOP)
CLOSING = "\"'”’»›」』）】》〉)\\]}*_`"
PLACE = re.compile(rf"""
    [{STOP}{WIDE}\r\n]                                                # one set in front: the search skips fast to it
    (?: (?<=[{STOP}]) (?<![{STOP}].) [{STOP}]*+ (?:[{CLOSING}]|\[\w{{1,3}}\])*+ (?!\S)
      | (?<=[{WIDE}]) [{STOP}{WIDE}]*+ [{CLOSING}]*+
      | (?<=[\r\n]) (?<!\r(?=\n))                                     # subtle: the \r of \r\n ends no line
        {SPACE}*+ (?P<line> [\r\n]\s*+ | (?=(?:
            (?: [-*+•] | \.\. | \(?(?:\d{{1,3}}|[A-Za-z])\) | (?:\d{{1,3}}|\#)\. ) {SPACE}
          | :[^\W_][^:\r\n]{{,60}}: \s )) )
    )""", re.VERBOSE)
BLANK = re.compile(r"\s*")
BARE = re.compile(r"[\W_]*(?:\d{1,3}|[A-Za-z])?")
NEXT = re.compile(r"\s*([\"'“‘«‹(\[]*)([^\W_]{,20})(://|\.\w\w|.?)", re.DOTALL)   # opening marks, word, what follows
INITIALS = re.compile(r"[A-Z]|(?:[A-Za-z]\.-?)+[A-Za-z]")            # R   U.S   J.-I   p.m
GOING_ON = ",;)]}<.!?…"                                               # <: the target of a link
NEAR = 150                                                            # characters: how far apart brackets may stand

NEVER_LAST = set("""
    Dr Mr Mrs Ms Mx Prof Rev Hon Gen Col Maj Capt Lt Sgt Gov Sen Rep Pres Messrs Mt Ft Tech Dept Univ Sec Ch
    e.g i.e eg cf viz vs v approx ca resp incl esp fig figs eq eqs eqn vol vols pp eds""".split())
NUMBERED = set("no nos p n sec secs sect ch chap art col ed ver par ref refs app tab st c".split())
SELDOM_LAST = set("""
    al etc inc ltd corp co bros llc jr sr esq ph.d m.sc b.sc et Ave Blvd Rd Sq Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct
    Nov Dec St Ste Ed Ann Proc Trans Conf Symp Int Natl Acad Lett Phys Chem Math Stat Sci Inst Assoc""".split())
OPENERS = set("""
    A After All Also Although An And Another Are As At Because Before Both But By Can Did Do Does Each Even Every For
    From He Her Here His How However I If In Is It Its Many More Most My No Nor Not Now On One Or Other Our She Since So
    Some Such That The Their Then There These They This Those Thus To Under Unlike Until We Were What When Where Whether
    Which While Who Why With Yet You Your""".split())


def split(text):
    """The sentences of `text` as (start, end) offsets, in order: together they hold every character but white space.

    Raises TypeError for anything but a string.

    >>> split("Dr. Lee paid 3.14 USD, e.g. for pie. He left.")
    [(0, 36), (37, 45)]
    >>> text = "It grew in the U.S. Then R.A. Fisher asked: why?! (See Fig. 3.) 第一。第二。"
    >>> print(*[text[start:end] for start, end in split(text)], sep="\\n")
    It grew in the U.S.
    Then R.A. Fisher asked: why?!
    (See Fig. 3.)
    第一。
    第二。
    >>> split("")
    []
    """
    if not isinstance(text, str):
        raise TypeError(f"split takes a string, not {type(text).__name__}")
    sentences, start = [], 0
    for end in [end for _, end, reason in places(text) if reason is None] + [len(text)]:
        piece = text[start:end]
        if stripped := piece.rstrip():
            sentences.append((end - len(piece.lstrip()), start + len(stripped)))
        start = end
    return sentences


def places(text):
    """(start, end, reason) of each place where a sentence might end, in order; the reason is None where one does.

    >>> list(places("Dr. Lee left. Go!"))
    [(2, 3, 'abbreviation'), (12, 13, None), (16, 17, None)]
    """
    sentence = BLANK.match(text).end()
    for place in PLACE.finditer(text):
        start, end = place.span()
        reason = None if place["line"] is not None else why_not(text, sentence, start, end)
        yield start, end, reason
        if reason is None:
            sentence = BLANK.match(text, end).end()


def why_not(text, sentence, start, end):
    """The name of the rule that forbids to end the sentence that began at `sentence` with the stop text[start:end].

    None: cut. Looks at no more than NEAR characters and the white space on either side.
    """
    if start - sentence < 20 and BARE.fullmatch(text, sentence, start):
        return "bare"
    if text[start] in WIDE:
        return None
    opening, following, after = NEXT.match(text, end).groups()
    if _is_lower(following, after) or not following and after and after in GOING_ON:
        return "goes on"
    if text[start] == "." and not text.startswith(STOPS, start + 1):
        opens = following in OPENERS and not opening and not after.strip()
        if reason := _abbreviation(text[max(sentence, start - 24):start], following, opens):
            return reason
    if text[start - 1] in "([" or _in_brackets(text, max(sentence, start - NEAR), start, end):
        return "bracket"
    return None


def _is_lower(word, after):
    """Whether a lower-case word follows that is no name of code or a page: not x1, x_train, np.dot, https://."""
    return word.isalpha() and word.islower() and after != "_" and len(after) < 2


def _abbreviation(before, following, opens):
    """The rule that takes the last word of `before` for an abbreviation, or None; `opens`: an opener follows."""
    word = (before.rsplit(None, 1) or [""])[-1].lstrip("\"'“‘«‹([{*_`")
    lower = word.lower()
    if word in NEVER_LAST or lower in NEVER_LAST:
        return "abbreviation"
    if lower in NUMBERED and following[:1].isdigit():
        return "number"
    if not opens and (word in SELDOM_LAST or lower in SELDOM_LAST or INITIALS.fullmatch(word)):
        return "no opener"
    return None


def _in_brackets(text, low, start, end):
    """Whether a bracket opened since `low` is still open after the stop, and closes soon."""
    for opening, closing in ("()", "[]"):
        if text.rfind(opening, low, start) > text.rfind(closing, low, end):
            close = text.find(closing, end, end + NEAR)
            if close >= 0 and text.find(opening, end, close) < 0:
                return True
    return False


if __name__ == "__main__":
    TRAPS = ("Dr. R.A. Fisher measured 150 irises (see Fig. 3). \"Small?!\" he asked, i.e. under 2.5 cm... Yes.\n"
             "The data stood in Annual Eugenics, vol. 7, no. 2, pp. 179-188 [K. Lee, \"Irises.\" Oslo 1992], as in\n"
             "the U.S. Census of Smith et al. 1936. Then it went to the U.S. It is in load_iris. ``load_wine`` too.\n"
             "1. First item\n2. 第一。第二。")
    PLACES = list(places(TRAPS))
    for first, last in split(TRAPS):
        print(" ".join(TRAPS[first:last].split()))
        for left, right, reason in PLACES:
            if first <= left < last and reason:
                print(f"    {reason:12}  {' '.join(TRAPS[max(first, left - 10):right + 10].split())}")
