// For who has no panel yet: where a part of the page could not be fetched, or Streamlit has given up
// connecting, the page is loaded anew once the server answers.
(() => {
  const EVERY_MS = 3000;
  const root = document.documentElement;
  const broken = () => root.toggleAttribute("data-evenhand-broken", true);
  addEventListener("vite:preloadError", broken);
  addEventListener("error", ({ target }) => target.matches?.("script, link") && broken(), true);
  setInterval(async () => {
    const state = document.querySelector(".stApp")?.dataset.testConnectionState;
    if (!root.hasAttribute("data-evenhand-broken") && state !== "DISCONNECTED_FOREVER") return;
    const answer = await fetch("_stcore/health", { cache: "no-store" }).catch(() => null);
    if (answer?.ok) location.reload();
  }, EVERY_MS);
})();
