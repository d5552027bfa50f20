// Drawings: intervals, and lanes of lines over one shared axis of ticks.

import { h, s } from "/static/dom.js";
import { number, percent } from "/static/format.js";

/** A success rate as a bar with its 95 % interval. */
export function interval(rate, width = 120) {
  const [low, high] = rate.wilson;
  const share = rate.scored ? rate.solved / rate.scored : null;
  const said = rate.scored
    ? `${percent(share)}, 95 % interval ${percent(low)} to ${percent(high)}` : "no episode is scored";
  const x = (value) => 4 + value * (width - 8);
  return s("svg", { class: "interval", width, height: 16, viewBox: `0 0 ${width} 16`, role: "img", "aria-label": said },
    s("title", {}, `${said} (Wilson); exact ${percent(rate.exact[0])} to ${percent(rate.exact[1])}`),
    s("line", { x1: 4, x2: width - 4, y1: 8, y2: 8, stroke: "var(--line)", "stroke-width": 2 }),
    share === null ? null : [
      s("line", { x1: x(low), x2: x(high), y1: 8, y2: 8, stroke: "var(--accent)", "stroke-width": 4, opacity: 0.45, "stroke-linecap": "round" }),
      s("circle", { cx: x(share), cy: 8, r: 4, fill: "var(--accent)" })]);
}

/** k/n, percent and interval beside each other. */
export function rateCell(rate) {
  return h("span", { class: "score" }, h("span", {}, `${rate.solved}/${rate.scored} `,
    h("span", { class: "soft" }, rate.scored ? percent(rate.solved / rate.scored) : "–")), interval(rate, 84));
}

/** A bound without the dust that sums leave: 6.9e-18 beside 1 is 0. */
const rounded = (value, range) => (Math.abs(value) < 1e-9 * range ? 0 : value);

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Shares the axis of ticks and the present tick among lanes; every lane draws itself. */
export class Timeline {
  constructor(ticks, hz) {
    this.ticks = Math.max(1, ticks);
    this.hz = hz || 20;
    this.tick = 0;
    this.lanes = new Set();
    this.callbacks = new Set();
    this.left = 12;
    this.right = 12;
  }

  x(tick, width) { return this.left + (tick / Math.max(1, this.ticks - 1)) * (width - this.left - this.right); }

  at(x, width) {
    const share = (x - this.left) / Math.max(1, width - this.left - this.right);
    return Math.max(0, Math.min(this.ticks - 1, Math.round(share * (this.ticks - 1))));
  }

  go(tick, from = null) {
    const next = Math.max(0, Math.min(this.ticks - 1, Math.round(tick)));
    if (next === this.tick && from !== null) return;
    this.tick = next;
    for (const each of this.lanes) each.mark(next);
    for (const each of this.callbacks) each(next, from);
  }

  onTick(callback) { this.callbacks.add(callback); }

  redraw() { for (const each of this.lanes) each.draw(); }

  /** Watch sizes and colours until the signal says stop. */
  watch(signal) {
    const sizes = new ResizeObserver(() => this.redraw());
    for (const each of this.lanes) sizes.observe(each.element);
    this.sizes = sizes;
    const again = () => this.redraw();
    addEventListener("themechange", again, { signal });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again, { signal });
    signal.addEventListener("abort", () => sizes.disconnect());
  }

  add(lane) {
    this.lanes.add(lane);
    this.sizes?.observe(lane.element);
    return lane;
  }

  remove(lane) {
    this.lanes.delete(lane);
    this.sizes?.unobserve(lane.element);
    lane.element.remove();
  }
}

/** One lane: a canvas with a cursor; a click or a drag moves the present tick. */
class Lane {
  constructor(timeline, height, label) {
    this.timeline = timeline;
    this.height = height;
    this.canvas = h("canvas", { role: "img", "aria-label": label });
    this.cursor = h("div", { class: "cursor", style: { position: "absolute", top: "0", bottom: "0", width: "1px", background: "var(--accent)", pointerEvents: "none" } });
    this.chart = h("div", { class: "chart" }, this.canvas, this.cursor);
    this.element = this.chart;
    const point = (event) => {
      const box = this.canvas.getBoundingClientRect();
      timeline.go(timeline.at(event.clientX - box.left, box.width));
    };
    this.chart.addEventListener("pointerdown", (event) => {
      point(event);
      this.chart.setPointerCapture(event.pointerId);
    });
    this.chart.addEventListener("pointermove", (event) => { if (event.buttons & 1) point(event); });
  }

  /** Return the pen of a canvas as wide as its place, in device pixels. */
  pen() {
    const width = this.chart.clientWidth || 300;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    return { pen, width };
  }

  draw() {
    const { pen, width } = this.pen();
    this.paint(pen, width);
    this.mark(this.timeline.tick);
  }

  mark(tick) {
    this.cursor.style.left = `${this.timeline.x(tick, this.chart.clientWidth || 300)}px`;
  }
}

