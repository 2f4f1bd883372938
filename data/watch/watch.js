"use strict";
// Draws the page from the object in #data, stage by stage. Whatever comes from a document, a question or an answer goes
// in as text: no string becomes markup, here or anywhere.

const data = JSON.parse(document.getElementById("data").textContent);
const LETTERS = { lexical: "K", dense: "V", fused: "F", reranked: "R" };
const NAMES = { lexical: "keywords", dense: "vectors", fused: "fused", reranked: "reranked" };
const STAGES = Object.keys(LETTERS);
const runs = {}, places = {};                       // stage -> [[number, score]], best first; stage -> number -> place
for (const stage of STAGES) {
  runs[stage] = data.stages[stage] ?? [];
  places[stage] = new Map(runs[stage].map(([number], index) => [number, index + 1]));
}
const citedSources = new Set(data.answer.filter(([, mark]) => mark).map(([, mark]) => mark.split("-")[0]));

// -- Building blocks --------------------------------------------------------------------------------------------------

const at = (id) => document.getElementById(id);
const place = (stage, number) => places[stage].get(number);
const scoreOf = (stage, number) => runs[stage][place(stage, number) - 1][1];
const isCited = (number) => citedSources.has(data.chunks[number].source);
const lastPlace = 1e9;
const byRerank = (a, b) => (place("reranked", a) ?? lastPlace) - (place("reranked", b) ?? lastPlace);

// make("p.quiet", { id: "x" }, "text", node): an element; attributes may be left out, and so may empty children
function make(name, ...children) {
  const [kind, ...classes] = name.split(".");
  const svg = ["svg", "g", "path", "line", "circle", "text", "title"].includes(kind);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", kind) : document.createElement(kind);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.flat().filter((child) => child !== "" && child !== undefined));
  return node;
}

// As Python writes it: an exact half goes to the even digit, where toFixed goes up
function shown(number, digits) {
  const long = number.toFixed(60), end = long.length - 60 + digits, cut = long.slice(0, end);
  return /^50*$/.test(long.slice(end)) && /[02468]$/.test(cut) ? cut : number.toFixed(digits);
}

const tag = (kind, text) => make(`b.tag.${kind}`, text);
const letter = (stage) => tag(stage, LETTERS[stage]);
const note = (...children) => make("p.note", ...children);
const folded = (summary, ...children) => make("details", make("summary", summary), ...children);
const figure = (...children) => make("td.figure", ...children);

function sourceTag(source) {
  if (!source) return "";
  return citedSources.has(source) ? tag("cited", `${source} ✓`) : tag("packed", source);
}

function label(number) {
  const { title, section } = data.chunks[number];
  return section ? `${title} › ${section}` : title;
}

function chunkButton(number) {
  const { title, section, source } = data.chunks[number];
  return make("button.chunk", { type: "button", "data-chunk": number },
    make("span.title", title), " ", sourceTag(source), section && make("span.section", section));
}

function bar(share, kind) {
  const filled = make(`span.filled.${kind}`);
  filled.style.width = percent(share);
  return make("span.bar", { "aria-hidden": "true" }, filled);
}

const percent = (share) => `${100 * Math.max(0, Math.min(1, share))}%`;

// A table whose first column names the row, in a box that scrolls by itself
function table(caption, heads, rows) {
  const head = heads.map((each, index) => make(index ? "th.figure" : "th", { scope: "col" }, each));
  const body = rows.map(([name, ...figures]) =>
    make("tr", make("th", { scope: "row" }, name), figures.map((each) => figure(String(each)))));
  return make("div.scroll", { tabindex: "0", role: "region", "aria-label": caption },
    make("table", make("thead", make("tr", head)), make("tbody", body)));
}

// -- The question, and the stages in one line -------------------------------------------------------------------------

