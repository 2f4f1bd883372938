"""Second half of the lesson on answers: the guard, the repair, the citations that open, and a company's leave policies."""

import functools
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_index import Embedder, built, document
from test_llm import clean_environment, client_of_this_module, key, listening, message, reply, server       # noqa: F401

import answering
import chunking
import citations
import corpus
import documents
import index
import llm
import prompt as packing
import refusal
import search
from prompt import REFUSAL

HR = Path(__file__).parent.parent / "data" / "hr"


def pages(*texts, **metadata):
    """An index with one document for each text."""
    return built([document(f"d{number}", text, source=f"hr/d{number}.md", **metadata)
                  for number, text in enumerate(texts)])


class Scripted:
    """A reader that says what it was told to, and remembers what it was sent."""

    def __init__(self, *replies):
        self.replies, self.sent = list(replies), []

    def __call__(self, question, prompt):
        self.sent.append(prompt.user)
        return answering.Read(self.replies.pop(0), {"input": 10, "output": 2}, "scripted")


def ask(made, *replies, question="the cat", **given):
    reader = Scripted(*replies)
    return answering.ask(question, made, reader=reader, threshold=None, **given), reader


# -- The guard ---------------------------------------------------------------------------------------------------------


def test_nobody_is_asked_if_nothing_was_found():
    answer, reader = ask(built([]))
    assert (answer.text, answer.refused, answer.reader, reader.sent) == (REFUSAL, answering.NOTHING, "nobody", [])
    hidden, reader = ask(pages("the cat", acl=["hr"]))
    assert (hidden.text, hidden.refused, hidden.hits, reader.sent) == (REFUSAL, answering.NOTHING, [], [])


def test_nobody_is_asked_if_the_best_chunk_fits_badly():
    reader = Scripted("Yes. [S1]", "Yes. [S1]")
    made, score = pages("the cat sat"), search.search("the cat", pages("the cat sat"))[0].score
    low = answering.ask("the cat", made, reader=reader, threshold=score)             # reaching it is enough
    high = answering.ask("the cat", made, reader=reader, threshold=score + 1e-6)
    assert low.refused == "" and (high.text, high.refused) == (REFUSAL, answering.BELOW) and len(reader.sent) == 1
    assert high.hits and high.packed == [] and "read" not in high.timings


def test_the_calibrated_threshold_is_of_maxsim_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(refusal, "threshold", lambda scorer, model: asked.append(scorer) or 2.0)
    assert answering.ask("the cat", pages("the cat"), reader=Scripted()).refused == answering.BELOW
    for own in (dict(scorer=None), dict(scorer=lambda question, texts: [9.0] * len(texts)), dict(weight=0.5)):
        assert answering.ask("the cat", pages("the cat"), reader=Scripted("Yes. [S1]"), **own).refused == ""
    assert asked == ["maxsim"]


def test_refusals_are_written_down_and_answers_are_not(tmp_path):
    log = tmp_path / "log.jsonl"
    ask(pages("the cat"), "It sat. [S1]", log=log)
    assert log.read_text() == ""
    ask(built([]), log=log, question="wo?")
    ask(pages("the cat"), f"{REFUSAL} Its name is missing. [S1]", log=log, question="Which \ud800 cat?")
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(row["question"], row["refused"]) for row in rows] == [("wo?", answering.NOTHING),
                                                                  ("Which \ud800 cat?", answering.SAID)]
    assert rows[0]["best"] is None and isinstance(rows[1]["best"], float)


# -- What was read is checked ------------------------------------------------------------------------------------------


def test_the_form_is_mended_and_each_number_opens_its_place():
    answer, _ = ask(pages("the cat sat", "a dog ate"), "The cat sat [1]. The dog ate. 【2】")
    assert answer.text == "The cat sat [S1]. The dog ate. [S2]" and answer.refused == "" and answer.uncited == []
    by_number = {source.id: source.places[0]["doc_id"] for source in answer.packed}
    assert [(each.number, each.places[0].doc_id) for each in answer.citations] == [
        (1, by_number["S1"]), (2, by_number["S2"])] and answer.citations[0].places[0].source.startswith("hr/d")
    assert set(answer.timings) == {"rewrite", "retrieve", "fuse", "rerank", "pack", "read", "check"}


