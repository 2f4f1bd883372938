"""Beside step 20 — How good are the answers, where was each lost one lost, and what does a question cost?

Retrieval can be measured alone (eval_stages.py); what people get is an answer. Here the whole default pipeline is asked
every labelled question, with the extractive reader, which needs no key and says the same each time.

    k           how many chunks are packed: 3, 5, 8 (the default), 20
    pieces      for each piece of evidence that an answer needs, the spans of its copies (metrics.py)
    quote       a paragraph of the answer, and where it stands in the sources it cites: [("iris", 310, 341)]
    holds       a quote holds a piece of evidence if they share at least half of the shorter one
    right       the share of a question's pieces that its quotes hold; 1 is a right answer. A stand-in for a judge, held
                against 30 answers that were judged by hand
    lost        the first place at which a question that was not answered right had lost its evidence:
                parser      a quote does not stand in the document's parsed text. None of ours: they were labelled in it
                chunker     no chunk holds a piece whole, and not all its parts were packed
                pool        not all of it is among the 50 chunks that retrieval gives
                top k       in the pool, but not among the k best
                guard       among them, but even the best chunk's score was too low to ask a reader (refusal.py)
                packing     among them, but not in the prompt
                refused     in the prompt, but the reader found no sentence good enough
                misread     in the prompt, but the reader quoted something else, or only a part of it
    citation precision, recall    do the cited words stand in the cited source (grading.py, `verbatim`)? Of a reader
                that only quotes this checks the machinery; whether they answer the question is what `cited evidence`
                says, the share of quotes that hold a piece
    EM, F1      the answer's words against the label's `answer`, which is a few words, never a sentence: so F1 is low
                for any reader that quotes, and to be compared with itself only
    tokens      of the prompt: in MiniLM's word pieces, which the budget counts, and as letters / 4, about what Claude
                counts
    refusal correctness    of the unanswerable questions, the share that was refused; of others it is not defined

Not here: a model that writes and one that grades (grading.py); whether thresholds hold for other questions: these were
calibrated on the same ones (results/refusal.md has cross-validated errors).
"""

import argparse
import functools
import sys
from collections import Counter
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import answering
import citations
import contextual
import corpus
import documents
import embedding
import eval_corpora
import eval_figures
import eval_questions
import eval_spans
import eval_stages
import grading
import metrics
import rag
import refusal
import rerank
import search
from eval_rankings import POOL, gained
from eval_sweep import RESULTS, data_hash, table

KS, K = (3, 5, 8, 20), 8
LOST = ("parser", "chunker", "pool", "top k", "guard", "packing", "refused", "misread")
EVERY = 4                              # the quick subset: every fourth question
TIMED = 40                             # questions


# -- Ask ---------------------------------------------------------------------------------------------------------------


class Remembering:
    """An embedder that reads no text twice: the same sentences are read at every k."""

    def __init__(self, embedder):
        self.embedder, self.vectors = embedder, {}
        self.token_vectors = functools.cache(embedder.token_vectors)

    def encode(self, texts, kind="document", batch_size=None):
        """As Embedder.encode."""
        if new := [text for text in dict.fromkeys(texts) if (kind, text) not in self.vectors]:
            self.vectors.update(zip(((kind, text) for text in new), self.embedder.encode(new, kind, batch_size)))
        return np.array([self.vectors[kind, text] for text in texts]).reshape(len(texts), self.embedder.dimensions)

    def __getattr__(self, name):
        return getattr(self.embedder, name)


class Outcome(NamedTuple):
    """A question, what answers it, and what the pipeline made of it at one k."""

    question: dict
    pieces: list | None        # None: a quote does not stand in the parsed text
    whole: bool                # whether every piece lies whole in some chunk
    pool: list                 # spans of the POOL best chunks, best first
    k: int
    answer: answering.Answer


