// For who has no panel yet: says that the server does not answer, and loads the page anew once it
// does where a part of it could not be fetched, or Streamlit has given up connecting.
(() => {
  const EVERY_MS = 3000;
  const PATIENCE_MS = 15000;
  const root = document.documentElement;
  const reads = navigator.languages.map((code) => code.split("-")[0]);
  root.dataset.reads = reads.find((code) => LANGUAGES.includes(code)) ?? "en"; // until they choose
  let connected = performance.now();
  const broken = () => root.toggleAttribute("data-evenhand-broken", true);
  addEventListener("vite:preloadError", broken);
  const parts = "script, link:is([rel=modulepreload], [rel=stylesheet])";
  addEventListener("error", ({ target }) => target.matches?.(parts) && broken(), true);
  const hasRoom = async () => {
    const answer = await fetch("evenhand/room", { cache: "no-store" }).catch(() => null);
    return answer?.ok ? (await answer.json()).room : true;
  };
  setInterval(async () => {
    const state = document.querySelector(".stApp")?.dataset.testConnectionState;
    const crowded = state !== "CONNECTED" && !(await hasRoom());
    root.toggleAttribute("data-evenhand-crowded", crowded);
    if (crowded) return;
    if (state === "CONNECTED") connected = performance.now();
    root.toggleAttribute("data-evenhand-away", performance.now() - connected > PATIENCE_MS);
    if (!root.hasAttribute("data-evenhand-broken") && state !== "DISCONNECTED_FOREVER") return;
    const answer = await fetch("_stcore/health", { cache: "no-store" }).catch(() => null);
    if (answer?.ok) location.reload();
  }, EVERY_MS);
})();