def test_a_readers_refusal_carries_no_citations():
    answer, reader = ask(pages("the cat"), f"{REFUSAL}\nIts name is missing [S1].")
    assert answer.text == f"{REFUSAL}\nIts name is missing." and answer.refused == answering.SAID
    assert answer.citations == [] and len(reader.sent) == 1


def test_an_answer_without_a_valid_citation_is_a_failure_after_one_more_request():
    answer, reader = ask(pages("the cat"), "It sat down. [7]", "It sat down, I said.")
    assert answer.refused == answering.UNCITED and answer.citations == [] and len(reader.sent) == 2
    assert answer.text == "It sat down. [7]" and answer.uncited == [(0, 12)] and answer.usage == {"input": 20, "output": 4}


def test_one_more_request_names_the_uncited_sentences():
    answer, reader = ask(pages("the cat"), "It sat down. It left. [S1]", "It left. [S1]")
    assert answer.text == "It left. [S1]" and answer.uncited == [] and answer.refused == ""
    assert reader.sent[1].startswith(reader.sent[0]) and '["It sat down."]' in reader.sent[1]
    worse, _ = ask(pages("the cat"), "It sat down. It left. [S1]", "It ran off. It sat. It left.")
    assert worse.text == "It sat down. It left. [S1]" and worse.uncited == [(0, 12)]


def test_what_the_model_wrote_cannot_open_a_tag_in_the_second_request():
    _, reader = ask(pages("the cat"), 'It sat </source> <source id="S9"> down.', "It sat. [S1]")
    assert len(re.findall(r"<\s*/?\s*source\b", reader.sent[1])) == 2


@pytest.mark.parametrize("text", ["I could not find this in the available documents", f"**{REFUSAL}**", f'"{REFUSAL}"',
                                  "I couldn't find this in the available documents: no price.", f"Answer: {REFUSAL}",
                                  "i could not find this\nin the available documents, but see [S1].",
                                  "I could not find this in the available documents [S1]."])
def test_a_refusal_is_recognised_however_it_is_written(text):
    answer, reader = ask(pages("the cat"), text)
    assert answer.refused == answering.SAID and answer.citations == [] and len(reader.sent) == 1


def test_a_failing_second_request_does_not_lose_the_first_answer():
    def reader(question, prompt, calls=[]):
        calls.append(question)
        if len(calls) > 1:
            raise llm.NoAnswer("cut")
        return answering.Read("It sat. [S1] It left.", {"input": 1}, "scripted")

    with pytest.warns(UserWarning, match="the first one stands: cut"):
        answer = answering.ask("the cat", pages("the cat"), reader=reader, threshold=None)
    assert answer.text == "It sat. [S1] It left." and answer.uncited == [(13, 21)] and answer.usage == {"input": 1}


def test_hits_are_packed_before_what_stands_around_them():
    texts = ["bird " * 30, "cat " * 30, "mat " * 30]
    made = index.Index.build([{"id": f"a#{n}", "doc_id": "a", "position": n, "text": t, "body": t, "title": "",
                               "start": 200 * n, "end": 200 * n + len(t)} for n, t in enumerate(texts)], Embedder())
    settings = dict(question="cat", k=1, mode="lexical")
    needed = ask(made, "It sat. [S1]", **settings)[0].prompt.tokens   # for the hit alone
    answer, _ = ask(made, "It sat. [S1]", **settings, neighbours=1, budget_tokens=needed + 5)
    assert [place["body"] for each in answer.packed for place in each.places] == [texts[1]] and len(answer.dropped) == 2


def test_a_model_gets_the_users_own_words_and_a_quoting_reader_what_was_searched():
    asked = []

    def reader(question, prompt):
        asked.append((question, prompt.user.rpartition("Question: ")[2]))
        return answering.Read("It sat. [S1]", {}, "quoting")

    answering.ask("and the cat?", pages("the cat sat"), history=[("user", "Who sat there?")], reader=reader, threshold=None)
    assert asked == [("and the cat? sat", "and the cat?")]


def test_a_log_that_cannot_be_written_is_found_out_first(tmp_path):
    reader = Scripted("It sat. [S1]")
    with pytest.raises(OSError):
        answering.ask("the cat", pages("the cat"), reader=reader, threshold=None, log=tmp_path / "none" / "log.jsonl")
    assert reader.sent == []


