"""The page on which a question is watched: what it is made of, and what it does in a real browser."""

import base64
import hashlib
import html
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

import chromium
import corpus
import fusion
import index
import toy
import watch
from answering import BELOW, NOTHING, Read

ROOT = Path(__file__).parent.parent
AXE = ROOT / ".venv" / "axe" / "package" / "axe.min.js"
QUESTION = "the cat dog"
pytestmark = pytest.mark.filterwarnings("ignore:the thresholds were calibrated for")


def chunk_of(name, text, **more):
    return {"id": f"{name}#0", "doc_id": name, "position": 0, "title": f"About {name}", "text": text, "body": text,
            "start": 0, "end": len(text), **more}


def animals(**more):
    """The toy corpus, with its own vectors; `more` is of document 0."""
    chunks = [chunk_of(f"d{number}", text, vector=vector, **(more if number == 0 else {}))
              for number, (text, vector) in enumerate(zip(toy.DOCUMENTS, toy.VECTORS))]
    return index.Index.build(chunks, AsToyAsks(), title_boost=0)


class AsToyAsks(toy.Topics):
    """The toy corpus' own question vector; every text has it too, if it must be embedded."""

    def encode(self, texts, kind="document", batch_size=None):
        return index.np.array([toy.QUERY_VECTOR for _ in texts], "float32")


def says(text):
    """A reader that always says the same."""
    return lambda question, prompt: Read(text, {"input": 1}, "scripted")


def seen(text="It chased. [S1]", made=None, user=None, **settings):
    return watch.observe(QUESTION, made or animals(), user, reader=says(text), **settings)


def without_times(data):
    return {name: value for name, value in data.items() if name != "timings"}


def texts(*bodies, embedder=None):
    """An index with one document for each text."""
    return index.Index.build([chunk_of(f"d{number}", body) for number, body in enumerate(bodies)], embedder or toy.Topics())


# -- What there was to see, by hand ------------------------------------------------------------------------------------


def test_each_stage_is_there_whole_with_its_scores():
    stages = seen()["stages"]
    assert list(stages) == ["dense", "lexical", "fused", "reranked"]
    assert [(number, round(score, 4)) for number, score in stages["dense"]] == [(0, 0.96), (1, 0.8), (3, 0.6), (2, 0.0)]
    assert [(number, round(score, 4)) for number, score in stages["lexical"]] == [(1, 0.7799), (3, 0.5316), (0, 0.457)]
    assert dict(stages["fused"]) == approx({1: 1 + 0.8 / 0.96, 0: 0 + 1, 3: (0.5316 - 0.457) / (0.7799 - 0.457) + 0.6 / 0.96,
                                            2: 0}, abs=1e-3)


def test_bm25_is_taken_apart_as_with_a_pencil():
    keywords = seen()["keywords"]
    assert [(word, repeats, df) for word, repeats, df, _ in keywords["words"]] == [("the", 1, 3), ("cat", 1, 2), ("dog", 1, 2)]
    assert keywords["words"][1][3] == approx(0.6931, abs=1e-4)                                        # ln(1 + 2.5 / 2.5)
    assert keywords["chunks"][1]["parts"][1] == approx([1, 0.4124, 0.2858], abs=1e-4)
    assert (keywords["chunks"][1]["length"], keywords["mean_length"], keywords["k1"], keywords["b"]) == (5, 4, 1.2, 0.75)
    assert keywords["chunks"][3]["parts"][1] == [0, 0, 0] and 2 not in keywords["chunks"]


def test_matches_are_the_cosines_whose_best_have_the_rerankers_score_as_mean():
    data = watch.observe("cat oil", texts("gold cat rose", "birds"), reader=says("Gold. [S1]"))
    match, scores = data["matches"]["chunks"][0], dict(data["stages"]["reranked"])
    assert (data["matches"]["question"], match["words"]) == (["cat", "oil"], ["gold", "cat", "rose"])
    assert match["cosines"] == [[0, 100, 0], [100, 0, 100]] and match["best"] == [1, 0]
    assert data["matches"]["chunks"][1]["cosines"] == [[71], [71]]
    assert sum(match["most"]) / 2 == approx(scores[0], abs=1e-3) == approx(1)


