"""Step 2 of 22 — Which chunks share the question's rare words? Before: ranking.py. Next: fusion.py.

BM25 scores a document by the question's words in it. A rare word is worth more than a common one (idf); a word that
comes again is worth less each time (the count saturates); a long document gets less for the same count.

    token_lists   one list of tokens for each document        toy: [["the", "cat", "sat", ...], ...]
    n             number of documents                         toy: 4
    df            documents that contain the term             toy: the 3, cat 2, dog 2
    count         how often the term stands in the document   toy: "the" stands twice in document 0
    length        tokens in the document                      toy: 6, 5, 2, 3
    mean_length   mean of the lengths                         toy: 4
    k1, b, delta  how slowly a count saturates; how much length matters; what any match is worth (BM25L and BM25+ only)
    norm          1 - b + b * length / mean_length            toy, b = 0.75: 1.375 for document 0
    posting       one (term, document) pair that occurs; the postings of a term are stored side by side
    allowed       a mask of documents that may be returned; all are still counted in n, df and mean_length
    visible       a mask of documents that may be known of: n, df and mean_length count these alone

score(document) = sum over the question's tokens of idf * tf_part, a repeated token counting each time. Five variants,
from Kamphuis, de Vries, Boytsov and Lin, "Which BM25 Do You Mean?" (ECIR 2020), table 1; three differ on purpose:
robertson's idf is floored at 0, so that no match can count against a document, and BM25L and BM25+ add delta only
to documents that contain the term (some libraries add it to every document; with BM25+ that changes no ranking).

Not here: stemming, stop words, phrase queries, word segmentation of Chinese or Thai (their character pairs are used).
"""

import functools
import itertools
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

import ranking

# -- The two factors, one equation each. They take numbers or arrays of the same shape --------------------------------

IDF = {
    "lucene": lambda df, n: np.log(1 + (n - df + 0.5) / (df + 0.5)),                    # never negative
    "robertson": lambda df, n: np.maximum(0, np.log((n - df + 0.5) / (df + 0.5))),      # 0 from half of all on
    "atire": lambda df, n: np.log(n / df),
    "bm25l": lambda df, n: np.log((n + 1) / (df + 0.5)),
    "bm25+": lambda df, n: np.log((n + 1) / df),
}
TF_PART = {
    "lucene": lambda count, norm, k1, delta: count / (count + k1 * norm),               # no (k1 + 1): same order
    "robertson": lambda count, norm, k1, delta: count / (count + k1 * norm),
    "atire": lambda count, norm, k1, delta: count * (k1 + 1) / (count + k1 * norm),
    "bm25l": lambda count, norm, k1, delta: (k1 + 1) * (count / norm + delta) / (k1 + count / norm + delta),
    "bm25+": lambda count, norm, k1, delta: count * (k1 + 1) / (count + k1 * norm) + delta,
}


def idf(df, n, method="lucene"):
    """How much one occurrence of a term is worth: the rarer, the more. 1 <= df <= n.

    formula: idf = ln(1 + (n - df + 0.5) / (df + 0.5))

    >>> round(float(idf(2, 4)), 4)      # toy: "cat" stands in 2 of 4 documents: ln(1 + 2.5 / 2.5)
    0.6931
    """
    return IDF[method](df, n)


def tf_part(count, length, mean_length, k1=1.2, b=0.75, method="lucene", delta=0.5):
    """How much `count` >= 1 occurrences in a document of `length` tokens are worth; saturates as the count grows.

    formula: tf_part = count / (count + k1 * (1 - b + b * length / mean_length))

    >>> round(tf_part(1, length=5, mean_length=4), 4)      # toy: "cat" in document 1: 1 / (1 + 1.2 * 1.1875)
    0.4124
    """
    return TF_PART[method](count, 1 - b + b * length / mean_length, k1, delta)


