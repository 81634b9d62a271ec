// Marks the page that is shown, among those that are reached from the same entry of the navigation,
// and this entry: Streamlit marks only pages that the navigation lists.

export default function ({ data }) {
  mark(".st-key-beside a", data.page, "page");
  mark("[data-testid=stSidebarNavLink]", data.above, "true");
}

function mark(links, place, value) {
  for (const link of document.querySelectorAll(links)) {
    const isHere = new URL(link.href).pathname.split("/").at(-1) === place;
    if (isHere) link.setAttribute("aria-current", value);
    else if (link.getAttribute("aria-current") === value && (value === "true" || place))
      link.removeAttribute("aria-current");
  }
}
