// @ts-check
// The time slider: the range shows the moment while it moves, and opens it when it is let go.

const WORDS = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** @param {HTMLInputElement} range @returns {Date} */
function read(range) {
  const from = new Date(range.dataset["from"] ?? "").getTime();
  const to = new Date(range.dataset["to"] ?? "").getTime();
  return new Date(from + ((to - from) * Number(range.value)) / Number(range.max));
}

for (const range of document.querySelectorAll("input[data-slider]")) {
  if (!(range instanceof HTMLInputElement)) continue;
  const label = document.createElement("output");
  label.className = "slider-moment";
  range.after(label);
  const show = () => {
    const words = WORDS.format(read(range));
    label.textContent = words;
    range.setAttribute("aria-valuetext", words);
  };
  show();
  range.addEventListener("input", show);
  range.addEventListener("change", () => {
    location.assign(`${range.dataset["slider"] ?? ""}${encodeURIComponent(read(range).toISOString())}`);
  });
}

// The past is read-only, and its links stay in it: a row of the past opens the record as it was.
const moment = new URLSearchParams(location.search).get("at");
for (const link of document.querySelectorAll("main[data-past] :is([href^='/'], [data-href])")) {
  const name = link.hasAttribute("href") ? "href" : "data-href";
  const url = new URL(link.getAttribute(name) ?? "", location.href);
  if (!moment || link.closest(".slider, .past-banner") || url.searchParams.has("at")) continue;
  url.searchParams.set("at", moment);
  link.setAttribute(name, `${url.pathname}${url.search}${url.hash}`);
}
