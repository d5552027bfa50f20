// Two runs, or two arms of an evaluation, scene by scene.

import { get } from "/static/api.js";
import { badge, empty, h, link, put } from "/static/dom.js";
import { count, number, outcome, percent } from "/static/format.js";
import { list } from "/static/table.js";
import { pairs, points, tile, whisker } from "/static/campaign_parts.js";

export const title = "Compare";

const WORDS = {
  win: ["only the second solved it", "good"], harm: ["only the first solved it", "bad"], both: ["both solved it", "quiet"],
  neither: ["neither solved it", "quiet"], unscored: ["no score", "warn"], unlike: ["other scene", "warn"],
};
const SHORT = { win: "won", harm: "lost", both: "both", neither: "neither", unscored: "no score", unlike: "other scene" };

const written = (side) => (side.arm ? `${side.run}~${side.arm}` : side.run);
const read = (text) => { const [run, arm = ""] = (text ?? "").split("~"); return { run, arm }; };
const address = (first, second) => `#/compare/${encodeURIComponent(written(first))}/${encodeURIComponent(written(second))}`;

export async function show(place, context) {
  if (context.parts.length === 1) return sameScene(place, context, context.parts[0]);
  const { sides } = await get("/api/compare/sides", {}, context.signal);
  const result = h("div", { class: "view-part" });
  put(place, h("div", { class: "head" }, h("h1", {}, "Compare")), choose(sides, context), result);
  if (sides.length < 2) {
    put(result, empty("Two runs are needed, or two arms of an evaluation.",
      h("p", {}, h("code", {}, "zetta run --sim toy --episodes 20 --bundle starter"))));
  } else if (context.parts.length > 1) {
    await compared(result, context, read(context.parts[0]), read(context.parts[1]));
  } else {
    put(result, empty("Choose two runs: the first is the baseline, the second is held against it."));
  }
}

/** Every other episode on the scene of one. */
async function sameScene(place, context, id) {
  const { row, run } = await get(`/api/episodes/${encodeURIComponent(id)}`, {}, context.signal);
  const others = h("div", {});
  put(place, h("div", { class: "head" }, h("nav", { class: "crumbs", "aria-label": "Way back" }, link("#/compare", "Compare")),
    h("h1", {}, `Beside ${run?.name ?? ""} ${row.name}`), h("p", { class: "soft" }, `${row.suite} task ${row.task}, ${row.instruction}`)), others);
  await list(others, context, {
    url: "/api/episodes", fixed: { scene: row.scene }, what: "episode",
    href: (each) => (each.logged && each.id !== row.id ? `#/pair/${row.id}/${each.id}` : undefined),
    columns: [
      { name: "run", title: "Episode", cell: (each) => [each.name, each.id === row.id ? [" ", badge("this one", "live")] : null, h("span", { class: "sub" }, `bundle ${each.bundle || "none"}, policy seed ${each.policy_seed}`)] },
      { name: "outcome", title: "Outcome", cell: (each) => badge(...Object.values(outcome(each))) },
      { name: "ticks", title: "Ticks", num: true, sort: "ticks", cell: (each) => count(each.ticks) },
    ],
  }).first;
}

function choose(sides, context) {
  const name = (side) => `${side.name}${side.arm ? ` · ${side.arm}` : ""} · ${side.bundle || "none"} (${count(side.episodes)})`;
  const chosen = context.parts.length ? context.parts.map(read) : [read(context.query.get("first")), {}];
  const field = (id, word, side) => h("div", { class: "field" }, h("label", { for: id }, word), h("select", { id, onchange: go },
    h("option", { value: "" }, "choose a run"),
    sides.map((each) => h("option", { value: written(each), selected: each.run === side.run && each.arm === side.arm }, name(each)))));
  const first = field("first", "First", chosen[0]);
  const second = field("second", "Second", chosen[1]);
  const values = () => [first, second].map((each) => each.querySelector("select").value);
  function go() {
    const [one, other] = values();
    if (one && other) context.navigate(address(read(one), read(other)));
  }
  const swap = h("button", { type: "button", "aria-label": "Exchange first and second", title: "Exchange (x)", onclick: () => {
    const [one, other] = values();
    if (one && other) context.navigate(address(read(other), read(one)));
  } }, "⇄");
  context.keys.x = () => swap.click();
  return h("div", { class: "panel choose", role: "group", "aria-label": "What is compared" }, first, swap, second);
}