def test_of_what_is_hidden_not_even_the_number_shows():
    hidden, gone = animals(acl=["hr"]), animals()
    gone.remove(["d0"])
    assert without_times(seen(made=hidden)) == without_times(seen(made=gone))
    assert "the cat sat" not in json.dumps(seen(made=hidden)) and seen(made=hidden)["n_documents"] == 3
    assert "the cat sat" in json.dumps(seen(made=hidden, user="hr"))


def test_a_chunk_knows_as_which_source_it_was_packed():
    data = seen(k=2)
    sources = {number: chunk["source"] for number, chunk in data["chunks"].items()}
    assert sorted(sources.values()) == ["", "", "S1", "S2"]
    assert [place["doc_id"] for source in data["sources"] for place in source["places"]] == [
        data["chunks"][number]["id"][:2] for number, _ in data["stages"]["reranked"][:2]]


def test_what_did_not_fit_is_named_with_its_reason():
    made = texts("cat " * 40, "the cat dog")
    everything = watch.observe(QUESTION, made, reader=says("Yes. [S1]"))
    budget = everything["budget"]
    assert sum(tokens for _, tokens in budget["parts"]) == budget["tokens"] <= budget["most"] == 6000
    assert [name for name, _ in budget["parts"]] == ["rules", "S1", "S2", "tags and question"]
    assert dict(budget["parts"])[everything["chunks"][0]["source"]] == 40
    tight = watch.observe(QUESTION, made, reader=says("Yes. [S1]"), budget_tokens=budget["tokens"] - 1)
    assert [why[:15] for _, _, why in tight["dropped"]] == ["it does not fit"] and len(tight["sources"]) == 1


def test_bands_hold_every_chunk_and_those_with_a_find_come_first():
    chunks = [{**chunk_of("a", "x"), "position": 0}, {**chunk_of("a", "yy"), "position": 1}, chunk_of("b", "zzz")]
    assert watch._bands(chunks, {2: chunks[2]}) == {
        "bands": [["b", "About b", 2, [3]], ["a", "About a", 0, [1, 2]]], "n_documents": 2, "n_chunks": 3}


def test_a_quote_opens_itself_and_a_paraphrase_what_is_nearest():
    body = "Oil rose. A cat sat. Birds fly."
    made = texts(body)
    for answer, opened in (("Birds fly. [S1]", "Birds fly."), ("The mat and the cat slept. [S1]", "A cat sat."),
                           ("The cat ate and slept, he says: Oil rose. [S1]", "Oil rose.")):
        data = seen(answer, made)
        [mark] = data["sources"][0]["places"][0]["marks"]
        assert body[mark["start"]:mark["end"]] == opened
        assert data["answer"] == [[answer[:-4], ""], ["[S1]", mark["id"]], ["", ""]]


def test_two_citations_of_a_source_open_two_sentences_or_one_that_covers_both():
    made = texts("Oil rose. A cat sat. Birds fly.")
    data = seen("Birds fly. [S1] Oil rose. [S1] Oil rose. A cat sat. [S1]", made)
    marks = data["sources"][0]["places"][0]["marks"]
    assert [(mark["start"], mark["end"]) for mark in marks] == [(0, 9), (10, 20), (21, 31)]
    assert [mark for _, mark in data["answer"] if mark] == ["S1-0-2", "S1-0-0", "S1-0-1"]
    assert watch._marks([(1, 0, 10, 20), (1, 0, 0, 5), (1, 0, 15, 30)])[1, 0] == [
        {"id": "S1-0-0", "start": 0, "end": 5}, {"id": "S1-0-1", "start": 10, "end": 30}]


