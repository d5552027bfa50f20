// Requests to this server. Every failure becomes one sentence.

export class ApiError extends Error {}

async function answered(response) {
  let body = null;
  try { body = await response.json(); } catch { /* no JSON: the status says enough */ }
  if (!response.ok) throw new ApiError(body?.error ?? `the server answered ${response.status}`);
  return body;
}

function address(path, query) {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") url.searchParams.append(name, each);
    }
  }
  return url;
}

async function send(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("the server does not answer; is zetta dashboard still running?");
  }
}

/** GET an answer. `query` values may be lists. */
export async function get(path, query, signal) {
  return answered(await send(address(path, query), { signal, headers: { Accept: "application/json" } }));
}

/** Ask for a change; the token is in a cookie, and the browser says our origin. */
export async function post(path, body, signal) {
  return answered(await send(address(path), {
    method: "POST", signal, body: JSON.stringify(body ?? {}),
    headers: { "Content-Type": "application/json" },
  }));
}

/** News of the server, to everybody who listens; one connection for the page. */
export class News {
  constructor(onState) {
    this.callbacks = new Set();
    this.last = null;
    this.source = new EventSource("/api/events");
    this.source.addEventListener("news", (event) => {
      this.last = JSON.parse(event.data);
      onState("live", this.last);
      for (const each of [...this.callbacks]) each(this.last);
    });
    this.source.onerror = () => onState("lost", this.last);
  }

  listen(callback, signal) {
    this.callbacks.add(callback);
    signal?.addEventListener("abort", () => this.callbacks.delete(callback));
    if (this.last) callback(this.last);
  }
}
