// One campaign: from failures to a verdict, every statistic beside its null.

import { get } from "/static/api.js";
import { badge, facts, h, level, link, put } from "/static/dom.js";
import { count, number, percent, plural, seconds } from "/static/format.js";
import { kept, meter, pairs, points, rate, sheet, tile, verdict } from "/static/campaign_parts.js";

export const title = "Campaign";
const NULLS = new Set(["sham", "random"]);
const PROGRAMS = ["critic.py", "recovery.py", "params.toml"];

export async function show(place, context) {
  const id = context.parts[0];
  await kept(context, () => get(`/api/campaigns/${encodeURIComponent(id)}`, {}, context.signal), (told) => {
    context.setTitle(told.name);
    const open = new Set([...place.querySelectorAll("details[open][data-key]")].map((each) => each.dataset.key));
    put(place, page(told));
    for (const each of place.querySelectorAll("details[data-key]")) if (open.has(each.dataset.key)) each.open = true;
  });
  context.keys.Escape = () => context.navigate("#/campaigns");
}

function page(told) {
  const spent = told.costs.reduce((sum, row) => sum + row.wall_s, 0);
  return [
    h("nav", { class: "crumbs", "aria-label": "Way back" }, link("#/campaigns", "Campaigns"), " · ", link(`#/run/${told.id}`, "its episodes here")),
    h("h1", {}, told.name, " ", told.running ? badge("running", "live") : null),
    h("p", { class: "lead" }, `${told.policy.split(" ")[0]} on ${told.suite}, ${plural(told.tasks.length, "task")}, author ${told.author} `, level(told.sensing)),
    told.sensing === "oracle" ? h("p", { class: "problem" }, "Skills were allowed to read simulator truth, so nothing here is a headline.") : null,
    h("div", { class: "tiles" },
      tile("promoted", `${told.promoted} of ${plural(told.generations.length, "generation")}`, `${told.planned_generations} planned${told.complete ? "" : ", not finished"}`),
      tile("rollouts", count(told.rollouts), meter(told.rollouts, told.budget, `${count(told.rollouts)} of ${count(told.budget)}`), `of ${count(told.budget)}`),
      tile("time", seconds(spent), `${seconds(told.costs.reduce((sum, row) => sum + row.cpu_s, 0))} of CPU`),
      tile("author", author(told.author_spend), Object.keys(told.author_spend).some((name) => name.includes("token")) ? "" : "no model was asked"),
      tile("risk of a false promotion", number(told.alpha_spent), told.alpha === null ? "the plan was not kept" : `of ${number(told.alpha)} planned`),
      tile("noise floor", told.floor.run ? `${told.floor.equal} of ${told.floor.run} equal` : "not measured",
        told.floor.run ? `quiet pairs that differ all the same: at most ${percent(told.floor.noise)} (95 %)` : "no quiet pair was run")),
    told.generations.map((each) => generation(told, each)),
    told.generations.length ? null : h("p", { class: "quiet" }, "No stage has been recorded yet."),
    openings(told),
    about(told),
  ];
}

function author(spend) {
  const words = Object.entries(spend).map(([name, much]) => (name.endsWith("_s") ? `${seconds(much)} ${name.slice(0, -2).toUpperCase()}` : `${number(much)} ${name.replaceAll("_", " ")}`));
  return words.length ? words.join(", ") : "–";
}

function generation(told, own) {
  const heading = `generation-${own.number}`;
  return h("section", { class: "generation", "aria-labelledby": heading },
    h("h2", { id: heading }, `Generation ${own.number} `, verdict(own.decision)),
    h("p", {}, own.reason, own.about ? h("span", { class: "sub" }, `About ${own.about}.`) : null),
    h("h3", {}, "Gate funnel"),
    funnel(own),
    own.gain ? gain(own) : null,
    candidate(own),
    clusters(told, own),
    support(own),
    blocks(own),
    tasks(own),
    drove(own),
    costs(own.costs, `costs-${own.number}`),
    pictures(told, own));
}

// ------------------------------------------------------------------------------ the funnel

