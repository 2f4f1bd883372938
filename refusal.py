"""Beside step 18 — When is it better not to answer? A threshold, what it costs, and what no threshold can do.

Whoever never says "I could not find this" cannot be trusted when he does find something. Two places may say it without
asking a model: the guard, if even the best chunk that was found fits the question badly, and the extractive reader, if
its best sentence does. Both have a threshold, and a threshold is measured, not chosen: on labelled questions, some with
an answer and some without, for one scorer, since the scores of another have another scale.

    score        MaxSim of the best chunk (guard), or of the best unit (reader)
    good         True where the score should pass                 toy: scores (0.9, 0.6, 0.7, 0.2), good (1, 1, 0, 0)
    threshold    refuse below it                                  toy: 0.4, between 0.2 and 0.6
    AUROC        how often a good one scores more than another; 0.5 is chance             toy: 3 of 4 pairs: 0.75
    far, near    unanswerable questions about something else, and about these very texts. Near ones fit as well as those
                 with an answer: no threshold parts them, so none is calibrated on them, and only a model that reads can
                 refuse them
    error        the mean of two shares: good ones that are refused, others that pass     toy: (0 + 1/2) / 2 = 0.25

The error is cross-validated: each tenth of the questions is judged by a threshold that has not seen it. `python
refusal.py` measures all this anew and writes data/thresholds.json and results/refusal.md.

Not here: whether an answer is right; a model's own refusal (answering.py).
"""

import json
import re
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import bm25
import chunking
import corpus
import documents
import embedding
import eval_questions
import metrics
import queries
import reader
import token_store
import vector_cache
from search import search

THRESHOLDS = Path(__file__).parent / "data" / "thresholds.json"
RESULT = Path(__file__).parent / "results" / "refusal.md"
FOLDS = 10


class Calibrated(NamedTuple):
    """A threshold and its cross-validated errors, with the number of questions on either side."""

    threshold: float
    error: float               # mean of the next two
    refused: float             # share of the good ones below the threshold
    passed: float              # share of the others that reach it
    n_good: int
    n_other: int

    @property
    def recall(self):
        """Of the others, the share that is refused."""
        return 1 - self.passed

    @property
    def precision(self):
        """Of what is refused, the share that is no good one; NaN if nothing is refused."""
        right, wrong = self.n_other * self.recall, self.n_good * self.refused
        return right / (right + wrong) if right + wrong else float("nan")


def auroc(good, other):
    """How often a score of `good` is greater than one of `other`; ties count half. ValueError if either is empty.

    formula: auroc = (n_greater + n_equal / 2) / (n_good * n_other)

    >>> auroc([0.9, 0.6], [0.7, 0.2])
    0.75
    """
    good, other = _checked(good), _checked(other)
    if not len(good) or not len(other):
        raise ValueError("AUROC compares good ones with others: there must be some of each")
    difference = good[:, None] - other[None, :]                        # [n_good, n_other]
    return float((difference > 0).mean() + (difference == 0).mean() / 2)


def best_threshold(scores, good):
    """The threshold of least error on these scores: in the middle between two, or beyond all; of several the lowest.

    >>> best_threshold([0.9, 0.6, 0.7, 0.2], [True, True, False, False])
    0.4
    """
    scores, good = _checked(scores), np.asarray(good, bool)
    if scores.shape != good.shape:
        raise ValueError(f"{len(scores)} scores need as many labels, not {len(good)}")
    if good.all() or not good.any():
        raise ValueError("a threshold parts good ones from others: there must be some of each")
    values = np.unique(scores)
    candidates = np.array([values[0], *(values[1:] + values[:-1]) / 2, np.nextafter(values[-1], np.inf)])
    errors = [sum(_errors(scores, good, each)) for each in candidates]
    return float(candidates[np.argmin(np.round(errors, 12))])


