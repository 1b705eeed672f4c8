"use strict";
// One page at a time, named by the part of the address behind #: leaderboard, claims, plots,
// queries, compare, cell; then the board and what is shown of it; then, behind ?, how its table is
// sorted and filtered. All text is set as text, never as HTML.
const { season } = window.rematch;
const $ = (id) => document.getElementById(id);
const DASH = "\u2013";

// Elements ---------------------------------------------------------------------------------------

function make(tag, facts = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name === "on") for (const [kind, act] of Object.entries(value)) element.addEventListener(kind, act);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const number = (value, digits = 1) =>
  value === null || value === undefined ? DASH : value.toFixed(digits);
const digitsOf = (metric) => (metric.startsWith("overlap") || metric === "one_minus_ks" ? 3 : 1);
const between = (ends, digits = 1) => (ends ? `[${number(ends[0], digits)}, ${number(ends[1], digits)}]` : DASH);
const endsOf = (of) => (typeof of?.low === "number" ? [of.low, of.high] : null);
const place = (...parts) => "#" + parts.map(encodeURIComponent).join("/");
const link = (text, ...parts) => make("a", { href: place(...parts) }, text);

// A table of rows of cells; a cell is text, a number, an element, or {shown, sort}.
function table(caption, heads, rows) {
  const shown = (cell) => (cell !== null && typeof cell === "object" && "shown" in cell ? cell.shown : cell);
  const sort = (cell) => (cell !== null && typeof cell === "object" && "sort" in cell ? cell.sort : undefined);
  const isNumber = (cell) => typeof sort(cell) === "number" || typeof cell === "number";
  const numeric = heads.map((_, at) => rows.some((row) => isNumber(row[at])));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, at) => {
      const content = shown(cell), text = content instanceof Element ? content.textContent : null;
      const facts = { class: numeric[at] ? "number" : null, "data-order": sort(cell), "data-search": text };
      return make(at ? "td" : "th", at ? facts : { scope: "row" }, typeof content === "number" ? number(content) : content);
    })));
  return make("table", { class: "plain" }, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", { scope: "col", class: numeric[at] ? "number" : null }, head)))),
    make("tbody", {}, ...body));
}

// DataTables makes it sortable and searchable, with the keyboard too; the address keeps both.
function interactive(element, options = {}) {
  const box = make("div", { class: "scroll" }, element), kept = new URLSearchParams(location.hash.split("?")[1]);
  $("page").append(box);
  element.classList.replace("plain", "compact");
  const grid = window.tables.jQuery(element).DataTable({
    paging: element.tBodies[0].rows.length > 100, pageLength: 50, autoWidth: false, search: { search: kept.get("find") ?? "" },
    language: { search: "Filter rows", info: "_TOTAL_ rows", infoFiltered: "of _MAX_", infoEmpty: "no rows", lengthMenu: "_MENU_ rows a page" },
    ...options, order: kept.has("by") ? [[Number(kept.get("by")), kept.get("order")]] : options.order ?? [],
  });
  if (kept.has("only")) grid.column(Number(kept.get("column"))).search(kept.get("only"), { exact: true }).draw();
  grid.on("draw", () => {
    const [by, order] = grid.order()[0] ?? [], column = grid.columns().indexes().toArray().find((at) => grid.column(at).search());
    const facts = Object.entries({ find: grid.search(), by, order, column, only: grid.column(column ?? 0).search() }).filter(([, value]) => value || value === 0);
    history.replaceState(null, "", `${location.hash.split("?")[0] || "#leaderboard"}?${new URLSearchParams(facts)}`);
  });
  return grid;
}

// A choice among the values of a column.
const chooser = (grid, label, id, column, names) => choice(label, id, [["", "all"], ...names.map((name) => [name, name])], grid.column(column).search(),
  (name) => grid.column(column).search(name, { exact: Boolean(name) }).draw());
const folded = (text, ...children) => make("details", {}, make("summary", {}, text), ...children);

function choice(label, id, values, chosen, act) {
  const select = make("select", { id, on: { change: (event) => act(event.target.value) } },
    ...values.map(([value, text]) => make("option", { value }, text)));
  select.value = chosen;
  return make("label", {}, `${label} `, select);
}

function start(title, ...more) {
  $("page").replaceChildren(make("h2", { id: "title" }, title), ...more.filter(Boolean));
  document.title = `${title} \u00b7 Rematch ${season.season}`;
}