function drawTop() {
  const time = (...names) => {
    const seconds = names.reduce((sum, name) => sum + (data.timings[name] ?? 0), 0);
    return `${(1000 * seconds).toFixed(1)} ms`;
  };
  const { lexical, dense, fused, reranked } = runs, kept = Math.min(data.k, reranked.length);
  const best = data.guard.score === null ? "nothing was found" : `best score ${shown(data.guard.score, 2)}`;
  const packed = data.prompt ? `${data.sources.length} sources, ${data.budget.tokens} tokens` : "nobody was asked";
  const answered = data.refused ? "refused" : `${citedSources.size} sources cited`;
  const stages = [
    ["Cut", `${data.n_documents} documents, ${data.n_chunks} chunks`, "ahead of time", 1],
    ["Retrieve", `${lexical.length} by keywords, ${dense.length} by vectors`, time("retrieve"), 2],
    ["Fuse", `${fused.length} go on`, time("fuse")],
    ["Rerank", `${reranked.length} compared, ${kept} kept`, time("rerank")],
    ["Guard", best, ""],
    ["Pack", packed, time("pack"), 3],
    ["Answer", answered, time("read", "check"), 4]];
  at("question").textContent = data.question;
  at("user").textContent = data.user.join(", ");
  at("stages").append(...stages.map(([name, what, when, fails], index) =>
    make("li", make("a", { href: `#stage-${index + 1}` }, make("span.number", String(index + 1)), make("strong", name),
      make("span", what), make("span.quiet", when),
      fails && make("span.fails", tag("fail", "!"), ` place to fail ${fails}`)))));
}

// -- 1: documents as bands of chunks ----------------------------------------------------------------------------------

const FATES = {                                     // kind -> what its letter means in the legend, and what it says
  cited: ["S1 ✓", "packed, and cited in the answer"], packed: ["S1", "packed as a source"],
  both: ["KV", "found by both, left out later"], lexical: ["K", "found by keywords alone"],
  dense: ["V", "found by vectors alone"], none: ["", "not found"] };

function fate(number) {
  const source = data.chunks[number]?.source;
  if (source) return isCited(number) ? ["cited", `${source} ✓`] : ["packed", source];
  const kind = place("lexical", number) ? (place("dense", number) ? "both" : "lexical")
    : place("dense", number) ? "dense" : "none";
  return [kind, FATES[kind][0]];
}

function band([name, title, first, lengths]) {
  const said = [];
  const pieces = lengths.map((length, index) => {
    const [kind, text] = fate(first + index), found = kind !== "none";
    const piece = make(`span.piece.${kind}`, found ? { "data-chunk": first + index } : {}, text);
    piece.style.flexGrow = length;
    if (found) said.push(`chunk ${index + 1}: ${text}, ${FATES[kind][1]}`);
    return piece;
  });
  const words = `${lengths.length} chunks. ${said.join("; ") || "None was found"}`;
  return make("div.band", make("p", { title: name }, title),
    make("div.pieces", { role: "img", "aria-label": words }, pieces));
}

function drawBands() {
  at("fates").append(...Object.entries(FATES).map(([kind, [text, meaning]]) =>
    make("li", make(`span.piece.${kind}`, { "aria-hidden": "true" }, text), ` ${meaning}`)));
  const numbers = ([, , first, lengths]) => lengths.map((_, index) => first + index);
  const best = (each) => Math.min(...numbers(each).map((number) => place("reranked", number) ?? lastPlace));
  const bands = data.bands.map((each) => [best(each), each]).sort((a, b) => a[0] - b[0]).map(([, each]) => each);
  const packed = bands.filter((each) => numbers(each).some((number) => data.chunks[number]?.source));
  const first = packed.length || 6, rest = data.n_documents - first, undrawn = data.n_documents - bands.length;
  const shownFirst = packed.length ? packed : bands.slice(0, first);
  at("bands").append(...shownFirst.map(band));
  at("more-bands").querySelector("summary").append(
    `${rest} documents more, none of them packed${undrawn ? ` (${undrawn} are not drawn)` : ""}`);
  at("more-bands").querySelector(".bands").append(...bands.filter((each) => !shownFirst.includes(each)).map(band));
  at("more-bands").hidden = rest <= 0;
}