def ask_all(questions, docs, index, ks=KS):
    """{k: [Outcome]} of every question, by the default pipeline and the extractive reader."""
    texts, embedder = {each["id"]: each["text"] for each in docs}, index.embedder
    settings = dict(scorer=eval_stages.remembered(rerank.maxsim_scorer(embedder, index.token_store)))
    limit = refusal.threshold("maxsim", embedder.name)
    reader, asked = functools.partial(answering.extractive, embedder=embedder), {k: [] for k in ks}
    for each in tqdm(questions, desc="questions", leave=False, disable=None):
        pieces = pieces_of(each, texts)
        whole = bool(pieces) and all(any(eval_spans.holds(chunk, copies) for chunk in index.chunks)
                                     for copies in pieces)
        hits = search.search(each["question"], index, k=POOL, **settings)
        for k in ks:
            answer = answering.ask(each["question"], index, reader=reader, threshold=limit, k=k, **settings)
            asked[k].append(Outcome(each, pieces, whole, [eval_spans.span(hit.chunk) for hit in hits], k, answer))
    return asked


def pieces_of(question, texts):
    """The pieces of evidence, [] of an unanswerable question, None if the parsed texts lack one of its quotes."""
    try:
        return eval_questions.evidence_spans(question, texts)
    except (KeyError, ValueError):
        return None


# -- Judge -------------------------------------------------------------------------------------------------------------


def quotes(answer):
    """For each paragraph of an answer where its words stand in the sources that it cites: [[(doc_id, start, end)]]."""
    found, n = [], len(answer.packed)
    for paragraph in answer.text.split("\n\n") if not answer.refused else []:
        cited = citations.parse(paragraph, n)
        said = citations.removed(paragraph, cited).rpartition(answering.SAYS)[2]
        places = [place for each in cited if each.status == "valid" for number in each.numbers
                  for place in answer.packed[number - 1].places]
        inside = [(place, answering.stands(said, place["body"])) for place in places]
        found.append([(place["doc_id"], place["start"] + span[0], place["start"] + span[1])
                      for place, span in inside if span])
    return found


def shares(spans, copies):
    """Do the spans of a quote and the copies of a piece have half of the shorter one or more in common somewhere?

    >>> shares([("d", 0, 10)], [("d", 5, 99)]), shares([("d", 0, 10)], [("d", 6, 99)])
    (True, False)
    """
    return any(doc_id == other and 2 * (min(end, last) - max(start, first)) >= min(end - start, last - first)
               for doc_id, start, end in spans for other, first, last in copies)


def right(asked):
    """The share of the pieces that some quote holds."""
    found = quotes(asked.answer)
    return float(np.mean([any(shares(spans, copies) for spans in found) for copies in asked.pieces or [[]]]))


def recalls(asked):
    """Evidence recall of the pool, of the k best, and of what was packed."""
    packed = [(place["doc_id"], place["start"], place["end"]) for source in asked.answer.packed
              for place in source.places]
    return [metrics.evidence_recall(spans, asked.pieces) for spans in (asked.pool, asked.pool[:asked.k], packed)]


def lost(asked):
    """Where an answerable question lost its evidence, one of LOST; "" if it was answered right."""
    if asked.pieces is None:
        return "parser"
    pool, top, packed = recalls(asked)
    blame = grading.diagnose(pool, packed, right(asked))
    if blame in ("", grading.MEMORY):
        return ""
    if blame == grading.READING:
        return "refused" if asked.answer.refused else "misread"
    if not asked.whole:
        return "chunker"
    if blame == grading.RETRIEVAL:
        return "pool"
    return "top k" if top < 1 else "guard" if asked.answer.refused == answering.BELOW else "packing"


def measures(asked):
    """{measure: value} of an answerable question; None where it is undefined: nothing was packed, or cited."""
    answer, bodies = asked.answer, [source.body for source in asked.answer.packed]
    spans, pieces, prompt = quotes(answer), asked.pieces or [], answer.prompt
    found = [any(shares(each, copies) for copies in pieces) for each in spans]
    said, expected = grading.plain(answer.text, len(bodies)), asked.question.get("answer")
    cited = {name: None if answer.refused else grading.or_none(function, answer.text, bodies) for name, function in
             (("citation precision", grading.citation_precision), ("citation recall", grading.citation_recall))}
    words = {name: (0.0 if answer.refused else grading.or_none(function, said, expected)) if expected else None
             for name, function in (("EM", grading.exact_match), ("F1", grading.token_f1))}
    return {"packed": float(bool(pieces) and recalls(asked)[2] == 1), "answered": float(not answer.refused),
            "first quote": float(found[:1] == [True]), "any quote": float(any(found)),
            "right": float(right(asked) == 1), **words, **cited,
            "cited evidence": float(np.mean(found)) if found else None, "word pieces": prompt and prompt.tokens}


