// All runs: what runs now, who drives, and what every run has come to.

import { get } from "/static/api.js";
import { rateCell } from "/static/chart.js";
import { badge, empty, facts, h, level, problem, put } from "/static/dom.js";
import { ago, count, moment, number, seconds, sourceKind, sourceName } from "/static/format.js";

export const title = "Runs";

const STATES = { running: "live", finished: "", stopped: "warn" };

export async function show(place, context) {
  let waits;
  const search = h("input", { type: "search", class: "push", placeholder: "Search", "aria-label": "Search runs",
    oninput: () => { clearTimeout(waits); waits = setTimeout(refresh, 150); } });
  const head = h("div", { class: "head" }, h("h1", {}, "Runs"), search);
  const total = h("div", { class: "panel big" });
  const cards = h("section", { class: "cards", "aria-label": "Episodes that run now" });
  const table = h("div");
  put(place, head, total, cards, table);

  let revision = null;
  let asking = false;
  let again = false;
  async function refresh() {
    again = asking;
    if (asking) return;
    asking = true;
    try {
      const told = await get("/api/fleet", { q: search.value }, context.signal);
      put(total, totals(told));
      put(table, told.runs.length ? runs(told.runs) : search.value ? h("div", { class: "panel" }, empty("No run has that name, policy or simulator.")) : nothing(),
        told.runs.length && told.runs.length < told.runs_found ? h("p", { class: "faint" }, `The latest ${count(told.runs.length)} of ${count(told.runs_found)} runs; search for others.`) : null);
    } catch (error) {
      if (error.name !== "AbortError") put(table, problem(error.message));
    }
    asking = false;
    if (again && !context.signal.aborted) refresh();
  }

  const held = () => context.news.last?.held.length;
  let last = 0;
  context.onNews((told) => {
    put(cards, told.running.map(card));
    cards.hidden = !told.running.length;
    const changed = told.revision !== revision || JSON.stringify(told.held) !== last;
    if (changed) {
      revision = told.revision;
      last = JSON.stringify(told.held);
      setTimeout(refresh, Date.now() % 300);
    }
  });
  // Rates and times left go on even when nothing new is in.
  const timer = setInterval(() => { if (held()) refresh(); }, 5000);
  context.signal.addEventListener("abort", () => clearInterval(timer));
  await refresh();
}

/** How much is there; a rate over policies, simulators and sensing levels together says nothing. */
function totals(told) {
  const all = told.all;
  return facts([
    ["runs", count(told.runs_total)],
    ["episodes", count(all.total)],
    ["errors, no score", all.errors ? badge(count(all.errors), "error") : "0"],
  ]);
}

function nothing() {
  return h("div", { class: "panel" }, empty("There is no run here yet. This page shows the first one as soon as it begins:",
    h("code", {}, "zetta run --sim toy --episodes 3")));
}

export function card(running) {
  const known = running.known;
  const kind = sourceKind(known.source);
  const done = known.tick + 1;
  const share = (ticks) => `${(100 * ticks) / Math.max(1, known.max_steps)}%`;
  return h("a", { class: `card ${kind}`, href: `#/episode/${running.id}`, title: known.instruction },
    h("span", { class: "row" },
      h("span", { class: `source ${kind}` }, h("b", {}, sourceName(known.source) || "begins")),
      h("span", { class: "faint" }, running.silent_s >= 5 ? `silent for ${seconds(running.silent_s)}` : `tick ${count(done)}/${count(known.max_steps)}`)),
    h("span", { class: "what" }, known.instruction),
    h("span", { class: "meter", role: "progressbar", "aria-valuenow": done, "aria-valuemax": known.max_steps, "aria-label": "Ticks of the budget" },
      Object.entries(known.sources).map(([source, ticks]) => h("i", { class: sourceKind(source), style: { width: share(ticks) } }))),
    h("span", { class: "row faint" },
      h("span", { class: "what" }, known.said || `${known.suite} task ${known.task}, ${known.init === "sampled" ? `seed ${known.seed}` : `init ${known.init}`}`),
      known.sensing === "oracle" ? level("oracle") : h("span", {}, number(known.interventions), known.interventions === 1 ? " intervention" : " interventions")));
}

const addressOf = (run) => `#/${run.kind === "campaign" ? "campaign" : "run"}/${run.id}`;

function runs(all) {
  const open = (run) => (event) => {
    if (event.target.closest("a")) return;
    if (event.type === "click" || event.key === "Enter") location.hash = addressOf(run);
  };
  return h("div", { class: "panel flush" }, h("div", { class: "scroll" }, h("table", { "aria-label": "Runs" },
    h("thead", {}, h("tr", {}, ["run", "state", "solved"].map((t) => h("th", { scope: "col", class: t === "state" ? "wide" : "" }, t)),
      h("th", { scope: "col", class: "num" }, "episodes"), h("th", { scope: "col", class: "num" }, "errors"),
      ["rate, left", "policy, bundle", "sensing", "begun"].map((t, i) => h("th", { scope: "col", class: i > 0 ? "wide" : "" }, t)))),
    h("tbody", {}, all.map((run) => h("tr", {
      data: { href: addressOf(run) }, tabindex: "0", onclick: open(run), onkeydown: open(run),
    },
    h("td", {}, h("a", { href: addressOf(run), tabindex: "-1" }, run.name), h("span", { class: "sub" }, `${run.kind}${run.sim ? `, ${run.sim}` : ""}`),
      run.state === "finished" ? null : h("span", { class: "narrow" }, badge(run.state, STATES[run.state]))),
    h("td", { class: "wide" }, badge(run.state, STATES[run.state])),
    h("td", {}, rateCell(run)),
    h("td", { class: "num" }, run.planned ? progress(run) : count(run.n)),
    h("td", { class: "num" }, run.errors ? badge(count(run.errors), "error", "Infrastructure errors: never a score") : h("span", { class: "faint" }, "0")),
    h("td", {}, pace(run)),
    h("td", { class: "wide" }, run.policy || "–", h("span", { class: "sub" }, run.bundle || "")),
    h("td", { class: "wide" }, run.sensing ? level(run.sensing) : "–"),
    h("td", { class: "wide num", title: run.begun ? new Date(1000 * run.begun).toLocaleString() : "" }, moment(run.begun))))))));
}

function progress(run) {
  return h("span", {}, `${count(run.n)}/${count(run.planned)}`,
    h("span", { class: "meter", style: { marginTop: "3px" } }, h("i", { class: "good", style: { width: `${(100 * run.n) / run.planned}%` } })));
}

export function pace(run) {
  if (run.state !== "running") return h("span", { class: "faint" }, run.ended ? ago(run.ended) : "–");
  if (!run.per_minute) return h("span", { class: "faint" }, "no episode yet");
  return h("span", {}, `${number(run.per_minute)}/min`, h("span", { class: "sub" }, run.eta_s === null || run.eta_s === undefined ? "" : `${seconds(run.eta_s)} left`));
}
