"""Beside step 12 — What does it cost to keep a vector for each word? Token vectors, float16, within a budget.

A reranker (rerank.py) compares a question with each word of a chunk. To compute those vectors the model must read the
chunk, 25 ms for 140 word pieces; to have kept them takes 0.1 ms and 770 bytes a word piece. A pool of 50 chunks is the
difference between one second and five milliseconds. So they are kept while they fit, and computed when they do not.

    text           a chunk's searched text; equal texts share their vectors
    token vectors  one of length 1 for each word piece, specials left out: float16 [n_words, dim]
                   toy: "cat oil" is ((1, 0), (0, 1))
    budget         bytes; a chunk of 140 word pieces takes 108 kB, so 256 MB hold 2,400 of them

float16 has 11 bits: a cosine moves by less than 0.001. What is computed is rounded as well, so a score does not tell
whether its vectors were kept. Whoever comes first is kept; nothing is thrown out for another text, only when it leaves.

Not here: compression to one or two bits a number (ColBERTv2), searching by token vectors instead of reranking by them.
"""

import numpy as np
from tqdm import tqdm

import embedding

BUDGET = 256_000_000


def word_vectors(vectors, offsets):
    """Token vectors without those of the specials, each scaled to length 1: [n_tokens, dim] -> [n_words, dim].

    >>> word_vectors(np.array([(9.0, 9.0), (2.0, 0.0), (0.0, 0.5)]), np.array([(0, 0), (0, 3), (4, 7)])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    # subtle: every text has a [CLS] and a [SEP]; kept, they would match each other, whatever the texts are about
    return embedding.unit_rows(vectors[offsets[:, 1] > offsets[:, 0]])


class TokenStore:
    """The token vectors of texts; those that came first are kept, up to `budget` bytes.

    >>> from toy import Topics
    >>> store = TokenStore(Topics(), budget=8)                         # 2 words of 2 numbers of 2 bytes
    >>> [vectors.tolist() for vectors in store.vectors(["cat oil", "oil"])]
    [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0]]]
    >>> list(store.kept), store.size
    (['cat oil'], 8)
    """

    def __init__(self, embedder, budget=BUDGET):
        if not budget >= 0:
            raise ValueError(f"the budget for token vectors must be a number of bytes, at least 0, not {budget!r}")
        self.embedder, self.budget, self.kept, self.size = embedder, budget, {}, 0

    def vectors(self, texts):
        """The token vectors of each text: float16 [n_words, dim]."""
        return [self._keep(text, self._computed(text)) if (kept := self.kept.get(text)) is None else kept
                for text in texts]

    def fill(self, texts):
        """Keep the vectors of as many of these texts as fit, so that the first question need not wait for them."""
        for text in tqdm(texts, desc="token vectors", leave=False, disable=None):
            self.vectors([text])
            if text not in self.kept:                                  # full
                break

    def _computed(self, text):
        return word_vectors(*self.embedder.token_vectors(text)).astype(np.float16)

    def _keep(self, text, vectors):
        if self.size + vectors.nbytes <= self.budget:
            self.kept[text], self.size = vectors, self.size + vectors.nbytes
        return vectors

    def forget(self, texts):
        """Throw out texts that have left."""
        for text in texts:
            vectors = self.kept.pop(text, None)
            self.size -= 0 if vectors is None else vectors.nbytes

    # -- To disk and back

    def arrays(self, texts):
        """What is kept of `texts`: all vectors in one array [n_rows, dim], and where each text's begin [n + 1].

        Of equal texts the first has them.
        """
        none, texts = np.zeros((0, 0), np.float16), list(texts)
        first = {text: number for number, text in reversed(list(enumerate(texts)))}
        found = [self.kept.get(text, none) if first[text] == number else none for number, text in enumerate(texts)]
        starts = np.concatenate([[0], np.cumsum([len(vectors) for vectors in found], dtype=np.int64)])
        return {"token_vectors": np.concatenate([each for each in found if len(each)] or [none]),
                "token_starts": starts.astype(np.int64)}

    def take(self, texts, token_vectors, token_starts):
        """Keep again what `arrays` gave, as far as the budget reaches. Nothing is copied."""
        spans = zip(texts, token_starts.tolist(), token_starts[1:].tolist())
        for text, start, end in spans:
            if end > start and text not in self.kept:
                self._keep(text, token_vectors[start:end])


if __name__ == "__main__":
    from toy import Topics

    store = TokenStore(Topics(), budget=12)
    for text in ("the cat", "oil", "gold rose", "oil"):
        [vectors] = store.vectors([text])
        print(f"{text!r}: {vectors.round(2).tolist()}, {vectors.nbytes} bytes; kept: {list(store.kept)}, "
              f"{store.size} of {store.budget} bytes")
