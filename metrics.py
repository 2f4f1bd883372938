"""Step 4 of 22 — How good is a ranking, or a set of spans? Before: fusion.py. Next: trec.py.

One question is answered at a time: did the ranking find what helps, how much of it, and how far up?

    ranking    items, best first, no duplicates            toy: BM25_RANKING = [1, 3, 0]
    relevant   the set of items that help                  toy: {0, 1}
    gains      item -> grade, 0 for no help at all         toy: GAINS = {0: 1, 1: 2, 2: 0, 3: 0}
    k          how many places count, from 1
    rank       a place in the ranking, from 1
    qrels      {query: gains}, what people judged; a grade above 0 is relevant
    run        {query: ranking} or {query: {item: score}}, what a system returned
    span       (doc_id, start, end) in characters, `end` the    toy: (0, 4, 14) is "cat sat on" in document 0
               first that is outside
    n_shared   characters both retrieved and reference, once    toy: 7, when "the cat" and "cat sat" are retrieved
    evidence   for each piece that an answer needs, the spans   toy: "the cat" stands in documents 0 and 1:
               of its copies: any one of them will do           [[(0, 0, 7), (1, 15, 22)]]

hit asks whether anything relevant is in the first k, recall how much of it, precision what share of the places it
fills. Reciprocal rank looks at the first relevant item alone, average precision at each of them, nDCG at grades. The
definitions are those of trec_eval, whose manual is Buckley and Voorhees, "Retrieval System Evaluation" (TREC, 2005,
chapter 3); DCG is equation 2 of Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques" (TOIS
2002), with the logarithm of rank + 1, so that rank 1 counts in full.

Whether a whole chunk helps depends on where it was cut. Span measures do not: they count the characters that help and
the others that have to be read with them, so chunks of any size can be compared. The definitions are those of Smith and
Troynikov, "Evaluating Chunking Strategies for Retrieval" (Chroma, 2024), in characters where they say tokens.

Undefined is not 0: for a question that nothing answers, all of them raise ValueError, and `evaluate` counts it apart.

Not here: files of other tools (trec.py); answers and refusals (grading.py); quotes that are only nearly the same; tests
of more than two systems at once, whose p-values would have to be corrected for it.
"""

import bisect
import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ranking import check_k

# -- Sets: is it there? ------------------------------------------------------------------------------------------------


def hit_at_k(ranking, relevant, k):
    """1.0 if any relevant item is among the first k, else 0.0.

    >>> hit_at_k([1, 3, 0], {0, 1}, k=1)
    1.0
    """
    return float(_count_found(ranking, relevant, k) > 0)


def recall_at_k(ranking, relevant, k):
    """The share of the relevant items that is among the first k.

    formula: recall = found / n_relevant

    >>> recall_at_k([1, 3, 0], {0, 1}, k=2)
    0.5
    """
    relevant = _check_relevant(relevant)
    return _count_found(ranking, relevant, k) / len(relevant)


def precision_at_k(ranking, relevant, k):
    """The share of the first k places that is relevant; a ranking shorter than k has empty places.

    formula: precision = found / k

    >>> precision_at_k([1, 3, 0], {0, 1}, k=5)
    0.4
    """
    return _count_found(ranking, relevant, k) / k                      # subtle: k, not the length of a short ranking


def _count_found(ranking, relevant, k):
    k, items, relevant = check_k(k, least=1), _check_ranking(ranking), _check_relevant(relevant)
    return sum(item in relevant for item in items[:k])


# -- Ranks: how far up is it? ------------------------------------------------------------------------------------------


def reciprocal_rank(ranking, relevant):
    """1 / rank of the first relevant item; 0.0 if there is none in the ranking.

    formula: reciprocal_rank = 1 / first_rank

    >>> reciprocal_rank([3, 1, 0], {0, 1})
    0.5
    """
    relevant = _check_relevant(relevant)
    for rank, item in enumerate(_check_ranking(ranking), start=1):
        if item in relevant:
            return 1 / rank
    return 0.0


def average_precision(ranking, relevant):
    """The precision at the rank of each relevant item, averaged over all relevant items, found or not.

    formula: average_precision = sum(precisions) / n_relevant

    >>> average_precision([1, 3, 0], {0, 1}) == (1/1 + 2/3) / 2
    True
    """
    relevant, found, total = _check_relevant(relevant), 0, 0.0
    for rank, item in enumerate(_check_ranking(ranking), start=1):
        if item in relevant:
            found += 1
            total += found / rank
    return total / len(relevant)