// -- 2: two rankings, and why -----------------------------------------------------------------------------------------

function wordsOf(number) {
  const { b, mean_length, words } = data.keywords, { length, parts } = data.keywords.chunks[number];
  const mean = shown(mean_length, 1), lengthPart = shown(1 - b + b * length / mean_length, 4);
  const rows = [], missing = [];
  words.forEach(([word, repeats, df, idf], index) => {
    const [count, part, score] = parts[index];
    if (!count) return missing.push(word);
    rows.push([repeats > 1 ? `${word} ×${repeats}` : word, count, df, shown(idf, 4), shown(part, 4), shown(score, 4)]);
  });
  return [
    make("p.formula", `${length} words, the mean is ${mean}. `
      + `Length part: 1 − ${b} + ${b} × ${length} / ${mean} = ${lengthPart}`),
    table(`Words of ${label(number)}`, ["word", "tf", "df", "idf", "tf part", "gives"], rows),
    missing.length ? make("p.quiet", `Not here: ${missing.join(", ")}`) : ""];
}

function ranked(stage, other, [number, score], index, most) {
  const there = place(other, number);
  return make("li", make("span.rank", String(index + 1)), make("div", chunkButton(number),
    make("div.score", bar(score / most, stage), make("span.figure", shown(score, 4))),
    make("div.why",
      make("span.quiet", letter(other), there ? ` place ${there}` : ` not among its ${runs[other].length}`),
      stage === "lexical" ? folded("Its words", wordsOf(number)) : "")));
}

function drawRanking(stage, other, first = 8) {
  if (!runs[stage].length) return at(stage).append(note("Nothing was found."));
  const most = Math.max(...runs[stage].map(([, score]) => score), Number.MIN_VALUE);
  const rows = runs[stage].map((each, index) => ranked(stage, other, each, index, most));
  rows[0].querySelector("details")?.setAttribute("open", "");
  at(stage).append(make("ol.ranks", rows.slice(0, first)));
  if (rows.length > first) {
    const rest = make("ol.ranks", { start: String(first + 1) }, rows.slice(first));
    at(stage).append(folded(`Places ${first + 1} to ${rows.length}`, rest));
  }
}

function drawRetrievers() {
  at("bm25-k1").textContent = data.keywords.k1;
  drawRanking("lexical", "dense");
  drawRanking("dense", "lexical");
}

// -- 3: fusion, as fusion.py does it ----------------------------------------------------------------------------------

function bounds(stage) {
  const scores = runs[stage].map(([, score]) => score);
  return [Math.min(...scores), Math.max(...scores)];
}

function minMax(stage) {
  const [low, high] = bounds(stage);
  return runs[stage].map(([number, score]) => [number, low === high ? 1 : (score - low) / (high - low)]);
}

// 46 of 53 bits, a half to the even one: a number that is added to 2^52 loses its fraction in just this way
function rounded(sum) {
  const unit = 2 ** (Math.ceil(Math.log2(sum)) - 46);
  return sum === 0 ? 0 : (sum / unit + 2 ** 52 - 2 ** 52) * unit;
}

// [number, sum, what keywords give, what vectors give], best first; of equal sums the smaller number first
function fuse(method, k, weights) {
  const terms = new Map();
  for (const stage of ["lexical", "dense"].filter((each) => weights[each] > 0)) {
    const reciprocal = runs[stage].map(([number], index) => [number, 1 / (k + index + 1)]);
    for (const [number, term] of method === "ranks" ? reciprocal : minMax(stage)) {
      terms.set(number, { ...terms.get(number), [stage]: weights[stage] * term });
    }
  }
  return [...terms]
    .map(([number, { lexical, dense }]) => [number, rounded((lexical ?? 0) + (dense ?? 0)), lexical, dense])
    .sort(([a, sumOfA], [b, sumOfB]) => sumOfB - sumOfA || a - b);
}

