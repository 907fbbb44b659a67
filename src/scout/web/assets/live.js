// @ts-check
// The event stream. It resumes after the last event that was seen, so nothing is missed while the daemon restarts.

import { ready, secretHeader } from "./session.js";

/** @typedef {{type: string, seq: number, time: string, source: string, target: string, payload: any, metadata?: any}} ScoutEvent */

/** @type {Set<(event: ScoutEvent) => void>} */
const listeners = new Set();
/** @type {Set<() => void>} */
const reconnected = new Set();
let last = Number(document.getElementById("main")?.getAttribute("data-seq") ?? "0");

/** @param {(event: ScoutEvent) => void} listen */
export function onEvent(listen) {
  listeners.add(listen);
}

/** @param {() => void} listen called when the stream is back after it was lost */
export function onReconnect(listen) {
  reconnected.add(listen);
}

/** @param {"live" | "lost" | "connecting" | "reading"} state @param {string} words */
function show(state, words) {
  const place = document.getElementById("live");
  if (!place || place.getAttribute("data-live") === state) return;
  place.setAttribute("data-live", state);
  place.textContent = words;
}

/** Follow the log until the page is closed. */
export async function follow() {
  if (!(await ready)) return show("reading", "Read only");
  let pause = 250;
  let lost = false;
  for (;;) {
    try {
      const answer = await fetch(`/v1/events?after=${last}`, { headers: { ...secretHeader(), Accept: "text/event-stream" } });
      if (answer.status === 401 || answer.status === 403) return location.reload();
      if (answer.ok && answer.body) {
        show("live", "Live");
        if (lost) for (const listen of reconnected) listen();
        lost = false;
        pause = 250;
        await read(answer.body);
      }
    } catch {
      // The daemon is away: it is tried again below.
    }
    lost = true;
    show("lost", "Reconnecting…");
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, 5000);
  }
}

/** @param {ReadableStream<Uint8Array>} body */
async function read(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) take(frame);
  }
}

/** @param {string} frame */
function take(frame) {
  let kind = "";
  let data = "";
  for (const line of frame.split("\n")) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (!data || kind === "dropped") return;
  /** @type {ScoutEvent} */
  const event = JSON.parse(data);
  if (event.seq <= last) return;
  last = event.seq;
  for (const listen of listeners) listen(event);
}
