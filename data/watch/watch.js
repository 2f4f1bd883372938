"use strict";
// Draws the page from the object in #data. Everything goes in as text: no string becomes markup, here or anywhere.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const LISTS = { lexical: "K", dense: "V", fused: "F", reranked: "R" };
const NAMES = { lexical: "keywords", dense: "vectors", fused: "fused", reranked: "reranked" };
const runs = Object.fromEntries(Object.keys(LISTS).map((stage) => [stage, data.stages[stage] ?? []]));
const places = Object.fromEntries(Object.entries(runs).map(([stage, run]) =>
  [stage, new Map(run.map(([number], index) => [number, index + 1]))]));
const citedSources = new Set(data.answer.filter(([, mark]) => mark).map(([, mark]) => mark.split("-")[0]));
const chunk = (number) => data.chunks[number];
const isCited = (number) => citedSources.has(chunk(number).source);
const kept = runs.reranked.map(([number]) => number).filter((number) => chunk(number).source);

// -- Building blocks --------------------------------------------------------------------------------------------------

function make(name, attributes = {}, ...children) {
  const svg = ["svg", "path", "circle", "text", "line", "g"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== ""));
  return node;
}

function shown(number, digits) {
  // As Python writes it: an exact half goes to the even digit, where toFixed goes up
  const long = number.toFixed(60), cut = long.length - 60 + digits;
  return /^50*$/.test(long.slice(cut)) && /[02468]$/.test(long.slice(0, cut)) ? long.slice(0, cut) : number.toFixed(digits);
}

const tag = (stage, text) => make("b", { class: `tag ${stage}` }, text);
const sourceTag = (number) => chunk(number).source &&
  tag(isCited(number) ? "cited" : "packed", chunk(number).source + (isCited(number) ? " ✓" : ""));
const label = (number) => chunk(number).title + (chunk(number).section ? ` › ${chunk(number).section}` : "");

function chunkButton(number) {
  const { title, section } = chunk(number);
  return make("button", { type: "button", class: "chunk", "data-chunk": number }, make("span", { class: "title" }, title), " ",
    sourceTag(number), section && make("span", { class: "section" }, section));
}

function bar(share, stage) {
  const filled = make("span", { class: `filled ${stage}` });
  filled.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, filled);
}

function folded(summary, ...children) {
  return make("details", {}, make("summary", {}, summary), ...children);
}

function table(caption, heads, rows) {
  const head = make("tr", {}, ...heads.map((each, index) => make("th", { scope: "col", class: index ? "figure" : "" }, each)));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((each, index) =>
      make(index ? "td" : "th", index ? { class: "figure" } : { scope: "row" }, each)))))));
}

// -- The question, and the stages in one line -------------------------------------------------------------------------

function drawTop() {
  at("question").textContent = data.question;
  const time = (...names) => `${(1000 * names.reduce((sum, name) => sum + (data.timings[name] ?? 0), 0)).toFixed(1)} ms`;
  const n = (stage) => runs[stage].length;
  const asked = data.prompt ? `${data.sources.length} sources, ${data.budget.tokens} tokens` : "nobody was asked";
  const stages = [
    ["Cut", `${data.n_documents} documents, ${data.n_chunks} chunks`, "ahead of time", 1],
    ["Retrieve", `${n("lexical")} by keywords, ${n("dense")} by vectors`, time("retrieve"), 2],
    ["Fuse", `${n("fused")} go on`, time("fuse")],
    ["Rerank", `${n("reranked")} compared, ${Math.min(data.k, n("reranked"))} kept`, time("rerank")],
    ["Guard", data.guard.score === null ? "nothing was found" : `best score ${shown(data.guard.score, 2)}`, ""],
    ["Pack", asked, time("pack"), 3],
    ["Answer", data.refused ? "refused" : `${citedSources.size} sources cited`, time("read", "check"), 4]];
  at("stages").append(...stages.map(([name, what, when, fails], index) => make("li", {}, make("a", { href: `#stage-${index + 1}` },
    make("span", { class: "number" }, String(index + 1)), make("strong", {}, name), make("span", {}, what),
    make("span", { class: "quiet" }, when), fails ? make("span", { class: "fails" }, tag("fail", "!"), ` may fail: ${fails} of 4`) : ""))));
}

