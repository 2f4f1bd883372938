"""Second half of the lesson on BM25: the toy corpus by hand, a scalar definition, what must hold, and the known faults."""

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest import approx

import bm25
from toy import DOCUMENTS, QUESTION

TOY = [text.split() for text in DOCUMENTS]
QUERY = QUESTION.split()
METHODS = ["lucene", "robertson", "atire", "bm25l", "bm25+"]
TOKENS = st.lists(st.sampled_from("abcdef"), max_size=12)
CORPUS = st.lists(TOKENS, min_size=1, max_size=8)
K1, B = st.sampled_from([0, 0.5, 1.2, 3]), st.sampled_from([0, 0.4, 0.75, 1])


def scalar_score(query, position, corpus, k1, b, method, delta=0.5):
    """The definition once more, written from the table of variants with `math` alone."""
    n, document = len(corpus), corpus[position]
    total = 0.0
    for term in query:
        f, df = Counter(document)[term], sum(1 for tokens in corpus if term in tokens)
        if f == 0:
            continue
        norm = 1 - b + b * len(document) / (sum(map(len, corpus)) / n)
        if method == "lucene":
            total += math.log(1 + (n - df + .5) / (df + .5)) * f / (f + k1 * norm)
        elif method == "robertson":
            total += max(0.0, math.log((n - df + .5) / (df + .5))) * f / (f + k1 * norm)
        elif method == "atire":
            total += math.log(n / df) * f * (k1 + 1) / (f + k1 * norm)
        elif method == "bm25l":
            total += math.log((n + 1) / (df + .5)) * (k1 + 1) * (f / norm + delta) / (k1 + f / norm + delta)
        else:
            total += math.log((n + 1) / df) * (f * (k1 + 1) / (f + k1 * norm) + delta)
    return total


# -- The tokenizer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, tokens", [
    ("INV-2291", ["inv-2291", "inv", "2291"]),
    ("ERR_CONN_RESET", ["err_conn_reset", "err", "conn", "reset"]),
    ("0..16", ["0..16", "0", "16"]),
    ("8x8", ["8x8", "8", "x", "8"]),
    ("14.8", ["14.8", "14", "8"]),
    ("C++", ["c++", "c"]),
    ("C#, F#", ["c#", "c", "f#", "f"]),
    ("U.S.", ["u.s.", "u", "s"]),
    ("kubectl rollout", ["kubectl", "rollout"]),
    ("camelCase", ["camelcase", "camel", "case"]),
    ("HTMLParser2", ["htmlparser2", "html", "parser", "2"]),
    ("std::vector", ["std::vector", "std", "vector"]),
    ("petal width's", ["petal", "width's", "width", "s"]),
    ("wine, red. (Wine!)", ["wine", "red", "wine"]),
    (":Number of Instances: 178", ["number", "of", "instances", "178"]),
    (".. _wine_dataset:", ["wine_dataset", "wine", "dataset"]),
    ("1,680", ["1,680", "1", "680"]),
    ("", []),
    (" \n\t -- ... ", []),
])
def test_tokens_by_hand(text, tokens):
    assert bm25.tokenize(text) == tokens


@pytest.mark.parametrize("one, other", [
    ("caf\u00e9", "cafe\u0301"),               # composed, decomposed
    ("STRASSE", "straße"),
    ("don't", "don’t"),
    ("INV-2291", "INV\u20112291"),             # non-breaking hyphen
    ("cooperate", "co\u00adoperate"),          # soft hyphen, as PDFs leave it
    ("file", "\ufb01le"),                      # ligature
    ("42", "\uff14\uff12"),                    # full-width digits
    ("ΣΊΣΥΦΟΣ", "σίσυφος"),                    # final sigma
    ("ΐ", "ΐ".upper()), ("πραΰ", "ΠΡΑΫ́"),       # capitals that have no letter of their own
])
def test_unicode_twins_are_one_token(one, other):
    assert bm25.tokenize(one) == bm25.tokenize(other)


def test_words_of_scripts_with_combining_marks_stay_whole():
    assert bm25.tokenize("हिन्दी में") == ["हिन्दी", "में"]


@pytest.mark.parametrize("text, query", [
    ("我喜欢机器学习和黑猫。", "机器学习"), ("我喜欢机器学习和黑猫。", "猫"), ("東京都に住む", "京都"), ("ภาษาไทย", "ไทย"),
    ("Python入門", "python"), ("Python入門", "入門"), ("고양이가 잔다", "고양이"),
])
def test_text_without_spaces_is_findable(text, query):
    index = bm25.BM25([bm25.tokenize("nothing here"), bm25.tokenize(text)])
    assert index.top_k(bm25.tokenize(query), 5)[0].tolist() == [1]


