// The links that were made, a row each with what became of it and buttons that copy it; `copyText`
// and `selectText` stand in panel/copying.js. All texts go in as text.

const shown = new WeakMap();

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".invites");
  const state = JSON.stringify(data);
  if (shown.get(place) === state) return;
  shown.set(place, state);
  const { rows, text } = data;
  const said = made("span", "", "copied");
  said.setAttribute("role", "status");
  const button = (name, of, from) => {
    const copies = made("button", name, "copy");
    copies.type = "button";
    copies.addEventListener("click", () => {
      const done = copyText(of());
      if (!done && from) selectText(from);
      said.textContent = done ? "Copied" : "Marked: copy with Ctrl+C";
    });
    return copies;
  };
  const full = (link) => text.replace("{link}", () => link);
  const open = rows.filter(({ link }) => link);
  const all = made("p");
  if (open.length) {
    const lines = () => open.map(({ code, link }) => `${code}\t${link}`).join("\n");
    all.append(button("Copy all", lines), " ");
  }
  all.append(said);
  const head = ["Annotator", "State", "Valid until (UTC)", "Link"].map((name) => made("th", name));
  head.forEach((cell) => cell.setAttribute("scope", "col"));
  const lines = rows.map(({ code, state, until, link, sends }) => {
    const address = made("code", link);
    const cell = made("td");
    if (link) cell.append(button("Copy", () => link, address));
    if (link && sends) cell.append(button("Copy the text", () => full(link), address));
    cell.append(address);
    return made("tr", [made("td", code), made("td", state), made("td", until), cell]);
  });
  const caption = made("caption", "Links that were made, the latest first");
  const table = made("table", [caption, made("thead", made("tr", head)), made("tbody", lines)]);
  table.className = "evenhand-table";
  place.replaceChildren(all, table);
}

function made(tag, inside = "", look = "") {
  const node = document.createElement(tag);
  node.append(...[inside].flat());
  if (look) node.className = look;
  return node;
}
