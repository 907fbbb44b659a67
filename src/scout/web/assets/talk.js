// @ts-check
// Boxes to write in: @ completion, attachments, Ctrl-Enter; and downloads.

import { call, showRefusal } from "./api.js";
import { el } from "./dom.js";
import { findAgents, offer } from "./find.js";

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
