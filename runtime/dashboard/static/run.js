// One run with its episodes; without an id, the episodes of every run.

import { get } from "/static/api.js";
import { rateCell } from "/static/chart.js";
import { badge, facts, h, level, link, put } from "/static/dom.js";
import { card, pace } from "/static/fleet.js";
import { count, moment, number, outcome, percent, plural, seconds } from "/static/format.js";
import { list } from "/static/table.js";

export const title = "Episodes";

const OUTCOMES = [["solved", "solved"], ["failed", "not solved"], ["error", "errors"], ["unjudged", "unjudged"]];

export async function show(place, context) {
  const run = context.parts[0] ?? "";
  const head = h("div", { class: "head" });
  const about = h("div", { class: "panel" });
  const cards = h("section", { class: "cards", "aria-label": "Episodes that run now" });
  const arms = h("div");
  const groups = h("div");
  const table = h("div");
  put(place, head, about, arms, cards, table, groups);
  about.hidden = !run;
  if (!run) put(head, h("h1", {}, "Episodes of every run"));

  async function facing() {
    if (!run) return;
    const told = await get(`/api/runs/${run}`, {}, context.signal);
    context.setTitle(told.name);
    put(head, h("div", { class: "crumbs" }, link("#/fleet", "Runs")), h("h1", {}, told.name),
      badge(told.state, told.state === "running" ? "live" : told.state === "stopped" ? "warn" : ""),
      told.sensing ? level(told.sensing) : null, badge(told.kind),
      told.kind === "campaign" ? link(`#/campaign/${run}`, "Gate funnel", { class: "push" }) : link(`#/compare?first=${run}`, "Compare", { class: "push" }));
    put(about, summary(told));
    put(arms, byArm(told.arms));
    put(groups, byTask(told.groups));
  }

  const named = await get("/api/facets", { run }, context.signal);
  await facing();
  const shown = list(table, context, {
    url: "/api/episodes", fixed: { run }, search: "q", what: "episode",
    sort: run ? "name" : "ended", order: run ? "asc" : "desc",
    filters: [
      { name: "outcome", title: "Outcome", values: OUTCOMES },
      { name: "suite", title: "Suite", values: named.suite.map((v) => [v, v]) },
      { name: "task", title: "Task", values: named.task.map((v) => [v, v]) },
      { name: "arm", title: "Arm", values: named.arm.map((v) => [v, v]) },
      { name: "skill", title: "Skill", values: named.skill.length ? [["any", "any"], ["none", "none"], ...named.skill.map((v) => [v, v])] : [] },
      { name: "source", title: "Driven by", values: named.source.map((v) => [v, v]) },
      { name: "sensing", title: "Sensing", values: named.sensing.map((v) => [v, v]) },
    ],
    columns: columns(!run),
    href: (row) => (row.logged ? `#/episode/${row.id}` : null),
  });
  context.keys.Escape = () => context.navigate("/fleet");

  let revision = context.news.last?.revision;
  context.onNews((told) => {
    const mine = told.running.filter((each) => !run || each.run === run);
    put(cards, mine.map(card));
    cards.hidden = !mine.length;
    if (told.revision === revision) return;
    revision = told.revision;
    shown.refresh();
    facing().catch(() => {});
  });
  await shown.first;
}

