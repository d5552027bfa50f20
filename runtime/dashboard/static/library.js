// The skill library: what is in use, what speaks for it, where it is used, and the way back.

import { get, post } from "/static/api.js";
import { announce, badge, empty, facts, h, level, link, problem, put } from "/static/dom.js";
import { count, number, plural } from "/static/format.js";
import { points, sheet, tile, verdict } from "/static/campaign_parts.js";

export const title = "Skills";
const short = (digest) => (digest ? digest.slice(0, 12) : "none");

export async function show(place, context) {
  const load = async () => put(place, page(await get("/api/library", {}, context.signal), load));
  await load();
}

function page(told, reload) {
  const current = told.versions.find((each) => each.current);
  return [
    h("h1", {}, "Skills"),
    h("section", { "aria-labelledby": "own" },
      h("h2", { id: "own" }, "Your library"),
      h("p", { class: "sub" }, told.folder),
      current ? inUse(told, current, reload) : empty(
        "Nothing was promoted into it yet.",
        h("p", {}, "A campaign that ends in PROMOTE fills it: ", h("code", {}, "zetta skills promote CAMPAIGN"))),
      told.versions.length ? versions(told, reload) : null,
      told.changes.length ? history(told) : null),
    h("section", { "aria-labelledby": "shipped" },
      h("h2", { id: "shipped" }, "Come with zetta"),
      told.shipped.map((each) => skill(each, told, "shipped"))),
  ];
}

function inUse(told, current, reload) {
  const used = told.used.bundles[current.bundle];
  return [
    h("div", { class: "tiles" },
      tile("in use", h("code", {}, short(current.version)), `since ${when(current.since)}`),
      tile("skills", count(current.skills.length), `${current.skills.filter((each) => each.standing === "proven").length} proven by a gate`),
      tile("episodes under it here", count(used?.episodes ?? 0), runs(used)),
      tile("way back", told.before ? h("code", {}, short(told.before)) : "none", told.before ? backButton(told, told.before, reload) : "there is no version before this one")),
    current.error ? problem(current.error) : null,
    current.skills.map((each) => skill(each, told, "own")),
  ];
}

const when = (text) => (text ? text.replace("T", " ").replace("+00:00", " UTC") : "–");

function runs(used) {
  if (!used) return "none of the runs in this folder";
  const named = used.named.map((each, place) => [place ? ", " : "", link(`#/run/${each.id}`, each.name), ` (${count(each.episodes)})`]);
  return [`in ${plural(used.runs, "run")}: `, named, used.runs > used.named.length ? ` and ${used.runs - used.named.length} more` : ""];
}

// ------------------------------------------------------------------------------ one skill

function skill(each, told, where) {
  const used = told.used.skills[each.name];
  return h("details", { class: "package", data: { key: `${where}-${each.name}` } },
    h("summary", {},
      h("b", {}, each.name), " ", each.version ? h("span", { class: "quiet" }, each.version) : null, " ",
      standing(each), " ", each.level ? level(each.level) : null,
      h("span", { class: "sub" }, each.error ?? each.description)),
    each.error ? problem(each.error) : inside(each, used, told, where));
}

function standing(each) {
  if (each.error) return badge("broken", "bad");
  if (!each.standing) return badge(each.signed, "quiet", "Signature");
  return [badge(each.standing, { proven: "good", unproven: "warn", quarantined: "bad" }[each.standing], each.why ?? undefined), " ", badge(each.signed, "quiet", "Signature")];
}

function inside(each, used, told, where) {
  const held = told.versions.filter((version) => version.skills.some((own) => own.hash === each.hash));
  return [
    h("p", {}, each.applies),
    facts([
      ["roles", each.roles.join(", ") || "none"], ["at most", plural(each.max_ticks, "tick")],
      ["made by", `${each.made_by}, ${each.author}, ${each.date}`],
      ["package", h("code", {}, short(each.hash))],
      ["in bundles", [...(each.bundles ?? []), ...(held.length ? [`library (${held.map((version) => short(version.version)).join(", ")})`] : [])].join(", ") || "none that ships or was promoted"],
      ["had the robot in", used ? [`${plural(used.episodes, "episode")} `, runs(used)] : "no episode of this folder"],
      ["replay windows", count(each.windows)],
      each.why ? ["left out because", each.why] : null,
    ]),
    where === "own" ? evidence(each.evidence) : records(each.records),
    sheet(`Parameters of ${each.name}`, ["parameter", "#value", "#from", "#to", "unit", "meaning"], each.parameters.map((p) => h("tr", {},
      h("td", {}, p.name), [p.value, p.low, p.high].map((value) => h("td", { class: "num" }, number(value))), h("td", {}, p.unit), h("td", {}, p.doc)))),
    ["critic", "recovery"].map((name) => h("details", {}, h("summary", {}, `${name}.py`),
      h("pre", { tabindex: "0", "aria-label": `${name}.py of ${each.name}` }, h("code", {}, each[name])))),
  ];
}

