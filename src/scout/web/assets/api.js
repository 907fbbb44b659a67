// @ts-check
// Calls to Scout's own operations, and refusals with their remedies as buttons.

import { button, el, toast, visible } from "./dom.js";
import { ready, secretHeader } from "./session.js";

/** @typedef {{operation: string, parameters: Record<string, any>, why?: string, command?: string}} Remedy */
/** @typedef {{code: string, message: string, status: number, remedies: Remedy[], candidates?: any[]}} Problem */
/** @typedef {{keys: string[], action: string, says: string, views: string[]}} Key */

export class Refusal extends Error {
  /** @param {Problem} problem */
  constructor(problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** @type {Promise<{operations: Record<string, string>, keys: Key[]}>} */
export const tables = fetch("/assets/tables.json").then((answer) => answer.json());

/**
 * Call an operation by its name. Repeating after a lost connection is safe: one key, one effect.
 * @param {string} operation @param {Record<string, any>} [parameters] @returns {Promise<any>}
 */
export async function call(operation, parameters = {}) {
  const route = (await tables).operations[operation];
  if (!route) throw new Error(`no operation ${operation}`);
  const [method = "GET", template = "/"] = route.split(" ");
  const rest = { ...parameters };
  const path = template.replace(/\{(\w+)\}/g, (_, /** @type {string} */ name) => {
    const value = rest[name];
    delete rest[name];
    return encodeURIComponent(String(value));
  });
  return method === "GET" ? send(method, `${path}${query(rest)}`) : send(method, path, rest);
}

/** @param {Record<string, any>} given */
function query(given) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined && value !== null) words.set(name, String(value));
  const text = words.toString();
  return text ? `?${text}` : "";
}

/** @param {string} method @param {string} path @param {Record<string, any>} [body] @returns {Promise<any>} */
async function send(method, path, body) {
  if (!(await ready)) throw new Refusal(READ_ONLY);
  /** @type {Record<string, string>} */
  const headers = { ...secretHeader(), Accept: "application/json" };
  if (body) Object.assign(headers, { "Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID() });
  const answer = await sendAgain(path, { method, headers, body: body ? JSON.stringify(body) : undefined });
  const data = await answer.json();
  if (answer.ok) return data;
  if (answer.status === 401) location.reload();
  throw new Refusal(data);
}

/** @param {string} path @param {RequestInit} init */
async function sendAgain(path, init) {
  for (const pause of [200, 800, 2000]) {
    try {
      return await fetch(path, init);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return fetch(path, init);
}

/** @type {Problem} */
const READ_ONLY = {
  code: "unauthenticated",
  message: "This tab can only read. Open the page again with `scout web` to act here.",
  status: 401,
  remedies: [],
};

/**
 * Show a refusal: its sentence, and each remedy as a button that does it, or as a command to copy.
 * @param {unknown} error @param {(remedy: Remedy) => void} [used] called when a remedy worked
 * @returns {Promise<HTMLElement>}
 */
export async function describeRefusal(error, used) {
  const problem = error instanceof Refusal ? error.problem : null;
  const words = problem ? problem.message : `The daemon does not answer (${error}).`;
  const row = el("div", { class: "remedies" });
  const { operations } = await tables;
  for (const remedy of problem?.remedies ?? []) {
    const complete = !JSON.stringify(remedy.parameters).includes("…");
    const label = remedy.command ?? remedy.operation;
    if (operations[remedy.operation] && complete && !operations[remedy.operation]?.startsWith("GET")) {
      row.append(button(visible(label), () => void apply(remedy, used), "primary"));
    } else {
      row.append(button(`Copy: ${visible(label)}`, () => copy(label)));
    }
    if (remedy.why) row.append(el("span", { class: "quiet" }, visible(remedy.why)));
  }
  return el("div", { class: "refused", role: "alert" }, el("p", null, visible(words)), row);
}

/** @param {Remedy} remedy @param {((remedy: Remedy) => void) | undefined} used */
async function apply(remedy, used) {
  try {
    await call(remedy.operation, remedy.parameters);
    toast(`Done: ${remedy.command ?? remedy.operation}`);
    used?.(remedy);
  } catch (error) {
    await showRefusal(error);
  }
}

/** @param {unknown} error */
export async function showRefusal(error) {
  toast("", "refusal", await describeRefusal(error));
}

/** @param {string} text */
export function copy(text) {
  navigator.clipboard.writeText(text).then(
    () => toast("Copied."),
    () => toast(text),
  );
}
