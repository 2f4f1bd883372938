"""Step 12 of 22 — Where do chunks, vectors and postings live, and who may see them? Before: embedding.py.
Next: rerank.py.

An `Index` keeps all that a chunk is searched by: its vector (cosine.py), the postings of its words (postings.py), who
may see it (filters.py). It is only ever changed, by chunks that leave and chunks that come: what is built at once is an
empty one to which all was added. So an index that grew equals one built from scratch, in every bit of every score.

    chunks        dicts, ordered by (doc_id, position): a chunk's place in this list is its position everywhere below
    searched text context, blank line, text: what is embedded, and what keywords are looked up in
    vectors       a row for each chunk [n, dim], of length 1 or 0
    visible       a mask [n]: True where the user may see the chunk; keyword statistics count these alone
    allowed       a mask [n]: True where a chunk may be found: it is visible and matches the conditions
    document      a dict with an id and a text (documents.py), from which `chunker` makes chunks
    checksum      SHA-256 of all that a document says, its metadata too, and of how the chunker cuts
    title_boost   how many times more the words of a chunk's title count as its words, for keywords alone: a simple way
                  to say that a title weighs more. 1, since that helped keyword search wherever it was measured
                  (results/stages.md); 3 gains more at rank 1 and loses some further down

Each text is embedded alone (batch_size=1), which takes a quarter longer: in company a vector moves by 1e-7, and its
chunk's score would tell of the others, hidden ones too. (Trap: an embedder with a cache may hand out a vector that was
made in company.) What a user may see is known before anything is ranked, so hidden chunks take no place among the k.

Not here: how two rankings become one (fusion.py). With another chunker, `sync` cuts everything anew; `add` and `update`
cut what they are given.
"""

import functools
import hashlib
import json
import warnings
from itertools import compress

import numpy as np

import bm25
import chunking
import encoder
import filters
import ranking
import saving
from cosine import ROWS_AT_ONCE, check_lengths, cosine_top_k
from postings import Postings
from token_store import BUDGET, TokenStore

PROBE = "The cat sat on the mat: 42."   # who gives this text the same vector is taken for the same model