def kind(asked):
    """"answerable", "near" or "far"; the type of an unanswerable question of one's own."""
    labelled = asked.question
    return "answerable" if labelled["evidence"] else labelled["type"].removeprefix("unanswerable-")


def answerable(asked):
    """Those of the Outcomes that have an answer."""
    return [each for each in asked if kind(each) == "answerable"]


def refusals(asked):
    """The grading.Refusals of all that was asked."""
    return grading.refusal_matrix((bool(each.answer.refused), kind(each) == "answerable") for each in asked)


# -- What is printed ---------------------------------------------------------------------------------------------------


def losses_table(asked):
    """Where the answerable questions were lost, by type at K, and all of them at each k."""
    rows = [(f"{name}, k = {K}", [each for each in answerable(asked[K]) if each.question["type"] == name])
            for name in dict.fromkeys(each.question["type"] for each in answerable(asked[K]))]
    counted = [(name, each, Counter(map(lost, each))) for name, each in
               [*rows, *((f"all, k = {k}", answerable(each)) for k, each in asked.items())]]
    return table(["", "questions", "answered right", *LOST],
                 [[name, len(each), *(count[place] for place in ("", *LOST))] for name, each, count in counted])


def quality_table(values):
    """The means of each measure at each k; `values` are {k: {measure: [n_questions]}}."""
    names = list(next(iter(values.values())))
    rows = []
    for k, each in values.items():
        reading = grading.generation(zip(map(bool, each["packed"]), each["right"])).given_packed.mean
        shown = [_shown(grading.average(each[name]).mean) for name in names]
        rows.append([k, *shown, _shown(reading)])
    return table(["k", *names, "right, given packed"], rows)


def _shown(mean):
    return "–" if mean is None else f"{mean:,.0f}" if mean > 1 else f"{mean:.3f}"


def neighbours_table(values, names=("packed", "first quote", "right", "F1", "cited evidence")):
    """What the next k gains over the one before, on the questions for which both are defined."""
    rows = []
    for one, more in zip(list(values), list(values)[1:]):
        cells = []
        for name in names:
            pairs = [pair for pair in zip(values[more][name], values[one][name]) if None not in pair]
            found = gained(*zip(*pairs)) if pairs else "–"
            cells.append(found if found.endswith("**") or found == "–" else f"{found}, no difference shown")
        rows.append([f"{one} to {more}", *cells])
    return table(["k", *names], rows)


def refusal_table(asked):
    """Who refused which questions, at each k."""
    rows = []
    for k, each in asked.items():
        for name in dict.fromkeys(map(kind, each)):
            these = [one.answer.refused for one in each if kind(one) == name]
            guard = sum(why == answering.BELOW for why in these)
            rows.append([f"{name}, k = {k}", len(these), these.count(""), guard, len(these) - these.count("") - guard])
    return table(["", "questions", "answered", "refused by the guard", "by the reader"], rows)


def refusal_text(asked):
    """The shares, with their 95% intervals, as sentences."""
    matrix, able = refusals(asked), [kind(each) == "answerable" for each in asked]
    refused = np.array([bool(each.answer.refused) for each in asked])
    vain, correct = refused[able], refused[~np.array(able)]
    near, far = (_share(refused[[kind(each) == name for each in asked]]) for name in ("near", "far"))
    precision = grading.or_none(grading.refusal_precision, matrix)
    return (f"k = {K}. Refusal correctness, of the unanswerable questions alone: {_share(correct)} (near {near}, far "
            f"{far}); answered in vain: {_share(~correct)}. Of the answerable ones refused in vain: {_share(vain)}. "
            f"Of all refusals, the share that was right: {'undefined' if precision is None else f'{precision:.3f}'}.")


def _share(values):
    """A share with its 95% interval, which fewer than five values do not have."""
    values = np.asarray(values, float)
    if len(values) < 5:
        return f"{values.mean():.3f} of {len(values)}" if len(values) else "none asked"
    found = metrics.paired_bootstrap(values, np.zeros(len(values)))
    return f"{found.difference:.3f} ({found.low:.3f} to {found.high:.3f})"


