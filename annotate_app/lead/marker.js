// Marks the page that is shown, among those that are reached from the same entry of the navigation,
// and this entry: Streamlit marks only pages that the navigation lists. Typesets the formulas of items.

new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });

export default function ({ data }) {
  mark(".st-key-beside a", data.page, "page");
  mark("[data-testid=stSidebarNavLink]", data.above, "true");
  complete();
}

// Formulas once each, as an item is drawn when it is shown.
function complete() {
  formulasLeft = MOST_FORMULAS;
  for (const formula of document.querySelectorAll(".evenhand-drawn .formula:not([data-seen])")) {
    formula.dataset.seen = "";
    typeset(formula, formula.textContent);
  }
}

function mark(links, place, value) {
  for (const link of document.querySelectorAll(links)) {
    const isHere = new URL(link.href).pathname.split("/").at(-1) === place;
    if (isHere) link.setAttribute("aria-current", value);
    else if (link.getAttribute("aria-current") === value && (value === "true" || place))
      link.removeAttribute("aria-current");
  }
}