async function compared(place, context, first, second) {
  const test = h("div", {});
  const table = h("div", {});
  put(place, test, table);
  const query = { first: first.run, first_arm: first.arm, second: second.run, second_arm: second.arm };
  await list(table, context, {
    url: "/api/compare", fixed: query, what: "pair", sort: "outcome", order: "asc",
    filters: [{ name: "outcome", title: "Outcome", values: ["harm", "win", "neither", "both", "unscored", "unlike"].map((each) => [each, WORDS[each][0]]) }],
    href: (row) => (row.first.logged && row.second.logged ? `#/pair/${row.first.id}/${row.second.id}` : undefined),
    columns: [
      { name: "outcome", title: "Outcome", cell: (row) => badge(SHORT[row.outcome], WORDS[row.outcome][1], WORDS[row.outcome][0]) },
      { name: "scene", title: "Scene", cell: scene },
      { name: "first", title: "First", cell: (row) => half(row.first) },
      { name: "second", title: "Second", cell: (row) => half(row.second) },
    ],
    onAnswer: (answer) => put(test, told(answer)),
  }).first;
}

function scene(row) {
  const start = row.init === "sampled" ? `sampled seed ${row.seed}` : `init ${row.init}`;
  return [`${row.suite} task ${row.task} ${start}${row.policy_seed ? `, policy seed ${row.policy_seed}` : ""}`, h("span", { class: "sub" }, row.instruction)];
}

function half(each) {
  const word = each.error ? badge("error", "error", each.error) : each.success === null ? badge("no score", "warn")
    : badge(each.success ? "solved" : "not solved", each.success ? "good" : "bad");
  return [word, h("span", { class: "sub" }, `${each.ticks} ticks${each.skills.length ? `, ${each.skills.join(", ")}` : ""}`)];
}

function told(answer) {
  const { test, counts } = answer;
  const alone = [answer.only_first && `${count(answer.only_first)} only in the first`, answer.only_second && `${count(answer.only_second)} only in the second`,
    counts.unscored && `${count(counts.unscored)} without a score`, counts.unlike && `${count(counts.unlike)} that started as another scene`].filter(Boolean);
  const rest = alone.length ? h("p", { class: "soft" }, `Not counted: ${alone.join(", ")}.`) : null;
  if (!test) return h("div", { class: "panel" }, h("p", {}, "No scene has a score in both, so nothing is tested."), rest);
  const rate = (of) => [`${of.successes}/${of.n} `, h("span", { class: "soft" }, percent(of.successes / of.n)),
    whisker(of.successes / of.n, of.interval[0], of.interval[1], `95 % interval ${percent(of.interval[0])} to ${percent(of.interval[1])}`)];
  const [low, high] = test.interval;
  return h("div", { class: "panel" },
    h("div", { class: "tiles" },
      tile("first", rate(test.first), label(answer.a)), tile("second", rate(test.second), label(answer.b)),
      tile("difference", `${points(test.difference)} points`, `95 % interval ${points(low)} to ${points(high)} (Newcombe, paired)`),
      tile("won and lost", `${test.wins} : ${test.harms}`, pairs({ wins: test.wins, harms: test.harms, both: counts.both, neither: counts.neither }), ` of ${count(test.pairs)} pairs`),
      tile("exact McNemar", `p = ${number(test.p_two_sided)}`, "two-sided; null: won and lost are equally likely")),
    test.pairs < 50 ? h("p", { class: "note" }, `${test.pairs} pairs are few: read the interval, not the difference.`) : null, rest);
}

const label = (side) => `${side.name}${side.arm ? ` · ${side.arm}` : ""}, bundle ${side.bundle || "none"}`;