function settings() {
  const value = (id) => Number(at(id).value), lexical = value("weight") / 10;
  const method = document.querySelector("[name=method]:checked").value;
  return { method, k: value("rrf-k"), weights: { lexical, dense: 2 - lexical }, keep: value("k") };
}

function arithmetic(stage, number, { method, k, weights }) {
  const weight = shown(weights[stage], 1), [low, high] = bounds(stage).map((each) => shown(each, 2));
  if (method === "ranks") return `${weight} × 1/(${k} + ${place(stage, number)})`;
  if (low === high) return `${weight} × 1`;
  return `${weight} × (${shown(scoreOf(stage, number), 2)} − ${low}) / (${high} − ${low})`;
}

function moved(from, to) {
  if (from === undefined) return "new";
  return from === to ? "" : from > to ? `▲ ${from - to}` : `▼ ${to - from}`;
}

function drawFusion() {
  const now = settings(), byRank = now.method === "ranks", digits = byRank ? 6 : 4;
  at("weight-lexical").textContent = shown(now.weights.lexical, 1);
  at("weight-dense").textContent = shown(now.weights.dense, 1);
  at("rrf-k-shown").textContent = now.k;
  at("rrf-k-note").textContent = byRank ? "" : "(only RRF has one)";
  at("rrf-k").disabled = !byRank;
  at("k-shown").textContent = now.keep;
  const given = byRank ? "1/(k + place)" : "(score − lowest) / (highest − lowest)";
  at("fusion-formula").textContent = `sum = weight × ${given} of each list that holds the chunk`;
  const fused = fuse(now.method, now.k, now.weights);
  const term = (stage, number, value) => value === undefined ? figure("–")
    : figure(shown(value, digits), make("span.quiet.sum", arithmetic(stage, number, now)));
  at("fusion").tBodies[0].replaceChildren(...fused.slice(0, now.keep).map(([number, sum, lexical, dense], index) =>
    make("tr", { "data-number": number },
      make("td", String(index + 1), " ", make("span.quiet.nowrap", moved(place("fused", number), index + 1))),
      make("th", { scope: "row" }, chunkButton(number)),
      term("lexical", number, lexical), term("dense", number, dense), figure(make("strong", shown(sum, digits))))));
  at("verdict").textContent = verdict(fused, now.keep);
}

function verdict(fused, keep) {
  const first = new Set(fused.slice(0, keep).map(([number]) => number));
  const cited = Object.keys(data.chunks).map(Number).filter(isCited);
  const held = cited.filter((number) => first.has(number));
  const lost = runs.fused.slice(0, keep).filter(([number]) => !first.has(number)).length;
  return [`${fused.length} chunks, ${first.size} kept.`,
    lost ? `${lost} of the pipeline's first ${keep} are not among them.`
      : "The pipeline's fusion has the same ones on top.",
    cited.length ? `Of the ${cited.length} chunks that the answer cites they hold ${held.length}.` : ""].join(" ");
}

function resetControls() {
  at("controls").reset();
  at("k").max = Math.max(1, new Set([...places.lexical.keys(), ...places.dense.keys()]).size);
  at("k").value = data.k;
  drawFusion();
}

// -- 4: who moved, and what matched -----------------------------------------------------------------------------------

function watched() {
  const first = (stage, n) => runs[stage].slice(0, n).map(([number]) => number);
  const all = [...first("reranked", data.k), ...["lexical", "dense", "fused"].flatMap((stage) => first(stage, 5))];
  return [...new Set(all)].sort(byRerank);
}

