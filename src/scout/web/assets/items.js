// @ts-check
// An item that was decided, here or elsewhere, stays in its place and shows who decided it.

import { call } from "./api.js";
import { el, visible } from "./dom.js";

const OPEN = ["open", "notified"];
const WORDS = /** @type {Record<string, string>} */ ({ resolved: "approved" });

/** @param {Element} row @param {{id: string, state: string}} record */
export function closeItem(row, record) {
  if (!row.matches(".item") || OPEN.includes(record.state) || row.hasAttribute("data-gone")) return;
  row.setAttribute("data-gone", "");
  row.querySelector("input[data-select]")?.remove();
  const state = el("span", { class: "state", "data-state": record.state }, WORDS[record.state] ?? record.state);
  const by = el("span", { class: "quiet" });
  row.querySelector(".item-foot")?.replaceChildren(state, by);
  void call("attention.show", { attentionId: record.id }).then(
    (/** @type {any} */ found) => {
      by.textContent = visible(`${found.decidedByAddress ? `by ${found.decidedByAddress}` : ""}${found.answer ? `: ${found.answer}` : ""}`);
    },
    () => {},
  );
}
