"use strict";
// What every page needs: elements, numbers, tables, downloads, light and dark. All text is set as
// text, never as HTML.
const $ = (id) => document.getElementById(id);
// For ranges; and, in grey, for what is missing: it cannot be taken for a minus sign.
const DASH = "\u2013", NONE = "\u2014";

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

function drawn(tag, facts, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(facts)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const folded = (text, ...children) => make("details", {}, make("summary", {}, text), ...children);

function choice(label, id, values, chosen, act) {
  const select = make("select", { id, on: { change: (event) => act(event.target.value) } },
    ...values.map(([value, text]) => make("option", { value }, text)));
  select.value = chosen;
  return make("label", {}, `${label} `, select);
}

const dimmed = (text) => (text === NONE ? make("span", { class: "variant" }, NONE) : text);

// The name of a preset: its method, then in grey what sets it apart.
const named = ([method, variant]) => [method, variant ? make("span", { class: "variant" }, ` ${variant}`) : null];

// Numbers ----------------------------------------------------------------------------------------

const isNumber = Number.isFinite;
// Without a sign before what is rounded to zero.
const number = (value, digits = 1) => (isNumber(value) ? value.toFixed(digits).replace(/^-(?=[0.]+$)/, "") : NONE);
function signed(value, digits = 1) {
  const text = number(value, digits);
  return isNumber(value) && Number(text) > 0 ? `+${text}` : text;
}
const between = (ends, digits = 1, form = number) => (ends ? `[${form(ends[0], digits)}, ${form(ends[1], digits)}]` : NONE);
const endsOf = (of) => (isNumber(of?.low) ? [of.low, of.high] : null);
const rankOf = (rank, ends) => (ends ? `${rank} [${ends[0] === ends[1] ? ends[0] : ends.join(DASH)}]` : String(rank));

// Downloads --------------------------------------------------------------------------------------

// A text that a spreadsheet would take for a formula gets an apostrophe.
function csvCell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = !isNumber(value) && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(records) {
  const names = [...new Set(records.flatMap(Object.keys))];
  const lines = records.map((record) => names.map((name) => record[name]));
  return [names, ...lines].map((line) => `${line.map(csvCell).join(",")}\n`).join("");
}

function download(name, records) {
  const address = URL.createObjectURL(new Blob([csvOf(records)], { type: "text/csv" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// Light and dark ---------------------------------------------------------------------------------

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const isDark = () => document.documentElement.classList.contains("dark");

function setTheme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").textContent = dark ? "Light" : "Dark";
}

// The choice is kept for the other pages, where a browser lets pages on disk keep something.
function keptTheme() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}

function keepTheme(dark) {
  try { localStorage.setItem("theme", dark ? "dark" : "light"); } catch { /* it is not kept */ }
}

function followTheme(redraw) {
  $("theme").addEventListener("click", () => { setTheme(!isDark()); keepTheme(isDark()); redraw(); });
  prefersDark.addEventListener("change", () => { setTheme(prefersDark.matches); redraw(); });
  const kept = keptTheme();
  setTheme(kept ? kept === "dark" : prefersDark.matches);
}
