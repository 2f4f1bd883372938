"""Step 21 of 22 — Fifteen ways in which retrieval fails, each reproduced, measured, repaired and measured again.
Before: eval_stages.py. Next: watch.py.

`python failure_modes.py` prints a table, `python failure_modes.py 3` tells one story in full. A story is a function of
the embedder; its docstring names the symptom, the cause and the repair, its result is a Story.

    figure    what is counted, the same way before the repair and after it
    before    the figure where the fault is     12 questions of which 1 finds its invoice first
    after     the figure where it is repaired   12
    told      what happened, line by line

Ten symptoms are those that people bring to a list of remedies; five more hide behind a system that seems to work. Where
a model would be needed, a script stands in its place and is called that: it shows the mechanism, not how often a real
model falls for it. The corpora are the fourteen descriptions, the policies of data/hr, or a few lines in the story.

Not here: how large an effect is in general (eval_stages.py, eval_sweep.py, eval_answers.py): these are single cases,
chosen because they fail.
"""

import argparse
import functools
import re
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

import answering
import chunking
import corpus
import documents
import eval_corpora
import eval_questions
import eval_spans
import grading
import prompt
import rag
import refusal
import rerank
import toy
from index import Index
from search import search

POLICIES = Path(__file__).parent / "data" / "hr"


class Story(NamedTuple):
    """One failure, and what its repair does to one figure."""

    figure: str
    before: float
    after: float
    told: list


# -- What several stories use ------------------------------------------------------------------------------------------


def pages(texts):
    """{title: text} as Documents."""
    return [documents.Document(id=title, title=title, text=text, doc_type="txt") for title, text in texts.items()]


@functools.cache
def labelled():
    """The fourteen descriptions, with their answerable questions: eval_corpora.Asked."""
    return eval_corpora.labelled_descriptions()


def every_fourth():
    """Fewer of those questions, with their evidence, where each takes a while."""
    return labelled().questions[::4], labelled().evidence[::4]


@functools.cache
def described(embedder):
    """An Index of the descriptions, cut as usual."""
    return corpus.open_index(labelled().docs, embedder)


@functools.cache
def policies():
    """The Documents of data/hr."""
    return documents.load_folder(POLICIES)


def chunks_of(hits):
    """The chunks that were found, best first."""
    return [hit.chunk for hit in hits]


def ids(hits):
    """Their documents, as a line."""
    return " ".join(chunk["doc_id"] for chunk in chunks_of(hits))


def found_first(index, asked, **settings):
    """Of {question: document id}, how many find that document first."""
    return sum(search(question, index, **settings)[0].chunk["doc_id"] == doc_id for question, doc_id in asked.items())


def whole(chunks, pieces):
    """Whether each piece of the evidence stands whole in one of the chunks."""
    return all(any(eval_spans.holds(chunk, copies) for chunk in chunks) for copies in pieces)


# -- Ten symptoms and their repairs ------------------------------------------------------------------------------------


def exact_codes(embedder):
    """Codes, names and numbers are missed.

    Cause: only vectors are searched, and those of INV-2290 and INV-2291 point the same way.
    Repair: add BM25, and fuse.
    """
    states = ("was paid in full", "is disputed by the customer", "was sent twice", "waits for a signature")
    docs = pages({f"INV-{number}": f"The invoice INV-{number} {states[number % 4]}." for number in range(2285, 2297)})
    index, asked = corpus.open_index(docs, embedder), {f"What about {doc['id']}?": doc["id"] for doc in docs}
    found, told = [], []
    for mode in ("dense", "hybrid"):
        found.append(found_first(index, asked, mode=mode, k=1, scorer=None))
        told.append(f"INV-2290, {mode}: {ids(search('What about INV-2290?', index, mode=mode, k=3, scorer=None))}")
    return Story("of 12 questions for an invoice, those that find it first", *found, told)