// -- 1: documents as bands of chunks ----------------------------------------------------------------------------------

const FATES = {
  cited: "packed, and cited in the answer", packed: "packed as a source", both: "found by both, left out later",
  lexical: "found by keywords alone", dense: "found by vectors alone", none: "not found" };

function fate(number) {
  if (!chunk(number)) return ["none", ""];
  if (chunk(number).source) return [isCited(number) ? "cited" : "packed", chunk(number).source + (isCited(number) ? " ✓" : "")];
  const [k, v] = [places.lexical.has(number), places.dense.has(number)];
  return k && v ? ["both", "KV"] : k ? ["lexical", "K"] : ["dense", "V"];
}

function band([name, title, first, lengths]) {
  const pieces = lengths.map((length, index) => {
    const [kind, letter] = fate(first + index);
    const piece = make("span", { class: `piece ${kind}` }, letter);
    piece.style.flexGrow = length;
    if (kind !== "none") piece.setAttribute("data-chunk", first + index);
    return [piece, kind, letter];
  });
  const found = pieces.map(([, kind, letter], index) => letter && `chunk ${index + 1}: ${letter}, ${FATES[kind]}`).filter(Boolean);
  const said = `${lengths.length} chunks. ${found.join("; ") || "none was found"}`;
  return make("div", { class: "band" }, make("p", { title: name }, title),
    make("div", { class: "pieces", role: "img", "aria-label": said }, ...pieces.map(([piece]) => piece)));
}

function drawBands() {
  const letters = { cited: "S1 ✓", packed: "S1", both: "KV", lexical: "K", dense: "V", none: "" };
  at("fates").append(...Object.entries(FATES).map(([kind, meaning]) =>
    make("li", {}, make("span", { class: `piece ${kind}`, "aria-hidden": "true" }, letters[kind]), ` ${meaning}`)));
  const best = ([, , first, lengths]) => Math.min(...lengths.map((_, index) => places.reranked.get(first + index) ?? 1e9));
  const bands = data.bands.map((each) => [best(each), each]).sort((a, b) => a[0] - b[0]).map(([, each]) => each);
  const holds = ([, , first, lengths]) => lengths.some((_, index) => chunk(first + index)?.source);
  const first = bands.filter(holds).length || 6;
  at("bands").append(...bands.slice(0, first).map(band));
  const rest = data.n_documents - data.bands.length;
  at("more-bands").querySelector("summary").textContent =
    `${data.n_documents - first} documents more, none of them packed${rest ? ` (${rest} are not drawn)` : ""}`;
  at("more-bands").querySelector(".bands").append(...bands.slice(first).map(band));
  at("more-bands").hidden = data.n_documents <= first;
}

// -- 2: two rankings, and why -----------------------------------------------------------------------------------------

function termsOf(number) {
  const { b, mean_length: mean, words } = data.keywords, { length, parts } = data.keywords.chunks[number];
  const here = words.map((word, index) => [word, parts[index]]).filter(([, [count]]) => count);
  const rows = here.map(([[word, repeats, df, idf], [count, part, score]]) =>
    [word + (repeats > 1 ? ` ×${repeats}` : ""), count, df, shown(idf, 4), shown(part, 4), shown(score, 4)].map(String));
  const missing = words.filter((_, index) => !parts[index][0]).map(([word]) => word);
  return [
    make("p", { class: "formula" }, `Length: ${length} words, the mean is ${shown(mean, 1)}. Length part: ` +
      `1 − ${b} + ${b} × ${length} / ${shown(mean, 1)} = ${shown(1 - b + b * length / mean, 4)}`),
    table(`Words of ${label(number)}`, ["word", "tf", "df", "idf", "tf part", "gives"], rows),
    missing.length ? make("p", { class: "quiet" }, `Not here: ${missing.join(", ")}`) : ""];
}