function evidence(found) {
  if (!found) return h("p", { class: "problem" }, "No gate has promoted it: it was taken on somebody's word.");
  const rows = found.stages.map((each) => h("tr", {}, h("td", {}, each.stage.replaceAll("_", " ")), h("td", {}, verdict(each.outcome)),
    [each.pairs, each.wins, each.harms].map((n) => h("td", { class: "num" }, count(n)))));
  const nulls = Object.entries(found.null).map(([name, value]) => `${name.replaceAll("_", " ")} ${number(value)}`).join(", ");
  return h("div", { class: "evidence" },
    h("p", {}, verdict(found.verdict), " ", found.reason),
    found.report ? h("p", {}, `On ${plural(found.report.pairs, "fresh pair")}: `, h("b", {}, `${points(found.report.difference)} points`),
      h("span", { class: "ci" }, ` 95 % interval ${points(found.report.low)} to ${points(found.report.high)}`)) : null,
    h("p", { class: "is-null" }, nulls ? `nulls: ${nulls}` : "no null was kept beside it"),
    rows.length ? sheet("Stages of its gate", ["stage", "outcome", "#pairs", "#won", "#harmed"], rows) : null,
    facts([["suites", found.suites.join(", ")], ["policy", found.policy], ["sensing", level(found.sensing)], ["campaign", h("code", {}, short(found.campaign))], ["with", h("code", {}, found.command)]]));
}

function records(found) {
  if (!found.length) return h("p", { class: "sub" }, "The package brings no evidence of its own.");
  return h("pre", { tabindex: "0", "aria-label": "Evidence" }, h("code", {}, found.map((each) => JSON.stringify(each)).join("\n")));
}

// ------------------------------------------------------------------------------ versions

function versions(told, reload) {
  const rows = told.versions.map((each) => {
    const used = told.used.bundles[each.bundle];
    return h("tr", { class: each.current ? "chosen" : null },
      h("td", {}, h("code", {}, short(each.version)), each.current ? [" ", badge("in use", "good")] : null),
      h("td", {}, when(each.since)),
      h("td", {}, each.error ?? (each.skills.map((own) => own.name).join(", ") || "none")),
      h("td", {}, used ? runs(used) : "–"),
      h("td", {}, each.current ? null : backButton(told, each.version, reload)));
  });
  return [h("h3", {}, "Versions"), sheet("Versions", ["version", "since", "skills", "episodes here", "use it"], rows)];
}

function history(told) {
  const rows = told.changes.map((each) => h("tr", {},
    h("td", {}, when(each.at)), h("td", {}, each.who), h("td", {}, each.action, each.unproven ? [" ", badge("unproven", "warn")] : null),
    h("td", {}, each.skill ?? "–"), h("td", {}, h("code", {}, short(each.before)), " → ", h("code", {}, short(each.version))), h("td", {}, each.why || "–")));
  return [h("h3", {}, "History"), sheet("History", ["at", "who", "what", "skill", "from and to", "why"], rows)];
}

// ------------------------------------------------------------------------------ the way back

function backButton(told, version, reload) {
  const may = document.documentElement.dataset.mayChange === "yes";
  return h("button", {
    type: "button", class: "danger", disabled: !may, "aria-label": `Roll back to ${short(version)}`,
    title: may ? undefined : "Open the URL with the token that was printed at the start",
    onclick: () => ask(told, version, reload),
  }, "Roll back…");
}

/** Ask, and only then change anything. */
function ask(told, version, reload) {
  const target = told.versions.find((each) => each.version === version);
  const current = told.versions.find((each) => each.current);
  const names = (of) => (of ? of.skills.map((each) => each.name) : []);
  const lost = names(current).filter((name) => !names(target).includes(name));
  const back = names(target).filter((name) => !names(current).includes(name));
  const why = h("input", { type: "text", id: "why", maxlength: "400", autocomplete: "off" });
  const said = h("div", {});
  const roll = h("button", { type: "submit", class: "danger" }, "Roll back");
  const dialog = h("dialog", { "aria-labelledby": "ask" },
    h("form", { method: "dialog", onsubmit: async (event) => {
      event.preventDefault();
      roll.disabled = true;
      try {
        const { change } = await post("/api/library/rollback", { to: version, why: why.value });
        dialog.close();
        await reload();
        announce(`${short(change.version)} is in use`);
      } catch (error) {
        put(said, problem(error.message));
        roll.disabled = false;
      }
    } },
    h("h2", { id: "ask" }, `Roll back to ${short(version)}?`),
    h("p", {}, lost.length ? `It leaves out: ${lost.join(", ")}. ` : "", back.length ? `It brings back: ${back.join(", ")}. ` : "",
      "Runs that start from now on with --bundle library use it; nothing is lost, and the change can be undone in the same way."),
    h("p", {}, h("label", { for: "why" }, "Why (for the history) "), why),
    said,
    h("p", { class: "buttons" }, h("button", { type: "button", onclick: () => dialog.close() }, "Leave it as it is"), " ", roll)));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
