"""The toy corpus: four documents, one question, and every number small enough for a pencil.

Legends, demos, doctests and tests all use these names, so a number met in one file can be checked in another.

    DOCUMENTS     four texts of 6, 5, 2 and 3 words: 4 words on average
    QUESTION      three words, found in 3, 2 and 2 of the documents
    VECTORS       one unit vector of 2 numbers for each document (made up, so that products are exact decimals)
    QUERY_VECTOR  the question's unit vector; its cosines with VECTORS are 0.96, 0.8, 0 and 0.6
    GAINS         how much each document helps: document 1 answers (2), document 0 helps (1), the others do not
    BM25_RANKING  what keyword search finds, best first: it puts 3, no help, above 0, which helps
    DENSE_RANKING what vector search finds: it puts 0 above 1, the answer; fused, the two lists are in the best order

    Topics        an embedder with two numbers a text, for a pencil: how much it is about cats, and about stocks
    Embedder      stands in for a model where a real one would be slow: it knows nothing, but counts and cuts like one

Not here: real documents, which come from documents.py.
"""

import re
import zlib

import numpy as np

DOCUMENTS = ("the cat sat on the mat", "the dog chased the cat", "birds fly", "the quick dog")
QUESTION = "the cat dog"
VECTORS = ((0.8, 0.6), (0.0, 1.0), (-0.8, 0.6), (1.0, 0.0))
QUERY_VECTOR = (0.6, 0.8)
GAINS = {0: 1, 1: 2, 2: 0, 3: 0}
BM25_RANKING = [1, 3, 0]
DENSE_RANKING = [0, 1, 3, 2]


class Embedder:
    """Every four letters of a word are a piece, every piece has a random but fixed vector, a text has their mean.

    The same methods as embedding.Embedder; it reads max_tokens pieces, [CLS] and [SEP] included.

    >>> Embedder().token_vectors("a carbonara")[1].tolist()
    [[0, 0], [0, 1], [2, 6], [6, 10], [10, 11], [0, 0]]
    """

    name, dimensions = "toy", 16

    def __init__(self, max_tokens=256):
        self.max_tokens = max_tokens

    def token_vectors(self, text, kind="document"):
        """(vectors [n_tokens, 16], offsets [n_tokens, 2]) of the first max_tokens pieces."""
        found = [match.span() for match in re.finditer(r"\w{1,4}|[^\w\s]", text)][:self.max_tokens - 2]
        pieces = ["[CLS]", *(text[start:end].lower() for start, end in found), "[SEP]"]
        seeds = [zlib.crc32(piece.encode("utf-8", "surrogatepass")) for piece in pieces]
        vectors = np.array([np.random.default_rng(seed).standard_normal(self.dimensions) for seed in seeds], np.float32)
        return vectors, np.array([(0, 0), *found, (0, 0)])

    def count_tokens(self, text, kind="document"):
        """How many pieces `text` has, [CLS] and [SEP] included, without cutting."""
        return len(re.findall(r"\w{1,4}|[^\w\s]", text)) + 2

    def encode(self, texts, kind="document", batch_size=None):
        """One unit vector for each text [n, 16]."""
        means = [self.token_vectors(text)[0].mean(axis=0) for text in texts]
        return np.array([mean / np.linalg.norm(mean) for mean in means], np.float32).reshape(-1, self.dimensions)


class Topics:
    """An embedder whose two numbers are topics: the shares of cat and stock words in a text; other words are both.

    >>> Topics().encode(["A cat sat.", "oil"]).round(2).tolist()       # (2.5, 0.5) and (0, 1), of length 1
    [[0.98, 0.2], [0.0, 1.0]]
    """

    name, max_tokens, dimensions = "topics", 256, 2
    CATS, STOCKS = {"cat", "mat", "pets", "ate", "slept", "sat"}, {"stock", "price", "prices", "oil", "gold", "rose"}

    def token_vectors(self, text, kind="document"):
        """(vectors [n_words + 2, 2], offsets [n_words + 2, 2]): (1, 0) for cats, (0, 1) for stocks, else (.5, .5)."""
        found = [match.span() for match in re.finditer(r"\S+", text)]
        words = [text[start:end].lower().strip(".,|#") for start, end in found]
        vectors = [(1, 0) if word in self.CATS else (0, 1) if word in self.STOCKS else (0.5, 0.5) for word in words]
        return np.array([(0, 0), *vectors, (0, 0)], np.float32), np.array([(0, 0), *found, (0, 0)])

    def count_tokens(self, text, kind="document"):
        """How many words `text` has, and two."""
        return len(text.split()) + 2

    def encode(self, texts, kind="document", batch_size=None):
        """One unit vector for each text [n, 2]."""
        sums = np.array([self.token_vectors(text)[0].sum(axis=0) for text in texts]).reshape(-1, 2)
        return sums.astype(float) / np.linalg.norm(sums, axis=1, keepdims=True)


if __name__ == "__main__":
    print(f"question: {QUESTION!r}, vector {QUERY_VECTOR}")
    for number, (text, vector) in enumerate(zip(DOCUMENTS, VECTORS)):
        print(f"document {number}: {text!r}, {len(text.split())} words, vector {vector}, helps {GAINS[number]}")