def test_sentences_without_a_source_and_refusals_are_shown_as_such():
    assert seen("It chased. [S1] It also sang.")["uncited"] == ["It also sang."]
    empty = watch.observe(QUESTION, texts("the cat", embedder=toy.Topics()), reader=says(""), k=0)
    assert (empty["refused"], empty["prompt"], empty["guard"]["score"], empty["sources"]) == (NOTHING, None, None, [])
    assert [text for text, _ in empty["answer"]] == ["I could not find this in the available documents."]


def test_no_document_can_end_the_data_and_all_of_it_comes_back():
    hostile = {"text": "</script><!-- <script>\u2028\x00 {{script}} \"'&amp;", "question": "<b>"}
    kept = watch.as_data(hostile)
    assert "<" not in kept and json.loads(kept) == hostile
    page = watch.page({**hostile, "question": "</title><script>{{data}}"})
    assert page.count("<script") == 2 and page.count("</title>") == 1
    assert html.unescape(re.search("<title>(.*)</title>", page)[1]).startswith("</title><script>{{data}} –")
    assert json.loads(between(page, '<script type="application/json" id="data">', "</script>"))["text"] == hostile["text"]
    with pytest.raises(ValueError):
        watch.as_data({"score": float("nan")})


@given(st.text())
def test_any_text_comes_back(text):
    kept = watch.as_data({"text": text})
    assert json.loads(kept) == {"text": text} and "<" not in kept


def test_half_characters_do_not_reach_the_file():
    assert watch.page({"question": "a\ud800b"}).count("a?b") == 2


def test_the_policy_lets_one_script_and_one_style_in_by_their_hashes():
    page = watch.page({"question": "?"}, root="../a b")
    policy = re.search('http-equiv="Content-Security-Policy" content="(.*?)"', page)[1]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    for name, part in (("style", between(page, "<style>", "</style>")), ("script", between(page, "<script>", "</script>"))):
        assert f"{name}-src 'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" in policy
    assert 'href="../a%20b/fusion.py"' in page


def between(text, start, end):
    return text.partition(start)[2].partition(end)[0]


# -- The committed page ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def policies(embedder):
    return corpus.open_index(corpus.read_folder(watch.HR), embedder)


@pytest.fixture(scope="module")
def committed():
    page = watch.PAGE.read_text(encoding="utf-8")
    return page, json.loads(between(page, '<script type="application/json" id="data">', "</script>"))


def differences(old, new, where="page"):
    """Where two objects differ by more than the last digits of another machine."""
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [each for name in old for each in differences(old[name], new[name], f"{where}.{name}")]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [each for at, pair in enumerate(zip(old, new)) for each in differences(*pair, f"{where}[{at}]")]
    if isinstance(old, float) and isinstance(new, float):
        return [] if abs(old - new) < 1e-4 else [where]
    near = ".cosines" in where and abs(old - new) <= 1                 # a hundredth, rounded up here and down there
    return [] if near or old == new else [where]