/** Who drove when, with marks where critics spoke. */
export class SourceLane extends Lane {
  constructor(timeline, stretches, marks, height = 34) {
    super(timeline, height, "Who drove at which tick, and where critics spoke");
    this.stretches = stretches;
    this.marks = marks;
    this.draw();
  }

  paint(pen, width) {
    const t = this.timeline;
    const half = (t.x(1, width) - t.x(0, width)) / 2;
    for (const each of this.stretches) {
      pen.fillStyle = css(`--${each.kind}`) || css("--policy");
      const from = Math.max(t.left - 3, t.x(each.first, width) - half);
      const to = Math.min(width - t.right + 3, t.x(each.last, width) + half);
      pen.fillRect(from, 10, Math.max(1, to - from), 12);
    }
    for (const mark of this.marks) {
      const x = t.x(mark.tick, width);
      pen.fillStyle = css(mark.kind === "abort" ? "--bad" : mark.kind === "recover" ? "--skill" : "--faint");
      pen.beginPath();
      pen.moveTo(x - 4, 0);
      pen.lineTo(x + 4, 0);
      pen.lineTo(x, 8);
      pen.fill();
    }
    pen.fillStyle = css("--faint");
    pen.font = "10px sans-serif";
    const seconds = t.ticks / t.hz;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600].find((d) => (seconds / d) * 46 < width) ?? 1200;
    for (let at = 0; at <= seconds + 1e-9; at += step) {
      const x = t.x(at * t.hz, width);
      if (x > width - 40) break;
      pen.fillRect(x, 23, 1, 3);
      pen.fillText(`${Number(at.toFixed(2))} s`, x + 3, 32);
    }
  }
}

/** Lines of one or several series; null breaks a line. */
export class LineLane extends Lane {
  /** series: [{name, ticks, values, colour}] */
  constructor(timeline, series, height = 64, label = "", shares = false) {
    super(timeline, height, label || series.map((each) => each.name).join(", "));
    this.series = series;
    this.bounds = shares ? [-0.03, 1.03] : null;
    this.draw();
  }

  range() {
    if (this.bounds) return this.bounds;
    let low = Infinity;
    let high = -Infinity;
    for (const each of this.series) {
      for (const value of each.values) {
        if (value === null) continue;
        if (value < low) low = value;
        if (value > high) high = value;
      }
    }
    if (low > high) return [0, 1];
    if (high - low < 1e-9) return [low - 0.5, high + 0.5];
    return [low - 0.06 * (high - low), high + 0.06 * (high - low)];
  }

  paint(pen, width) {
    const [low, high] = this.range();
    const y = (value) => this.height - 4 - ((value - low) / (high - low)) * (this.height - 8);
    pen.fillStyle = css("--faint");
    pen.font = "10px sans-serif";
    if (low < 0 && high > 0) {
      pen.fillStyle = css("--line");
      pen.fillRect(this.timeline.left, y(0), width - this.timeline.left - this.timeline.right, 1);
    }
    for (const each of this.series) {
      pen.strokeStyle = css(each.colour) || each.colour;
      pen.lineWidth = 1.4;
      pen.beginPath();
      let open = false;
      each.ticks.forEach((tick, i) => {
        const value = each.values[i];
        if (value === null) { open = false; return; }
        const x = this.timeline.x(tick, width);
        if (open) pen.lineTo(x, y(value));
        else pen.moveTo(x, y(value));
        open = true;
      });
      pen.stroke();
    }
    const values = this.series.flatMap((each) => each.values.find((value) => value !== null) ?? []);
    if (!this.bounds && this.series.every((each) => each.values.every((v) => v === null || Math.abs(v - values[0]) < 1e-9))) {
      if (values.length) this.tag(pen, number(values[0]), this.height / 2 - 4);
      return;
    }
    const edge = (0.06 * (high - low)) / 1.12;
    this.tag(pen, number(rounded(this.bounds ? 1 : high - edge, high - low)), 11);
    this.tag(pen, number(rounded(this.bounds ? 0 : low + edge, high - low)), this.height - 4);
  }

  /** A small text on the ground, so that a line behind it does not strike it through. */
  tag(pen, text, y) {
    const wide = pen.measureText(text).width;
    pen.globalAlpha = 0.8;
    pen.fillStyle = css("--panel");
    pen.fillRect(11, y - 9, wide + 4, 11);
    pen.globalAlpha = 1;
    pen.fillStyle = css("--soft");
    pen.fillText(text, 13, y);
  }

  /** The value of a series at a tick, or at the last one before it. */
  value(tick, which = 0) {
    const { ticks, values } = this.series[which];
    let low = 0;
    let high = ticks.length - 1;
    if (high < 0 || ticks[0] > tick) return null;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (ticks[middle] <= tick) low = middle;
      else high = middle - 1;
    }
    return values[low];
  }
}