const loading = {};
function load(path) {
  loading[path] ??= new Promise((done, lost) => {
    document.head.append(make("script", { src: path, on: { load: done, error: () => lost(new Error(`${path} is not there`)) } }));
  });
  return loading[path];
}

// Boards -----------------------------------------------------------------------------------------

let board = season.boards[0];
const keyOf = (each) => [each.dataset, each.task, each.layer].filter(Boolean).join("/");
const standing = (preset) => board.rows.find((each) => each.preset === preset);
const played = () => board.rows.filter((each) => each.status === "ok");

const flagsOf = (each) => Object.entries(each.place?.flags ?? {});
const mark = ([kind, text]) => make("span", { class: "mark", title: text }, kind);
const marks = (each, but = []) => make("div", {}, ...flagsOf(each).filter(([kind]) => !but.includes(kind)).map(mark));

// An interval as a line on a scale, which ends at its left, with its mean as a dot; the numbers are
// beside it.
function bar(ends, mean, [low, high]) {
  const at = (value) => 4 + 152 * Math.max(0, (value - low) / (high - low || 1)), svg = (tag, facts) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(facts)) element.setAttribute(name, value);
    return element;
  };
  const box = svg("svg", { width: 160, height: 12, class: "bar", "aria-hidden": "true" });
  box.append(svg("line", { x1: at(ends[0]), x2: at(ends[1]), y1: 6, y2: 6 }), svg("circle", { cx: at(mean), cy: 6, r: 3 }));
  return box;
}

// Two rows that are picked are compared.
function picker(each) {
  const act = () => {
    const [first, second] = [...document.querySelectorAll(".pick:checked")].map((box) => box.value);
    if (second) location.hash = place("compare", keyOf(board), first, second);
  };
  return make("input", { type: "checkbox", class: "pick", value: each.preset, "aria-label": `Compare ${each.title}`, on: { change: act } });
}

function leaderboard() {
  const main = season.headings[board.ranked_by];
  const methods = [...new Set(board.rows.map((each) => each.method))].sort();
  start(board.title + (board.layer ? `, judged by ${board.layer}` : ""), make("p", {}, `Results on the test split (${board.split}): ${board.test.images} images, ${board.test.captions} captions. `
    + (board.small ? "So few test queries allow no conclusion. " : "")
    + `Ranks: those that a row could have by ${main}, as rows that are not significantly different can change places. ` + "A mark says how a row differs from its paper; point at it, or open the preset, to read why. Pick two rows to compare them."));
  const filters = make("div", { class: "filters" }), [first] = played();
  const shared = played().length > 1 ? flagsOf(first).filter(([kind]) => played().every((each) => each.place?.flags?.[kind])) : [];
  if (shared.length) $("page").append(make("p", {}, "All rows: ", ...shared.map(mark)));
  $("page").append(filters);
  const every = played().slice(0, 20).map((each) => endsOf(each.place)).filter(Boolean), span = [Math.min(...every.map(([low]) => low)), Math.max(...every.map(([, high]) => high))];
  const others = board.metrics.filter((name) => name !== board.ranked_by);
  const measured = (each, name) => ({ shown: number(each.metrics[name], digitsOf(name)), sort: each.metrics[name] ?? -1 });
  const heads = ["preset", "rank", main, `${season.level} interval`, ...others.map((name) => season.headings[name]), "S", "seeds", "ranks", "method"];
  const rows = played().map((each, at) => {
    const done = each.cells.filter((cell) => cell.status === "ok").length;
    const ends = endsOf(each.place);
    return [
      { shown: make("div", { class: "name" }, picker(each), " ", link(each.title, "cell", keyOf(board), each.preset), marks(each, shared.map(([kind]) => kind))), sort: each.title },
      { shown: String(at + 1), sort: at },
      measured(each, board.ranked_by),
      { shown: make("span", {}, ends ? bar(ends, each.place.mean, span) : "", between(ends), each.place?.is_of_these_trainings ? " *" : ""), sort: ends ? ends[0] : -1 },
      ...others.map((name) => measured(each, name)),
      { shown: number(each.metrics.overlap_s, 3), sort: each.metrics.overlap_s ?? 9 },
      { shown: `${done} of ${each.cells.length}`, sort: done },
      board.compared && each.place ? { shown: each.ranks, sort: each.place.ranks[1] } : DASH, each.method,
    ];
  });
  const column = heads.indexOf("method"), hidden = { columnDefs: [{ targets: column, visible: false }] };
  const grid = interactive(table(`Best ${main} first. The interval is of ${main}, drawn on the scale of the best 20; * over test images, of these trainings only`, heads, rows), hidden);
  filters.append(chooser(grid, "Method", "method", column, methods));
  const lost = board.rows.filter((each) => each.status !== "ok");
  if (lost.length) $("page").append(folded(`${lost.length} presets without a result`, table("Why", ["preset", "status", "reason"],
    lost.map((each) => [link(each.title, "cell", keyOf(board), each.preset), each.status.replace("_", " "), each.reason]))));
}

