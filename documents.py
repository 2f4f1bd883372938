"""Step 7 of 22 — What is a document? Parsing files into text, blocks and metadata. Before: rst.py. Next: sentences.py.

    Document   a dict: id "guide/setup.md", title "Setup", text, source (the file's path), doc_type "md", and what is
               known of effective_date "2026-01-01", version "2", acl ["hr"] (the groups that may see it), ...
    text       the file as it is, its line ends too. Of HTML and PDF: the text in it
    Block      a part of a document, from rst.py: Block("heading", start=0, end=7, level=1, section_path=("Setup",))
    fields     [(name, value, line), ...]: front matter, the fields of an RST file, the <meta> tags of a page
    pages      of a PDF: where in `text` each page starts, [0, 1834, ...]
    Chunk      a dict: a slice of a document, the unit that is embedded, found and quoted
    body       document["text"][start:end], exactly; offsets count Unicode code points from 0

Nothing is lost: each format names the parts that it knows, and what lies between them is taken as paragraphs. So each
character that is no white space lies in exactly one block, whatever the file holds.

Each format is read by the parser that knows it best: RST by our own (rst.py), Markdown by markdown-it-py (CommonMark
and tables), HTML by the standard library's, Python by its own syntax tree, PDF by pypdf.

The metadata decide who may see a document and which version is the newest. So where they cannot be understood (a date
that is none, a name given twice) the file is refused; `acl:` without a value is visible to nobody. Trap: a document
that names no acl is visible to everyone, and Python and PDF files cannot name one.

Not here: images of pages (no OCR), other YAML than plain values and lists, the columns of a PDF, layout by CSS.
"""

import itertools
import logging
import os
import re
import warnings
from collections import Counter
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TypedDict

from tqdm import tqdm

import markup
import rst
import webpage
from rst import Block

DOC_TYPES = {".rst": "rst", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".py": "py", ".txt": "txt",
             ".pdf": "pdf"}


class Metadata(TypedDict, total=False):
    """What may be known of a document; dates as ISO text."""

    effective_date: str
    created_at: str
    updated_at: str
    version: str
    series: str
    language: str
    product: str
    region: str
    tenant: str
    acl: list[str]      # groups that may see it; [] is nobody


class Document(Metadata, total=False):
    """A text and where it came from. The first five keys are always there."""

    id: str
    title: str
    text: str
    source: str
    doc_type: str
    pages: list[int]        # of a PDF
    blocks: list[Block]     # of a page of HTML


class Chunk(Metadata, total=False):
    """A slice of a document: body == document["text"][start:end]. Keys from section_path on only where they apply."""

    id: str             # f"{doc_id}#{position}"
    doc_id: str
    position: int       # its number among the document's chunks, from 0
    title: str
    body: str
    text: str           # what is embedded and shown: breadcrumb, repeated table header, body
    start: int
    end: int
    section_path: list[str]
    source: str
    doc_type: str
    page: int           # from 1
    parent_id: str
    parent_start: int
    parent_end: int
    parent_body: str
    context: str        # embedded and indexed in front of `text`, never shown
    vector: object      # float32 [dim]
    split: bool         # a piece of a row, sentence, fence or function that was too long to stay whole


class Unreadable(UserWarning):
    """A file that load_folder left out, and why."""


# -- Files ------------------------------------------------------------------------------------------------------------