def test_the_committed_page_is_what_the_command_makes(committed, policies, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    page, old = committed
    assert watch.page(old) == page, "python watch.py makes data/watch.html anew"
    new = json.loads(watch.as_data(watch.observe(watch.QUESTION, policies)))
    assert list(new["timings"]) == list(old["timings"]) == ["rewrite", "retrieve", "fuse", "rerank", "pack", "read", "check"]
    assert differences(without_times(old), without_times(new)) == []


def test_the_committed_page_is_small_and_names_every_module_that_it_links(committed):
    page, _ = committed
    assert len(page.encode()) < 1_000_000
    modules = re.findall(r'href="\.\./(\w+\.py)"', page)
    assert len(modules) == 12 and all((ROOT / module).exists() for module in modules)
    for step, module in re.findall(r'[Ss]tep (\d+),\s+<a href="\.\./(\w+\.py)"', page.replace("Beside s", "")):
        assert f"Step {step} of 22" in (ROOT / module).read_text(encoding="utf-8")
    assert re.findall(r"Place to fail (\d) of 4\.</b>", page) == ["1", "2", "3", "4"]


def test_the_committed_page_answers_by_the_newest_policy_and_names_the_older(committed):
    _, data = committed
    places = {mark["id"]: place["body"][mark["start"]:mark["end"]] for source in data["sources"]
              for place in source["places"] for mark in place["marks"]}
    opened = [" ".join(places[mark].split()) for _, mark in data["answer"] if mark]
    assert "up to five days roll over" in opened[0] and "up to ten days of unused vacation" in opened[1]


# -- The command line --------------------------------------------------------------------------------------------------


def test_main_writes_a_page_that_links_to_the_modules_from_where_it_is(tmp_path, capsys):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "leave.md").write_text("# Leave\n\nUp to five days of leave roll over.\n")
    out = tmp_path / "page.html"
    arguments = ["How many days", "roll over?", "--docs", str(tmp_path / "docs"), "--out", str(out)]
    assert watch.main([*arguments, "--user", "hr, staff"]) == 0 and "page.html" in capsys.readouterr().out
    page = out.read_text(encoding="utf-8")
    [link] = set(re.findall(r'href="([^"]*)/fusion\.py"', page))
    assert (tmp_path / link).resolve() == ROOT and "How many days roll over?" in page
    data = json.loads(between(page, '<script type="application/json" id="data">', "</script>"))
    assert data["user"] == ["everyone", "hr", "staff"] and str(tmp_path) not in json.dumps(data)
    assert watch.main([*arguments, "--k", "9", "--k-each", "3"]) == 1 and "make it at least k" in capsys.readouterr().err


# -- In a browser ------------------------------------------------------------------------------------------------------


def missing(what):
    """Locally a test that lacks something is skipped; where everything is tested it fails."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


@pytest.fixture(scope="module")
def browser():
    if not chromium.find():
        missing("there is no Chromium: install Debian's package chromium")
    page = chromium.Page()
    yield page
    page.close()


@pytest.fixture(scope="module")
def axe():
    if not AXE.exists():
        missing(f"there is no axe-core: unpack `npm pack axe-core` into {AXE.parent.parent.relative_to(ROOT)} (.ci/run)")
    return AXE.read_text(encoding="utf-8")


HOSTILE = ["</script><script>window.hacked = 1</script>", "<img src=x onerror='window.hacked = 1'>",
           "<!-- <script> {{script}} ${alert(1)}", "\u202e\u2066 olleh", "x" * 3000, "| a |\n|---|\n" + "| <b>b</b> |\n" * 9]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A page whose every text is an attack."""
    made = [chunk_of(f"<b>{number}</b>", f"{text} the cat", section_path=[text], effective_date=None)
            for number, text in enumerate(HOSTILE)]
    for chunk, text in zip(made, HOSTILE):
        chunk["title"] = text
    data = watch.observe(f"the cat {HOSTILE[0]} {HOSTILE[1]}?", index.Index.build(made, toy.Topics()),
                         reader=says(f"{HOSTILE[0]} {HOSTILE[1]} [S1] {HOSTILE[2]} [S2][S9]"))
    return written(tmp_path_factory.mktemp("hostile") / "<i>.html", data), data


def written(path, data):
    path.write_text(watch.page(data), encoding="utf-8")
    return path


OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.mark.parametrize("dark", [False, True])
def test_it_loads_without_a_complaint_and_asks_for_nothing(browser, dark):
    browser.open(watch.PAGE, dark=dark)
    browser.run(OPEN_ALL)
    assert browser.trouble == []
    assert browser.run("document.getElementById('question').textContent") == watch.QUESTION
    assert browser.run("document.querySelectorAll('main > section').length") == 8


def fused(data, method, k, lexical):
    """What fusion.py makes of the page's lists."""
    lists, weights = [data["stages"][name] for name in ("lexical", "dense")], [lexical, 2 - lexical]
    if method == "ranks":
        return fusion.rrf([[number for number, _ in run] for run in lists], k, weights)
    return fusion.weighted_sum([fusion.min_max(dict(run)) for run in lists], weights)


SHOWN = """[...document.querySelectorAll("#fusion tbody tr")].map((row) =>
    [Number(row.dataset.number), row.cells[4].textContent])"""