@pytest.mark.parametrize("written, asked", [
    ("invoice INV-2291 is late", "INV-2291"), ("invoice INV-2291 is late", "2291"), ("raise ERR_CONN_RESET", "conn reset"),
    ("range 0..16", "0..16"), ("8x8 images", "8x8"), ("at most 14.8%", "14.8"), ("written in C++.", "c++"),
    ("the U.S. census", "U.S."), ("def camelCase():", "camelcase"), ("def camelCase():", "Case"),
    ("the R2-D2 droid", "r2d2 r2"), ("getUserName()", "user name"),
])
def test_identifiers_are_findable_whole_and_by_their_parts(written, asked):
    index = bm25.BM25([bm25.tokenize("wine and roses"), bm25.tokenize(written)])
    assert index.top_k(bm25.tokenize(asked), 5)[0].tolist() == [1]


def test_a_neighbouring_identifier_ranks_below_the_exact_one():
    index = bm25.BM25([bm25.tokenize(f"invoice INV-{number} was paid") for number in (2290, 2291, 3117)])
    assert index.top_k(bm25.tokenize("INV-2291"), 1)[0].tolist() == [1]


@given(st.text())
def test_any_text_gives_nonempty_tokens_without_white_space_the_same_each_time(text):
    tokens = bm25.tokenize(text)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    assert tokens == bm25.tokenize(text) == bm25.tokenize(f"  {text}\n")


@given(st.text(st.characters(categories=["Ll", "Nd"]), min_size=1))
def test_every_letter_and_digit_is_in_some_token(text):
    assert "".join(bm25.tokenize(text)) != ""


@pytest.mark.parametrize("bad", [None, 3, b"bytes", ["a list"]])
def test_tokenize_takes_a_string(bad):
    with pytest.raises(TypeError, match="takes a string"):
        bm25.tokenize(bad)


# -- By hand: the toy corpus at k1 = 1.2, b = 0.75, norms 1.375, 1.1875, 0.625, 0.8125 ---------------------------------

THE, CAT, DOG = math.log(1 + 1.5/3.5), math.log(1 + 2.5/2.5), math.log(1 + 2.5/2.5)


def test_toy_scores_by_hand():
    assert bm25.BM25(TOY).scores(QUERY) == approx([
        THE * 2 / (2 + 1.2 * 1.375) + CAT * 1 / (1 + 1.2 * 1.375),
        THE * 2 / (2 + 1.2 * 1.1875) + (CAT + DOG) * 1 / (1 + 1.2 * 1.1875),
        0,
        THE * 1 / (1 + 1.2 * 0.8125) + DOG * 1 / (1 + 1.2 * 0.8125)], abs=1e-12)


def test_definition_by_hand():
    assert bm25.score_by_definition(QUERY, 3, TOY) == approx((THE + DOG) / (1 + 1.2 * 0.8125))


@pytest.mark.parametrize("method, idf, tf", [
    ("lucene", math.log(1 + 2.5/2.5), 2 / (2 + 1.2 * 1.375)),
    ("robertson", 0.0, 2 / (2 + 1.2 * 1.375)),
    ("atire", math.log(4/2), 2 * 2.2 / (2 + 1.2 * 1.375)),
    ("bm25l", math.log(5/2.5), 2.2 * (2/1.375 + 0.5) / (1.2 + 2/1.375 + 0.5)),
    ("bm25+", math.log(5/2), 2 * 2.2 / (2 + 1.2 * 1.375) + 0.5),
])
def test_each_factor_by_hand(method, idf, tf):
    assert bm25.idf(2, 4, method) == approx(idf)
    assert bm25.tf_part(2, 6, 4, 1.2, 0.75, method, 0.5) == approx(tf)


def test_robertson_rare_term_by_hand():
    assert bm25.idf(1, 4, "robertson") == approx(math.log(3.5/1.5))


def test_top_k_of_the_toy_corpus():
    positions, scores = bm25.BM25(TOY).top_k(QUERY, 10)
    assert positions.tolist() == [1, 3, 0]
    assert scores == approx(bm25.BM25(TOY).scores(QUERY)[[1, 3, 0]])


def test_ties_go_to_the_lower_position_and_k_cuts_them():
    index = bm25.BM25([["b"], ["a"], ["a"], ["a"]])
    assert index.top_k(["a"], 2)[0].tolist() == [1, 2] and index.top_k(["a"], 5)[0].tolist() == [1, 2, 3]


