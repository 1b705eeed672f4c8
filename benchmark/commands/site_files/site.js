"use strict";
// One page at a time, named by the part of the address behind #: leaderboard, claims, plots,
// queries, compare, cell; then the board and what is shown of it; then, behind ?, how its table is
// sorted and filtered, by the names of its columns.
const { season } = window.rematch;
const digitsOf = (metric) => (metric.startsWith("overlap") || metric === "one_minus_ks" ? 3 : 1);
const place = (...parts) => "#" + parts.map(encodeURIComponent).join("/");
const link = (text, ...parts) => make("a", { href: place(...parts) }, text);

// Tables -----------------------------------------------------------------------------------------

// A table of rows of cells; a cell is text, a number, an element, or {shown, sort}.
function table(caption, heads, rows) {
  const shown = (cell) => (cell !== null && typeof cell === "object" && "shown" in cell ? cell.shown : cell);
  const sort = (cell) => (cell !== null && typeof cell === "object" && "sort" in cell ? cell.sort : undefined);
  const numeric = heads.map((_, at) => rows.some((row) => isNumber(sort(row[at])) || isNumber(row[at])));
  const body = rows.map((row) =>
    make("tr", {}, ...row.map((cell, at) => {
      const content = shown(cell), text = content instanceof Element ? content.textContent : null;
      const facts = { class: numeric[at] ? "number" : null, "data-order": sort(cell), "data-search": text, "data-label": heads[at] };
      return make(at ? "td" : "th", at ? facts : { scope: "row" }, isNumber(content) ? number(content) : dimmed(content));
    })));
  return make("table", { class: "plain" }, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head, at) => make("th", { scope: "col", class: numeric[at] ? "number" : null }, head)))),
    make("tbody", {}, ...body));
}

// DataTables makes it sortable and searchable, with the keyboard too; the address keeps both. On a
// narrow screen each row is a card. `file` and `records`, one of each row, are for the download.
function interactive(caption, heads, rows, { file, records, ...options } = {}) {
  const kept = new URLSearchParams(location.hash.split("?")[1]), column = heads.indexOf(kept.get("column")), by = heads.indexOf(kept.get("by"));
  const element = table(caption, heads, rows), tools = make("div", { class: "filters" });
  $("page").append(make("div", { class: "scroll cards" }, element));
  element.classList.replace("plain", "compact");
  const paging = rows.length > 100, layout = { topStart: () => tools, bottomEnd: paging ? ["pageLength", "paging"] : null };
  const grid = window.tables.jQuery(element).DataTable({
    paging, layout, pageLength: 50, autoWidth: false, search: { search: kept.get("find") ?? "" },
    language: { search: "Filter rows", info: "_TOTAL_ rows", infoFiltered: "of _MAX_", infoEmpty: "no rows", lengthMenu: "_MENU_ rows a page" },
    ...options, order: by >= 0 ? [[by, kept.get("order")]] : options.order ?? [],
  });
  if (kept.has("only") && column >= 0) grid.column(column).search(kept.get("only"), { exact: true }).draw();
  grid.on("draw", () => {
    const [at, order] = grid.order()[0] ?? [], filtered = grid.columns().indexes().toArray().find((each) => grid.column(each).search());
    const facts = Object.entries({ find: grid.search(), by: heads[at], order, column: heads[filtered], only: grid.column(filtered ?? 0).search() }).filter(([, value]) => value);
    history.replaceState(null, "", `${location.hash.split("?")[0] || "#leaderboard"}?${new URLSearchParams(facts)}`);
  });
  const turned = (order) => (order === "asc" ? "desc" : "asc");
  tools.append(make("span", { class: "narrow" },
    choice("Sort by", "sort", [["", "as listed"], ...heads.map((head, at) => [at, head])], grid.order()[0]?.[0] ?? "", (at) => grid.order(at ? [[Number(at), "asc"]] : []).draw()), " ",
    make("button", { type: "button", on: { click: () => grid.order(grid.order().map(([at, order]) => [at, turned(order)])).draw() } }, "Reverse")));
  if (records) tools.append(make("button", { type: "button", id: "download", on: {
    click: () => download(`${file}.csv`, grid.rows({ search: "applied", order: "applied" }).indexes().toArray().map((at) => records[at])) } }, "Download these rows (CSV)"));
  return { grid, tools };
}

