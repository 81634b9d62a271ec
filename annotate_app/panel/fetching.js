// A page that was open while the study was brought to a new version begins anew.
if ((window.evenhandPanel ??= PANEL_PATH) !== PANEL_PATH) location.reload();
const { default: show } = await import(new URL(PANEL_PATH, document.baseURI)).catch(() => {
  document.documentElement.toggleAttribute("data-evenhand-broken", true); // for front.js
  return new Promise(() => {});
});
export default show;
