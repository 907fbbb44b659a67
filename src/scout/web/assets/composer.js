// @ts-check
// An ask from anywhere: to whom, what, and how; the receipt and the live line are shown at once.

import { call, describeRefusal } from "./api.js";
import { forget, readFields, restore, upload } from "./actions.js";
import { el, visible } from "./dom.js";
import { findAgents, offer } from "./find.js";
import { dialog, provide } from "./keys.js";
import { onEvent } from "./live.js";

/** @param {string} name @param {string} label @param {Record<string, string>} [more] */
function input(name, label, more = {}) {
  const field = /** @type {HTMLInputElement} */ (el("input", { class: "input", name, autocomplete: "off", "data-draft": `ask ${name}`, ...more }));
  restore(field);
  return { field, shown: el("label", null, label, field) };
}

/** @param {HTMLInputElement} field */
export function completeAddress(field) {
  const list = el("ul", { class: "options", role: "listbox", id: `${field.name}-list`, "aria-label": "Agents", hidden: true });
  const wrapped = el("div", { class: "complete" });
  field.replaceWith(wrapped);
  wrapped.append(field, list);
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-controls", list.id);
  field.setAttribute("aria-expanded", "false");
  const update = offer(field, list, async (text) => {
    const found = await findAgents(text.trim());
    const take = (/** @type {string} */ address) => () => {
      field.value = address;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    };
    return found.filter((one) => one.address !== text).map((one) => ({ label: one.address, hint: one.status.replaceAll("_", " "), take: take(one.address) }));
  });
  field.addEventListener("focus", () => void update());
}

/** @param {{to?: string, body?: string}} [given] */
export function compose(given = {}) {
  const to = input("to", "To: an agent's address, or a project folder", { placeholder: "@arc, or ~/projects/talkie", required: "" });
  if (given.to) to.field.value = given.to;
  const body = /** @type {HTMLTextAreaElement} */ (
    el("textarea", { name: "body", required: "", placeholder: "What should be done?", "data-draft": "ask body", "aria-label": "What should be done?" })
  );
  restore(body);
  if (given.body) body.value = given.body;
  const harness = input("harness", "Harness", { placeholder: "default" });
  const model = input("model", "Model", { placeholder: "default" });
  const policy = el("select", { name: "sessionPolicy" }, ...["", "new", "reuse", "existing", "fork"].map((one) => el("option", { value: one }, one || "default")));
  const files = /** @type {HTMLInputElement} */ (el("input", { type: "file", multiple: "", "aria-label": "Attachments" }));
  const status = el("div", { role: "status", "aria-live": "polite" });
  const send = el("button", { type: "submit", class: "button primary" }, "Ask");
  const form = /** @type {HTMLFormElement} */ (
    el(
      "form",
      { class: "dialog-body" },
      to.shown,
      body,
      el("div", { class: "line" }, harness.shown, model.shown, el("label", null, "Session", policy)),
      el("div", { class: "line" }, files, send),
      status,
    )
  );
  const made = dialog("Ask", form);
  completeAddress(to.field);
  (to.field.value ? body : to.field).focus();
  body.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void ask();
  });

  async function ask() {
    send.setAttribute("aria-busy", "true");
    status.replaceChildren("Sending…");
    try {
      const { to: target, ...rest } = readFields(form);
      const attachments = await Promise.all([...(files.files ?? [])].map(upload));
      const place = /^[~/.]/.test(String(target)) && !/^\/[a-z0-9_-]+\/(agent|direct|task|cron)/.test(String(target)) ? { projectPath: target } : { to: target };
      const receipt = await call("ask", { ...place, ...rest, attachments });
      for (const field of [to.field, body, harness.field, model.field]) forget(field);
      body.value = "";
      showReceipt(receipt);
    } catch (error) {
      status.replaceChildren(await describeRefusal(error, () => made.close()));
    } finally {
      send.removeAttribute("aria-busy");
    }
  }

  /** @param {any} receipt */
  function showReceipt(receipt) {
    const line = el("span", { class: "quiet" }, visible(receipt.reason ?? ""));
    const state = el("span", { class: "state", "data-state": receipt.state ?? "queued" }, receipt.state ?? "queued");
    status.replaceChildren(el("p", null, state, " ", line), el("a", { class: "button", href: `/flights/${receipt.flightId}` }, "Open the flight"));
    onEvent((event) => {
      const record = event.payload?.record;
      if (record?.id !== receipt.flightId || !record.state) return;
      state.textContent = record.state;
      state.setAttribute("data-state", record.state);
      line.textContent = visible(String(record.output ?? record.error?.message ?? record.reason ?? "").slice(0, 300));
    });
  }
}

provide("composer", () => compose({ to: document.querySelector("main [data-ask-to]")?.getAttribute("data-ask-to") ?? undefined }));
