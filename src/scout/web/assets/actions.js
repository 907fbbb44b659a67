// @ts-check
// Buttons and forms in the document: each calls one operation, as its data says.

import { call, copy, describeRefusal, showRefusal } from "./api.js";
import { el, findPlace, toast, visible } from "./dom.js";
import { refreshSoon } from "./refresh.js";
import { signOut } from "./session.js";

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (!target) return;
  const pressed = /** @type {HTMLElement | null} */ (target.closest("[data-operation], [data-copy], [data-bulk], [data-sign-out]"));
  if (pressed?.dataset.operation) void press(pressed);
  else if (pressed?.dataset.copy) copy(pressed.dataset.copy);
  else if (pressed?.dataset.bulk) void decideSelected(pressed.dataset.bulk);
  else if (pressed) void signOut();
  else followRow(target, event);
});

/** @param {HTMLElement} pressed */
async function press(pressed) {
  const question = pressed.dataset.confirm;
  if (question && !window.confirm(question)) return;
  if (pressed.getAttribute("aria-busy") === "true") return;
  pressed.setAttribute("aria-busy", "true");
  try {
    const result = await call(pressed.dataset.operation ?? "", JSON.parse(pressed.dataset.parameters ?? "{}"));
    toast(pressed.dataset.done ?? "Done.");
    if (pressed.dataset.then === "flight" && result?.flightId) location.assign(`/flights/${result.flightId}`);
    refreshSoon(0);
  } catch (error) {
    await showRefusal(error);
    refreshSoon(0);
  } finally {
    pressed.removeAttribute("aria-busy");
  }
}

/** A row is a link to what it shows, unless something in it was pressed. @param {Element} target @param {MouseEvent} event */
function followRow(target, event) {
  const row = target.closest(".row, .card");
  const href = row ? findPlace(row) : null;
  if (!href || target.closest("a, button, input, select, label, summary, details")) return;
  if (window.getSelection()?.toString()) return;
  if (event.ctrlKey || event.metaKey) window.open(href, "_blank", "noopener");
  else location.assign(href);
}

// -- forms ---------------------------------------------------------------------------------------------

document.addEventListener("submit", (event) => {
  const form = event.target instanceof HTMLFormElement ? event.target : null;
  if (!form?.dataset.form) return;
  event.preventDefault();
  void submit(form);
});

/** @param {HTMLFormElement} form */
async function submit(form) {
  const press = form.querySelector("button[type=submit]");
  press?.setAttribute("aria-busy", "true");
  form.querySelector(".refused")?.remove();
  try {
    const files = /** @type {HTMLInputElement | null} */ (form.querySelector("input[data-files]"))?.files ?? [];
    const attachments = await Promise.all([...files].map(upload));
    const sent = { ...JSON.parse(form.dataset.parameters ?? "{}"), ...readFields(form), ...(attachments.length ? { attachments } : {}) };
    const result = await call(form.dataset.form ?? "", sent);
    for (const field of form.querySelectorAll("[data-draft]")) forget(field);
    if (form.dataset.form !== "agent.config") form.reset();
    form.closest("details[data-focus]")?.removeAttribute("open");
    if (form.dataset.command) showCommand(form.dataset.done ?? "", form.dataset.command, result);
    else toast(form.dataset.done ?? "Done.");
    refreshSoon(0);
  } catch (error) {
    form.append(await describeRefusal(error, () => refreshSoon(0)));
  } finally {
    press?.removeAttribute("aria-busy");
  }
}

/** Show a command with a value of the result, to be copied; it stays until it is closed. @param {string} says @param {string} command @param {any} result */
function showCommand(says, command, result) {
  const whole = command.replace(/\{(\w+)\}/, (_, name) => String(result?.[name] ?? ""));
  const copied = el("button", { type: "button", class: "button", "data-copy": whole }, "Copy");
  toast(says, "kept", el("div", { class: "command" }, el("code", {}, visible(whole)), copied));
}

/** @param {HTMLFormElement} form @returns {Record<string, any>} */
export function readFields(form) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const [name, value] of new FormData(form)) {
    if (typeof value !== "string") continue;
    const [first = name, second] = name.split(".");
    if (second !== undefined) (found[first] ??= {})[second] = value === "" ? null : value;
    else if (value.trim() !== "") found[name] = value;
  }
  return found;
}

/** @param {File} file @returns {Promise<string>} the stored file, as an ask names it */
export async function upload(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 0x8000) text += String.fromCharCode(...bytes.subarray(start, start + 0x8000));
  const sent = { name: file.name, mediaType: file.type || "application/octet-stream", data: btoa(text) };
  const stored = await call("attachment.put", sent);
  return `${stored.sha256}:${file.name}`;
}

// A form that opens takes the focus, so that it can be filled in by keys alone; Escape closes it.
document.addEventListener(
  "toggle",
  (event) => {
    const opened = event.target instanceof HTMLDetailsElement && event.target.open && event.target.dataset.focus !== undefined ? event.target : null;
    const field = /** @type {HTMLElement | null} */ (opened?.querySelector("input, select, textarea") ?? null);
    field?.focus();
  },
  true,
);
document.addEventListener("keydown", (event) => {
  const opened = event.key === "Escape" && event.target instanceof Element ? event.target.closest("details[data-focus][open]") : null;
  if (!opened) return;
  opened.removeAttribute("open");
  /** @type {HTMLElement | null} */ (opened.querySelector("summary"))?.focus();
});

// -- drafts: what was typed survives a reload -----------------------------------------------------------

/** @param {Element} field */
export function restore(field) {
  const kept = localStorage.getItem(`draft ${field.getAttribute("data-draft")}`);
  if (kept && "value" in field && !field.value) field.value = kept;
}

/** @param {Element} field */
export function forget(field) {
  localStorage.removeItem(`draft ${field.getAttribute("data-draft")}`);
}

document.addEventListener("input", (event) => {
  const field = event.target instanceof Element ? event.target : null;
  const name = field?.getAttribute("data-draft");
  if (!field || !name || !("value" in field)) return;
  if (field.value) localStorage.setItem(`draft ${name}`, String(field.value));
  else forget(field);
});
for (const field of document.querySelectorAll("[data-draft]")) restore(field);

// -- several items at once -----------------------------------------------------------------------------

/** @returns {HTMLInputElement[]} */
function selected() {
  return [...document.querySelectorAll("input[data-select]:checked")].map((one) => /** @type {HTMLInputElement} */ (one));
}

export function showSelection() {
  const bar = document.querySelector(".bulk");
  const count = selected().length;
  bar?.toggleAttribute("hidden", count === 0);
  const words = bar?.querySelector("[data-bulk-count]");
  if (words) words.textContent = `${count} selected`;
}

/** @param {string} move */
async function decideSelected(move) {
  const boxes = selected();
  try {
    const { items } = await call("attention.decide", { move, attentionIds: boxes.map((one) => one.dataset.select) });
    const decided = items.filter((/** @type {any} */ one) => one.decided).length;
    const failed = items.filter((/** @type {any} */ one) => !one.decided);
    toast(`${decided} decided.${failed.length ? ` ${failed.length} not: ${failed[0].problem}` : ""}`);
    for (const box of boxes) box.checked = false;
  } catch (error) {
    await showRefusal(error);
  }
  showSelection();
  refreshSoon(0);
}

document.addEventListener("change", (event) => {
  if (event.target instanceof HTMLInputElement && event.target.dataset.select) showSelection();
});
document.addEventListener("scout:refreshed", showSelection);
