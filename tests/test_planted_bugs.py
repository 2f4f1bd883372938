"""Negative controls: a copy of a module with one planted bug must turn the module's own hand-made tests red."""

import importlib
import inspect
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BUGS = {
    "ranking": [
        ("falling = -scores if", "falling = scores if", "lowest first"),
        ("falling <= kth_best", "falling < kth_best", "ties of the k-th dropped"),
        ("[:k]           # stable", "[:k + 1]           # stable", "k off by one"),
        ("np.partition(falling, k - 1)[k - 1]", "np.partition(falling, k - 1)[0]", "threshold of the best"),
        ("scores = scores[positions]                                     #", "pass  #", "mask left out of the scores"),
        ("np.flatnonzero(check_mask", "np.flatnonzero(~check_mask", "swapped mask"),
        ("(-scores[i], i)", "(-scores[i], -i)", "reversed ties in the definition"),
        ("not np.isfinite(scores).all()", "False", "NaN let through"),
    ],
    "bm25": [
        ("np.log(1 + (n - df + 0.5) / (df + 0.5))", "np.log((n - df + 0.5) / (df + 0.5))", "idf without the 1"),
        ("np.log(1 + (n - df + 0.5) / (df + 0.5))", "np.log(1 + (n - df + 0.5) / df)", "0.5 forgotten"),
        ("1 - b + b * length / mean_length, k1", "1 - b * b * length / mean_length, k1", "b squared"),
        ("1 - b + b * length / mean_length, k1", "1 - b + b * mean_length / length, k1", "lengths upside down"),
        ('"atire": lambda count, norm, k1, delta: count * (k1 + 1)', '"atire": lambda count, norm, k1, delta: count * k1 + 1',
         "precedence of k1 + 1"),
        ("np.maximum(0, np.log((n - df + 0.5) / (df + 0.5)))", "np.log((n - df + 0.5) / (df + 0.5))", "negative idf"),
        ("(k1 + 1) * (count / norm + delta)", "count * (k1 + 1) * (count / norm + delta)", "BM25L times the count"),
        ("count * (k1 + 1) / (count + k1 * norm) + delta", "count * (k1 + 1) / (count + k1 * norm)", "delta dropped"),
        ("df = sum(term in tokens for tokens in token_lists)", "df = sum(tokens.count(term) for tokens in token_lists)",
         "df as total occurrences, definition"),
        ("idf(df, n, self.parameters[\"method\"]), df) ", "idf(np.add.reduceat(self.counts, self.starts[:-1]) if len(df) "
         "else df, n, self.parameters[\"method\"]), df) ",
         "df as total occurrences, array form"),
        ("np.sort(term_ids * n + np", "np.sort(term_ids * (n - 1) + np", "keys that collide"),
        ("each.weights * repeats", "each.weights", "repeats do not count"),
        ("np.bincount(documents, weights, minlength", "np.bincount(documents, minlength", "a dropped weight"),
        ("allowed.take(term.documents)", "(~allowed).take(term.documents)", "swapped mask"),
        ("view.visible & allowed", "allowed", "what is hidden is found"),
        ("counts.max(keepdims=True), max(", "counts.min(keepdims=True), max(", "a bound that weights exceed"),
        ("self.weigh(places) * factor", "self.weigh(places)", "repeats do not count under a view"),
        ('np.argsort(-scores, kind="stable")[:k]', "np.lexsort((-candidates, -scores))[:k]", "reversed ties"),
        ('np.argsort(-scores, kind="stable")[:k]', 'np.argsort(-scores, kind="stable")[:k + 1]', "k off by one"),
        ("scores += _look_up(term, candidates)", "pass", "a dropped sum"),
        ("scores >= threshold - rest[added])", "scores >= threshold)", "candidates dropped too early"),
        ("_kth_best(scores, k * added)", "_kth_best(scores, 1)", "threshold of the best"),
        ("accumulator[found] = 0", "pass", "accumulator not reset"),
        ("repeats * float(weights[here].sum())", "float(weights[here].sum())", "explain forgets repeats"),
        ("token.casefold()", "token", "case kept"),
        ("if part != piece:", "if False:", "no parts"),
    ],
    "fusion": [
        ("np.arange(1, longest + 1)", "np.arange(longest)", "ranks from 0"),
        ("1 / (k + rank)\n\n\ndef", "1 / (k * rank)\n\n\ndef", "product for sum"),
        ("1 / (k + rank)\n\n\ndef", "1 / (k + rank + 1)\n\n\ndef", "k off by one"),
        ("zip(reversed(items), reversed(terms[:len(items)]))", "zip(items, terms)", "last occurrence counts"),
        ("reverse=True", "reverse=False", "worst first"),
        ("items = sorted(scores)", "items = sorted(scores, reverse=True)", "reversed ties"),
        ("map(math.fsum,", "map(max,", "maximum for sum"),
        ("dict.fromkeys(scores, 1.0)", "dict.fromkeys(scores, 0.0)", "a single hit is worth nothing"),
        ("(score - low) / (high - low) for", "score / high for", "minimum not taken off"),
        ("weight * score for", "score for", "weights ignored in the sum"),
        ("[:top_n]", "[:top_n and top_n + 1]", "top_n off by one"),
    ],
    "metrics": [
        ("math.log2(rank + 1) for", "math.log2(rank + 2) for", "log2 of rank + 2"),
        ("math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))\n\n", "math.log2(rank + 1) for rank, gain in "
         "enumerate(gains, start=2))\n\n", "ranks from 2"),
        ("sorted(gained.values(), reverse=True)[:k]", "sorted((gained.get(item, 0) for item in items), reverse=True)[:k]",
         "ideal from what was retrieved only"),
        ("sorted(gained.values(), reverse=True)[:k]", "sorted(gained.values(), reverse=True)", "ideal not cut at k"),
        ("sorted(gained.values(), reverse=True)[:k]", "sorted(gained.values())[:k]", "ideal upside down"),
        ("items[:k]])", "items[:k - 1]])", "k off by one in nDCG"),
        ("2**grade - 1", "2**grade", "exponential gain without - 1"),
        ("for item in items[:k])", "for item in items[:k + 1])", "k off by one"),
        ("_count_found(ranking, relevant, k) / k ", "_count_found(ranking, relevant, k) / min(k, len(ranking)) ",
         "precision over the list's length"),
        ("_count_found(ranking, relevant, k) / len(relevant)", "_count_found(ranking, relevant, k) / min(k, len(relevant))",
         "recall capped at k"),
        ("total += found / rank", "total += 1 / rank", "precision forgotten in AP"),
        ("return total / len(relevant)", "return total / max(found, 1)", "AP over what was found"),
        ("return 1 / rank", "return 1 / (rank + 1)", "reciprocal rank off by one"),
        ("if grade > 0}", "if grade >= 0}", "a grade of 0 counts as relevant"),
        ("for query, gains in qrels.items():", "for query, gains in [each for each in qrels.items() if each[0] in run]:",
         "unanswered dropped"),
        ("math.fsum(defined) / len(defined)", "math.fsum(defined) / (len(defined) + 1)", "mean over one too many"),
    ],
    "encoder": [
        ("math.sqrt(keys.shape[1])", "keys.shape[1]", "scores divided by d, not by its root"),
        ("np.sqrt(variance + epsilon)", "(np.sqrt(variance) + epsilon)", "epsilon outside the root"),
        ("+ kinds[types]  ", "  ", "types left out"),
        ("exponent *= x\n", "pass\n", "GELU's exponent without x"),
        ("part += old\n", "pass\n", "what was there before is not added"),
        ("rows, shape = slice(start, start + n_texts * length)", "rows, shape = slice(0, n_texts * length)",
         "texts read another's rows"),
        ("(n_texts, length, -1, n_heads, dim // n_heads)", "(length, n_texts, -1, n_heads, dim // n_heads)", "texts mixed up"),
        ('out /= np.einsum("...qk->...q", scores)[..., None]', "pass", "shares do not add up to 1"),
        ("qkv[:, :dim] /= math.sqrt(dim // n_heads)", "qkv[:, :dim] /= math.sqrt(dim)", "scaled by all heads' numbers"),
        ("[*pieces[:keep - 1], pieces[-1]]", "pieces[:keep]", "[SEP] cut off"),
        ("(room + (n_a > n_b)) // 2", "(room + (n_a >= n_b)) // 2", "the odd piece to the first text"),
        ("rows[..., 0, :]", "rows[..., -1, :]", "[SEP] for [CLS]"),
    ],
    "cutting": [
        ("bisect_right(self.before, self.before[first] + room) - 1, first + 1)", "first + room - 1, first + 1)", "reach one short"),
        ("if weight <= heaviest:", "if True:", "heavy words stay whole"),
        ("- around\n", "\n", "specials counted with each word"),
        ("if best > low:\n            return best", "if best > low and separators is None:\n            return best",
         "separators ignored"),
        ("high + BEHIND[separator]", "high", "white space counted"),
        ("> group[0].room", ">= group[0].room", "room off by one"),
        (">= floor", "> floor", "floor off by one"),
        ("takewhile(lambda pair: pair[0] == pair[1], zip(path, piece.path))", "zip(path, path)", "path of the first piece"),
        ("if path[:1] == (title,) else (title, *path)", "if False else (title, *path)", "title twice"),
        ("> cutter.overlap", "> cutter.overlap + 1", "overlap off by one"),
        ("codes, 0x3001", "codes, 127", "only ASCII spaces"),
    ],
    "chunking": [
        ("ruler.back(end, min(overlap, room - 1))", "end", "no overlap"),
        ("min(overlap, room - 1)))", "0))", "no overlap, recursive"),
        ("distances > np.percentile", "distances < np.percentile", "cuts where nothing turns"),
        ("number - context)]", "number)]", "no neighbours before"),
        ("floor=room // 4", "floor=0", "no floor"),
        ("if block.kind == \"heading\":\n            leads", "if False:\n            leads", "headings torn off"),
        ("text[block.end - 1] == \":\" and", "False and", "a colon announces nothing"),
        ("own_path[:len(path)] != path", "False", "a section never ends"),
        ("is_atom and cutter", "False and cutter", "fences always cut"),
        ("header = cutter.header(block, first)", "header = None", "header not repeated"),
        ("split=is_atom and len(atoms) > 1", "split=False", "pieces not marked"),
        ("if block.kind == \"list\":", "if False:", "items cut anywhere"),
        ("> PARENT * size", "> 2 * PARENT * size", "parents too big"),
        ("f\"{document['id']}#p{number}\"", "f\"p{number}\"", "parents of two documents share an id"),
        ("if child[\"parent_id\"] not in found", "if True", "the last child's parent"),
        ("max(merged[-1][2], end)", "end", "a span inside another ends it"),
        ("0 if chunk is chunks[0] else", "", "[CLS] left out"),
        ("len(offsets) if chunk is chunks[-1] else", "", "[SEP] left out"),
        ("(np.linalg.norm(mean) or 1)", "1", "late vectors not of length 1"),
        ("if chunk.get(\"context\")", "if False", "context not counted"),
    ],
    "citations": [
        ("1 <= number <= n_sources for number", "0 <= number <= n_sources for number", "source 0"),
        ("1 <= number <= n_sources for number", "1 <= number <= n_sources + 1 for number", "one source too many"),
        ("opened[number - 1])", "opened[number - 2])", "numbers from 2"),
        ("range(numbers[-1] + 1, number)", "range(numbers[-1] + 2, number)", "a range with a hole"),
        ('place = max(bisect_right(starts, citation.start) - 1, 0)',
         'place = min(bisect_right(starts, citation.start), len(found) - 1)', "goes to the next sentence"),
        ('if status == "valid":\n            pieces', 'if numbers:\n            pieces', "what is out of range repaired"),
        ("match[2].startswith(run)", "match[2][0] == run[0]", "shorter fences close"),
        ("glued and match", "False and match", "arr[1] read"),
        ("max(n_sources, 1899) < parts[0][1] <= 9999", "False", "years read"),
        ("len(rest) - len(word)", "len(rest)", "half a word read"),
        ("step = None if match.end() == len(line) else _past(match), None", "step = _past(match), None", "half a tag given up"),
        ("tuple(dict.fromkeys(numbers))", "tuple(numbers)", "numbers twice"),
    ],
    "quotes": [
        ("if each[0] in numbers]", "]", "any source will do"),
        ("first < len(cited) and cited[first][0] < end", "first < len(cited)", "what the rest of the answer cites"),
        ("part, body, at) if part", "part, body, 0) if part", "parts in any order"),
        ("if not (_joined(", "if True or not (_joined(", "parts of words"),
        ('place["start"] + spans[start][0]', "spans[start][0]", "offsets into the body"),
        ("spans[end - 1][1])", "spans[end - 1][0])", "the last character left out"),
        (".translate(SAME)", "", "kinds of quotation marks"),
    ],
    "filters": [
        ('return {"everyone", *groups}', "return {*groups}", "everyone forgotten"),
        ("not groups.isdisjoint(acl)", "groups.issuperset(acl)", "all groups needed"),
        ('chunk.get("acl", ["everyone"])', 'chunk.get("acl") or ["everyone"]', "nobody becomes everyone"),
        ("mask &= np", "mask |= np", "conditions by or"),
        ("mask, where = visible.copy(), dict", "mask, where = np.ones_like(visible), dict", "where forgets who may see"),
        ("mask & (rank == newest[series])", "rank == newest[series]", "latest forgets the mask"),
        ("np.maximum.at(newest, series[mask], rank[mask])", "np.maximum.at(newest, series, rank)", "hidden versions compete"),
        ("mask & (rank == newest[series])", "mask & (rank >= newest[series] - 1)", "the last two versions"),
        ("first <= found <= last", "first <= found < last", "last day left out"),
        ("np.array([*map(test, values), False], bool)", "np.array([*map(test, values), True], bool)",
         "without the field matches"),
    ],
    "prompt": [
        ("if needed[-1] > budget_tokens", "if sum(map(size, parts[:-3])) > budget_tokens", "one chunk too many"),
        ("if needed[-1] > budget_tokens", "if dropped or needed[-1] > budget_tokens", "stops at the first that does not fit"),
        ("size(SYSTEM) + sum", "sum", "the rules are not counted"),
        ("if tokens <= budget_tokens:", "if True:", "the whole is never counted"),
        ("return Prompt(SYSTEM, user, _packed(sources)", "return Prompt(SYSTEM, user, _packed(_sources(kept))",
         "ids of another order"),
        ("sources[1::2][::-1]", "sources[1::2]", "the weakest last"),
        ("chunk[\"body\"][len(shared):]", "chunk[\"body\"]", "the overlap twice"),
        ("if not chunk[\"body\"].startswith(shared)", "if False", "contradiction let through"),
        ("min(rank for rank, _ in run)", "max(rank for rank, _ in run)", "merged chunks rank with the worst"),
        ('("unknown", rank) if', '"unknown" if', "unknown documents taken for one"),
        ("html.escape(shown(value)", "(shown(value)", "quotes let out of attributes"),
        ("shown(text) + \"\\n\"", "text + \"\\n\"", "a body as it is"),
        ("Question: {shown(question.strip())}", "Question: {question.strip()}", "a question as it is"),
        (".casefold()\n", "\n", "capital letters overlooked"),
        ("<[\\s/]*source", "</?source", "white space overlooked"),
        ("(?:amp;?|#0*38;?|#x0*26;?)*", "", "references behind references overlooked"),
        ("positions[match.start()]", "match.start()", "places of another text"),
    ],
    "postings": [
        ("sorted({term", "list({term", "terms in any order"),
        ("for term, number in self.vocabulary.items() if left[number]}", "for term in self.vocabulary}", "words that are gone stay"),
        ("return keys[stays], counts[stays]", "return keys, counts", "nothing leaves"),
        ("new_keys[order], new_counts[order]", "new_keys[order], new_counts", "counts of another term"),
        ("at = where + np.arange(len(new)) ", "at = where ", "what comes covers what stays"),
        ("documents = places[documents] ", "documents = documents + 0 ", "places stay"),
    ],
    "index": [
        ("order = _order(chunks)\n", "order = list(range(len(_order(chunks))))\n", "chunks in any order"),
        ("if not self.given[row]}", "}", "a late vector given to another chunk"),
        ("elif text in known:", "elif False:", "known texts embedded again"),
        ("bm25.tokenize(chunking.searched_text(chunk))", "bm25.tokenize(chunk['text'])", "context ignored"),
        ("self._mask(visible, \"visible\"))", "None)", "statistics of all"),
        ("{*checksums, *removed}", "{*checksums}", "what is gone stays"),
        ("self.documents.get(doc_id) != each", "doc_id not in self.documents", "changes not noticed"),
        ("[each, chunker]", "each", "another chunker is not noticed"),
        ("- set(map(chunking.searched_text, chunks)))", ")", "a text forgotten that others have"),
        ("self.title_boost * bm25", "bool(self.title_boost) * bm25", "every boost is one"),
    ],
    "token_store": [
        ("self.size + vectors.nbytes <= self.budget", "self.size <= self.budget", "the last one is too much"),
        ("self.size -= 0 if", "self.size -= 0 if True or", "what left still takes room"),
        ("offsets[:, 1] > offsets[:, 0]", "offsets[:, 1] >= offsets[:, 0]", "specials kept"),
        ('(kept := self.kept.get(text)) is None', "(kept := None) is None", "computed again each time"),
    ],
    "answering": [
        ("hits[0].score < threshold", "hits[0].score <= threshold", "reaching the threshold is not enough"),
        ("text = citations.repair(read.text, n)", "text = read.text", "the form is not mended"),
        ('refused="" if found else UNCITED', 'refused=""', "an answer without citation passes"),
        ("text=plain, citations=[], refused=SAID", "text=read.text, citations=[], refused=SAID", "a refusal keeps its citations"),
        ("again if better else answer", "again if True else answer", "a worse second answer is taken"),
        ("+ packing.shown(more)", "+ more", "the answer's tags are sent again"),
        (", *(chunk for hit in hits for chunk in hit.around)]", "]", "neighbours are not packed"),
        ("for hit in hits), *(chunk for hit in hits for chunk in hit.around)]",
         "for hit in hits), *(chunk for hit in hits for chunk in hit.around)][::-1]", "what stands around goes first"),
    ],
    "grading": [
        ("bodies[number - 1] for number in sentence.numbers]", "bodies[number - 2] for number in sentence.numbers]",
         "sources from 0"),
        ("or not supports(sentence.text, [other", "or supports(sentence.text, [other", "the needed one is irrelevant"),
        ("if len(cited) == 1 or supports", "if len(cited) > 1 and supports", "the only one must do without the others"),
        ("not sentence.broken and ", "", "out of range is forgiven"),
        ("len(each.numbers) + each.broken for", "len(each.numbers) for", "what no source has costs nothing"),
        ("any(words in", "all(words in", "in every body"),
        ("(Counter(words) & Counter(each)).total()", "len({*words} & {*each})", "each shared word counts once"),
        ("if defined else None", "if defined else 0", "undefined is 0"),
        ("(False, True), (True, True), (False, False), (True, False))", "(False, True), (False, False), (True, True), (True, False))",
         "the matrix transposed"),
        ("len(votes), \"vote\") == 1", "len(votes), \"vote\") > 0", "any vote is enough"),
        ("if packed), average", "), average", "not given that it was packed"),
        ("packed_recall >= enough", "pool_recall >= enough", "reranking is never to blame"),
        ("return word if word in words else None", "return word", "any verdict counts"),
        ("and reply.count('\"verdicts\"') == 1", "", "an answer grades itself"),
        ("count * theirs[label]", "count * count", "chance from one side alone"),
        ("(share - chance, 1 - chance,", "(share - chance, 1,", "kappa not scaled"),
    ],
    "refusal": [
        ("difference == 0).mean() / 2", "difference == 0).mean()", "a tie counts whole"),
        ("best_threshold(scores[fold != each], good[fold != each])", "threshold", "judged by a threshold that has seen it"),
        ("values[1:] + values[:-1]) / 2", "values[1:] + values[1:]) / 2", "not in the middle"),
        ("% folds\n    passes", "// folds\n    passes", "folds of unequal size"),
    ],
    "search": [
        ("enumerate(run, start=1)", "enumerate(run)", "ranks from 0"),
        ("[:k_each]\n    clock", "\n    clock", "the whole pool is reranked"),
        ('" ".join([text, *names])', "text", "names do not count"),
        ("2 * (min(end, b)", "1 * (min(end, b)", "only what is contained is a duplicate"),
        ("return chunking.parents([chunk])[0] if", "return chunk if", "children are read"),
        ("if all(visible[place] for place in siblings)", "if True", "a parent with a hidden child is read"),
        ("if allowed[place]]", "]", "neighbours that may not be seen"),
        ("_reranked(index, standalone, pool", "_reranked(index, question, pool", "the follow-up itself is reranked against"),
        ("chunking.searched_text(index.chunks[position]), \"at\"", "index.chunks[position][\"text\"], \"at\"",
         "context not reranked"),
        ("bm25.tokenize(question), visible)[[", "bm25.tokenize(question))[[", "statistics of all"),
        ("> whole:", ">= whole:", "whole counts one word less"),
        ("if passage:", "if passage and False:", "no HyDE"),
    ],
    "rerank": [
        ("cosines.max(axis=1).mean()", "cosines.max(axis=0).mean()", "MaxSim from the text's side"),
        ("str(position + 1): position for", "str(position): position for", "texts counted from 0"),
        ("*range(n)]))", "]))", "what is not named is lost"),
        ("np.argsort(order_of(reply, len(texts)))", "np.array(order_of(reply, len(texts)))", "places for positions"),
        (" or reply\n", "\n", "only brackets are read"),
        ('chain = (_CHAIN.findall(reply) or [""])[-1]', 'chain = ""', "chatter before the chain counts"),
        ("text[:characters]}", "text}", "nothing is cut"),
    ],
    "llm": [
        ('"cache_creation_input_tokens", "read": "cache_read_input_tokens"',
         '"cache_read_input_tokens", "read": "cache_creation_input_tokens"', "written and read swapped"),
        ('f"[S{index + 1}]"', 'f"[S{index}]"', "sources counted from 0"),
        ("words = block.text.rstrip()", "words = block.text", "a citation in the next paragraph"),
        ('if reason not in ("end_turn", "stop_sequence"):', 'if reason == "refusal":', "a cut answer is an answer"),
    ],
    "contextual": [
        ('if name not in chunk["text"]]', "if name]", "names said twice"),
        ('if end <= chunk["start"] or chunk["end"] <= start]', "]", "the chunk's own sentence in front of it"),
        ("leads.setdefault(section, (", "leads.__setitem__(section, (", "the last sentence for the first"),
        ("range(len(path), -1, -1)", "range(len(path) + 1)", "the document's lead for the section's"),
        ("text.split()[:WORDS]", "text.split()", "no limit in words"),
        ("_hash(model, SITUATE, prefix)", "_hash(model, SITUATE)", "another document's context"),
        ("_hash(model, SITUATE, prefix)", "_hash(SITUATE, prefix)", "another model's context"),
        ("if cache and reply.error is None:", "if cache:", "a failure is kept"),
        ("(type(None), llm.NoAnswer)", "type(None)", "a refusal stops everything"),
        ("_line(key, text) == line", "True", "damage not noticed"),
        ('MARK) + b"\\n" + line', 'MARK + b"\\n") + line + b"\\n"', "a torn line takes the next along"),
        ("Usage(1, **llm.usage_of(response))", "Usage(1)", "calls cost nothing"),
        ("len(context) > CHARACTERS", "False", "contexts of any length"),
    ],
    "eval_corpora": [
        ('not child.name.startswith("_")', "True", "private names"),
        ('part in ("tests", "testing")', "part in ()", "tests are documents"),
        ("summaries[each[2]] == 1", "True", "shared summaries"),
        ("len(each[3].split()) >= words", "True", "short rests"),
        ("rests.setdefault(each[3], each)", "rests[len(rests)] = each", "equal rests"),
        ("[[[spans[number]]] for number in picked]", "[[[span]] for span in spans[:len(picked)]]", "another's evidence"),
    ],
    "eval_questions": [
        ('key = ("group", each["group"]) if "group" in each else number', "key = number", "groups forgotten"),
        ('{doc_id: text})', "texts)", "another document's copies"),
        ("text[max(0, start):end] != quote", "False", "wrong offsets let through"),
        ("shared -= have[gone] < wanted[gone]", "pass", "words that left still count"),
        ('text.split("\\n")', "text.splitlines()", "lines end in the middle of a question"),
        ("enumerate(text.split(\"\\n\"), start=1)", "enumerate(text.split(\"\\n\"))", "lines from 0"),
    ],
    "eval_spans": [
        ('words -= len(chunk["text"].split()) - len(places)', "pass", "breadcrumbs for nothing"),
        ("places[:words][-1][1]", "places[-1][1]", "over the budget"),
        ("found[:k])) if budget", "found[:k + 1])) if budget", "k off by one"),
        ("scorer(question, [texts[position] for position in positions[:RERANKED]])",
         "scorer(question, [texts[position] for position in sorted(positions)[:RERANKED]])", "another's scores"),
        ("+ pool[RERANKED:]", "", "what is not reranked is lost"),
        ("first <= start and end <= last", "first < end and start < last", "a part counts as the whole"),
        ("min(budget, n_words(found))", "budget", "words that were not there"),
    ],
    "eval_sweep": [
        ("embedder.max_tokens - embedder.count_tokens(\"\")", "embedder.max_tokens", "specials forgotten"),
        ("return not difference.low <= 0 <= difference.high", "return difference.low <= 0 <= difference.high",
         "shown and not shown swapped"),
        ("holders(copies, found[:POOL])", "holders(copies, found)", "a pool without end"),
        ("return bool(piece > last)", "return bool(piece < last)", "diluted and not diluted swapped"),
        ('"end": min(chunk["end"], end)', '"end": chunk["end"]', "everything is read"),
        ("for size in (one, other)]", "for size in (other, one)]", "differences upside down"),
    ],
    "eval_own": [
        ("known, recall = precision[~np.isnan(precision)]", "known, recall = np.nan_to_num(precision)", "undefined is 0"),
        ("if len(recall) > 1 else None", "if True else None", "the sd of one"),
        ("if len(recall) >= 5 else None", "if len(recall) > 5 else None", "five are too few"),
        ("len(labelled) - len(asked)", "len(labelled)", "all are unanswerable"),
    ],
    "eval_strategies": [
        ('chunk["text"].partition("\\n\\n")[2]', 'chunk["text"]', "breadcrumbs stay"),
        ("WINDOW * percent // 100", "percent // 100", "no overlap"),
        ("_difference(with_it[column], without[column])", "_difference(without[column], with_it[column])",
         "gain upside down"),
    ],
    "eval_rankings": [
        ("for name in found[:k] if", "for name in found[:k + 1] if", "k off by one"),
        ("any(holds(chunk, copies) for copies in pieces)", "chunk['id'] in gains", "every chunk counts as whole"),
        ("metrics.ndcg_at_k(found, gains, 10)", "metrics.ndcg_at_k(found, gains, 1)", "nDCG of the first place"),
        ("sums[picks].sum(axis=1) / counts[picks].sum(axis=1)", "(sums / counts)[picks].mean(axis=1)",
         "a mean of groups' means"),
        ("resamples, len(names))", "resamples, len(numbers))", "too many groups drawn"),
        ("found.low <= 0 <= found.high", "found.low <= 0", "a loss is not marked"),
    ],
    "eval_figures": [
        ("round(1.5 / n, 4)", "round(0.5 / n, 4)", "no question may tip"),
        ("abs(new - old) - tolerance", "old - new - tolerance", "what got better is not told"),
        ("if not beyond <= 1e-9:", "if beyond > 1e-9:", "NaN let through"),
        ('kept[name]["tolerance"], found', 'found[name]["tolerance"], found', "the new tolerance counts"),
    ],
    "eval_models": [
        ("embedding.unit_rows(vectors[:, :d]), embedding.unit_rows(queries[:, :d])", "vectors, queries", "nothing cut"),
        ("if not 0 < each <=", "if not 0 <= each <=", "no dimension at all"),
        ("unseen.sum() / max(1, pieces.sum())", "(unseen > 0).mean()", "chunks counted, not word pieces"),
        ("compared = \"\" if each is results[0]", "compared = \"\" if True", "nothing compared"),
    ],
    "eval_stages": [
        ('values["RRF"] < values[leg]', 'values["RRF"] > values[leg]', "hurt and helped swapped"),
        ("title_boost=boost)", "title_boost=1)", "one boost for all"),
        ("weights = [1 + max((idf", "weights = [1 - min((idf", "rare words weigh less"),
        ("if (question, text) not in known]", "if text not in {text for _, text in known}]", "another question's scores"),
    ],
    "eval_answers": [
        (">= min(end - start, last - first)", ">= last - first", "half of the piece, however short the quote"),
        ("return \"refused\" if asked.answer.refused else", "return", "a refusal counts as misread"),
        ("    if not asked.whole:", "    if asked.whole:", "cut and whole swapped"),
        ("asked.pool[:asked.k]", "asked.pool", "the top k is the pool"),
        ("0.0 if answer.refused else grading.or_none(function, said", "grading.or_none(function, said",
         "a refusal may match a reference"),
        ("np.mean([any(shares(spans, copies) for spans in found) for", "max([any(shares(spans, copies) for spans in found) for",
         "one piece of two is enough"),
        ('kind(each) == "answerable") for each in asked)', 'True) for each in asked)', "every question has an answer"),
        ("correct = refused[able], refused[~np.array(able)]", "correct = refused[able], refused",
         "refusal correctness over all questions"),
        ("said = citations.removed(paragraph, cited).rpartition(answering.SAYS)[2]",
         "said = citations.removed(paragraph, cited)", "what introduces a quote is quoted"),
        ("span in each.pool[:K]", "span in each.pool[:1]", "hit rate at 1"),
        ("if None not in pair]", "if True]", "undefined values compared"),
    ],
    "failure_modes": [
        ('for mode in ("dense", "hybrid")', 'for mode in ("dense", "dense")', "no repair"),
        ("sum(not whole(chunks, pieces)", "sum(whole(chunks, pieces)", "what is whole counts as cut"),
        ("missing[0], missing[2], told", "missing[0], missing[1], told", "another repair than the one that is named"),
        ('if "| Grade |" in text', "if text", "every row has its header"),
        ("right[-1:] != [1]", "right[-1:] != [1/3]", "the stand-in is not told"),
        ('"text": chunk["body"], "title": ""', '"title": ""', "the breadcrumb stays"),
        ("return all(any(", "return any(any(", "one piece of two is enough"),
        (".packed for place in source.places]", ".dropped for place in source.places]", "what was dropped is sent"),
        (':,.3f}".rstrip("0").rstrip(".")', ':,.3f}".rstrip("0.")', "round figures lose their zeros"),
    ],
    "watch": [
        ("compress(index.chunks, index.visible(user))", "index.chunks", "hidden chunks are counted"),
        ('.replace("<", "\\\\u003c")', "", "a document ends the data"),
        ('if before and start < before[-1]["end"]', "if False", "marks that overlap"),
        (".rpartition(SAYS)[2]", "", "who says it is looked for too"),
        ('if start < mark["end"]', 'if start >= mark["start"]', "the first mark for each"),
        ("key=lambda band: band[0] not in holds", "key=lambda band: band[0] in holds", "what was found comes last"),
        ("packing.word_pieces(source.body) - 2", "packing.word_pieces(source.body)", "specials are counted"),
        ("cosines.argmax(axis=1)", "cosines.argmin(axis=1)", "the worst match is framed"),
        ("places[chunk[\"id\"]], visible)\n        words", "places[chunk[\"id\"]])\n        words", "statistics of all"),
    ],
    "bench_scale": [
        ("(theirs / ours).tolist()", "(ours / theirs).tolist()", "ratio upside down"),
        ('times["hybrid"], times["threads"]', 'times["threads"], times["hybrid"]', "gain upside down"),
        ("[50, 95]", "[95, 50]", "p95 for p50"),
        ("row[:] = drawn / np.sqrt(drawn @ drawn)", "row[:] = drawn", "vectors of any length"),
    ],
}
CASES = [(name, *bug) for name, bugs in BUGS.items() for bug in bugs]


