// @ts-check
// Times: the document has UTC; here they become local, or how long ago they were.

const UNITS = /** @type {const} */ ([["d", 86400], ["h", 3600], ["min", 60]]);
const SHORT = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const LONG = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** @param {number} seconds */
export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  for (const [unit, size] of UNITS) if (whole >= size) return `${Math.floor(whole / size)} ${unit}`;
  return `${whole} s`;
}

/** @param {ParentNode} [root] */
export function localize(root = document) {
  for (const one of root.querySelectorAll("time[datetime]")) {
    const at = new Date(one.getAttribute("datetime") ?? "");
    const words = one.hasAttribute("data-ago") ? ago(at) : LONG.format(at);
    if (one.textContent !== words) one.textContent = words;
  }
}

/** The moment up to which ages are counted: the one of the past that is shown, else now. */
function present() {
  const past = document.querySelector("main[data-past]")?.getAttribute("data-past");
  return past ? Date.parse(past) : Date.now();
}

/** @param {Date} at */
function ago(at) {
  const seconds = (present() - at.getTime()) / 1000;
  if (seconds < 0) return `in ${duration(-seconds)}`;
  return seconds < 86400 * 7 ? duration(seconds) : SHORT.format(at);
}

// The whole time is shown on hover; it is written when it is asked for.
document.addEventListener("mouseover", (event) => {
  const time = event.target instanceof HTMLTimeElement ? event.target : null;
  if (time) time.title = LONG.format(new Date(time.dateTime));
});

setInterval(() => document.hidden || localize(), 10_000);
