"""Step 20 of 22 — Each stage measured alone: what does every added stage buy? Before: eval_chunk_sizes.py.
Next: failure_modes.py.

A pipeline of six stages is better than one of two, everybody says. Here every stage is switched on alone, and what it
adds to the stage before it is measured on the same questions, beside what it costs.

    corpus      chunks, and questions whose evidence is known (eval_corpora.py): the descriptions, cut in two ways, and
                docstrings, whose summaries are the questions
    recall@k    how much of the evidence lies in the first k chunks; this, MRR and nDCG@10 stand in eval_rankings.py
    identifiers names and codes in a question, which search.py adds to its keywords a second time
    stage       a setting of search.search, and the stage it builds on          STAGES["MaxSim"] builds on "RRF"
    interval    95%, of the mean difference of two stages over the same questions, which are resampled; "by documents":
                documents are resampled (of docstrings: source files), each with all of its questions, which says how
                much hangs on which documents these are; "over dense": of recall@1
    pool        how many chunks each retriever gives, and how many are reranked: 50. So recall@50 is what a reranker
                could reach

Not here: chunk sizes (eval_chunk_sizes.py), whether the answer was right, models that rewrite questions.
"""

import argparse
import copy
import re
import sys
import time
import warnings
from collections import Counter
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

import bm25
import chunking
import documents
import embedding
import eval_corpora
import eval_models
import eval_questions
import metrics
import queries
import rag
import rerank
import search
from eval_rankings import AT, MEASURES, POOL, cluster_interval, gained, judged, quality
from eval_sweep import RESULTS, data_hash, table
from index import Index
from token_store import TokenStore, word_vectors

BUDGET = 400_000_000                   # bytes of token vectors


# -- The stages --------------------------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """A setting of search.search. `on`: the stage it builds on; index: how the chunks are indexed."""

    on: str
    options: dict
    index: str = "plain"
    scorer: str | None = None


RRF = dict(fuse=search.by_rank)
STAGES = {
    "dense": Stage("dense", dict(mode="dense")),
    "lexical": Stage("dense", dict(mode="lexical")),
    "lexical, no identifiers": Stage("lexical", {}),                   # `rankings` asks the index itself
    "lexical, title boost 1": Stage("lexical", dict(mode="lexical"), "title 1"),
    "lexical, title boost 3": Stage("lexical", dict(mode="lexical"), "title 3"),
    "RRF": Stage("dense", RRF),
    "min-max": Stage("RRF", dict(fuse=search.by_score)),
    "RRF, title boost 1": Stage("RRF", RRF, "title 1"),
    "MaxSim": Stage("RRF", RRF, scorer="maxsim"),
    "0.7 MaxSim + 0.3 BM25": Stage("MaxSim", RRF | dict(weight=0.7), scorer="maxsim"),
    "0.5 MaxSim + 0.5 BM25": Stage("MaxSim", RRF | dict(weight=0.5), scorer="maxsim"),
    "0.5 MaxSim + 0.5 dense": Stage("MaxSim", RRF, scorer="dense"),
    "MaxSim, idf": Stage("MaxSim", RRF, scorer="idf"),
    "the default": Stage("MaxSim", {}, "title 1", "maxsim"),           # min-max, title boost 1, MaxSim
    "dense, context": Stage("dense", dict(mode="dense"), "context"),
    "lexical, context": Stage("lexical", dict(mode="lexical"), "context"),
    "RRF, context": Stage("RRF", RRF, "context"),
    "MaxSim, context": Stage("MaxSim", RRF, "context", "maxsim"),
}

SIX = {"dense": "dense", "lexical, no identifiers": "lexical", "lexical": "lexical + identifiers", "RRF": "hybrid",
       "MaxSim": "hybrid + rerank", "MaxSim, context": "hybrid + rerank + context"}


def indexes(corpus, embedder):
    """{how: Index}: plain, with titles counted 1 and 3 times more, with contexts."""
    plain, context = (Index.build(chunks, embedder, title_boost=0, token_budget=BUDGET)
                      for chunks in (corpus.chunks, corpus.in_context))
    known = [{**chunk, "vector": vector} for chunk, vector in zip(plain.chunks, plain.vectors)]
    return {"plain": plain, "context": context,
            **{f"title {boost}": Index.build(known, embedder, title_boost=boost) for boost in (1, 3)}}