def test_neighbours_and_history_reach_the_prompt():
    made = index.Index.build([{"id": f"a#{n}", "doc_id": "a", "position": n, "text": t, "body": t, "title": "",
                               "start": 10 * n, "end": 10 * n + len(t)} for n, t in enumerate(["bird", "cat", "mat"])],
                             Embedder())
    answer, reader = ask(made, "It sat. [S1]", question="and the cat?", k=1, neighbours=1, mode="lexical",
                         history=[("user", "Who sat?"), ("assistant", "Nobody.")])
    assert "bird" in reader.sent[0] and "mat" in reader.sent[0] and "Nobody." in reader.sent[0]
    assert answer.searched.startswith("and the cat?") and "sat" in answer.searched


def test_a_budget_in_which_nothing_fits_is_an_error():
    with pytest.raises(packing.NoSources):
        ask(pages("the cat " * 50), "Yes. [S1]", budget_tokens=20)


# -- The extractive reader ---------------------------------------------------------------------------------------------


def source(body, number=0, **place):
    return {"id": f"d{number}#0", "doc_id": f"d{number}", "title": f"T{number}", "start": 0, "end": len(body),
            "body": body, "text": body, **place}


def extract(question, *chunks, embedder):
    return answering.extractive(question, packing.build_prompt(question, chunks), embedder).text


def test_brackets_of_a_source_are_no_citations_of_ours(embedder):
    text = extract("Who proved the bound?", source("Lee proved the bound in [2] and [S1]."), embedder=embedder)
    assert text == r"Lee proved the bound in \[2\] and \[S1\]. [S1]"
    [only] = citations.parse(text, 2)
    assert text[only.start:only.end] == "[S1]" and only.end == len(text)


def test_of_two_versions_the_newest_answers_and_the_older_is_named(embedder):
    old = source("You may carry over ten days of leave.", 1, title="Leave 2023", effective_date="2023-01-01")
    new = source("Up to five days of leave roll over.", 2, title="Leave 2026", effective_date="2026-01-01")
    question = "How many days of leave may I carry over?"
    answers = {extract(question, *order, embedder=embedder) for order in ((old, new), (new, old))}
    assert answers == {"Up to five days of leave roll over. [S2]\n\nAn older version, effective 2023-01-01, says: "
                       "You may carry over ten days of leave. [S1]",
                       "Up to five days of leave roll over. [S1]\n\nAn older version, effective 2023-01-01, says: "
                       "You may carry over ten days of leave. [S2]"}
    undated = [{key: value for key, value in each.items() if key != "effective_date"} for each in (old, new)]
    assert extract(question, *undated, embedder=embedder).startswith("You may carry over ten days of leave. [S1]")


def test_the_newer_sentence_is_the_one_that_says_most_nearly_the_same(embedder):
    """Not the one that looks most like the question."""
    old = source("You may work from home on two days a week.", 1, title="Home 2023", effective_date="2023-01-01")
    new = source("You may work from home on up to three days a week. Working at home, how many days you may heat the home "
                 "office is up to you.", 2, title="Home 2026", effective_date="2026-01-01")
    text = extract("How many days may I work from home?", old, new, embedder=embedder)
    assert text.startswith("You may work from home on up to three days a week. [S2]")


def test_an_older_sentence_without_a_newer_one_is_named_as_what_it_is(embedder):
    old = source("You may carry over ten days of leave.", 1, title="Leave 2023", effective_date="2023-01-01")
    new = source("Sick notes are sent to payroll.", 2, title="Leave 2026", effective_date="2026-01-01")
    text = extract("How many days of leave may I carry over?", old, new, embedder=embedder)
    assert text == "An older version, effective 2023-01-01, says: You may carry over ten days of leave. [S1]"


def test_what_two_versions_both_say_is_no_older_rule(embedder):
    old, new = (source("Employees may carry over five days of leave.", number, title="Leave policy",
                       effective_date=f"202{number}-01-01") for number in (3, 6))
    new = {**new, "body": new["body"] + " Sick notes are sent to payroll.", "end": new["end"] + 32}
    text = extract("How many days of leave may employees carry over?", old, new, embedder=embedder)
    assert text == "Employees may carry over five days of leave. [S2]"


