"use strict";
// The first page of several seasons: a search over their rows and claims, which the address keeps
// behind #find=. A grade is that of all set-ups together, a verdict that of one season.
const entries = window.rematch.search;
// Results that are shown.
const MOST = 200;
// "grade:confirmed" finds the claims of that grade.
const gradeOf = (entry) => (entry.kind === "claim" ? `${entry.season ? "verdict" : "grade"}:${entry.grade}` : "");
// What the words of a search are looked for in.
const textOf = (entry) => `${Object.values(entry).flat().join(" ")} ${gradeOf(entry)}`.toLowerCase();
const texts = entries.map(textOf);
const isGrade = (wanted) => entries.some((entry) => gradeOf(entry) === wanted);

// Those of a grade, or those that have every word.
function matches(wanted) {
  if (isGrade(wanted)) return entries.filter((entry) => gradeOf(entry) === wanted);
  const phrase = wanted.toLowerCase().trim(), words = phrase.split(/\s+/);
  const found = entries.filter((_, at) => words.every((word) => texts[at].includes(word)));
  return found.sort((one, other) => closeness(one, phrase) - closeness(other, phrase));
}

// What is sought itself comes first, then what has the words in this order.
function closeness({ title }, phrase) {
  const text = title.toLowerCase();
  return text === phrase ? 0 : text.includes(phrase) ? 1 : 2;
}

// Beside a grade is what all set-ups say together; what a season says has its own verdict.
function claimLine({ title, paper, season, grade, effect, why, verdicts, note, href }) {
  const reason = why || note ? make("div", { class: "variant" }, [why, note].filter(Boolean).join(". ")) : null;
  const lines = verdicts.map((text) => make("div", { class: "variant" }, text));
  const seasons = lines.length && !season ? [folded(`What each season says: ${lines.length}`, make("div", {}, "Each is judged together with all claims of its season, so it may differ from the grade."), ...lines)] : lines;
  return make("li", {}, make("strong", {}, grade), `: `, make("a", { href }, title), ` ${paper}${effect ? `, ${effect}` : ""}`, reason, ...seasons);
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
  const [kind, grade] = isGrade(wanted) ? wanted.split(":") : [];
  const lists = [listed(grade ? `Claims with the ${kind} "${grade}"` : "Claims", of("claim"), claimLine), listed("Rows", of("row"), rowLine)].filter(Boolean);
  $("found").replaceChildren(...(lists.length ? lists : [make("p", {}, "Nothing has all these words.")]));
}

// A link to a claim opens its evidence.
function unfold() {
  const claim = document.getElementById(location.hash.slice(1)), evidence = claim?.closest("p")?.nextElementSibling;
  if (evidence?.matches("details")) evidence.open = true;
}

function follow() {
  const [, wanted] = location.hash.match(/^#find=(.*)$/) ?? [];
  if (wanted === undefined) return unfold();
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