def score_by_definition(query_tokens, position, token_lists, k1=1.2, b=0.75, method="lucene", delta=0.5):
    """BM25 as a loop over the definition: slow, short, and what the class below must equal.

    >>> toy = [["the", "cat", "sat", "on", "the", "mat"], ["the", "dog", "chased", "the", "cat"],
    ...        ["birds", "fly"], ["the", "quick", "dog"]]
    >>> [round(float(score_by_definition(["the", "cat", "dog"], i, toy)), 4) for i in range(4)]
    [0.457, 0.7799, 0.0, 0.5316]
    """
    document, n = token_lists[position], len(token_lists)
    mean_length = sum(len(tokens) for tokens in token_lists) / n
    score = 0.0
    for term in query_tokens:
        count = document.count(term)
        if count:                                                     # subtle: delta is for matches only
            df = sum(term in tokens for tokens in token_lists)        # documents, not occurrences
            score += idf(df, n, method) * tf_part(count, len(document), mean_length, k1, b, method, delta)
    return score


# -- The index: postings as arrays, weights computed once -------------------------------------------------------------


class TermScore(NamedTuple):
    """One row of `explain`: score = repeats * idf * tf_part, as the index keeps it (rounded to a multiple of 2^-40)."""

    term: str
    repeats: int        # in the question
    count: int          # in the document
    df: int
    idf: float
    tf_part: float
    score: float


class Term(NamedTuple):
    """What one term of a question brings: its postings, their greatest weight, and, if it is common, all n weights."""

    documents: np.ndarray
    weights: np.ndarray         # already times the term's repeats in the question
    ceiling: float
    row: np.ndarray | None      # [n], 0 where the term does not occur


class View(NamedTuple):
    """What may be known of, and its statistics."""

    visible: np.ndarray         # [n]
    n: int
    mean_length: float