function cellPage(preset) {
  const each = standing(preset);
  if (!each) return missing(preset);
  start(each.title, make("p", {}, `${preset}, method ${each.method}, on ${board.dataset}. `, link("Queries", "queries", keyOf(board), preset), " ", link("Side by side", "compare", keyOf(board), preset)));
  if (each.status !== "ok") $("page").append(make("p", { class: "failed" }, `${each.status.replace("_", " ")}: ${each.reason}`));
  const page = $("page"), add = (...elements) => page.append(make("div", { class: "scroll" }, ...elements));
  const notes = flagsOf(each);
  if (notes.length) add(table("How it differs from its paper, and what its numbers lack", ["mark", "why"], notes));
  const said = season.claims.filter((claim) => claim.dataset === board.dataset && claim.parts.some((part) => [part.first, part.second].includes(each.title)));
  if (said.length) add(table("What is claimed of it, and what holds here", ["claim", "paper", "verdict", "why"], said.map((claim) => [
    make("span", { class: "wide" }, claim.statement), claim.paper, claim.conclusion, make("span", { class: "wide" }, claim.reason)])));
  const heads = ["seed", "status", ...board.metrics.map((name) => season.headings[name]), "selected epoch", "training (s)", "folder"];
  add(table("Cells", heads, each.cells.map((cell) => [
    String(cell.seed), cell.status === "ok" ? "ok" : `${cell.status.replace("_", " ")}: ${cell.reason}`,
    ...board.metrics.map((name) => ({ shown: number(cell.metrics[name], digitsOf(name)), sort: cell.metrics[name] ?? -1 })),
    cell.selected_epoch === null ? DASH : String(cell.selected_epoch), number(cell.seconds), cell.folder,
  ])));
  const { options, scaled } = each.cells[0];
  page.append(folded("Options of the first cell",
    table("What the season scaled is marked", ["option", "value", ""], Object.entries(options).map(([name, value]) => [name, String(value), scaled.includes(name) ? "scaled" : ""]))));
  return draw([preset]);
}

function claims() {
  start("Claims", make("p", {}, "Every claim of the papers, as the records have it. The verdict generalises to new images and trainings; the next column is for this test set only."
    + (board.layer ? " Right is a caption's own image, whatever the board counts." : "")));
  const filters = make("div", { class: "filters" });
  $("page").append(filters);
  const here = season.claims.filter((claim) => claim.dataset === board.dataset).map((claim) => ({ ...claim, part: claim.parts[claim.decisive] }));
  const run = here.filter((claim) => claim.part), others = here.filter((claim) => !claim.part);
  const rows = run.map((claim) => [
    { shown: make("span", { class: "wide" }, claim.statement + (claim.counted ? "" : claim.is_elsewhere ? " (said of other data, not counted)" : " (not counted)")), sort: claim.statement }, claim.paper,
    { shown: make("strong", { class: claim.conclusion === "holds" ? "holds" : claim.conclusion === "reversed" ? "reversed" : "" }, claim.conclusion), sort: claim.conclusion },
    claim.on_test_set ?? DASH,
    { shown: claim.identical ? "identical" : number(claim.part.difference, claim.part.decimals), sort: claim.part.difference }, claim.identical ? DASH : between(endsOf(claim.part), claim.part.decimals),
    make("span", { class: "wide" }, `${claim.reason}. `, ...claim.cautions.map((text) => make("span", { class: "mark" }, text)), claim.where),
  ]);
  const heads = ["claim", "paper", "verdict", "on this test set", "difference", `${season.level} interval`, "why, and where the paper says so"];
  const grid = interactive(table(`Claims on ${board.title}`, heads, rows));
  filters.append(chooser(grid, "Verdict", "verdict", 2, [...new Set(run.map((claim) => claim.conclusion))].sort()));
  if (others.length) $("page").append(folded(`${others.length} claims that were not run`, table("Why", ["claim", "paper", "reason"], others.map((claim) => [claim.statement, claim.paper, claim.reason]))));
}