def with_bug(name, old, new):
    """The module `name`, compiled anew from its source with one change."""
    source = (ROOT / f"{name}.py").read_text(encoding="utf-8")
    assert source.count(old) >= 1, f"{old!r} is no longer in {name}.py: plant the bug elsewhere"
    module = types.ModuleType(name)
    module.__file__ = str(ROOT / f"{name}.py")
    exec(compile(source.replace(old, new, 1), f"{name}.py with a bug", "exec"), module.__dict__)
    return module


def hand_made_tests(name):
    """The tests of a module that take no argument and draw nothing at random."""
    tests = importlib.import_module(f"test_{name}")
    return tests, [test for title, test in vars(tests).items() if title.startswith("test_") and callable(test)
                   and not hasattr(test, "hypothesis") and not inspect.signature(test).parameters
                   and "1000" not in title and "longer_random" not in title]


def first_failure(name, module):
    """The first hand-made test of `name` that fails on `module` in the module's place, or None."""
    tests, functions = hand_made_tests(name)
    original = vars(tests)[name]
    setattr(tests, name, module)
    try:
        for test in functions:
            try:
                test()
            except (Exception, pytest.fail.Exception):
                return test.__name__
    finally:
        setattr(tests, name, original)


@pytest.mark.parametrize("name, old, new, bug", CASES, ids=[f"{name}: {bug}" for name, *_, bug in CASES])
def test_a_planted_bug_is_caught(name, old, new, bug):
    assert first_failure(name, with_bug(name, old, new)) is not None


@pytest.mark.parametrize("name", BUGS)
def test_without_a_bug_all_is_green(name):
    source = (ROOT / f"{name}.py").read_text(encoding="utf-8")
    assert first_failure(name, with_bug(name, source[:40], source[:40])) is None
    assert len(hand_made_tests(name)[1]) >= 4


def test_there_are_at_least_25():
    assert len(CASES) >= 25 and len(set(CASES)) == len(CASES)
