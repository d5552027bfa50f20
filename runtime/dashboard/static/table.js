// A list that the server pages, sorts and filters: nothing is held here but one page of it.

import { ApiError, get } from "/static/api.js";
import { announce, h, problem, put } from "/static/dom.js";
import { count, plural } from "/static/format.js";

/** Rows of one page. */
const PAGE = 50;

/**
 * Show a list in `place`.
 *
 * options: {
 *   url,                   answers {rows, total, limit, offset, ...}
 *   fixed,                 query that the user cannot change, such as {run: id}
 *   columns: [{name, title, sort?, num?, wide?, cell(row)}],   cell returns text or nodes
 *   filters: [{name, title, values: [[value, text], ...]}],
 *   search,                name of the search field, such as "q"
 *   href(row),             where a row leads
 *   what,                  one row in words, such as "episode"
 *   onAnswer?(answer),
 *   sort?, order?,
 * }
 * Returns {refresh()}: ask again, for instance after news.
 */
export function list(place, context, options) {
  const query = new URLSearchParams(context.query);
  const state = {
    offset: Number(query.get("offset") ?? 0), limit: PAGE,
    sort: query.get("sort") ?? options.sort ?? "ended", order: query.get("order") ?? options.order ?? "desc",
  };
  const chosen = Object.fromEntries((options.filters ?? []).map((f) => [f.name, query.get(f.name) ?? ""]));
  let text = query.get(options.search) ?? "";
  let asking = null;

  context.signal.addEventListener("abort", () => asking?.abort(), { once: true });
  const told = h("span", { class: "told", role: "status" });
  const body = h("tbody");
  const headings = options.columns.map((column) => heading(column));
  const pager = h("div", { class: "pager" });
  const complaint = h("div");

  function heading(column) {
    const kind = [column.num && "num", column.wide && "wide"].filter(Boolean).join(" ");
    if (!column.sort) return h("th", { scope: "col", class: kind }, column.title);
    return h("th", { scope: "col", class: kind, data: { sort: column.sort } },
      h("button", { type: "button", onclick: () => sortBy(column) }, column.title));
  }

  function sortBy(column) {
    const again = state.sort === column.sort;
    state.order = again ? (state.order === "desc" ? "asc" : "desc") : (column.num ? "desc" : "asc");
    state.sort = column.sort;
    state.offset = 0;
    refresh();
  }

  function filters() {
    const parts = [];
    if (options.search) {
      let waits;
      parts.push(h("input", {
        type: "search", placeholder: "Search", "aria-label": `Search ${options.what}s`, value: text,
        oninput: (event) => {
          clearTimeout(waits);
          waits = setTimeout(() => { text = event.target.value; state.offset = 0; refresh(); }, 150);
        },
      }));
    }
    for (const filter of options.filters ?? []) {
      if (filter.values.length < 2 && !chosen[filter.name]) continue;
      parts.push(h("select", {
        "aria-label": filter.title, name: filter.name,
        onchange: (event) => { chosen[filter.name] = event.target.value; state.offset = 0; refresh(); },
      }, h("option", { value: "" }, `${filter.title}: all`), filter.values.map(([value, name]) =>
        h("option", { value, selected: String(value) === chosen[filter.name] }, name))));
    }
    return h("div", { class: "filters" }, parts, told);
  }

  function remember() {
    const kept = new URLSearchParams();
    for (const [name, value] of Object.entries(chosen)) if (value) kept.set(name, value);
    if (text) kept.set(options.search, text);
    if (state.offset) kept.set("offset", state.offset);
    if (state.sort !== (options.sort ?? "ended")) kept.set("sort", state.sort);
    if (state.order !== (options.order ?? "desc")) kept.set("order", state.order);
    context.rewrite(kept);
  }

  async function refresh(quiet = false) {
    asking?.abort();
    asking = new AbortController();
    const mine = asking;
    if (!quiet) remember();
    try {
      const search = options.search ? { [options.search]: text } : {};
      const answer = await get(options.url, { ...options.fixed, ...chosen, ...search, ...state }, mine.signal);
      if (mine !== asking) return;
      put(complaint);
      draw(answer, quiet);
    } catch (error) {
      if (error.name === "AbortError") return;
      put(complaint, problem(error instanceof ApiError ? error.message : String(error)));
    }
  }

  function draw(answer, quiet) {
    for (const each of headings) {
      if (!each.dataset.sort) continue;
      const sorted = each.dataset.sort === state.sort;
      each.setAttribute("aria-sort", sorted ? (state.order === "asc" ? "ascending" : "descending") : "none");
    }
    const focused = [...body.children].indexOf(document.activeElement);
    put(body, answer.rows.map(row));
    if (!answer.rows.length) {
      put(body, h("tr", {}, h("td", { colspan: options.columns.length, class: "empty" }, "Nothing fits these filters.")));
    }
    if (focused >= 0) body.children[focused]?.focus();
    told.textContent = plural(answer.total, options.what);
    if (!quiet) announce("");
    page(answer);
    options.onAnswer?.(answer);
  }

  function row(each) {
    const href = options.href?.(each);
    const open = (event) => {
      if (event.target.closest("a, button")) return;
      if (event.type === "click" ? true : event.key === "Enter") location.hash = href.slice(1);
    };
    return h("tr", href ? { data: { href }, tabindex: "0", onclick: open, onkeydown: open } : {},
      options.columns.map((column) => h("td", {
        class: [column.num && "num", column.wide && "wide"].filter(Boolean).join(" "),
      }, column.cell(each))));
  }

  function page(answer) {
    const last = Math.min(answer.offset + answer.rows.length, answer.total);
    const go = (offset) => () => { state.offset = Math.max(0, offset); refresh(); };
    put(pager,
      h("span", { class: "told" }, answer.total ? `${count(answer.offset + 1)}–${count(last)} of ${count(answer.total)}` : ""),
      h("button", { type: "button", disabled: answer.offset === 0, onclick: go(0), "aria-label": "First page" }, "«"),
      h("button", { type: "button", disabled: answer.offset === 0, onclick: go(state.offset - state.limit), "aria-label": "Page before" }, "‹"),
      h("button", { type: "button", disabled: last >= answer.total, onclick: go(state.offset + state.limit), "aria-label": "Next page" }, "›"),
      h("button", { type: "button", disabled: last >= answer.total, "aria-label": "Last page",
        onclick: go(Math.floor((answer.total - 1) / state.limit) * state.limit) }, "»"));
    pager.hidden = answer.total <= state.limit;
  }

  put(place, h("div", { class: "panel flush list" }, filters(), complaint,
    h("div", { class: "scroll" }, h("table", { "aria-label": `${options.what}s` },
      h("thead", {}, h("tr", {}, headings)), body)), pager));
  const first = refresh(true);
  return { refresh: () => refresh(true), first };
}
