"""Second half of the lesson on filters: who may see a chunk, and which chunks match."""

import re
from datetime import datetime, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import filters

DAYS = ["2024-12-31", "2025-01-01", "2025-06-30", "2025-12-31", "2026-01-01"]
CHUNKS = [{"product": "a", "effective_date": day} for day in DAYS] + [{"product": "b"}, {}]


def matching(where, chunks=CHUNKS, user=None):
    made = filters.Filters(chunks)
    return np.flatnonzero(made.matching(where, made.visible(user))).tolist()


# -- Who may see it ----------------------------------------------------------------------------------------------------

ACLS = [{}, {"acl": ["everyone"]}, {"acl": ["hr"]}, {"acl": ["hr", "staff"]}, {"acl": []}, {"acl": ["everyone", "hr"]}]


def test_visible_by_hand():
    made = filters.Filters(ACLS)
    for user, expected in [(None, [0, 1, 5]), ([], [0, 1, 5]), ("hr", [0, 1, 2, 3, 5]), (["staff"], [0, 1, 3, 5]),
                           ({"hr", "staff"}, [0, 1, 2, 3, 5]), ("unknown", [0, 1, 5]), ("h", [0, 1, 5]),
                           (["hr", "everyone"], [0, 1, 2, 3, 5]), ("", [0, 1, 5])]:
        assert np.flatnonzero(made.visible(user)).tolist() == expected


def test_an_empty_list_is_visible_to_nobody():
    assert not filters.Filters([{"acl": []}]).visible(["everyone", "hr", ""]).any()


@given(st.lists(st.lists(st.sampled_from("abc") | st.just("everyone"))), st.lists(st.sampled_from("abcd")))
def test_visible_equals_its_definition(acls, user):
    visible = filters.Filters([{"acl": acl} for acl in acls]).visible(user)
    assert visible.tolist() == [any(group in acl for group in ["everyone", *user]) for acl in acls]


@pytest.mark.parametrize("user", [3, b"hr", [b"hr"], [None], iter(["hr"]), True])
def test_a_user_that_is_no_collection_of_groups(user):
    with pytest.raises(TypeError, match="user must be the names"):
        filters.Filters(ACLS).visible(user)


@pytest.mark.parametrize("acl", ["hr", None, [None], [1], {"hr": 1}, [["hr"]]])
def test_a_restriction_that_is_misunderstood_is_refused(acl):
    with pytest.raises(TypeError, match=r"the acl of chunk 'd#0' must be a list of groups"):
        filters.check({"id": "d#0", "acl": acl})


# -- What matches ------------------------------------------------------------------------------------------------------


def test_conditions_by_hand():
    for where, expected in [
        (None, [0, 1, 2, 3, 4, 5, 6]), ({}, [0, 1, 2, 3, 4, 5, 6]),
        ({"product": "b"}, [5]), ({"product": ["a", "b"]}, [0, 1, 2, 3, 4, 5]), ({"product": {"b", "c"}}, [5]),
        ({"product": []}, []), ({"product": "c"}, []), ({"region": "eu"}, []),
        ({"effective_date": (">=", "2025-01-01")}, [1, 2, 3, 4]), ({"effective_date": (">", "2025-01-01")}, [2, 3, 4]),
        ({"effective_date": ("<=", "2025-01-01")}, [0, 1]), ({"effective_date": ("<", "2025-01-01")}, [0]),
        ({"effective_date": ("2025-01-01", "2025-12-31")}, [1, 2, 3]),
        ({"effective_date": ("2025-12-31", "2025-01-01")}, []),
        ({"effective_date": "2025-06-30"}, [2]), ({"effective_date": ["2025-06-30", "2026-01-01"]}, [2, 4]),
        ({"product": "b", "effective_date": (">=", "2000-01-01")}, []), ({"latest": False}, [0, 1, 2, 3, 4, 5, 6]),
    ]:
        assert matching(where) == expected, where


def test_a_time_counts_as_its_day():
    chunks = [{"created_at": "2025-01-01T23:59:59+02:00"}, {"created_at": "2025-01-02T00:00"}]
    assert matching({"created_at": ("<=", "2025-01-01")}, chunks) == [0]
    assert matching({"created_at": "2025-01-02"}, chunks) == [1]


