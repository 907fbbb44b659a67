// @ts-check
// Desktop notifications: only after the person has agreed, and only while the page is not in front.

import { visible } from "./dom.js";
import { onEvent } from "./live.js";

const ask = /** @type {HTMLElement | null} */ (document.querySelector("[data-notify]"));
if (ask && "Notification" in window && Notification.permission === "default") {
  ask.hidden = false;
  ask.addEventListener("click", () => void Notification.requestPermission().then(() => (ask.hidden = true)));
}

onEvent((event) => {
  if (event.type !== "collab.attention.created" || !document.hidden) return;
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  const item = event.payload?.record ?? {};
  const shown = new Notification("Scout needs you", { body: visible(String(item.title ?? "")), tag: String(item.id) });
  shown.onclick = () => {
    window.focus();
    location.assign("/inbox");
  };
});
