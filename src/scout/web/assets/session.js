// @ts-check
// The secret of this tab. The server sends it once, in the first document after sign-in; the origin stores it.

const NAME = "scout-page";
/** @type {string | null} */
let secret = null;

/** @returns {Promise<string | null>} the secret, from this document, this tab or another tab of this page */
async function findSecret() {
  const meta = document.querySelector(`meta[name="${NAME}"]`);
  const given = meta?.getAttribute("content");
  if (given) {
    meta?.remove();
    sessionStorage.setItem(NAME, given);
    return given;
  }
  return sessionStorage.getItem(NAME) ?? (await askOtherTabs());
}

const channel = new BroadcastChannel(NAME);
channel.addEventListener("message", (event) => {
  if (event.data === "wanted" && secret) channel.postMessage({ secret });
});

/** @returns {Promise<string | null>} */
function askOtherTabs() {
  return new Promise((resolve) => {
    const done = (/** @type {string | null} */ found) => {
      channel.removeEventListener("message", listen);
      clearTimeout(timer);
      if (found) sessionStorage.setItem(NAME, found);
      resolve(found);
    };
    const listen = (/** @type {MessageEvent} */ event) => {
      if (typeof event.data?.secret === "string") done(event.data.secret);
    };
    const timer = setTimeout(() => done(null), 400);
    channel.addEventListener("message", listen);
    channel.postMessage("wanted");
  });
}

/** Whether this tab may call the API. */
export const ready = findSecret().then((found) => {
  secret = found;
  return found !== null;
});

/** @returns {Record<string, string>} the header that every call needs */
export function secretHeader() {
  return secret ? { "Scout-Page": secret } : {};
}

/** End this browser's session, here and in every other tab. */
export async function signOut() {
  await fetch("/sign-out", { method: "POST", headers: secretHeader() });
  sessionStorage.removeItem(NAME);
  secret = null;
  channel.postMessage("signed out");
  location.assign("/");
}

channel.addEventListener("message", (event) => {
  if (event.data === "signed out") {
    sessionStorage.removeItem(NAME);
    location.reload();
  }
});