def test_looking_common_words_up_by_hand():
    """The rare b is added up; the common a is looked up for b's documents, and lifts 1 above 0, which has b twice."""
    corpus = [["b", "b"], ["b", "a"], ["b"], ["b"], ["b"]] + [["a"]] * 11 + [["c"]] * 984
    index = bm25.BM25(corpus, b=0)
    a, b = math.log(1 + (1000 - 12 + 0.5) / 12.5), math.log(1 + (1000 - 5 + 0.5) / 5.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "LOOK_AHEAD", 10)
        for positions, scores in index.top_k_many([["b", "a"], ["a", "b"]], 1):
            assert positions.tolist() == [1] and scores == approx([b / 2.2 + a / 2.2])
        positions, scores = index.top_k(["a", "b"], 3, allowed=[i != 1 for i in range(1000)])
        assert positions.tolist() == [0, 2, 3] and scores == approx([b * 2 / (2 + 1.2), b / 2.2, b / 2.2])
        far_ahead = bm25.BM25([["b"] * 20, *corpus[1:]], b=0)             # the second place is decided among the others
        assert far_ahead.top_k(["a", "b"], 2)[0].tolist() == [0, 1]


def test_case_and_parts_by_hand():
    assert bm25.tokenize("The parseHTML of ERR_2") == ["the", "parsehtml", "parse", "html", "of", "err_2", "err", "2"]


def test_explain_by_hand():
    rows = bm25.BM25(TOY).explain(["cat", "cat", "zebra", "dog"], 1)
    assert [(row.term, row.repeats, row.count, row.df) for row in rows] == [("cat", 2, 1, 2), ("zebra", 1, 0, 0), ("dog", 1, 1, 2)]
    assert rows[0].score == approx(2 * CAT / (1 + 1.2 * 1.1875)) and rows[1].score == 0