function rankRow(stage, other, [number, score], index, most) {
  const elsewhere = places[other].get(number);
  return make("li", {}, make("span", { class: "rank" }, String(index + 1)),
    make("div", {}, chunkButton(number),
      make("span", { class: "score" }, bar(score / most, stage), make("span", { class: "figure" }, shown(score, 4))),
      make("div", { class: "why" }, make("span", { class: "quiet" }, tag(other, LISTS[other]),
        elsewhere ? ` place ${elsewhere}` : ` not among its ${runs[other].length}`),
      stage === "lexical" ? folded("Its words", ...termsOf(number)) : "")));
}

function drawRanking(stage, other) {
  const most = Math.max(...runs[stage].map(([, score]) => score), 1e-9);
  const rows = runs[stage].map((each, index) => rankRow(stage, other, each, index, most));
  const [first, rest] = [rows.slice(0, 8), rows.slice(8)];
  if (!rows.length) return at(stage).append(make("p", { class: "note" }, "Nothing was found."));
  first[0].querySelector("details")?.setAttribute("open", "");
  at(stage).append(make("ol", { class: "ranks" }, ...first));
  if (rest.length) at(stage).append(folded(`Places 9 to ${rows.length}`, make("ol", { class: "ranks", start: "9" }, ...rest)));
}

function drawRetrievers() {
  at("bm25-formula").textContent = `score = sum over the question's words of idf × tf part; tf part = tf / (tf + ${data.keywords.k1} × length part)`;
  drawRanking("lexical", "dense");
  drawRanking("dense", "lexical");
}

// -- 3: fusion, as fusion.py does it ----------------------------------------------------------------------------------

function minMax(run) {
  const scores = run.map(([, score]) => score), low = Math.min(...scores), high = Math.max(...scores);
  return run.map(([number, score]) => [number, low === high ? 1 : (score - low) / (high - low)]);
}

function rounded(sum) {
  // 46 of 53 bits, a half to the even one: what is added to 2^52 loses its fraction that way
  if (sum === 0) return 0;
  const unit = 2 ** (Math.ceil(Math.log2(sum)) - 46);
  return (sum / unit + 2 ** 52 - 2 ** 52) * unit;
}

function fuse(method, k, weights) {
  // [number, sum, what keywords give, what vectors give], best first; of equal sums the smaller number first
  const terms = new Map();
  for (const stage of ["lexical", "dense"]) {
    const given = method === "ranks" ? runs[stage].map(([number], index) => [number, 1 / (k + index + 1)]) : minMax(runs[stage]);
    if (weights[stage] > 0) {
      for (const [number, term] of given) terms.set(number, { ...terms.get(number), [stage]: weights[stage] * term });
    }
  }
  return [...terms].map(([number, { lexical, dense }]) => [number, rounded((lexical ?? 0) + (dense ?? 0)), lexical, dense])
    .sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}

const settings = () => {
  const lexical = Number(at("weight").value) / 10;
  return { method: document.querySelector("[name=method]:checked").value, k: Number(at("rrf-k").value),
    weights: { lexical, dense: 2 - lexical }, keep: Number(at("k").value) };
};

function arithmetic(stage, number, { method, k, weights }) {
  const weight = shown(weights[stage], 1);
  if (method === "ranks") return `${weight} × 1/(${k} + ${places[stage].get(number)})`;
  const scores = runs[stage].map(([, score]) => score), low = Math.min(...scores), high = Math.max(...scores);
  const score = scores[places[stage].get(number) - 1];
  return low === high ? `${weight} × 1` : `${weight} × (${shown(score, 2)} − ${shown(low, 2)}) / (${shown(high, 2)} − ${shown(low, 2)})`;
}

const moved = (from, to) => from === undefined ? "new" : from === to ? "" : from > to ? `▲ ${from - to}` : `▼ ${to - from}`;

