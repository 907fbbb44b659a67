// @ts-check
// Boxes to write in: @ completion, attachments, Ctrl-Enter; downloads; and the live tail of a session.

import { call, showRefusal } from "./api.js";
import { el, visible } from "./dom.js";
import { findAgents, offer } from "./find.js";
import { ready } from "./session.js";

const MENTION = /(^|\s)@([\w.:/#?-]*)$/;

for (const field of document.querySelectorAll("textarea[data-mentions]")) complete(/** @type {HTMLTextAreaElement} */ (field));

/** @param {HTMLTextAreaElement} field */
function complete(field) {
  const list = el("ul", { class: "options", role: "listbox", id: `mentions-${Math.random().toString(36).slice(2)}`, "aria-label": "Agents", hidden: true, "data-own": true });
  field.after(list);
  offer(field, list, async () => {
    const before = field.value.slice(0, field.selectionStart);
    const found = MENTION.exec(before);
    if (!found) return [];
    const start = before.length - (found[2]?.length ?? 0) - 1;
    const take = (/** @type {string} */ address) => () => {
      field.setRangeText(`${address} `, start, field.selectionStart, "end");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    };
    return (await findAgents(found[2] ?? "")).map((one) => ({ label: one.address, hint: one.status.replaceAll("_", " "), take: take(one.address) }));
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) field.form?.requestSubmit();
  });
}

document.addEventListener("click", (event) => {
  const pressed = /** @type {HTMLElement | null} */ (event.target instanceof Element ? event.target.closest("[data-download]") : null);
  if (pressed?.dataset.download) void download(pressed.dataset.download, pressed.dataset.name ?? "file");
});

/** @param {string} sha256 @param {string} name */
async function download(sha256, name) {
  try {
    const { data } = await call("attachment.get", { sha256 });
    const bytes = Uint8Array.from(atob(data), (sign) => sign.charCodeAt(0));
    const link = /** @type {HTMLAnchorElement} */ (el("a", { download: name }));
    link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    await showRefusal(error);
  }
}

// -- the tail of a session -----------------------------------------------------------------------------

const KEPT = 500; // lines
const tail = /** @type {HTMLElement | null} */ (document.querySelector("[data-tail]"));
if (tail) void followTail(tail);

/** @param {HTMLElement} place */
async function followTail(place) {
  if (!(await ready)) return;
  let after = Number(place.dataset.next);
  place.scrollTop = place.scrollHeight;
  while (place.isConnected) {
    try {
      const found = await call("session.tail", { sessionId: place.dataset.tail, after, wait: 30, limit: 200 });
      after = found.next;
      for (const line of found.lines) append(place, line);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 3000));
    }
  }
}

/** @param {HTMLElement} place @param {{who: string, text: string}} line */
function append(place, line) {
  const atEnd = place.scrollHeight - place.scrollTop - place.clientHeight < 40;
  place.append(el("div", { class: "tail-line", "data-who": line.who }, el("span", { class: "tail-who" }, line.who), el("span", null, visible(line.text))));
  while (place.childElementCount > KEPT) place.firstElementChild?.remove();
  if (atEnd) place.scrollTop = place.scrollHeight;
}