// Plots ------------------------------------------------------------------------------------------

async function plot(box, title, spec, note) {
  const figure = make("figure", {}), stage = make("div", {});
  figure.append(stage, make("figcaption", {}, note));
  box.append(figure);
  const dark = document.documentElement.classList.contains("dark");
  const whole = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", width: 420, height: 260, title, description: `${title}. ${note}`, background: null, ...spec };
  await window.vegaEmbed(stage, whole, { actions: false, renderer: "svg", theme: dark ? "dark" : undefined });
}

const legend = { labelLimit: 260, symbolLimit: 40 };
const ofPairs = () => ({ field: "pairs", type: "nominal", scale: { range: ["#e69f00", "#56b4e9"] }, legend });
// A preset has one colour in all plots of a season, whatever is drawn beside it, and shares it with no other.
const domain = [...new Set(season.boards.flatMap((each) => each.rows.map((row) => row.preset)))];
const scale = { domain, range: domain.map((_, at) => `hsl(${(at * 137.508) % 360}, 65%, ${[45, 62, 54][at % 3]}%)`) };
const ofPresets = (values) => ({ field: "preset", type: "nominal", scale, legend: { ...legend, values } });

async function draw(presets) {
  const box = make("div", { class: "plots", id: "plots" }), at = location.hash;
  $("page").append(make("h3", {}, "Plots"), box);
  await Promise.all([load("vega.js"), load("data/plots.js")]);
  if (location.hash !== at) return;
  const plots = window.rematch.plots, of = (preset) => plots[`${board.dataset}/${preset}`] ?? { curves: [] };
  for (const preset of presets) {
    const scores = of(preset).scores;
    if (!scores?.edges) continue;
    const values = ["matched", "unmatched"].flatMap((pairs) => scores[pairs].map((share, bin) => ({ pairs, share, low: scores.edges[bin], high: scores.edges[bin + 1] })));
    await plot(box, `Scores of ${preset}`, { data: { values }, mark: { type: "bar", opacity: 0.6, binSpacing: 0 }, encoding: {
      x: { field: "low", type: "quantitative", bin: { binned: true }, title: "score", axis: { tickCount: 6, labelOverlap: true } }, x2: { field: "high" },
      y: { field: "share", type: "quantitative", stack: null, title: "share of the pairs" }, color: ofPairs() } },
    `S, the overlap of matched and unmatched pairs of this training, is ${number(scores.overlap_s, 3)}.`);
  }
  const curves = presets.flatMap((preset) => of(preset).curves.flatMap(({ seed, val_rsum }) => val_rsum.map((rsum, epoch) => ({ preset, cell: `${preset} ${seed}`, epoch: epoch + 1, rsum }))));
  if (curves.length) await plot(box, "Training", { data: { values: curves }, mark: { type: "line", tooltip: true }, encoding: {
    x: { field: "epoch", type: "quantitative", axis: { tickMinStep: 1 } }, y: { field: "rsum", type: "quantitative", title: "validation rsum", scale: { zero: false } }, detail: { field: "cell" }, color: ofPresets(presets.filter((preset) => of(preset).curves.length)) } },
  "One line for each training.");
}

async function plotsPage() {
  start(`Plots of ${board.title}`);
  const presets = played().map((each) => each.preset), at = location.hash;
  const box = make("div", { class: "plots" }), chosen = presets.slice(0, 4);
  const boxes = presets.map((preset) => make("label", {}, make("input", { type: "checkbox", value: preset, on: { change: redraw } }), ` ${preset}`));
  boxes.forEach((label) => { label.firstChild.checked = chosen.includes(label.firstChild.value); });
  $("page").append(box, make("details", {}, make("summary", {}, `Presets that are drawn: the first ${chosen.length} of ${presets.length}, by ${season.headings[board.ranked_by]}; choose others`), make("fieldset", { class: "filters" }, make("legend", {}, "Distributions and curves of"), ...boxes)));
  const area = make("div", {});
  $("page").append(area);
  async function redraw() {
    $("plots")?.previousSibling.remove();
    $("plots")?.remove();
    await draw(boxes.map((label) => label.firstChild).filter((input) => input.checked).map((input) => input.value));
  }
  await load("vega.js");
  if (location.hash !== at) return;
  await redraw();
}