def calibrate(scores, good, folds=FOLDS, seed=0):
    """The best threshold for these scores, and the error of thresholds that did not see what they judge: Calibrated.

    Raises ValueError for NaN, labels that do not fit, or fewer good ones or others than folds.
    """
    scores, good = _checked(scores), np.asarray(good, bool)
    threshold = best_threshold(scores, good)
    if min(good.sum(), (~good).sum()) < folds:
        raise ValueError(f"{folds} folds need as many good ones and others, not {good.sum()} and {(~good).sum()}")
    random, fold = np.random.default_rng(seed), np.empty(len(scores), int)
    for kind in (good, ~good):                                         # as many of each in every fold
        fold[random.permutation(np.flatnonzero(kind))] = np.arange(kind.sum()) % folds
    passes = np.empty(len(scores), bool)
    for each in range(folds):
        passes[fold == each] = scores[fold == each] >= best_threshold(scores[fold != each], good[fold != each])
    refused, passed = float((~passes[good]).mean()), float(passes[~good].mean())
    return Calibrated(threshold, (refused + passed) / 2, refused, passed, int(good.sum()), int((~good).sum()))


def _errors(scores, good, threshold):
    """(share of the good ones below, share of the others that reach it)."""
    return (scores[good] < threshold).mean(), (scores[~good] >= threshold).mean()


def _checked(scores):
    scores = np.asarray(scores, float)
    if not np.isfinite(scores).all():
        raise ValueError("a score is NaN or infinite")
    return scores


def threshold(scorer, model, path=THRESHOLDS):
    """The calibrated threshold of a scorer, "maxsim" or "reader", for an embedding model (its name).

    Another model's cosines have another scale: then None, with a warning. ValueError for another scorer.
    """
    kept = json.loads(path.read_text(encoding="utf-8"))
    found = kept["thresholds"]
    if model != kept["model"]:
        warnings.warn(f"the thresholds were calibrated for {kept['model']}, not {model}: nothing is refused for its "
                      "score; calibrate them on your own questions (refusal.calibrate)", stacklevel=3)
        return None
    if scorer not in found:
        raise ValueError(f"no threshold was calibrated for {scorer!r}, only for {', '.join(found)}; scorers differ in "
                         "scale, so calibrate one on labelled questions (refusal.calibrate)")
    return found[scorer]["threshold"]


# -- What else could tell? Reading without a model ---------------------------------------------------------------------

NUMBER = re.compile(r"(?i)\bhow (?:many|much|large|big|long|old|far|often)\b|\bwhen\b|\baverage\b|\bwhich year\b")


def signals(question, hits, index, best):
    """What a reader without understanding can look at: {name: number}, more speaks for an answer.

    hits   of the question, best first            best   the reader's best candidate, a Quote
    """
    content = set(queries.content(question))
    words = [found for found in bm25.COMPOUND.finditer(question) if found[0] in content]
    matches = np.array([_word_matches(question, words, index, hit) for hit in hits])       # [n_hits, n_words]
    rarest = int(np.argmin([_documents(index, word[0]) for word in words])) if words else 0
    return {"best chunk, MaxSim": hits[0].score, "best sentence, MaxSim": best.score,
            "least of the question's content words, in the chunk that has most of it": float(matches.min(axis=1).max()),
            "the rarest content word, in any chunk": float(matches[:, rarest].max()),
            "a number in the best sentence, if one is asked for": float(
                not NUMBER.search(question) or bool(re.search(r"\d", best.text)))}


def _word_matches(question, words, index, hit):
    """How well each of the question's words is matched in a chunk: the mean over its pieces of their best cosine."""
    vectors, offsets = index.embedder.token_vectors(question, "query")
    asked = token_store.word_vectors(vectors, offsets)
    offsets = offsets[offsets[:, 1] > offsets[:, 0]]
    [found] = index.token_store.vectors([chunking.searched_text(hit.found)])
    best = (asked @ found.astype(np.float32).T).max(axis=1)            # [n_pieces]
    rows = [(offsets[:, 0] >= word.start()) & (offsets[:, 1] <= word.end()) for word in words]
    return [float(best[row].mean()) if row.any() else 0.0 for row in rows] or [float(best.mean())]


