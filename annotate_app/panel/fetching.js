async function fetched(path) {
  for (let tries = 0; ; tries += 1) {
    const again = tries ? `?${tries}` : ""; // a browser may remember that an address failed
    try {
      return await import(new URL(path + again, document.baseURI));
    } catch {
      await new Promise((go) => setTimeout(go, Math.min(500 * 2 ** tries, 4000)));
    }
  }
}
// A page that was open while the study was brought to a new version begins anew.
if ((window.evenhandPanel ??= PANEL_PATH) !== PANEL_PATH) location.reload();
const { default: show } = await fetched(PANEL_PATH);
export default show;