// A choice among the values of a column.
function chooser({ grid, tools }, label, id, column, names) {
  const act = (name) => grid.column(column).search(name, { exact: Boolean(name) }).draw();
  tools.prepend(choice(label, id, [["", "all"], ...names.map((name) => [name, name])], grid.column(column).search(), act));
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
const marks = (each) => make("div", {}, ...flagsOf(each).map(mark));
const tag = (kind, title) => make("abbr", { class: "flag", title }, season.letters[kind] ?? kind);
const letter = ([kind, text]) => tag(kind, `${kind}: ${text}`);

// An interval as a line on a scale, with its mean as a dot, and where the scale has them a tick at
// zero and one at what is printed; the numbers are beside it. What lies below the scale is an arrow.
function bar(ends, mean, [low, high], ticks = {}) {
  const at = (value) => 4 + 92 * Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
  const box = drawn("svg", { width: 100, height: 12, class: "bar", "aria-hidden": "true" });
  if (ends[1] < low) {
    box.append(drawn("path", { class: "below", d: "M8 2L2 6L8 10" }));
    return box;
  }
  for (const [kind, value] of Object.entries(ticks)) if (isNumber(value)) box.append(drawn("path", { class: kind, d: `M${at(value)} 0V12` }));
  box.append(drawn("line", { x1: at(ends[0]), x2: at(ends[1]), y1: 6, y2: 6 }), drawn("circle", { cx: at(mean), cy: 6, r: 3 }));
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

const rankedName = (each) => make("span", { class: "name", title: each.title }, picker(each), " ", make("a", { href: place("cell", keyOf(board), each.preset) }, ...named(each.name)));
const doneOf = (each) => each.cells.filter((cell) => cell.status === "ok");
function trainingOf(each) {
  const seconds = doneOf(each).map((cell) => cell.seconds).filter(isNumber);
  return seconds.length ? seconds.reduce((sum, value) => sum + value, 0) / seconds.length : null;
}

// The rank of a row, from 1; 0 if it is not on this board.
const rankIn = (preset) => played().findIndex((each) => each.preset === preset) + 1;

// Scores that are corrected, parts of those of one preset, and those of another inference share its training.
function sharedTraining(each) {
  if (each.trained_as.length !== 1) return null;
  const [preset] = each.trained_as, rank = rankIn(preset);
  const title = `the training of ${preset}`;
  return rank ? make("a", { href: place("cell", keyOf(board), preset), title }, `as #${rank}`) : make("span", { title }, "shared");
}

// A row as a line of a file, with all digits.
function rowRecord(each, at) {
  const [low, high] = endsOf(each.place) ?? [], [first, last] = each.place?.ranks ?? [], main = board.ranked_by;
  const facts = { season: season.season, dataset: board.dataset, task: board.task, layer: board.layer, preset: each.preset, title: each.title, method: each.method };
  const ranked = { rank: at + 1, rank_first: first, rank_last: last, [main]: each.metrics[main], [`${main}_low`]: low, [`${main}_high`]: high };
  const others = board.metrics.filter((name) => name !== main).map((name) => [name, each.metrics[name]]);
  return { ...facts, ...ranked, ...Object.fromEntries(others), overlap_s: each.metrics.overlap_s, training_seconds: trainingOf(each), trained_as: each.trained_as.join("; "), seeds: doneOf(each).length, flags: flagsOf(each).map(([kind]) => kind).join("; ") };
}

function leaderboard() {
  const main = season.headings[board.ranked_by], rows = played(), [first] = rows, { took, trainings, settings } = board.made;
  start(board.title + (board.layer ? `, judged by ${board.layer}` : ""), make("p", {}, `Results on the test split (${board.split}): ${board.test.images} images, ${board.test.captions} captions. `
    + (board.small ? "So few test queries allow no conclusion. " : "")
    + "Beside a rank stand the ranks that a row could have, as rows that are not significantly different can change places. Pick two rows to compare them; open one to read what its flags mean."));
  const shared = rows.length > 1 ? flagsOf(first).filter(([kind]) => rows.every((each) => each.place?.flags?.[kind])) : [];
  if (shared.length) $("page").append(make("p", {}, "All rows: ", ...shared.map(mark)));
  const every = rows.slice(0, 20).map((each) => endsOf(each.place)).filter(Boolean), span = [Math.min(...every.map(([low]) => low)), Math.max(...every.map(([, high]) => high))];
  const others = board.metrics.filter((name) => name !== board.ranked_by);
  const measured = (each, name) => ({ shown: number(each.metrics[name], digitsOf(name)), sort: each.metrics[name] ?? -1 });
  const isOwn = ([kind]) => !shared.some(([name]) => name === kind);
  const heads = ["preset", "rank", main, `${season.level} interval`, ...others.map((name) => season.headings[name]), "S", "training (s)", "seeds", "flags", "method"];
  const cells = rows.map((each, at) => {
    const ends = endsOf(each.place), done = doneOf(each).length, seconds = trainingOf(each);
    return [
      { shown: rankedName(each), sort: each.title },
      { shown: rankOf(at + 1, board.compared ? each.place?.ranks : null), sort: at },
      measured(each, board.ranked_by),
      { shown: make("span", { class: "interval" }, ends ? bar(ends, each.place.mean, span) : "", dimmed(`${between(ends)}${each.place?.is_of_these_trainings ? " *" : ""}`)), sort: ends ? ends[0] : -1 },
      ...others.map((name) => measured(each, name)),
      { shown: number(each.metrics.overlap_s, 3), sort: each.metrics.overlap_s ?? 9 },
      { shown: sharedTraining(each) ?? number(seconds, 0), sort: seconds ?? -1 },
      { shown: done === each.cells.length ? String(done) : `${done} of ${each.cells.length}`, sort: done },
      make("span", { class: "letters" }, ...flagsOf(each).filter(isOwn).map(letter)), each.method,
    ];
  });
  const column = heads.indexOf("method"), file = [season.season, board.dataset, board.task, board.layer].filter(Boolean).join("-");
  const shown = interactive(`Best ${main} first. The interval is of ${main}, drawn on the scale of the best 20; an arrow lies below it; * over test images, of these trainings only`, heads, cells,
    { columnDefs: [{ targets: column, visible: false }], file, records: rows.map(rowRecord) });
  chooser(shown, "Method", "method", column, [...new Set(board.rows.map((each) => each.method))].sort());
  const kinds = [...new Set(rows.flatMap((each) => flagsOf(each).map(([kind]) => kind)))];
  const words = [["rsum", "the recalls R@1, R@5 and R@10 of all directions, added up"], ["R@K", "percent of queries with a right answer among the first K"], ["i2t, t2i, p2r", "images search captions, captions search images, phrases search boxes"],
    ["MedR", "median position of the first right answer"], ["S", "how far the scores of matched and unmatched pairs overlap: 0 is apart, 1 the same; drawn under Plots and S. For a row with corrected scores it is that of the corrected scores, and cannot be compared with other rows"], ["training (s)", "seconds of one training, mean over the seeds; of a fusion of several presets, those of all their trainings; as #8: the row of rank 8 has the same trainings"]];
  const columns = words.map(([name, meaning]) => [make("span", {}, "column ", make("strong", {}, name)), meaning]);
  const letters = kinds.map((kind) => [make("span", {}, "flag ", tag(kind)), kind]);
  $("page").append(folded("What the columns and the letters of flags mean", table("A flag says what to know of a row before it is trusted", ["column or flag", "meaning"], [...columns, ...letters])));
  if (trainings) $("page").append(make("p", {}, `What it cost: ${trainings === 1 ? `1 training took ${took}` : `${trainings} trainings took ${took}, one after the other`}, on ${settings.join("; or ")}. In a clone, `, make("code", {}, `rematch doctor ${season.season} --estimate`), " says how many hours it would take on your machine."));
  const lost = board.rows.filter((each) => each.status !== "ok");
  if (lost.length) $("page").append(folded(`${lost.length} presets without a result`, table("Why", ["preset", "status", "reason"],
    lost.map((each) => [link(each.title, "cell", keyOf(board), each.preset), each.status.replace("_", " "), each.reason]))));
}

// Why to trust a row: its trainings and their spread, intervals, and what is as in its paper.
function speaksFor(each, main) {
  const values = doneOf(each).map((cell) => cell.metrics[board.ranked_by]), ends = endsOf(each.place), [first, last] = each.place.ranks;
  const told = [];
  if (values.length > 1) told.push(`${values.length} trainings, whose ${main} differs by at most ${number(Math.max(...values) - Math.min(...values))} points`);
  if (ends && !each.place.is_of_these_trainings) told.push(`a ${season.level} interval for other images and trainings: ${main} ${between(ends)}`);
  if (board.compared) told.push(first === last ? `no other rank than ${first} is possible at ${season.level}` : `a rank between ${first} and ${last} at ${season.level}`);
  if (each.features_of_paper) told.push("the features of its paper");
  if (board.split === "official") told.push("the official split of the dataset");
  return told;
}

// Why not: its flags, the gravest first as they come, and the rows that could be as good.
function speaksAgainst(each) {
  const flags = flagsOf(each).map(([kind, text]) => make("span", {}, tag(kind, kind), " ", make("strong", {}, kind), `: ${text}`));
  const rivals = each.place.rivals.map((rank) => played()[rank - 1]);
  const others = rivals.flatMap((other, index) => [index ? "; " : "", link(other.title, "compare", keyOf(board), each.preset, other.preset)]);
  if (each.place.is_of_these_trainings) flags.push("its interval is for other images only: nothing is known of other trainings");
  if (!board.compared) return [...flags, "its rank is not sure: nothing is concluded from so few queries or trainings"];
  return rivals.length ? [...flags, folded(`${rivals.length} of ${played().length - 1} other rows are not significantly different`, make("p", {}, ...others))] : flags;
}

// Where a row stands, and what speaks for and against it.
function standingOf(each) {
  if (!each.place) return null;
  const main = season.headings[board.ranked_by];
  const list = (title, told) => make("div", {}, make("h3", {}, title), make("ul", {}, ...(told.length ? told : ["nothing that is known here"]).map((text) => make("li", {}, text))));
  return make("div", {}, make("p", {}, `Rank ${rankIn(each.preset)} of ${played().length} by ${main}: ${number(each.place.mean)}.`),
    list("Speaks for it", speaksFor(each, main)), list("Speaks against it", speaksAgainst(each)));
}

// An option; of a correction or a fusion one is the options of other presets, by name.
function optionShown(value, scaled) {
  if (value === null || typeof value !== "object") return String(value);
  if (Array.isArray(value)) return value.join(", ");
  return make("ul", {}, ...Object.entries(value).map(([name, of]) => make("li", {}, `${name}${scaled.includes(name) ? " (scaled)" : ""}: `, optionShown(of, scaled))));
}

function cellPage(preset) {
  const each = standing(preset);
  if (!each) return missing(preset);
  start(each.title, make("p", {}, `${preset}, method ${each.method}, on ${board.dataset}. `, link("Queries", "queries", keyOf(board), preset), " ", link("Side by side", "compare", keyOf(board), preset)), standingOf(each));
  if (each.status !== "ok") $("page").append(make("p", { class: "failed" }, `${each.status.replace("_", " ")}: ${each.reason}`));
  const page = $("page"), add = (...elements) => page.append(make("div", { class: "scroll cards" }, ...elements));
  const said = season.claims.filter((claim) => claim.dataset === board.dataset && claim.parts.some((part) => [part.first, part.second].includes(each.title)));
  if (said.length) add(table("What is claimed of it, and what holds here", ["claim", "paper", "verdict", "why"], said.map((claim) => [
    make("span", { class: "wide" }, statementOf(claim)), season.papers[claim.paper], claim.conclusion, make("span", { class: "wide" }, claim.reason)])));
  const shown = [...board.metrics, "overlap_s"];
  const heads = ["seed", "status", ...shown.map((name) => season.headings[name]), "selected epoch", "training (s)", "folder"];
  add(table(`Cells${each.trained_as.length ? `, of the trainings of ${each.trained_as.join(" and ")}` : ""}`, heads, each.cells.map((cell) => [
    String(cell.seed), cell.status === "ok" ? "ok" : `${cell.status.replace("_", " ")}: ${cell.reason}`,
    ...shown.map((name) => ({ shown: number(cell.metrics[name], digitsOf(name)), sort: cell.metrics[name] ?? -1 })),
    cell.selected_epoch === null ? NONE : String(cell.selected_epoch), sharedTraining(each) ?? number(cell.seconds), cell.folder,
  ])));
  const { options, scaled } = each.cells[0];
  page.append(folded("Options of the first cell",
    table("What the season scaled is marked", ["option", "value", ""], Object.entries(options).map(([name, value]) => [name, optionShown(value, scaled), scaled.includes(name) ? "scaled" : ""]))));
  return draw([preset]);
}

// Claims -----------------------------------------------------------------------------------------

const VERDICTS = { holds: "holds", fails: "fails or no effect", open: "undecided", unrun: "not run" };
// What is neither held nor open failed.
const KINDS = { holds: "holds", undecided: "open", "not run": "unrun" };
const kindOf = (claim) => KINDS[claim.conclusion] ?? "fails";

// The claim; where it does not count, that it does not.
function statementOf(claim) {
  if (claim.counted) return claim.statement;
  return claim.statement + (claim.is_elsewhere ? " (said of other data, not counted)" : " (not counted)");
}

// A bar for each paper, its claims by verdict; elsewhere what is not counted.
function byPaper(listed) {
  const papers = [...new Set(listed.map((claim) => claim.paper))], most = Math.max(...papers.map((name) => listed.filter((claim) => claim.paper === name).length));
  const key = Object.entries(VERDICTS).map(([kind, text]) => make("span", {}, make("span", { class: `part ${kind}` }), ` ${text} `));
  return make("figure", { class: "papers" }, make("figcaption", {}, "Claims by paper: ", ...key), ...papers.map((name) => {
    const of = listed.filter((claim) => claim.paper === name), parts = Object.keys(VERDICTS).map((kind) => [kind, of.filter((claim) => kindOf(claim) === kind).length]).filter(([, count]) => count);
    const shown = parts.map(([kind, count]) => make("span", { class: `part ${kind}`, style: `width:${(24 * count) / most}rem`, title: `${VERDICTS[kind]}: ${count}` }, String(count)));
    return make("div", {}, make("span", { class: "paper" }, season.papers[name]), ...shown);
  }));
}

function claimRecord(claim) {
  const { metric, difference, low, high, printed, size, first, second } = claim.part;
  return { season: season.season, dataset: claim.dataset, paper: claim.paper, claim: claim.id, statement: claim.statement, counted: claim.counted, verdict: claim.conclusion, on_test_set: claim.on_test_set, metric, first, second, difference, low, high, printed, size, reason: claim.reason };
}

function claims() {
  start("Claims", make("p", {}, "The verdicts of this season on its own claims and on every claim of the papers, judged together, with Holm's adjustment over all of them. The front page judges each claim by itself, so a claim that is undecided here may be decided there. The verdict generalises to new images and trainings; the next column is for this test set only. The line is the interval, the dot the difference, the thin tick zero, the green one what the paper prints, each row on a scale of its own. A difference is positive where the first is better."
    + (board.layer ? " Right is a caption's own image, whatever the board counts." : "")));
  const here = season.claims.filter((claim) => claim.dataset === board.dataset).map((claim) => ({ ...claim, part: claim.parts[claim.decisive] }));
  const run = here.filter((claim) => claim.part), others = here.filter((claim) => !claim.part), counted = here.filter((claim) => claim.counted);
  if (counted.length) $("page").append(byPaper(counted));
  const grades = Object.entries(season.grades).map(([grade, verdicts]) => `The grade "${grade}" of the front page comes from these verdicts: ${verdicts.join(", ")}.`);
  $("page").append(make("p", { class: "variant" }, grades.join(" ")));
  const rows = run.map((claim) => {
    const { part } = claim, ends = claim.identical ? null : endsOf(part), far = Math.max(...[part.difference, part.printed, part.low, part.high].map(Math.abs));
    const scale = ends ? bar(ends, part.difference, [-far, far], { zero: 0, printed: part.printed }) : "";
    return [
      { shown: make("span", { class: "wide" }, statementOf(claim)), sort: claim.statement }, season.papers[claim.paper],
      { shown: make("strong", { class: kindOf(claim) }, claim.conclusion), sort: claim.conclusion },
      claim.on_test_set ?? NONE, claim.less_is_better ? make("span", {}, part.metric, make("span", { class: "variant" }, " (smaller is better)")) : part.metric,
      { shown: claim.identical ? "identical" : signed(part.difference, part.decimals), sort: part.difference },
      { shown: make("span", { class: "interval" }, scale, dimmed(between(ends, part.decimals, signed))), sort: ends ? ends[0] : -far },
      { shown: make("div", {}, dimmed(signed(part.printed, part.decimals)), part.size ? make("div", { class: "variant" }, part.size) : ""), sort: part.printed ?? -far },
      make("div", { class: "why" }, `${claim.reason}. ${claim.where}. `, claim.cautions.length ? folded(`${claim.cautions.length} to distrust`, make("ul", {}, ...claim.cautions.map((text) => make("li", {}, text)))) : ""),
    ];
  });
  const heads = ["claim", "paper", "verdict", "on this test set", "metric", "difference", `${season.level} interval`, "printed", "why, and where the paper says so"];
  const shown = interactive(`Claims on ${board.title}`, heads, rows, { file: `${season.season}-${board.dataset}-claims`, records: run.map(claimRecord) });
  chooser(shown, "Verdict", "verdict", 2, [...new Set(run.map((claim) => claim.conclusion))].sort());
  chooser(shown, "Paper", "paper", 1, [...new Set(run.map((claim) => season.papers[claim.paper]))].sort());
  if (others.length) $("page").append(folded(`${others.length} claims that were not run`, table("Why", ["claim", "paper", "reason"], others.map((claim) => [claim.statement, season.papers[claim.paper], claim.reason]))));
}

// Plots ------------------------------------------------------------------------------------------

async function plot(box, title, spec, note) {
  const figure = make("figure", {}), stage = make("div", {});
  figure.append(stage, make("figcaption", {}, note));
  box.append(figure);
  const dark = isDark();
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
    `S, the overlap of matched and unmatched pairs, is ${number(scores.overlap_s, 3)} in the training with seed ${scores.seed}.`);
  }
  const curves = presets.flatMap((preset) => of(preset).curves.flatMap(({ seed, val_rsum }) => val_rsum.map((rsum, epoch) => ({ preset, cell: `${preset} ${seed}`, epoch: epoch + 1, rsum }))));
  if (curves.length) await plot(box, "Training", { data: { values: curves }, mark: { type: "line", tooltip: true }, encoding: {
    x: { field: "epoch", type: "quantitative", axis: { tickMinStep: 1 } }, y: { field: "rsum", type: "quantitative", title: "validation rsum", scale: { zero: false } }, detail: { field: "cell" }, color: ofPresets(presets.filter((preset) => of(preset).curves.length)) } },
  "One line for each training.");
}

