// One episode: film and signals on one axis of ticks, events, and why somebody intervened.

import { get } from "/static/api.js";
import { LineLane, SourceLane, Timeline } from "/static/chart.js";
import { badge, facts, h, level, link, problem, put } from "/static/dom.js";
import { count, episodeName, number, outcome, percent, seconds, sourceKind, sourceName } from "/static/format.js";
import { film } from "/static/film.js";
import { live } from "/static/live.js";
import { why } from "/static/why.js";

export const title = "Episode";

const FIRST = ["gripper_opening", "ee_z", "ee_speed", "object_offset", "dispersion", "chunk_disagreement"];
const LANES_MOST = 6;

export async function show(place, context) {
  const id = context.parts[0];
  if (runs(context, id)) return live(place, context, id, () => show(place, context));
  let told;
  try {
    told = await get(`/api/episodes/${id}`, {}, context.signal);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    // The news may not have come yet, or the log is not in the index.
    await new Promise((later) => { setTimeout(later, 1200); });
    if (context.signal.aborted) return null;
    if (runs(context, id)) return live(place, context, id, () => show(place, context));
    told = await get(`/api/episodes/${id}`, {}, context.signal);
  }
  return draw(place, context, told);
}

const runs = (context, id) => context.news.last?.running.some((each) => each.id === id);

function draw(place, context, told) {
  const row = told.row;
  context.setTitle(episodeName(row));
  put(place, head(told), told.problem ? problem(told.problem) : null,
    row.error ? problem(`Error, no score: ${row.error}`) : null);
  neighbours(context, told);
  if (!told.header) {
    place.append(h("div", { class: "panel" }, facts(bareFacts(row))));
    return;
  }
  const time = new Timeline(told.ticks, told.header.spec.control_hz);
  const events = eventsOf(told);
  const reason = h("section", { class: "panel", "aria-label": "Why it intervened" });
  const left = h("div", { class: "left stack" }, film(time, context, told),
    eventList(time, events));
  const right = h("div", { class: "stack" }, lanes(time, context, told, events), reason, aboutPanel(told));
  place.append(h("div", { class: "stage" }, left, right));
  why(reason, time, context, told, events);
  keys(context, time, events);
  time.watch(context.signal);
  const wanted = Number(context.query.get("tick"));
  time.go(Number.isFinite(wanted) && context.query.has("tick") ? wanted : 0);
  let remembering;
  time.onTick((tick) => {
    clearTimeout(remembering);
    remembering = setTimeout(() => { if (!context.signal.aborted) context.rewrite(new URLSearchParams({ tick })); }, 400);
  });
}

function head(told) {
  const row = told.row;
  const { text, kind } = outcome(row);
  const go = (id, sign, name) => (id
    ? h("a", { href: `#/episode/${id}`, class: "badge", "aria-label": name, title: name }, sign)
    : h("span", { class: "badge faint", "aria-hidden": "true" }, sign));
  return h("div", { class: "head" },
    h("div", { class: "crumbs" }, link("#/fleet", "Runs"), " / ", told.run ? link(`#/run/${told.run.id}`, told.run.name) : "", " / ", row.name, " ",
      go(told.before, "[", "Episode before"), " ", go(told.after, "]", "Episode after")),
    h("h1", {}, row.instruction || episodeName(row)),
    badge(text, kind), row.sensing ? level(row.sensing) : null,
    h("span", { class: "soft" }, episodeName(row)),
    told.same_scene ? link(`#/compare/${row.id}`, `${count(told.same_scene)} on the same scene`, { class: "push" }) : null);
}

function bareFacts(row) {
  return [["reason", row.reason || "–"], ["ticks", count(row.ticks)], ["interventions", number(row.interventions)],
    ["policy", row.policy || "–"], ["bundle", row.bundle || "none"], ["took", seconds(row.wall_s)],
    ["log", "none: only the result of this episode was kept"]];
}

function aboutPanel(told) {
  const { header, row } = told;
  const ran = header.run;
  const versions = Object.entries({ ...ran.versions, ...header.spec.versions }).map(([n, v]) => `${n} ${v}`).join(", ");
  const shares = Object.entries(header.result.sources).map(([source, ticks]) =>
    h("span", { class: `source ${sourceKind(source)}`, style: { marginRight: "10px" } },
      `${sourceName(source)} ${Math.round((100 * ticks) / Math.max(1, row.ticks))} %`));
  return h("section", { class: "panel", "aria-label": "How it was run" }, facts([
    ["ended", header.result.reason + (header.result.detail ? `: ${header.result.detail}` : "")],
    ["ticks of the budget", `${count(row.ticks)} of ${count(header.scene.task.max_steps)}`],
    ["driven by", ...shares], ["interventions", number(row.interventions)],
    ["late, held ticks", `${header.result.late_ticks}, ${header.result.held_ticks}`],
    ["policy", `${ran.policy_name}, seed ${ran.policy_seed}`],
    ["bundle", ran.bundle, " ", h("span", { class: "mono faint" }, ran.bundle_digest.slice(0, 12))],
    ["sensing", level(ran.sensing)], ["render", header.spec.render_profile],
    ["control rate", `${number(header.spec.control_hz)} Hz`], ["took", seconds(row.wall_s)],
    row.judged_by && ["judged by", row.judged_by],
    ["versions", versions],
  ]), h("details", { style: { marginTop: "8px" } }, h("summary", {}, "Command"), h("code", { class: "wrap" }, ran.command)));
}