function funnel(own) {
  const stations = own.stations.map((each) => h("li", { class: "station" },
    h("span", { class: "step" }, each.name),
    h("span", { class: "counted" }, h("b", {}, count(each.passed)), ` of ${count(each.of)} ${each.what}`,
      each.name === "clusters" ? null : meter(each.passed, each.of, `${each.passed} of ${each.of}`))));
  const stages = own.funnel.map((row) => h("li", { class: `rung ${row.outcome}` },
    h("span", { class: "step" }, row.stage.replaceAll("_", " "), " ", verdict(row.outcome)),
    h("span", { class: "counted" }, row.counts || "–", row.pairs ? pairs(row.pairs) : null, row.reason ? h("span", { class: "sub" }, row.reason) : null),
    h("span", { class: "null" }, h("span", { class: "word" }, "null"), row.null || (row.stage === "development" || row.stage === "diagnosis" || row.stage === "screen" ? "no statistic here" : "–"),
      row.alpha === null ? null : h("span", { class: "sub" }, `risk spent here: ${number(row.alpha)}`))));
  return [
    h("ol", { class: "stations", "aria-label": "From failures to a candidate" }, stations),
    h("ol", { class: "funnel", "aria-label": "Stages of the gate" }, stages,
      h("li", { class: `rung end ${own.decision}` }, h("span", { class: "step" }, "verdict ", verdict(own.decision)), h("span", { class: "counted" }, own.reason || "not decided yet"), h("span", { class: "null" }))),
  ];
}

function gain(own) {
  const [value, low, high] = own.gain;
  return h("div", { class: "tiles" },
    tile("gain on the report block", `${points(value)} points`, `95 % interval ${points(low)} to ${points(high)}; this block decides nothing`),
    own.arms.map((arm) => tile(NULLS.has(arm.arm) ? `null: ${arm.arm}` : arm.arm, rate(arm.rate, NULLS.has(arm.arm) ? "is-null" : ""))));
}

// ------------------------------------------------------------------------------ what was found

function folded(key, summary, ...inside) {
  return h("details", { data: { key } }, h("summary", {}, summary), inside);
}

function clusters(told, own) {
  if (!own.clusters.length) return null;
  const rows = own.clusters.map((each) => {
    const id = told.logs[each.log];
    const medoid = each.medoid ? (id ? link(`#/episode/${id}`, each.medoid) : each.medoid) : "–";
    return h("tr", { class: each.target ? "chosen" : null },
      h("td", {}, each.index < 0 ? "all together" : each.index + 1, each.target ? badge("this generation", "live") : null),
      h("td", { class: "num" }, each.size),
      h("td", {}, each.missing || "–"),
      h("td", {}, each.away_in || "–", each.divergence === null ? null : h("span", { class: "sub" }, `around tick ${number(each.divergence)}`)),
      h("td", {}, medoid),
      h("td", { class: "num" }, number(each.recovered)));
  });
  return folded(`clusters-${own.number}`, `Clusters of failures (${own.clusters.filter((each) => each.index >= 0).length})`,
    sheet("Clusters of failures", ["cluster", "#failures", "first missing", "left the successes in", "nearest to all", "#found again"], rows),
    h("p", { class: "sub" }, "Found again: mean Jaccard index with its like among failures drawn again; 1 is a group that always comes back."));
}

function support(own) {
  if (!own.support.length) return null;
  const rows = own.support.map((each) => h("tr", {},
    h("td", {}, each.program), h("td", {}, verdict(each.finding, each.reason)),
    h("td", {}, rate(each.recovered)), h("td", {}, rate(each.unchanged, "is-null")), h("td", {}, rate(each.fresh, "is-null")),
    h("td", { class: "num" }, number(each.p_fresh)), h("td", { class: "num is-null" }, number(each.p_null))));
  return folded(`support-${own.number}`, `Branch replay: which recovery helps (${own.support.filter((e) => e.finding === "supported").length} of ${own.support.length})`,
    sheet("Branch replay", ["recovery", "finding", "with it", "null: unchanged", "null: fresh sample", "#p, fresh", "#p of the null"], rows),
    h("p", { class: "sub" }, "The failures were chosen because the unchanged policy failed, so the fresh sample is the comparison that counts; the p of the null is what it alone gains over the unchanged policy."));
}

function blocks(own) {
  if (!own.blocks.length) return null;
  const rows = own.blocks.map((each) => h("tr", {},
    h("td", {}, each.block), ...[each.pairs, each.intervened, each.wins, each.harms].map((n) => h("td", { class: "num" }, count(n))),
    h("td", { class: "num is-null" }, `${each.equal} of ${each.run}`)));
  return folded(`blocks-${own.number}`, "Pairs, and the noise floor",
    sheet("Pairs", ["block", "#pairs", "#intervened", "#of these won", "#harmed", "#null: quiet and equal"], rows));
}