def wrong_chunk(embedder):
    """The right document is found, and the wrong part of it is read.

    Cause: chunks are long, and a vector is the mean of all they say; without a heading the parts look alike.
    Repair: smaller chunks, with title and headings in front.
    """
    asked, recall = labelled(), []
    cuts = [eval_spans.Cut("fixed", 300, 0, "words"), eval_spans.Cut("structured", 60)]
    for cut in cuts:
        chunks = cut.chunks(asked.docs, embedder)
        ranked = eval_spans.rank(chunks, asked.questions, embedder, ["dense"])["dense"]
        recall.append(float(eval_spans.measure(ranked, asked.evidence, chunks, budget=100)["recall"].mean()))
    told = [f"{cut}: {value:.3f} of the evidence is in the first 100 words" for cut, value in zip(cuts, recall)]
    return Story("share of the evidence in the first 100 words that are read, 160 questions", *recall, told)


def split_answer(embedder):
    """The answer is in two chunks, whole in neither.

    Cause: windows of so many words end in the middle of sentences and rows.
    Repair: cut where the text ends something; where that cannot be known, let windows overlap.
    """
    asked, missing, told = labelled(), [], []
    for strategy, overlap in (("fixed", 0), ("fixed", 20), ("structured", 0)):
        cut = eval_spans.Cut(strategy, 40, overlap, "words")
        chunks = cut.chunks(asked.docs, embedder)
        missing.append(sum(not whole(chunks, pieces) for pieces in asked.evidence))
        told.append(f"{cut}: {len(chunks)} chunks, {missing[-1]} answers cut apart")
    return Story("of 160 questions, those whose evidence stands whole in no chunk", missing[0], missing[2], told)


def out_of_context(embedder):
    """What is retrieved does not say what it is about.

    Cause: "It costs £5 a month" stands under a heading, and the heading is not in the chunk.
    Repair: a breadcrumb, "Title > Section", in front of every chunk, for the retrievers and for the reader.
    """
    prices = {"Bike locker": 5, "Parking space": 75, "Gym pass": 18, "Lunch card": 40, "Rented laptop": 25, "Lamp": 2}
    text = "# {}\n\nAsk for one at reception.\n\n## Price\n\nIt costs £{} a month, and is taken from the salary."
    docs = [{**page, "doc_type": "md"} for page in pages({name: text.format(name, prices[name]) for name in prices})]
    chunks = [chunk for page in docs for chunk in chunking.structured(page, size=18) if "£" in chunk["body"]]
    asked, found = {f"What does a {name.lower()} cost?": name for name in prices}, []
    for given in ([{**chunk, "text": chunk["body"], "title": ""} for chunk in chunks], chunks):
        found.append(found_first(Index.build(given, embedder), asked, k=1, scorer=None))
    told = [f"without: {chunks[0]['body']!r}", f"with: {chunks[0]['text']!r}"]
    return Story("of 6 questions for a price, those that find their own first", *found, told)


def outdated(embedder):
    """An answer is out of date.

    Cause: several versions are indexed, and the older one has the words of the question.
    Repair: filter by version or date, before the ranking.
    """
    asked = ["Can I carry over unused vacation into next year?", "How long before must leave be booked?",
             "Do I get a day off for moving house?", "Does the pension go on during unpaid leave?"]
    index, old, told = corpus.open_index(policies(), embedder), [], []
    for where in ({}, {"latest": True}):
        found = [search(question, index, where=where, mode="lexical", scorer=None) for question in asked]
        old.append(sum(hit.chunk["title"] == "Leave Policy 2023" for hits in found for hit in hits))
        told.append(f"{where or 'all'}: {ids(found[0][:4])}")
    return Story("of 32 chunks that are read for 4 questions, those of a replaced version", *old, told)


def leaks(embedder):
    """Somebody reads what others may not show them.

    Cause: permissions are checked after the retrieval, or not at all.
    Repair: a mask of what the user may see, before anything is scored.
    """
    question, index = "What does somebody in grade 5 earn?", corpus.open_index(policies(), embedder)
    found, seen = search(question, index, user="hr"), search(question, index)
    hidden = [sum("acl" in hit.chunk for hit in hits) for hits in (found, seen)]
    told = [f"all are ranked: {ids(found)}", f"filtered afterwards: {8 - hidden[0]} of 8 are left, and whoever counts "
            "knows that something is hidden", f"filtered before: {ids(seen)}"]
    return Story("of 8 chunks, those that a guest may not see", *hidden, told)