# -- Grades: how much does each help? ----------------------------------------------------------------------------------

GAIN = {"linear": lambda grade: grade, "exponential": lambda grade: 2**grade - 1}


def dcg(gains):
    """Discounted cumulative gain of gains in rank order: a gain at rank r is divided by log2(r + 1).

    formula: dcg = sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))

    >>> dcg([2, 0, 1]) == 2 / math.log2(2) + 0 / math.log2(3) + 1 / math.log2(4)
    True
    """
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def ndcg_at_k(ranking, gains, k, gain="linear"):
    """DCG of the first k places over that of the best possible ranking; unjudged items gain nothing.

    `gain` is "linear" (the grade itself, as trec_eval) or "exponential" (2^grade - 1; Burges et al., ICML 2005).
    formula: ndcg = dcg(ranking) / dcg(ideal)

    >>> round(ndcg_at_k([1, 3, 0], {0: 1, 1: 2, 2: 0, 3: 0}, k=3), 4)      # (2/1 + 1/2) / (2/1 + 1/log2(3))
    0.9502
    """
    k, items, gained = check_k(k, least=1), _check_ranking(ranking), _apply_gain(gains, gain)
    ideal = sorted(gained.values(), reverse=True)[:k]                  # subtle: all judged items, cut at k too
    if not any(ideal):
        raise ValueError("no item has a grade above 0: nDCG is undefined")
    return dcg([gained.get(item, 0) for item in items[:k]]) / dcg(ideal)


def _apply_gain(gains, gain):
    if gain not in GAIN:
        raise ValueError(f"gain must be one of {', '.join(GAIN)}, not {gain!r}")
    return {item: GAIN[gain](float(grade)) for item, grade in _check_grades(gains).items()}


def _check_grades(gains):
    if not isinstance(gains, Mapping):
        raise TypeError(f"gains must be a dict of item -> grade, not {type(gains).__name__}")
    for item, grade in gains.items():
        if grade != 0 and not 1e-9 <= grade <= 1000:                   # so that 2**grade - 1 is above 0, and a float
            raise ValueError(f"the grade of {item!r} must be 0, or a number from 1e-9 to 1000, not {grade}")
    return gains


# -- Many questions ----------------------------------------------------------------------------------------------------


class Judged(NamedTuple):
    """One ranking, reduced to what the measures below need of it."""

    ranks: list         # of the relevant items in it, rising
    grades: list        # of the same items
    ideal: list         # the grades of all relevant items, falling

    def found(self, k):
        """How many relevant items are among the first k."""
        return bisect.bisect_right(self.ranks, k)

    def ndcg(self, k, gain):
        """nDCG@k, with `gain` a function of the grade."""
        top = zip(self.ranks[:self.found(k)], self.grades)
        return math.fsum(gain(grade) / math.log2(rank + 1) for rank, grade in top) / dcg(map(gain, self.ideal[:k]))


# The functions above once more, as they are computed for many questions: each ranking is gone through once.
MEASURES = {
    "hit": lambda judged, k: float(judged.found(k) > 0),
    "recall": lambda judged, k: judged.found(k) / len(judged.ideal),
    "precision": lambda judged, k: judged.found(k) / k,
    "reciprocal_rank": lambda judged, k: 1 / judged.ranks[0] if judged.found(k) else 0.0,
    "average_precision": lambda judged, k: sum(
        found / rank for found, rank in enumerate(judged.ranks[:judged.found(k)], start=1)) / len(judged.ideal),
    "ndcg": lambda judged, k: judged.ndcg(k, GAIN["linear"]),
    "ndcg_exponential": lambda judged, k: judged.ndcg(k, GAIN["exponential"]),
}
NEED_K = {"hit", "recall", "precision"}
DEFAULT = ("hit@5", "recall@5", "precision@5", "reciprocal_rank", "average_precision", "ndcg@5")


class Evaluation(NamedTuple):
    """per_query[measure][query] is a number, or None where undefined; means[measure] is over the defined ones (None if
    there are none); undefined is the number of judged queries without a relevant item."""

    per_query: dict
    means: dict
    undefined: int


