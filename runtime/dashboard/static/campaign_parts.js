// Small parts of the campaign and compare views: rates with bounds, meters, pairs, verdicts.

import { badge, h, s } from "/static/dom.js";
import { count, percent } from "/static/format.js";

const KINDS = {
  PROMOTE: "good", SIMPLIFY: "good", pass: "good", supported: "good", run: "quiet",
  REJECT: "bad", fail: "bad", stopped: "bad", harmful: "bad",
  INCONCLUSIVE: "warn", undecided: "warn", void: "warn", waiting: "warn", running: "live",
};

/** A decision of a gate or a stage. */
export function verdict(word, title) {
  return badge(word, KINDS[word] ?? "quiet", title);
}

/** How much of a budget is spent. */
export function meter(spent, of, label) {
  const share = of ? Math.min(1, spent / of) : 0;
  return h("span", { class: "meter gauge", role: "img", "aria-label": label, title: label },
    h("i", { style: { width: `${100 * share}%` } }));
}

/** A rate {successes, runs, low, high} with its interval; bounds in words for those who hear it. */
export function rate(found, what = "") {
  if (!found || !found.runs) return h("span", { class: "quiet" }, "–");
  const share = found.successes / found.runs;
  const words = `${found.successes} of ${found.runs}, ${percent(share)}, 95 % interval ${percent(found.low)} to ${percent(found.high)}`;
  return h("span", { class: `rate ${what}`, title: words },
    h("span", { class: "n" }, `${found.successes}/${found.runs}`), " ", percent(share),
    h("span", { class: "ci" }, ` ${percent(found.low)} to ${percent(found.high)}`),
    whisker(share, found.low, found.high, words));
}

/** A line from 0 to 1 with an interval and a point on it. */
export function whisker(share, low, high, label) {
  return s("svg", { class: "whisker", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("rect", { class: "ground", x: 0, y: 3, width: 100, height: 2 }),
    s("rect", { class: "span", x: 100 * low, y: 2, width: Math.max(0.8, 100 * (high - low)), height: 4 }),
    s("rect", { class: "point", x: Math.min(98.8, Math.max(0, 100 * share - 0.6)), y: 0, width: 1.2, height: 8 }));
}

const CELLS = [["wins", "won"], ["harms", "harmed"], ["both", "both solved"], ["neither", "neither solved"]];

/** Pairs as one bar: won, harmed, both, neither. */
export function pairs(found) {
  const all = CELLS.reduce((sum, [name]) => sum + found[name], 0);
  if (!all) return null;
  const words = CELLS.map(([name, word]) => `${found[name]} ${word}`).join(", ");
  return h("span", { class: "pairs", role: "img", "aria-label": `${count(all)} pairs: ${words}`, title: words },
    CELLS.filter(([name]) => found[name]).map(([name]) =>
      h("i", { class: name, style: { flexGrow: found[name] } }, all < 400 && found[name] / all > 0.08 ? found[name] : "")));
}

/** One number with a word under it. */
export function tile(word, value, ...more) {
  return h("div", { class: "tile" }, h("span", { class: "word" }, word), h("span", { class: "value" }, value),
    more.length ? h("span", { class: "more" }, more) : null);
}

/** A table that scrolls by itself on a narrow screen. */
export function sheet(label, heads, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("caption", { class: "unseen" }, label),
      h("thead", {}, h("tr", {}, heads.map((each) =>
        h("th", { scope: "col", class: each.startsWith("#") ? "num" : null }, each.replace("#", ""))))),
      h("tbody", {}, rows)));
}

/** A share with its sign, in points. */
export function points(value) {
  if (value === null || value === undefined) return "–";
  return `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(100 * value).toFixed(0)}`;
}

const REST_MS = 4000;

/** Show an answer, and again when news say that something is new and the answer is another one. */
export async function kept(context, ask, draw) {
  let shown = "";
  let revision = null;
  let waits = null;
  const load = async () => {
    const told = await ask();
    const text = JSON.stringify(told);
    if (text === shown || context.signal.aborted) return;
    shown = text;
    draw(told);
  };
  await load();
  context.onNews((told) => {
    if (revision !== null && revision !== told.revision) {
      waits ??= setTimeout(() => { waits = null; load().catch(() => {}); }, REST_MS);
    }
    revision = told.revision;
  });
  context.signal.addEventListener("abort", () => clearTimeout(waits));
}