def load_descriptions(names=None):
    """The data set descriptions of the installed scikit-learn as Documents, by id; `names` picks some, in that order.

    An id is the file's name without its ending. scikit-learn is not imported (that takes a second). Raises
    ModuleNotFoundError without it, ValueError for an unknown name, TypeError for a single string, OSError or ValueError
    (naming the file) for one that cannot be read.

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
    return [load_file(paths[name], id=name) for name in names]


def load_folder(path):
    """The .rst, .md, .html, .py, .txt and .pdf files below a folder as Documents, sorted by id: their relative path.

    Hidden files and folders are skipped. Links to files are followed, links to folders are not. A file that cannot be
    read is left out, with a warning (Unreadable) that names it. Raises FileNotFoundError or NotADirectoryError, and
    ValueError if nothing could be loaded.
    """
    folder = Path(path)
    if not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(f"{path} is no folder: give the folder that it is in")
        raise FileNotFoundError(f"there is no folder {path}")
    loaded, reasons, ids = [], [], _ids(folder)
    for id in tqdm(ids, "reading", unit="file", disable=None, leave=False):
        try:
            loaded.append(load_file(folder / id, id))
        except (OSError, ValueError, ImportError) as error:
            reasons.append(f"left out: {error}")
            warnings.warn(reasons[-1], Unreadable, stacklevel=2)
    if not loaded:
        tried = "\n".join(reasons[:9]) or f"no file ends in {' '.join(DOC_TYPES)}"
        raise ValueError(f"{path} holds nothing to load; {tried}")
    return loaded


def load_file(path, id=None):
    """One file as a Document; `id` is its name unless given. Raises OSError, ValueError or, for want of pypdf,
    ModuleNotFoundError, each naming the file."""
    path = Path(path)
    doc_type = _doc_type(path.name)
    if not path.is_file():                                             # subtle: opening a pipe would wait for ever
        raise FileNotFoundError(f"{path} is no regular file, or a broken link")
    if str(path) != str(path).encode(errors="replace").decode():
        raise ValueError(f"{os.fsencode(path)} has a name that is not UTF-8: rename it")
    document = Document(id=path.name if id is None else id, title=None, text="", source=str(path), doc_type=doc_type)
    fields = _read_pdf(path, document) if doc_type == "pdf" else _read_text(path, document)
    if not document["text"].strip():
        raise ValueError(f"{path} has no text layer: is it a scan?" if doc_type == "pdf" else f"{path} has no text")
    document |= _metadata(fields, path)
    document["title"] = document["title"] or _first_heading(document) or (path.name if doc_type == "py" else path.stem)
    return document


def _descriptions_folder():
    package = find_spec("sklearn")
    if package is None:
        raise ModuleNotFoundError("the documents come with scikit-learn, which is missing: pip install scikit-learn")
    return Path(package.submodule_search_locations[0]) / "datasets" / "descr"


def _ids(folder):
    ids = []
    for where, folders, names in os.walk(folder, onerror=lambda error: warnings.warn(f"left out: {error}", Unreadable)):
        folders[:] = [name for name in folders if not name.startswith(".")]
        ids += [(Path(where) / name).relative_to(folder).as_posix() for name in names
                if not name.startswith(".") and Path(name).suffix.lower() in DOC_TYPES]
    return sorted(ids)


def _doc_type(name, known=None):
    """The type `known` under one of its names ("md", "markdown"), else the one of the ending, else plain text."""
    return DOC_TYPES.get("." + str(known).lower().lstrip(".")) or DOC_TYPES.get(Path(name).suffix.lower(), "txt")


def _first_heading(document):
    if document["doc_type"] in ("rst", "md", "html"):
        return next((block.section_path[-1] for block in blocks(document) if block.kind == "heading"), None)


def _read_text(path, document):
    """Fill in the text; return the fields."""
    try:
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")   # bytes: read_text would turn CRLF into LF
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    document["text"] = text
    fields = _front_matter(text)[1]                                    # of any format: it may restrict who sees it
    if document["doc_type"] == "html":
        page = webpage.Page(text)
        document |= {"text": page.text, "blocks": page.blocks, "title": page.title}
        fields += page.fields
    return fields + rst.fields(text) if document["doc_type"] == "rst" else fields


def _read_pdf(path, document):
    try:
        import pypdf
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"{path} needs pypdf, the extra `pdf`: "
                                  ".venv/bin/pip install -c constraints.txt -e '.[pdf]'") from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)              # it remarks on damage, which is raised below
    try:
        reader = pypdf.PdfReader(path)
        locked = reader.is_encrypted and not reader.decrypt("")
        pages = [] if locked else _without_running_lines([page.extract_text() for page in reader.pages])
        title = "" if locked else str(reader.metadata and reader.metadata.title or "").strip()
    except Exception as error:                                         # subtle: damage shows as errors of any kind
        raise ValueError(f"{path} is a damaged PDF: {error}") from error
    if locked:
        raise ValueError(f"{path} is encrypted: save it without a password")
    starts = [0]
    for page in pages:
        starts.append(starts[-1] + len(page) + 1)
    document |= {"text": "\n".join(pages), "pages": starts[:-1], "title": title}
    return []


def _without_running_lines(pages):
    """Drop a first or last line that, numbers aside, more than half of the pages have there; of at least 3 pages.

    >>> _without_running_lines(["Report\\nOne.\\n1", "Report\\nTwo.\\n2", "Report\\nThree.\\n3"])
    ['One.', 'Two.', 'Three.']
    """
    pages = [page.strip() for page in pages]
    for edge in (0, -1):
        lines = [page.split("\n") for page in pages]
        shapes = [re.sub(r"\d+", "0", each[edge].strip()) for each in lines]
        running = {shape for shape, count in Counter(shapes).items() if count > len(pages) / 2 and len(pages) >= 3}
        pages = ["\n".join(each[1:] if edge == 0 else each[:-1]) if shape in running else page
                 for page, each, shape in zip(pages, lines, shapes)]
    return pages


# -- Metadata ---------------------------------------------------------------------------------------------------------

KNOWN = {"title", *Metadata.__annotations__}
DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].+)?")
KEY = re.compile(r"([A-Za-z][\w -]*):(?:[ \t]+(.*))?")
MISTYPED = re.compile(rf"""[ \t"']*({'|'.join(KNOWN).replace('_', '[ _-]')})[ \t"']*:""", re.IGNORECASE)
ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")
IN_LIST = re.compile(r"""\s*("[^"]*"|'[^']*'|[^,]+)""")


def _metadata(fields, path):
    """What the known names say. Raises ValueError with file and line for a bad value, or a name that comes twice."""
    known, seen = {}, {}
    for name, value, line in fields:
        name = re.sub("[ -]", "_", name.strip().lower())
        if name in KNOWN:
            if name in seen:
                raise ValueError(f"{path}, line {line}: {name} is already given in line {seen[name]}")
            seen[name] = line
            try:
                known[name] = _checked(name, value)
            except ValueError as error:
                raise ValueError(f"{path}, line {line}: {error}") from error
    return {name: value for name, value in known.items() if value != ""}


def _checked(name, value):
    if isinstance(value, str) and name == "acl":                       # "hr, it"; an RST list comes as "- hr - it"
        value = re.split(r",|(?:^|\s)-\s", value.strip("[] "))
    if value is None or isinstance(value, list) and not all(isinstance(item, str) for item in value):
        raise ValueError(f"{name} is not understood: write plain text, [a, b], or a line `- item` for each")
    if name == "acl":                                                  # subtle: no value is [], nobody, not everyone
        return [group.strip() for group in value if group.strip()]
    if isinstance(value, list):
        raise ValueError(f"{name} takes one value, not a list")
    if value and name in ("effective_date", "created_at", "updated_at"):
        if not DATE.fullmatch(value):
            raise ValueError(f"{name} must be a date like 2026-01-31, not {value!r}")
        try:
            datetime.fromisoformat(value)                              # refuses 2026-02-30
        except ValueError as error:
            raise ValueError(f"{name} is no date: {value!r} ({error})") from error
        return value.replace(" ", "T")
    return value


def _front_matter(text, lines=None):
    """(number of lines, fields) of the block between two lines `---` at the very top; (0, []) if there is none.

    It is none if it is not closed or does not begin with `key: value`: then `---` is only a rule. A value is a string,
    a list of strings, or None if it is written in some other way of YAML's: also where a known name is mistyped (in
    quotes, indented, without a space behind the colon), and acl or tenant where the block is not closed: no restriction
    is lost without a word.

    >>> _front_matter("---\\ntitle: 'A: b'  # draft\\nacl:\\n- hr\\n---\\nText")
    (5, [('title', 'A: b', 2), ('acl', ['hr'], 3)])
    """
    fields, blank, begun = [], None, False                             # blank: the first blank line inside
    for number, (start, end) in enumerate(rst.line_spans(text) if lines is None else lines, start=1):
        line = text[start:end].rstrip()
        if not begun:
            if line not in ("", "---"):
                return 0, []
            begun = line == "---"                                      # blank lines may stand in front
            continue
        if fields and line in ("---", "..."):
            return number, fields
        blank = blank or (number if not line else None)
        if key := KEY.fullmatch(line):
            fields.append((key[1], _value(key[2] or ""), number))
        elif mistyped := MISTYPED.match(line):
            fields.append((mistyped[1], None, number))
        elif fields and (item := ITEM.fullmatch(line)):
            _add_item(fields, _value(item[1]))
        elif not fields and line[:1] not in ("", "#"):
            return 0, []
    top = itertools.takewhile(lambda field: not blank or field[2] < blank, fields)
    return 0, [(name, None, number) for name, _, number in top if name.lower() in ("acl", "tenant")]


def _add_item(fields, item):
    name, value, number = fields[-1]
    value = [] if value == "" else value
    fields[-1] = name, value + [item] if isinstance(value, list) else value, number


def _value(raw):
    raw = raw.strip()
    if raw[:1] in ("'", '"') and (close := raw.find(raw[0], 1)) > 0:
        return raw[1:close] if raw[close + 1:].strip()[:1] in ("", "#") else None
    if raw in ("null", "~"):
        return ""
    if raw.startswith("["):
        inner, closed, rest = raw[1:].partition("]")
        if closed and rest.strip()[:1] in ("", "#"):
            return [_value(item) for item in IN_LIST.findall(inner) if item.strip()]
    return None if raw[:1] and raw[0] in "[{|>&!*" else re.split(r"(?:^|\s)#", raw, maxsplit=1)[0].strip()


# -- Blocks -----------------------------------------------------------------------------------------------------------


def blocks(document):
    """The Blocks of a document, in order. The format is `doc_type`, or follows from the id's ending; else plain text.

    >>> [(block.kind, block.section_path) for block in blocks({"id": "a.md", "text": "# Pets\\n\\nThe cat sat."})]
    [('heading', ('Pets',)), ('paragraph', ('Pets',))]
    """
    text, doc_type = document["text"], _doc_type(document.get("id", ""), document.get("doc_type"))
    if "blocks" in document:
        return list(document["blocks"])
    if doc_type == "rst":
        return rst.blocks(text)
    lines = rst.line_spans(text)
    if doc_type == "py":
        return markup.to_blocks(text, lines, markup.python_parts(text, lines))
    top = _front_matter(text, lines)[0] if doc_type in ("md", "txt") else 0
    parts = [markup.Part(0, top, "field")] if top else []
    return markup.to_blocks(text, lines, parts + (markup.markdown_parts(text, lines, top) if doc_type == "md" else []))


if __name__ == "__main__":
    for document in load_descriptions():
        print(f"{document['id']:22} {len(document['text'].split()):5} words  {document['title']}")
    page = "# Leave policy\n\nFive days carry over.\n\n| year | days |\n|---|---|\n| 2025 | 10 |\n| 2026 | 5 |\n"
    print("\nThe blocks of a page of Markdown, its table cut between rows:")
    for kind, start, end, level, path, cuts, header in blocks({"id": "leave.md", "text": page}):
        print(f"{kind:10} {start:3}:{end:<3} {' > '.join(path)}  cuts {list(cuts)}  header {header}")
