// An episode that runs now: who drives, and the signals as they come; its log follows at the end.

import { LineLane, SourceLane, Timeline } from "/static/chart.js";
import { badge, facts, h, level, link, put } from "/static/dom.js";
import { count, number, sourceKind, sourceName } from "/static/format.js";

const FIRST = ["gripper_opening", "ee_z", "ee_speed", "object_offset", "dispersion"];
/** Points that are kept of a line; of more, every second one is forgotten. */
const KEPT = 1200;

export function live(place, context, id, finished) {
  const first = context.news.last.running.find((each) => each.id === id);
  const time = new Timeline(first.known.max_steps, first.known.control_hz);
  const about = h("div", { class: "panel" });
  const panel = h("section", { class: "panel flush", "aria-label": "Signals" });
  const stretches = [];
  const sources = time.add(new SourceLane(time, stretches, []));
  const lines = new Map();
  panel.append(h("div", { class: "lane" }, h("div", { class: "name" }, h("b", {}, "who drives")), sources.element));
  put(place, h("div", { class: "head" }, h("div", { class: "crumbs" }, link("#/fleet", "Runs"), " / ", link(`#/run/${first.run}`, "run"), ` / ${first.name}`),
    h("h1", {}, first.known.instruction), badge("running", "live"), level(first.known.sensing)), about, panel,
  h("p", { class: "faint" }, "Looked at twice a second. Film, critics and every tick are here once the episode is over."));
  time.watch(context.signal);
  let over = false;

  function line(name) {
    const series = { name, ticks: [], values: [], colour: `--l${lines.size % 8}` };
    const drawn = time.add(new LineLane(time, [series], 60, `${name} so far`));
    const value = h("span", { class: "value mono" });
    panel.append(h("div", { class: "lane" }, h("div", { class: "name" }, name, value), drawn.element));
    lines.set(name, { series, drawn, value });
    return lines.get(name);
  }

  function grow(known) {
    const last = stretches.at(-1);
    if (last?.source === known.source) last.last = known.tick;
    else if (known.tick >= 0) stretches.push({ source: known.source, kind: sourceKind(known.source), first: last ? last.last + 1 : Math.max(0, known.tick), last: known.tick });
    const names = lines.size ? [...lines.keys()] : FIRST.filter((name) => name in known.signals);
    for (const name of names) {
      const { series, drawn, value } = lines.get(name) ?? line(name);
      const now = known.signals[name];
      series.ticks.push(known.tick);
      series.values.push(now === undefined ? null : now);
      if (series.ticks.length > KEPT) {
        series.ticks = series.ticks.filter((_, i) => i % 2 === 0);
        series.values = series.values.filter((_, i) => i % 2 === 0);
      }
      value.textContent = number(now);
      drawn.draw();
    }
    sources.draw();
    time.go(known.tick);
  }

  context.onNews((told) => {
    if (over) return;
    const each = told.running.find((one) => one.id === id);
    if (!each) {
      over = true;
      setTimeout(() => { if (!context.signal.aborted) finished(); }, 1500);
      return;
    }
    const known = each.known;
    put(about, h("div", { class: "big" }, facts([
      ["tick", `${count(known.tick + 1)} of ${count(known.max_steps)}`],
      ["who drives", h("span", { class: `source ${sourceKind(known.source)}` }, sourceName(known.source) || "begins")],
      ["interventions", number(known.interventions)], ["goal, as the simulator has it", known.success ? "holds" : "open"]])),
    facts([["policy", known.policy], ["bundle", known.bundle], ["sensing", level(known.sensing)], known.said && ["critics", known.said],
      each.silent_s >= 5 && ["silent for", `${each.silent_s} s`]]));
    if (known.tick > (stretches.at(-1)?.last ?? -1)) grow(known);
  });
}