def scorers(index):
    """{name: scorer} for the chunks of an index; each remembers its scores."""
    maxsim = remembered(rerank.maxsim_scorer(index.embedder, index.token_store))
    rows = {chunking.searched_text(chunk): vector for chunk, vector in zip(index.chunks, index.vectors)}

    def with_dense(question, texts):
        """Half MaxSim, half the cosine of the whole text's vector."""
        [query] = index.embedder.encode([question], kind="query")
        cosines = [float(rows[text] @ query) for text in texts]
        return [score for _, score in sorted(rerank.blend(maxsim(question, texts), cosines, 0.5))]
    return {None: None, "maxsim": maxsim, "dense": with_dense, "idf": idf_scorer(index)}


def idf_scorer(index):
    """MaxSim with weights: a word piece counts 1 + the idf of its word among the candidates; what is no word counts 1.

    The best matches are those of rerank.maxsim; only their mean becomes a weighted one.
    """
    def score(question, texts):
        """One weighted MaxSim for each text."""
        # as in rerank.py, specials have no offsets, and no part in it
        vectors, offsets = index.embedder.token_vectors(question, "query")
        weights = piece_weights(question, offsets[offsets[:, 1] > offsets[:, 0]], texts)
        each = word_vectors(vectors, offsets)                          # [n_question, dim]
        return [float((each @ text.astype(np.float32).T).max(axis=1) @ weights)
                for text in index.token_store.vectors(texts)]
    return score


def piece_weights(question, offsets, texts):
    """Weights [n_pieces], together 1, of a question's word pieces, by how rare their words are in `texts`.

    >>> piece_weights("the cat?", [(0, 3), (4, 7), (7, 8)], ["the cat", "the dog"]).round(2).tolist()    # 1.18, 1.69, 1
    [0.31, 0.44, 0.26]
    """
    df = Counter(term for text in texts for term in set(bm25.tokenize(text)))
    words = [(*match.span(), max((bm25.idf(df[term], len(texts)) for term in bm25.tokenize(match[0])), default=0))
             for match in re.finditer(r"\S+", question)]
    weights = [1 + max((idf for first, last, idf in words if first <= start < last), default=0)
               if bm25.tokenize(question[start:end]) else 1 for start, end in offsets]
    return np.array(weights) / sum(weights)


def remembered(scorer):
    """A scorer that scores no pair twice."""
    known = {}

    def score(question, texts):
        new = [text for text in texts if (question, text) not in known]
        known.update(zip(((question, text) for text in new), scorer(question, new) if new else ()))
        return [known[question, text] for text in texts]
    return score


def rankings(stage, corpus, index, scorer, pool=POOL):
    """For each question the ids of the chunks that a stage finds, best first."""
    if stage is STAGES["lexical, no identifiers"]:
        return [[index.chunks[position]["id"] for position in index.lexical(
            question, pool, index.mask(), index.visible())[0]] for question in corpus.questions]
    return [[hit.found["id"] for hit in search.search(question, index, k_each=pool, k=pool, scorer=scorer,
                                                      **stage.options)] for question in corpus.questions]


class Measured(NamedTuple):
    """What was measured over one corpus: rankings and values by stage, and the indexes and scorers that made them."""

    corpus: eval_corpora.Labelled
    indexes: dict
    scorers: dict       # {index: {name: scorer}}
    judgements: list
    found: dict         # {stage: [n_questions] rankings}
    values: dict        # {stage: {measure: [n_questions]}}


def measure(corpus, embedder):
    """All STAGES over one corpus: Measured."""
    kinds, judgements, found = indexes(corpus, embedder), judged(corpus), {}
    makers = {kind: scorers(index) for kind, index in kinds.items()}
    for name, stage in tqdm(STAGES.items(), desc=corpus.name, leave=False, disable=None):
        found[name] = rankings(stage, corpus, kinds[stage.index], makers[stage.index][stage.scorer])
    values = {name: quality(corpus, ranked, judgements) for name, ranked in found.items()}
    return Measured(corpus, kinds, makers, judgements, found, values)


# -- What is printed ---------------------------------------------------------------------------------------------------


def quality_table(measured):
    """Each stage's means, what it gains over the stage that it builds on, and over dense."""
    corpus, values, rows = measured.corpus, measured.values, []
    for name, stage in STAGES.items():
        compared = [""] * 5
        if name != "dense":
            low, high = cluster_interval(values[name]["recall@1"] - values[stage.on]["recall@1"], corpus.groups)
            first, over_dense, ndcg = (gained(values[name][measure], values[other][measure]) for measure, other in (
                ("recall@1", stage.on), ("recall@1", "dense"), ("nDCG@10", stage.on)))
            compared = [stage.on, first, f"{low:+.3f} to {high:+.3f}", ndcg, over_dense]
        rows.append([name, *(f"{values[name][each].mean():.3f}" for each in MEASURES), *compared])
    return table(["stage", *MEASURES, "on", "recall@1 gained", "by documents", "nDCG@10 gained", "over dense"], rows)