/** Everything that can be jumped to, in order. */
function eventsOf(told) {
  const events = [];
  const stop = told.header.result.stop;
  const said = [...told.verdicts, ...(stop ? stop.verdicts.map((each) => ({ ...each, tick: stop.index })) : [])];
  const obeyed = new Set(told.header.result.recoveries.map((each) => `${each.tick}/${each.critic}`));
  const latest = new Map();
  for (const each of said) {
    const heard = each.decision !== "recover" || obeyed.has(`${each.tick}/${each.critic}`);
    const before = latest.get(each.critic);
    if (before && !heard && !before.heard && before.last === each.tick - 1 && before.verdict.reason === each.reason) {
      before.last = each.tick;
      before.text = sayings(before);
      continue;
    }
    const event = { tick: each.tick, last: each.tick, kind: each.decision, critic: each.critic, verdict: each, heard };
    event.text = sayings(event);
    latest.set(each.critic, event);
    events.push(event);
  }
  for (const each of told.header.result.recoveries) {
    events.push({ tick: each.tick, kind: "recovery", critic: each.critic, recovery: each,
      text: `${each.skill} ${each.ending === "shadow" ? "would have the robot" : `has the robot for ${count(each.ticks)} ticks`}` });
    if (each.ticks) {
      const ended = each.tick + each.ticks >= told.ticks;
      const how = each.ending || (each.completed ? "completed" : "ended");
      events.push({ tick: Math.min(told.ticks - 1, each.tick + each.ticks), kind: "handback",
        text: `${ended ? `${each.skill} ends` : `${each.skill} gives the robot back`}: ${how}` });
    }
  }
  for (const each of told.notes) events.push({ tick: each.tick, kind: each.kind, text: `${each.kind}: ${each.text}` });
  if (told.header.result.success && told.header.result.first_success) {
    events.push({ tick: told.header.result.first_success - 1, kind: "success", text: "the goal holds" });
  }
  const order = ["pass", "recover", "abort", "recovery"];
  return events.sort((a, b) => a.tick - b.tick || order.indexOf(a.kind) - order.indexOf(b.kind));
}

function sayings({ verdict, tick, last, heard }) {
  if (verdict.decision === "pass") return `${verdict.critic}: ${verdict.reason}`;
  const until = last > tick ? ` (until tick ${count(last)})` : "";
  const lost = heard ? "" : "; nobody took over: budget, precondition or another driver";
  return `${verdict.critic} says ${verdict.decision}: ${verdict.reason}${until}${lost}`;
}

function eventList(time, events) {
  const items = events.slice(0, 400).map((each) => h("li", {}, h("button", { type: "button", onclick: () => time.go(each.tick) },
    h("span", { class: "num faint" }, count(each.tick)), h("span", { class: "wrap" }, each.text))));
  time.onTick((tick) => {
    events.slice(0, 400).forEach((each, i) => {
      const here = each.tick <= tick && tick <= (each.last ?? each.tick);
      items[i].firstChild.setAttribute("aria-current", here ? "true" : "false");
    });
  });
  return h("section", { class: "panel", "aria-label": "Events" }, h("h2", {}, `Events (${events.length})`),
    events.length ? h("ol", { class: "events" }, items) : h("p", { class: "faint" }, "No critic spoke and nobody intervened."));
}