function drawMoves() {
  const width = at("moves").clientWidth, wide = width > 640, height = 600, top = 46, bottom = 20;
  const margin = wide ? Math.min(330, width * 0.36) : 64;               // on the right, for names
  const last = Math.max(2, ...STAGES.map((stage) => runs[stage].length));
  const x = (column) => 22 + column * (width - margin - 44) / 3;
  const y = (rank) => top + (height - top - bottom) * Math.log(rank) / Math.log(last);
  const heads = STAGES.map((stage, column) => make(`g.head.${stage}`,
    make("line", { x1: x(column), x2: x(column), y1: top - 12, y2: height - bottom + 8 }),
    make("text", { x: column ? x(column) : 2, y: 20, "text-anchor": column ? "middle" : "start" },
      wide ? `${LETTERS[stage]} ${NAMES[stage]}` : LETTERS[stage])));
  let free = 0;                                                         // where there is room for the next name
  const lines = watched().map((number) => {
    const end = place("reranked", number) ? y(place("reranked", number)) : -1, named = end >= free;
    if (named) free = end + 15;
    return line(number, x, y, named ? [data.chunks[number].source, wide ? fitting(number, margin - 50) : ""] : []);
  });
  at("moves").replaceChildren(make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": "Places of chunks at each stage, as lines; the table below says the same" }, heads, lines.reverse()));
}

function line(number, x, y, name) {
  const points = STAGES.map((stage, column) => [x(column), place(stage, number), stage]).filter(([, rank]) => rank);
  const path = points.map(([to, rank], index) => {
    if (!index) return `M ${to} ${y(rank)}`;
    const [from, before] = points[index - 1], middle = (from + to) / 2;
    return `C ${middle} ${y(before)} ${middle} ${y(rank)} ${to} ${y(rank)}`;
  });
  const dots = points.map(([to, rank, stage]) => {
    const roomy = y(rank + 1) - y(rank) >= 15;                          // for a number in it
    return [make(`circle.${stage}`, { cx: to, cy: y(rank), r: roomy ? 10 : 4 }),
      roomy ? make("text.place", { x: to, y: y(rank) + 4, "text-anchor": "middle" }, String(rank)) : ""];
  });
  const kind = isCited(number) ? "cited" : data.chunks[number].source ? "kept" : "left";
  const title = make("title", label(number)), drawn = make("path", { d: path.join(" ") });
  const text = name.length && make("text.name", { x: x(3) + 17, y: y(place("reranked", number)) + 4 },
    name.filter(Boolean).join("  "));
  return make(`g.${kind}`, { "data-chunk": number }, title, drawn, dots.flat(), text || "");
}

function fitting(number, width) {
  const { title, section } = data.chunks[number], most = Math.floor(width / 6.4);
  const text = [...[title, section.split(" › ").pop()].filter(Boolean).join(" › ")];
  return text.length <= most ? text.join("") : `${text.slice(0, most - 1).join("")}…`;
}

function drawMovesTable() {
  at("moves-table").tBodies[0].append(...watched().map((number) => make("tr",
    make("th", { scope: "row" }, chunkButton(number)),
    STAGES.map((stage) => figure(String(place(stage, number) ?? "–"), stage === "reranked" && place(stage, number)
      ? make("span.quiet.sum", moved(place("fused", number), place(stage, number))) : "")),
    figure(place("reranked", number) ? shown(scoreOf("reranked", number), 4) : "–"))));
}

function drawMatches() {
  const numbers = Object.keys(data.matches.chunks).map(Number).sort(byRerank);
  at("match").append(...numbers.map((number) => make("option", { value: number },
    `${place("reranked", number) ? `place ${place("reranked", number)}` : "left behind"}: ${label(number)}`)));
  at("match").disabled = !numbers.length;
  if (numbers.length) drawHeat();
}

function drawHeat() {
  const { words, cosines, best, most } = data.matches.chunks[at("match").value];
  const rows = data.matches.question.map((piece, row) => make("tr", make("th", { scope: "row" }, piece),
    cosines[row].map((cosine, column) => {
      const cell = make(column === best[row] ? "td.best" : "td", String(cosine));
      cell.style.setProperty("--heat", (Math.max(0, cosine) / 100) ** 1.6);     // a power, so that the best stand out
      return cell;
    })));
  at("heat").replaceChildren(
    make("caption.hidden", "Cosines of the question's pieces with the chunk's, in hundredths"),
    make("thead", make("tr", make("td"), words.map((word) => make("th", { scope: "col" }, make("span", word))))),
    make("tbody", rows));
  const mean = most.reduce((sum, each) => sum + each, 0) / most.length, terms = most.map((each) => shown(each, 2));
  at("heat-mean").textContent = `(${terms.join(" + ")}) / ${most.length} = ${shown(mean, 4)}`;
}

// -- 5: the guard -----------------------------------------------------------------------------------------------------

function drawGuard() {
  const { score, threshold } = data.guard;
  if (score === null) return at("guard").append(note("Nothing was found, so nobody was asked."));
  if (threshold === null) {
    return at("guard").append(note(`The best score is ${shown(score, 4)}. No threshold was calibrated for this model, `
      + "so nothing is refused for its score."));
  }
  const passes = score >= threshold, distance = shown(Math.abs(score - threshold), 4);
  const below = make("span.below"), least = make("span.line"), needle = make("span.needle");
  below.style.width = least.style.left = percent(threshold);
  needle.style.left = percent(score);
  at("guard").append(
    make("div.meter", { "aria-hidden": "true" }, below, least, needle, make("span.low", "0"), make("span.high", "1")),
    make("p.verdict", make("strong", `${shown(score, 4)} ${passes ? "≥" : "<"} ${shown(threshold, 4)}`),
      passes ? `: the best chunk's score passes the threshold by ${distance}. The question goes on.`
        : `: the best chunk's score misses the threshold by ${distance}. Nobody is asked.`));
}

// -- 6: packing -------------------------------------------------------------------------------------------------------

function drawBudget() {
  const { tokens, most, parts } = data.budget, titles = new Map(data.sources.map(({ id, title }) => [id, title]));
  if (!data.prompt) return at("budget").append(note("Nothing was packed: nobody was asked."));
  const pieces = parts.map(([name, size]) => {
    const kind = citedSources.has(name) ? "cited" : titles.has(name) ? "packed" : "other";
    const text = titles.has(name) && size / most > 0.025 ? name : "";
    const piece = make(`span.piece.${kind}`, { title: `${name}: ${size}` }, text);
    piece.style.width = percent(size / most);
    return piece;
  });
  const rows = [...parts, ["unused", most - tokens]].map(([name, size]) => [`${name} ${titles.get(name) ?? ""}`, size]);
  at("budget").append(
    make("p.verdict", make("strong", `${tokens} of ${most} tokens`), `, ${most - tokens} left.`),
    make("div.budget", { "aria-hidden": "true" }, pieces),
    folded("Token by token", table("What the tokens went to", ["part", "tokens"], rows)));
}

function drawDropped() {
  const later = runs.reranked.slice(data.k);
  if (data.dropped.length) {
    at("dropped").append(make("ul", data.dropped.map(([id, title, why]) =>
      make("li", make("strong", title), make("span.quiet", ` ${id} `), why))));
  } else {
    at("dropped").append(make("p", data.prompt ? "Of what was kept, everything fitted." : "Nothing was packed."));
  }
  if (later.length) {
    at("dropped").append(
      make("p", `${later.length} chunks more were found and never offered: the best ${data.k} are kept.`),
      folded("Which ones", make("ol", { start: String(data.k + 1) }, later.map(([number, score]) =>
        make("li", chunkButton(number), make("span.quiet", ` ${shown(score, 4)}`))))));
  }
}

function drawPrompt() {
  if (!data.prompt) return at("prompt").append(note("Nothing was sent."));
  const lines = data.prompt.user.split("\n").map((each) => `${each}\n`);
  const loud = lines.map((each) => /^<\/?sources?\b/.test(each) ? make("b", each) : each);
  at("prompt").append(folded("The rules", make("pre", data.prompt.system)),
    folded("The sources and the question", make("pre", loud)));
}

// -- 7: the answer ----------------------------------------------------------------------------------------------------

function drawAnswer() {
  const parts = data.answer.map(([text, mark]) => mark ? make("a", { href: `#${mark}` }, text) : text);
  at("answer").append(make("p.answer", { id: "said", tabindex: "-1" }, parts));
  if (data.refused) at("answer").append(note(make("strong", "Refused: "), `${data.refused}.`));
  for (const sentence of data.uncited) at("answer").append(note(make("strong", "No source for: "), sentence));
  at("answer").append(make("p.quiet", `Answered by: ${data.reader}.`));
}

// Lines that were only broken to fit a page go on; the text stays as long as it was
const unwrapped = (text) => text.replace(/(?<=[^\n]{60})\n(?=[\p{L}(“"'])/gu, " ");

function marked({ body, marks }) {
  const letters = [...unwrapped(body)], parts = [];                     // code points, as Python counts
  const text = (start, end) => letters.slice(start, end).join("");
  let end = 0;
  for (const mark of marks) {
    parts.push(text(end, mark.start), make("mark", { id: mark.id, tabindex: "-1" }, text(mark.start, mark.end)));
    end = mark.end;
  }
  return [...parts, text(end)];
}

function drawSources() {
  const where = ({ doc_id, section, page, start, end, from }) => [doc_id, section, page && `page ${page}`,
    `characters ${start} to ${end}`, from && `in force from ${from}`].filter(Boolean).join(" · ");
  if (!data.sources.length) return at("sources").append(note("No source was packed."));
  at("sources").append(...data.sources.map(({ id, title, places: stretches }) =>
    make("article", { id, "aria-label": `Source ${id}` }, make("h4", sourceTag(id), " ", title),
      stretches.flatMap((each) => [make("p.quiet", where(each)), make("p.body", marked(each))]),
      citedSources.has(id) ? make("p", make("a", { href: "#said" }, "Back to the answer")) : "")));
}

// -- 8: the clock -----------------------------------------------------------------------------------------------------

function drawTimes() {
  const times = Object.entries(data.timings), total = times.reduce((sum, [, time]) => sum + time, 0);
  const most = Math.max(...times.map(([, time]) => time));
  at("times").append(
    make("p.verdict", make("strong", `${(1000 * total).toFixed(0)} milliseconds`), " in all."),
    make("dl.times", times.flatMap(([name, time]) => [make("dt", name),
      make("dd", bar(time / most, "time"), make("span.figure", `${(1000 * time).toFixed(2)} ms`))])));
}

// -- A chunk on its own -----------------------------------------------------------------------------------------------

function openChunk(number) {
  const { id, title, section, body, from } = data.chunks[number];
  at("chunk-title").textContent = title;
  at("chunk-place").textContent = [id, section, from && `in force from ${from}`].filter(Boolean).join(" · ");
  at("chunk-ranks").replaceChildren(...STAGES.map((stage) => make("span", letter(stage), place(stage, number)
    ? ` place ${place(stage, number)}, ${shown(scoreOf(stage, number), 4)}` : " not there")));
  at("chunk-body").textContent = unwrapped(body);
  at("chunk").showModal();
}

for (const draw of [drawTop, drawBands, drawRetrievers, resetControls, drawMovesTable, drawMatches, drawGuard,
  drawBudget, drawDropped, drawPrompt, drawAnswer, drawSources, drawTimes]) draw();
new ResizeObserver(drawMoves).observe(at("moves"));
at("controls").addEventListener("input", drawFusion);
at("as-it-was").addEventListener("click", resetControls);
at("match").addEventListener("change", drawHeat);
at("chunk-close").addEventListener("click", () => at("chunk").close());
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-chunk]");
  if (opener) openChunk(Number(opener.getAttribute("data-chunk")));
});
if (location.hash) location.replace(location.hash);                     // what it names is only there now