def test_an_empty_date_is_none():
    assert matching({"effective_date": ("<", "2025-01-01")}, [{"effective_date": ""}]) == []
    assert matching({"latest": True}, [{"title": "a", "effective_date": ""}, {"title": "a"}]) == [0, 1]


def test_where_only_takes_away_from_what_is_visible():
    chunks = [{"product": "a", "acl": ["hr"]}, {"product": "a"}]
    assert matching({"product": "a"}, chunks) == [1]
    assert matching({"product": "a"}, chunks, "hr") == [0, 1]


def test_masks_are_made_anew():
    made = filters.Filters(CHUNKS)
    visible = made.visible()
    made.matching({"product": "b"}, visible)[:] = False
    assert visible.all() and made.visible().all()


def test_without_chunks():
    assert matching({"product": "a", "latest": True, "effective_date": (">", "2025-01-01")}, []) == []


@pytest.mark.parametrize("field", ["prodct", "acl", "text", "", 3, None])
def test_an_unknown_field_names_the_known_ones_and_nothing_else(field):
    known = ("doc_id, title, source, doc_type, effective_date, created_at, updated_at, version, series, language, "
             "product, region, tenant, latest")
    with pytest.raises(ValueError, match=f"^{re.escape(f'there is no field {field!r} to filter by; there are: {known}')}$"):
        matching({field: "a"}, [{"secret_project": "x"}])


@pytest.mark.parametrize("where, error, message", [
    ({"product": ("a", "b")}, ValueError, "neither a value nor a list"),
    ({"effective_date": (">=",)}, ValueError, "neither a value nor a list"),
    ({"effective_date": ("2025-01-01", "2025-02-01", "2025-03-01")}, ValueError, "neither a value nor a list"),
    ({"effective_date": ("=>", "2025-01-01")}, ValueError, "not with '=>'"),
    ({"effective_date": (">=", "2025-02-30")}, ValueError, "a day such as"),
    ({"effective_date": "last year"}, ValueError, "a day such as"),
    ({"effective_date": (">=", 2025)}, TypeError, "text"),
    ({"version": 2}, TypeError, "text"), ({"version": [2]}, TypeError, "text"), ({"product": None}, TypeError, "text"),
    ({"latest": "yes"}, TypeError, "True or False"), ({"latest": 1}, TypeError, "True or False"),
    ("latest", TypeError, "a dict"), ([("product", "a")], TypeError, "a dict"),
])
def test_conditions_that_are_none(where, error, message):
    with pytest.raises(error, match=message):
        matching(where)


@pytest.mark.parametrize("field, value, error", [
    ("version", 2, TypeError), ("product", ["a"], TypeError), ("effective_date", "soon", ValueError),
    ("created_at", "20250101", ValueError), ("effective_date", "2025-13-01", ValueError),
    ("effective_date", datetime(2025, 1, 1), TypeError)])
def test_metadata_that_cannot_be_understood_are_refused(field, value, error):
    with pytest.raises(error, match=f"{field} of chunk 'd#0' must be"):
        filters.check({"id": "d#0", field: value})


def test_metadata_that_can():
    filters.check({"id": "d#0", "acl": ("hr",), "effective_date": "2025-01-01T10:00", "product": None, "title": ""})


# -- The latest version ------------------------------------------------------------------------------------------------


def version(title, date=None, version=None, **more):
    given = {"title": title, "effective_date": date, "version": version}
    return {key: value for key, value in given.items() if value} | more