class BM25:
    """A keyword index over `token_lists` (any iterable of lists of strings).

    Postings are sorted by term, then document; those of term t stand at starts[t]:starts[t + 1]. A posting takes 16
    bytes; a term of more than n / COMMON documents takes 8 * n more once asked for, its weights as a row.

        documents  [n_postings] int32    which document        weights     [n_postings] float64   idf * tf_part
        counts     [n_postings] int32    how often             starts      [n_terms + 1] int64
        lengths    [n] int64             tokens in each        vocabulary  term -> its number

    `visible` (a mask [n]) in the methods below makes n, df and mean_length those of the visible documents alone, so
    that a score betrays nothing of the others, and scores only them.

    Raises TypeError for a string where tokens are expected, ValueError for k1 or delta outside 0..1000, b outside 0..1,
    NaN or an unknown method. An empty corpus, document or question, or an unknown word, scores 0 and hits nothing.

    >>> from toy import DOCUMENTS
    >>> bm25 = BM25([tokenize(text) for text in DOCUMENTS])
    >>> positions, scores = bm25.top_k(["the", "cat", "dog"], k=10)
    >>> positions.tolist(), scores.round(4).tolist()        # "birds fly" has none of the words
    ([1, 3, 0], [0.7799, 0.5316, 0.457])
    """

    def __init__(self, token_lists, k1=1.2, b=0.75, method="lucene", delta=0.5):
        self.parameters = _check_parameters(k1, b, method, delta)
        self.vocabulary, self.lengths, self.documents, self.counts, self.starts = count_postings(token_lists)
        self.weights = self._weigh_all()
        self.terms = {}                                               # number -> Term, made when first asked for

    def scores(self, query_tokens, visible=None):
        """The score of every document, float64 [n]; 0 where no term of the question occurs."""
        return self._score(self._terms(query_tokens, self._view(visible)))

    def top_k_by_definition(self, query_tokens, k, allowed=None, visible=None):
        """`top_k` as it is meant: score everything, then rank the allowed documents that contain a term."""
        allowed = self._check_mask(allowed, "allowed")
        return self._score_and_rank(self._terms(query_tokens, self._view(visible)), k, allowed)

    def top_k(self, query_tokens, k, allowed=None, visible=None):
        """(positions, scores) of the k best documents that contain a term of the question, even at score 0.

        `allowed` (a mask [n]) only filters; the statistics stay. Order as in ranking.py. To the bit what
        `top_k_by_definition` returns, without touching the postings of common words.
        """
        return self.top_k_many([query_tokens], k, allowed, visible)[0]

    def top_k_many(self, queries, k, allowed=None, visible=None):
        """`top_k` for each of many questions (lists of tokens), as a list; they share one accumulator."""
        k, view = ranking.check_k(k), self._view(visible)
        allowed = self._check_mask(allowed, "allowed")
        found = allowed if view is None else view.visible if allowed is None else view.visible & allowed
        accumulator, results = np.zeros(len(self.lengths)), []
        for tokens in _check_tokens(queries):
            terms = self._terms(tokens, view, lazily=True)
            if sum(term.ceiling for term in terms) < EXACT:
                results.append(search(terms, k, accumulator, found))
            else:
                results.append(self._score_and_rank(self._terms(tokens, view), k, allowed))
        return results

    def explain(self, query_tokens, position, visible=None):
        """The score of one document taken apart: a TermScore for each distinct term of the question, in its order."""
        view = self._view(visible)
        position = ranking.check_k(position, least=0, name="position")
        if position >= len(self.lengths) or view is not None and not view.visible[position]:
            raise IndexError(f"no document at position {position}")
        rows, (n, mean_length) = [], self._statistics() if view is None else view[1:]
        for term, repeats in _count_repeats(query_tokens).items():
            documents, counts, weights = self._postings(self.vocabulary.get(term), view)
            here = documents == position
            df, count, score = len(documents), int(counts[here].sum()), repeats * float(weights[here].sum())
            rarity = float(idf(df, n, self.parameters["method"])) if df else 0.0
            part = float(tf_part(count, self.lengths[position], mean_length, **self.parameters)) if count else 0.0
            rows.append(TermScore(term, repeats, count, df, rarity, part, score))
        return rows

    def _score(self, terms):
        documents = np.concatenate([term.documents for term in terms] or [np.empty(0, np.int32)])
        weights = np.concatenate([term.weights for term in terms] or [np.empty(0)])
        return np.bincount(documents, weights, minlength=len(self.lengths))       # adds weights[i] at documents[i]: [n]

    def _score_and_rank(self, terms, k, allowed):
        contains, scores = np.zeros(len(self.lengths), bool), self._score(terms)
        for term in terms:
            contains[term.documents] = True
        positions = ranking.top_k(scores, k, contains if allowed is None else contains & allowed)
        return positions, scores[positions]

    def _terms(self, query_tokens, view, lazily=False):
        """The question's known terms, rarest first. `lazily`: see _lazy_term."""
        under_view, found = self._lazy_term if lazily else self._viewed_term, []
        for term, repeats in _count_repeats(query_tokens).items():
            if (number := self.vocabulary.get(term)) is None:
                continue
            each = self._term(number) if view is None else under_view(number, view)
            if repeats > 1:
                each = Term(each.documents, each.weights * repeats, each.ceiling * repeats, None)
            found.append((len(each.documents), number, each))
        return [each for _, _, each in sorted(found)]                  # numbers differ, so Terms are never compared

    def _term(self, number):
        each = self.terms.get(number)
        if each is None:
            documents, _, weights = self._postings(number)
            common = len(documents) * COMMON > len(self.lengths)
            row = np.bincount(documents, weights, minlength=len(self.lengths)) if common else None
            each = self.terms[number] = Term(documents, weights, float(weights.max()), row)
        return each

    def _viewed_term(self, number, view):
        documents, _, weights = self._postings(number, view)
        return Term(documents, weights, float(weights.max(initial=0)), None)

    def _lazy_term(self, number, view):
        """The same for `search`: postings of what is hidden are still there, and the ceiling is only a bound."""
        documents, counts, _ = self._postings(number)
        df = np.count_nonzero(view.visible.take(documents))
        if not df:
            return self._viewed_term(number, view)
        statistics = idf(df, view.n, self.parameters["method"]), view.mean_length
        weights = LazyWeights(lambda at: self._weigh(counts[at], self.lengths.take(documents[at]), *statistics))
        # no count is greater, no length smaller; subtle: rounding may lift a weight above that, by less than 2^-36
        [most] = self._weigh(counts.max(keepdims=True), max(self.lengths.min(), 1), *statistics)
        return Term(documents, weights, float(most) + 2.0**-36, None)

    def _postings(self, number, view=None):
        """(documents, counts, weights) of one term; under a view, weighed anew by what is visible."""
        rows = slice(0, 0) if number is None else slice(self.starts[number], self.starts[number + 1])
        documents, counts = self.documents[rows], self.counts[rows]
        if view is None:
            return documents, counts, self.weights[rows]
        kept = view.visible[documents]
        documents, counts = documents[kept], counts[kept]
        rarity = idf(len(documents), view.n, self.parameters["method"]) if len(documents) else 0.0
        return documents, counts, self._weigh(counts, self.lengths[documents], rarity, view.mean_length)

    def _statistics(self):
        return len(self.lengths), self.lengths.mean() if len(self.lengths) else 0.0

    def _view(self, visible):
        visible = self._check_mask(visible, "visible")
        n = np.count_nonzero(visible)
        return None if visible is None else View(visible, n, (self.lengths @ visible) / max(n, 1))

    def _weigh_all(self):
        df, (n, mean_length) = np.diff(self.starts), self._statistics()
        rarity = np.repeat(idf(df, n, self.parameters["method"]), df)               # [n_terms] -> [n_postings]
        blocks = [slice(start, start + 2**18) for start in range(0, len(rarity), 2**18)]         # which fit the cache
        return np.concatenate([self._weigh(self.counts[some], self.lengths[self.documents[some]], rarity[some],
                                           mean_length) for some in blocks] or [np.empty(0)])

    def _weigh(self, counts, lengths, rarity, mean_length):
        # subtle: multiples of 2^-40 add up to EXACT without rounding, so their order cannot matter, to the last bit
        return np.rint(rarity * tf_part(counts, lengths, mean_length, **self.parameters) * 2.0**40) / 2.0**40

    def _check_mask(self, mask, name):
        return None if mask is None else ranking.check_mask(mask, len(self.lengths), name)