# -- Against the definition and a public library -----------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(corpus=CORPUS, query=TOKENS, k1=K1, b=B, delta=st.sampled_from([0, 0.5, 1]))
def test_equals_the_scalar_definition(method, corpus, query, k1, b, delta):
    expected = [scalar_score(query, i, corpus, k1, b, method, delta) for i in range(len(corpus))]
    assert bm25.BM25(corpus, k1, b, method, delta).scores(query) == approx(expected, abs=1e-9)
    by_loop = [bm25.score_by_definition(query, i, corpus, k1, b, method, delta) for i in range(len(corpus))]
    assert by_loop == approx(expected, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_equals_the_scalar_definition_on_longer_random_corpora(method):
    random = np.random.default_rng(0)
    words = [f"w{i}" for i in range(300)]
    corpus = [list(random.choice(words, random.integers(0, 80), p=zipf(300))) for _ in range(60)]
    index = bm25.BM25(corpus, k1=0.9, b=0.4, method=method)
    for _ in range(5):
        query = list(random.choice(words, 6))
        assert index.scores(query) == approx(
            [scalar_score(query, i, corpus, 0.9, 0.4, method) for i in range(60)], abs=1e-9)


@pytest.mark.parametrize("method", ["lucene", "robertson", "atire"])
def test_equals_bm25s(method):
    random = np.random.default_rng(1)
    words = [f"w{i}" for i in range(200)]
    corpus = [list(random.choice(words, random.integers(1, 60), p=zipf(200))) for _ in range(100)]
    peer = bm25s.BM25(k1=1.2, b=0.75, method=method)
    peer.index(corpus, show_progress=False)
    index = bm25.BM25(corpus, method=method)
    for _ in range(20):
        query = list(random.choice(words, 6))
        assert index.scores(query) == approx(peer.get_scores(query), abs=1e-5)


def zipf(n):
    weights = 1 / np.arange(1, n + 1)
    return weights / weights.sum()


# -- Properties --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@given(corpus=CORPUS, query=st.lists(st.sampled_from("abc"), min_size=1, max_size=4), data=st.data())
def test_a_query_term_in_place_of_another_token_never_lowers_the_score(method, corpus, query, data):
    position = data.draw(st.integers(0, len(corpus) - 1))
    others = [i for i, token in enumerate(corpus[position]) if token not in query]
    if not others:
        return
    changed = [list(tokens) for tokens in corpus]
    changed[position][data.draw(st.sampled_from(others))] = data.draw(st.sampled_from(query))
    before, after = (bm25.BM25(each, method=method).scores(query)[position] for each in (corpus, changed))
    assert after >= before - 1e-12


@pytest.mark.parametrize("method", METHODS)
@given(corpus=CORPUS, query=st.lists(st.sampled_from("abc"), min_size=1, max_size=4), b=B, data=st.data())
def test_more_tokens_that_were_not_asked_for_never_raise_the_score(method, corpus, query, b, data):
    position = data.draw(st.integers(0, len(corpus) - 1))
    longer = [list(tokens) for tokens in corpus]
    longer[position] += ["x"] * data.draw(st.integers(1, 20))
    before, after = (bm25.BM25(each, b=b, method=method).scores(query)[position] for each in (corpus, longer))
    assert after <= before + 1e-12


# False, so not tested: "adding a document leaves the order of the others" (n, df and the mean length all move);
# "a document with one more query term scores higher" (with robertson's floor the term may be worth 0);
# "more occurrences always help" without holding the length.


@given(CORPUS, TOKENS, st.randoms(use_true_random=False))
def test_the_order_of_the_questions_words_does_not_matter_even_in_the_last_bit(corpus, query, random):
    index = bm25.BM25(corpus)
    assert index.scores(random.sample(query, len(query))).tolist() == index.scores(query).tolist()


@pytest.mark.parametrize("method", METHODS)
@given(corpus=CORPUS, query=TOKENS, k=st.integers(0, 10), data=st.data())
def test_top_k_lists_the_allowed_documents_with_a_query_term_best_first(method, corpus, query, k, data):
    allowed = data.draw(st.lists(st.booleans(), min_size=len(corpus), max_size=len(corpus)))
    index = bm25.BM25(corpus, method=method)
    scores = index.scores(query)
    matching = [i for i in range(len(corpus)) if allowed[i] and set(query) & set(corpus[i])]
    positions, values = index.top_k(query, k, allowed)
    assert positions.tolist() == sorted(matching, key=lambda i: (-scores[i], i))[:k]
    assert values.tolist() == scores[positions].tolist()


@pytest.fixture(params=[(0, 2), (3, 1), (4000, 4)], ids=["look ahead always", "sometimes", "never"])
def pruning(request, monkeypatch):
    """Small corpora never reach the constants of real ones, so each test of pruning runs with smaller ones too."""
    monkeypatch.setattr(bm25, "LOOK_AHEAD", request.param[0])
    monkeypatch.setattr(bm25, "COMMON", request.param[1])


@pytest.mark.parametrize("method", METHODS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(corpus=CORPUS, queries=st.lists(TOKENS, max_size=3), k=st.integers(0, 10), data=st.data())
def test_pruned_top_k_equals_the_plain_form_to_the_bit(pruning, method, corpus, queries, k, data):
    mask = st.one_of(st.none(), st.lists(st.booleans(), min_size=len(corpus), max_size=len(corpus)))
    allowed, visible = data.draw(mask), data.draw(mask)
    index = bm25.BM25(corpus, method=method)
    for query, (positions, scores) in zip(queries, index.top_k_many(queries, k, allowed, visible), strict=True):
        expected, expected_scores = index.top_k_by_definition(query, k, allowed, visible)
        assert positions.tolist() == expected.tolist() and scores.tolist() == expected_scores.tolist()
        alone = index.top_k(query, k, allowed, visible)
        assert alone[0].tolist() == positions.tolist() and alone[1].tolist() == scores.tolist()


@pytest.mark.parametrize("k", [1, 3, 10, 200])
def test_pruned_top_k_equals_the_plain_form_on_a_corpus_with_common_and_rare_words(pruning, k):
    random = np.random.default_rng(2)
    words = np.array([f"w{i}" for i in range(400)])
    corpus = [words[random.choice(400, random.integers(1, 60), p=zipf(400))].tolist() for _ in range(500)]
    index = bm25.BM25(corpus)
    queries = [words[random.choice(400, 6, p=zipf(400))].tolist() for _ in range(100)]
    for query, (positions, scores) in zip(queries, index.top_k_many(queries, k)):
        expected, expected_scores = index.top_k_by_definition(query, k)
        assert positions.tolist() == expected.tolist() and scores.tolist() == expected_scores.tolist()


def test_pruning_leaves_common_words_alone(monkeypatch):
    """What pruning is for: a question of one rare and one common word never adds up the common word's postings."""
    touched, add_up = [], bm25._add_up
    monkeypatch.setattr(bm25, "LOOK_AHEAD", 10)
    monkeypatch.setattr(bm25, "_add_up", lambda *arguments: touched.append(add_up(*arguments)) or touched[-1])
    corpus = [["common", "rare"] if i < 20 else ["common", "filler"] for i in range(2000)]
    assert bm25.BM25(corpus).top_k(["common", "rare"], 5)[0].tolist() == [0, 1, 2, 3, 4]
    assert set(np.concatenate(touched).tolist()) == set(range(20))


@given(CORPUS, TOKENS, st.data())
def test_under_visible_the_rest_might_as_well_not_exist(corpus, query, data):
    visible = data.draw(st.lists(st.booleans(), min_size=len(corpus), max_size=len(corpus)))
    alone = [tokens for tokens, yes in zip(corpus, visible) if yes]
    index, small = bm25.BM25(corpus), bm25.BM25(alone)
    where = np.flatnonzero(visible)
    scores = index.scores(query, visible)
    assert scores[where].tolist() == small.scores(query).tolist()                 # to the bit
    assert not scores[~np.array(visible)].any()
    positions, values = index.top_k(query, 20, visible=visible)
    expected, expected_values = small.top_k(query, 20)
    assert positions.tolist() == where[expected].tolist() and values.tolist() == expected_values.tolist()
    for new, old in enumerate(where):
        assert index.explain(query, old, visible) == small.explain(query, new)


@pytest.mark.parametrize("method", METHODS)
@given(corpus=CORPUS, query=TOKENS)
def test_explain_adds_up_to_the_score(method, corpus, query):
    index = bm25.BM25(corpus, method=method)
    for position, score in enumerate(index.scores(query)):
        rows = index.explain(query, position)
        assert math.fsum(row.score for row in rows) == score                      # to the bit
        assert [row.term for row in rows] == list(dict.fromkeys(query))
        assert all(row.score == approx(row.repeats * row.idf * row.tf_part, abs=1e-11) for row in rows)


@settings(max_examples=30)
@given(CORPUS)
def test_postings_are_the_counts_of_the_documents(corpus):
    index = bm25.BM25(corpus)
    for term, number in index.vocabulary.items():
        rows = slice(index.starts[number], index.starts[number + 1])
        found = dict(zip(index.documents[rows].tolist(), index.counts[rows].tolist()))
        assert found == {i: tokens.count(term) for i, tokens in enumerate(corpus) if term in tokens}


# -- Known faults ------------------------------------------------------------------------------------------------------


def test_a_term_in_half_of_the_documents_is_worth_something():
    corpus = [["hello", "world"], ["foo", "bar"], ["hello", "foo"]]
    assert bm25.BM25(corpus, k1=1.5).scores(["hello"]) == approx([0.188, 0, 0.188], abs=5e-4)
    assert bm25.BM25(corpus).scores(["hello"]) == approx([math.log(1.6) / 2.2, 0, math.log(1.6) / 2.2])


@pytest.mark.parametrize("method", METHODS)
def test_a_match_never_scores_below_a_document_without_one(method):
    scores = bm25.BM25([["a", "b"], ["a", "b"], ["a", "b"], ["c"]], method=method).scores(["a"])
    assert scores[3] == 0 and min(scores[:3]) >= 0
    assert method == "robertson" or min(scores[:3]) > 0


def test_robertson_match_at_score_0_is_still_a_hit():
    positions, scores = bm25.BM25([["a"], ["a"], ["b"]], method="robertson").top_k(["a"], 5)
    assert positions.tolist() == [0, 1] and scores.tolist() == [0, 0]


def test_bm25l_saturates_and_adds_delta_only_where_the_term_occurs():
    scores = bm25.BM25(TOY, k1=1.5, method="bm25l").scores(QUERY)
    assert scores == approx([1.2843, 2.1652, 0, 1.4060], abs=1e-4)


def test_delta_of_bm25_plus_changes_a_ranking():
    corpus = [text.split() for text in ("b a e d h e d g", "g a", "b", "a e e a a a")]
    without, with_delta = (bm25.BM25(corpus, k1=1.5, method="bm25+", delta=d).top_k(["a", "b"], 4)[0].tolist() for d in (0, 1))
    assert with_delta[0] == 0 and without != with_delta
    assert bm25.BM25(corpus, k1=1.5, method="bm25+", delta=1).scores(["a", "b"]) == approx(
        [2.4486, 1.1814, 2.3133, 1.3675], abs=1e-4)


def test_df_counts_documents_not_occurrences():
    index = bm25.BM25([["pink"] * 10, ["blue", "pink"], ["red", "pink"]])
    assert index.explain(["pink"], 0)[0].df == 3


def test_a_longer_document_scores_lower_and_k1_plus_1_multiplies_the_count():
    short, long = bm25.BM25([["a", "b"], ["a", "b", "b", "b"]], method="atire").scores(["a"])
    assert short == long == 0                                                     # atire: a stands everywhere
    short, long = bm25.BM25([["a", "b"], ["a", "b", "b", "b"], ["b"]], method="atire").scores(["a"])[:2]
    assert short == approx(math.log(3/2) * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / (7/3)))) and short > long