def test_the_newest_of_a_series_by_hand():
    for chunks, expected in [
        ([version("Leave 2025", "2025-01-01"), version("Leave 2026", "2026-01-01"), version("Travel 2020")], [1, 2]),
        ([version("Leave", "2026-01-01"), version("leave  (2027)")], [0]),                    # undated is older
        ([version("Leave", "2026-01-01", "9"), version("Leave", "2026-01-01", "10")], [1]),   # as numbers
        ([version("Leave", "2026-01-01", "9"), version("Leave", "2025-01-01", "10")], [0]),   # the date comes first
        ([version("Leave", None, "v2"), version("Leave", None, "1.9")], [0]),
        ([version("Leave", None, "2"), version("Leave", None)], [0]),
        ([version("Leave"), version("Leave")], [0, 1]),                                       # nothing tells them apart
        ([version("Leave", "2026-01-01", part=1), version("Leave", "2026-01-01", part=2)], [0, 1]),   # chunks of one
        ([version("A", "2025-01-01", series="s"), version("B", "2026-01-01", series="S")], [1]),
        ([version("s", "2025-01-01"), version("B", "2026-01-01", series="s")], [1]),
        ([version("A", "2025-01-01", series="s"), version("A", "2026-01-01", series="t")], [0, 1]),
        ([version("C++", "2025-01-01"), version("C", "2026-01-01")], [0, 1]),
        ([version("2025", "2025-01-01", doc_id="a"), version("2026", "2026-01-01", doc_id="b")], [0, 1]),
        ([version("", "2025-01-01", doc_id="a"), version("", "2026-01-01", doc_id="b")], [0, 1]),
        ([version("A", "2025-01-01", tenant="x"), version("A", "2026-01-01", tenant="y")], [0, 1]),
        ([version("A", "2026-01-01T23:00-02:00"), version("A", "2026-01-02T00:30")], [0]),    # 01:00 in Greenwich
        ([version("A", "2026-01-01"), version("A", "2026-01-01T00:00+00:00")], [0, 1]),       # the same moment
    ]:
        assert matching({"latest": True}, chunks) == expected, chunks


def test_a_hidden_version_makes_no_visible_one_disappear():
    chunks = [version("Leave", "2025-01-01"), version("Leave", "2026-01-01", acl=["hr"])]
    assert matching({"latest": True}, chunks) == [0]
    assert matching({"latest": True}, chunks, "hr") == [1]
    as_new = [version("Leave", "2026-01-01", acl=["hr"]), version("Leave", "2026-01-01")]
    assert matching({"latest": True}, as_new) == [1]


def test_latest_of_what_the_other_conditions_leave():
    chunks = [version("Leave", "2024-01-01"), version("Leave", "2025-01-01"), version("Leave", "2026-01-01", product="b")]
    assert matching({"latest": True, "effective_date": ("<=", "2025-06-30")}, chunks) == [1]
    assert matching({"effective_date": ("<=", "2025-06-30"), "latest": True}, chunks) == [1]
    assert matching({"latest": True, "product": "b"}, chunks) == [2]


def test_versions_rise():
    rising = ["", "alpha", "0.9", "1", "1.0-rc1", "1.0-rc2", "1.0", "1.0.1", "v1.2", "1.10", "2025.1", "10000"]
    ages = [filters.age_of({"version": each}) for each in rising]
    assert ages == sorted(ages) and len(set(ages)) == len(ages)
    assert filters.age_of({"version": "1.02"}) == filters.age_of({"version": "v1.2"})
    assert filters.age_of({"version": "9" * 5000}) > filters.age_of({"version": "8" * 5000})


def test_an_age_by_hand():
    assert filters.age_of({"effective_date": "1970-01-02", "version": "3-b"}) == (
        86400.0, ((2, 1, "3"), (0, 0, "b"), (1, 0, "")))


SOME = st.sampled_from(["2024-01-01", "2025-01-01", "2025-06-01"])
VERSIONS = st.fixed_dictionaries(
    {"title": st.sampled_from(["A 2024", "a", "B"])},
    optional={"effective_date": SOME, "version": st.sampled_from(["1", "2", "10"]), "acl": st.just(["hr"]),
              "product": st.sampled_from("xy")})


@given(st.lists(VERSIONS), st.sampled_from([None, "hr"]), st.sampled_from([{}, {"product": "x"}]))
def test_latest_equals_its_definition(chunks, user, where):
    left = [i for i in matching(where, chunks, user)]

    def key(chunk):
        return chunk.get("effective_date", ""), int(chunk.get("version", 0))

    def replaced(chunk):
        return any(chunks[i]["title"][0].lower() == chunk["title"][0].lower() and key(chunks[i]) > key(chunk)
                   for i in left)
    assert matching({**where, "latest": True}, chunks, user) == [i for i in left if not replaced(chunks[i])]


def test_a_moment_is_greenwichs_unless_it_says_another():
    assert filters._moment("2026-01-31") == datetime(2026, 1, 31, tzinfo=timezone.utc).timestamp()
    assert filters._moment("2026-01-31T02:00+02:00") == filters._moment("2026-01-31")