# -- From a corpus to postings, and the checks -------------------------------------------------------------------------


def count_postings(token_lists):
    """(vocabulary, lengths, documents, counts, starts) of a corpus: all that a BM25 keeps but the weights."""
    vocabulary, term_ids, lengths = _number_terms(token_lists)
    n = len(lengths)
    keys = np.sort(term_ids * n + np.repeat(np.arange(n), lengths))    # [n_tokens], by term, then document
    first = np.flatnonzero(np.concatenate([keys[:1] >= 0, keys[1:] != keys[:-1]]))              # [n_postings]
    keys, counts = keys[first], np.diff(first, append=len(keys))       # of equal keys one, and how many there are
    starts = np.searchsorted(keys, np.arange(len(vocabulary) + 1) * n)              # [n_terms + 1]
    return vocabulary, lengths, (keys % max(n, 1)).astype(np.int32), counts.astype(np.int32), starts


def _number_terms(token_lists):
    """Give each term a number in order of appearance: (vocabulary, term ids [n_tokens], lengths [n])."""
    if isinstance(token_lists, str):
        raise TypeError("token_lists is one string: give a list of token lists, [tokenize(text) for text in texts]")
    vocabulary, ids, lengths = defaultdict(), [], []
    vocabulary.default_factory = vocabulary.__len__                   # setdefault(term, len(vocabulary)), twice as fast
    for tokens in token_lists:
        before = len(ids)
        ids.extend(map(vocabulary.__getitem__, _check_tokens(tokens)))
        lengths.append(len(ids) - before)
    if not all(isinstance(term, str) for term in vocabulary):
        raise TypeError("tokens must be strings")
    return dict(vocabulary), np.array(ids, np.int64), np.array(lengths, np.int64)


def _count_repeats(query_tokens):
    repeats = Counter(_check_tokens(query_tokens))
    if not all(isinstance(term, str) for term in repeats):
        raise TypeError("the question's tokens must be strings")
    return repeats


def _check_tokens(tokens):
    if isinstance(tokens, (str, bytes)):
        raise TypeError(f"{tokens[:40]!r} is one string, not a list of tokens: call tokenize on it first")
    if isinstance(tokens, Mapping):
        raise TypeError("tokens must be a list in which a term stands as often as it counts, not a dict")
    if tokens is None:
        raise TypeError("None is not a list of tokens")
    return tokens


def _check_parameters(k1, b, method, delta):
    if method not in IDF:
        raise ValueError(f"method must be one of {', '.join(IDF)}, not {method!r}")
    if not 0 <= k1 <= 1000:                                           # beyond that, weights fall below 2^-40
        raise ValueError(f"k1 must be a number from 0 to 1000, not {k1}")
    if not 0 <= b <= 1:
        raise ValueError(f"b must be in [0, 1], not {b}")
    if not 0 <= delta <= 1000:
        raise ValueError(f"delta must be a number from 0 to 1000, not {delta}")
    return {"k1": k1, "b": b, "method": method, "delta": delta}