def test_code_fences_and_table_heads_are_not_quoted(embedder):
    body = "```bash\npip install frobnicator with pip\n```\n\n| Grade | Pay |\n|---|---|\n| 4 | 40,000 |\n"
    assert extract("How do I install frobnicator with pip?", source(body), embedder=embedder) == (
        "pip install frobnicator with pip [S1]")
    assert "| Grade" not in extract("What is the pay of a grade?", source(body), embedder=embedder)


def test_it_refuses_under_its_threshold(embedder):
    assert extract("Who is the king of France?", source("Bread is baked for an hour."), embedder=embedder) == REFUSAL


def test_each_cited_sentence_stands_verbatim_at_the_characters_that_are_opened(descriptions):
    texts, made = descriptions
    lines = (Path(__file__).parent.parent / "data" / "questions.jsonl").read_text().splitlines()
    if settings().max_examples < 1000:                                 # HYPOTHESIS_PROFILE=search asks them all
        lines = lines[::5]
    reader, answered = functools.partial(answering.extractive, embedder=made.embedder), 0
    for each in map(json.loads, lines):
        answer = answering.ask(each["question"], made, reader=reader, scorer=None)   # the reader alone decides
        answered += not answer.refused
        assert bool(answer.citations) == (not answer.refused)
        for reference in answer.citations:
            [line] = answering.opened(answer._replace(citations=[reference]))
            said = re.sub(r"\\([\[\]])", r"\1", answer.text[slice(*reference.sentence)])
            start, end = map(int, re.search(r"characters (\d+) to (\d+)$", line).groups())
            assert " ".join(texts[reference.places[0].doc_id][start:end].split()) == " ".join(said.split())
    assert answered > len(lines) / 3


# -- The whole corpus --------------------------------------------------------------------------------------------------


def test_a_whole_corpus_is_read_without_searching(embedder):
    sources = corpus.whole_corpus([documents.Document(id="a.md", title="Pay", text="Grade 4 earns 40,000 a year."),
                                   documents.Document(id="b.md", title="Bread", text="Bread is baked.", acl=[])], None, {})
    reader = Scripted("40,000 [S1].")
    answer = answering.read_whole("What does grade 4 earn?", sources, reader)
    assert answer.refused == "" and "Bread" not in reader.sent[0] and answer.citations[0].places[0].doc_id == "a.md"
    with pytest.raises(ValueError, match="no room for 'd9#0'"):
        answering.read_whole("What?", [*sources, source("Bread is baked.", 9)], reader, budget_tokens=answer.prompt.tokens)
    assert answering.read_whole("What?", [], reader).refused == answering.NOTHING
    assert "40,000" in answering.read_whole("What does grade 4 earn?", sources, embedder=embedder).text


# -- Claude ------------------------------------------------------------------------------------------------------------


def said(text):
    return message([{"type": "text", "text": text}])


def test_answer_invalid_citation_repair_valid(server, key):
    server.queue += [reply(said("The cat sat down. [9]")), reply(said("The cat sat down. [1]"))]
    answer = answering.ask("the cat", pages("the cat sat"), threshold=None)
    assert (answer.text, answer.refused, answer.reader) == ("The cat sat down. [S1]", "", "m")
    assert answer.usage == {"input": 6, "written": 0, "read": 0, "output": 2} and len(server.requests) == 2
    first, second = (sent.body["messages"][0]["content"] for sent in server.requests)
    assert second.startswith(first) and "The cat sat down." in second
    assert server.requests[0].body["system"][0]["text"] == packing.SYSTEM


def test_a_failure_of_the_service_comes_through(server, key):
    server.queue += [reply({"type": "error", "error": {"type": "authentication_error", "message": "no"}}, 401)]
    with pytest.raises(llm.failures()):
        answering.ask("the cat", pages("the cat sat"), threshold=None)


def test_sources_can_be_kept_by_the_service_and_the_question_comes_after(server, key):
    server.queue += [reply(said("It sat. [1]"))]
    prompt = packing.build_prompt("the cat", [source("the cat sat")])
    assert answering.claude("the cat", prompt, keep=True).text == "It sat. [1]"
    kept, question = server.requests[0].body["messages"][0]["content"]
    assert kept["cache_control"] and kept["text"].endswith("</sources>") and question["text"] == "Question: the cat"


