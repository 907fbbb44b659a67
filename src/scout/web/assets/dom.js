// @ts-check
// Small builders. Text goes in as text: nothing here parses markup.

/**
 * @param {string} name
 * @param {Record<string, string | boolean | undefined> | null} [attributes]
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === false) continue;
    made.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

/** @param {string} label @param {() => void} press @param {string} [cls] @returns {HTMLElement} */
export function button(label, press, cls = "") {
  const made = el("button", { type: "button", class: `button ${cls}`.trim() }, label);
  made.addEventListener("click", press);
  return made;
}

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Make characters visible that could reorder a text or hide in it, as the server does. @param {string} text */
export function visible(text) {
  return text.replace(HIDDEN, (sign) => {
    const code = sign.charCodeAt(0);
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** What a row or card opens: the address in it, or that of its main link. @param {Element} row @returns {string | null} */
export function findPlace(row) {
  return row.getAttribute("data-href") ?? row.querySelector("a.main-link")?.getAttribute("href") ?? null;
}

/** @param {string} id */
export function shorten(id) {
  const [prefix, rest = ""] = id.split(/_(.*)/s);
  return rest.length > 8 ? `${prefix}_…${rest.slice(-6)}` : id;
}

/**
 * Show a message for a while. A refusal, or a text that the reader needs, stays until it is closed.
 * @param {string} text @param {"done" | "refusal" | "kept"} [kind] @param {Node | null} [more]
 */
export function toast(text, kind = "done", more = null) {
  const box = document.getElementById("toasts");
  const made = el("div", { class: "toast", "data-kind": kind }, visible(text), more);
  if (kind !== "done") made.append(el("div", { class: "remedies" }, button("Close", () => made.remove())));
  else setTimeout(() => made.remove(), 4000);
  box?.append(made);
  while (box && box.childElementCount > 4) box.firstElementChild?.remove();
}
