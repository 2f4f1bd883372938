"""Step 7 of 22 — What is a document? Text with an id, a title and a source. Before: trec.py. Next: embedding.py.

    Document   a dict: id "wine_data", title "Wine recognition dataset", text (the file, unchanged), source (its path)
    Chunk      a dict: a slice of a document, the unit that is embedded, found and quoted; rag.chunk makes them
    body       document["text"][start:end], exactly; offsets are Python's own, from 0
    text       what is embedded and indexed: the title in front of the body's words

The documents here are the descriptions that scikit-learn ships of its data sets: real prose, lists and tables, short
enough to read. They are read from the installed package's folder; scikit-learn itself is not imported (that takes a
second), and nothing is downloaded.

Not here: other folders and formats, and the parts inside a document.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict


class Document(TypedDict):
    """A text and where it came from."""

    id: str
    title: str
    text: str
    source: str
    doc_type: str


class Chunk(TypedDict):
    """A slice of a document: body == document["text"][start:end]."""

    id: str             # f"{doc_id}#{position}"
    doc_id: str
    position: int       # its number among the document's chunks, from 0
    title: str
    body: str
    text: str
    start: int
    end: int


def load_descriptions(names=None):
    """The data set descriptions of the installed scikit-learn as Documents, by id; `names` picks some, in that order.

    An id is the file's name without its ending. Raises ModuleNotFoundError without scikit-learn, ValueError for an
    unknown name, TypeError for a single string, OSError or ValueError (naming the file) for one that cannot be read.

    >>> [wine] = load_descriptions(["wine_data"])
    >>> wine["title"], wine["text"][:16]
    ('Wine recognition dataset', '.. _wine_dataset')
    """
    paths = {path.stem: path for path in sorted(_descriptions_folder().glob("*.rst"))}
    if isinstance(names, str):
        raise TypeError(f"names must be a list of ids, such as [{names!r}]")
    names = list(paths) if names is None else list(names)
    if unknown := [name for name in names if name not in paths]:
        raise ValueError(f"no description is called {', '.join(map(repr, unknown))}; there are: {', '.join(paths)}")
    return [_read(paths[name]) for name in names]


def first_heading(text):
    """The first line that is underlined with one punctuation character, repeated to at least its length, or None.

    >>> first_heading(".. _label:\\n\\nWine\\n----\\n\\nText")
    'Wine'
    """
    lines = text.splitlines()
    for title, underline in zip(lines, map(str.rstrip, lines[1:])):
        if title.strip() and re.fullmatch(r"([^\w\s])\1*", underline) and len(underline) >= len(title.rstrip()):
            return title.strip()
    return None


def _descriptions_folder():
    package = find_spec("sklearn")
    if package is None:
        raise ModuleNotFoundError("the documents come with scikit-learn, which is missing: pip install scikit-learn")
    return Path(package.submodule_search_locations[0]) / "datasets" / "descr"


def _read(path):
    try:
        text = path.read_bytes().decode("utf-8")                      # bytes: read_text would turn CRLF into LF
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start})") from error
    return Document(id=path.stem, title=first_heading(text) or path.stem, text=text, source=str(path), doc_type="rst")


if __name__ == "__main__":
    for document in load_descriptions():
        print(f"{document['id']:22} {len(document['text'].split()):5} words  {document['title']}")