async function plotsPage() {
  start(`Plots of ${board.title}`, make("p", {}, "S is how far the scores of matched and unmatched pairs overlap: 0 is apart, 1 the same. The leaderboard has it for every row, the page of two rows its difference with an interval."));
  const presetsOf = (isCorrected) => played().filter((each) => each.corrected === isCorrected).map((each) => each.preset);
  const own = presetsOf(false), corrected = presetsOf(true), at = location.hash;
  const chosen = (own.length ? own : corrected).slice(0, 4);
  const box = (preset) => make("label", {}, make("input", { type: "checkbox", value: preset, on: { change: redraw } }), ` ${preset}`);
  const boxes = own.map(box), others = corrected.map(box), all = [...boxes, ...others].map((label) => label.firstChild);
  for (const input of all) input.checked = chosen.includes(input.value);
  const options = (title, labels) => (labels.length ? make("fieldset", { class: "filters" }, make("legend", {}, title), ...labels) : "");
  $("page").append(folded(`Presets that are drawn: the best ${chosen.length} of ${own.length || corrected.length} by ${season.headings[board.ranked_by]}; choose others`,
    options("Distributions and curves of", boxes), options("With corrected scores", others)));
  if (others.length && boxes.length) $("page").append(make("p", {}, `The ${others.length} presets with corrected scores are not drawn at first, since their S cannot be compared with that of others. You can still choose them.`));
  async function redraw() {
    $("plots")?.previousSibling.remove();
    $("plots")?.remove();
    await draw(all.filter((input) => input.checked).map((input) => input.value));
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

// Relevant items that are shown of a query: an image has five captions, a person may have more.
const RIGHT_SHOWN = 5;

function showQuery(items, found, way, at) {
  const isImage = way === "i2t", groupOf = (caption) => items.groups[items.owners[caption]];
  const group = isImage ? items.groups[at] : groupOf(at);
  const shown = (item) => (isImage ? captionOf(items, item) : imageOf(items, item));
  const isRight = (item) => (isImage ? groupOf(item) : items.groups[item]) === group;
  const results = (found[way].items[at] ?? []).map((item, position) => make("li", { class: isRight(item) ? "relevant" : "" },
    make("span", { class: "variant" }, `${position + 1} `), shown(item), isRight(item) ? make("span", {}, " (relevant)") : ""));
  const everything = [...(isImage ? items.captions : items.images).keys()];
  const right = everything.filter(isRight).slice(0, RIGHT_SHOWN).map((item) => make("li", { class: "relevant" }, shown(item)));
  $("query").replaceChildren(make("h3", { tabindex: "-1" }, "Query"), make("div", { class: "query" }, isImage ? imageOf(items, at) : captionOf(items, at)),
    make("p", {}, `The first relevant result is in position ${found[way].ranks[at] + 1}, seed ${found.seed}.`),
    results.length ? make("ol", { class: "results" }, ...results) : make("p", {}, "What was retrieved is not kept here: run the preset again, or dvc pull with a remote; then write the site again."),
    make("h3", {}, "Relevant"), make("ul", { class: "results" }, ...right));
  $("query").firstChild.focus();
}

async function queries(preset, wanted, number) {
  if (board.lacks) return start("Queries", make("p", {}, board.lacks));
  if (board.task !== "retrieval") return start("Queries", make("p", {}, "Only images and captions can be browsed; choose another dataset."));
  const each = preset ? played().find((other) => other.preset === preset) : played()[0], at = location.hash;
  if (!each) return preset ? withoutResult(preset) : start("Queries", make("p", {}, "No preset has a result."));
  const way = board.ways.includes(wanted) ? wanted : board.ways[board.ways.length - 1];
  start("Queries");
  const [items, found] = await answers(each.preset);
  if (location.hash !== at) return;
  $("page").append(make("div", { class: "filters" },
    choice("Preset", "preset", played().map((other) => [other.preset, other.title]), each.preset, (name) => { location.hash = place("queries", keyOf(board), name, way); }),
    choice("Direction", "way", board.ways.map((name) => [name, name === "i2t" ? "image to text" : "text to image"]), way, (name) => { location.hash = place("queries", keyOf(board), each.preset, name); })),
  make("section", { id: "query", "aria-live": "polite" }));
  const hasImages = items.files.length > 0;
  if (!hasImages && !items.texts.length) $("page").append(make("p", {}, `Images and captions of ${board.title} may not be published, so only their ids are shown.`));
  const opened = (query) => {
    showQuery(items, found, way, query);
    history.replaceState(null, "", place("queries", keyOf(board), each.preset, way, query));
  };
  const rows = found[way].ranks.map((rank, query) => [
    { shown: make("button", { type: "button", class: "pick-query", on: { click: () => opened(query) } }, hasImages ? imageOf(items, way === "i2t" ? query : items.owners[query]) : "", make("span", {}, queryText(items, way, query))), sort: queryText(items, way, query) },
    { shown: String(rank + 1), sort: rank + 1 }]);
  interactive(`Position of the first relevant result${hasImages && way === "t2i" ? "; beside a caption is its own image" : ""}`, ["query", "position"], rows, { order: [[1, "desc"]] });
  if (found[way].ranks[number] !== undefined) opened(Number(number));
}

// Side by side -----------------------------------------------------------------------------------

// An interval with a star if it is of these trainings only.
const starred = ([low, high, isOfThese], digits, form) => between([low, high], digits, form) + (isOfThese ? " *" : "");

const isLessBetter = (metric) => season.less_is_better.includes(metric);

// [difference, low, high, whether it is of these trainings only] of a metric, positive where the
// first is better.
function differenceOf(first, second, metric) {
  const { presets, metrics, differences } = window.rematch[`pairs ${keyOf(board)}`];
  const ends = [presets.indexOf(first), presets.indexOf(second)], [low, high] = [...ends].sort((a, b) => a - b);
  const of = differences[low * presets.length - (low * (low + 1)) / 2 + high - low - 1]?.[metrics.indexOf(metric)];
  const [one, other] = isLessBetter(metric) ? [second, first] : [first, second];
  if (!of) return [standing(one).metrics[metric] - standing(other).metrics[metric]];
  return ends[0] === low ? of : [-of[0], isNumber(of[2]) ? -of[2] : null, isNumber(of[1]) ? -of[1] : null, of[3]];
}

async function compare(first, second) {
  const names = played().map((each) => each.preset), at = location.hash;
  if (names.length < 2) return start("Side by side", make("p", {}, "Two presets with results are needed."));
  const unknown = [first, second].find((name) => name && !names.includes(name));
  if (unknown) return withoutResult(unknown);
  first ||= names[0];
  if (!second || second === first) second = names.find((name) => name !== first);
  const options = played().map((each) => [each.preset, each.title]);
  const one = standing(first), other = standing(second);
  start("Side by side", make("div", { class: "filters" },
    choice("First", "first", options, first, (name) => { location.hash = place("compare", keyOf(board), name, second); }),
    choice("Second", "second", options, second, (name) => { location.hash = place("compare", keyOf(board), first, name); })));
  await load(`data/pairs/${keyOf(board).split("/").map(encodeURIComponent).join("/")}.js`);
  if (location.hash !== at) return;
  const metrics = [...board.metrics, "overlap_s"].filter((name) => one.metrics[name] !== undefined || other.metrics[name] !== undefined);
  const level = (each, name) => make("span", {}, number(each.metrics[name], digitsOf(name)), " ", make("span", { class: "variant interval" }, each.intervals[name] ? starred(each.intervals[name], digitsOf(name)) : ""));
  const rows = metrics.map((name) => {
    const [difference, low, high, isOfThese] = differenceOf(first, second, name), digits = digitsOf(name), isEqual = one.metrics[name] === other.metrics[name] && !low && !high;
    const ends = make("span", { class: "interval" }, isNumber(low) ? starred([low, high, isOfThese], digits, signed) : "");
    return [season.headings[name], level(one, name), level(other, name), isEqual ? "identical" : make("span", {}, make("strong", {}, signed(difference, digits)), " ", ends)];
  });
  const caption = `Means over the seeds, with ${season.level} intervals; differences query by query; * over test images, of these trainings only`;
  const smaller = metrics.filter(isLessBetter).map((name) => season.headings[name]).join(", ");
  $("page").append(make("p", {}, `A difference is positive where the first preset, on the left, is better${smaller ? `; of ${smaller} the smaller is better` : ""}.`));
  $("page").append(make("div", { class: "scroll cards" }, table(caption, ["", one.title, other.title, "difference"], [...rows, ["flags", marks(one), marks(other), NONE]])));
  const alike = one.place?.rivals.includes(names.indexOf(second) + 1);
  $("page").append(make("p", {}, "No interval here is adjusted for other comparisons. " + (board.compared ? `Adjusted for all ${played().length * (played().length - 1) / 2} pairs of rows, by ${season.headings[board.ranked_by]} they are ${alike ? "not significantly different. An interval that leaves out zero is not enough for a significant difference: with so many pairs and few trainings, p has to be much smaller" : "significantly different"}.` : "Nothing is concluded from so few queries or trainings.")));
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
      make("div", { class: "scroll cards" }, table("Largest rank changes: positions, of the first seed with a result", ["query", standing(first).title, standing(second).title], rows)));
  }
}