@pytest.mark.parametrize("method, k, weight, keep", [
    ("scores", 60, 10, 8), ("scores", 60, 3, 20), ("scores", 60, 20, 60), ("scores", 60, 0, 60),
    ("ranks", 60, 10, 85), ("ranks", 0, 10, 50), ("ranks", 78, 5, 85), ("ranks", 100, 17, 85), ("ranks", 1, 0, 30)])
def test_sliders_move_chunks_as_fusion_does(browser, committed, method, k, weight, keep):
    browser.open(watch.PAGE)
    for name, value in (("rrf-k", k), ("weight", weight), ("k", keep)):
        browser.run(f"document.getElementById('{name}').value = {value}")
    browser.run(f"document.querySelector('[value={method}]').click()")
    browser.run("document.getElementById('weight').dispatchEvent(new Event('input', { bubbles: true }))")
    expected = fused(committed[1], method, k, weight / 10)
    digits = {"ranks": 6, "scores": 4}[method]
    assert browser.run(SHOWN) == [[number, f"{score:.{digits}f}"] for number, score in expected[:keep]]


def test_fusion_in_the_page_equals_fusion_to_the_last_bit(browser, committed):
    browser.open(watch.PAGE)
    ties = 0
    for method, k, weight in [("scores", 60, weight) for weight in range(21)] + [
            ("ranks", k, weight) for k in (0, 1, 33, 60, 100) for weight in range(21)]:
        lexical = weight / 10
        script = f"fuse('{method}', {k}, {{ lexical: {lexical}, dense: 2 - {lexical} }}).map(([n, sum]) => [n, sum])"
        expected = fused(committed[1], method, k, lexical)
        assert browser.run(script) == list(map(list, expected)), (method, k, weight)
        ties += len(expected) - len(dict((score, number) for number, score in expected))
    assert ties > 10


def test_an_exact_half_is_shown_as_python_shows_it(browser):
    browser.open(watch.PAGE)
    numbers = [1 / 128, 3 / 128, 0.5, 1.5, 0.0, 2.0, 1 / 61, 0.00390625, 1.0000005, 13.8698592560213]
    for digits in (1, 4, 6):
        assert browser.run(f"{numbers}.map((each) => shown(each, {digits}))") == [f"{each:.{digits}f}" for each in numbers]


