// @ts-check
// The keyboard: the same keys as in the terminal application, from one table.

import { tables } from "./api.js";
import { el, findPlace } from "./dom.js";

/** @type {Record<string, () => void>} */
const doors = {};
/** @param {string} name @param {() => void} open */
export function provide(name, open) {
  doors[name] = open;
}

document.addEventListener("click", (event) => {
  const pressed = event.target instanceof Element ? event.target.closest("[data-open]") : null;
  const name = pressed?.getAttribute("data-open");
  if (name) doors[name]?.();
});

let prefix = false;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    doors["palette"]?.();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (prefix) {
    prefix = false;
    /** @type {HTMLElement | null} */ (document.querySelector(`[data-go="${CSS.escape(event.key)}"]`))?.click();
    return;
  }
  if (perform(event.key)) event.preventDefault();
});

/** @param {string} key @returns {boolean} whether the key did something */
function perform(key) {
  const current = currentRow();
  switch (key) {
    case "g": prefix = true; return true;
    case "?": doors["keys"]?.(); return true;
    case "c": doors["composer"]?.(); return true;
    case "/": (/** @type {HTMLElement | null} */ (document.querySelector("main input[type=search]")) ?? { focus: doors["palette"] ?? (() => {}) }).focus(); return true;
    case "j": case "ArrowDown": return step(1);
    case "k": case "ArrowUp": return step(-1);
    case "Enter": return open(current);
    case "Escape": return back();
    case "w": return press(current ?? document, "[data-why]");
    case " ": return select(current);
    case "m": return press(document, "[data-operation='now.seen']");
    case "r": return focusReply();
    case "x": return press(current ?? document, "[data-operation='flight.cancel']") || pressKey(current, key);
    case "t": return press(current ?? document, "[data-operation='flight.retry']") || pressKey(current, key);
    case "a": return focusAnswer(current);
    case "Y": return press(current, ".standing .button[data-operation]");
    default: return /^[0-9]$/.test(key) ? goTo(Number(key) || 10) : pressKey(current, key);
  }
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) && target.getAttribute("type") !== "checkbox";
}

const ROWS = "main .row[data-key], main .item[data-key], main .post[data-key], main .card[data-key]";

/** @returns {HTMLElement | null} */
function currentRow() {
  return /** @type {HTMLElement | null} */ (document.activeElement?.closest(".row[data-key], .item[data-key], .post[data-key], .card[data-key]") ?? null);
}

/** @param {number} by */
function step(by) {
  const rows = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(ROWS)]);
  const here = currentRow();
  const place = here ? rows.indexOf(here) + by : by > 0 ? 0 : rows.length - 1;
  const next = rows[Math.max(0, Math.min(place, rows.length - 1))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return rows.length > 0;
}

/** @param {HTMLElement | null} row */
function open(row) {
  if (!row || document.activeElement !== row) return false;
  const link = findPlace(row) ?? row.querySelector("a")?.getAttribute("href");
  if (link) location.assign(link);
  return true;
}

function back() {
  const menu = /** @type {HTMLElement | null} */ (document.querySelector("[popover]:popover-open"));
  if (menu) menu.hidePopover();
  else if (document.activeElement instanceof HTMLElement && document.activeElement !== document.body) document.activeElement.blur();
  return true;
}

/** @param {ParentNode | null} root @param {string} selector */
function press(root, selector) {
  const found = /** @type {HTMLElement | null} */ (root?.querySelector(selector) ?? null);
  found?.click();
  return found !== null;
}

/** The button of this key in the row, or else among those of the whole page. @param {HTMLElement | null} row @param {string} key */
function pressKey(row, key) {
  const button = `[data-key-press="${CSS.escape(key)}"]`;
  const pressed = press(row, button) || press(document, `[data-page-keys] ${button}`);
  // The event that moves the focus into an opened form comes later than the next key may.
  const opened = /** @type {HTMLElement | null} */ (document.querySelector(`details[open] > summary${button} ~ * :is(input, select)`));
  if (pressed) opened?.focus();
  return pressed;
}

/** @param {HTMLElement | null} row */
function select(row) {
  const box = /** @type {HTMLInputElement | null} */ (row?.querySelector("input[data-select]") ?? null);
  box?.click();
  row?.focus();
  return box !== null;
}

/** @param {HTMLElement | null} row */
function focusAnswer(row) {
  const field = /** @type {HTMLElement | null} */ (row?.querySelector("input[name=answer]") ?? null);
  field?.focus();
  return field !== null;
}

function focusReply() {
  const field = /** @type {HTMLElement | null} */ (document.querySelector("textarea[name=body]"));
  field?.focus();
  return field !== null;
}

/** @param {number} number */
function goTo(number) {
  const links = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-go]"));
  links[number - 1]?.click();
  return number <= links.length;
}

// -- the list of keys ----------------------------------------------------------------------------------

/** @param {string} title @param {...Node} body @returns {HTMLDialogElement} */
export function dialog(title, ...body) {
  document.querySelector("dialog[open]")?.remove();
  const close = el("button", { type: "button", class: "icon-button", "aria-label": "Close" }, "✕");
  const made = /** @type {HTMLDialogElement} */ (
    el("dialog", { "aria-label": title, "data-own": true }, el("div", { class: "dialog-head" }, el("h2", null, title), close), ...body)
  );
  close.addEventListener("click", () => made.close());
  made.addEventListener("close", () => made.remove());
  made.addEventListener("click", (event) => event.target === made && made.close());
  document.body.append(made);
  made.showModal();
  return made;
}

provide("keys", () => {
  const rows = el("dl", { class: "key-list" });
  void tables.then(({ keys }) => {
    for (const { keys: pressed, says } of keys) {
      const names = pressed.flatMap((one, number) => [...(number ? [" or "] : []), el("kbd", null, one)]);
      rows.append(el("dt", null, ...names), el("dd", null, says));
    }
  });
  dialog("Keys", el("div", { class: "dialog-body" }, rows));
});

// On a wide screen the views are always there: the menu of a narrow one must not stay open above them.
matchMedia("(min-width: 701px)").addEventListener("change", (wide) => {
  const views = document.getElementById("views");
  if (wide.matches && views?.matches(":popover-open")) views.hidePopover();
});
