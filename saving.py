"""Beside step 12 — How does something on disk survive a crash, and damage? A new folder, and then one rename.

    folder                  what is saved and loaded: arrays and plain data, each under its name
      rag-index.json        the pointer: which save counts, and what its files must look like
      rag-index-3f0a.../    a save: vectors.npy, chunks.json, ... (NumPy's own format and JSON; nothing that runs code)
    format                  a number; another program may write these files in another way
    checksum                SHA-256 of a file

Nothing that counts is ever written over. A save writes a new folder beside the old one, has the disk confirm it, and
then renames a new pointer over the old one, which happens at once or not at all. Only then is the old folder deleted.
So wherever the process dies, the pointer names a complete save: the old or the new one.

Whether a file is what was saved: plain data are read anyway, so their checksum is compared each time. Arrays stay on
disk until they are used (memory-mapped), and reading gigabytes to load them would be slow. Their size is compared, and
the time of their last change; if that differs (they were edited, or copied), the checksum decides. A bit that the
disk itself has lost shows only with thorough=True, which reads everything.

Not here: several processes that save at once (the second is refused), what the arrays mean.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import uuid
from pathlib import Path

import numpy as np

FORMAT = 2
POINTER = "rag-index.json"
SAVE = re.compile("rag-index-[0-9a-f]{32}")
AGAIN = "build it again, or put a copy of the whole folder in its place"


def write(folder, arrays, data):
    """Save {name: array} and {name: plain data} to a folder, which is made if need be. What was saved before goes.

    Raises TypeError for data that JSON does not know, BlockingIOError if another process is saving there, OSError if
    the disk is full or read-only: then what was saved before still counts.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        save = folder / f"rag-index-{uuid.uuid4().hex}"
        try:
            save.mkdir()
            files = [_write_array(save / f"{name}.npy", array) for name, array in arrays.items()]
            files += [_write_data(save / f"{name}.json", each) for name, each in data.items()]
            _confirm(save)
            pointer = {"format": FORMAT, "save": save.name, "files": dict(files)}
            _write_data(folder / f"{POINTER}.new", pointer)
            os.replace(folder / f"{POINTER}.new", folder / POINTER)
        except Exception:
            shutil.rmtree(save, ignore_errors=True)
            raise
        _confirm(folder)
        for other in folder.iterdir():                                 # the old one, and what killed processes left
            if other != save and SAVE.fullmatch(other.name):
                shutil.rmtree(other, ignore_errors=True)


def read(folder, thorough=False):
    """({name: array, memory-mapped}, {name: data}) of what was saved last in a folder.

    Raises FileNotFoundError if nothing was, ValueError if it is damaged or of another format, saying what to do.
    """
    while True:
        pointer = _pointer(folder)
        try:
            return _read(Path(folder) / pointer["save"], pointer["files"], thorough)
        except (OSError, ValueError) as error:
            # subtle: another process may have saved meanwhile, and deleted what the pointer named
            if _pointer(folder) == pointer:
                raise ValueError(f"what is saved in {folder} cannot be used: {error}; {AGAIN}") from error


def _pointer(folder):
    path = Path(folder) / POINTER
    if not path.is_file():
        raise FileNotFoundError(f"nothing is saved in {folder}: there is no {path.name}")
    try:
        pointer = json.loads(path.read_bytes())
        # another format may look otherwise in all but this
        known = pointer["format"] != FORMAT or SAVE.fullmatch(pointer["save"]) and all(
            len(each) == 3 for each in pointer["files"].values())
    except (ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise ValueError(f"{path} is damaged; {AGAIN}")
    if pointer["format"] != FORMAT:
        raise ValueError(f"{folder} was saved in the format {pointer['format']}, this program reads {FORMAT}: build it "
                         "again, or use the program that saved it")
    return pointer


def _read(save, files, thorough):
    arrays, data = {}, {}
    for name, (size, changed, checksum) in files.items():
        path, name = save / name, Path(name).stem
        found = path.stat()
        if found.st_size != size:
            raise ValueError(f"{path.name} has {found.st_size} bytes, not {size}")
        if path.suffix == ".json":
            content = path.read_bytes()
            _compare(path, hashlib.sha256(content).hexdigest(), checksum)
            data[name] = json.loads(content)
        else:
            if thorough or found.st_mtime_ns != changed:
                _compare(path, _checksum(path), checksum)
            arrays[name] = _mapped(path)
    return arrays, data


def _compare(path, found, checksum):
    if found != checksum:
        raise ValueError(f"{path.name} was changed (its SHA-256 is another)")


def _mapped(path):
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(array)                                           # without the subclass, which slows every slice


# -- Files ------------------------------------------------------------------------------------------------------------


def _write_array(path, array):
    with open(path, "wb") as file:
        np.save(file, array, allow_pickle=False)
        _flush(file)
    return _entry(path)


def _write_data(path, data):
    with open(path, "w", encoding="ascii") as file:
        file.write(json.dumps(data))
        _flush(file)
    return _entry(path)


def _entry(path):
    """(name, (size, time of last change, checksum)): how a file is recognised."""
    found = path.stat()
    return path.name, (found.st_size, found.st_mtime_ns, _checksum(path))


def _checksum(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(file):
    """Wait until the disk has what was written: a pointer must not outlive a power cut that its save does not."""
    file.flush()
    os.fsync(file.fileno())


def _confirm(folder):
    """Wait until the disk knows the names in a folder."""
    if os.name == "posix":
        with _opened(folder) as number:
            os.fsync(number)


@contextlib.contextmanager
def _opened(folder):
    number = os.open(folder, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)


@contextlib.contextmanager
def _alone(folder):
    """Raise BlockingIOError if another process is saving in `folder`. Its lock ends with it, even if it is killed."""
    try:
        import fcntl
    except ModuleNotFoundError:                                        # Windows: nobody checks
        yield
        return
    with _opened(folder) as number:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(f"another process is saving in {folder}: wait until it is done") from None
        yield


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        saves = []
        for number in (1, 2):
            before = saves
            write(folder, {"vectors": np.eye(2, dtype=np.float32)}, {"chunks": [f"text {number}"]})
            saves = [path.name for path in Path(folder).iterdir() if path.name != POINTER]
            print(f"save {number}: {len(saves)} folder, {'the same' if saves == before else 'a new one'}; "
                  f"read back: {read(folder)[1]}")
        path = Path(folder) / saves[0] / "chunks.json"
        path.write_text('["text 3"]')
        try:
            read(folder)
        except ValueError as error:
            print("edited:", str(error).replace(folder, "FOLDER"))
