"""Beside step 20 — Which chunks hold the evidence, and how good is a ranking of them?

What eval_stages.py, eval_models.py and eval_answers.py all count. Evidence is a stretch of a document, chunks are
others; a label never names a chunk.

    corpus      chunks, and questions whose evidence is known (eval_corpora.py)
    evidence    for each piece that an answer needs, the spans of its copies (metrics.py)
    gains       of a chunk, the share of the pieces that it holds                 {"cats#1": 0.5, "dogs#1": 0.5}
    whole       the chunks that hold a piece from its first character to its last
    recall@k    of each piece the share of its characters that lies in the first k chunks, mean over the pieces
                (metrics.evidence_recall): a question that needs two pieces from two chunks has at most 1/2 at k = 1
    MRR         1 / rank of the first chunk that holds a piece whole, mean over the questions; 0 beyond the pool
    nDCG@10     of the gains
    pool        what a retriever gives and a reranker looks at: 50 chunks. So recall@50 is what reranking could reach
    interval    95%, of a mean difference over the same questions, which are resampled; or whole groups of them

Not here: how a ranking comes about.
"""

import numpy as np

import metrics
from eval_spans import holds, span

POOL = 50
AT = (1, 3, 5, 8, 12, 20, POOL)
MEASURES = ("recall@1", "recall@3", "recall@5", "recall@8", "recall@12", "recall@50", "MRR", "nDCG@10")


def judged(corpus):
    """[(gains, whole)] of each question: what share of the pieces a chunk holds, and the chunks that hold one whole."""
    chunks, found = {}, []
    for chunk in corpus.chunks:
        chunks.setdefault(chunk["doc_id"], []).append(chunk)
    for pieces in corpus.evidence:
        near = [chunk for doc_id in sorted({copy[0] for copies in pieces for copy in copies})
                for chunk in chunks.get(doc_id, [])]
        gains = {chunk["id"]: metrics.evidence_recall([span(chunk)], pieces) for chunk in near}
        found.append(({name: gain for name, gain in gains.items() if gain},
                      {chunk["id"] for chunk in near if any(holds(chunk, copies) for copies in pieces)}))
    return found


def quality(corpus, ranked, judgements):
    """{measure: values [n_questions]} of rankings of chunk ids, best first.

    A question whose evidence lies in no chunk at all has 0 everywhere.
    """
    spans = {chunk["id"]: span(chunk) for chunk in corpus.chunks}
    values = {f"recall@{k}": [metrics.evidence_recall([spans[name] for name in found[:k] if name in gains], pieces)
                              for found, pieces, (gains, _) in zip(ranked, corpus.evidence, judgements)] for k in AT}
    values["MRR"] = [metrics.reciprocal_rank(found, whole) if whole else 0
                     for found, (_, whole) in zip(ranked, judgements)]
    values["nDCG@10"] = [metrics.ndcg_at_k(found, gains, 10) if gains else 0
                         for found, (gains, _) in zip(ranked, judgements)]
    return {name: np.array(each, float) for name, each in values.items()}


def cluster_interval(differences, groups, resamples=10_000, seed=0):
    """The 95% interval (low, high) of a mean if whole groups are resampled, each with all of its questions.

    A percentile interval, as in metrics.paired_bootstrap. ValueError for fewer than 5 groups.

    >>> cluster_interval([1, 0, 0, 1, 0, 1], ["a", "a", "b", "c", "d", "e"])[0] < 0.5
    True
    """
    names, numbers = np.unique(groups, return_inverse=True)
    if len(names) < 5:
        raise ValueError(f"{len(names)} groups are too few to resample: at least 5 are needed")
    sums, counts = np.bincount(numbers, differences), np.bincount(numbers)
    picks = np.random.default_rng(seed).integers(len(names), size=(resamples, len(names)))
    return tuple(np.quantile(sums[picks].sum(axis=1) / counts[picks].sum(axis=1), [0.025, 0.975]).tolist())


def gained(ours, theirs):
    """The mean difference of two systems over the same questions, with its interval; ** if that leaves out 0.

    Of fewer than five questions no interval can be told.

    >>> gained([1, 1, 1, 1, 1], [0, 0, 0, 0, 0]), gained([1, 0], [0, 0])
    ('+1.000 (+1.000 to +1.000) **', '+0.500 (too few questions for an interval)')
    """
    if len(ours) < 5:
        return f"{np.mean(ours) - np.mean(theirs):+.3f} (too few questions for an interval)"
    found = metrics.paired_bootstrap(ours, theirs)
    return (f"{found.difference:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
            + ("" if found.low <= 0 <= found.high else " **"))


if __name__ == "__main__":
    from types import SimpleNamespace

    from toy import DOCUMENTS

    chunks = [{"id": f"{number}#0", "doc_id": number, "start": 0, "end": len(text), "text": text}
              for number, text in enumerate(DOCUMENTS)]
    copies = metrics.find_copies("the cat", dict(enumerate(DOCUMENTS)))
    labelled = SimpleNamespace(chunks=chunks, questions=["Who sat?"], evidence=[[copies, [(0, 8, 11)]]])
    [(gains, whole)] = judgements = judged(labelled)
    print(f"'the cat' and 'sat' are needed; gains {gains}, a piece whole in {sorted(whole)}")
    for ranked in (["0#0", "1#0"], ["3#0", "1#0", "0#0"]):
        values = quality(labelled, [ranked], judgements)
        print(ranked, ", ".join(f"{name} {values[name][0]:.2f}" for name in ("recall@1", "recall@3", "MRR", "nDCG@10")))