def test_repeated_question_words_count():
    index = bm25.BM25(TOY)
    assert index.scores(["cat"] * 3) == approx(3 * index.scores(["cat"]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("corpus", [[], [[]], [[], []]])
def test_an_empty_corpus_gives_zeros(corpus, method):
    index = bm25.BM25(corpus, method=method)
    assert index.scores(["a"]).tolist() == [0.0] * len(corpus)
    assert index.top_k(["a"], 3)[0].tolist() == []


@pytest.mark.parametrize("k1, b", [(1.2, 0.75), (0, 0.75), (1.2, 1), (0, 1)])
@pytest.mark.parametrize("method", METHODS)
def test_empty_documents_and_extreme_parameters_give_no_nan(method, k1, b):
    assert np.isfinite(bm25.BM25([[], ["a"], ["b", "a"]], k1, b, method).scores(["a", "zebra"])).all()


def test_unknown_words_and_an_empty_question_hit_nothing():
    for query in ([], ["zebra"], ["zebra", "yak"]):
        assert bm25.BM25(TOY).scores(query).tolist() == [0, 0, 0, 0]
        assert bm25.BM25(TOY).top_k(query, 3)[0].tolist() == []
        assert [row.score for row in bm25.BM25(TOY).explain(query, 0)] == [0] * len(query)


def test_k_above_the_number_of_documents():
    assert bm25.BM25([["a"]]).top_k(["a"], 20)[0].tolist() == [0]


def test_a_mask_leaves_the_statistics_and_excludes_at_any_score():
    index = bm25.BM25(TOY, method="bm25+")
    positions, scores = index.top_k(["cat", "the"], 4, allowed=[True, True, False, False])
    assert positions.tolist() == [1, 0] and scores == approx(index.scores(["cat", "the"])[[1, 0]])


def test_any_iterable_is_a_corpus_and_a_question():
    generator = bm25.BM25((token for token in text.split()) for text in DOCUMENTS)
    assert generator.scores(iter(QUERY)).tolist() == bm25.BM25(TOY).scores(tuple(QUERY)).tolist()
    assert generator.scores(np.array(QUERY)).tolist() == bm25.BM25(TOY).scores(QUERY).tolist()
    assert bm25.BM25(TOY, method="robertson").top_k(iter(["the"]), 5)[0].tolist() == [0, 1, 3]


def test_a_string_where_tokens_are_expected():
    with pytest.raises(TypeError, match="tokenize"):
        bm25.BM25(TOY).scores("windy London")
    with pytest.raises(TypeError, match="tokenize"):
        bm25.BM25(["the cat sat", "a dog"])
    with pytest.raises(TypeError, match="tokenize"):
        bm25.BM25("the cat sat")


@pytest.mark.parametrize("query", [{"a": 0.5}, {"a": 0}, Counter("aa")])
def test_a_question_with_weights_is_no_list_of_tokens(query):
    for method in (bm25.BM25([["a"], ["b"]]).scores, lambda query: bm25.BM25([["a"], ["b"]]).explain(query, 0)):
        with pytest.raises(TypeError, match="not a dict"):
            method(query)


@pytest.mark.parametrize("method, delta, query", [
    ("bm25+", 1000, ["a", "b", "c"] * 4), ("lucene", 0.5, ["a"] * 8878 + ["b"] * 5380 + ["c"] * 9771)])
def test_scores_too_great_for_exact_sums_are_not_pruned(method, delta, query):
    corpus = [["a", "b", "c"]] * 4100 + [["a", "b", "x"]] * 600 + [["a", "x", "x"]] * 800 + [["x", "x", "x"]] * 4500
    index = bm25.BM25(corpus, method=method, delta=delta)
    positions, scores = index.top_k(query, 1)
    assert positions.tolist() == [0] and scores[0] == index.scores(query)[0] > bm25.EXACT
    assert index.top_k(query, 1, allowed=np.arange(len(corpus)) != 0)[0].tolist() == [1]


@pytest.mark.parametrize("bad", [[[1, 2]], [["a", None]], [None]])
def test_tokens_that_are_no_strings(bad):
    with pytest.raises(TypeError):
        bm25.BM25(bad)


def test_question_tokens_that_are_no_strings():
    with pytest.raises(TypeError, match="strings"):
        bm25.BM25(TOY).scores(["cat", 3])


@pytest.mark.parametrize("arguments", [{"k1": -1}, {"k1": math.nan}, {"k1": math.inf}, {"b": -0.1}, {"b": 1.1},
                                       {"b": math.nan}, {"delta": -1}, {"delta": math.nan}, {"method": "okapi"},
                                       {"k1": 1.7e308}, {"delta": 1e300}])
def test_parameters_out_of_range(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        bm25.BM25(TOY, **arguments)


def test_the_greatest_parameters():
    bm25.BM25(TOY, k1=1000, delta=1000)
    for arguments in ({"k1": 1000.5}, {"delta": 1000.5}):
        with pytest.raises(ValueError, match="0 to 1000"):
            bm25.BM25(TOY, **arguments)


def test_k_below_0_and_masks_of_the_wrong_shape():
    with pytest.raises(ValueError, match="k must be"):
        bm25.BM25(TOY).top_k(QUERY, -1)
    with pytest.raises(ValueError, match="allowed"):
        bm25.BM25(TOY).top_k(QUERY, 1, allowed=[True])
    with pytest.raises(TypeError, match="visible"):
        bm25.BM25(TOY).scores(QUERY, visible=[0, 1, 1, 1])


@pytest.mark.parametrize("position", [4, 100])
def test_explaining_a_document_that_is_not_there(position):
    with pytest.raises(IndexError, match="no document"):
        bm25.BM25(TOY).explain(QUERY, position)


def test_explaining_an_invisible_document_reads_like_one_that_is_not_there():
    with pytest.raises(IndexError, match="no document at position 0"):
        bm25.BM25(TOY).explain(QUERY, 0, visible=[False, True, True, True])
    with pytest.raises(ValueError, match="position"):
        bm25.BM25(TOY).explain(QUERY, -1)


# -- Faults that only mutation showed (make mutants) -------------------------------------------------------------------


@pytest.mark.parametrize("text, tokens", [
    ("猫", ["猫"]), ("入門", ["入門", "入", "門"]), ("東京都", ["東京都", "東京", "京都", "東", "京", "都"]),
])
def test_characters_and_their_pairs_come_once(text, tokens):
    assert bm25.tokenize(text) == tokens


def test_defaults_by_hand():
    assert bm25.idf(2, 4) == approx(math.log(1 + 2.5/2.5))
    assert bm25.tf_part(1, 5, 4) == approx(1 / (1 + 1.2 * 1.1875))
    assert bm25.tf_part(1, 5, 4, method="bm25+") == approx(2.2 / (1 + 1.2 * 1.1875) + 0.5)
    assert bm25.score_by_definition(["cat"], 1, TOY, method="bm25+") == approx(
        math.log(5/2) * (2.2 / (1 + 1.2 * 1.1875) + 0.5))


def test_a_posting_takes_16_bytes_and_starts_has_one_entry_more_than_there_are_terms():
    index = bm25.BM25(TOY)
    assert index.documents.itemsize + index.counts.itemsize + index.weights.itemsize == 16
    assert index.starts.shape == (len(index.vocabulary) + 1,)


def test_a_word_that_stands_nowhere_is_explained_by_zeros():
    assert bm25.BM25(TOY).explain(["zebra"], 0) == [("zebra", 1, 0, 0, 0, 0, 0)]


def test_nothing_visible_is_no_reason_for_a_warning(recwarn):
    assert bm25.BM25(TOY).scores(QUERY, visible=[False] * 4).tolist() == [0, 0, 0, 0] and not recwarn


def test_a_common_term_keeps_its_weights_as_a_row():
    index = bm25.BM25([["a", "b"], ["a", "b"], ["a"]] + [["c"]] * 13)           # more than an eighth of 16 is 3
    (b,), (a,) = index._terms(["b"], None), index._terms(["a"], None)
    assert b.row is None and a.row.tolist() == a.weights.tolist() + [0] * 13
    assert index._terms(["a"], None)[0] is a                                    # weighed once, then kept


def test_a_ceiling_is_the_greatest_weight():
    index = bm25.BM25(TOY)
    for visible in (None, np.array([True, True, False, True]), np.zeros(4, bool)):
        for term in index._terms(QUERY, index._view(visible)):
            assert term.ceiling == max(term.weights, default=0)


def test_what_is_weighed_on_demand_is_the_same_and_stays_below_its_bound():
    corpus, visible = [["a"] * i + ["b", "c"] for i in range(1, 9)] + [["a"], [], ["d"]], np.arange(11) != 7
    for index in (bm25.BM25(corpus, b=b, method=method) for b in (0, 1) for method in METHODS):
        view = index._view(visible)
        for eager, lazy in zip(index._terms([*"abcd"], view), index._terms([*"abcd"], view, lazily=True), strict=True):
            assert lazy.weights[visible[lazy.documents]].tolist() == eager.weights.tolist()
            assert (lazy.weights * 3)[:1].tolist() == (lazy.weights[:1] * 3).tolist()
            assert max(lazy.weights[:]) < lazy.ceiling


def test_hidden_documents_do_not_come_back_by_being_allowed():
    everything, visible = np.ones(4, bool), np.array([True, False, True, True])
    assert bm25.BM25(TOY).top_k(["cat", "cat"], 4, everything, visible)[0].tolist() == [0]


def test_repeats_count_and_bounds_hold_under_a_view_when_common_words_are_only_looked_up():
    corpus = [["a"] * (1 + i % 7) + ["x"] * (i % 5) + ["b"] * (i % 11 == 0) for i in range(300)]
    index, visible = bm25.BM25(corpus), np.arange(300) % 13 != 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "LOOK_AHEAD", 30)
        for query in (["b", "a"], ["b", "a", "a", "a"], ["b", "x", "a", "x"], ["a", "x"]):
            for k in (1, 3, 10):
                found, expected = index.top_k(query, k, None, visible), index.top_k_by_definition(query, k, None, visible)
                assert [each.tolist() for each in found] == [each.tolist() for each in expected]


def test_the_kth_best_score():
    scores = np.random.default_rng(0).permutation(1000).astype(float)
    for k in range(1, 1001):
        assert bm25._kth_best(scores, k) == 1000 - k


def test_looking_up_beyond_the_only_posting():
    only = bm25.Term(np.array([3]), np.array([0.5]), 0.5, None)
    assert bm25._look_up(only, np.array([2, 3, 5])).tolist() == [0, 0.5, 0]


def added_up(patch):
    """A list to which each call of _add_up appends the documents that it touches."""
    touched, add_up = [], bm25._add_up
    patch.setattr(bm25, "_add_up", lambda *arguments: touched.append(add_up(*arguments)) or touched[-1])
    return touched


def test_a_candidate_that_can_only_just_tie_stays():
    """Both end at 3: the rare word gives 1 and 1.5, the common one 2 and 1.5. Looking ahead spares the common one."""
    rare = bm25.Term(np.array([0, 1]), np.array([1.0, 1.5]), 1.5, None)
    common = bm25.Term(np.arange(4), np.array([2.0, 1.5, 0.5, 0.5]), 2.0, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "LOOK_AHEAD", 2)
        touched = added_up(patch)
        positions, scores = bm25.search([rare, common], 1, np.zeros(4))
    assert positions.tolist() == [0] and scores.tolist() == [3]
    assert np.concatenate(touched).tolist() == [0, 1]


def test_one_best_document_is_enough_to_leave_a_common_word_alone():
    corpus = [["a"]] * 20 + [["a", "b"]] * 5                                    # b is worth 0.7 there, a 0.01
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "LOOK_AHEAD", 5)
        touched = added_up(patch)
        assert bm25.BM25(corpus).top_k(["a", "b"], 1)[0].tolist() == [20]
    assert np.concatenate(touched).tolist() == [20, 21, 22, 23, 24]


def test_an_infinite_delta_is_refused():
    with pytest.raises(ValueError, match="delta"):
        bm25.BM25(TOY, delta=math.inf)


def test_the_error_names_the_argument():
    with pytest.raises(ValueError, match="^position must"):
        bm25.BM25(TOY).explain(QUERY, -1)
    with pytest.raises(TypeError, match="^visible must"):
        bm25.BM25(TOY).scores(QUERY, visible=[0, 1, 1, 1])


# Mutants that survive, since no input tells them apart.
# survives in explain: `check_k(position, name`: 0 is the default
# survives in scores: `np.empty(1)`: without documents, bincount reads no weight
# survives in _add_up: `np.empty(1)`: without documents, no weight is added
# survives in _postings: `slice(None, 0)`: as empty as slice(0, 0)
# survives in _postings: `slice(0)`: as empty as slice(0, 0)
# survives in _postings: `slice(0, )`: as empty as slice(0, 0)
# survives in _postings: `slice(1, 0)`: as empty as slice(0, 0)
# survives in _statistics: `else 1.0`: the mean of no length at all is never used
# survives in _number_terms: `np.array(ids, None)`: whole numbers are int64 by themselves; no ids, nothing to convert
# survives in _number_terms: `np.array(ids, )`: whole numbers are int64 by themselves; no ids, nothing to convert
# survives in search: `(k) or True`: k = 0 cuts everything off at the end too: only work is spared
# survives in search: `< LOOK_AHEAD`: the term is added up in the loop instead
# survives in search: `len(found) >= k`: the least of exactly k * added scores is a score that k documents reach, too
# survives in search: `k * added >= 0`: if no term was added up, nothing was found
# survives in search: `rest[added] > threshold`: without looking ahead the next term is added up: only work is spared
# survives in search: `kind="STABLE"`: NumPy reads the first letter, in either case
# survives in top_k_many: `<= EXACT`: at EXACT itself sums are still exact, so both ways give the same
# survives in _score: `np.empty(1)`: the weight is never read without documents
