// Two episodes side by side: films, who drove and signals on one shared axis of ticks.

import { get } from "/static/api.js";
import { badge, h, level, link, problem, put } from "/static/dom.js";
import { episodeName, number, outcome, sourceKind } from "/static/format.js";
import { LineLane, SourceLane, Timeline } from "/static/chart.js";
import { middle } from "/static/film.js";

export const title = "Side by side";
const COLOURS = ["--l0", "--l1"];
const WISHED = ["object_distance", "gripper_opening", "ee_z", "holding", "chunk_disagreement"];
const SHOWN = 3;
const MOST = 12;
const POLL_MS = 700;

export async function show(place, context) {
  const found = await Promise.all(context.parts.slice(0, 2).map((id) => get(`/api/episodes/${encodeURIComponent(id)}`, {}, context.signal)));
  const bad = found.find((each) => each.problem || !each.header);
  if (found.length < 2 || bad) {
    put(place, problem(bad?.problem ?? "Two episodes with logs are needed."));
    return;
  }
  const timeline = new Timeline(Math.max(...found.map((each) => each.ticks)), found[0].header.spec.control_hz);
  const players = found.map((each, side) => new Player(each, side, timeline, context));
  put(place, heading(found), h("div", { class: "beside" }, players.map((each) => each.element)),
    transport(timeline, players, context), lanes(found, timeline, context));
  timeline.watch(context.signal);
  timeline.go(Number(context.query.get("tick") ?? 0));
  context.setTitle(`${episodeName(found[0].row)} twice`);
}

function heading(found) {
  const [one, other] = found.map((each) => each.row);
  const same = one.scene && one.scene === other.scene;
  return h("div", { class: "head" },
    h("nav", { class: "crumbs", "aria-label": "Way back" }, link("#/compare", "Compare"), " · ", found.map((each, i) =>
      [i ? " · " : "", each.run ? link(`#/run/${each.run.id}`, each.run.name) : "no run"])),
    h("h1", {}, episodeName(one)),
    same ? badge("same scene", "good", "Equal digests of the settled scene") : badge("not shown to be the same scene", "warn"),
    h("p", { class: "soft" }, one.instruction));
}

// ------------------------------------------------------------------------------ films

/** One episode with its film; frame i of the film is tick i. */
class Player {
  constructor(found, side, timeline, context) {
    this.found = found;
    this.timeline = timeline;
    this.hz = found.header.spec.control_hz;
    this.video = h("video", { muted: true, playsinline: true, preload: "auto", "aria-label": `Film of the ${side ? "second" : "first"} episode` });
    this.video.muted = true;
    const { row } = found;
    const came = outcome(row);
    this.place = h("div", { class: "film" }, h("p", {}, "…"));
    this.element = h("section", { class: "panel half", "aria-label": side ? "Second" : "First" },
      h("div", { class: "head" }, h("i", { class: "swatch", style: { background: `var(${COLOURS[side]})` } }),
        link(`#/episode/${row.id}`, found.run?.name ?? row.name), badge(came.text, came.kind), h("span", { class: "soft" }, `${row.bundle}, ${found.ticks} ticks`), level(row.sensing)),
      this.place);
    timeline.onTick((tick, from) => { if (from !== this.video) this.seek(tick); });
    this.ask(context).catch((error) => { if (error.name !== "AbortError") this.say(error.message); });
  }

  say(text) { put(this.place, h("p", {}, text)); }

  async ask(context) {
    if (this.found.film) return this.say(this.found.film);
    const id = encodeURIComponent(this.found.row.id);
    for (let draw = "1"; !context.signal.aborted; draw = "") {
      const film = await get(`/api/episodes/${id}/film`, { draw }, context.signal);
      if (film.state === "ready") break;
      if (film.state === "failed") return this.say(`There is no film: ${film.why}`);
      this.say("Drawing it from the logged states…");
      await new Promise((again) => { setTimeout(again, POLL_MS); });
    }
    if (context.signal.aborted) return;
    this.video.src = `/api/episodes/${id}/film.mp4`;
    this.video.addEventListener("loadedmetadata", () => this.seek(this.timeline.tick), { once: true });
    put(this.place, this.video);
  }

  get loaded() { return this.video.readyState > 0; }

  seek(tick) {
    if (!this.loaded) return;
    const at = middle(Math.min(tick, this.found.ticks), this.hz);
    if (Math.abs(this.video.currentTime - at) > 0.3 / this.hz) this.video.currentTime = Math.min(at, this.video.duration);
  }
}

