// The film of an episode, bound to the axis of ticks: frame i is tick i, at i / control rate.

import { get } from "/static/api.js";
import { h, put } from "/static/dom.js";
import { count } from "/static/format.js";

/** Seconds at which tick i is surely shown: the middle of its frame. */
export const middle = (tick, hz) => (tick + 0.5) / hz;

/** The tick whose frame is shown at a time. */
const shownAt = (seconds, hz) => Math.floor(seconds * hz + 1e-6);

export function film(time, context, told) {
  const screen = h("div", { class: "film", "aria-live": "polite" });
  const place = h("output", { "aria-label": "Present tick" });
  const play = h("button", { type: "button", onclick: () => toggle(), "aria-label": "Play or stop", disabled: true }, "Play");
  const rate = h("select", { "aria-label": "Speed", onchange: (e) => { if (video) video.playbackRate = Number(e.target.value); } },
    [0.1, 0.25, 0.5, 1, 2, 4].map((each) => h("option", { value: each, selected: each === 1 }, `${each}×`)));
  const step = (by, name, sign) => h("button", { type: "button", "aria-label": name, onclick: () => time.go(time.tick + by) }, sign);
  const slide = h("input", { type: "range", min: 0, max: time.ticks - 1, step: 1, value: 0, "aria-label": "Tick",
    oninput: () => time.go(Number(slide.value)) });
  const panel = h("section", { class: "panel", "aria-label": "Film and place" }, screen,
    h("div", { class: "transport" }, slide, step(-1, "One tick back", "‹"), play, step(1, "One tick on", "›"), rate, place));
  let video = null;
  let timer = null;

  time.onTick((tick, from) => {
    slide.value = tick;
    place.textContent = `tick ${count(tick)} · ${(tick / time.hz).toFixed(2)} s`;
    if (video && from !== "film") {
      video.pause();
      video.currentTime = middle(tick, time.hz);
    }
  });

  function toggle() {
    if (!video) return;
    if (video.paused) {
      if (time.tick >= time.ticks - 1) time.go(0);
      video.play();
    } else video.pause();
  }
  context.keys[" "] = toggle;

  function ready() {
    video = h("video", { src: `/api/episodes/${told.row.id}/film.mp4`, muted: true, playsinline: true, preload: "auto",
      "aria-label": `Film of the cameras ${told.header.spec.cameras.map((each) => each.name).join(", ")}` });
    const follow = () => {
      if (video.paused) return;
      time.go(shownAt(video.currentTime, time.hz), "film");
      video.requestVideoFrameCallback ? video.requestVideoFrameCallback(follow) : requestAnimationFrame(follow);
    };
    video.addEventListener("play", () => { play.textContent = "Stop"; follow(); });
    video.addEventListener("pause", () => { play.textContent = "Play"; });
    video.addEventListener("loadedmetadata", () => { video.currentTime = middle(time.tick, time.hz); });
    video.addEventListener("error", () => put(screen, h("p", {}, "This browser cannot play the film (H.264).")));
    put(screen, video);
    play.disabled = false;
  }

  function say(text, ...more) { put(screen, h("p", {}, text), more); }

  async function ask(draw) {
    try {
      const state = await get(`/api/episodes/${told.row.id}/film`, draw ? { draw: "1" } : {}, context.signal);
      if (state.state === "ready") return ready();
      if (state.state === "absent") return ask(true);
      if (state.state === "failed") {
        return say(`No film: ${state.why}. The signals are complete.`,
          told.film ? null : h("button", { type: "button", onclick: () => ask(true) }, "Try again"));
      }
      say(state.state === "waiting" ? "The film waits until another one is drawn." : `The film is drawn from the log; signals can be read meanwhile. ${state.progress ?? ""}`);
      timer = setTimeout(() => ask(false), 700);
    } catch (error) {
      if (error.name !== "AbortError") say(`No film: ${error.message}`);
    }
  }

  context.signal.addEventListener("abort", () => {
    clearTimeout(timer);
    video?.removeAttribute("src");
    video?.load();
  });
  if (told.film) say(`No film: ${told.film}. The signals are complete.`);
  else ask(false);
  return panel;
}
