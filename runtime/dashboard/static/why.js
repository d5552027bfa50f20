// Why it intervened: the code of the critic with the values that it saw.

import { get } from "/static/api.js";
import { badge, h, level, problem, put } from "/static/dom.js";
import { count, number } from "/static/format.js";

export function why(place, time, context, told, events) {
  const spoken = events.filter((each) => each.verdict);
  let shown = "";
  if (!spoken.length) {
    put(place, h("h2", {}, "Why did it intervene?"), h("p", { class: "faint" }, "Nobody did."));
    return;
  }

  async function show(event, tick) {
    const at = Math.max(event.tick, Math.min(event.last, tick));
    const key = `${at}/${event.critic}`;
    if (key === shown) return;
    shown = key;
    const head = heading(event, at);
    try {
      const answer = await get(`/api/episodes/${told.row.id}/why`, { tick: at, critic: event.critic }, context.signal);
      if (shown === key) put(place, head, body(answer, event));
    } catch (error) {
      if (error.name === "AbortError") return;
      put(place, head, evidence(event), problem(error.message));
    }
  }

  time.onTick((tick) => {
    const here = spoken.filter((each) => each.tick <= tick && tick <= each.last && each.kind !== "pass");
    const before = [...spoken].reverse().find((each) => each.tick <= tick && each.kind !== "pass");
    show(here[0] ?? before ?? spoken.find((each) => each.kind !== "pass") ?? spoken[0], tick);
  });
}

function heading(event, at) {
  const verdict = event.verdict;
  return [h("h2", {}, `Why did it intervene? Tick ${count(at)}`),
    h("p", {}, badge(verdict.decision, verdict.decision === "abort" ? "bad" : "warn"), " ", h("b", {}, verdict.critic), ": ", verdict.reason,
      verdict.skill ? h("span", { class: "soft" }, ` → skill ${verdict.skill}`) : null)];
}

function evidence(event) {
  return h("div", { class: "code" }, h("div", { class: "line" }, h("span"), h("div", { class: "seen" },
    Object.entries(event.verdict.evidence).map(([name, value]) => h("span", {}, name, " ", h("b", {}, number(value)))))));
}

function body(answer, event) {
  const byLine = new Map();
  for (const each of answer.annotations) {
    if (!byLine.has(each.line)) byLine.set(each.line, []);
    byLine.get(each.line).push(each);
  }
  const lines = answer.source.replace(/\n$/, "").split("\n");
  const said = lines.flatMap((text, i) => (text.includes(JSON.stringify(event.verdict.reason)) ? [i + 1] : []));
  const hits = answer.decided ? [answer.decided] : said;
  const code = h("div", { class: "code", tabindex: "0", role: "region", "aria-label": `Code of the critic ${answer.critic}` },
    lines.map((text, i) => {
      const seen = byLine.get(i + 1) ?? [];
      const hit = hits.includes(i + 1);
      return h("div", { class: `line${hit ? " hit" : ""}${/^\s*(#|""")/.test(text) ? " doc" : ""}` },
        h("span", { "aria-hidden": "true" }, i + 1), h("div", {}, h("span", {}, text || " "),
          seen.length ? h("div", { class: "seen" }, seen.map((each) =>
            typeof each.value === "boolean"
              ? h("span", { class: each.value ? "yes" : "no" }, `${each.text} `, h("b", {}, each.value ? "yes" : "no"))
              : h("span", {}, `${each.text} = `, h("b", {}, number(each.value)), each.unit ? ` ${each.unit}` : ""))) : null));
    }));
  // Only the code scrolls, never the page.
  requestAnimationFrame(() => {
    const hit = code.querySelector(".hit");
    if (hit) code.scrollTop = hit.offsetTop - code.offsetTop - code.clientHeight / 2;
  });
  return [
    h("p", {}, level(answer.level), " ", badge(`looks ${number(answer.window_s)} s back`),
      answer.same ? "" : " ", answer.same ? null : badge("the bundle has changed since", "warn", "This is the code of today, not that of the run")),
    answer.note ? h("p", { class: "soft" }, answer.note) : null, code];
}