def evaluate(run, qrels, measures=DEFAULT):
    """Every measure for every judged query, and the means.

    A measure is a name of MEASURES, cut at k as in "recall@5"; without "@k" the whole ranking counts (hit, recall and
    precision need a k). A judged query that the run does not answer counts as 0; a query that nobody judged is ignored.
    A dict of scores is ranked first: higher score, then smaller item. Raises ValueError for no judged query, an unknown
    measure, k < 1, duplicates, negative grades, NaN.

    >>> result = evaluate({"q1": [1, 3, 0]}, {"q1": {0: 1, 1: 2}, "q2": {5: 1}, "q3": {}}, ["recall@2", "ndcg@3"])
    >>> result.means["recall@2"], result.undefined      # q1 finds 1 of 2, q2 is unanswered, q3 has no answer at all
    (0.25, 1)
    """
    if not qrels:
        raise ValueError("qrels holds no judged query: there is nothing to measure")
    parsed = {measure: _parse(measure) for measure in measures}
    per_query, undefined = {measure: {} for measure in parsed}, 0
    for query, gains in qrels.items():
        judged = _judge(_as_ranking(run.get(query, [])), gains)
        undefined += not judged.ideal
        for measure, (function, k) in parsed.items():
            per_query[measure][query] = function(judged, k) if judged.ideal else None
    means = {measure: _mean(values.values()) for measure, values in per_query.items()}
    return Evaluation(per_query, means, undefined)


def _judge(items, gains):
    # subtle: a grade of 0 is judged, but not relevant
    relevant = {item: float(grade) for item, grade in _check_grades(gains).items() if grade > 0}
    ranks = [rank for rank, item in enumerate(items, start=1) if item in relevant]
    return Judged(ranks, [relevant[items[rank - 1]] for rank in ranks], sorted(relevant.values(), reverse=True))


def _parse(measure):
    name, at, k = measure.partition("@")
    if name not in MEASURES or (at and not k.isdecimal()) or (name in NEED_K and not at):
        raise ValueError(f"unknown measure {measure!r}: use one of {', '.join(MEASURES)}, cut at k as in 'recall@5'")
    return MEASURES[name], check_k(int(k), least=1) if at else sys.maxsize      # without k: the whole ranking


def _as_ranking(answer):
    """A ranking as it is; {item: score} sorted by score falling, then item rising."""
    if not isinstance(answer, Mapping):
        return _check_ranking(answer)
    scores = answer
    if set(map(type, answer.values())) != {float}:                     # subtle: 0.1 and a float32's 0.1 count as equal
        scores = dict(zip(answer, map(float, answer.values())))
    if not all(map(math.isfinite, scores.values())):
        raise ValueError("a score in the run is NaN or infinite")
    items = sorted(scores) if len(set(scores.values())) < len(scores) else scores     # the order of items is for ties
    return sorted(items, key=scores.get, reverse=True)                 # stable, and reverse=True keeps ties in order


def _mean(values):
    defined = [value for value in values if value is not None]
    return math.fsum(defined) / len(defined) if defined else None


def _check_relevant(relevant):
    if isinstance(relevant, (str, bytes, Mapping)):
        raise TypeError(f"relevant must be a set of items, not a {type(relevant).__name__}")
    relevant = set(relevant)
    if not relevant:
        raise ValueError("no item is relevant: the measure is undefined")
    return relevant


def _check_ranking(ranking):
    if isinstance(ranking, (str, bytes, Mapping, set, frozenset)):
        raise TypeError(f"a ranking must be a list of items, best first, not a {type(ranking).__name__}")
    items = list(ranking)
    if len(set(items)) < len(items):
        raise ValueError("the ranking holds an item twice: it would be counted twice")
    return items


# -- Spans: how much of the text that helps was retrieved, and how much else? -----------------------------------------


def n_shared_by_definition(retrieved_spans, reference_spans):
    """The definition, as sets: how many characters are both retrieved and reference; no character counts twice.

    >>> n_shared_by_definition([(0, 0, 7), (0, 4, 11)], [(0, 4, 14)])      # "cat sat"; its "cat" was retrieved twice
    7
    """
    retrieved, references = ({(doc_id, i) for doc_id, start, end in spans for i in range(start, end)}
                             for spans in (retrieved_spans, reference_spans))
    return len(retrieved & references)


def span_recall(retrieved_spans, reference_spans):
    """The share of the reference characters that was retrieved; 0.0 if nothing was.

    References that overlap one another are their union: a character is needed once, however often it was marked
    (Chroma's own code adds their lengths up, so that such a question cannot reach 1).
    Raises ValueError if there is no reference, or for what is no span: negative, empty, reversed, not three values;
    TypeError for a start or end that is no whole number (2.5, NaN, True).
    formula: span_recall = n_shared / n_reference

    >>> span_recall([(0, 0, 7), (0, 4, 11)], [(0, 4, 14)])                 # "the cat", "cat sat" for "cat sat on"
    0.7
    """
    retrieved, references = _check_spans(retrieved_spans), _check_references(reference_spans)
    return _n_shared(retrieved, references) / _n_covered(references)


