"""Beside step 11 — Was this text embedded before? Vectors in a file, found by what decides them.

Embedding is the slow part, and most texts are the same as last time. A vector depends on the text and on the model, its
settings and its code, and on nothing else: so all of that together is the key, and whatever changes, changes the key. A
vector is never out of date; at worst it is never asked for again.

    key      SHA-256 of model, prefix and text                       32 bytes
    vector   dim numbers of four bytes (float32), one after another  toy: (0.6, 0.8) -> 9a 99 19 3f cd cc 4c 3f
             or several such vectors under one key: those of the word pieces of a short text
    check    CRC-32 of key and vector: has a bit changed since?      toy, of the key b"k": 0x0dbf98ce
    mark     a number in the file's head that says: this is such a cache, and none of another kind ("RAG1")

The file is an SQLite database, a few kilobytes more than its vectors. Each call opens it, does one transaction and
closes it: several processes can use it at once, and none of them minds if another has moved the file away.

A cache may be slow or forgetful, but neither wrong nor in the way. A file that is damaged or something else is renamed,
never deleted, and a new one begun; a row that does not pass its check is not there; where nothing can be read or
written (no permission, full disk, locked for ten seconds) all goes on without. Each of these is a CacheWarning.

Not here: forgetting by age (clear() forgets all), pickle, which runs whatever a foreign file tells it to.
"""

import contextlib
import hashlib
import itertools
import json
import os
import sqlite3
import sys
import warnings
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

MARK = 0x52414731                                                      # "RAG1": SQLite keeps it as application_id
PATIENCE = 10                                                          # seconds to wait for another process
# what sqlite says of a file that is no cache: an error in the SQL (no such table), damaged, no database at all
USELESS = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class CacheWarning(UserWarning):
    """Something is wrong with the cache's file. Vectors are right all the same."""


class Size(NamedTuple):
    """How many vectors there are, and how many bytes the file has."""

    entries: int
    bytes: int


class _OtherFile(Exception):
    """The file is a database, but no cache of vectors."""


def key_of(model, prefix, text):
    """The key of a text's vector: 32 bytes.

    model   all that decides vectors beside prefix and text, as one string
    >>> key_of("m", "a", "b") == key_of("m", "a", "b"), key_of("m", "a", "b") == key_of("m", "", "ab")
    (True, False)
    """
    return hashlib.sha256(json.dumps([model, prefix, text]).encode()).digest()


def default_path():
    """Where rag.py keeps its vectors: $RAG_IN_NUMPY_CACHE (empty: nowhere, None), or a file in the user's cache folder.

    That is $XDG_CACHE_HOME/rag-in-numpy/vectors.sqlite, by default ~/.cache/rag-in-numpy/vectors.sqlite.
    """
    if (path := os.environ.get("RAG_IN_NUMPY_CACHE")) is not None:
        return Path(path).expanduser() if path.strip() else None
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):                                      # the standard says to ignore a relative one
        folder = os.path.expanduser("~/.cache")
    return Path(folder, "rag-in-numpy", "vectors.sqlite") if os.path.isabs(folder) else None     # "~": nobody's home


