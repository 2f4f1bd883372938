"""The toy corpus: four documents, one question, and every number small enough for a pencil.

Legends, demos, doctests and tests all use these names, so a number met in one file can be checked in another.

    DOCUMENTS     four texts of 6, 5, 2 and 3 words: 4 words on average
    QUESTION      three words, found in 3, 2 and 2 of the documents
    VECTORS       one unit vector of 2 numbers for each document (made up, so that products are exact decimals)
    QUERY_VECTOR  the question's unit vector; its cosines with VECTORS are 0.96, 0.8, 0 and 0.6
    GAINS         how much each document helps: document 1 answers (2), document 0 helps (1), the others do not
    BM25_RANKING  what keyword search finds, best first: it puts 3, no help, above 0, which helps
    DENSE_RANKING what vector search finds: it puts 0 above 1, the answer; fused, the two lists are in the best order

Not here: real documents, which come from documents.py.
"""

DOCUMENTS = ("the cat sat on the mat", "the dog chased the cat", "birds fly", "the quick dog")
QUESTION = "the cat dog"
VECTORS = ((0.8, 0.6), (0.0, 1.0), (-0.8, 0.6), (1.0, 0.0))
QUERY_VECTOR = (0.6, 0.8)
GAINS = {0: 1, 1: 2, 2: 0, 3: 0}
BM25_RANKING = [1, 3, 0]
DENSE_RANKING = [0, 1, 3, 2]

if __name__ == "__main__":
    print(f"question: {QUESTION!r}, vector {QUERY_VECTOR}")
    for number, (text, vector) in enumerate(zip(DOCUMENTS, VECTORS)):
        print(f"document {number}: {text!r}, {len(text.split())} words, vector {vector}, helps {GAINS[number]}")