def noise(embedder):
    """Retrieval is good, the answer is bad.

    Cause: the right chunk is one of twenty, somewhere in the middle, where a model reads worst.
    Repair: rerank, and send fewer, the best first.

    A script stands in for the model: of what it is sent it reads the first two chunks and the last two.
    """
    (questions, evidence), read, sent = every_fourth(), [], []
    for settings in ({"mode": "dense", "k": 20, "scorer": None}, {"k": 4}):
        found = [chunks_of(search(question, described(embedder), **settings)) for question in questions]
        sent.append(sum(map(whole, found, evidence)))
        read.append(sum(whole(chunks[:2] + chunks[-2:], pieces) for chunks, pieces in zip(found, evidence)))
    told = [f"{name}: sent for {n} questions" for name, n in zip(("20 chunks, by vectors", "4 chunks, reranked"), sent)]
    return Story("of 40 questions, those whose evidence a stand-in reads that skips the middle", *read, told)


def follow_up(embedder):
    """The second question of a conversation finds nothing.

    Cause: "and for EU?" is searched as it was typed.
    Repair: rewrite it as a question that stands alone.

    A script stands in for the model that rewrites.
    """
    topics, places = ("refund", "delivery", "warranty", "discount"), ("EU", "UK", "US")
    index = corpus.open_index(pages({f"{topic}, {place}": f"The {topic} policy for {place} customers."
                                     for topic in topics for place in places}), embedder)
    found = []
    for rewrites in (False, True):
        for topic in topics:
            said = [("user", f"What is the {topic} policy for UK customers?"), ("assistant", "It is generous [S1].")]
            ask = lambda prompt, system: f"What is the {topic} policy for EU customers?"             # noqa: E731
            [hit] = search("and for EU?", index, history=said if rewrites else None, ask=ask, k=1, scorer=None)
            found.append(hit.chunk["doc_id"])
    right = [f"{topic}, EU" for topic in topics]
    hits = [sum(map(str.__eq__, found[:4], right)), sum(map(str.__eq__, found[4:], right))]
    return Story("of 4 conversations, those whose 'and for EU?' finds its page first", *hits,
                 [f"as typed: {'; '.join(found[:4])}", f"rewritten: {'; '.join(found[4:])}"])


def tables(embedder):
    """Tables come back as rows of numbers without a meaning.

    Cause: who cuts sees words, not rows; the header is in another chunk.
    Repair: a parser that knows tables, cuts between rows, and the header again in each piece.
    """
    [page] = [page for page in policies() if page["id"] == "salary-bands-2026.md"]
    row, whole_rows, told = re.compile(r"^\| \d \|.*\|$", re.MULTILINE), [], []
    for cut in (eval_spans.Cut("fixed", 30, 0, "words"), eval_spans.Cut("structured", 40, 0, "words")):
        texts = [chunk["text"] for chunk in cut.chunks([page], embedder) if row.search(chunk["text"])]
        whole_rows.append(sum(len(row.findall(text)) for text in texts if "| Grade |" in text))
        told.append(f"{cut}: {texts[-1]!r}")
    return Story("of 7 rows, those in a chunk that names their columns", *whole_rows, told)


def slow(embedder):
    """It is slow for one question in twenty.

    Cause: too many candidates go through the slowest stage.
    Repair: a smaller pool, in one batch. Count what is compared, before you look at a clock.
    """
    (questions, evidence), index = every_fourth(), described(embedder)
    scorer, pairs, found, told = rerank.maxsim_scorer(embedder, index.token_store), [], [], []

    def counting(question, texts):
        pairs.append(len(texts))
        return scorer(question, texts)

    for pool in (len(index.chunks), 20):
        hits = [search(question, index, k_each=pool, k=5, scorer=counting) for question in questions]
        found.append(sum(map(whole, map(chunks_of, hits), evidence)))
        told.append(f"a pool of {pool}: five chunks hold the evidence of {found[-1]} questions")
    n = len(questions)
    return Story("pairs of question and chunk that the reranker compares for 40 questions", sum(pairs[:n]),
                 sum(pairs[n:]), told)