class Index:
    """Chunks that can be searched, changed and saved. `Index.build` makes one, `Index.load` reads a saved one.

        chunks      [n] dicts                     vectors   float32 [n, dim]
        postings    of their searched texts       given     bool [n]: whose vector came with the chunk
        filters     of their metadata             documents {doc_id: checksum, or None if only its chunks came}
        token_store of their searched texts: a vector for each word, for reranking (token_store.py)

    >>> from toy import DOCUMENTS, Topics
    >>> chunks = [{"id": f"d{i}#0", "doc_id": f"d{i}", "position": 0, "text": text} for i, text in enumerate(DOCUMENTS)]
    >>> chunks[1]["acl"] = ["vets"]
    >>> index = Index.build(chunks, Topics())
    >>> index.lexical("the cat dog", 10, index.mask(), index.visible())[0].tolist()
    [3, 0]
    >>> index.lexical("the cat dog", 10, index.mask("vets"), index.visible("vets"))[0].tolist()
    [1, 3, 0]
    """

    def __init__(self, embedder, chunker=None, title_boost=1, token_budget=BUDGET):
        self.embedder, self.chunker = embedder, chunker
        self.title_boost = ranking.check_k(title_boost, name="title_boost")
        self.token_store = TokenStore(embedder, token_budget)
        self.chunks, self.documents = [], {}
        self.vectors, self.given = np.zeros((0, embedder.dimensions), np.float32), np.zeros(0, bool)
        self.postings, self.filters = Postings(), filters.Filters([])

    @classmethod
    def build(cls, chunks, embedder, chunker=None, title_boost=1, token_budget=BUDGET):
        """An Index of `chunks`.

        chunker       a function document -> chunks, for what is added later: functools.partial(chunking.structured,
                      size=200, length="tokens", embedder=embedder)
        token_budget  how many bytes of token vectors may be kept

        A chunk's own "vector" is used if it has one (late chunking); its "context" is searched in front of its text.
        Warns of texts that are longer than what the embedder reads. Raises ValueError or TypeError, naming the chunk,
        for ids that come twice, vectors that hold NaN or do not fit, and metadata that cannot be understood.
        """
        index = cls(embedder, chunker, title_boost, token_budget)
        index._change(set(), chunks, {})
        return index

    # -- Changing it. If something raises, nothing has changed

    def add(self, documents):
        """Cut new documents into chunks and add them. Raises ValueError if one is here already."""
        documents, checksums = self._listed(documents)
        if known := checksums.keys() & self.documents.keys():
            raise ValueError(f"the index already has {_some(known)}: use update")
        self._put(documents, checksums)

    def update(self, documents):
        """Put documents in the place of those with the same ids. Raises ValueError if one is not here.

        Only texts that no chunk has yet are embedded.
        """
        documents, checksums = self._listed(documents)
        self._check_known(checksums.keys())
        self._put(documents, checksums)

    def remove(self, doc_ids):
        """Forget documents. Raises ValueError if one is not here."""
        if isinstance(doc_ids, str):
            raise TypeError(f"doc_ids must be a list of ids, such as [{doc_ids!r}]")
        doc_ids = set(doc_ids)
        self._check_known(doc_ids)
        self._change(doc_ids, [], {})

    def sync(self, documents):
        """Make the index hold `documents` and no others: (added, updated, removed), the ids of each, sorted.

        What has not changed since it was added, by its checksum, is not even cut again.
        """
        documents, checksums = self._listed(documents)
        changed = {doc_id: each for doc_id, each in checksums.items() if self.documents.get(doc_id) != each}
        removed, added = self.documents.keys() - checksums.keys(), changed.keys() - self.documents.keys()
        if changed or removed:
            self._put([document for document in documents if document["id"] in changed], changed, removed)
        return sorted(added), sorted(changed.keys() - added), sorted(removed)

    # -- Searching it

    def visible(self, user=None):
        """Which chunks a user, the names of some groups, may see: bool [n]. None is anonymous."""
        return self.filters.visible(user)

    def mask(self, user=None, where=None):
        """Which chunks may be found: bool [n]. `where` is a dict of conditions: see filters.py, also for its errors."""
        return self.filters.matching(where, self.visible(user))

    def dense(self, question, k, allowed):
        """The k `allowed` chunks nearest to a question, its text or its vector [dim]: (positions, cosines)."""
        if isinstance(question, str):
            [question] = self.embedder.encode([question], kind="query")            # [1, dim] -> [dim]
        return cosine_top_k(question, self.vectors, k, self._mask(allowed, "allowed"))

    def lexical(self, question, k, allowed, visible):
        """The k best `allowed` chunks that share a word with the question: (positions, BM25 scores).

        How rare a word is and how long chunks are is judged by what is `visible`, whatever is allowed.
        """
        return self.postings.top_k(bm25.tokenize(question), k, self._mask(allowed, "allowed"),
                                   self._mask(visible, "visible"))

    def _mask(self, mask, name):
        """The mask, checked; None, which is quicker, if it leaves nothing out. None itself is refused."""
        mask = ranking.check_mask(mask, len(self.chunks), name)
        return None if mask.all() else mask

    # -- Keeping it

    def save(self, folder):
        """Save to a folder. If the process dies meanwhile, the folder holds the old state or the new (saving.py)."""
        texts = map(chunking.searched_text, self.chunks)
        saving.write(folder, {"vectors": self.vectors, "given": self.given, **self.postings.arrays(),
                              **self.token_store.arrays(texts)},
                     {"model": _described(self.embedder), "documents": self.documents, "title_boost": self.title_boost,
                      "terms": list(self.postings.vocabulary), "chunks": self.chunks})

    @classmethod
    def load(cls, folder, embedder, chunker=None, thorough=False, token_budget=BUDGET):
        """The Index that was saved last. Its arrays stay on disk until they are used; `thorough` reads and checks all.

        Raises FileNotFoundError if there is none, ValueError if it is damaged, of another format or of another model,
        each saying what to do.
        """
        arrays, data = saving.read(folder, thorough)
        _check_saved(arrays, data, folder)
        _check_model(data["model"], embedder, folder)
        index = cls(embedder, chunker, data["title_boost"], token_budget)
        index.chunks, index.documents = data["chunks"], data["documents"]
        index.vectors, index.given = arrays.pop("vectors"), arrays.pop("given")
        index.token_store.take(map(chunking.searched_text, index.chunks), arrays.pop("token_vectors"),
                               arrays.pop("token_starts"))
        index.postings, index.filters = Postings(data["terms"], **arrays), filters.Filters(index.chunks)
        return index

    # -- How it changes

    def _put(self, documents, checksums, removed=()):
        if documents and self.chunker is None:
            raise ValueError("the index cannot cut documents: give Index.build or Index.load a chunker, such as "
                             "functools.partial(chunking.structured, size=200)")
        chunks = [chunk for document in documents for chunk in _cut(document, self.chunker)]
        self._change({*checksums, *removed}, chunks, checksums)

    def _change(self, leaving, new, checksums):
        """Take out the chunks of the documents `leaving`, and put in the `new` ones."""
        new = list(map(_checked, new))
        stays = np.array([chunk["doc_id"] not in leaving for chunk in self.chunks], bool)
        chunks = [*compress(self.chunks, stays), *new]
        order = _order(chunks)
        old_places, places = np.full(len(stays), -1), np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        old_places[stays], new_places = np.split(places, [len(order) - len(new)])
        vectors, given = np.empty((len(order), self.vectors.shape[1]), np.float32), np.empty(len(order), bool)
        vectors[new_places], given[new_places] = self._vectors(new)
        vectors[old_places[stays]], given[old_places[stays]] = self.vectors[stays], self.given[stays]
        postings = self.postings.changed(old_places, new_places, map(self._tokens, new))
        self.token_store.forget(set(map(chunking.searched_text, compress(self.chunks, ~stays)))
                                - set(map(chunking.searched_text, chunks)))
        for chunk in new:
            chunk.pop("vector", None)
        self.chunks, self.filters = (chunks := [chunks[number] for number in order]), filters.Filters(chunks)
        self.vectors, self.given, self.postings = vectors, given, postings
        kept = {doc_id: each for doc_id, each in self.documents.items() if doc_id not in leaving}
        self.documents = {**kept, **dict.fromkeys(chunk["doc_id"] for chunk in new), **checksums}

    def _tokens(self, chunk):
        """The words that keywords are looked up in: of the searched text, and of the title `title_boost` times more."""
        return bm25.tokenize(chunking.searched_text(chunk)) + self.title_boost * bm25.tokenize(chunk.get("title") or "")

    def _vectors(self, new):
        """(vectors [n_new, dim], given [n_new]) of chunks: their own, a known one of the same text, or embedded."""
        rows, numbers_of = np.zeros((len(new), self.vectors.shape[1]), np.float32), {}
        known = {chunking.searched_text(chunk): row for row, chunk in enumerate(self.chunks if new else [])
                 if not self.given[row]}
        for number, chunk in enumerate(new):
            text = chunking.searched_text(chunk)
            if "vector" in chunk:
                rows[number] = _own_vector(chunk, rows.shape[1])
            elif text in known:
                rows[number] = self.vectors[known[text]]
            else:
                numbers_of.setdefault(text, []).append(number)
        if numbers_of:
            _warn_of_unseen([new[numbers[0]] for numbers in numbers_of.values()], self.embedder)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", encoder.TruncationWarning)               # said above, with the shares
                vectors = self.embedder.encode(list(numbers_of), batch_size=1)
            for numbers, row in zip(numbers_of.values(), vectors):
                rows[numbers] = row
        for start in range(0, len(new), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            check_lengths(rows[some].astype(np.float64), "the vectors", [chunk["id"] for chunk in new[some]])
        return rows, np.array(["vector" in chunk for chunk in new], bool)

    def _listed(self, documents):
        """(documents, {id: checksum}): the checksum of all that a document says, its metadata too, and of the chunker.

        So another chunker makes every document a changed one.
        """
        documents, chunker = list(documents), _named(self.chunker)
        checksums = {each["id"]: hashlib.sha256(json.dumps([each, chunker], sort_keys=True, default=str).encode())
                     .hexdigest() for each in documents}
        if len(checksums) < len(documents):
            raise ValueError("two documents have the same id")
        return documents, checksums

    def _check_known(self, doc_ids):
        if unknown := doc_ids - self.documents.keys():
            raise ValueError(f"the index has no document {_some(unknown)}")


def _place(chunk):
    return chunk["doc_id"], chunk["position"]


def _order(chunks):
    """Numbers of the chunks by document and position. Raises ValueError if two have one id or one place."""
    order = sorted(range(len(chunks)), key=lambda number: _place(chunks[number]))
    for key in (lambda chunk: chunk["id"], _place):
        seen = set()
        for chunk in chunks:
            if key(chunk) in seen:
                raise ValueError(f"the chunk {chunk['id']!r} comes twice, or another one has its place in the document")
            seen.add(key(chunk))
    return order


def _checked(chunk):
    """A copy of a chunk. Raises TypeError or ValueError if it lacks what an index needs."""
    for key, kind in (("id", str), ("doc_id", str), ("position", int), ("text", str)):
        if not isinstance(chunk.get(key), kind):
            raise TypeError(f"a chunk needs id, doc_id, position and text; {key} is {chunk.get(key)!r} in "
                            f"{chunk.get('id')!r}: a document is cut first (chunking.py)")
    for key, kind in (("body", str), ("title", str), ("start", int), ("end", int), ("section_path", (list, tuple))):
        if key in chunk and not isinstance(chunk[key], kind):
            raise TypeError(f"{key} of chunk {chunk['id']!r} is {chunk[key]!r}: leave it out, or give what it is")
    filters.check(chunk)
    return dict(chunk)


def _own_vector(chunk, dim):
    vector = np.asarray(chunk["vector"])
    if vector.shape != (dim,):
        raise ValueError(f"the vector of chunk {chunk['id']!r} has the shape {vector.shape}, but the embedder makes "
                         f"{dim} numbers: were both made by the same model?")
    return vector


def _warn_of_unseen(chunks, embedder):
    shares = chunking.unseen_shares(chunks, embedder)
    if shares.any():
        warnings.warn(f"{np.count_nonzero(shares)} of {len(chunks)} chunks are longer than the {embedder.max_tokens} "
                      f"word pieces that {embedder.name} reads: up to {shares.max():.0%} of a chunk (on average of all "
                      f"{shares.mean():.1%}) is missing from its vector; cut smaller chunks", stacklevel=5)


def _cut(document, chunker):
    chunks = chunker(document)
    if wrong := [chunk["doc_id"] for chunk in chunks if chunk["doc_id"] != document["id"]]:
        raise ValueError(f"the chunker makes chunks of {wrong[0]!r} from the document {document['id']!r}")
    return chunks


def _named(setting):
    """What a chunker, or one of its settings, is called: the same in every process.

    >>> _named(functools.partial(chunking.structured, size=200))
    'chunking.structured(size=200)'
    """
    if isinstance(setting, functools.partial):
        named = [f"{name}={_named(each)}" for name, each in sorted(setting.keywords.items())]
        return f"{_named(setting.func)}({', '.join([*map(_named, setting.args), *named])})"
    if hasattr(setting, "__qualname__"):
        return f"{setting.__module__}.{setting.__qualname__}"
    return str(setting.name) if hasattr(setting, "name") else repr(setting)


def _some(ids):
    return ", ".join(map(repr, sorted(ids)[:5])) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _described(embedder):
    """What tells a model from another: above all, what it makes of a text."""
    [probe] = embedder.encode([PROBE], batch_size=1)
    return {"name": str(embedder.name), "dimensions": embedder.dimensions, "max_tokens": embedder.max_tokens,
            "probe": [float(number) for number in probe]}


def _check_saved(arrays, data, folder):
    """Raise ValueError if something is missing or of another shape than the rest."""
    try:
        n, n_terms, n_postings = len(data["chunks"]), len(data["terms"]), len(arrays["documents"])
        shapes = {"vectors": (n, data["model"]["dimensions"]), "given": (n,), "token_starts": (n + 1,), "lengths": (n,),
                  "starts": (n_terms + 1,), "counts": (n_postings,), "weights": (n_postings,)}
        good = all(arrays[name].shape == shape for name, shape in shapes.items()) and data["title_boost"] >= 0 and (
            arrays["token_vectors"].ndim == 2 and arrays["token_starts"].dtype.kind == "i"
            and arrays["token_starts"][-1] == len(arrays["token_vectors"]) and arrays["starts"][-1] == n_postings)
    except (KeyError, TypeError):
        good = False
    if not good:
        raise ValueError(f"what is saved in {folder} is incomplete, or its parts do not fit: {saving.AGAIN}")


def _check_model(saved, embedder, folder):
    now = _described(embedder)
    # subtle: neither the name, which may be a folder's, nor the last digits, which differ between machines
    if any(saved[key] != now[key] for key in ("dimensions", "max_tokens")) or not np.allclose(
            saved["probe"], now["probe"], rtol=0, atol=1e-4):
        models = [f"{each['name']} ({each['dimensions']} numbers, {each['max_tokens']} word pieces)"
                  for each in (saved, now)]
        raise ValueError(f"the index in {folder} was made with the model {models[0]}, whose vectors are not those of "
                         f"{models[1]}: load it with that model, or embed all again: Index.build(chunks, embedder)")


if __name__ == "__main__":
    import tempfile

    from toy import DOCUMENTS, QUESTION, Topics

    docs = [{"id": f"pets-{number}", "title": "", "text": text} for number, text in enumerate(DOCUMENTS)]
    docs[1]["acl"] = ["vets"]
    index = Index.build([], Topics(), functools.partial(chunking.structured, size=20))

    def show(user, where=None):
        """What both retrievers find."""
        visible, allowed = index.visible(user), index.mask(user, where)
        for name, found in (("dense", index.dense(QUESTION, 3, allowed)),
                            ("lexical", index.lexical(QUESTION, 3, allowed, visible))):
            hits = "  ".join(f"{index.chunks[position]['id']} {score:.4f}" for position, score in zip(*found))
            print(f"    {user or 'anonymous':9} {name:8} {hits}")

    print("added, updated, removed:", index.sync(docs))
    print(f"{QUESTION!r}; only vets may see pets-1, {DOCUMENTS[1]!r}:")
    show("vets")
    show(None)
    docs[1]["text"] = "the dog sleeps"
    print("added, updated, removed:", index.sync(docs[:3]))
    show("vets")
    show(None)
    with tempfile.TemporaryDirectory() as folder:
        index.save(folder)
        index = Index.load(folder, Topics())
    print("saved and loaded:")
    show("vets", {"doc_id": ["pets-0", "pets-1"]})
