"""Beside step 12 — Who may see a chunk, and which chunks match? Masks that are made before anything is ranked.

Filtering afterwards goes wrong twice: of the k best chunks hardly any may be left, and whoever counts what is missing
learns what was hidden. So both retrievers get a mask, and the k best are the k best of what is allowed.

    acl        the groups that may see a chunk: ["hr"]; a chunk without one: ["everyone"]; []: nobody
    user       the groups somebody is in: ["hr", "staff"]; None is anonymous; everybody is in "everyone" as well
    visible    a mask [n]: True where the user is in one of the chunk's groups
    where      conditions, which must all hold; a chunk without the field does not match
                 {"doc_type": "md"}                                    equal
                 {"product": ["a", "b"]}                               one of these
                 {"effective_date": (">=", "2025-01-01")}              before or after a day: < <= > >=
                 {"effective_date": ("2025-01-01", "2025-12-31")}      from the one day to the other, both included
                 {"latest": True}                                      only the newest version of each series
    series     documents that replace one another: the field, or else the title without a year, "Leave policy 2026"
    column     one field of all chunks: its different values, and for each chunk the number of its own [n], or -1

Two rules keep secrets. Which fields there are is written down below, not gathered from the chunks, whose fields an
error would betray. And `latest` compares only what the user may see and the other conditions leave: a newer version
that is hidden must not make the older one disappear, and {"effective_date": ("<=", day), "latest": True} is what was in
force on that day.

Not here: conditions joined by "or" or "not", prefixes, numbers.
"""

import functools
import operator
import re
from collections.abc import Collection, Mapping
from datetime import date, datetime, timezone

import numpy as np

import documents

DATES = ("effective_date", "created_at", "updated_at")
FIELDS = ("doc_id", "title", "source", "doc_type",
          *(field for field in documents.Metadata.__annotations__ if field != "acl"))
OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


class Filters:
    """The masks of a list of chunks. A column is made when it is first asked for, only acl at once.

    >>> filters = Filters([{"doc_type": "md", "acl": ["hr"]}, {"doc_type": "md"}, {}])
    >>> filters.visible(None).tolist(), filters.visible("hr").tolist()
    ([False, True, True], [True, True, True])
    >>> filters.matching({"doc_type": "md"}, filters.visible(None)).tolist()
    [False, True, False]
    """

    def __init__(self, chunks):
        self.chunks, self.columns = chunks, {}
        self._column("acl")

    def visible(self, user=None):
        """Which chunks a user may see: bool [n]. Raises TypeError unless `user` is None, a group, or some groups."""
        groups = groups_of(user)
        acls, numbers = self._column("acl")
        return np.array([not groups.isdisjoint(acl) for acl in acls], bool)[numbers]       # [n_acls] -> [n]

    def matching(self, where, visible):
        """Which of the `visible` chunks match: bool [n].

        Raises ValueError for an unknown field, operator or day, TypeError for conditions that are no dict and for
        values that are no text.
        """
        if not isinstance(where, (Mapping, type(None))):
            raise TypeError(f"where must be a dict of conditions, such as {{'doc_type': 'md'}}, not {where!r}")
        mask, where = visible.copy(), dict(where or {})
        latest = where.pop("latest", False)
        if not isinstance(latest, bool):
            raise TypeError(f"latest must be True or False, not {latest!r}")
        for field, wanted in where.items():
            test = condition(field, wanted)
            values, numbers = self._column(field)
            # subtle: without the field the number is -1, which picks the last entry, False
            mask &= np.array([*map(test, values), False], bool)[numbers]
        return self._newest(mask) if latest else mask

    def _newest(self, mask):
        """`mask` without the chunks that a newer version in the mask replaces; of equally new ones, all stay."""
        all_series, series = self._column("series", series_of)
        ages, age = self._column("age", age_of)
        rank = np.empty(len(ages), np.int64)
        rank[sorted(range(len(ages)), key=ages.__getitem__)] = np.arange(len(ages))
        rank = rank[age]                                               # [n_ages] -> [n]
        newest = np.full(len(all_series), -1)
        np.maximum.at(newest, series[mask], rank[mask])                # [n_series]
        return mask & (rank == newest[series])

    def _column(self, field, value_of=None):
        if field not in self.columns:
            # int64, although int32 would do: picking by it takes a third of the time
            known, numbers = {None: -1}, np.empty(len(self.chunks), np.int64)
            value_of = value_of or (lambda chunk: value(chunk, field))
            for position, chunk in enumerate(self.chunks):
                numbers[position] = known.setdefault(value_of(chunk), len(known) - 1)
            self.columns[field] = list(known)[1:], numbers
        return self.columns[field]


def groups_of(user):
    """The groups of a user, with "everyone".

    >>> sorted(groups_of(["hr", "staff"])), sorted(groups_of("hr")), sorted(groups_of(None))
    (['everyone', 'hr', 'staff'], ['everyone', 'hr'], ['everyone'])
    """
    groups = [] if user is None else [user] if isinstance(user, str) else user
    if not isinstance(groups, Collection) or not all(isinstance(group, str) for group in groups):
        raise TypeError("user must be the names of somebody's groups, such as ['hr', 'staff'], or None: anonymous")
    return {"everyone", *groups}


def value(chunk, field):
    """The value of a chunk's field as it is compared: groups as a tuple, a date as its day; None if there is none."""
    if field == "acl":
        return tuple(chunk.get("acl", ["everyone"]))
    found = chunk.get(field)
    return (found or "")[:10] or None if field in DATES else found


