"""Beside step 20 — Which embedding model, and how many of its dimensions, on your own questions?

Tables of models on the web are about other people's documents. What decides are your questions over your documents, the
time a question takes, and how many bytes a vector needs:

    python eval_stages.py --model all-MiniLM-L6-v2 ./my-model --dimensions 384 128 --docs mine --questions mine.jsonl

    model       a name or a folder, as embedding.load_embedder takes it
    chunks      of 120 words, the same for every model, whatever its word pieces are
    dimensions  the first so many numbers of each vector, scaled to length 1 again. Models trained for it (Matryoshka)
                have what matters most in front; of any other, MiniLM included, the first half is just one half
    recall@5, recall@50, MRR    of dense search alone (eval_rankings.py): keywords and reranking would hide the model
    gained      recall@5 less that of the first row, on the same questions
    ms          of one question, p50: the model reads it alone, then its vector meets all others
    bytes       of a chunk's vector
    unseen      share of the chunks' word pieces beyond what the model reads

What it cannot show: how long the documents take (bench_encoder.py), and languages of which there is no question.

Not here: the other stages (eval_stages.py), training.
"""

import sys
import time
from typing import NamedTuple

import numpy as np

import chunking
import corpus
import documents
import embedding
import eval_corpora
import eval_questions
import vector_cache
from cosine import cosine_top_k
from eval_rankings import POOL, gained, judged, quality
from eval_sweep import table

WORDS, TIMED = 120, 20                 # of a chunk; how many questions are timed


class Result(NamedTuple):
    """One model at so many dimensions."""

    name: str
    dimensions: int
    values: dict           # {measure: [n_questions]}
    milliseconds: float
    unseen: float


def measure(labelled, embedder, timed, dimensions=()):
    """[Result] of a model at each of `dimensions`, by default all that it has.

    timed   the same model without a cache, so that its time is a new question's

    ValueError for dimensions that the model does not have.
    """
    if unknown := [each for each in dimensions if not 0 < each <= embedder.dimensions]:
        raise ValueError(f"{embedder.name} makes vectors of {embedder.dimensions} numbers, so {unknown[0]} of them "
                         "cannot be kept")
    judgements = judged(labelled)
    vectors = embedder.encode([chunking.searched_text(chunk) for chunk in labelled.chunks])      # [n_chunks, dim]
    queries = embedder.encode(labelled.questions, kind="query")                                  # [n_questions, dim]
    unseen, pieces = chunking.unseen_pieces(labelled.chunks, embedder)
    reading, results = _milliseconds(lambda text: timed.encode([text], "query", 1), labelled.questions[:TIMED]), []
    for d in dimensions or [embedder.dimensions]:
        cut, asked = embedding.unit_rows(vectors[:, :d]), embedding.unit_rows(queries[:, :d])
        positions, _ = cosine_top_k(asked, cut, POOL)
        ranked = [[labelled.chunks[position]["id"] for position in each] for each in positions]
        took = _milliseconds(lambda query: cosine_top_k(query, cut, POOL), asked[:TIMED])
        results.append(Result(embedder.name, d, quality(labelled, ranked, judgements), reading + took,
                              unseen.sum() / max(1, pieces.sum())))
    return results


def _milliseconds(work, items):
    """The median of how long work(item) takes, in ms."""
    times = [time.perf_counter()]
    for item in items:
        work(item)
        times.append(time.perf_counter())
    return float(np.median(np.diff(times)) * 1000)


def report(labelled, results):
    """The comparison, as Markdown."""
    rows = []
    for each in results:
        compared = "" if each is results[0] else gained(each.values["recall@5"], results[0].values["recall@5"])
        rows.append([each.name, each.dimensions, *(f"{each.values[name].mean():.3f}"
                                                   for name in ("recall@5", f"recall@{POOL}", "MRR")),
                     compared, f"{each.milliseconds:.1f}", f"{4 * each.dimensions:,}", f"{each.unseen:.0%}"])
    head = ["model", "dimensions", "recall@5", f"recall@{POOL}", "MRR", "recall@5 gained", "ms a question",
            "bytes a chunk", "unseen"]
    return (f"{len(labelled.questions)} questions over {len(labelled.chunks):,} chunks of {labelled.name}, dense "
            f"search. Gained: over the first row; ** where the 95% interval leaves out 0.\n\n{table(head, rows)}")


# -- The command line: options of eval_stages.py -----------------------------------------------------------------------


def add_options(parser):
    """Add the options of a comparison of models to a parser; returns the parser."""
    models = parser.add_argument_group("compare embedding models")
    models.add_argument("--model", nargs="+", metavar="NAME", help="models of sentence-transformers, or folders")
    models.add_argument("--dimensions", nargs="+", type=int, default=[], metavar="N",
                        help="keep the first N numbers of each vector (for models trained to allow it)")
    models.add_argument("--backend", choices=list(embedding.BACKENDS), help="who runs them (default: who can)")
    models.add_argument("--docs", metavar="FOLDER", help="your own documents, with --questions")
    models.add_argument("--questions", metavar="FILE", help="your own questions, as in data/questions.jsonl")
    return parser


def is_asked_for(options, parser):
    """Whether --model is there. Ends the program if other options need it, or one of a pair is missing."""
    if (options.docs is None) != (options.questions is None):
        parser.error("--docs and --questions belong together: whose questions would be asked of which documents?")
    if not options.model and (options.docs or options.dimensions or options.backend):
        parser.error("--docs, --questions, --dimensions and --backend need --model: which models are compared?")
    return bool(options.model)


def run(options):
    """Print the comparison that `options` ask for. Returns the exit status: 1 if a model or file cannot be had."""
    try:
        labelled, results = load(options.docs, options.questions), []
        for name in options.model:
            embedder = embedding.load_embedder(name, options.backend, cache=vector_cache.default_path())
            timed = embedding.load_embedder(name, options.backend)
            results += measure(labelled, embedder, timed, options.dimensions)
    except (ImportError, OSError, ValueError) as error:                # no documents, no weights
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(report(labelled, results))
    return 0


def load(folder=None, path=None):
    """The Labelled chunks and questions: the descriptions, or those of a folder and a file.

    Raises what reading them raises, and ValueError for a label that is not true of its document, or if there is none.
    """
    docs = documents.load_descriptions() if folder is None else corpus.read_folder(folder)
    asked = eval_questions.load_questions(*([] if path is None else [path]))
    eval_questions.answerable(asked, docs)                             # names the line of what is wrong
    return eval_corpora.descriptions(folder or "descriptions", docs, asked, size=WORDS)


if __name__ == "__main__":
    from toy import DOCUMENTS, Topics

    chunks = [{"id": f"{number}#0", "doc_id": number, "start": 0, "end": len(text), "text": text}
              for number, text in enumerate(DOCUMENTS)]
    labelled = eval_corpora.Labelled("toy documents", chunks, [], ["Which cat sat?", "What is the price of oil?"],
                                     [[[(0, 0, 7)]], [[(3, 0, 3)]]], [], [], [])
    print(report(labelled, measure(labelled, Topics(), Topics(), (2, 1))))