// Addresses, theme -------------------------------------------------------------------------------

const pages = { leaderboard, claims, plots: plotsPage, queries, compare, cell: cellPage };
const withoutResult = (preset) => start("Not found", make("p", {}, `${preset}: it has no result on ${board.title}.`));
const missing = (name) => start("Not found", make("p", {}, `${name}: there is no such thing in this season.`));

async function show() {
  if (location.hash === "#main") return;
  const [name, key, ...rest] = location.hash.slice(1).split("?")[0].split("/").map(decodeURIComponent);
  const known = season.boards.find((each) => keyOf(each) === key);
  board = known ?? board;
  $("board").value = keyOf(board);
  for (const anchor of document.querySelectorAll("nav a")) {
    const own = anchor.hash.slice(1).split("/")[0];
    anchor.hash = place(own, keyOf(board));
    if (own === (name || "leaderboard")) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  $("status").textContent = "";
  const page = pages[name || "leaderboard"];
  try {
    if (!page) missing(name);
    else if (key && !known) missing(key);
    else await page(...rest);
  } catch (error) {
    $("status").textContent = error.message;
  }
}

$("season").textContent = `${season.season}: ${season.title}`;
if (season.front) $("season").before(make("a", { href: "../index.html" }, "All seasons"), " ");
$("board").append(...season.boards.map((each) => make("option", { value: keyOf(each) }, `${each.title}, ${each.task}${each.layer ? `, by ${each.layer}` : ""}`)));
$("board").addEventListener("change", (event) => {
  const [name] = location.hash.slice(1).split(/[/?]/);
  location.hash = place(name === "cell" || !name ? "leaderboard" : name, event.target.value);
});
followTheme(show);
window.addEventListener("hashchange", show);
show();
