"""Beside step 19 — Which way to cut suits your own documents? One table, one line for each configuration.

What the experiments show holds for their documents and questions. This measures the same over others: a folder of
documents, all in one index, and a file of labelled questions in one of two formats (eval_questions.py).

    configuration   a cut (strategy, size, overlap, length) and a retriever; every combination of what is listed is one
    n               how many chunks are read; with a budget, so many words instead (eval_spans.py)
    means, sd       over the answerable questions; sd is the standard deviation of the questions (divided by n), None
                    for a single one, as is the interval for fewer than five: nothing can be said of its luck
    undefined       questions for which nothing was found, so that precision has no value; its mean is over the others

Not here: plots, paired tests (metrics.paired_bootstrap takes the values of two configurations).
"""

import itertools
import json
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import chunking
import documents
import eval_questions
import eval_spans
import rag
from eval_spans import Cut
from eval_sweep import table
from ranking import check_k


class Result(NamedTuple):
    """What one configuration gives; `values` is what eval_spans.measure returns."""

    cut: Cut
    retriever: str
    chunks: int
    values: dict
    seconds: float

    def figures(self):
        """The configuration and its figures, as they are written to a JSON file."""
        means = {name: float(each.mean()) for name, each in self.values.items() if name != "precision"}
        precision = self.values["precision"]
        known, recall = precision[~np.isnan(precision)], self.values["recall"]
        return {**self.cut._asdict(), "retriever": self.retriever, "recall_mean": means["recall"],
                "recall_sd": float(recall.std()) if len(recall) > 1 else None,
                "recall_interval": eval_spans.interval(recall)[1:] if len(recall) >= 5 else None,
                "precision_mean": float(known.mean()) if len(known) else None, "iou_mean": means["IoU"],
                "precision_omega_mean": means["omega"], "mrr": means["MRR"], "words_mean": means["words"],
                "undefined": len(precision) - len(known), "questions": len(recall), "chunks": self.chunks,
                "seconds": round(self.seconds, 2)}


def load(docs, questions):
    """(documents, answerable questions, their evidence, how many are unanswerable); of None the descriptions, and ours.

    Raises ValueError or OSError with a message that says what to mend.
    """
    docs = documents.load_descriptions() if docs is None else documents.load_folder(docs)
    labelled = eval_questions.load_questions(*([] if questions is None else [questions]))
    texts, evidence, asked = eval_questions.answerable(labelled, docs)
    return docs, texts, evidence, len(labelled) - len(asked)


def measure(docs, questions, evidence, embedder, cuts, retrievers, n=5, budget=None):
    """Yield a Result for each cut and retriever. Raises ValueError for n or budget below 1, and what the cuts raise."""
    n, budget = check_k(n, least=1, name="n"), None if budget is None else check_k(budget, least=1, name="budget")
    for cut, retriever in tqdm(list(itertools.product(cuts, retrievers)), desc="configurations", leave=False,
                               disable=None):
        start = time.perf_counter()
        chunks = cut.chunks(docs, embedder)
        if n > len(chunks) and budget is None:
            warnings.warn(f"{n} chunks are to be read, but {cut} gives only {len(chunks)}: everything is read")
        [ranked] = eval_spans.rank(chunks, questions, embedder, [retriever]).values()
        values = eval_spans.measure(ranked, evidence, chunks, n, budget)
        yield Result(cut, retriever, len(chunks), values, time.perf_counter() - start)


def report(results):
    """One row for each configuration, as a Markdown table."""
    rows = []
    for each in results:
        found = each.figures()
        interval = "" if found["recall_interval"] is None else " ({:.2f} to {:.2f})".format(*found["recall_interval"])
        precision = "undefined" if found["precision_mean"] is None else f"{found['precision_mean']:.3f}"
        rows.append([f"{each.cut}, {each.retriever}", found["chunks"], f"{found['recall_mean']:.3f}{interval}",
                     precision, *(f"{found[name]:.3f}" for name in ("iou_mean", "precision_omega_mean", "mrr")),
                     f"{found['words_mean']:,.0f}"])
    return table(["", "chunks", "recall (95%)", "precision", "IoU", "omega", "MRR", "words read"], rows)


def add_options(parser):
    """The options of an own measurement."""
    group = parser.add_argument_group("own documents, or other configurations; lists are combined")
    group.add_argument("--docs", type=Path, help="a folder (default: scikit-learn's descriptions)")
    group.add_argument("--questions", type=Path, help="a .jsonl or .csv file: eval_questions.py says what is in it")
    group.add_argument("--strategy", nargs="+", choices=chunking.STRATEGIES)
    group.add_argument("--size", nargs="+", type=int)
    group.add_argument("--overlap", nargs="+", type=int)
    group.add_argument("--length", choices=("words", "tokens", "characters"))
    group.add_argument("--retriever", nargs="+", choices=eval_spans.RETRIEVERS)
    group.add_argument("--n", type=int, help="how many chunks are read (5)")
    group.add_argument("--budget", type=int, help="read so many words instead of n chunks")
    group.add_argument("--json", type=Path, help="write the figures to this file, a list of objects")


OPTIONS = ("docs", "questions", "strategy", "size", "overlap", "length", "retriever", "n", "budget", "json")


def is_asked_for(options):
    """Whether any of the options above was given."""
    return any(getattr(options, name) is not None for name in OPTIONS)


def run(options, parser):
    """Measure what the options ask for, print the table, return 0; bad input ends it with a message, and status 2."""
    try:
        return _run(options)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


def _run(options):
    if (options.docs is None) != (options.questions is None):
        raise ValueError("--docs and --questions belong together: labels are true of their own documents only")
    if options.n is not None and options.budget is not None:
        raise ValueError("--n counts chunks, --budget words: give one of them")
    if options.json is not None and not options.json.parent.is_dir():
        raise ValueError(f"there is no folder {options.json.parent} to write {options.json.name} to")
    docs, questions, evidence, unanswerable = load(options.docs, options.questions)
    print(f"{len(docs)} documents, {len(questions)} answerable questions; {unanswerable} without evidence are left out",
          flush=True)
    cuts = [Cut(strategy, size, overlap, options.length or "tokens") for strategy, size, overlap in itertools.product(
        options.strategy or ["structured"], options.size or [200], options.overlap or [0])]
    results = list(measure(docs, questions, evidence, rag.embedder(), cuts, options.retriever or ["hybrid"],
                           5 if options.n is None else options.n, options.budget))
    print(report(results))
    if len(questions) < 5:
        print(f"No interval: {len(questions)} questions are too few to say how much luck is in them; label at least 5.")
    if options.json is not None:
        options.json.write_text(json.dumps([each.figures() for each in results], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    from toy import Embedder

    pets = [{"id": "pets", "title": "Pets", "text": "the cat sat on the mat. the price of oil rose. the cat slept."}]
    for result in measure(pets, ["Where did the cat sit?"], [[[("pets", 12, 22)]]], Embedder(),
                          [Cut("fixed", size, 0, "words") for size in (6, 99)], ["bm25"], n=1):
        found = result.figures()
        print(f"{result.cut}: {found['chunks']} chunks, recall {found['recall_mean']:.2f}, precision "
              f"{found['precision_mean']:.2f}, sd {found['recall_sd']}, interval {found['recall_interval']}")
