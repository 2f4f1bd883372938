"""Step 22 of 22 — What happens to a question on its way to an answer? A web page of every stage.
Before: failure_modes.py.

`python watch.py "question"` asks the pipeline once and writes down what each stage was given and what it made of it:
the two rankings and why, their fusion (with sliders), the reranker's matches, the guard, the prompt, the answer and the
sentences that it cites. The page is one file: it loads nothing and sends nothing, so it can be opened, mailed, printed
and projected. Without a question it makes data/watch.html anew.

    number     a chunk's place among those that the user may see: hidden ones are not even counted
    stages     {"dense": [(number, score)], "lexical": ..., "fused": ..., "reranked": ...}, each whole, best first
    keywords   what each word of the question is worth, and in each chunk that was found by it: [count, tf part, score]
    matches    a chunk's word pieces, and their cosines with the question's, in hundredths: rerank.py's
               toy: [[80, 60, 0], [60, 80, 100]]
    mark       a stretch of a source that the answer cites              toy: {"id": "S1-0-0", "start": 4, "end": 9}

Titles, texts and questions come from strangers. They reach the page as data, a JSON object in which no "<" stands;
data/watch/watch.js puts them into the document as text; and the page's own policy lets no script run but that one,
known by its hash.

Not here: several queries for one question; chats; what a model thinks.
"""

import argparse
import base64
import hashlib
import html
import json
import os
import re
import sys
import urllib.parse
import warnings
from itertools import compress
from pathlib import Path

import bm25
import chunking
import citations
import corpus
import filters
import llm
import prompt as packing
import queries
import rag
import reader as extracts
import refusal
from answering import SAYS, ask, stands
from search import search
from token_store import word_vectors

ROOT = Path(__file__).parent
PARTS, HR, PAGE = ROOT / "data" / "watch", ROOT / "data" / "hr", ROOT / "data" / "watch.html"
QUESTION = "Can I carry over unused vacation into next year?"
BANDS = 3000                   # chunks that are drawn as bands: nobody looks at more
FAVOURITES = 3                 # so many of each stage's first have their matches shown, beside those that were kept


# -- What there was to see ---------------------------------------------------------------------------------------------


def observe(question, index, user=None, *, k=8, k_each=50, budget_tokens=6000, reader=None):
    """All that the page shows of one question, as an object for JSON. Parameters and errors are answering.ask's."""
    trace, settings = {}, {"k": k, "k_each": k_each}
    packing.word_pieces(question)                                      # so that no time below is that of loading
    search(question, index, user, trace=trace, **settings)
    answer = ask(question, index, user, budget_tokens=budget_tokens, reader=reader, **settings)
    chunks = list(compress(index.chunks, index.visible(user)))
    numbers = {chunk["id"]: number for number, chunk in enumerate(chunks)}
    stages = {name: [(numbers[each], score) for each, score in run] for name, run in trace["stages"].items()}
    found = {number: chunks[number] for number in sorted({number for run in stages.values() for number, _ in run})}
    watched = [number for run in stages.values() for number, _ in run[:FAVOURITES]]
    watched += [numbers[hit.found["id"]] for hit in answer.hits]
    return {
        "question": question, "user": sorted(filters.groups_of(user)), "k": k,
        "stages": stages, "chunks": {number: _described(chunk, answer) for number, chunk in found.items()},
        "keywords": _keywords(answer.searched, index, user, {number: found[number] for number, _ in stages["lexical"]}),
        "matches": _matches(answer.searched, index, {number: found[number] for number in dict.fromkeys(watched)}),
        "guard": _guard(answer, index), "budget": _budget(answer, budget_tokens),
        "dropped": [[chunk["id"], _short(chunk.get("title") or ""), why] for chunk, why in answer.dropped],
        **_bands(chunks, found), **_answered(answer, index.embedder), "timings": answer.timings}


def _described(chunk, answer):
    """What a chunk says, and as which source it was packed."""
    path = " › ".join(name for name in chunk.get("section_path") or [] if name != chunk.get("title"))
    packed = [source.id for source in answer.packed for place in source.places if place["doc_id"] == chunk["doc_id"]
              and place["start"] <= chunk["start"] and chunk["end"] <= place["end"]]
    return {"id": chunk["id"], "title": _short(chunk.get("title") or chunk["doc_id"]), "section": _short(path),
            "body": chunk["body"], "from": chunk["effective_date"][:10] if chunk.get("effective_date") else "",
            "source": packed[0] if packed else ""}


def _short(text):
    return text if len(text) <= packing.ATTRIBUTE else text[:packing.ATTRIBUTE - 1] + "…"


