"""Second half of the lesson on saving: killed at any point, truncated, edited, of another format."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import saving

ROOT = Path(__file__).parent.parent
ARRAYS = {"vectors": np.arange(6, dtype=np.float32).reshape(2, 3), "given": np.array([True, False])}
DATA = {"chunks": [{"id": "d#0", "text": "ein Ölbild \ud800"}], "terms": []}


def saves(folder):
    return [path for path in Path(folder).iterdir() if path.name.startswith("rag-index-")]


@pytest.fixture
def saved(tmp_path):
    saving.write(tmp_path / "made" / "now", ARRAYS, DATA)
    return tmp_path / "made" / "now"


def pointer(folder):
    return json.loads((folder / saving.POINTER).read_text())


# -- There and back ----------------------------------------------------------------------------------------------------


def test_there_and_back(saved):
    for thorough in (False, True):
        arrays, data = saving.read(saved, thorough)
        assert data == DATA and arrays.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert arrays[name].dtype == array.dtype and (arrays[name] == array).all()


def test_arrays_stay_on_disk(saved):
    vectors = saving.read(saved)[0]["vectors"]
    assert type(vectors) is np.ndarray and isinstance(vectors.base, np.memmap) and not vectors.flags.writeable


def test_empty_arrays(tmp_path):
    saving.write(tmp_path, {"vectors": np.empty((0, 384), np.float32)}, {})
    assert saving.read(tmp_path)[0]["vectors"].shape == (0, 384)


def test_a_second_save_replaces_the_first_and_what_killed_ones_left(saved):
    (saved / f"rag-index-{'0' * 32}").mkdir()
    mine = [saved / "rag-index-of-mine", saved / "rag-index-notes.txt", saved / "photos"]
    for each in mine:
        each.mkdir()
    saving.write(saved, {}, {"chunks": 2})
    assert saving.read(saved) == ({}, {"chunks": 2})
    assert len([path for path in saves(saved) if path not in mine]) == 1
    assert all(each.exists() for each in mine)                        # a person's own folders are nobody's saves


def test_what_was_loaded_outlives_the_next_save(saved):
    vectors = saving.read(saved)[0]["vectors"]
    saving.write(saved, {"vectors": np.zeros((2, 3), np.float32)}, {})
    assert (vectors == ARRAYS["vectors"]).all()


def test_nothing_that_runs_code_is_written(tmp_path):
    with pytest.raises(ValueError, match="[Oo]bject arrays"):
        saving.write(tmp_path, {"chunks": np.array([{}], object)}, {})


@pytest.mark.parametrize("arrays, data", [({}, {"chunks": [Path("a")]}), ({"a": np.array([None])}, {})])
def test_a_save_that_fails_leaves_the_one_before(saved, arrays, data):
    with pytest.raises((TypeError, ValueError)):
        saving.write(saved, arrays, data)
    assert saving.read(saved)[1] == DATA and len(saves(saved)) == 1


def test_a_full_disk_leaves_the_save_before(saved, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        saving.write(saved, ARRAYS, {})
    monkeypatch.undo()
    assert saving.read(saved)[1] == DATA and len(saves(saved)) == 1


def test_two_at_once(saved):
    with saving._alone(saved), pytest.raises(BlockingIOError, match="another process is saving"):
        saving.write(saved, {}, {})
    saving.write(saved, {}, {"chunks": 3})
    assert saving.read(saved)[1] == {"chunks": 3}


def test_a_save_while_reading_is_read_instead(saved, monkeypatch):
    """Between the pointer and its files another process saves."""
    read, calls = saving._read, []

    def slow(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            saving.write(saved, {}, {"chunks": "new"})
        return read(*arguments)
    monkeypatch.setattr(saving, "_read", slow)
    assert saving.read(saved)[1] == {"chunks": "new"} and len(calls) == 2


# -- Killed ------------------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import numpy as np
import saving

folder, last = sys.argv[1], 0
def data(number):
    return {"vectors": np.full((3, 2), number, np.float32)}, {"chunks": [number], "terms": ["a"]}

saving.write(folder, *data(0))
for point in range(1, 1000):
    child = os.fork()
    if not child:
        points = 0
        def kill(event, arguments):
            global points
            if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree", "fsync"):
                points += 1
                if points == point:
                    os.kill(os.getpid(), signal.SIGKILL)
        fsync = os.fsync
        os.fsync = lambda number: (kill("fsync", ()), fsync(number))
        sys.addaudithook(kill)
        saving.write(folder, *data(point))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    arrays, [[found], terms] = saving.read(folder, thorough=True)[0], saving.read(folder)[1].values()
    assert (arrays["vectors"] == found).all() and found in (last, point), (found, last, point)
    print("old" if found == last else "new")
    last = found
    if not os.WIFSIGNALED(status):
        break
print(len(os.listdir(folder)))
"""


