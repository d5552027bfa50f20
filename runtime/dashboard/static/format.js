// Numbers and times as people read them.

export const count = (n) => (n ?? 0).toLocaleString("en-US");

export function percent(share, digits = 0) {
  return share === null || share === undefined || Number.isNaN(share) ? "–" : `${(100 * share).toFixed(digits)} %`;
}

/** 0.04213 → 0.0421, 12345.6 → 12346, null → –. */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return value.toFixed(0);
  if (size < 0.0005) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

export function seconds(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 120) return `${value.toFixed(0)} s`;
  if (value < 7200) return `${(value / 60).toFixed(0)} min`;
  if (value < 172800) return `${(value / 3600).toFixed(1)} h`;
  return `${(value / 86400).toFixed(0)} days`;
}

export function moment(unix) {
  if (!unix) return "–";
  const at = new Date(1000 * unix);
  const day = at.toDateString() === new Date().toDateString() ? "" : `${at.toISOString().slice(0, 10)} `;
  return day + at.toTimeString().slice(0, 5);
}

export function ago(unix) {
  return unix ? `${seconds(Math.max(0, Date.now() / 1000 - unix))} ago` : "–";
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** policy → policy, skill:regrasp → regrasp. */
export const sourceName = (source) => (source || "").replace(/^(skill|agent|oracle):/, "");

/** Which of the colours a source has. */
export function sourceKind(source) {
  if (!source) return "none";
  const kind = source.split(":")[0];
  return ["policy", "skill", "agent", "oracle"].includes(kind) ? kind : "skill";
}

export function episodeName(row) {
  const start = row.init === "sampled" ? `sampled seed ${row.seed}` : `init ${row.init}`;
  return `${row.suite || "?"} task ${row.task} ${start}`;
}

export function outcome(row) {
  if (row.error) return { text: "error", kind: "error" };
  if (row.success === null) return { text: "unjudged", kind: "quiet" };
  return row.success ? { text: "solved", kind: "good" } : { text: "not solved", kind: "bad" };
}
