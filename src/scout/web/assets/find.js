// @ts-check
// Finding: a list under a field, moved through with the arrow keys. The palette and address completion share it.

import { call } from "./api.js";
import { el, shorten, visible } from "./dom.js";
import { dialog, provide } from "./keys.js";

/** @typedef {{label: string, hint?: string, take: () => void}} Choice */

/**
 * Make a field offer choices while the person types.
 * @param {HTMLInputElement | HTMLTextAreaElement} field @param {HTMLElement} list
 * @param {(text: string) => Promise<Choice[]>} search
 */
export function offer(field, list, search) {
  /** @type {Choice[]} */
  let choices = [];
  let place = 0;
  let asked = 0;
  /** @type {Promise<void> | null} the newest search, until it is answered */
  let searching = null;
  const show = () => {
    list.replaceChildren(...choices.map((one, number) => option(one, number)));
    list.toggleAttribute("hidden", choices.length === 0);
    field.setAttribute("aria-expanded", String(choices.length > 0));
    const id = choices.length ? `${list.id}-${place}` : "";
    if (id) field.setAttribute("aria-activedescendant", id);
    else field.removeAttribute("aria-activedescendant");
    list.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  };
  const option = (/** @type {Choice} */ one, /** @type {number} */ number) => {
    const made = el(
      "li",
      { role: "option", id: `${list.id}-${number}`, "aria-selected": String(number === place) },
      el("span", null, visible(one.label)),
      one.hint ? el("span", { class: "hint" }, visible(one.hint)) : null,
    );
    made.addEventListener("mousedown", (event) => {
      event.preventDefault();
      choose(number);
    });
    return made;
  };
  const choose = (/** @type {number} */ number) => {
    const chosen = choices[number];
    choices = [];
    show();
    chosen?.take();
  };
  const look = async () => {
    const ticket = ++asked;
    const found = await search(field.value).catch(() => []);
    if (ticket !== asked) return;
    searching = null;
    choices = found;
    place = 0;
    show();
  };
  const update = () => {
    searching = look();
    return searching;
  };
  field.addEventListener("input", () => void update());
  field.addEventListener("blur", () => {
    asked += 1;
    searching = null;
    choices = [];
    show();
  });
  field.addEventListener("keydown", (event) => {
    const key = /** @type {KeyboardEvent} */ (event).key;
    if (choices.length === 0) return;
    if (key === "ArrowDown" || key === "ArrowUp") place = (place + (key === "ArrowDown" ? 1 : -1) + choices.length) % choices.length;
    else if (key === "Enter" || (key === "Tab" && field.value)) {
      // What is listed may be older than what is typed: the choice is made among the answers to the whole text.
      if (searching) void searching.then(() => choose(place));
      else choose(place);
    }
    else if (key === "Escape") {
      event.stopPropagation();
      choices = [];
    } else return;
    event.preventDefault();
    show();
  });
  return update;
}

/** @param {string} text @returns {Promise<{address: string, canonical: string, id: string, status: string}[]>} */
export async function findAgents(text) {
  const query = text.replace(/^@/, "");
  return (await call("who", { query: query || undefined, limit: 8 })).items;
}

provide("palette", () => {
  const list = el("ul", { class: "options", role: "listbox", id: "palette-list", "aria-label": "Results" });
  const field = /** @type {HTMLInputElement} */ (
    el("input", {
      class: "input palette-input", type: "text", role: "combobox", "aria-controls": "palette-list", "aria-expanded": "false",
      "aria-label": "Find an agent, flight or command", autocomplete: "off", placeholder: "An agent, a flight, a view or a command",
    })
  );
  const made = dialog("Find", field, list);
  const update = offer(field, list, async (text) => {
    const words = text.trim().toLowerCase();
    const views = listViews(words);
    const verbs = listVerbs(words);
    if (words === "") return [...views, ...verbs];
    const [agents, flights] = await Promise.all([
      findAgents(words).catch(() => []),
      findFlights(words).catch(() => []),
    ]);
    const found = agents.map((one) => ({ label: one.address, hint: `agent, ${one.status.replaceAll("_", " ")}`, take: () => go(`/agents/${encodeURIComponent(one.id)}`) }));
    return [...views, ...found, ...flights, ...verbs].slice(0, 20);
  });
  const go = (/** @type {string} */ path) => {
    made.close();
    location.assign(path);
  };
  field.focus();
  void update();

  /** @param {string} words @returns {Choice[]} */
  function listViews(words) {
    const links = /** @type {HTMLAnchorElement[]} */ ([...document.querySelectorAll("a[data-go]")]);
    return links
      .filter((link) => (link.querySelector("span")?.textContent ?? "").toLowerCase().includes(words))
      .map((link) => ({ label: link.querySelector("span")?.textContent ?? "", hint: `view, g ${link.dataset.go}`, take: () => go(link.pathname) }));
  }

  /** @param {string} words @returns {Choice[]} */
  function listVerbs(words) {
    const press = (/** @type {string} */ selector) => () => {
      made.close();
      /** @type {HTMLElement | null} */ (document.querySelector(selector))?.click();
    };
    const run = (/** @type {string} */ operation) => () => {
      made.close();
      void call(operation, {}).then(() => location.reload());
    };
    /** @type {Choice[]} */
    const verbs = [
      { label: "Ask an agent", hint: "c", take: press("[data-open=composer]") },
      { label: "List the keys", hint: "?", take: press("[data-open=keys]") },
      { label: "Pause this machine", hint: "scout pause", take: run("pause") },
      { label: "Resume this machine", hint: "scout resume", take: run("resume") },
      { label: "Design system", hint: "/design", take: () => go("/design") },
      { label: "Sign out", take: press("[data-sign-out]") },
    ];
    return verbs.filter((one) => one.label.toLowerCase().includes(words));
  }

  /** @param {string} words @returns {Promise<Choice[]>} */
  async function findFlights(words) {
    if (!words.startsWith("flt_") && !/^[0-9a-z]{6,}$/.test(words)) {
      const hits = (await call("search", { query: words, limit: 6 })).items;
      return hits.map((/** @type {any} */ hit) => ({
        label: hit.snippet, hint: hit.noun.replaceAll("_", " "),
        take: () => go(hit.conversationId ? `/conversations/${hit.conversationId}` : `/work/${hit.id}`),
      }));
    }
    const one = await call("flight.get", { flightId: words });
    return [{ label: one.body, hint: `${shorten(one.id)}, ${one.state}`, take: () => go(`/flights/${one.id}`) }];
  }
});