# -- Tokens: an identifier is findable as a whole and by its parts ----------------------------------------------------


# `re` knows neither the capitals nor the combining marks of all scripts
UPPER = "".join(filter(str.isupper, map(chr, range(0x20000))))
MARKS = "".join(c for c in map(chr, range(0x300, 0x20000)) if unicodedata.category(c)[0] == "M")
UNSPACED = ("\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"                            # Thai, Lao, Burmese, Khmer
            "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff")   # kana, Han, hangul
LOWER = rf"(?:[^\W\d_{UPPER}{UNSPACED}]|[{MARKS}])"
WORD = rf"[^\W_](?:[^\W_]|[{MARKS}])*"
COMPOUND = re.compile(
    rf"(?:[^\W\d_]\.){{2,}}(?!\w)"                                    # U.S.
    rf"|{WORD}(?:[-_./\\:@&+#',]{{1,3}}{WORD})*(?:(?:\+\+|\#)(?!\w))?"   # INV-2291  0..16  don't  C++
)
PIECE = re.compile(WORD)                                              # INV-2291 -> INV, 2291
PART = re.compile(                                                     # parseHTMLPage2: parse HTML Page 2
    rf"[{UNSPACED}]+|\d+|(?:[{UPPER}][{MARKS}]*)+(?!{LOWER})|[{UPPER}]?{LOWER}+")
SAME = str.maketrans("’‐‑–−", "'----", "\u00ad\u200c\u200d\u2060")   # typographic twins; soft hyphen and joiners go


def tokenize(text):
    """The tokens of `text`: folded to one case and Unicode form, each compound followed by its parts.

    Parts end at punctuation, where letters meet digits, and at a capital in the middle; text written without spaces
    gives its character pairs and its characters. Parts count in a document's length, and a question for "INV-2291" asks
    for three terms. Raises TypeError for anything but a string.

    >>> tokenize("The invoice INV-2291 failed: ERR_CONN_RESET")
    ['the', 'invoice', 'inv-2291', 'inv', '2291', 'failed', 'err_conn_reset', 'err', 'conn', 'reset']
    >>> tokenize("camelCase, C++ and 0..16")
    ['camelcase', 'camel', 'case', 'c++', 'c', 'and', '0..16', '0', '16']
    >>> tokenize("東京都")
    ['東京都', '東京', '京都', '東', '京', '都']
    """
    if not isinstance(text, str):
        raise TypeError(f"tokenize takes a string, not {type(text).__name__}")
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(SAME))
    return [token for compound in COMPOUND.findall(text) for token in _with_parts(compound)]


@functools.lru_cache(maxsize=1 << 16)
def _with_parts(compound):
    tokens = [compound]
    for piece in PIECE.findall(compound):
        if piece != compound:
            tokens.append(piece)
        for part in PART.findall(piece):
            if part != piece:
                tokens.append(part)
            if len(part) > 1 and re.match(f"[{UNSPACED}]", part):
                tokens += [a + b for a, b in zip(part, part[1:]) if a + b != part] + list(part)
    # subtle: folding case may leave letter and accent apart, so the Unicode form is made once more
    return tuple(unicodedata.normalize("NFKC", token.casefold()) for token in tokens)


# -- For speed only: the same bits as top_k_by_definition. Skip it at first reading ------------------------------------
#    MaxScore: Turtle and Flood, "Query evaluation: strategies and optimizations", Information Processing and Management
#    31(6), 1995.

COMMON = 8              # a term in more than an eighth of all documents keeps its weights as a row, once asked for
EXACT = 2.0**13         # sums of multiples of 2^-40 are exact below this; a question that can score more is not pruned
LOOK_AHEAD = 4000       # postings of a term that are added up without asking whether they still matter


class LazyWeights:
    """Weights of a term's postings that are computed where they are asked for: weights[places], or times a number.

    Under a view none can be known before, and a common term is asked for few of its postings, or none.
    """

    def __init__(self, weigh):
        self.weigh = weigh

    def __getitem__(self, places):
        return self.weigh(places)

    def __mul__(self, factor):
        return LazyWeights(lambda places: self.weigh(places) * factor)