def kinds_table(measured, stages=SIX):
    """All measures of six stages by type of question."""
    kinds, rows = np.array(measured.corpus.kinds), []
    for kind, count in Counter(measured.corpus.kinds).items():
        for stage, name in stages.items():
            values = (measured.values[stage][each][kinds == kind].mean() for each in MEASURES)
            rows.append([kind, count, name, *map("{:.3f}".format, values)])
    return table(["type", "questions", "stage", *MEASURES], rows)


def fusion_explained(measured, measure="recall@1"):
    """Sentences: whom fusing by rank helps and whom it hurts, and where the other retriever had their evidence."""
    values = {stage: measured.values[stage][measure] for stage in ("dense", "lexical", "RRF")}
    leg, other = sorted(("dense", "lexical"), key=lambda name: -values[name].mean())
    hurt = np.flatnonzero(values["RRF"] < values[leg])
    ranks = [next((rank for rank, name in enumerate(measured.found[other][number], start=1)
                   if name in measured.judgements[number][0]), POOL + 1) for number in hurt]
    where = Counter("beyond 50" if rank > POOL else "11 to 50" if rank > 10 else "1 to 10" for rank in ranks)
    kinds = Counter(measured.corpus.kinds[number] for number in hurt)
    means = ", ".join(f"{name} {values[name].mean():.3f}" for name in (leg, other, "RRF"))
    return (f"{measured.corpus.name}, {measure}: {means}. RRF gains {(values['RRF'] > values[leg]).sum()} questions "
            f"over {leg} and loses {len(hurt)}; of these, {other} has the first evidence at rank {_counts(where)}; by "
            f"type: {_counts(kinds)}. In {sum(_shares_stop_words(measured, number) for number in hurt)} of them RRF"
            "'s first chunk has no word of the question but stop words.")


def _counts(counter):
    return ", ".join(f"{name} ({count})" for name, count in counter.most_common()) or "none"


def _shares_stop_words(measured, number):
    texts = {chunk["id"]: chunk["text"] for chunk in measured.corpus.chunks}
    pair = measured.corpus.questions[number], texts[measured.found["RRF"][number][0]]
    return not set.intersection(*(set(bm25.tokenize(text)) for text in pair)) - queries.STOP


def milliseconds(index, questions, **options):
    """How long each search takes, in ms [n_questions], and the medians of its parts (search.py's timings)."""
    times, parts = [], []
    for question in questions:
        start, trace = time.perf_counter(), {}
        search.search(question, index, trace=trace, **options)
        times.append((time.perf_counter() - start) * 1000)
        parts.append(list(trace["timings"].values()))
    return np.array(times), dict(zip(trace["timings"], (np.median(parts, axis=0) * 1000).tolist()))


def without_memory(index, embedder, keep):
    """The index with an embedder that has no cache, so that its time is a new question's; token vectors kept or not."""
    kept, index = index.token_store.kept if keep else {}, copy.copy(index)
    index.embedder, index.token_store = embedder, TokenStore(embedder, BUDGET if keep else 0)
    index.token_store.kept = kept
    return index


def pool_table(measured, embedder, sizes=(20, 24, 50, 100, 150), n_kept=50, n_computed=4):
    """Quality and time of MaxSim over pools of several sizes."""
    corpus, rows = measured.corpus, []
    plain, scorer = measured.indexes["plain"], measured.scorers["plain"]["maxsim"]
    for size in tqdm(sizes, desc="pools", leave=False, disable=None):
        found = quality(corpus, rankings(STAGES["MaxSim"], corpus, plain, scorer, size), measured.judgements)
        kept, _ = milliseconds(without_memory(plain, embedder, True), corpus.questions[:n_kept], k_each=size)
        computed, _ = milliseconds(without_memory(plain, embedder, False), corpus.questions[:n_computed], k_each=size)
        rows.append([size, *(f"{found[each].mean():.3f}" for each in MEASURES),
                     *(f"{each:.0f}" for each in np.quantile(kept, [0.5, 0.95])), f"{np.median(computed):,.0f}"])
    return table(["pool", *MEASURES, "p50, kept", "p95, kept", "p50, computed"], rows)


