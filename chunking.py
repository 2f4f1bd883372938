"""Step 9 of 22 — What is the unit of retrieval? Six ways to cut a document. Before: sentences.py. Next: encoder.py.

A chunk is what is embedded, found, sent and quoted. Cut too small, it has lost what it is about; cut too big, it is
about everything, and the embedding model never reads its end. All six strategies have one signature,

    f(document, size, overlap=0, length="words", embedder=None) -> list of Chunks

    length      what is counted: "words" (str.split) or "characters" of a chunk's body, or "tokens": the embedder's word
                pieces, in a chunk's text with everything in front of it and the specials around it (cutting.py)
    size        the most a chunk may hold of it
    overlap     the most that a chunk repeats of the one before it
    body        document["text"][start:end], unchanged, without blank lines and spaces around it
    breadcrumb  "Title > Section > Sub-section": where the body stands
    text        breadcrumb + blank line + (header of a table or function, repeated) + body
    atom        what should not be cut: a sentence, a table's row, a list's item, a fence, a function
    limit       how long an atom may be: what the embedder reads (max_tokens); without an embedder, 2 x size

    strategy      cuts at                                      which promise yields first
    fixed         every `size` words                           size always holds; everything else is cut
    recursive     the coarsest separator within reach          size always holds; sentences and words are cut if need be
    semantic      sentences, where the meaning turns           size holds; a sentence longer than size is cut
    structured    the author's boundaries                      size yields to an atom, and an atom to the limit
    parent_child  children: structured; parents: neighbours    as structured; a parent of several has at most 4 x size
    late          as structured                                as structured

An atom beyond the limit is cut at the best boundary inside, and its pieces are marked: chunk["split"].

For every strategy: starts and ends increase, no chunk is blank or lies inside its neighbour, every character that is
no white space lies in a chunk, and work grows in proportion to the text.

Not here: chunks that a language model cuts or describes; grapheme clusters ("e" and a combining accent may part where
characters are counted).
"""

from bisect import bisect_left, bisect_right

import numpy as np

import documents
import sentences
from cutting import METADATA, Cutter, Piece, Ruler, Span, pack, recursive_spans, within

PARENT = 4                              # a parent holds so many times the size of its children


# -- 1. fixed ----------------------------------------------------------------------------------------------------------


def fixed(document, size, overlap=0, length="words", embedder=None):
    """Windows of `size` words, each starting size - overlap words after the one before; the last may be shorter.

    Size always holds. Words stay whole, except where characters are counted, and where a word alone has more word
    pieces than half of the size. rag.chunk is the same for words, written as a definition.

    >>> document = {"id": "d", "title": "", "text": "abcdefghijk"}
    >>> [chunk["body"] for chunk in fixed(document, size=4, overlap=1, length="characters")]
    ['abcd', 'defg', 'ghij', 'jk']
    """
    cutter = Cutter(document, size, overlap, length, embedder)
    ruler, room, spans, start = cutter.ruler, cutter.room(), [], 0
    while not spans or spans[-1].end < len(cutter.text):
        end = ruler.reach(start, room)
        spans.append(Span(start, end))
        # at least one word on, or an overlap that is longer than a window of heavy words would never end
        start = max(ruler.back(end, min(overlap, room - 1)), ruler.reach(start, 1))
    return cutter.chunks(spans)


# -- 2. recursive ------------------------------------------------------------------------------------------------------


def recursive(document, size, overlap=0, length="words", embedder=None):
    """Take as much as fits, and cut it at the last of the coarsest separators in it: paragraph, line, sentence, word.

    Known from LangChain as RecursiveCharacterTextSplitter, which splits at the coarsest separator, splits what is too
    long at the next one, and merges what is short. This is one pass instead, with one difference: the rest of a long
    paragraph may share a chunk with the next paragraph. Size always holds. The overlap begins behind the coarsest
    separator in reach, so it may be shorter than asked for.

    >>> document = {"id": "d", "title": "", "text": "Ab cd.\\n\\nEf gh ij kl."}
    >>> [chunk["body"] for chunk in recursive(document, size=10, length="characters")]
    ['Ab cd.', 'Ef gh ij', 'kl.']
    """
    cutter = Cutter(document, size, overlap, length, embedder)
    room = cutter.room()
    return cutter.chunks(recursive_spans(cutter, 0, len(cutter.text), room, min(overlap, room - 1)))


# -- 3. semantic -------------------------------------------------------------------------------------------------------