def test_the_first_view_is_the_pipelines_and_a_button_leads_back_to_it(browser, committed):
    browser.open(watch.PAGE)
    first = browser.run(SHOWN)
    assert first == [[number, f"{score:.4f}"] for number, score in committed[1]["stages"]["fused"][:8]]
    browser.run("document.getElementById('weight').focus()")
    for kind in ("rawKeyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key="End", code="End", windowsVirtualKeyCode=35)
    assert browser.run("document.getElementById('weight-lexical').textContent") == "2.0"
    assert browser.run(SHOWN) != first
    browser.run("document.getElementById('as-it-was').click()")
    assert browser.run(SHOWN) == first


def test_each_citation_leads_to_its_sentence_in_its_document(browser, committed):
    browser.open(watch.PAGE)
    marks = [mark for _, mark in committed[1]["answer"] if mark]
    for number, mark in enumerate(marks):
        browser.run(f"document.querySelectorAll('#said a')[{number}].click()")
        assert browser.run("location.hash") == f"#{mark}" and browser.run("document.querySelector(':target').tagName") == "MARK"
        source = next(each for each in committed[1]["sources"] if each["id"] == mark.split("-")[0])
        article = browser.run("document.querySelector(':target').closest('article').textContent")
        assert source["title"] in article and source["places"][0]["doc_id"] in article
    assert "up to ten days" in browser.run("document.querySelector(':target').textContent")
    browser.run("new Promise((done) => setTimeout(done, 0))")
    assert browser.run("[...document.querySelectorAll('a[href^=\"#\"]')].every((a) => document.querySelector(a.hash))")


def test_a_chunk_opens_and_closes(browser, committed):
    browser.open(watch.PAGE)
    browser.run("document.querySelector('#dense .chunk').click()")
    first = committed[1]["stages"]["dense"][0][0]
    body = committed[1]["chunks"][str(first)]["body"]
    assert browser.run("document.getElementById('chunk-body').textContent").split() == body.split()
    browser.run("document.getElementById('chunk-close').click()")
    assert not browser.run("document.getElementById('chunk').open")


@pytest.mark.parametrize("width", [360, 640, 768, 1280])                # 640: a window of 1280 at 200%
def test_nothing_needs_scrolling_sideways(browser, hostile, width):
    for path in (watch.PAGE, hostile[0]):
        browser.open(path, width=width)
        browser.run(OPEN_ALL)
        assert browser.run("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_to_complain_of(browser, axe, dark):
    browser.send("Page.setBypassCSP", enabled=True)                    # axe is a script, and the page lets none in
    browser.open(watch.PAGE, dark=dark)
    browser.run(OPEN_ALL)
    browser.run(f"{axe}; 0")
    rules = "runOnly: ['color-contrast'], " if dark else ""            # all else is as in the light
    found = browser.run(f"axe.run({{ {rules}resultTypes: ['violations'] }})"
                        ".then((all) => all.violations.map((each) => `${each.id}: ${each.nodes[0].html}`))")
    browser.send("Page.setBypassCSP", enabled=False)
    assert found == []


def test_hostile_texts_are_shown_and_do_nothing(browser, hostile):
    path, data = hostile
    browser.open(path)
    browser.run(OPEN_ALL)
    browser.run("document.querySelectorAll('.chunk').forEach((each) => { each.click(); document.querySelector('dialog').close(); })")
    assert browser.trouble == [] and browser.run("window.hacked") is None
    assert browser.run("[document.scripts.length, document.images.length, document.querySelectorAll('main b b').length]") == [2, 0, 0]
    assert browser.run("document.getElementById('question').textContent") == data["question"]
    said = "".join(text for text, _ in data["answer"])
    assert HOSTILE[0] in said and browser.run("document.getElementById('said').textContent") == said


def test_the_policy_stops_what_would_get_in_all_the_same(browser):
    browser.open(watch.PAGE)
    browser.run("(() => { const script = document.createElement('script'); script.append('window.hacked = 1');"
                " document.body.append(script); })()")
    with pytest.raises(RuntimeError, match="TrustedHTML"):
        browser.run("document.body.innerHTML = '<img src=x onerror=\"window.hacked = 1\">'")
    browser.run("document.body.setAttribute('style', 'color: red')")
    assert browser.run("window.hacked") is None and browser.run("document.body.style.color") == ""
    assert any("Content Security Policy" in each for each in browser.trouble)


def test_pages_without_an_answer_say_why(browser, tmp_path):
    low = watch.observe(QUESTION, animals(), reader=says("-"))
    for data, text in (({**seen(k=0)}, "Nothing was found, so nobody was asked."),
                       ({**low, "guard": {"score": 0.3, "threshold": 0.5}, "refused": BELOW}, "Nobody is asked.")):
        browser.open(written(tmp_path / "page.html", data))
        assert browser.trouble == [] and text in browser.run("document.getElementById('stage-5').textContent")
        assert "Refused" in browser.run("document.getElementById('answer').textContent")


def test_two_hundred_candidates_fit_into_a_page(browser, tmp_path):
    words = ["cat", "dog", "mat", "oil", "gold", "price", "birds", "fly", "quick", "sat"]
    made = texts(*(" ".join(words[(i * j) % 10] for j in range(1, 90)) + f" {i}" for i in range(1, 261)))
    data = watch.observe("the cat dog oil", made, reader=says("Yes. [S1]"), k_each=200)
    assert len(data["stages"]["dense"]) == len(data["stages"]["fused"]) == 200
    path = written(tmp_path / "page.html", data)
    assert path.stat().st_size < 1_000_000
    browser.open(path)
    browser.run("document.getElementById('k').value = 999; drawFusion()")
    assert browser.trouble == [] and len(browser.run(SHOWN)) == len(fused(data, "scores", 60, 1.0)) >= 200