// Queries ----------------------------------------------------------------------------------------

async function answers(preset) {
  await Promise.all([load(`data/items/${encodeURIComponent(board.dataset)}.js`), load(`data/queries/${encodeURIComponent(board.dataset)}/${encodeURIComponent(preset)}.js`)]);
  return [window.rematch[`items ${board.dataset}`], window.rematch[`queries ${board.dataset}/${preset}`]];
}

const captionOf = (items, at) => items.texts[at] ?? items.captions[at];
function imageOf(items, at) {
  const name = items.files[at], first = items.owners.indexOf(at);
  return name ? make("img", { src: `images/${encodeURIComponent(board.dataset)}/${name}`, alt: captionOf(items, first), loading: "lazy" }) : make("span", {}, items.images[at]);
}

function queryText(items, way, at) {
  return way === "i2t" ? items.images[at] : captionOf(items, at);
}

function showQuery(items, found, way, at) {
  const isImage = way === "i2t", groupOf = (caption) => items.groups[items.owners[caption]];
  const group = isImage ? items.groups[at] : groupOf(at);
  const results = (found[way].items[at] ?? []).map((item) => {
    const isRelevant = (isImage ? groupOf(item) : items.groups[item]) === group;
    return make("li", { class: isRelevant ? "relevant" : "" }, isImage ? captionOf(items, item) : imageOf(items, item), isRelevant ? make("span", {}, " (relevant)") : "");
  });
  $("query").replaceChildren(make("h3", { tabindex: "-1" }, "Query"), make("div", { class: "query" }, isImage ? imageOf(items, at) : captionOf(items, at)),
    make("p", {}, `The first relevant result is in position ${found[way].ranks[at] + 1}, seed ${found.seed}.`),
    results.length ? make("ol", { class: "results" }, ...results) : make("p", {}, "What was retrieved is not kept here: run the preset again, or dvc pull with a remote; then write the site again."));
  $("query").firstChild.focus();
}

async function queries(preset, wanted) {
  if (board.lacks) return start("Queries", make("p", {}, board.lacks));
  if (board.task !== "retrieval") return start("Queries", make("p", {}, "Only images and captions can be browsed; choose another dataset."));
  const each = standing(preset) ?? played()[0], at = location.hash;
  if (!each) return start("Queries", make("p", {}, "No preset has a result."));
  const way = board.ways.includes(wanted) ? wanted : board.ways[board.ways.length - 1];
  start("Queries");
  const [items, found] = await answers(each.preset);
  if (location.hash !== at) return;
  $("page").append(make("div", { class: "filters" },
    choice("Preset", "preset", played().map((other) => [other.preset, other.title]), each.preset, (name) => { location.hash = place("queries", keyOf(board), name, way); }),
    choice("Direction", "way", board.ways.map((name) => [name, name === "i2t" ? "image to text" : "text to image"]), way, (name) => { location.hash = place("queries", keyOf(board), each.preset, name); })),
  make("section", { id: "query", "aria-live": "polite" }));
  const rows = found[way].ranks.map((rank, query) => [
    { shown: make("button", { type: "button", on: { click: () => showQuery(items, found, way, query) } }, queryText(items, way, query)), sort: queryText(items, way, query) },
    { shown: String(rank + 1), sort: rank + 1 }]);
  interactive(table("Position of the first relevant result", ["query", "position"], rows), { order: [[1, "desc"]] });
}

// Side by side -----------------------------------------------------------------------------------

