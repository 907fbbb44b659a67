// @ts-check
// The output of a session's program, as it is written. It is read from the harness's own file; nothing is sent to it.

import { call } from "./api.js";
import { el, visible } from "./dom.js";
import { localize } from "./times.js";

const MOST = 500; // entries that stay on the page

/** @param {HTMLElement} place */
async function followOutput(place) {
  place.scrollTop = place.scrollHeight;
  let after = Number(place.dataset.next ?? "0");
  let pause = 1000;
  while (place.isConnected) {
    if (document.hidden) {
      await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
      continue;
    }
    try {
      const tail = await call("session.tail", { sessionId: place.dataset.tail, after, wait: 20 });
      after = tail.next;
      append(place, tail.lines);
      pause = 1000;
    } catch {
      // The daemon is away or the session is gone: the page says so itself.
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(pause * 2, 30_000);
    }
  }
}

/** @param {HTMLElement} place @param {{who: string, text: string, at?: string}[]} lines */
function append(place, lines) {
  const atEnd = place.scrollHeight - place.scrollTop - place.clientHeight < 40;
  for (const { who, text, at } of lines) {
    const when = at ? el("time", { datetime: at, "data-ago": true }) : null;
    const said = el("pre", null, text.split("\n").map(visible).join("\n"));
    place.append(el("div", { class: "said", "data-who": who }, el("span", { class: "said-by" }, who, when), said));
  }
  while (place.childElementCount > MOST) place.firstElementChild?.remove();
  localize(place);
  if (atEnd && lines.length) place.scrollTop = place.scrollHeight;
}

for (const place of document.querySelectorAll("[data-tail]")) void followOutput(/** @type {HTMLElement} */ (place));
