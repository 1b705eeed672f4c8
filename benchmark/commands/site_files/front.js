"use strict";
// The first page of several seasons: a search over their rows and claims, which the address keeps
// behind #find=.
const entries = window.rematch.search;
// Results that are shown.
const MOST = 200;
// What the words of a search are looked for in; "grade:confirmed" finds the claims of that grade.
function textOf(entry) {
  const graded = entry.kind === "claim" ? ` ${entry.season ? "verdict" : "grade"}:${entry.grade}${entry.failing ? " fails" : ""}` : "";
  return (Object.values(entry).flat().join(" ") + graded).toLowerCase();
}
const texts = entries.map(textOf);

// Those that have every word.
function matches(wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter((_, at) => words.every((word) => texts[at].includes(word)));
}

function claimLine({ title, paper, grade, effect, why, note, href }) {
  const reasons = why.length ? make("div", { class: "variant" }, `${why.join(". ")}. ${note}`) : null;
  return make("li", {}, make("strong", {}, grade), `: `, make("a", { href }, title), ` ${paper}${effect ? `, ${effect}` : ""}`, reasons);
}

function rowLine({ title, board, rank, ranks, metric, mean, low, high, href }) {
  const told = `: rank ${rankOf(rank, ranks)}, ${metric} ${number(mean)} ${between(endsOf({ low, high }))} on ${board}`;
  return make("li", {}, make("a", { href }, title), told);
}

function listed(heading, found, line) {
  if (!found.length) return null;
  const more = found.length > MOST ? make("p", {}, `The first ${MOST} are shown.`) : null;
  return make("div", {}, make("h3", {}, `${heading}: ${found.length}`), make("ul", {}, ...found.slice(0, MOST).map(line)), more);
}

function search(wanted) {
  if (!wanted.trim()) return $("found").replaceChildren();
  const found = matches(wanted), of = (kind) => found.filter((entry) => entry.kind === kind);
  const lists = [listed("Claims", of("claim"), claimLine), listed("Rows", of("row"), rowLine)].filter(Boolean);
  $("found").replaceChildren(...(lists.length ? lists : [make("p", {}, "Nothing has all these words.")]));
}

function follow() {
  const [, wanted] = location.hash.match(/^#find=(.*)$/) ?? [];
  if (wanted === undefined) return;
  $("find").value = decodeURIComponent(wanted);
  search($("find").value);
  $("find").scrollIntoView();
}

$("find").addEventListener("input", ({ target }) => {
  history.replaceState(null, "", `#${target.value ? `find=${encodeURIComponent(target.value)}` : ""}`);
  search(target.value);
});
window.addEventListener("hashchange", follow);
followTheme(() => {});
follow();