def _documents(index, word):
    """In how many chunks the word stands."""
    numbers = [index.postings.vocabulary.get(token) for token in bm25.tokenize(word)]
    return min((int(index.postings.starts[number + 1] - index.postings.starts[number]) if number is not None else 0
                for number in numbers), default=0)


# -- The measurement ---------------------------------------------------------------------------------------------------


def measure(questions, index, texts):
    """One row for each labelled question: its kind, its signals, and whether the reader's best sentence is evidence."""
    rows = []
    for each in tqdm(questions, desc="questions", leave=False, disable=None):
        hits = search(each["question"], index)
        [best, *_] = reader.candidates(each["question"], [hit.chunk for hit in hits], index.embedder)
        kind = each["type"].removeprefix("unanswerable-") if not each["evidence"] else "answerable"
        rows.append((kind, signals(each["question"], hits, index, best), _is_evidence(best, hits, each, texts)))
    return rows


def _is_evidence(quote, hits, question, texts):
    """Does the quote share at least half of the shorter one with a piece of the evidence?"""
    chunk = hits[quote.passage].chunk
    start, end = chunk["start"] + quote.start, chunk["start"] + quote.end
    copies = [copy for each in question["evidence"]
              for copy in metrics.find_copies(each["quote"], {each["doc_id"]: texts[each["doc_id"]]})]
    return any(doc_id == chunk["doc_id"] and 2 * (min(b, end) - max(a, start)) >= min(b - a, end - start)
               for doc_id, a, b in copies)


def report(rows):
    """(Markdown, {scorer: Calibrated}): what each signal tells, and the two thresholds."""
    kinds = np.array([kind for kind, _, _ in rows])
    lines = ["| signal | AUROC, far | AUROC, near |", "|---|---:|---:|"]
    for name in rows[0][1]:
        scores = np.array([found[name] for _, found, _ in rows])
        far, near = (auroc(scores[kinds == "answerable"], scores[kinds == kind]) for kind in ("far", "near"))
        lines.append(f"| {name} | {far:.3f} | {near:.3f} |")
    chunk, sentence = (np.array([found[name] for _, found, _ in rows]) for name in list(rows[0][1])[:2])
    right, clear = np.array([right for *_, right in rows]), kinds != "near"
    found = {"maxsim": calibrate(chunk[clear], kinds[clear] == "answerable"),
             "reader": calibrate(sentence[clear], right[clear])}
    lines += ["", "| threshold | value | good refused | others passed | error | precision | recall | good, others |",
              "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, each in found.items():
        numbers = (each.threshold, each.refused, each.passed, each.error, each.precision, each.recall)
        lines.append(" | ".join([f"| {name}", *map("{:.3f}".format, numbers), f"{each.n_good}, {each.n_other} |"]))
    below = {kind: chunk[kinds == kind] < found["maxsim"].threshold for kind in ("answerable", "far", "near")}
    shares = ", ".join(f"{int(each.sum())} of {len(each)} {kind}" for kind, each in below.items())
    lines += ["", f"At its threshold the guard refuses {shares}. Near ones took no part in the calibration."]
    return "\n".join(lines), found


def main():
    """Measure over the scikit-learn descriptions; writes data/thresholds.json and results/refusal.md."""
    docs = documents.load_descriptions()
    embedder = embedding.load_embedder(cache=vector_cache.default_path())
    questions = eval_questions.load_questions()
    rows = measure(questions, corpus.open_index(docs, embedder), {each["id"]: each["text"] for each in docs})
    text, found = report(rows)
    print(text)
    made = (f"python refusal.py ({embedder.name}, chunks of {corpus.SIZE} word pieces, the {len(rows)} questions of "
            f"data/questions.jsonl; cross-validated in {FOLDS} folds)")
    THRESHOLDS.write_text(json.dumps({"made by": made, "model": embedder.name, "thresholds": {
        name: each._asdict() for name, each in found.items()}}, indent=1) + "\n", encoding="utf-8")
    RESULT.write_text(f"# When to refuse\n\nMade by `{made}`.\n\n{text}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