def filter_table(everything, embedder, n=50):
    """What a filter for the labelled part of the corpus does to recall and time, with the default search, over titles
    that count once."""
    rows = []
    for measured in everything:
        corpus, plain = measured.corpus, measured.indexes["plain"]
        timed, options = without_memory(plain, embedder, True), dict(k=POOL, scorer=measured.scorers["plain"]["maxsim"])
        for name in ("no filter", "filter"):
            wheres = [where if name == "filter" else None for where in corpus.where]
            found = [[hit.found["id"] for hit in search.search(question, plain, where=where, **options)]
                     for question, where in zip(corpus.questions, wheres)]
            values = quality(corpus, found, measured.judgements)
            took = [milliseconds(timed, [question], where=where)[0][0]
                    for question, where in zip(corpus.questions[:n], wheres)]
            kept = np.mean([plain.mask(None, where).mean() for where in wheres])
            rows.append([f"{corpus.name}, {name}", f"{kept:.1%}", *(f"{values[each].mean():.3f}" for each in MEASURES),
                         f"{np.median(took):.0f}"])
    return table(["", "searched", *MEASURES, "p50, ms"], rows)


def cost_table(measured, embedder, n=40):
    """What stages cost: ms a question, and ms and bytes a chunk."""
    plain, questions = measured.indexes["plain"], measured.corpus.questions[:n]
    timed = without_memory(plain, embedder, True)
    texts = [chunking.searched_text(chunk) for chunk in plain.chunks]
    embed, tokens = (_each(work, texts[:n]) for work in (lambda text: embedder.encode([text], batch_size=1),
                                                         embedder.token_vectors))
    kept = plain.token_store.size / max(len(plain.token_store.kept), 1)
    rows = [["vector", f"{embed:.1f}", 4 * plain.vectors.shape[1], ""],
            ["token vectors", f"{tokens:.1f}", round(kept), ""]]
    for name in ("dense", "lexical", "RRF", "MaxSim"):
        times, parts = milliseconds(timed, questions, scorer=STAGES[name].scorer, **STAGES[name].options)
        rows.append([name, "", "", f"{np.median(times):.1f} ({', '.join(f'{a} {b:.1f}' for a, b in parts.items())})"])
    return table([measured.corpus.name, "ms a chunk", "bytes a chunk", "ms a question, p50"], rows)


def _each(work, texts):
    """The median of how long work(text) takes, in ms."""
    times = [time.perf_counter()]
    for text in texts:
        work(text)
        times.append(time.perf_counter())
    return float(np.median(np.diff(times)) * 1000)


PUBLISHED = {"embeddings": ("dense", "5.7%"), "contextual embeddings": ("dense, context", "3.7%"),
             "+ contextual BM25": ("RRF, context", "2.9%"), "+ reranking": ("MaxSim, context", "1.9%")}


def context_table(everything):
    """1 - recall@20 of the four rows of the published table, beside theirs."""
    return table(["1 - recall@20", "published", *(measured.corpus.name for measured in everything)],
                  [[name, theirs, *(f"{1 - measured.values[stage]['recall@20'].mean():.1%}" for measured in everything)]
                   for name, (stage, theirs) in PUBLISHED.items()])


def plot(everything, path):
    """Recall@1, 3 and 5 of each stage with intervals, a panel for each corpus."""
    figure, axes = _panels(everything, 6.4)
    for panel, measured in zip(axes[0], everything):
        for (k, mark, colour), shift in zip(((1, "o", "#0072b2"), (3, "s", "#d55e00"), (5, "^", "k")), (-.2, 0, .2)):
            for row, name in enumerate(reversed(STAGES)):
                values = measured.values[name][f"recall@{k}"]
                found = metrics.paired_bootstrap(values, np.zeros(len(values)))
                panel.plot([found.low, found.high], [row - shift] * 2, color=colour, linewidth=1)
                panel.plot(found.difference, row - shift, mark, color=colour, markersize=5, fillstyle=(
                    "full" if k == 1 else "none"), label=f"recall@{k}" if row == 0 else None)
        panel.set(title=measured.corpus.name, xlabel="recall of the evidence, 95% intervals", yticks=range(len(STAGES)),
                  yticklabels=list(reversed(STAGES)), xlim=(None, 1.01))
        panel.grid(alpha=0.3)
    _save(figure, everything, path)


