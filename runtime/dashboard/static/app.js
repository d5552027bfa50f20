// The page: which view is shown, news, theme and keys.

import { News, get } from "/static/api.js";
import { announce, h, problem, put } from "/static/dom.js";

/** Views by the first part of the address; `nav` is the word in the bar. */
const VIEWS = {
  fleet: { file: "/static/fleet.js", nav: "Runs" },
  run: { file: "/static/run.js" },
  episodes: { file: "/static/run.js", nav: "Episodes" },
  episode: { file: "/static/episode.js" },
  compare: { file: "/static/compare.js", nav: "Compare" },
  pair: { file: "/static/pair.js" },
  campaigns: { file: "/static/campaigns.js", nav: "Campaigns" },
  campaign: { file: "/static/campaign.js" },
  library: { file: "/static/library.js", nav: "Skills" },
};

const KEYS = [
  ["?", "these keys"], ["d", "dark or light"], ["g r", "all runs"], ["g e", "all episodes"],
  ["g v", "compare two runs"], ["g c", "campaigns"], ["g s", "skills"],
  ["/", "search in a list"], ["j k", "next and last row of a list"], ["Enter", "open the row"],
  ["[ ]", "episode before and after"], ["← →", "one tick back and on (with Shift: ten)"],
  ["Space", "play or stop"], ["n p", "next and last event"], ["Home End", "first and last tick"],
  ["Esc", "back to the run, or close"],
];

const main = document.getElementById("main");
let leaving = new AbortController();
let context = null;

const news = new News((state, told) => {
  const dot = document.getElementById("status");
  dot.dataset.state = state;
  dot.title = told?.problem ?? "";
  if (state === "lost") dot.textContent = "no connection";
  else if (told.problem) dot.textContent = told.problem;
  else if (!told.indexed) dot.textContent = told.pending ? `reading ${told.pending} logs` : "reading";
  else dot.textContent = told.running.length ? `${told.running.length} running` : "";
});

function parsed() {
  const [path, query] = (location.hash.slice(1) || "/fleet").split("?");
  const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
  return { name: parts[0] ?? "fleet", parts: parts.slice(1), query: new URLSearchParams(query ?? "") };
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { name, parts, query } = parsed();
  const view = VIEWS[name];
  const place = h("div", { class: `view ${name}` });
  const signal = leaving.signal;
  context = {
    name, parts, query, signal, news,
    onNews: (callback) => news.listen(callback, signal),
    setTitle: (text) => { document.title = text ? `${text} · Zetta` : "Zetta"; },
    navigate: (address) => { location.hash = address; },
    rewrite,
    keys: {},
  };
  for (const each of document.querySelectorAll("#views a")) {
    if (each.dataset.view === name) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  put(main, place);
  window.scrollTo(0, 0);
  if (!view) {
    context.setTitle("No such page");
    put(place, problem("There is no such page."));
    return;
  }
  try {
    const module = await import(view.file);
    if (signal.aborted) return;
    context.setTitle(module.title);
    await module.show(place, context);
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    put(place, problem(error.message));
    console.error(error);
  }
}

/** Change the query of the address without showing the view again. */
function rewrite(query) {
  const { name, parts } = parsed();
  const path = [name, ...parts.map(encodeURIComponent)].join("/");
  const text = query.toString();
  history.replaceState(null, "", `#/${path}${text ? `?${text}` : ""}`);
}

function theme(wanted) {
  if (wanted) localStorage.setItem("zetta-theme", wanted);
  const chosen = localStorage.getItem("zetta-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}

function otherTheme() {
  const now = document.documentElement.dataset.theme
    ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  theme(now === "dark" ? "light" : "dark");
  announce(`${document.documentElement.dataset.theme} colours`);
  dispatchEvent(new Event("themechange"));
}

function help() {
  const dialog = document.getElementById("help");
  if (dialog.open) return dialog.close();
  put(dialog,
    h("h2", { id: "help-title" }, "Keys"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) =>
      h("div", {}, h("dt", {}, key.split(" ").map((k) => h("kbd", {}, k))), h("dd", {}, what)))),
    h("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  dialog.showModal();
}

function rows() {
  return [...main.querySelectorAll("tr[data-href]")];
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(document.activeElement);
  all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))].focus();
}

let prefix = "";
function pressed(event) {
  const typing = event.target.closest?.("input, select, textarea, dialog");
  if (event.ctrlKey || event.metaKey || event.altKey || typing) {
    if (event.key === "Escape" && typing) event.target.blur?.();
    return;
  }
  const key = prefix + event.key;
  prefix = event.key === "g" ? "g " : "";
  const own = context?.keys?.[event.key];
  const everywhere = {
    "?": help, d: otherTheme, j: () => step(1), k: () => step(-1),
    "g r": () => { location.hash = "/fleet"; }, "g e": () => { location.hash = "/episodes"; },
    "g v": () => { location.hash = "/compare"; }, "g c": () => { location.hash = "/campaigns"; },
    "g s": () => { location.hash = "/library"; },
    "/": () => main.querySelector("input[type=search]")?.focus(),
  };
  const act = everywhere[key] ?? own ?? everywhere[event.key];
  if (!act) return;
  event.preventDefault();
  act(event);
}

put(document.getElementById("views"), Object.entries(VIEWS).filter(([, v]) => v.nav).map(([name, v]) =>
  h("a", { href: `#/${name}`, data: { view: name } }, v.nav)));
document.getElementById("theme").addEventListener("click", otherTheme);
document.getElementById("keys").addEventListener("click", help);
addEventListener("hashchange", show);
addEventListener("keydown", pressed);
theme();
show();
get("/api/about").then((told) => {
  document.documentElement.dataset.mayChange = told.may_change ? "yes" : "no";
  document.querySelector(".brand").title = `Zetta ${told.version}: ${told.runs}`;
}).catch(() => {});