# -- Five more, behind a system that seems to work ---------------------------------------------------------------------


def truncation(embedder):
    """What stands at the end of a long chunk is never found.

    Cause: the model reads 256 word pieces, and drops the rest without a word.
    Repair: chunks that it reads whole, counted in its own pieces, breadcrumb included.
    """
    asked, unread, told = labelled(), [], []
    for cut in (eval_spans.Cut("fixed", 300, 0, "words"), eval_spans.Cut()):
        chunks = cut.chunks(asked.docs, embedder)
        unseen, pieces = chunking.unseen_pieces(chunks, embedder)
        unread.append(100 * float(unseen.sum() / pieces.sum()))
        told.append(f"{cut}: {(unseen > 0).sum()} of {len(chunks)} chunks are cut off")
    return Story("percent of all word pieces that the model never reads", *unread, told)


def stale(embedder):
    """The answer was right last week.

    Cause: a document was changed, its chunks and vectors were not.
    Repair: compare what documents say with what was indexed, and embed again what differs.
    """
    changes = {"up to five days roll over": "up to six days roll over", "one week's notice": "ten days' notice",
               "eight weeks of unpaid leave": "nine weeks of unpaid leave"}
    asked = ["How many days roll over?", "How long before must I book?", "How many weeks of unpaid leave are there?"]
    [before] = [page for page in policies() if page["id"] == "leave-policy-2026.md"]
    text = functools.reduce(lambda text, change: text.replace(*change), changes.items(), before["text"])
    quoting = functools.partial(answering.extractive, embedder=embedder)
    index, true, told = corpus.open_index([before], embedder), [], []
    for docs in ([before], [{**before, "text": text}]):
        index.sync(docs)
        bodies = [search(question, index, k=1)[0].chunk["body"] for question in asked]
        true.append(sum(body in text for body in bodies))
        told.append(answering.ask(asked[0], index, reader=quoting).text)
    return Story("of 3 questions, those that find a text which still stands in the document", *true, told)


def over_budget(embedder):
    """The right chunk was found, and never sent.

    Cause: long chunks fill the budget before its turn comes, or it does not fit itself.
    Repair: look at what was dropped; cut smaller chunks.
    """
    asked, packed, told = labelled(), [], []
    for size in (2000, 100):
        chunks = [chunk for page in asked.docs for chunk in chunking.structured(page, size)]
        index = Index.build(chunks, toy.Embedder(max_tokens=10_000))
        found = [chunks_of(search(question, index, mode="lexical", k=5, scorer=None)) for question in asked.questions]
        sent = [fitting(question, chunks, 1000) for question, chunks in zip(asked.questions, found)]
        n_found, n_sent = (sum(map(whole, each, asked.evidence)) for each in (found, sent))
        told.append(f"{size:,} words, by keywords: in five chunks for {n_found}, in the prompt for {n_sent}")
        packed.append(n_sent)
    return Story("of 160 questions, those whose evidence is packed into 1,000 tokens", *packed, told)


def fitting(question, chunks, budget):
    """The stretches of text that a prompt has room for."""
    try:
        return [place for source in prompt.build_prompt(question, chunks, budget).packed for place in source.places]
    except prompt.NoSources:
        return []