function lanes(time, context, told, events) {
  const marks = events.filter((e) => e.verdict && e.kind !== "pass").flatMap((e) =>
    Array.from({ length: e.last - e.tick + 1 }, (_, i) => ({ tick: e.tick + i, kind: e.heard ? e.kind : "unheard" })));
  const stretches = told.stretches.map((each) => ({ ...each, kind: sourceKind(each.source) }));
  const sources = time.add(new SourceLane(time, stretches, marks));
  const now = h("span", { class: "value" });
  time.onTick((tick) => {
    const at = told.stretches.find((each) => each.first <= tick && tick <= each.last);
    put(now, at ? h("span", { class: `source ${sourceKind(at.source)}` }, sourceName(at.source)) : "");
  });
  const panel = h("section", { class: "panel flush", "aria-label": "Signals", tabindex: "-1" },
    h("div", { class: "lane" }, h("div", { class: "name" }, h("b", {}, "who drives"), now), sources.element));
  const place = h("div");
  const complaint = h("div");
  panel.append(place, complaint);
  const shown = new Map();
  const known = new Map(told.lines.map((line) => [line.name, line]));

  async function add(names) {
    const wanted = names.filter((name) => known.has(name) && !shown.has(name));
    if (!wanted.length) return;
    try {
      const answer = await get(`/api/episodes/${told.row.id}/series`, { name: wanted }, context.signal);
      wanted.forEach((name) => draw(name, answer.lines[name]));
      put(complaint);
    } catch (error) {
      if (error.name !== "AbortError") put(complaint, problem(error.message));
    }
  }

  function draw(name, line) {
    const spec = known.get(name);
    const colour = `--l${shown.size % 8}`;
    const drawn = time.add(new LineLane(time, [{ name, ...line, colour }], 60, `${name} over time`));
    const value = h("span", { class: "value mono" });
    const tell = (tick) => { value.textContent = `${number(drawn.value(tick))} ${spec.unit}`; };
    time.onTick(tell);
    const lane = h("div", { class: "lane" }, h("div", { class: "name" },
      h("span", { title: spec.doc }, name), spec.level === "oracle" ? level("oracle") : h("span", { class: "faint" }, spec.level), value,
      h("button", { type: "button", class: "quiet", "aria-label": `Take ${name} away`, onclick: () => { time.remove(drawn); lane.remove(); shown.delete(name); } }, "×")),
    drawn.element);
    shown.set(name, lane);
    place.append(lane);
    drawn.draw();
    tell(time.tick);
  }

  const pick = h("select", { "aria-label": "Add a line", onchange: (event) => { add([event.target.value]); event.target.value = ""; } },
    h("option", { value: "" }, "Add a line …"), ["signal", "arm", "action"].map((group) => h("optgroup", { label: { signal: "signals", arm: "arm", action: "actions" }[group] },
      told.lines.filter((line) => line.group === group).map((line) =>
        h("option", { value: line.name }, line.level === "oracle" ? `${line.name} (oracle)` : line.name)))));
  panel.append(h("div", { class: "filters", style: { borderBottom: 0 } }, pick,
    h("span", { class: "told" }, "click or drag to jump; keys: ?")));
  add(firstLines(told, known)).then(() => budgets(place, time, context, told, known));
  return panel;
}

/** How much of the step budget is spent, and by skills: one lane of shares. */
async function budgets(place, time, context, told, known) {
  const names = ["budget_used", "skill_share"].filter((name) => known.has(name));
  if (!names.length || context.signal.aborted) return;
  const answer = await get(`/api/episodes/${told.row.id}/series`, { name: names }, context.signal);
  const colours = { budget_used: "--policy", skill_share: "--skill" };
  const series = names.map((name) => ({ name, ...answer.lines[name], colour: colours[name] }));
  const drawn = time.add(new LineLane(time, series, 44, "Budgets over time", true));
  const value = h("span", { class: "value mono" });
  const tell = (tick) => {
    put(value, names.map((name, i) => h("span", {}, ` ${name === "budget_used" ? "ticks" : "skills"} ${percent(drawn.value(tick, i))}`)));
  };
  time.onTick(tell);
  place.append(h("div", { class: "lane" }, h("div", { class: "name" }, h("span", { title: "Shares of the task's step budget" }, "budgets"),
    h("span", { class: "faint" }, told.header.run.options.recovery_share ? `skills may use ${percent(Number(told.header.run.options.recovery_share))}` : "share of the step budget"), value), drawn.element));
  drawn.draw();
  tell(time.tick);
}

/** What the critics read that spoke, then what is usually worth a look. */
function firstLines(told, known) {
  const read = told.verdicts.flatMap((each) => Object.keys(each.evidence));
  const counted = new Map();
  for (const name of read) counted.set(name, (counted.get(name) ?? 0) + 1);
  const spoken = [...counted.keys()].filter((name) => !["policy_drives", "elapsed"].includes(name)).slice(0, 3);
  const fallback = told.lines.filter((line) => line.group === "arm").map((line) => line.name).slice(-2);
  return [...new Set([...FIRST.slice(0, 2), ...spoken, ...FIRST.slice(2), ...fallback])].filter((name) => known.has(name)).slice(0, LANES_MOST);
}

function neighbours(context, told) {
  context.keys["["] = () => told.before && context.navigate(`/episode/${told.before}`);
  context.keys["]"] = () => told.after && context.navigate(`/episode/${told.after}`);
  context.keys.Escape = () => context.navigate(told.run ? `/run/${told.run.id}` : "/fleet");
}

function keys(context, time, events) {
  const by = (step) => (event) => time.go(time.tick + (event.shiftKey ? 10 : 1) * step);
  context.keys.ArrowLeft = by(-1);
  context.keys.ArrowRight = by(1);
  context.keys.Home = () => time.go(0);
  context.keys.End = () => time.go(time.ticks - 1);
  context.keys.n = () => { const next = events.find((each) => each.tick > time.tick); if (next) time.go(next.tick); };
  context.keys.p = () => { const last = [...events].reverse().find((each) => each.tick < time.tick); if (last) time.go(last.tick); };
}