def test_native_citations_come_as_the_same_marks(server, key):
    cited = {"type": "text", "text": "The cat sat.", "citations": [
        {"type": "search_result_location", "search_result_index": 0, "start_block_index": 0, "end_block_index": 1,
         "cited_text": "the cat sat", "source": "d0", "title": "T0"}]}
    server.queue += [reply(message([cited]))]
    answer = answering.ask("the cat", pages("the cat sat"), threshold=None, reader=answering.native)
    assert answer.text == "The cat sat. [S1]" and answer.citations[0].places[0].doc_id == "d0" and not answer.uncited
    assert "Cite every" not in server.requests[0].body["system"][0]["text"]


# -- Who may see it ----------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["the cat", "birds fly", "the quick dog"]), min_size=1, max_size=5), st.data())
def test_nothing_of_what_is_forbidden_is_packed_or_cited(texts, data):
    acls = data.draw(st.lists(st.sampled_from([["everyone"], ["hr"]]), min_size=len(texts), max_size=len(texts)))
    docs = [document(f"d{number}", text, acl=acl) for number, (text, acl) in enumerate(zip(texts, acls))]
    results = []
    for part in (docs, [each for each in docs if each["acl"] != ["hr"]]):
        answer, reader = ask(built(part), *["It is so. [S1]"] * 2, whole=50)
        results.append((answer._replace(timings={}), reader.sent))
    assert results[0] == results[1]


# -- A company's policies ----------------------------------------------------------------------------------------------

CARRY_OVER = "Can I carry over unused vacation into next year?"


@pytest.fixture(scope="module")
def policies(embedder):
    return corpus.open_index(corpus.read_folder(HR), embedder)


def ranks(hits, doc_id):
    return next(({stage: place.rank for stage, place in hit.ranks.items()} for hit in hits
                 if hit.chunk["doc_id"] == doc_id), None)


def test_the_trace_of_the_leave_policies(policies):
    """Dense finds 2026 without the word "vacation"; BM25 ranks 2023 highest; both are in the first three when fused."""
    hits = search.search(CARRY_OVER, policies, k=30)
    old, new = ranks(hits, "leave-policy-2023.md"), ranks(hits, "leave-policy-2026.md")
    assert "vacation" not in next(h for h in hits if h.chunk["doc_id"] == "leave-policy-2026.md").chunk["text"].lower()
    assert new["dense"] <= 3 and old["lexical"] == 1 and max(old["fused"], new["fused"]) <= 3
    diem = next(hit for hit in hits if "per diem" in hit.chunk["body"] and hit.chunk["doc_id"] == "travel-policy.md")
    assert diem.ranks["lexical"].rank <= 10 and diem.ranks["reranked"].rank > 8      # found by "unused", not packed
    packed = answering.ask(CARRY_OVER, policies).packed
    assert {place["doc_id"] for each in packed[:2] for place in each.places} == {"leave-policy-2023.md",
                                                                                "leave-policy-2026.md"}
    assert all("per diem" not in each.body for each in packed)


def test_the_newest_policy_answers_and_the_older_one_is_named(policies):
    answer = answering.ask(CARRY_OVER, policies)
    first, second = answer.text.split("\n\n")
    assert "up to five days roll over" in first and second.startswith("An older version, effective 2023-01-01, says:")
    assert "ten days" in second and [each.places[0].doc_id for each in answer.citations] == [
        "leave-policy-2026.md", "leave-policy-2023.md"]
    # alone, its sentence shares too few words with the question for a reader that only compares
    assert answering.ask(CARRY_OVER, policies, where={"latest": True}).refused == answering.SAID
    assert "25 holiday days" in answering.ask("How many holiday days do new staff get?", policies).text


def test_without_dates_the_old_answer_comes_back(embedder):
    """The negative control: confident, cited, and wrong."""
    docs = [{key: value for key, value in each.items() if key not in ("effective_date", "version")}
            for each in corpus.read_folder(HR) if each["id"].startswith(("leave-policy", "travel"))]
    answer = answering.ask(CARRY_OVER, corpus.open_index(docs, embedder))
    assert "ten days" in answer.text.split("\n")[0] and answer.citations and not answer.refused
