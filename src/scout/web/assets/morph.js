// @ts-check
// Bring a document up to date with a newer copy of itself, changing as little as possible.
//
// Rows of a list are matched by their key and keep their place. A new row is put in where the server has it, unless the
// pointer or the focus is inside the list: then it is announced, and nothing moves until the reader wants it.

/** @type {WeakMap<Element, Element>} the newer copy of a list that the reader has not asked for yet */
const waiting = new WeakMap();
const OWN = new Set(["open", "data-gone", "data-fresh", "tabindex", "aria-busy"]);

/** @param {Element} old @param {Element} fresh */
export function morph(old, fresh) {
  if (old.hasAttribute("data-own") || old.hasAttribute("data-gone")) return;
  copyAttributes(old, fresh);
  if (old.hasAttribute("data-list")) morphList(old, fresh);
  else morphChildren(old, fresh);
}

/** @param {Element} old @param {Element} fresh */
function copyAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (!OWN.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!OWN.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}

/** @param {Element} old @param {Element} fresh */
function morphChildren(old, fresh) {
  if (["INPUT", "TEXTAREA", "SELECT"].includes(old.tagName)) return;
  const left = [...old.childNodes];
  let place = 0;
  for (const next of [...fresh.childNodes]) {
    const here = left[place];
    if (here && matches(here, next)) {
      place += 1;
      update(here, next);
    } else {
      const found = left.findIndex((one, number) => number > place && matches(one, next) && isNamed(one));
      if (found > 0) {
        for (const gone of left.splice(place, found - place)) remove(gone);
        update(/** @type {ChildNode} */ (left[place]), next);
        place += 1;
      } else {
        const made = document.importNode(next, true);
        old.insertBefore(made, here ?? null);
      }
    }
  }
  for (const gone of left.slice(place)) remove(gone);
}

/** @param {Node} one @param {Node} other */
function matches(one, other) {
  if (one.nodeType !== other.nodeType || one.nodeName !== other.nodeName) return false;
  return name(one) === name(other);
}

/** @param {Node} node */
function name(node) {
  if (!(node instanceof Element)) return "";
  return node.getAttribute("data-key") ?? node.id;
}

/** @param {Node} node */
function isNamed(node) {
  return name(node) !== "";
}

/** @param {ChildNode} node */
function remove(node) {
  if (!(node instanceof Element && node.hasAttribute("data-own"))) node.remove();
}

/** @param {Node} old @param {Node} fresh */
function update(old, fresh) {
  if (old instanceof Element && fresh instanceof Element) morph(old, fresh);
  else if (old.nodeValue !== fresh.nodeValue && !isTime(old)) old.nodeValue = fresh.nodeValue;
}

/** The text of a time was made local, so it differs from the server's. @param {Node} node */
function isTime(node) {
  return node.parentElement?.tagName === "TIME";
}

// -- lists ---------------------------------------------------------------------------------------------

/** @param {Element} old @param {Element} fresh */
function morphList(old, fresh) {
  const keyed = list(fresh);
  if (list(old).size === 0 || keyed.size === 0) {
    if (list(old).size === 0 || !old.hasAttribute("data-keep")) morphChildren(old, fresh);
    return;
  }
  for (const [key, row] of list(old)) {
    const next = keyed.get(key);
    if (next) morph(row, next);
    else if (!old.hasAttribute("data-keep")) row.remove();
  }
  const known = list(old);
  const added = [...keyed.keys()].filter((key) => !known.has(key));
  if (added.length === 0) withdraw(old);
  else if (old.matches(":hover, :focus-within")) announce(old, fresh, added.length);
  else insert(old, fresh);
}

/** @param {Element} root @returns {Map<string, Element>} */
function list(root) {
  const found = new Map();
  for (const child of root.children) {
    const key = child.getAttribute("data-key");
    if (key !== null && !child.hasAttribute("data-own")) found.set(key, child);
  }
  return found;
}

/** Put in the rows that are new, each behind the row that it follows on the server. @param {Element} old @param {Element} fresh */
function insert(old, fresh) {
  withdraw(old);
  const known = list(old);
  /** @type {Element | null} */
  let before = old.querySelector(":scope > .row-head");
  for (const [key, row] of list(fresh)) {
    let here = known.get(key);
    if (!here) {
      here = /** @type {Element} */ (document.importNode(row, true));
      here.setAttribute("data-fresh", "");
      if (before) before.after(here);
      else old.prepend(here);
    }
    before = here;
  }
}

/** @param {Element} old @param {Element} fresh @param {number} count */
function announce(old, fresh, count) {
  waiting.set(old, fresh);
  let bar = old.querySelector(":scope > .announce");
  if (!bar) {
    bar = document.createElement("button");
    bar.className = "announce";
    bar.setAttribute("type", "button");
    bar.setAttribute("data-own", "");
    bar.addEventListener("click", () => showWaiting(old));
    const head = old.querySelector(":scope > .row-head");
    if (head) head.after(bar);
    else old.prepend(bar);
  }
  const words = `${count} new — show`;
  if (bar.textContent !== words) bar.textContent = words;
}

/** @param {Element} old */
function showWaiting(old) {
  const fresh = waiting.get(old);
  if (fresh) insert(old, fresh);
}

/** @param {Element} old */
function withdraw(old) {
  waiting.delete(old);
  old.querySelector(":scope > .announce")?.remove();
}