async function compare(first, second) {
  const names = played().map((each) => each.preset), at = location.hash;
  if (names.length < 2) return start("Side by side", make("p", {}, "Two presets with results are needed."));
  first = names.includes(first) ? first : names[0];
  second = names.includes(second) && second !== first ? second : names.find((name) => name !== first);
  const options = played().map((each) => [each.preset, each.title]);
  const one = standing(first), other = standing(second);
  start("Side by side", make("div", { class: "filters" },
    choice("First", "first", options, first, (name) => { location.hash = place("compare", keyOf(board), name, second); }),
    choice("Second", "second", options, second, (name) => { location.hash = place("compare", keyOf(board), first, name); })));
  const metrics = [...board.metrics, "overlap_s"].filter((name) => one.metrics[name] !== undefined || other.metrics[name] !== undefined);
  $("page").append(make("div", { class: "scroll" }, table("Means over the seeds", ["", one.title, other.title, "difference"], [
    ...metrics.map((name) => [season.headings[name], number(one.metrics[name], digitsOf(name)), number(other.metrics[name], digitsOf(name)),
      one.metrics[name] === undefined || other.metrics[name] === undefined ? DASH : one.metrics[name] === other.metrics[name] ? "identical" : number(one.metrics[name] - other.metrics[name], digitsOf(name))]), ["marks", marks(one), marks(other), DASH]])));
  $("page").append(make("p", {}, "No difference here is adjusted for other comparisons; the ranks of the leaderboard are."));
  if (board.lacks) $("page").append(make("p", {}, board.lacks));
  else if (board.task === "retrieval") await moved(first, second, at);
  if (location.hash === at) await draw([first, second]);
}

async function moved(first, second, at) {
  const [items, one] = await answers(first), [, other] = await answers(second);
  if (location.hash !== at) return;
  for (const way of board.ways) {
    const steps = one[way].ranks.map((rank, query) => ({ query, rank, other: other[way].ranks[query], step: Math.log1p(other[way].ranks[query]) - Math.log1p(rank) }));
    const won = steps.filter((row) => row.step > 0).length, lost = steps.filter((row) => row.step < 0).length;
    const ordered = [...steps].sort((a, b) => b.step - a.step);
    const rows = [...ordered.slice(0, 5), ...ordered.slice(-5)].map((row) => [make("div", { class: "query" }, way === "i2t" || items.files.length ? imageOf(items, way === "i2t" ? row.query : items.owners[row.query]) : "", way === "i2t" ? "" : captionOf(items, row.query)), String(row.rank + 1), String(row.other + 1)]);
    $("page").append(make("h3", {}, way === "i2t" ? "Image to text" : "Text to image"),
      make("p", {}, won + lost ? `Of ${steps.length} queries: ${won} won, ${lost} lost, ${steps.length - won - lost} equal.` : `All ${steps.length} queries: identical.`));
    if (won + lost) $("page").append(
      make("div", { class: "scroll" }, table("Largest rank changes: positions, of the first seed with a result", ["query", first, second], rows)));
  }
}

// Addresses, theme -------------------------------------------------------------------------------

const pages = { leaderboard, claims, plots: plotsPage, queries, compare, cell: cellPage };
const missing = (name) => start("Not found", make("p", {}, `${name}: there is no such thing in this season.`));

async function show() {
  if (location.hash === "#main") return;
  const [name, key, ...rest] = location.hash.slice(1).split("?")[0].split("/").map(decodeURIComponent);
  board = season.boards.find((each) => keyOf(each) === key) ?? board;
  $("board").value = keyOf(board);
  for (const anchor of document.querySelectorAll("nav a")) {
    const own = anchor.hash.slice(1).split("/")[0];
    anchor.hash = place(own, keyOf(board));
    if (own === (name || "leaderboard")) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  $("status").textContent = "";
  try {
    await (pages[name || "leaderboard"] ?? missing)(...(pages[name || "leaderboard"] ? rest : [name]));
  } catch (error) {
    $("status").textContent = error.message;
  }
}

function setTheme(isDark) {
  document.documentElement.classList.toggle("dark", isDark);
  $("theme").setAttribute("aria-pressed", String(isDark));
  $("theme").textContent = isDark ? "Light" : "Dark";
}

$("season").textContent = `${season.season}: ${season.title}`;
if (season.front) $("season").before(make("a", { href: "../index.html" }, "Ledger"), " ");
$("board").append(...season.boards.map((each) => make("option", { value: keyOf(each) }, `${each.title}, ${each.task}${each.layer ? `, by ${each.layer}` : ""}`)));
$("board").addEventListener("change", (event) => {
  const [name] = location.hash.slice(1).split(/[/?]/);
  location.hash = place(name === "cell" || !name ? "leaderboard" : name, event.target.value);
});
$("theme").addEventListener("click", () => { setTheme(!document.documentElement.classList.contains("dark")); show(); });
const wanted = window.matchMedia("(prefers-color-scheme: dark)");
wanted.addEventListener("change", () => { setTheme(wanted.matches); show(); });
setTheme(wanted.matches);
window.addEventListener("hashchange", show);
show();