function drawFusion() {
  const now = settings(), digits = now.method === "ranks" ? 6 : 4;
  at("weight-lexical").textContent = shown(now.weights.lexical, 1);
  at("weight-dense").textContent = shown(now.weights.dense, 1);
  at("rrf-k-shown").textContent = now.k;
  at("rrf-k-note").textContent = now.method === "ranks" ? "" : "(only RRF has one)";
  at("rrf-k").disabled = now.method !== "ranks";
  at("k-shown").textContent = now.keep;
  at("fusion-formula").textContent = now.method === "ranks" ? "sum = weight × 1/(k + place) of each list that holds the chunk"
    : "sum = weight × (score − lowest) / (highest − lowest) of each list that holds the chunk";
  const fused = fuse(now.method, now.k, now.weights), term = (stage, number, value) => value === undefined ? ["–"]
    : [shown(value, digits), make("span", { class: "quiet sum" }, arithmetic(stage, number, now))];
  at("fusion").tBodies[0].replaceChildren(...fused.slice(0, now.keep).map(([number, sum, lexical, dense], index) =>
    make("tr", { "data-number": number }, make("td", {}, String(index + 1), " ",
      make("span", { class: "quiet nowrap" }, moved(places.fused.get(number), index + 1))),
    make("th", { scope: "row" }, chunkButton(number)),
    make("td", { class: "figure" }, ...term("lexical", number, lexical)), make("td", { class: "figure" }, ...term("dense", number, dense)),
    make("td", { class: "figure" }, make("strong", {}, shown(sum, digits))))));
  at("verdict").textContent = verdict(fused, now);
}

function verdict(fused, now) {
  const first = new Set(fused.slice(0, now.keep).map(([number]) => number));
  const cited = Object.keys(data.chunks).map(Number).filter(isCited), held = cited.filter((number) => first.has(number)).length;
  const before = runs.fused.slice(0, now.keep).filter(([number]) => !first.has(number)).length;
  return `${fused.length} chunks, ${first.size} kept. ${before ? `${before} of them the pipeline had further down. ` : "The pipeline's own fusion has the same ones on top. "}`
    + (cited.length ? `Of ${cited.length} chunks that the answer cites, ${held} ${held === 1 ? "is" : "are"} among them.` : "");
}

function setControls() {
  at("controls").reset();
  at("k").max = Math.max(1, new Set([...places.lexical.keys(), ...places.dense.keys()]).size);
  at("k").value = data.k;
  drawFusion();
}

// -- 4: who moved, and what matched -----------------------------------------------------------------------------------

function watched() {
  const first = (stage, n) => runs[stage].slice(0, n).map(([number]) => number);
  const all = [...first("reranked", data.k), ...first("lexical", 5), ...first("dense", 5), ...first("fused", 5)];
  return [...new Set(all)].sort((a, b) => (places.reranked.get(a) ?? 1e9) - (places.reranked.get(b) ?? 1e9));
}