def span_precision(retrieved_spans, reference_spans):
    """The share of the retrieved characters that is reference, where every retrieved span counts in full.

    So what two retrieved spans have in common is paid for twice and found once, and a span that is retrieved twice
    halves the precision: the reader reads it twice. Raises as `span_recall`, and ValueError if nothing was retrieved.
    formula: span_precision = n_shared / n_retrieved

    >>> span_precision([(0, 0, 7), (0, 4, 11)], [(0, 4, 14)])              # 7 / (7 + 7)
    0.5
    """
    retrieved, references = _check_spans(retrieved_spans), _check_references(reference_spans)
    if not retrieved:
        raise ValueError("nothing was retrieved: precision is undefined")
    return _n_shared(retrieved, references) / _n_characters(retrieved)


def span_iou(retrieved_spans, reference_spans):
    """Intersection over union as Chroma counts it; 0.0 if nothing was retrieved. Raises as `span_recall`.

    Retrieved spans count in full, as in precision, so where they overlap one another the lower part is more than the
    size of the union, and the value smaller.
    formula: span_iou = n_shared / (n_retrieved + n_reference - n_shared)

    >>> span_iou([(0, 0, 7), (0, 4, 11)], [(0, 4, 14)]) == 7 / (14 + 10 - 7)
    True
    """
    retrieved, references = _check_spans(retrieved_spans), _check_references(reference_spans)
    n_shared = _n_shared(retrieved, references)
    return n_shared / (_n_characters(retrieved) + _n_covered(references) - n_shared)


def precision_omega(all_chunk_spans, reference_spans):
    """The precision of a retriever that misses nothing: it returns each chunk that overlaps a reference, and no other.

    It judges the cutting alone. What the chunks have in common counts once here (n_union is the length of the union of
    those chunks and the references), and a reference that no chunk covers stays in n_union. A chunk that only touches
    a reference shares nothing with it and is left out, though Chroma's own code takes it in. Finer cuts never lower it:
    chunks of one character have a precision-omega of 1, so read it beside recall. Raises as `span_recall`.
    formula: precision_omega = n_shared / n_union

    >>> two_words = [(0, 0, 7), (0, 4, 11), (0, 8, 14), (0, 12, 18), (0, 15, 22)]     # "the cat", "cat sat", ...
    >>> precision_omega(two_words, [(0, 4, 14)]) == 10 / 18                # all but the last, "the mat"
    True
    """
    chunks, references = _check_spans(all_chunk_spans), _check_references(reference_spans)
    hits = [chunk for chunk in chunks if any(_overlap(chunk, reference) for reference in references)]
    return _n_shared(hits, references) / _n_covered(hits + references)


def _n_shared(retrieved, references):
    """What the two have in common, without a set of characters: |A & B| = |A| + |B| - |A or B|."""
    return _n_covered(retrieved) + _n_covered(references) - _n_covered(retrieved + references)


def _n_covered(spans):
    """Characters of the union: from left to right, each span adds what lies beyond all that came before."""
    total, reached = 0, {}
    for doc_id, start, end in sorted(spans, key=lambda span: span[1]):
        before = reached.get(doc_id, 0)
        reached[doc_id] = max(before, end)
        total += reached[doc_id] - max(before, start)
    return total


def _n_characters(spans):
    return sum(end - start for _, start, end in spans)


def _overlap(span, other):
    (doc_id, start, end), (other_id, other_start, other_end) = span, other
    return doc_id == other_id and start < other_end and other_start < end     # subtle: <, since `end` is outside


def _check_spans(spans):
    checked = []
    for span in spans:
        try:
            doc_id, start, end = span
            start = check_k(start, name="start")
            end = check_k(end, least=start + 1, name="end")
        except (TypeError, ValueError) as error:
            raise type(error)(f"{span!r} is no span (doc_id, start, end): {error}") from None
        if doc_id is None or doc_id != doc_id:                         # NaN equals nothing, itself neither
            raise ValueError(f"{span!r} is no span (doc_id, start, end): its document has no id")
        checked.append((doc_id, start, end))
    return checked


def _check_references(spans):
    references = _check_spans(spans)
    if not references:
        raise ValueError("there is no reference span: the measure is undefined")
    return references


# -- Evidence: a text that stands in several places helps from any of them ---------------------------------------------