function transport(timeline, players, context) {
  const told = h("output", { "aria-live": "off" });
  const slider = h("input", { type: "range", min: "0", max: timeline.ticks - 1, step: "1", "aria-label": "Tick", oninput: (event) => timeline.go(Number(event.target.value)) });
  const button = h("button", { type: "button", "aria-label": "Play", onclick: () => play(!playing) }, "▶");
  let playing = false;
  let began = 0;
  let from = 0;
  const marks = [...new Set(players.flatMap((each) => each.found.verdicts.filter((v) => v.decision !== "pass").map((v) => v.tick)))].sort((a, b) => a - b);

  function play(wanted) {
    playing = wanted;
    button.textContent = playing ? "❚❚" : "▶";
    button.setAttribute("aria-label", playing ? "Stop" : "Play");
    if (!playing) { for (const each of players) each.video.pause(); timeline.go(timeline.tick); return; }
    if (timeline.tick >= timeline.ticks - 1) timeline.go(0);
    began = performance.now();
    from = timeline.tick;
    for (const each of players) if (each.loaded) { each.seek(from); each.video.play().catch(() => {}); }
    requestAnimationFrame(advance);
  }

  function advance() {
    if (!playing || context.signal.aborted) return;
    const tick = from + ((performance.now() - began) / 1000) * timeline.hz;
    if (tick >= timeline.ticks - 1) { timeline.go(timeline.ticks - 1); play(false); return; }
    for (const each of timeline.lanes) each.mark(Math.round(tick));
    timeline.tick = Math.round(tick);
    tell(timeline.tick);
    requestAnimationFrame(advance);
  }

  function tell(tick) {
    told.textContent = `tick ${tick} · ${(tick / timeline.hz).toFixed(2)} s`;
    slider.value = tick;
    slider.setAttribute("aria-valuetext", told.textContent);
  }

  timeline.onTick((tick) => { if (playing) { from = tick; began = performance.now(); } tell(tick); });
  const by = (ticks) => (event) => { play(false); timeline.go(timeline.tick + (event?.shiftKey ? 10 : 1) * ticks); };
  Object.assign(context.keys, {
    ArrowLeft: by(-1), ArrowRight: by(1), " ": () => play(!playing), Home: () => timeline.go(0), End: () => timeline.go(timeline.ticks - 1),
    n: () => timeline.go(marks.find((each) => each > timeline.tick) ?? timeline.tick),
    p: () => timeline.go(marks.findLast((each) => each < timeline.tick) ?? timeline.tick),
    Escape: () => history.back(),
  });
  context.signal.addEventListener("abort", () => { playing = false; });
  return h("div", { class: "panel transport", role: "group", "aria-label": "Time" }, button, slider, told);
}

// ------------------------------------------------------------------------------ lanes

function lanes(found, timeline, context) {
  const place = h("div", { class: "panel flush lanes" });
  const names = found[0].lines.filter((line) => found[1].lines.some((each) => each.name === line.name)).map((line) => line.name);
  const drivers = found.map((each, side) => lane(`${side ? "Second" : "First"}: who drove`, new SourceLane(timeline,
    each.stretches.map((part) => ({ ...part, kind: sourceKind(part.source) })),
    each.verdicts.filter((v) => v.decision !== "pass").map((v) => ({ tick: v.tick, kind: v.decision }))), timeline));
  const shown = new Map();
  const add = async (name) => {
    if (shown.has(name) || shown.size >= MOST) return;
    shown.set(name, null);
    const told = await Promise.all(found.map((each) => get(`/api/episodes/${encodeURIComponent(each.row.id)}/series`, { name: [name] }, context.signal)));
    const about = found[0].lines.find((line) => line.name === name);
    const series = told.map((each, side) => ({ name: side ? "second" : "first", colour: COLOURS[side], ...each.lines[name] }));
    const drawn = new LineLane(timeline, series, 64, `${name} of both episodes over ticks`);
    const element = lane(name, drawn, timeline, about, () => { shown.delete(name); timeline.remove(drawn); element.remove(); });
    shown.set(name, element);
    place.append(element);
    drawn.draw();
  };
  const choice = h("select", { "aria-label": "Add a signal", onchange: (event) => { add(event.target.value).catch((error) => put(place, problem(error.message))); event.target.value = ""; } },
    h("option", { value: "" }, "Add a signal…"), names.map((name) => h("option", { value: name }, name)));
  const difference = h("span", { class: "soft" });
  parting(found, context).then((tick) => {
    put(difference, tick === null ? "Every action that both took is equal." : ["The actions part at ",
      h("button", { type: "button", onclick: () => timeline.go(tick) }, `tick ${tick}`)]);
  }).catch(() => {});
  put(place, h("div", { class: "filters" }, choice, difference), drivers);
  const wanted = [...WISHED.filter((name) => names.includes(name)), ...names].slice(0, SHOWN);
  (async () => { for (const name of wanted) await add(name); })().catch((error) => { if (error.name !== "AbortError") place.append(problem(error.message)); });
  return place;
}

function lane(name, drawn, timeline, about, remove) {
  timeline.add(drawn);
  const values = h("span", { class: "value" });
  const tell = (tick) => {
    if (!drawn.series) return;
    put(values, drawn.series.map((each, which) => [which ? "  " : "", h("b", { style: { color: `var(${each.colour})` } }, number(drawn.value(tick, which)))]), about?.unit ? ` ${about.unit}` : "");
  };
  timeline.onTick(tell);
  tell(timeline.tick);
  return h("div", { class: "lane" },
    h("div", { class: "name" }, h("span", { title: about?.doc }, name), about?.level === "oracle" ? level("oracle") : null, values,
      remove ? h("button", { type: "button", class: "quiet", "aria-label": `Take ${name} away`, onclick: remove }, "×") : null),
    drawn.element);
}

/** The first tick at which the two took different actions; null where they never did. */
async function parting(found, context) {
  const names = found[0].lines.filter((line) => line.group === "action").map((line) => line.name).slice(0, 24);
  const [one, other] = await Promise.all(found.map((each) => get(`/api/episodes/${encodeURIComponent(each.row.id)}/series`, { name: names }, context.signal)));
  let first = null;
  for (const name of names) {
    const a = one.lines[name];
    const b = other.lines[name];
    if (!a || !b) continue;
    const both = Math.min(a.values.length, b.values.length);
    for (let i = 0; i < both && (first === null || a.ticks[i] < first); i += 1) {
      if (a.ticks[i] !== b.ticks[i] || Math.abs((a.values[i] ?? 0) - (b.values[i] ?? 0)) > 1e-9) { first = a.ticks[i]; break; }
    }
  }
  return first;
}
