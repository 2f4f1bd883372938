"""Beside step 12 — How does a keyword index change without reading everything again? Postings that are merged.

BM25 keeps a posting for each (term, document) pair, sorted by term, then document. Reading texts into tokens is the
slow part, 20 of 21 seconds for 100,000 chunks, and it need not be done again for what stays: only its place changes.

    places       where each document stands from now on, -1 if it leaves     toy: [0, -1, 2, 3], the second leaves
    new_places   where the new ones stand                                    toy: [1], in its place
    key          term * n + document: one number for each posting, in the order in which they are sorted
    vocabulary   term -> its number; alphabetical, so that a term's place among others depends on no other text

All statistics (how many documents contain a term, how long they are) follow from the postings, and are computed anew:
what has changed equals what is built at once, in every bit.

Not here: how a document is scored (bm25.py).
"""

import numpy as np

import bm25


class Postings(bm25.BM25):
    """A BM25 with the default parameters, put together from its arrays, which bm25.BM25 describes.

    >>> from toy import DOCUMENTS
    >>> toy = [bm25.tokenize(text) for text in DOCUMENTS]
    >>> index = Postings().changed([], [0, 1, 2, 3], toy)
    >>> index.top_k(["the", "cat", "dog"], k=10)[0].tolist()
    [1, 3, 0]
    >>> index.changed([0, -1, 2, 3], [1], [["a", "dog"]]).top_k(["the", "cat", "dog"], k=10)[0].tolist()
    [0, 3, 1]
    """

    def __init__(self, terms=(), documents=(), counts=(), starts=(0,), lengths=(), weights=None):
        super().__init__([])
        self.vocabulary = {term: number for number, term in enumerate(terms)}
        self.documents, self.counts = np.asarray(documents, np.int32), np.asarray(counts, np.int32)
        self.starts, self.lengths = np.asarray(starts, np.int64), np.asarray(lengths, np.int64)
        self.weights = self._weigh_all() if weights is None else np.asarray(weights, np.float64)

    def arrays(self):
        """What must be kept besides the terms: {name: array}, to be given back to Postings."""
        return {name: getattr(self, name) for name in ("documents", "counts", "starts", "lengths", "weights")}

    def changed(self, places, new_places, token_lists):
        """The Postings after document i has moved to places[i] and `token_lists` came to `new_places`.

        Of `places` that are not -1, each is greater than the one before; new ones may come in any order.
        """
        places, new_places = np.asarray(places, np.int64), np.asarray(new_places, np.int64)
        vocabulary, new_lengths, *new = bm25.count_postings(token_lists)
        stays = places >= 0
        n = int(stays.sum()) + len(new_places)
        lengths = np.empty(n, np.int64)
        lengths[places[stays]], lengths[new_places] = self.lengths[stays], new_lengths
        left = self._kept(places)
        terms = sorted({term for term, number in self.vocabulary.items() if left[number]} | vocabulary.keys())
        numbers = {term: number for number, term in enumerate(terms)}
        keys, counts = _moved(self.vocabulary, self.documents, self.counts, self.starts, numbers, places, n)
        new_keys, new_counts = _moved(vocabulary, *new, numbers, new_places, n)
        order = np.argsort(new_keys)                                   # new terms were numbered as they came
        new_keys, new_counts = new_keys[order], new_counts[order]
        where = np.searchsorted(keys, new_keys)
        keys, counts = _inserted(keys, where, new_keys), _inserted(counts, where, new_counts)
        starts = np.searchsorted(keys, np.arange(len(terms) + 1) * n)
        return Postings(terms, keys % max(n, 1), counts, starts, lengths)

    def _kept(self, places):
        """How many postings of each term stay: [n_terms]."""
        stays = np.concatenate([[0], np.cumsum(places[self.documents] >= 0)])          # [n_postings + 1]
        return np.diff(stays[self.starts])


def _moved(vocabulary, documents, counts, starts, numbers, places, n):
    """(keys, counts) of the postings that stay, by the new numbers of terms and the new places of documents."""
    number_of = np.array([numbers.get(term, -1) for term in vocabulary], np.int64)                # old number -> new
    documents = places[documents]                                      # [n_postings]
    keys = np.repeat(number_of, np.diff(starts)) * n + documents
    stays = documents >= 0
    return keys[stays], counts[stays]


def _inserted(old, where, new):
    """numpy.insert for places that rise, in a third of the time."""
    merged, is_old = np.empty(len(old) + len(new), old.dtype), np.ones(len(old) + len(new), bool)
    at = where + np.arange(len(new))                                   # a new one moves those after it by one
    is_old[at] = False
    merged[at], merged[is_old] = new, old
    return merged


if __name__ == "__main__":
    from toy import DOCUMENTS, QUESTION

    def show(index):
        """Each term's postings."""
        for term, number in index.vocabulary.items():
            rows = slice(index.starts[number], index.starts[number + 1])
            print(f"    {term:8}", *(f"document {document} x {count}" for document, count in zip(
                index.documents[rows].tolist(), index.counts[rows].tolist())), sep="  ")
        print(f"    {QUESTION!r} finds", index.top_k(bm25.tokenize(QUESTION), 4)[0].tolist())

    index = Postings().changed([], [0, 1, 2, 3], [bm25.tokenize(text) for text in DOCUMENTS])
    print("the toy corpus:")
    show(index)
    print("document 1 leaves, 'a dog' comes in its place:")
    show(index.changed([0, -1, 2, 3], [1], [["a", "dog"]]))