def find_copies(quote, texts):
    """The spans of every place where `quote` stands, verbatim, in `texts`, a dict of doc_id -> text.

    Copies may overlap: "aa" stands twice in "aaa". Give it only the texts that the user may see. Raises ValueError for
    an empty quote and for one that stands nowhere, which is a mistake in the labels.

    >>> find_copies("the cat", {0: "the cat sat on the mat", 1: "the dog chased the cat"})
    [(0, 0, 7), (1, 15, 22)]
    """
    if not quote:
        raise ValueError("the quote is empty: it would stand everywhere")
    copies = []
    for doc_id, text in texts.items():
        start = text.find(quote)
        while start >= 0:
            copies.append((doc_id, start, start + len(quote)))
            start = text.find(quote, start + 1)                        # subtle: + 1, not + len: copies may overlap
    if not copies:
        raise ValueError(f"the quote {quote!r} stands in none of the texts")
    return copies


def evidence_recall(retrieved_spans, evidence):
    """For each piece of evidence the span recall of its best-covered copy; the mean over the pieces.

    `evidence` holds a list of spans for each piece that is needed, its copies. Of a group of quotes one is enough, so
    the copies of all of them are one piece. Each piece weighs the same, however long; halves of two copies do not make
    a whole. With one piece that stands once, this is `span_recall`; it raises the same, and ValueError for no evidence.
    formula: evidence_recall = sum(max(shares) for shares in shares_of_copies) / n_pieces

    >>> evidence_recall([(1, 0, 22)], [[(0, 0, 7), (1, 15, 22)]])          # document 1, whole: it has the second copy
    1.0
    """
    retrieved = _check_spans(retrieved_spans)
    best = [max(span_recall(retrieved, [copy]) for copy in copies) for copies in _check_evidence(evidence)]
    return math.fsum(best) / len(best)


def evidence_precision(retrieved_spans, evidence):
    """The span precision with every copy of every piece as a reference: no copy is beside the point.

    Not the best copies alone, as in recall: whoever retrieves both copies has retrieved nothing that does not help.

    >>> evidence_precision([(1, 0, 22)], [[(0, 0, 7), (1, 15, 22)]]) == 7 / 22
    True
    """
    return span_precision(retrieved_spans, [copy for copies in _check_evidence(evidence) for copy in copies])


def _check_evidence(evidence):
    pieces = [_check_references(copies) for copies in evidence]
    if not pieces:
        raise ValueError("there is no evidence: the measure is undefined")
    return pieces


# -- Two systems: is the difference more than the luck of these questions? ---------------------------------------------

BLOCK = 1_000_000     # picks held at once, 8 bytes each


class PairedBootstrap(NamedTuple):
    """What `paired_bootstrap` returns."""

    difference: float   # mean of a - mean of b: above 0, a is better
    low: float          # the interval of the difference, from here ...
    high: float         # ... to here
    p_value: float      # how often luck alone gives a difference as large, in either direction; never 0
    n_queries: int      # how many queries the two were compared on


def paired_bootstrap(a, b, resamples=10_000, confidence=0.95, seed=0):
    """Compare two systems on the same queries: `a` and `b` hold one value for each, in the same order or by query.

    A resample draws as many queries as there are, with replacement, and takes the mean of their differences. The
    percentile interval holds the middle share `confidence` of these means (Efron and Tibshirani, "An Introduction to
    the Bootstrap", 1993, chapter 13; it is a little too narrow for few queries). The test asks what the means would be
    if the systems were equal: it shifts the differences to mean 0 (the same book, chapter 16; Sakai, "Evaluating
    evaluation metrics based on the bootstrap", SIGIR 2006) and counts the resampled means at least as far from 0 as
    the observed one. Sakai divides each mean by its standard error; here it is the mean itself, as in Smucker, Allan
    and Carterette (CIKM 2007). The 1s count the observed sample, so that no p-value is 0 (Phipson and Smyth, 2010).
    formula: p_value = (count + 1) / (resamples + 1)

    The same seed gives the same result. Raises ValueError for fewer than 5 queries, different queries, None, NaN or
    infinity: leave queries where a measure is undefined out of both; also for resamples < 1, confidence not in (0, 1).

    >>> result = paired_bootstrap([1, 1, 1, 1, 0, 1], [0, 0, 1, 0, 1, 0])
    >>> result.difference == 5/6 - 2/6, result.low < 0 < result.high, result.p_value > 0.05        # not yet shown
    (True, True, True)
    """
    a, b = _pair(a, b)
    resamples = check_k(resamples, least=1, name="resamples")
    if not 0 < confidence < 1:                                         # False for NaN
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    difference = float((a - b).mean())
    means = _resampled_means(a - b, resamples, np.random.default_rng(seed))      # [resamples]
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    rounding = 16 * np.finfo(float).eps * max(abs(a).max(), abs(b).max())
    return PairedBootstrap(difference, float(low), float(high), _p_value(means, difference, rounding), len(a))


