// Every campaign: how far it came, what it decided, what it spent.

import { get } from "/static/api.js";
import { badge, empty, h, level, link, put } from "/static/dom.js";
import { count, number } from "/static/format.js";
import { kept, meter, verdict } from "/static/campaign_parts.js";

export const title = "Campaigns";

export async function show(place, context) {
  const list = h("div", {}, h("p", { class: "quiet" }, "Reading the records of campaigns…"));
  put(place, h("h1", {}, "Campaigns"), list);
  await kept(context, () => get("/api/campaigns", {}, context.signal), ({ campaigns }) => {
    put(list, campaigns.length ? table(campaigns) : empty(
      "There are no campaigns in this folder.",
      h("p", {}, "A campaign turns the failures of a policy into skills: ", h("code", {}, "zetta evolve --sim toy --out runs/evolve"))));
  });
}

function table(campaigns) {
  const heads = [["campaign", ""], ["policy", "wide"], ["generations", ""], ["rollouts", "num"], ["risk spent", "num wide"], ["sensing", "wide"]];
  return h("div", { class: "panel flush" }, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Campaigns" },
    h("table", {},
      h("caption", { class: "unseen" }, "Campaigns, the latest first"),
      h("thead", {}, h("tr", {}, heads.map(([word, kind]) => h("th", { scope: "col", class: kind }, word)))),
      h("tbody", {}, campaigns.map(row)))));
}

function row(each) {
  const address = `#/campaign/${each.id}`;
  const open = () => { location.hash = address; };
  const held = { "data-href": address, tabindex: "0", onclick: open,
    onkeydown: (event) => { if (event.key === "Enter" && event.target === event.currentTarget) open(); } };
  if (each.error) {
    return h("tr", held, h("td", {}, link(address, each.path)), h("td", { colspan: "5", class: "problem" }, each.error));
  }
  return h("tr", held,
    h("td", {}, link(address, each.name), h("span", { class: "sub" }, `${each.suite} on ${each.sim}, author ${each.author}`)),
    h("td", { class: "wide" }, each.policy.split(" ")[0]),
    h("td", {}, h("span", { class: "marks" }, each.decisions.map((word, number) => verdict(word, `generation ${number}: ${word}`))),
      h("span", { class: "sub" }, `${each.promoted} promoted in ${each.decisions.length} of ${each.planned_generations}`,
        each.running ? [" ", badge("running", "live")] : each.complete ? "" : ", not finished")),
    h("td", { class: "num" }, count(each.rollouts), meter(each.rollouts, each.budget, `${count(each.rollouts)} of ${count(each.budget)} rollouts`),
      h("span", { class: "sub" }, `of ${count(each.budget)}`)),
    h("td", { class: "num wide" }, number(each.alpha_spent), h("span", { class: "sub" }, each.alpha === null ? "plan not kept" : `of ${number(each.alpha)}`)),
    h("td", { class: "wide" }, level(each.sensing)));
}
