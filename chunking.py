"""Step 9 of 22 — What is the unit of retrieval? Six ways to cut a document. Before: sentences.py. Next: embedding.py.

A chunk is what is embedded, found, sent and quoted. Cut too small, it has lost what it is about; cut too big, it is
about everything, and the model never reads its end. All six strategies have one signature,

    f(document, size, overlap=0, length="words", embedder=None) -> list of Chunks

    size       the most a chunk may hold, in units of `length`
    overlap    the most that a chunk repeats of the one before it, in the same unit
    length     "words" (str.split) or "characters", both counted in the chunk's body;
               "tokens": the embedder's word pieces, counted in the chunk's text with everything around it
    span       a stretch of the document: text[start:end]
    body       the text of the span, unchanged, without blank lines and spaces around it
    breadcrumb "Title > Section > Sub-section": where the span stands
    text       breadcrumb + blank line + (header of a table or function, repeated) + body
    atom       what should not be cut: a sentence, a table's row, a list's item, a fence, a function
    room       what is left of `size` for the body once breadcrumb and specials are counted (tokens), or `size`

    strategy      cuts at                                      which promise yields first
    fixed         every `size` units                           size always holds; everything else is cut
    recursive     the coarsest separator within reach          size always holds; sentences and words are cut if need be
    semantic      sentences, where the meaning turns           size holds; a sentence longer than size is cut
    structured    the author's boundaries                      size yields to an atom, and an atom to the limit
    parent_child  children: structured; parents: neighbours    as structured; a parent has at most 4 x size
    late          structured                                   as structured

The limit for atoms is what the embedder reads (max_tokens, everything around included); without an embedder, 2 x size.
An atom beyond it is cut at the best boundary inside, and its pieces are marked: chunk["split"].

For every strategy: starts and ends increase, no chunk is blank or lies inside its neighbour, every character that is
no white space lies in a chunk, and work grows in proportion to the text.

Not here: chunks that a language model cuts or describes; grapheme clusters ("e" and a combining accent may part where
characters are counted).
"""

from bisect import bisect_left, bisect_right

import numpy as np

import documents
import sentences
from cutting import METADATA, Cut, Piece, Ruler, Span, pack, recursive_spans, within

PARENT = 4                              # a parent holds so many times the size of its children


# -- 1. fixed ----------------------------------------------------------------------------------------------------------


def fixed(document, size, overlap=0, length="words", embedder=None):
    """Windows of `size` units, each starting size - overlap units after the one before; the last may be shorter.

    Size always holds. Words stay whole unless characters are counted, or a word alone is too long.

    >>> document = {"id": "d", "title": "", "text": "abcdefghijk"}
    >>> [chunk["body"] for chunk in fixed(document, size=4, overlap=1, length="characters")]
    ['abcd', 'defg', 'ghij', 'jk']
    """
    cut = Cut(document, size, overlap, length, embedder)
    room, spans, start = cut.room(), [], 0
    while not spans or spans[-1].end < len(cut.text):
        end = cut.ruler.reach(start, room)
        spans.append(Span(start, end))
        start = max(cut.ruler.back(end, min(overlap, room - 1)), cut.ruler.reach(start, 1))
    return cut.chunks(spans)


# -- 2. recursive ------------------------------------------------------------------------------------------------------


def recursive(document, size, overlap=0, length="words", embedder=None):
    """Take as much as fits, and cut it at the last of the coarsest separators in it: paragraph, line, sentence, word.

    This is what splitting by the first separator, splitting what is too long by the next one, and merging neighbours
    comes to, in one pass. Size always holds. The overlap begins behind the coarsest separator in reach, so it may be
    shorter than asked for.

    >>> document = {"id": "d", "title": "", "text": "Ab cd.\\n\\nEf gh ij kl."}
    >>> [chunk["body"] for chunk in recursive(document, size=10, length="characters")]
    ['Ab cd.', 'Ef gh ij', 'kl.']
    """
    cut = Cut(document, size, overlap, length, embedder)
    room = cut.room()
    return cut.chunks(recursive_spans(cut, 0, len(cut.text), room, min(overlap, room - 1)))


# -- 3. semantic -------------------------------------------------------------------------------------------------------


