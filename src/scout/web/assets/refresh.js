// @ts-check
// Keep the view true. An event changes the words of its record at once; the document is then read again, and only what
// differs is changed. Reading is paced by what it costs, so that a busy log costs no more than a quiet one.

import { visible } from "./dom.js";
import { closeItem } from "./items.js";
import { onEvent, onReconnect } from "./live.js";
import { morph } from "./morph.js";
import { localize } from "./times.js";

let due = 0;
let reading = false;
let cost = 0;

/** @returns {HTMLElement} */
function main() {
  return /** @type {HTMLElement} */ (document.getElementById("main"));
}

/** @param {number} [delay] milliseconds; several wishes become one reading */
export function refreshSoon(delay = 60) {
  if (main().hasAttribute("data-past")) return;
  if (due || reading) {
    wanted = true;
    return;
  }
  due = window.setTimeout(() => void refresh(), Math.max(delay, Math.min(cost * 5, 3000)));
}
let wanted = false;

async function refresh() {
  due = 0;
  if (document.hidden) {
    wanted = true;
    return;
  }
  reading = true;
  wanted = false;
  const began = performance.now();
  try {
    const fresh = await load(location.href);
    const next = fresh?.getElementById("main");
    if (next) {
      const held = document.activeElement?.closest("main [data-key]")?.getAttribute("data-key");
      morph(main(), next);
      followFocus(held);
      localize(main());
      showCount();
      document.dispatchEvent(new CustomEvent("scout:refreshed"));
    } else if (fresh) {
      location.reload(); // signed out
    }
  } finally {
    cost = performance.now() - began;
    reading = false;
    if (wanted) refreshSoon(250);
  }
}

/** A record that moved to another list keeps the focus. @param {string | null | undefined} key */
function followFocus(key) {
  if (!key || (document.activeElement && document.activeElement !== document.body)) return;
  /** @type {HTMLElement | null} */ (main().querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus();
}

/** Read a document without running it: a parsed copy, from which nodes are taken. @param {string} url @returns {Promise<Document | null>} */
function load(url) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("GET", url);
    request.responseType = "document";
    request.timeout = 20_000;
    request.onload = () => resolve(request.responseXML);
    request.onerror = request.ontimeout = () => resolve(null);
    request.send();
  });
}

/** The number of items that need the person: in the navigation and in the title. */
function showCount() {
  const needs = Number(main().getAttribute("data-needs") ?? "0");
  const title = main().getAttribute("data-title") ?? "Scout";
  document.title = `${needs ? `(${needs}) ` : ""}${title} · Scout`;
  for (const one of document.querySelectorAll("[data-count=needs]")) {
    one.textContent = needs ? String(needs) : "";
    one.toggleAttribute("hidden", !needs);
  }
}

/** @param {import("./live.js").ScoutEvent} event */
function patch(event) {
  const record = event.payload?.record;
  if (typeof record?.id !== "string") return;
  for (const row of document.querySelectorAll(`[data-key="${CSS.escape(record.id)}"]`)) {
    if (event.type.startsWith("collab.attention")) closeItem(row, record);
    for (const place of row.querySelectorAll("[data-field]")) {
      const value = record[place.getAttribute("data-field") ?? ""];
      if (typeof value !== "string") continue;
      if (place.hasAttribute("data-state")) place.setAttribute("data-state", value);
      const words = visible(place.hasAttribute("data-state") ? value.replaceAll("_", " ") : value.split("\n")[0] ?? "");
      if (place.textContent !== words) place.textContent = words;
    }
  }
}

onEvent((event) => {
  if (main().hasAttribute("data-past")) return; // what was does not change
  patch(event);
  const families = (main().getAttribute("data-families") ?? "").split(" ").filter(Boolean);
  const counted = event.type.startsWith("collab.attention");
  if (counted || families.some((family) => event.type.startsWith(family))) refreshSoon();
});
onReconnect(() => refreshSoon(0));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && wanted) refreshSoon(0);
});