def search(terms, k, accumulator, allowed=None):
    """(positions, scores) of the k best documents for `terms`, rarest first.

    A document outside the postings added up so far can reach at most `rest`, the sum of the ceilings of the terms to
    come. Once k documents are sure to score more than that, no new document can get in: the remaining, common terms are
    only looked up for the candidates there are, and each look-up lets more of them go.

    `accumulator` is a row of n zeros, and is left as one.
    """
    terms = terms if k else []
    rest = list(itertools.accumulate([0.0] + [term.ceiling for term in reversed(terms)]))[::-1]       # [n_terms + 1]
    added, threshold = sum(len(term.documents) <= LOOK_AHEAD for term in terms), 0.0
    found = _add_up(terms[:added], accumulator, allowed)
    while True:
        scores = accumulator.take(found)                               # [n] -> [n_found]
        # subtle: a document stands in `found` up to `added` times, so the best k * added hold at least k documents
        if len(found) > k * added > 0:
            good = _kth_best(scores, k * added)
            threshold = max(threshold, good)
            if rest[added] >= threshold:
                best = _distinct(found, scores >= good)
                threshold = max(threshold, _look_ahead(terms[added:], best, accumulator.take(best), k))
        if added == len(terms) or rest[added] < threshold:
            break
        found = np.concatenate([found, _add_up(terms[added:added + 1], accumulator, allowed)])
        added += 1
    candidates = _distinct(found, scores >= threshold - rest[added])
    scores = accumulator.take(candidates)                              # [n] -> [n_candidates]
    accumulator[found] = 0
    for term, most in zip(terms[added:], rest[added:]):
        kept = (scores >= threshold - most).nonzero()[0]
        candidates, scores = candidates.take(kept), scores.take(kept)
        scores += _look_up(term, candidates)
    order = np.argsort(-scores, kind="stable")[:k]                     # candidates rise: ties go to the lower position
    return candidates[order].astype(np.int64), scores[order]


def _add_up(terms, accumulator, allowed):
    """Add all weights of `terms` to the accumulator; returns their documents, one after the other."""
    kept = [slice(None) if allowed is None else allowed.take(term.documents).nonzero()[0] for term in terms]
    documents = np.concatenate([term.documents[rows] for term, rows in zip(terms, kept)] or [np.empty(0, np.int32)])
    weights = np.concatenate([term.weights[rows] for term, rows in zip(terms, kept)] or [np.empty(0)])
    np.add.at(accumulator, documents, weights)
    return documents


def _distinct(found, mask):
    """The documents of `found` where `mask` is True, rising and without repeats."""
    documents = np.sort(found.take(mask.nonzero()[0]))                 # numpy.unique would hash: ten times the time
    return np.concatenate([documents[:1], documents[1:][documents[1:] != documents[:-1]]])


def _look_ahead(terms, candidates, scores, k):
    """A score that k documents are sure to reach: the k-th best of these candidates, with all terms looked up."""
    for term in terms:
        scores = scores + _look_up(term, candidates)
    return _kth_best(scores, k)


def _look_up(term, candidates):
    """The term's weight in each candidate, 0 where it does not occur: float64 [n_candidates]."""
    if term.row is not None:
        return term.row.take(candidates)
    places = term.documents.searchsorted(candidates)
    places[places == len(term.documents)] = 0
    return np.where(term.documents[places] == candidates, term.weights[places], 0.0)


def _kth_best(scores, k):
    return -np.partition(-scores, k - 1)[k - 1]         # subtle: from the low end, since many ties slow the other


if __name__ == "__main__":
    from toy import DOCUMENTS, QUESTION

    index = BM25([tokenize(text) for text in DOCUMENTS])
    query = tokenize(QUESTION)
    print(f"question: {QUESTION!r}; n = 4, mean length = 4, k1 = 1.2, b = 0.75")
    for position, score in zip(*index.top_k(query, k=4)):
        print(f"\n{score:.4f}  {DOCUMENTS[position]!r}")
        for row in index.explain(query, position):
            print(f"        {row.term:4} df {row.df}  count {row.count}"
                  f"  idf {row.idf:.4f} * tf part {row.tf_part:.4f} = {row.score:.4f}")