def semantic(document, size, overlap=0, length="words", embedder=None, percentile=95, neighbours=1):
    """Sentences, cut where the meaning turns: where the distance of neighbours exceeds the document's `percentile`.

    formula: distance = 1 - vectors[0] @ vectors[1]

    Each sentence is embedded with `neighbours` sentences on either side, or short ones would decide by chance. A chunk
    has at least a quarter of `size` before a turn may end it, and ends at the last sentence that fits whatever its
    meaning. One sentence, or sentences that are all equally far apart, give no turn. Trap: a percentile finds turns in
    a text that has one topic only, and the more of them the longer it is. Size holds; a sentence longer than that is
    cut and marked. Overlap is made of whole sentences.

    Kamradt, "5 Levels of Text Splitting" (2023), level 4; cap and floor are ours.
    """
    if embedder is None:
        raise ValueError("semantic cuts by meaning: pass embedder=load_embedder()")
    cut = Cut(document, size, overlap, length, embedder)
    stretches, room = sentences.split(cut.text), cut.room()
    turns = _turns(cut.text, stretches, embedder, percentile, neighbours)
    pieces = []
    for number, (start, end) in enumerate(stretches):
        for each in within(cut, [(start, end)], room):
            pieces.append(Piece(*each[:2], room, split=each.split, turn=number in turns and each.start == start))
    return cut.chunks(pack(cut, pieces, floor=room // 4))


def _turns(text, stretches, embedder, percentile, neighbours):
    """Numbers of the sentences that begin something else than the sentence before them."""
    if len(stretches) < 2:
        return set()
    last = len(stretches) - 1
    windows = [text[stretches[max(0, number - neighbours)][0]:stretches[min(last, number + neighbours)][1]]
               for number in range(len(stretches))]
    vectors = embedder.encode(windows)                                 # [n_sentences, dim], unit rows
    distances = 1 - (vectors[:-1] * vectors[1:]).sum(axis=1, dtype=np.float64)             # [n_sentences - 1]
    # subtle: above it by more than a rounding error, or equal distances would be cut by chance
    far = distances > np.percentile(distances, percentile) + 1e-6
    return set((np.flatnonzero(far) + 1).tolist())


# -- 4. structured -----------------------------------------------------------------------------------------------------


def structured(document, size, overlap=0, length="words", embedder=None):
    """The author's boundaries first, size second: the strategy of the pipeline, with 200 word pieces and no overlap.

    A chunk never leaves its section, and its breadcrumb names it. Small neighbours under one heading share a chunk.
    A block longer than `size` is cut between atoms: a paragraph between sentences, a list between its items, a table
    between its rows, whose header every piece repeats; a fence and a function's body are atoms themselves, and the
    later pieces of a body repeat the function's head. A heading goes with what follows it; only one that takes half of
    the room, or ends the document, may stand alone. Overlap is made of whole atoms.

    Why 200 and not more: all-MiniLM-L6-v2 reads 256 word pieces and is silent about the rest.
    """
    cut, spans = Cut(document, size, overlap, length, embedder), []
    for section, leads in _sections(cut.text, documents.blocks(document)):
        spans += pack(cut, _pieces(cut, section, leads))
    return cut.chunks(spans)


def _sections(text, blocks):
    """[(blocks under one heading, for each whether it leads)]: a leading block must not be torn from the next one."""
    leads = [False] * len(blocks)
    for number in range(len(blocks) - 2, -1, -1):
        leads[number] = _leads(text, blocks[number], blocks[number + 1], leads[number + 1])
    last = max((number for number, block in enumerate(blocks) if block.kind != "heading"), default=-1)
    sections, path = [], ()
    for number, (block, lead) in enumerate(zip(blocks, leads)):
        own = block.section_path[:-1] if block.kind == "field" and block.level else block.section_path
        begins = block.level > 0 and block.kind != "field" or _is_label(block) and lead or own[:len(path)] != path
        if not sections or begins and not leads[number - 1] and number <= last:  # headings at the very end stay
            sections.append(([], []))
        if begins:
            path = own
        sections[-1][0].append(block)
        sections[-1][1].append(lead)
    return sections


def _leads(text, block, following, following_leads):
    """Whether a block is about the next one: a heading; a field or a function's head, if the next block is its content;
    a paragraph that ends with a colon before a list, table or code; a label or front matter before a heading."""
    if block.kind == "heading":
        return True
    if block.level:
        return following.section_path[:len(block.section_path)] == block.section_path
    if block.kind == "paragraph":
        return text[block.end - 1] == ":" and following.kind in ("list", "table", "code")
    return _is_label(block) and (following.kind == "heading" or _is_label(following) and following_leads)


def _is_label(block):
    return block.kind == "field" and block.level == 0


def _pieces(cut, section, leads):
    """The blocks of a section as Pieces: whole where they fit, else as atoms; what leads is part of the next one."""
    pieces, start = [], None
    for block, lead in zip(section, leads):
        start, room = block.start if start is None else start, cut.room(block.section_path)
        if lead and cut.ruler.measure(start, block.end) <= room // 2:
            continue
        if (block.kind == "heading" and not lead and pieces            # a heading without anything, at the very end
                and cut.fits_limit(pieces[-1].start, block.end, pieces[-1].path, pieces[-1].header)):
            pieces[-1] = pieces[-1]._replace(end=block.end)
        else:
            pieces += _atoms(cut, block, start, room)
        start = None
    return pieces


def _atoms(cut, block, start, room):
    """A block, with what leads it from `start` on, as Pieces of which none should be cut."""
    path, is_atom = block.section_path, block.kind in ("code", "heading")
    pieces, parts = [], [(start, block.end)]
    if cut.ruler.measure(start, block.end) > room and not (is_atom and cut.fits_limit(start, block.end, path)):
        parts = _parts(cut.text, block, start)
    for first, last in parts:
        header = cut.header(block, first)
        room = cut.room(path, header)
        if cut.ruler.measure(first, last) <= room or cut.fits_limit(first, last, path, header):
            pieces.append(Piece(first, last, room, path, header, split=is_atom and len(parts) > 1))
        else:
            inside = _stretches(cut.text, first, last) if block.kind == "list" else [(first, last)]
            pieces += [Piece(*span[:2], room, path, header, split=True)
                       for span in within(cut, inside, room, covered=block.start)]
    return pieces


def _parts(text, block, start):
    """[(start, end)] of a block's rows, items or statements, or else of its sentences."""
    if block.kind in ("paragraph", "quote", "field"):
        stretches = _stretches(text, block.start, block.end)
        return [(start, stretches[0][1]), *stretches[1:]]
    return list(zip([start, *block.cuts], [*block.cuts, block.end]))


def _stretches(text, start, end):
    return [(start + first, start + last) for first, last in sentences.split(text[start:end])]


# -- 5. parent_child ---------------------------------------------------------------------------------------------------


def parent_child(document, size, overlap=0, length="words", embedder=None):
    """Small chunks to match, large ones to read: structured chunks, each with the parent it lies in.

    A parent is as many neighbouring children as fit into 4 x size. The list holds the children only; each carries
    parent_id, parent_start, parent_end and parent_body. `parents` turns the children that were found into parents.
    """
    children = structured(document, size, overlap, length, embedder)
    ruler, families = Ruler(document["text"], length, embedder, heaviest=size), []
    for child in children:
        if not families or ruler.measure(families[-1][0]["start"], child["end"]) > PARENT * size:
            families.append([])
        families[-1].append(child)
    for number, family in enumerate(families):
        start, end = family[0]["start"], family[-1]["end"]
        for child in family:
            child |= {"parent_id": f"{document['id']}#p{number}", "parent_start": start, "parent_end": end,
                      "parent_body": document["text"][start:end]}
    return children


def parents(children):
    """The distinct parents of children, in the order of their best (first) child, as chunks to read.

    >>> child = {"id": "d#3", "doc_id": "d", "title": "Pets", "parent_id": "d#p1", "parent_start": 10,
    ...          "parent_end": 24, "parent_body": "cats and dogs."}
    >>> [(parent["id"], parent["text"]) for parent in parents([child, child])]
    [('d#p1', 'Pets\\n\\ncats and dogs.')]
    """
    found = {}
    for child in children:
        if child["parent_id"] not in found:
            title, body = child["title"], child["parent_body"]
            found[child["parent_id"]] = documents.Chunk(
                id=child["parent_id"], doc_id=child["doc_id"], title=title, body=body,
                text=f"{title}\n\n{body}" if title else body, start=child["parent_start"], end=child["parent_end"],
                **{key: child[key] for key in (*METADATA, "page") if key in child})
    return list(found.values())


def merge_spans(spans, gap=4):
    """Spans (doc_id, start, end) that overlap, or lie at most `gap` characters apart, as one; in the documents' order.

    The gap is what may stand between two neighbours: a blank line.

    >>> merge_spans([("b", 5, 9), ("a", 20, 30), ("a", 0, 10), ("a", 8, 18)])
    [('a', 0, 30), ('b', 5, 9)]
    """
    merged = []
    for doc_id, start, end in sorted(spans):
        if merged and merged[-1][0] == doc_id and start <= merged[-1][2] + gap:
            merged[-1] = doc_id, merged[-1][1], max(merged[-1][2], end)
        else:
            merged.append((doc_id, start, end))
    return merged


# -- 6. late -----------------------------------------------------------------------------------------------------------


def late(document, size, overlap=0, length="words", embedder=None, spans=structured):
    """Embed first, cut afterwards: chunks of another strategy whose "vector" is the mean of their word pieces' vectors,
    which the model made with the whole document in view.

    The beginning [CLS] counts with the first chunk and the end [SEP] with the last, so that a document of one chunk
    gets the vector that ordinary mean pooling gives it. A document longer than the model reads goes in windows that
    share a quarter; what two windows share is taken from the earlier one. Nothing is in front of the document: the
    breadcrumb is in the chunk's text, not in its vector.

    Günther et al., "Late Chunking" (2024). It needs a model that pools by the mean.
    """
    if embedder is None:
        raise ValueError("late pools an embedder's token vectors: pass embedder=load_embedder()")
    chunks = spans(document, size, overlap, length, embedder)
    if not chunks:
        return []
    vectors, offsets = _document_vectors(document["text"], embedder)
    for chunk in chunks:
        first = 0 if chunk is chunks[0] else bisect_right(offsets[:, 1], chunk["start"])
        last = len(offsets) if chunk is chunks[-1] else bisect_left(offsets[:, 0], chunk["end"])
        mean = vectors[first:last].mean(axis=0, dtype=np.float64) if first < last else np.zeros(vectors.shape[1])
        chunk["vector"] = (mean / (np.linalg.norm(mean) or 1)).astype(np.float32)          # [dim]
    return chunks


def _document_vectors(text, embedder):
    """(vectors [n_tokens, dim], offsets [n_tokens, 2]) of a whole document, [CLS] first and [SEP] last."""
    ruler, room = Ruler(text, "tokens", embedder, heaviest=embedder.max_tokens // 4), None
    room = embedder.max_tokens - embedder.count_tokens("")
    vectors, offsets, start, covered = [], [], 0, 0
    while True:
        end = ruler.reach(start, room)
        some, places = embedder.token_vectors(text[start:end])         # [n, dim], [n, 2]
        places = np.asarray(places) + start
        places[0], places[-1] = start, end                             # the specials have no place of their own
        keep = slice(0 if start == 0 else int((places[1:-1, 0] < covered).sum()) + 1,
                     None if end == len(text) else -1)
        vectors.append(some[keep])
        offsets.append(places[keep])
        if end == len(text):
            return np.concatenate(vectors), np.concatenate(offsets)
        covered, start = end, ruler.back(end, room // 4)


# -- What the model does not see ---------------------------------------------------------------------------------------


def unseen_shares(chunks, embedder):
    """For each chunk, the share of its word pieces that lie beyond what the embedder reads: [n_chunks], 0 to 1.

    Specials aside. What is embedded is the context, if there is one, and the text.
    """
    around = embedder.count_tokens("")
    texts = [f"{chunk['context']}\n\n{chunk['text']}" if chunk.get("context") else chunk["text"] for chunk in chunks]
    pieces = np.array([embedder.count_tokens(text) - around for text in texts])
    return np.maximum(0, pieces - (embedder.max_tokens - around)) / np.maximum(1, pieces)


STRATEGIES = {"fixed": fixed, "recursive": recursive, "semantic": semantic, "structured": structured,
              "parent_child": parent_child, "late": late}


if __name__ == "__main__":
    from toy import Embedder                                           # stands in for a model: it knows no meanings

    EXAMPLE = {"id": "leave", "title": "Leave Policy 2026", "doc_type": "md", "text": """# Leave Policy 2026

## Carry-over

Up to five days may roll over. Use them by the end of March, or they are lost.

## Holidays

| country | days |
|---|---|
| France | 11 |
| Japan | 16 |
"""}
    print("A wall | stands where a chunk ends; ¶ is a line's end. At most 12 words, of which 3 may be repeated.")
    for name, strategy in STRATEGIES.items():
        chunks = strategy(EXAMPLE, 12, 3, "words", Embedder())
        print(f"\n{name}: {len(chunks)} chunks")
        print(" | ".join(chunk["body"].replace("\n", "¶") for chunk in chunks))
    print(f"\nWhat is embedded of structured's last chunk:\n{structured(EXAMPLE, 12)[-1]['text']}")