def _bands(chunks, found):
    """Each document's chunks, as [name, title, first number, lengths]: those with a find first, BANDS chunks in all."""
    bands = {}
    for number, chunk in enumerate(chunks):
        name = chunk["doc_id"]
        bands.setdefault(name, [name, _short(chunk.get("title") or name), number, []])[3].append(len(chunk["body"]))
    holds = {chunk["doc_id"] for chunk in found.values()}
    shown, room = [], BANDS
    for band in sorted(bands.values(), key=lambda band: band[0] not in holds):
        if len(band[3]) <= room:
            shown.append(band)
            room -= len(band[3])
    return {"bands": shown, "n_documents": len(bands), "n_chunks": len(chunks)}


def _keywords(question, index, user, found):
    """BM25 taken apart: the question's words, and their part in each chunk that was found by them."""
    postings, visible = index.postings, index.visible(user)
    tokens = bm25.tokenize(" ".join([question, *queries.identifiers(question)]))
    places, words, rows = {chunk["id"]: place for place, chunk in enumerate(index.chunks)}, [], {}
    for number, chunk in found.items():
        terms = postings.explain(tokens, places[chunk["id"]], visible)
        words = [[term.term, term.repeats, term.df, round(term.idf, 6)] for term in terms]
        parts = [[term.count, round(term.tf_part, 6), round(term.score, 6)] for term in terms]
        rows[number] = {"length": int(postings.lengths[places[chunk["id"]]]), "parts": parts}
    lengths = postings.lengths[visible]
    return {"words": words, "chunks": rows, "mean_length": float(lengths.mean()) if len(lengths) else 0,
            **{name: postings.parameters[name] for name in ("k1", "b")}}


def _matches(question, index, found):
    """How the reranker compares: the cosines of the question's word pieces with each chunk's."""
    vectors, offsets = index.embedder.token_vectors(question, "query")
    ours, rows = word_vectors(vectors, offsets), {}                    # [n_question, dim]
    for number, chunk in found.items():
        text = chunking.searched_text(chunk)
        [theirs] = index.token_store.vectors([text])                   # [n_text, dim]
        cosines = ours @ theirs.astype(ours.dtype).T                   # [n_question, n_text]
        rows[number] = {"words": _pieces(text, index.embedder.token_vectors(text)[1]),
                        "cosines": (100 * cosines).round().astype(int).tolist(),
                        "best": cosines.argmax(axis=1).tolist() if cosines.size else [],
                        "most": cosines.max(axis=1).astype(float).round(6).tolist() if cosines.size else []}
    return {"question": _pieces(question, offsets), "chunks": rows}


def _pieces(text, offsets):
    return [text[start:end] for start, end in offsets.tolist() if end > start]


def _guard(answer, index):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                                # ask has said it
        least = refusal.threshold("maxsim", index.embedder.name)
    return {"score": answer.hits[0].score if answer.hits else None, "threshold": least}


def _budget(answer, budget_tokens):
    """How many tokens the prompt took, and what for: [[name, tokens]]."""
    if answer.prompt is None:
        return {"tokens": 0, "most": budget_tokens, "parts": []}
    parts = [["rules", packing.word_pieces(packing.SYSTEM)],
             *([source.id, packing.word_pieces(source.body) - 2] for source in answer.packed)]          # no specials
    rest = answer.prompt.tokens - sum(tokens for _, tokens in parts)
    return {"tokens": answer.prompt.tokens, "most": budget_tokens, "parts": [*parts, ["tags and question", rest]]}


# -- The answer, and where its citations lead --------------------------------------------------------------------------


def _answered(answer, embedder):
    """The prompt, its sources with marks in them, and the answer in pieces: [text, mark's id or ""]."""
    spans = [_opened(answer, each, embedder) for each in answer.citations]
    marks = _marks(spans)
    pieces, end = [], 0
    for each, (number, place, start, _) in zip(answer.citations, spans):
        pieces.append([citations.unescaped(answer.text[end:each.citation.start]), ""])
        pieces.append([f"[S{number}]", next(mark["id"] for mark in marks[number, place] if start < mark["end"])])
        end = each.citation.end
    pieces.append([citations.unescaped(answer.text[end:]), ""])
    sources = [_source(number, source, marks) for number, source in enumerate(answer.packed, start=1)]
    return {"answer": pieces, "refused": answer.refused, "reader": answer.reader, "sources": sources,
            "uncited": [answer.text[start:end] for start, end in answer.uncited],
            "prompt": {"system": answer.prompt.system, "user": answer.prompt.user} if answer.prompt else None}