function tasks(own) {
  const arms = own.arms.map((each) => each.arm);
  const rows = own.tasks.map((each) => h("tr", {}, h("td", {}, each.task), h("td", {}, rate(each.development)),
    arms.map((arm) => h("td", {}, rate(each.arms[arm], NULLS.has(arm) ? "is-null" : "")))));
  return folded(`tasks-${own.number}`, "Tasks",
    sheet("Tasks", ["task", "development, parent", ...arms.map((arm) => (NULLS.has(arm) ? `null: ${arm}` : arm))], rows),
    arms.length ? null : h("p", { class: "sub" }, "Only what is promoted gets a report block; the development block has no null and says only what was developed on."));
}

function drove(own) {
  const rows = own.arms.flatMap((arm) => arm.uses.map((use, number_) => h("tr", {},
    h("td", {}, number_ ? "" : arm.arm), h("td", {}, use.skill), h("td", { class: "num" }, arm.ticks ? percent(use.ticks / arm.ticks) : "–"),
    h("td", { class: "num" }, use.interventions), h("td", { class: "num" }, `${use.episodes} of ${arm.rate.runs}`), h("td", { class: "num" }, use.solved))));
  if (!rows.length) return null;
  return folded(`drove-${own.number}`, "Who drove, on the report block",
    sheet("Who drove", ["arm", "skill", "#share of ticks", "#interventions", "#in episodes", "#of these solved"], rows));
}

function candidate(own) {
  const found = own.candidate;
  if (!found) return null;
  return folded(`candidate-${own.number}`, `Candidate ${found.name}`,
    h("p", {}, found.hypothesis),
    facts([["bundle", h("code", {}, found.digest.slice(0, 12) || "–")], ["writing it took", author(found.author_cost)]]),
    PROGRAMS.filter((name) => name in found.files).map((name) => h("figure", { class: "code" }, h("figcaption", {}, name),
      h("pre", { tabindex: "0", "aria-label": name }, h("code", {}, found.files[name])))));
}

export function costs(rows, key) {
  const all = (name) => rows.reduce((sum, row) => sum + (row[name] ?? 0), 0);
  return folded(key, `Spent: ${count(all("rollouts"))} rollouts, ${seconds(all("wall_s"))}`,
    sheet("Spent", ["stage", "#rollouts", "#planned, at most", "#CPU", "#wall", "#forecast"], rows.map((row) => h("tr", {},
      h("td", {}, row.stage.replaceAll("_", " ")), h("td", { class: "num" }, count(row.rollouts)), h("td", { class: "num" }, row.planned === null ? "–" : count(row.planned)),
      h("td", { class: "num" }, seconds(row.cpu_s)), h("td", { class: "num" }, seconds(row.wall_s)), h("td", { class: "num" }, seconds(row.forecast_s))))));
}

function pictures(told, own) {
  const strips = told.strips.filter((each) => each.generation === own.number);
  const there = strips.filter((each) => each.there);
  if (!strips.length) return null;
  if (!there.length) {
    return h("p", { class: "sub" }, `${plural(strips.length, "picture strip")} of failures not drawn; where the logs are still there: `, h("code", {}, "zetta evolve --report CAMPAIGN"));
  }
  return h("div", { class: "strips" }, h("h3", {}, "Pictures"), there.map((each) => h("figure", {},
    h("img", { src: `/api/campaigns/${told.id}/pictures/${each.name}`, alt: each.caption, loading: "lazy" }), h("figcaption", {}, each.caption))));
}

// ------------------------------------------------------------------------------ the campaign

function openings(told) {
  if (!told.openings.length) return null;
  return h("section", {}, h("h2", {}, "Gates that were opened"),
    sheet("Openings", ["#opening", "candidate", "#risk", "decision", "#pairs", "#won", "#harmed"], told.openings.map((each) => h("tr", {},
      h("td", { class: "num" }, each.number), h("td", {}, h("code", {}, each.candidate.slice(0, 12))), h("td", { class: "num" }, number(each.alpha)),
      h("td", {}, verdict(each.decision)), h("td", { class: "num" }, each.pairs), h("td", { class: "num" }, each.wins), h("td", { class: "num" }, each.harms)))));
}

function about(told) {
  return h("section", {}, h("h2", {}, "What was run"),
    facts([
      ["simulator", `${told.sim}, ${told.suite}, tasks ${told.tasks.join(", ")}`], ["policy", told.policy], ["first parent", told.bundle],
      ["gate plan", h("code", {}, told.plan.slice(0, 12))], ["manifest", h("code", {}, told.digest.slice(0, 12))],
      ["options", Object.entries(told.options).map(([name, value]) => `${name}=${value}`).join(", ") || "none"],
      ["versions", Object.entries(told.versions).map(([name, value]) => `${name} ${value}`).join(", ") || "–"],
    ]),
    h("pre", { tabindex: "0", "aria-label": "Command" }, h("code", {}, told.command)));
}