function columns(withRun) {
  return [
    { name: "name", title: "episode", sort: "name", cell: (row) => [
      row.logged ? link(`#/episode/${row.id}`, row.name, { tabindex: "-1" }) : row.name,
      row.arm ? h("span", { class: "sub" }, row.arm) : null] },
    { name: "outcome", title: "outcome", sort: "success", cell: (row) => {
      const { text, kind } = outcome(row);
      return [badge(text, kind, row.judged_by ? `judged by ${row.judged_by}` : undefined),
        row.error ? h("span", { class: "sub", title: row.error }, row.error)
          : row.success ? null : h("span", { class: "sub" }, row.reason === "truncated" ? "out of ticks" : row.reason)];
    } },
    { name: "suite", title: "task", sort: "suite", cell: (row) => [`${row.suite} ${row.task}`,
      h("span", { class: "sub", title: row.instruction }, row.instruction)] },
    { name: "init", title: "scene", wide: true, cell: (row) => (row.init === "sampled" ? `seed ${row.seed}` : `init ${row.init}`) },
    { name: "skills", title: "skills", sort: "skills", cell: (row) => row.skills.split("|").filter(Boolean).map((name) =>
      h("span", { class: "source skill", style: { marginRight: "8px" } }, name)) },
    { name: "interventions", title: "interv.", sort: "interventions", num: true, wide: true, cell: (row) => number(row.interventions) },
    { name: "ticks", title: "ticks", sort: "ticks", num: true, cell: (row) => count(row.ticks) },
    { name: "wall", title: "took", sort: "wall", num: true, wide: true, cell: (row) => seconds(row.wall_s) },
    { name: "sensing", title: "sensing", wide: true, cell: (row) => (row.sensing ? level(row.sensing) : "–") },
    { name: "ended", title: "ended", sort: "ended", num: true, wide: true, cell: (row) => moment(row.ended) },
    ...(withRun ? [{ name: "run", title: "run", wide: true, cell: (row) => link(`#/run/${row.run}`, "open") }] : []),
  ];
}

function summary(told) {
  const versions = Object.entries(told.versions).map(([name, value]) => `${name} ${value}`).join(", ");
  return [
    h("div", { class: "big", style: { marginBottom: "10px" } }, facts([
      ["solved", told.scored ? percent(told.solved / told.scored) : "–", " ", h("span", { class: "soft" }, `${count(told.solved)}/${count(told.scored)}`)],
      ["95 % interval (Wilson)", `${percent(told.wilson[0])} – ${percent(told.wilson[1])}`],
      ["exact (Clopper-Pearson)", `${percent(told.exact[0])} – ${percent(told.exact[1])}`],
      ["episodes", told.planned ? `${count(told.n)} of ${count(told.planned)}` : count(told.n)],
      ["errors, no score", told.errors ? badge(count(told.errors), "error") : "0"],
      ["rate, time left", pace(told)],
    ])),
    facts([
      ["simulator", told.sim || "–"], ["policy", told.policy || "–"],
      ["bundle", h("span", { class: "mono" }, (told.bundle || "none").slice(0, 40))],
      ["sensing", told.sensing ? level(told.sensing) : "–"],
      ["begun", moment(told.begun)], versions && ["versions", versions],
    ]),
    told.command ? h("details", { style: { marginTop: "8px" } }, h("summary", {}, "Command"), h("code", { class: "wrap" }, told.command)) : null,
  ];
}

/** Arms of an evaluation side by side; the paired test is in the comparison. */
function byArm(arms) {
  if (arms.length < 2) return null;
  return h("div", { class: "panel flush" }, h("div", { class: "scroll" }, h("table", { "aria-label": "Success by arm" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "arm"), h("th", { scope: "col" }, "solved"),
      h("th", { scope: "col" }, "95 % interval"), h("th", { scope: "col", class: "num" }, "episodes"), h("th", { scope: "col", class: "num" }, "errors"))),
    h("tbody", {}, arms.map((each) => h("tr", {}, h("td", { class: "wrap" }, each.arm || "–"), h("td", {}, rateCell(each)),
      h("td", {}, `${percent(each.wilson[0])} – ${percent(each.wilson[1])}`),
      h("td", { class: "num" }, count(each.n)), h("td", { class: "num" }, count(each.errors))))))));
}

function byTask(groups) {
  if (groups.length < 2) return null;
  const arms = groups.some((each) => each.arm);
  return h("div", { class: "panel flush" }, h("div", { class: "filters" }, h("h2", { style: { margin: 0 } }, "By task"),
    h("span", { class: "told" }, plural(groups.length, "row"))),
  h("div", { class: "scroll" }, h("table", { "aria-label": "Success by task" },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "task"), arms ? h("th", { scope: "col" }, "arm") : null,
      h("th", { scope: "col" }, "solved"), h("th", { scope: "col", class: "num" }, "episodes"), h("th", { scope: "col", class: "num" }, "errors"))),
    h("tbody", {}, groups.map((each) => h("tr", {},
      h("td", {}, `${each.suite} ${each.task}`), arms ? h("td", {}, each.arm) : null,
      h("td", {}, rateCell(each)), h("td", { class: "num" }, count(each.n)), h("td", { class: "num" }, count(each.errors))))))));
}