function drawMoves() {
  const box = at("moves"), width = box.clientWidth, wide = width > 640, height = 600, top = 46, bottom = 20;
  const right = wide ? Math.min(330, width * 0.36) : 64, step = (width - right - 44) / 3;
  const last = Math.max(2, ...Object.values(runs).map((run) => run.length));
  const x = (column) => 22 + column * step, y = (place) => top + (height - top - bottom) * Math.log(place) / Math.log(last);
  const columns = Object.keys(LISTS), drawn = watched().reverse();         // the best last, on top of the others
  const heads = columns.map((stage, column) => make("g", { class: `head ${stage}` },
    make("line", { x1: x(column), x2: x(column), y1: top - 12, y2: height - bottom + 8 }),
    make("text", { x: x(column), y: 20, "text-anchor": column ? "middle" : "start", dx: column ? 0 : -20 },
      wide ? `${LISTS[stage]} ${NAMES[stage]}` : LISTS[stage])));
  const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": "Places of chunks at each stage, as lines; the table below says the same" }, ...heads);
  let free = -1e9;
  const texts = new Map([...drawn].reverse().filter((number) => places.reranked.has(number)).map((number) => {
    const where = y(places.reranked.get(number)), fits = where >= free + 15;
    free = fits ? where : free;
    return [number, fits];
  }));
  for (const number of drawn) {
    const points = columns.map((stage, column) => [column, places[stage].get(number)]).filter(([, place]) => place);
    const line = points.map(([column, place], index) => index === 0 ? `M ${x(column)} ${y(place)}` : curve(points[index - 1], [column, place]));
    const group = make("g", { class: isCited(number) ? "cited" : chunk(number).source ? "kept" : "left", "data-chunk": number },
      make("path", { d: line.join(" ") }), make("title", {}, label(number)));
    for (const [column, place] of points) {
      const close = y(place + 1) - y(place) < 15;
      group.append(make("circle", { cx: x(column), cy: y(place), r: close ? 4 : 10, class: columns[column] }));
      if (!close) group.append(make("text", { x: x(column), y: y(place) + 4, "text-anchor": "middle", class: "place" }, String(place)));
    }
    if (texts.get(number)) {
      const name = make("text", { x: x(3) + 17, y: y(places.reranked.get(number)) + 4, class: "name" });
      name.append([chunk(number).source, wide ? fitting(number, right - 50) : ""].filter(Boolean).join("  "));
      group.append(name);
    }
    svg.append(group);
  }
  box.replaceChildren(svg);

  function curve([from, before], [to, place]) {
    const middle = (x(from) + x(to)) / 2;
    return `C ${middle} ${y(before)} ${middle} ${y(place)} ${x(to)} ${y(place)}`;
  }
}

function fitting(number, width) {
  const section = chunk(number).section.split(" › ").pop(), text = chunk(number).title + (section ? ` › ${section}` : "");
  const most = Math.floor(width / 6.4);
  return text.length <= most ? text : `${[...text].slice(0, most - 1).join("")}…`;
}

function drawMovesTable() {
  at("moves-table").tBodies[0].append(...watched().map((number) => make("tr", {},
    make("th", { scope: "row" }, chunkButton(number)),
    ...Object.keys(LISTS).map((stage) => make("td", { class: "figure" }, String(places[stage].get(number) ?? "–"),
      stage === "reranked" && places.reranked.has(number)
        ? make("span", { class: "quiet sum" }, moved(places.fused.get(number), places.reranked.get(number))) : "")),
    make("td", { class: "figure" }, shown(new Map(runs.reranked).get(number) ?? NaN, 4).replace("NaN", "–")))));
}

function drawMatches() {
  const order = Object.keys(data.matches.chunks).map(Number)
    .sort((a, b) => (places.reranked.get(a) ?? 1e9) - (places.reranked.get(b) ?? 1e9));
  at("match").append(...order.map((number) => make("option", { value: number },
    `${places.reranked.has(number) ? `place ${places.reranked.get(number)}` : "left behind"}: ${label(number)}`)));
  at("match").disabled = !order.length;
  if (order.length) drawHeat();
}

function drawHeat() {
  const { words, cosines, best, most } = data.matches.chunks[at("match").value];
  const head = make("tr", {}, make("td", {}), ...words.map((word) => make("th", { scope: "col" }, make("span", {}, word))));
  const rows = data.matches.question.map((piece, row) => make("tr", {}, make("th", { scope: "row" }, piece),
    ...cosines[row].map((cosine, column) => {
      const cell = make("td", column === best[row] ? { class: "best" } : {}, String(cosine));
      cell.style.setProperty("--heat", (Math.max(0, Math.min(100, cosine)) / 100) ** 1.6);      // so that the best stand out
      return cell;
    })));
  at("heat").replaceChildren(make("caption", { class: "hidden" }, "Cosines of the question's pieces with the chunk's, in hundredths"),
    make("thead", {}, head), make("tbody", {}, ...rows));
  const mean = most.reduce((sum, each) => sum + each, 0) / most.length;
  at("heat-mean").textContent = `(${most.map((each) => shown(each, 2)).join(" + ")}) / ${most.length} = ${shown(mean, 4)}`;
}