def test_killed_at_any_point_leaves_the_old_or_the_new(tmp_path):
    """A child process kills itself at its first, second, third ... call that changes or opens a file."""
    printed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, check=True, capture_output=True,
                             text=True).stdout.split()
    *found, n_left = printed
    assert found.count("old") > 15 and found.count("new") > 5 and found[-1] == "new"
    assert n_left == "2"                                              # the last, unharmed one: a pointer and its save


# -- Damaged -----------------------------------------------------------------------------------------------------------


def file_of(folder, name):
    return folder / pointer(folder)["save"] / name


@pytest.mark.parametrize("name", ["vectors.npy", "given.npy", "chunks.json", "terms.json"])
@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"", lambda content: content + b" ",
                                    lambda content: content[:-1] + bytes([content[-1] ^ 1])],
                         ids=["truncated", "empty", "longer", "edited"])
def test_a_damaged_file_is_named(saved, name, damage):
    path = file_of(saved, name)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=f"cannot be used: {name} (has|was changed).*build it again"):
        saving.read(saved)


@pytest.mark.parametrize("name", ["vectors.npy", "chunks.json"])
def test_a_missing_file_is_named(saved, name):
    file_of(saved, name).unlink()
    with pytest.raises(ValueError, match=f"cannot be used: .*{name}.*build it again"):
        saving.read(saved)


def test_a_bit_lost_by_the_disk_shows_when_all_is_read(saved):
    path = file_of(saved, "vectors.npy")
    changed = path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    os.utime(path, ns=(changed, changed))
    saving.read(saved)                                                # size and time are as they were
    with pytest.raises(ValueError, match="vectors.npy was changed"):
        saving.read(saved, thorough=True)


def test_a_copy_is_read(saved, tmp_path):
    copy = shutil.copytree(saved, tmp_path / "copy", copy_function=shutil.copyfile)        # with other times
    assert saving.read(copy)[1] == DATA
    path = file_of(copy, "vectors.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.raises(ValueError, match="vectors.npy was changed"):
        saving.read(copy)


@pytest.mark.parametrize("content", [
    b"", b"{", b"[]", b"null", b"{}", b'{"format": 2}', b'{"format": 2, "save": 3, "files": {}}',
    b'{"format": 2, "save": "../../etc", "files": {}}', b'{"format": 2, "save": "rag-index-", "files": []}',
    b'{"format": 2, "save": "rag-index-%s", "files": {"a.npy": 3}}' % (b"0" * 32), b"\xff\xfe"])
def test_a_damaged_pointer(saved, content):
    (saved / saving.POINTER).write_bytes(content)
    with pytest.raises(ValueError, match="rag-index.json is damaged; build it again"):
        saving.read(saved)
    saving.write(saved, ARRAYS, DATA)                                 # which mends it
    assert saving.read(saved)[1] == DATA


@pytest.mark.parametrize("other", [0, 1, "1.5"])
def test_another_format(saved, other):
    (saved / saving.POINTER).write_text(json.dumps({**pointer(saved), "format": other}))
    with pytest.raises(ValueError, match=f"saved in the format {other}, this program reads 2: build it again"):
        saving.read(saved)


def test_another_format_may_look_otherwise(saved):
    (saved / saving.POINTER).write_text(json.dumps({"format": 1, "save": {"at": "x"}}))
    with pytest.raises(ValueError, match="format 1"):
        saving.read(saved)


def test_nothing_saved(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match="nothing is saved in"):
            saving.read(folder)