def semantic(document, size, overlap=0, length="words", embedder=None, percentile=95, context=1):
    """Sentences, cut where the meaning turns: where the distance of two of them exceeds the document's `percentile`.

    formula: distance = 1 - vectors[0] @ vectors[1]

    Each sentence is embedded with `context` sentences on either side, or short ones would decide by chance. A chunk
    has at least a quarter of `size` before a turn may end it, and ends at the last sentence that fits whatever its
    meaning. Fewer than three sentences, or sentences that are all equally far apart, give no turn.

    Traps: a percentile finds turns in a text that has one topic only, and the more of them the longer it is. A sentence
    with its context may be more than the embedder reads. Tables and code are taken for sentences. Size holds; a
    sentence longer than that is cut and marked. Overlap is made of whole sentences.

    Kamradt, "5 Levels of Text Splitting" (2023), level 4; cap and floor are ours.
    """
    if embedder is None:
        raise ValueError("semantic cuts by meaning: pass embedder=load_embedder()")
    cutter = Cutter(document, size, overlap, length, embedder)
    found, room, pieces = sentences.split(cutter.text), cutter.room(), []
    turns = _turns(_distances(cutter.text, found, embedder, context) if found else [], percentile)
    for number, (start, end) in enumerate(found):
        for span in within(cutter, [(start, end)], room):
            pieces.append(Piece(span.start, span.end, room, split=span.split,
                                turn=number in turns and span.start == start))
    return cutter.chunks(pack(cutter, pieces, floor=room // 4))


def _distances(text, found, embedder, context):
    """How far each sentence, read with its context, is from the next one: [n_sentences - 1], from 0 to 2."""
    last = len(found) - 1
    windows = [text[found[max(0, number - context)][0]:found[min(last, number + context)][1]]
               for number in range(len(found))]
    vectors = embedder.encode(windows)                                 # [n_sentences, dim], unit rows
    return 1 - (vectors[:-1] * vectors[1:]).sum(axis=1, dtype=np.float64)


def _turns(distances, percentile):
    """Numbers of the sentences that begin something else than the sentence before them."""
    if len(distances) == 0:
        return set()
    # subtle: above it by more than a rounding error, or equal distances would be cut by chance
    far = distances > np.percentile(distances, percentile) + 1e-6
    return set((np.flatnonzero(far) + 1).tolist())


# -- 4. structured -----------------------------------------------------------------------------------------------------


def structured(document, size, overlap=0, length="words", embedder=None):
    """The author's boundaries first, size second: the strategy of the pipeline, with 200 word pieces and no overlap.

    A chunk stays in its section, and its breadcrumb names it; small neighbours under one heading share a chunk. A block
    longer than `size` is cut between atoms: a paragraph between sentences, a list between its items, a table between
    its rows, and each piece repeats the table's header. A fence or a function's body is an atom itself; one beyond the
    limit is cut at blank lines or between statements, and the later pieces of a body repeat the function's head.

    What makes no sense without the next block goes with it: a heading, a field's name, "They hold:" before a list. Only
    when it takes more than half of the room may it stand alone. Headings at the very end, with nothing under them, go
    with the last chunk. Overlap is made of whole atoms.

    Why 200 and not more: all-MiniLM-L6-v2 reads 256 word pieces and is silent about the rest.

    >>> table = "Days off.\\n\\n| country | days |\\n|---|---|\\n| France | 11 |\\n| Japan | 16 |"
    >>> for chunk in structured({"id": "d", "title": "Rules", "text": table, "doc_type": "md"}, size=13):
    ...     print(chunk["text"], end="\\n\\n")
    Rules
    <BLANKLINE>
    Days off.
    <BLANKLINE>
    | country | days |
    |---|---|
    | France | 11 |
    <BLANKLINE>
    Rules
    <BLANKLINE>
    | country | days |
    |---|---|
    | Japan | 16 |
    <BLANKLINE>
    """
    cutter, spans = Cutter(document, size, overlap, length, embedder), []
    blocks = documents.blocks(document)
    for section in _sections(blocks, _leads(cutter.text, blocks)):
        spans += pack(cutter, _section_pieces(cutter, section))
    return cutter.chunks(spans)


def _leads(text, blocks):
    """For each block whether it makes no sense without the next one, from which it must not be torn."""
    leads = [False] * len(blocks)
    for number in range(len(blocks) - 2, -1, -1):                      # backwards: a label leads if what it labels does
        block, following = blocks[number], blocks[number + 1]
        if block.kind == "heading":
            leads[number] = True
        elif _is_label(block):
            leads[number] = following.kind == "heading" or _is_label(following) and leads[number + 1]
        elif block.level:                                              # a field, a function's head: before its content
            leads[number] = following.section_path[:len(block.section_path)] == block.section_path
        elif block.kind == "paragraph":
            leads[number] = text[block.end - 1] == ":" and following.kind in ("list", "table", "code")
    return leads


def _is_label(block):
    """A label or front matter: a field that names nothing."""
    return block.kind == "field" and block.level == 0


def _sections(blocks, leads):
    """The blocks under each heading, as lists of (block, whether it leads)."""
    last = max((number for number, block in enumerate(blocks) if block.kind != "heading"), default=-1)
    sections, path = [], ()
    for number, (block, lead) in enumerate(zip(blocks, leads)):
        is_named_field = block.kind == "field" and block.level > 0
        own_path = block.section_path[:-1] if is_named_field else block.section_path
        names_section = block.level > 0 and not is_named_field
        leaves_section = own_path[:len(path)] != path
        if names_section or leaves_section or _is_label(block) and lead:
            path = own_path
            is_torn = number > 0 and leads[number - 1]
            if not is_torn and number <= last:                         # headings at the very end open no section
                sections.append([])
        if not sections:
            sections.append([])
        sections[-1].append((block, lead))
    return sections


def _section_pieces(cutter, section):
    """The blocks of a section as Pieces: whole where they fit, else as atoms; what leads is part of the next one."""
    pieces, start, previous = [], None, None
    for block, lead in section:
        start = block.start if start is None else start
        if start < block.start and not _may_lead(cutter, start, previous, block):
            pieces += _block_pieces(cutter, previous, start)
            start = block.start
        previous = block
        if lead:
            continue
        if block.kind == "heading" and pieces and cutter.fits_limit(   # the last heading of the document
                pieces[-1].start, block.end, pieces[-1].path, pieces[-1].header):
            pieces[-1] = pieces[-1]._replace(end=block.end)
        else:
            pieces += _block_pieces(cutter, block, start)
        start = None
    return pieces


def _may_lead(cutter, start, previous, block):
    """Whether what leads a block, from `start` to the `previous` one, takes no more than half of its room, and is no
    paragraph for whose sake code would have to be cut."""
    path = block.section_path
    if block.kind == "code" and previous.kind == "paragraph" and not cutter.fits_limit(start, block.end, path):
        return False
    return cutter.ruler.measure(start, block.start) <= cutter.room(path) // 2


def _block_pieces(cutter, block, start):
    """A block, with what leads it from `start` on, as Pieces of which none should be cut."""
    path, is_atom = block.section_path, block.kind in ("code", "heading")
    pieces, atoms = [], [(start, block.end)]
    if cutter.ruler.measure(start, block.end) > cutter.room(path) and not (
            is_atom and cutter.fits_limit(start, block.end, path)):
        atoms = _atoms(cutter.text, block, start)
    for first, last in atoms:
        header = cutter.header(block, first)
        room = cutter.room(path, header)
        if cutter.ruler.measure(first, last) <= room or cutter.fits_limit(first, last, path, header):
            pieces.append(Piece(first, last, room, path, header, split=is_atom and len(atoms) > 1))
        else:
            pieces += _inner_pieces(cutter, block, first, last)
    return pieces


def _inner_pieces(cutter, block, start, end):
    """An atom beyond the limit, cut at the best boundaries inside: an item between its sentences, else recursively."""
    path, inside = block.section_path, [(start, end)]
    room = cutter.room(path, cutter.header(block, end))                # as if each repeated the header
    if block.kind == "list":
        found = _sentences(cutter.text, max(start, block.start), end)
        inside = [(start, found[0][1]), *found[1:]]                    # what leads the list stays with its beginning
    return [Piece(span.start, span.end, room, path, cutter.header(block, span.start), split=True)
            for span in within(cutter, inside, room, glued=block.start)]


def _atoms(text, block, start):
    """[(start, end)] of a block's rows, items or statements, or else of its sentences."""
    if block.kind in ("paragraph", "quote", "field"):
        found = _sentences(text, block.start, block.end)
        return [(start, found[0][1]), *found[1:]]
    return list(zip([start, *block.cuts], [*block.cuts, block.end]))


def _sentences(text, start, end):
    return [(start + first, start + last) for first, last in sentences.split(text[start:end])]


# -- 5. parent_child ---------------------------------------------------------------------------------------------------


def parent_child(document, size, overlap=0, length="words", embedder=None):
    """Small chunks to match, large ones to read: structured chunks, each with the parent it lies in.

    A parent is as many neighbouring children as have at most 4 x size together, counted in its body; a child that is
    longer alone is its own parent. The list holds the children only; each carries parent_id, parent_start, parent_end
    and parent_body. `parents` turns the children that were found into parents.

    Known from LangChain as ParentDocumentRetriever, and as small-to-big retrieval.
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
            title, body = child.get("title", ""), child["parent_body"]
            found[child["parent_id"]] = documents.Chunk(
                id=child["parent_id"], doc_id=child["doc_id"], title=title, body=body,
                text=f"{title}\n\n{body}" if title else body, start=child["parent_start"], end=child["parent_end"],
                **{key: child[key] for key in (*METADATA, "page") if key in child})
    return list(found.values())


# -- 6. late -----------------------------------------------------------------------------------------------------------


def late(document, size, overlap=0, length="words", embedder=None, strategy=structured):
    """Embed first, cut afterwards: chunks of another strategy whose "vector" is the mean of their word pieces' vectors,
    which the model made with the whole document in view.

    [CLS] counts with the first chunk and [SEP] with the last, so that a document of one chunk gets the vector that
    ordinary mean pooling gives it. A document longer than the model reads goes in windows that share a quarter; what
    two windows share is taken from the earlier one. Nothing stands in front of the document: the breadcrumb is in the
    chunk's text, not in its vector.

    Günther et al., "Late Chunking" (2024). It needs a model that pools by the mean.
    """
    if embedder is None:
        raise ValueError("late pools an embedder's token vectors: pass embedder=load_embedder()")
    chunks = strategy(document, size, overlap, length, embedder)
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
    room = embedder.max_tokens - embedder.count_tokens("")
    ruler = Ruler(text, "tokens", embedder, heaviest=embedder.max_tokens // 4)     # a word fits into what windows share
    vectors, offsets, start, covered, end = [], [], 0, 0, -1
    while end < len(text):
        end = ruler.reach(start, room)
        some, places = embedder.token_vectors(text[start:end])         # [n, dim], [n, 2]
        places = np.asarray(places) + start
        places[0], places[-1] = start, end                             # the specials have no place of their own
        # subtle: [CLS] from the first window only, [SEP] from the last only, and no piece twice
        first = 0 if start == 0 else 1 + int((places[1:-1, 0] < covered).sum())
        last = len(places) if end == len(text) else len(places) - 1
        vectors.append(some[first:last])
        offsets.append(places[first:last])
        covered, start = end, ruler.back(end, room // 4)
    return np.concatenate(vectors), np.concatenate(offsets)


STRATEGIES = {"fixed": fixed, "recursive": recursive, "semantic": semantic, "structured": structured,
              "parent_child": parent_child, "late": late}


# -- Around chunks -----------------------------------------------------------------------------------------------------


def searched_text(chunk):
    """What is embedded and indexed of a chunk: its context, if it has one, and its text.

    >>> searched_text({"context": "From the leave policy.", "text": "Five days."})
    'From the leave policy.\\n\\nFive days.'
    """
    return f"{chunk['context']}\n\n{chunk['text']}" if chunk.get("context") else chunk["text"]


def unseen_pieces(chunks, embedder):
    """For each chunk, how many of its word pieces lie beyond what the embedder reads, and how many it has, specials
    aside: (unseen [n_chunks], pieces [n_chunks])."""
    around = embedder.count_tokens("")
    pieces = np.array([embedder.count_tokens(searched_text(chunk)) - around for chunk in chunks])
    return np.maximum(0, pieces - (embedder.max_tokens - around)), pieces


def unseen_shares(chunks, embedder):
    """For each chunk, the share of its word pieces that lie beyond what the embedder reads: [n_chunks], 0 to 1."""
    unseen, pieces = unseen_pieces(chunks, embedder)
    return unseen / np.maximum(1, pieces)


def merge_spans(spans, gap=4):
    """Spans (doc_id, start, end) that overlap, or lie at most `gap` characters apart, as one; in the documents' order.

    Between two neighbours may stand a blank line: four characters, where each line ends with two.

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


if __name__ == "__main__":
    from toy import Topics

    EXAMPLE = {"id": "pets", "title": "Pets and prices", "doc_type": "md", "text": """# Pets and prices

## Pets

A cat sat on the mat. The cat ate. It slept.

## Prices

Oil rose. The price of gold fell.

| stock | price |
|---|---|
| oil | 3 |
| gold | 5 |
"""}
    print("At most 12 words a chunk; marks such as # and | are words too. ¶ is a line's end.")
    for name, strategy in STRATEGIES.items():
        chunks = strategy(EXAMPLE, 12, 0, "words", Topics())
        print(f"\n{name}")
        for chunk in chunks:
            vector = "  vector ({:.2f}, {:.2f})".format(*chunk["vector"]) if "vector" in chunk else ""
            print(f"  {len(chunk['body'].split()):2} words  {chunk['body'].replace(chr(10), '¶')}{vector}")
        if name == "semantic":
            found = sentences.split(EXAMPLE["text"])
            print("  distances of its sentences:",
                  *(f"{abs(each):.2f}" for each in _distances(EXAMPLE["text"], found, Topics(), context=1)))
        for parent in parents(chunks) if name == "parent_child" else []:
            print(f"  {len(parent['body'].split()):2} words  parent {parent['id']}: {parent['body'].split()[:4]} ...")
    print(f"\nWhat is embedded of structured's last chunk:\n{structured(EXAMPLE, 12)[-1]['text']}")