// -- 5: the guard -----------------------------------------------------------------------------------------------------

function drawGuard() {
  const { score, threshold } = data.guard, at100 = (value) => `${100 * Math.max(0, Math.min(1, value))}%`;
  if (score === null) return at("guard").append(make("p", { class: "note" }, "Nothing was found, so nobody was asked."));
  if (threshold === null) {
    return at("guard").append(make("p", { class: "note" }, `Best score ${shown(score, 4)}. No threshold was calibrated for this model, so nothing is refused for its score.`));
  }
  const passes = score >= threshold, needle = make("span", { class: "needle" }), line = make("span", { class: "line" });
  const below = make("span", { class: "below" });
  needle.style.left = at100(score);
  line.style.left = below.style.width = at100(threshold);
  at("guard").append(
    make("div", { class: "meter", "aria-hidden": "true" }, below, line, needle, make("span", { class: "low" }, "0"), make("span", { class: "high" }, "1")),
    make("p", { class: "verdict" }, make("strong", {}, `${shown(score, 4)} ${passes ? "≥" : "<"} ${shown(threshold, 4)}`),
      passes ? `: the best chunk's score reaches the threshold by ${shown(score - threshold, 4)}. The question passes.`
        : `: the best chunk's score misses the threshold by ${shown(threshold - score, 4)}. Nobody is asked.`));
}

// -- 6: packing -------------------------------------------------------------------------------------------------------

function drawBudget() {
  const { tokens, most, parts } = data.budget;
  if (!data.prompt) return at("budget").append(make("p", { class: "note" }, "Nothing was packed: nobody was asked."));
  const kinds = parts.map(([name]) => citedSources.has(name) ? "cited" : /^S\d+$/.test(name) ? "packed" : "other");
  const names = new Map(data.sources.map((source) => [source.id, source.title]));
  const pieces = parts.map(([name, size], index) => {
    const piece = make("span", { class: `piece ${kinds[index]}`, title: `${name}: ${size}` }, /^S/.test(name) && size / most > 0.025 ? name : "");
    piece.style.width = `${100 * size / most}%`;
    return piece;
  });
  at("budget").append(make("p", { class: "verdict" }, make("strong", {}, `${tokens} of ${most} tokens`), `, ${most - tokens} left.`),
    make("div", { class: "budget", "aria-hidden": "true" }, ...pieces),
    folded("Token by token", table("What the tokens went to", ["part", "tokens"], [...parts.map(([name, size]) =>
      [names.has(name) ? `${name} ${names.get(name)}` : name, String(size)]), ["unused", String(most - tokens)]])));
}

function drawDropped() {
  const later = runs.reranked.length - Math.min(data.k, runs.reranked.length);
  at("dropped").append(data.dropped.length ? make("ul", {}, ...data.dropped.map(([id, title, why]) =>
    make("li", {}, make("strong", {}, title || id), make("span", { class: "quiet" }, ` ${id} `), why))) : make("p", {}, data.prompt ? "Of what was kept, everything fitted." : "Nothing was packed."),
  make("p", {}, `${later} chunks more were found and never offered: only the best ${data.k} are kept. `,
    later ? folded("Which ones", make("ol", { class: "plain", start: String(data.k + 1) }, ...runs.reranked.slice(data.k).map(([number, score]) =>
      make("li", {}, chunkButton(number), make("span", { class: "quiet" }, ` ${shown(score, 4)}`))))) : ""));
}

function drawPrompt() {
  if (!data.prompt) return at("prompt").append(make("p", { class: "note" }, "Nothing was sent."));
  const lines = data.prompt.user.split("\n").map((line) =>
    /^<\/?sources?\b/.test(line) ? make("b", {}, `${line}\n`) : `${line}\n`);
  at("prompt").append(folded("The rules", make("pre", {}, data.prompt.system)),
    folded("The sources and the question", make("pre", {}, ...lines)));
}

// -- 7: the answer ----------------------------------------------------------------------------------------------------

