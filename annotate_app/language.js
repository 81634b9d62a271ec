// Says what language the page is in, keeps the reader's choice in this browser, and offers it where
// no panel does.

export default function ({ data, parentElement, setTriggerValue }) {
  const { name, chosen, shown, offered, in_panel } = data;
  document.documentElement.lang = document.documentElement.dataset.reads = shown;
  document.documentElement.dir = data.dir;
  try {
    if (chosen) localStorage.setItem(name, chosen);
    const kept = chosen ? shown : localStorage.getItem(name);
    if (kept !== shown && kept in offered) setTriggerValue("chosen", kept);
  } catch {
    // A browser that keeps nothing: the choice lasts as long as the window.
  }
  const [label, select] = [parentElement.querySelector("label"), parentElement.querySelector("select")];
  label.hidden = in_panel || Object.keys(offered).length < 2;
  label.querySelector("span").textContent = data.label;
  const options = Object.entries(offered).map(([code, own]) => {
    const option = new Option(own, code, false, code === shown);
    option.lang = code;
    return option;
  });
  select.replaceChildren(...options);
  select.onchange = () => setTriggerValue("chosen", select.value);
}