class VectorCache:
    """A file of vectors. Making one touches nothing; the file is made when the first vector is put in."""

    def __init__(self, path):
        self.path = Path(path).expanduser()
        self._given_up = set()                                         # "read", "write": not tried again

    def get(self, keys, dim, many=False):
        """{key: vector float32 [dim]} of those keys whose vectors are there and pass their check; many: [n, dim]."""
        ask = "SELECT key, vector, crc FROM vectors WHERE key = ?"
        rows = self._do("read", lambda file: [row for key in dict.fromkeys(keys) for row in file.execute(ask, (key,))])
        found = {key: vector for key, *row in rows or () if (vector := _checked(key, *row, dim, many)) is not None}
        if damaged := len(rows or ()) - len(found):
            _warn(f"{damaged} of {len(rows)} vectors in {self.path} are damaged: they are computed again")
        return found

    def put(self, vectors):
        """Keep `vectors`, {key: vector float32 [dim] or [n, dim]}, all or none; but not what holds NaN or infinity."""
        kept = [(key, _bytes(vector)) for key, vector in vectors.items() if np.isfinite(vector).all()]
        rows = [(key, vector, zlib.crc32(key + vector)) for key, vector in kept]
        self._do("write", lambda file: file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows))

    def size(self):
        """How much there is: Size(entries, bytes)."""
        [entries] = self._do("read", lambda file: file.execute("SELECT count(*) FROM vectors").fetchone()) or [0]
        return Size(entries, self.path.stat().st_size if self.path.is_file() else 0)

    def clear(self):
        """Forget all vectors; the file stays, but gives its space back."""
        if self.path.is_file():
            self._do("write", lambda file: file.execute("DELETE FROM vectors"))
            self._do("write", lambda file: file.execute("COMMIT") and file.execute("VACUUM"))

    # -- The file, and all that can be wrong with it

    def _do(self, what, work):
        """The result of work(file) in one transaction; None if there is no file to read, or it cannot be used."""
        for attempt in ("first", "after a useless file was set aside"):
            if what in self._given_up:
                return None
            number = self._inode()
            try:
                if what == "write":
                    self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                elif number is None:
                    return None
                with self._transaction(what == "write") as file:
                    return work(file) if file else None
            # subtle: of a damaged file sqlite3 cannot even read its own error message (UnicodeError)
            except (sqlite3.Error, UnicodeError, OSError, _OtherFile) as error:
                useless = (isinstance(error, (UnicodeError, _OtherFile))
                           or getattr(error, "sqlite_errorcode", 0) & 0xFF in USELESS)
                if not (useless and attempt == "first" and self._set_aside(number, error)):
                    self._given_up |= {what, "write"}
                    _warn(f"the cache {self.path} cannot be {'written' if what == 'write' else 'read'} ({error}): "
                          "going on without")

    @contextlib.contextmanager
    def _transaction(self, writing):
        # subtle: SQLite takes a very short file for an empty database, and would write over it
        if self.path.is_file() and self._head() not in (b"", b"SQLite format 3\0"):
            raise _OtherFile("it is no database")
        with contextlib.closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as file:
            file.text_factory = bytes                                  # subtle: a flipped bit makes a text of a vector
            file.execute("PRAGMA synchronous = OFF")                   # a power cut may damage it: that is noticed
            file.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            [mark], [tables] = (file.execute(question).fetchone() for question in (
                "PRAGMA application_id", "SELECT count(*) FROM sqlite_master"))
            new = mark == tables == 0                                  # an empty file is an empty database
            if not new and mark != MARK:
                raise _OtherFile("it is another program's database")
            if new and writing:
                file.execute("CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB, crc INTEGER)")
                file.execute(f"PRAGMA application_id = {MARK}")
            yield None if new and not writing else file
            if file.in_transaction:
                file.execute("COMMIT")

    def _head(self):
        with open(self.path, "rb") as file:
            return file.read(16)

    def _inode(self):
        return os.stat(self.path).st_ino if os.path.exists(self.path) else None

    def _set_aside(self, number, reason):
        """Rename the file, unless another process has done so and begun a new one. True if it can be tried again."""
        if self._inode() != number:
            return True
        try:
            aside = self._linked_aside()
            os.unlink(self.path)
            # subtle: SQLite would take the old file's journal for the new one's, so it goes too
            for end in ("-journal", "-wal", "-shm"):
                if os.path.exists(f"{self.path}{end}"):
                    os.rename(f"{self.path}{end}", f"{aside}{end}")
        except OSError:
            return False
        _warn(f"{self.path} is damaged or no cache of vectors ({reason}): it is now {aside}, and a new one is begun")
        return True

    def _linked_aside(self):
        """A second name for the file. Unlike a renaming, a link never writes over what another process put there."""
        for n in itertools.count(1):
            with contextlib.suppress(FileExistsError):
                os.link(self.path, f"{self.path}.set-aside-{n}")
                return f"{self.path}.set-aside-{n}"


def _warn(message):
    warnings.warn(message, CacheWarning, stacklevel=2)


def _bytes(vector):
    return np.asarray(vector, "<f4").tobytes()                         # "<": the lowest byte first, on any machine


def _checked(key, vector, crc, dim, many=False):
    """The vector of a row, or vectors, or None if the row cannot be what `put` wrote."""
    if not isinstance(vector, bytes) or zlib.crc32(key + vector) != crc:
        return None
    if len(vector) % (4 * dim) if many else len(vector) != 4 * dim:
        return None
    numbers = np.frombuffer(vector, "<f4").astype(np.float32)          # a copy: these may be changed
    numbers = numbers.reshape(-1, dim) if many else numbers
    return numbers if np.isfinite(numbers).all() else None


def _lesson():
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        cache, key = VectorCache(Path(folder, "toy.sqlite")), key_of("toy", "", "the cat sat on the mat")
        print("key:", key.hex())
        print("before:", cache.get([key], 2))
        cache.put({key: np.float32([0.6, 0.8])})
        print("after:", *cache.get([key], 2).values())
        print("another prefix:", cache.get([key_of("toy", "query: ", "the cat sat on the mat")], 2))
        print(f"the file: {cache.size().entries} vector, {cache.size().bytes:,} bytes")


if __name__ == "__main__":
    if sys.argv[1:] not in (["--size"], ["--clear"]):
        _lesson()
    elif default_path() is None:
        print("rag.py keeps no vectors")
    else:
        if sys.argv[1:] == ["--clear"]:
            VectorCache(default_path()).clear()
        entries, size = VectorCache(default_path()).size()
        print(f"{default_path()}: {entries:,} vectors, {size:,} bytes")