def _resampled_means(differences, resamples, random):
    n, means = len(differences), np.empty(resamples)
    rows = max(1, BLOCK // n)                                          # so many resamples fit into one block
    for first in range(0, resamples, rows):
        block = means[first:first + rows]
        picks = random.integers(n, size=(len(block), n))
        block[:] = differences[picks].mean(axis=1)                     # [rows, n] -> [rows]
    return means


def _p_value(means, difference, rounding):
    shifted = means - difference                                       # the means of differences shifted to mean 0
    count = int((abs(shifted) >= abs(difference) - rounding).sum())    # subtle: a tie counts, however it was rounded
    return (count + 1) / (len(means) + 1)


def _pair(a, b):
    """The values as two arrays [n_queries], query by query."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            raise ValueError(f"only one system has a value for {sorted(a.keys() ^ b.keys(), key=str)[:5]}")
        a, b = a.values(), [b[query] for query in a]                   # subtle: by query, not by place in the dict
    a, b = _check_values(a), _check_values(b)
    if len(a) != len(b):
        raise ValueError(f"the systems must have answered the same queries, not {len(a)} and {len(b)}")
    if len(a) < 5:
        raise ValueError(f"{len(a)} queries are too few to resample: at least 5 are needed")
    return a, b


def _check_values(values):
    if isinstance(values, (str, bytes, Mapping, set, frozenset)):
        raise TypeError(f"values must be two lists in query order or two dicts, not a {type(values).__name__}")
    values = np.asarray(list(values))
    if values.ndim != 1 or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        raise ValueError("each query needs one finite number: leave undefined ones (None, NaN) out of both systems")
    if (abs(values.astype(float)) > 1e100).any():
        raise ValueError("values above 1e100 cannot be added up: scale both systems down")
    return values.astype(float)


if __name__ == "__main__":
    from toy import BM25_RANKING, DENSE_RANKING, DOCUMENTS, GAINS

    rankings = {"keywords": BM25_RANKING, "vectors": DENSE_RANKING, "fused": [1, 0, 3, 2]}
    print(f"gains: {GAINS}; best possible DCG@3 = 2/log2(2) + 1/log2(3) = {dcg([2, 1]):.4f}")
    for name, items in rankings.items():
        terms = " + ".join(f"{GAINS[item]}/log2({rank + 1})" for rank, item in enumerate(items[:3], start=1))
        print(f"{name:9} {items!s:13} recall@2 {recall_at_k(items, {0, 1}, 2):.2f}  AP "
              f"{average_precision(items, {0, 1}):.4f}  nDCG@3 {ndcg_at_k(items, GAINS, 3):.4f}  DCG@3 = {terms}")

    retrieved, references = [(0, 0, 7), (0, 4, 11)], [(0, 4, 14)]
    shown = {name: " + ".join(repr(DOCUMENTS[doc_id][start:end]) for doc_id, start, end in spans)
             for name, spans in {"retrieved": retrieved, "reference": references}.items()}
    print(f"\nretrieved {shown['retrieved']}, reference {shown['reference']}: 7 characters are shared")
    print(f"recall 7/10 = {span_recall(retrieved, references):.2f}  precision 7/(7 + 7) = "
          f"{span_precision(retrieved, references):.2f}  IoU 7/(14 + 10 - 7) = {span_iou(retrieved, references):.2f}")
    evidence = [find_copies("the cat", dict(enumerate(DOCUMENTS)))]
    print(f"'the cat' stands at {evidence[0]}: document 1 alone has recall "
          f"{evidence_recall([(1, 0, 22)], evidence):.2f}, precision 7/22 = "
          f"{evidence_precision([(1, 0, 22)], evidence):.2f}")
    first, second = [1, 1, 1, 1, 0, 1], [0, 0, 1, 0, 1, 0]
    result = paired_bootstrap(first, second)
    print(f"6 questions, hits {first} against {second}: difference 5/6 - 2/6 = {result.difference:.2f}, "
          f"95% from {result.low:.2f} to {result.high:.2f}, p = {result.p_value:.2f}")