def condition(field, wanted):
    """A function that tells whether a value matches.

    >>> test = condition("effective_date", ("2025-01-01", "2025-12-31"))
    >>> test("2025-12-31"), test("2026-01-01")
    (True, False)
    """
    if field not in FIELDS:
        raise ValueError(f"there is no field {field!r} to filter by; there are: {', '.join(FIELDS)}, latest")
    if isinstance(wanted, tuple):
        return _range(field, wanted)
    several = isinstance(wanted, (list, set, frozenset))
    allowed = {_wanted(field, each) for each in (wanted if several else [wanted])}
    return allowed.__contains__


def _range(field, wanted):
    if field not in DATES or len(wanted) != 2:
        raise ValueError(f"{field}: {wanted!r} is neither a value nor a list of values; a pair is for the dates "
                         f"{', '.join(DATES)}: ('>=', '2025-01-01') or ('2025-01-01', '2025-12-31')")
    if wanted[0] in OPERATORS:
        compare, day = OPERATORS[wanted[0]], _wanted(field, wanted[1])
        return lambda found: compare(found, day)
    first, last = (_wanted(field, each) for each in wanted)
    return lambda found: first <= found <= last


def _wanted(field, wanted):
    """A wanted value, checked."""
    if not isinstance(wanted, str):
        raise TypeError(f"{field} is compared with text, not with {wanted!r}")
    if field in DATES:
        try:
            return date.fromisoformat(wanted).isoformat()
        except ValueError:
            raise ValueError(f"{field} is compared with a day such as '2025-01-31', not with {wanted!r}") from None
    return wanted


# -- Versions ----------------------------------------------------------------------------------------------------------


def series_of(chunk):
    """What a chunk's document is a version of. Without series and title it is a version of nothing but itself.

    Two tenants are two worlds: their documents never replace each other's, whatever they are called.

    >>> series_of({"title": "Leave policy (2026)"}) == series_of({"title": "Leave Policy, 2025"})
    True
    """
    words = _words(chunk.get("series") or "", chunk.get("title") or "")
    return (chunk.get("tenant"), words) if words else (chunk.get("tenant"), words, chunk.get("doc_id"))


def age_of(chunk):
    """What orders versions, the newest last: the date, then the version; one without comes before those with one.

    >>> ages = [age_of({"version": version}) for version in ("2.0-beta", "2.0", "2.9", "2.10")]
    >>> ages == sorted(ages)
    True
    """
    return _age(chunk.get("effective_date"), chunk.get("version") or "")


@functools.lru_cache(1 << 16)                                          # most chunks are as old as the one before them
def _age(when, version):
    parts = re.findall(r"\d+|[^\W\d_]+", version)
    parts = parts[1:] if parts and parts[0].casefold() == "v" else parts
    # subtle: a word is less than the end, which is less than a number: 2.0-beta < 2.0 < 2.0.1
    order = [(2, len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (0, 0, part) for part in parts]
    return _moment(when) if when else float("-inf"), tuple(order + [(1, 0, "")] if order else [])


@functools.lru_cache(1 << 16)
def _words(series, title):
    words = (series or YEAR.sub(" ", title)).casefold().split()
    return tuple(filter(None, (word.strip("()[],;:–—-") for word in words)))


def _moment(text):
    """Seconds since 1970 of a date or time; without a time zone, of Greenwich's."""
    when = datetime.fromisoformat(text)
    return (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp()


# -- Checks ------------------------------------------------------------------------------------------------------------


def check(chunk):
    """Raise TypeError or ValueError, naming the chunk, if its groups are no list of names or a field no text or date.

    A restriction that is misunderstood must not become none: acl="hr" would be the groups "h" and "r".
    """
    acl = chunk.get("acl", [])
    if not isinstance(acl, (list, tuple)) or not all(isinstance(group, str) for group in acl):
        raise TypeError(f"the acl of chunk {chunk['id']!r} must be a list of groups, such as ['hr'], not {acl!r}")
    for field in FIELDS:
        found = chunk.get(field)
        if found is not None and not isinstance(found, str):
            raise TypeError(f"{field} of chunk {chunk['id']!r} must be text, not {found!r}")
        if found and field in DATES and not _is_date(found):
            raise ValueError(f"{field} of chunk {chunk['id']!r} must be a date like 2026-01-31, not {found!r}")


def _is_date(text):
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return documents.DATE.fullmatch(text) is not None


if __name__ == "__main__":
    CHUNKS = [{"doc_id": "leave-2025", "title": "Leave policy 2025", "effective_date": "2025-01-01", "doc_type": "md"},
              {"doc_id": "leave-2026", "title": "Leave policy 2026", "effective_date": "2026-01-01", "doc_type": "md"},
              {"doc_id": "leave-draft", "title": "Leave policy 2027", "effective_date": "2027-01-01", "doc_type": "md",
               "acl": ["hr"]},
              {"doc_id": "prices", "title": "Prices", "doc_type": "html"}]
    filters = Filters(CHUNKS)
    for user in (None, "hr"):
        for where in ({}, {"doc_type": "md"}, {"latest": True}, {"effective_date": ("<=", "2025-12-31")},
                      {"effective_date": ("<=", "2025-12-31"), "latest": True}):
            mask = filters.matching(where, filters.visible(user))
            found = [chunk["doc_id"] for chunk, yes in zip(CHUNKS, mask) if yes]
            print(f"user {user or 'anonymous':9}  where {where}\n    {', '.join(found)}")