def plot_curves(everything, path):
    """Recall against k of the SIX stages, a panel for each corpus."""
    figure, axes = _panels(everything, 4.4)
    looks = zip("o^vsDx", ("-", ":", "-.", "--", "-", "-"),
                ("k", "#009e73", "#009e73", "#d55e00", "#0072b2", "#cc79a7"))
    for (stage, name), (mark, line, colour) in zip(SIX.items(), looks):
        for panel, measured in zip(axes[0], everything):
            means = [measured.values[stage][f"recall@{k}"].mean() for k in AT]
            panel.plot(AT, means, marker=mark, linestyle=line, color=colour, fillstyle="none", label=name)
    for panel, measured in zip(axes[0], everything):
        panel.set(title=measured.corpus.name, xscale="log", xlabel="k, chunks", xticks=AT, xticklabels=AT)
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    axes[0, 0].set_ylabel("recall of the evidence")
    _save(figure, everything, path)


def _panels(everything, height):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(1, len(everything), sharey=True, figsize=(4.2 * len(everything), height),
                           layout="constrained", squeeze=False)


def _save(figure, everything, path):
    from matplotlib import pyplot

    data = data_hash([eval_corpora.Asked(each.corpus.name, each.corpus.chunks, each.corpus.questions, [])
                      for each in everything])
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel(f"python eval_stages.py (all-MiniLM-L6-v2, seed 0, data {data})", fontsize=8)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    pyplot.close(figure)


ABOUT = """Made by `make experiment` (all-MiniLM-L6-v2, scikit-learn 1.9.1, NumPy 2.4.6): {}.
What the columns mean stands in eval_stages.py. Intervals are 95% ones; ** marks those without 0: if nothing differed,
one in twenty still would be marked. Times hang on the machine, and on what else it does."""
NOTES = {
    "Pools": "RRF + MaxSim over {}. A question's time in ms, of a few questions; recall@50 ends at the pool's size.",
    "Filters": "For the labelled description or package; pool 50. Six questions have evidence in two: one is kept.",
    "Costs": "A question's parts in ms: retrieve holds the model's pass over the question, rerank another one.",
    "Contextual retrieval": "Published: Anthropic, 2024, other documents, contexts by Claude. Ours come from the "
                            "document itself (contextual.py); for a docstring that is little more than its name.",
}


def report(everything, embedder):
    """All tables, as Markdown: by type of the first corpus, pools and costs of the last one, which is the largest."""
    first, last = everything[0], everything[-1]
    sizes = [f"{len(each.corpus.questions)} questions over {len(each.corpus.chunks):,} chunks of {each.corpus.name}"
             for each in everything]
    sections = {each.corpus.name: quality_table(each) for each in everything} | {
        f"By type: {first.corpus.name}": kinds_table(first),
        "Where fusing by rank hurts": "\n".join(f"- {fusion_explained(each, measure)}" for each in everything
                                                for measure in ("recall@1", "recall@5")),
        "Pools": pool_table(last, embedder), "Filters": filter_table([first, last], embedder),
        "Costs": cost_table(last, embedder), "Contextual retrieval": context_table(everything)}
    parts = ["# Each stage alone", ABOUT.format("; ".join(sizes))]
    for title, text in sections.items():
        parts += [f"## {title}", *([NOTES[title].format(last.corpus.name)] if title in NOTES else []), text]
    return "\n\n".join([*parts, "![recall by stage](stages.png)", "![recall against k](stages_at_k.png)\n"])


def main(arguments=None):
    """Run the comparison; writes results/stages.md and two pictures, or prints a comparison of models. Returns the exit
    status."""
    parser = argparse.ArgumentParser(description="What does each stage of the search buy? With --model: which model?")
    options = eval_models.add_options(parser).parse_args(arguments)
    if eval_models.is_asked_for(options, parser):
        return eval_models.run(options)
    docs, labelled, embedder = documents.load_descriptions(), eval_questions.load_questions(), rag.embedder()
    corpora = [eval_corpora.descriptions("descriptions, 120 words", docs, labelled, size=120),
               eval_corpora.descriptions("descriptions, 200 word pieces", docs, labelled, size=200, length="tokens",
                                         embedder=embedder),
               eval_corpora.docstrings("docstrings", embedder)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                                # some contexts make a chunk too long
        everything = [measure(corpus, embedder) for corpus in corpora]
    print(text := report(everything, embedding.load_embedder()))
    plot(everything, RESULTS / "stages.png")
    plot_curves(everything, RESULTS / "stages_at_k.png")
    (RESULTS / "stages.md").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