function drawAnswer() {
  at("answer").append(make("p", { class: "answer", id: "said" }, ...data.answer.map(([text, mark]) =>
    mark ? make("a", { href: `#${mark}` }, text) : text)));
  if (data.refused) at("answer").append(make("p", { class: "note" }, make("strong", {}, "Refused: "), `${data.refused}.`));
  for (const sentence of data.uncited) at("answer").append(make("p", { class: "note" }, make("strong", {}, "No source for: "), sentence));
  at("answer").append(make("p", { class: "quiet" }, `Answered by: ${data.reader}.`));
}

const unwrapped = (text) => text.replace(/(?<=[^\n]{60})\n(?=[\p{L}(“"'])/gu, " ");    // as long as before

function marked(body, marks) {
  const letters = [...unwrapped(body)], parts = [];                     // code points, as Python counts
  let end = 0;
  for (const mark of marks) {
    parts.push(letters.slice(end, mark.start).join(""), make("mark", { id: mark.id, tabindex: "-1" }, letters.slice(mark.start, mark.end).join("")));
    end = mark.end;
  }
  return [...parts, letters.slice(end).join("")];
}

function drawSources() {
  if (!data.sources.length) return at("sources").append(make("p", { class: "note" }, "No source was packed."));
  at("sources").append(...data.sources.map((source) => make("article", { id: source.id, "aria-label": `Source ${source.id}` },
    make("h4", {}, tag(citedSources.has(source.id) ? "cited" : "packed", source.id + (citedSources.has(source.id) ? " ✓" : "")), " ", source.title),
    ...source.places.flatMap((place) => [
      make("p", { class: "quiet" }, [place.doc_id, place.section, place.page && `page ${place.page}`, `characters ${place.start} to ${place.end}`,
        place.from && `in force from ${place.from}`].filter(Boolean).join(" · ")),
      make("p", { class: "body" }, ...marked(place.body, place.marks))]),
    citedSources.has(source.id) ? make("p", {}, make("a", { href: "#said" }, "Back to the answer")) : "")));
}

// -- 8: the clock -----------------------------------------------------------------------------------------------------

function drawTimes() {
  const times = Object.entries(data.timings), most = Math.max(...times.map(([, time]) => time), 1e-9);
  const total = times.reduce((sum, [, time]) => sum + time, 0);
  at("times").append(make("p", { class: "verdict" }, make("strong", {}, `${(1000 * total).toFixed(0)} milliseconds`), " in all."),
    make("dl", { class: "times" }, ...times.flatMap(([name, time]) => [make("dt", {}, name),
      make("dd", {}, bar(time / most, "time"), make("span", { class: "figure" }, `${(1000 * time).toFixed(2)} ms`))])));
}

// -- A chunk on its own -----------------------------------------------------------------------------------------------

function openChunk(number) {
  const { id, title, section, body, from } = chunk(number);
  at("chunk-title").textContent = title;
  at("chunk-place").textContent = [id, section, from && `in force from ${from}`].filter(Boolean).join(" · ");
  at("chunk-ranks").replaceChildren(...Object.keys(LISTS).map((stage) => make("span", {}, tag(stage, LISTS[stage]),
    places[stage].has(number) ? ` place ${places[stage].get(number)}, ${shown(runs[stage][places[stage].get(number) - 1][1], 4)}` : " not there")));
  at("chunk-body").textContent = unwrapped(body);
  at("chunk").showModal();
}

for (const draw of [drawTop, drawBands, drawRetrievers, setControls, drawMovesTable, drawMatches, drawGuard, drawBudget,
  drawDropped, drawPrompt, drawAnswer, drawSources, drawTimes]) draw();
new ResizeObserver(drawMoves).observe(at("moves"));
at("controls").addEventListener("input", drawFusion);
at("as-it-was").addEventListener("click", setControls);
at("match").addEventListener("change", drawHeat);
at("chunk-close").addEventListener("click", () => at("chunk").close());
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-chunk]");
  if (opener) openChunk(Number(opener.getAttribute("data-chunk")));
});
if (location.hash) location.replace(location.hash);                     // what it names is only there now
