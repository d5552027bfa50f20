// Elements from data. Text is always text: nothing here reads a string as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Make an element: h("td", {class: "num", onclick: f}, "text", other). */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replace everything in an element. */
export function put(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

export function link(address, text, attributes) {
  return h("a", { href: address, ...attributes }, text);
}

/** A small mark such as a sensing level or a state. */
export function badge(text, kind = "", title = undefined) {
  return h("span", { class: `badge ${kind}`, title }, text);
}

/** A sensing level; oracle is marked wherever it is shown. */
export function level(name) {
  if (name === "oracle") {
    return badge("oracle", "oracle", "Reads simulator truth: for diagnosis, never a headline number");
  }
  return badge(name || "level unknown", "level", `Highest sensing level: ${name}`);
}

/** Pairs of a name and a value. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, ...value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export function problem(text) {
  return h("p", { class: "problem", role: "alert" }, text);
}

export function empty(text, ...more) {
  return h("div", { class: "empty" }, h("p", {}, text), more);
}

/** Tell people who hear the page what has changed. */
export function announce(text) {
  document.getElementById("said").textContent = text;
}