def wrong_citation(embedder):
    """A citation opens a page that says something else.

    Cause: a model counts badly; a number that exists is not yet a source that supports.
    Repair: hold every sentence against what it cites, and send back what is not supported.

    A script stands in for the model, and gives its second answer when it is told what was wrong.
    """
    bodies = ["Up to five days roll over.", "The per diem is 40 euros.", "Leave is booked in the portal."]
    said = "Up to five days roll over. [{}] The per diem is 40 euros. [{}] Leave is booked in the portal. [{}]"
    replies = iter([said.format("S2", "S2", "S7"), said.format("S1", "S2", "S3")])
    right, told = [], []
    while len(right) < 2 and right[-1:] != [1]:
        reply = next(replies)
        right.append(grading.citation_precision(reply, bodies))
        told += [reply, *(f"not supported: {each.text}" for each in grading.cited_sentences(reply, len(bodies))
                          if not grading.is_supported(each, bodies, grading.verbatim))]
    return Story("share of citations that open what supports the sentence", *right, told)


def confident(embedder):
    """There is an answer to a question that the documents do not answer.

    Cause: there is always a nearest chunk, and nobody asks how near it is.
    Repair: a threshold, calibrated on labelled questions, below which nobody is asked.
    """
    far, near = ([each["question"] for each in eval_questions.load_questions() if each["type"] == kind]
                 for kind in ("unanswerable-far", "unanswerable-near"))
    least, index = refusal.threshold("maxsim", embedder.name), described(embedder)
    scores = [[search(question, index, k=1)[0].score for question in asked] for asked in (far, near)]
    passed = [sum(score >= least for score in each) for each in scores]
    told = [f"{far[0]!r}: the nearest chunk has a MaxSim of {scores[0][0]:.3f}, the threshold is {least:.3f}",
            f"of {len(near)} questions about these very texts that no text answers, {passed[1]} pass: those only a "
            "model that reads can refuse"]
    return Story("of 22 questions about something else, those that are answered", len(far), passed[0], told)


# -- Telling -----------------------------------------------------------------------------------------------------------

STORIES = (exact_codes, wrong_chunk, split_answer, out_of_context, outdated, leaks, noise, follow_up, tables, slow,
           truncation, stale, over_budget, wrong_citation, confident)


def described_as(story):
    """(symptom, cause, repair, note) of a story, which its docstring names; the note is "" if there is none.

    >>> described_as(exact_codes)[0], described_as(noise)[2]
    ('Codes, names and numbers are missed.', 'rerank, and send fewer, the best first.')
    """
    symptom, remedy, *note = re.sub(r"\s*\n\s*(?!\n)", " ", story.__doc__.strip().replace("\n\n", "\0")).split("\0")
    cause, repair = remedy.strip().removeprefix("Cause: ").split(" Repair: ")
    return symptom, cause, repair, "".join(note).strip()


def shown(figure):
    """A figure with at most three decimals.

    >>> shown(0.30039), shown(15200)
    ('0.3', '15,200')
    """
    return f"{figure:,.3f}".rstrip("0").rstrip(".")


def table(embedder):
    """All stories in Markdown, a row each."""
    lines = ["| | symptom | cause | repair | what is counted | before | after |", "|---:|---|---|---|---|---:|---:|"]
    for number, story in enumerate(tqdm(STORIES, desc="failures", leave=False, disable=None), start=1):
        figure, before, after, _ = story(embedder)
        cells = number, *described_as(story)[:3], figure, shown(before), shown(after)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def tell(number, embedder):
    """One story, from its symptom to its repair."""
    symptom, cause, repair, note = described_as(STORIES[number - 1])
    figure, before, after, told = STORIES[number - 1](embedder)
    return "\n".join([f"{number}. {symptom}", "", f"Cause: {cause}", f"Repair: {repair}", *filter(None, [note]), "",
                      *told, "", f"{figure}: {shown(before)} before, {shown(after)} after"])


def main(arguments=None):
    """Print the table, or one story."""
    parser = argparse.ArgumentParser(description="Fifteen ways in which retrieval fails, and their repairs, measured.")
    parser.add_argument("number", nargs="?", type=int, choices=range(1, len(STORIES) + 1), metavar="NUMBER",
                        help=f"of the story to tell in full, 1 to {len(STORIES)} (default: a table of all)")
    number = parser.parse_args(arguments).number
    print(tell(number, rag.embedder()) if number else table(rag.embedder()))


if __name__ == "__main__":
    main()