def judged_text(asked):
    """How often `right` and the judgements by hand say the same of the same answer."""
    questions, pairs = {each.question["id"]: each for each in asked}, []
    for row in grading.read_judgements(questions):
        one = questions[row["id"]]
        if one.answer.text == row["answer"] and one.pieces:
            pairs.append((right(one) == 1, row["verdict"] == "right"))
    found = grading.agreement(pairs)
    strict, mild = pairs.count((False, True)), pairs.count((True, False))
    return (f"`right` against data/judgements.jsonl: {len(pairs)} of the judged answers are those of today, to "
            f"questions with an answer; on {found.share:.0%} both say the same (kappa {_shown(found.kappa)}); it is "
            f"too mild {mild} times, and too strict {strict} times.")


def cost_table(questions, index, embedder, n=TIMED):
    """A question's time by stage at K, p50 and p95 in ms, of n questions that nobody asked before."""
    timed = eval_stages.without_memory(index, embedder, True)
    reader = functools.partial(answering.extractive, embedder=embedder)
    times = [answering.ask(each["question"], timed, reader=reader, k=K).timings
             for each in tqdm(questions[::max(1, len(questions) // n)], desc="times", leave=False, disable=None)]
    stages = {name: [each[name] * 1000 for each in times if name in each] for each in times for name in each}
    stages["all"] = [sum(each.values()) * 1000 for each in times]
    return table(["", *stages], [[f"p{share}", *(f"{np.percentile(each, share):,.1f}" for each in stages.values())]
                                 for share in (50, 95)])


def token_table(asked):
    """What a model would read at each k, and what that would cost."""
    rows = []
    for k, each in asked.items():
        prompts = [one.answer.prompt for one in each if one.answer.prompt]
        tokens = [corpus.tokens(prompt.system + prompt.user) for prompt in prompts]
        price = contextual.dollars(contextual.Usage(input=1000 * np.mean(tokens)))
        rows.append([k, *(f"{np.percentile(tokens, share):,.0f}" for share in (50, 95)), f"{price:.2f}"])
    return table(["k", "tokens, p50", "p95", "dollars for 1,000 questions"], rows)


def plot(values, caption, path):
    """Quality against tokens, a point for each k, with 95% intervals."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(6.4, 4.6), layout="constrained")
    tokens = [grading.average(each["word pieces"]).mean for each in values.values()]
    for (name, label), mark, line, colour in zip(
            {"packed": "all evidence in the prompt", "any quote": "a quote holds evidence",
             "right": "answered right", "F1": "token F1"}.items(), "o^sv", ("-", "--", "-.", ":"),
            ("k", "#0072b2", "#d55e00", "#009e73")):
        found = [metrics.paired_bootstrap(each[name], np.zeros(len(each[name]))) for each in values.values()]
        means, low, high = (np.array([getattr(one, part) for one in found]) for part in ("difference", "low", "high"))
        panel.errorbar(tokens, means, [means - low, high - means], marker=mark, linestyle=line, color=colour,
                       fillstyle="none", capsize=3, linewidth=1, label=label)
    for k, x in zip(values, tokens):
        panel.annotate(f"k = {k}", (x, 1.02), ha="center")
    panel.set(xlabel="word pieces of the prompt, mean", ylabel="share of the answerable questions", ylim=(0, 1.1))
    panel.grid(alpha=0.3)
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    figure.supxlabel(caption, fontsize=8)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


def figures(asked, which):
    """{name: figure} (eval_figures.py) of what was asked at K."""
    able, matrix = answerable(asked), refusals(asked)
    values = [measures(each) for each in able]
    hits = [any(eval_spans.holds(dict(zip(("doc_id", "start", "end"), span)), copies)
                for span in each.pool[:K] for copies in each.pieces) for each in able]
    found = {f"hit rate at {K}": grading.average(hits), f"recall at {POOL}": grading.average(
        metrics.evidence_recall(each.pool, each.pieces) for each in able)}
    for name, label in {"citation precision": "citation accuracy", "cited evidence": "cited evidence",
                        "right": "right answers", "F1": "token F1"}.items():
        found[label] = grading.average(each[name] for each in values)
    correct, vain = grading.refusal_recall(matrix), matrix.refused_answerable / len(able)
    return {f"{name}, {which}": figure for name, figure in {
        **{name: eval_figures.share(each.mean, each.n) for name, each in found.items()},
        "refusal correctness": eval_figures.share(correct, len(asked) - len(able)),
        "refused in vain": eval_figures.share(vain, len(able)),
        "word pieces of a prompt": eval_figures.amount(grading.average(each["word pieces"] for each in values).mean),
    }.items()}


# -- All of it ---------------------------------------------------------------------------------------------------------

ABOUT = """Made by {}: {} questions over {} chunks. The extractive reader answers, the default pipeline searches.
What the words mean stands in eval_answers.py. Intervals are 95% ones; ** marks those without 0."""


def report(asked, made, index, embedder):
    """All tables, as Markdown, and {k: {measure: values}} of the answerable questions."""
    rows = {k: list(map(measures, answerable(each))) for k, each in asked.items()}
    values = {k: {name: [row[name] for row in each] for name in each[0]} for k, each in rows.items()}
    questions = [each.question for each in asked[K]]
    sections = {
        "Where each question was lost": losses_table(asked),
        "Quality and tokens": f"{quality_table(values)}\n\n{neighbours_table(values)}",
        "Refusals": f"{refusal_table(asked)}\n\n{refusal_text(asked[K])}",
        "Time": f"ms at k = {K} of {TIMED} questions, to be held against the few seconds that people wait. Vectors of "
                "chunks are kept; those of the question, and of all sentences that are read, are computed. What the "
                f"guard refuses is not read.\n\n{cost_table(questions, index, embedder)}",
        "What a model would read": "Letters / 4, about what Claude counts, of the prompts alone; for what the guard "
                                   "refuses nobody is asked. Prices as contextual.Prices assumes them; what a "
                                   f"model writes comes on top.\n\n{token_table(asked)}"}
    parts = ["# Answers", ABOUT.format(made, len(questions), len(index.chunks))]
    return "\n\n".join([*parts, *(f"## {title}\n\n{text}" for title, text in sections.items())]), values


def load(folder=None, path=None):
    """(docs, questions): the descriptions, or those of a folder and a file. ValueError if nothing can be answered."""
    docs = documents.load_descriptions() if folder is None else corpus.read_folder(folder)
    questions = eval_questions.load_questions(*([] if path is None else [path]))
    if not any(each["evidence"] for each in questions):
        raise ValueError("no question has evidence, so none can be lost: label what answers them (data/README.md)")
    return docs, questions


def main(arguments=None):
    """Ask everything; writes results/answers.md, answers.png and figures.json. Returns the exit status."""
    options = _parse(arguments)
    try:
        docs, questions = load(options.docs, options.questions)
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    index = corpus.open_index(docs, Remembering(rag.embedder()))
    asked = ask_all(questions, docs, index, KS if not options.check else (K,))
    if options.docs:
        print(report(asked, f"`eval_answers.py --docs {options.docs}`", index, embedding.load_embedder())[0])
        return 0
    found = figures(asked[K], "all questions") | figures(asked[K][::EVERY], "every fourth question")
    if options.check:
        print(*(said := eval_figures.moved(eval_figures.read(), found)), sep="\n")
        return int(bool(said))
    data = data_hash([eval_corpora.Asked("", docs, [each["question"] for each in questions], [])])
    made = f"python eval_answers.py (all-MiniLM-L6-v2, seed 0, data {data})"
    text, values = report(asked, f"`{made}`", index, embedding.load_embedder())
    text += f"\n\n{judged_text(asked[K])}\n\n![quality against tokens](answers.png)\n"
    print(text)
    plot(values, made, RESULTS / "answers.png")
    (RESULTS / "answers.md").write_text(text, encoding="utf-8")
    eval_figures.write(found, made)
    return 0


def _parse(arguments):
    parser = argparse.ArgumentParser(description="How good are the answers, where are they lost, what do they cost?")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a kept figure has moved")
    parser.add_argument("--docs", metavar="FOLDER", help="your own documents, with --questions; writes nothing")
    parser.add_argument("--questions", metavar="FILE", help="your own questions, as in data/questions.jsonl")
    options = parser.parse_args(arguments)
    if (options.docs is None) != (options.questions is None) or options.docs and options.check:
        parser.error("--docs and --questions belong together, and not with --check")
    return options


if __name__ == "__main__":
    sys.exit(main())