def _source(number, source, marks):
    """A source as it was packed: where it stands, all that it says, and the marks in it."""
    places = []
    for at, place in enumerate(source.places):
        shown = {key: place[key] for key in ("doc_id", "body", "start", "end", "page") if key in place}
        places.append({**shown, "section": _short(" › ".join(place.get("section_path", []))),
                       "from": place.get("effective_date", "")[:10], "marks": marks.get((number, at), [])})
    return {"id": source.id, "title": _short(source.title), "places": places}


def _opened(answer, reference, embedder):
    """(source, place, start, end): the words of a source that a citation stands for, offsets into the place's body.

    The sentence itself if it stands there, else what is nearest to it, else all of the first place.
    """
    source, said = answer.packed[reference.number - 1], ""
    if reference.sentence:
        found = list(dict.fromkeys(each.citation for each in answer.citations))
        said = citations.removed(answer.text, found, *reference.sentence).rpartition(SAYS)[2]
    for at, place in enumerate(source.places):
        if span := stands(said, place["body"]):
            return reference.number, at, *span
    passages = [{"title": source.title, **place} for place in source.places]
    nearest = extracts.candidates(said, passages, embedder)[:1] if said.strip() else []
    at, start, end = nearest[0][:3] if nearest else (0, 0, len(passages[0]["body"]))
    return reference.number, at, start, end


def _marks(spans):
    """{(source, place): marks}, by their starts; what overlaps is one mark.

    >>> _marks([(1, 0, 4, 9), (1, 0, 7, 12)])
    {(1, 0): [{'id': 'S1-0-0', 'start': 4, 'end': 12}]}
    """
    marks = {}
    for number, at, start, end in sorted(spans):
        before = marks.setdefault((number, at), [])
        if before and start < before[-1]["end"]:
            before[-1]["end"] = max(end, before[-1]["end"])
        else:
            before.append({"id": f"S{number}-{at}-{len(before)}", "start": start, "end": end})
    return marks


# -- The page ----------------------------------------------------------------------------------------------------------


def page(data, root=".."):
    """The page as a string, from an object that `observe` made; `root` leads from it to the modules."""
    style, script = ((PARTS / name).read_text(encoding="utf-8") for name in ("watch.css", "watch.js"))
    fills = {"question": html.escape(data["question"]), "data": as_data(data), "style": style, "script": script,
             "style_hash": _hash(style), "script_hash": _hash(script), "root": html.escape(urllib.parse.quote(root))}
    template = (PARTS / "template.html").read_text(encoding="utf-8")
    # subtle: all at once, or a document that says {{script}} would be filled in too
    text = re.sub(r"\{\{(\w+)\}\}", lambda match: fills[match[1]], template)
    return text.encode("utf-8", "replace").decode()                    # "?" for half characters, which no file can hold


def as_data(data):
    r"""JSON that can stand in a script element: nothing in it ends the element, or begins a comment.

    >>> print(as_data({"text": "</script><!--"}))
    {"text":"\u003c/script>\u003c!--"}
    """
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _hash(text):
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# -- The command line --------------------------------------------------------------------------------------------------


def _parser():
    parser = argparse.ArgumentParser(description="Write a web page on which one question can be watched on its way.")
    add = parser.add_argument
    add("question", nargs="*", help=f"the words of your question (default: {QUESTION})")
    add("--docs", metavar="FOLDER", default=HR, help="the documents that are asked (default: the policies in data/hr)")
    add("--user", metavar="GROUPS", default="", help="who asks, as names of groups: hr,staff (default: anonymous)")
    add("--out", metavar="FILE", help="where the page goes (default: watch.html; without a question data/watch.html)")
    add("--k", type=int, default=8, help="how many chunks to keep (default: 8)")
    add("--k-each", type=int, default=50, help="how many chunks each retriever gives (default: 50)")
    add("--budget", type=int, default=6000, help="how many tokens the prompt may have (default: 6000)")
    return parser


def main(arguments=None):
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    question = " ".join(options.question) or QUESTION
    out = Path(options.out or ("watch.html" if options.question else PAGE)).absolute()
    user = [name.strip() for name in options.user.split(",") if name.strip()]
    try:
        index = corpus.open_index(corpus.read_folder(options.docs), rag.embedder())
        data = observe(question, index, user, k=options.k, k_each=options.k_each, budget_tokens=options.budget)
        root = Path(os.path.relpath(ROOT, out.parent)).as_posix()
        out.write_text(page(data, root), encoding="utf-8", newline="\n")
    except (ImportError, OSError, ValueError, *llm.failures()) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{os.path.relpath(out)}: open it in a browser")
    return 0


if __name__ == "__main__":
    warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
    sys.exit(main())
