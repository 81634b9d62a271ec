"use strict";
// Makes files of what is on the page: a figure as SVG in the light colours, with its caption and
// note, and a table as CSV. Nothing is asked of anywhere.
const COLOURS = {{ colours | tojson }};
const SYNTHETIC = {{ synthetic | tojson }};
const LETTER = 7; // pixels, about

const wrapped = (text, width) => {
  const lines = [""];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const line = `${lines.at(-1)} ${word}`.trim();
    if (lines.at(-1) && line.length * LETTER > width) lines.push(word);
    else lines[lines.length - 1] = line;
  }
  return lines.filter(Boolean);
};
const escaped = text => text.replace(/[&<>"]/g, mark => `&#${mark.charCodeAt(0)};`);
const captionOf = place => place.firstChild.textContent.trim();
const marked = place => captionOf(place) + (SYNTHETIC ? " (synthetic)" : "");

const picture = place => {
  const figure = place.closest("figure");
  const drawn = figure.querySelector("svg[role=img]");
  const [, , wide, high] = drawn.getAttribute("viewBox").split(" ").map(Number);
  const note = figure.querySelector(":scope > .note")?.textContent ?? "";
  const width = Math.max(wide, 480);
  const above = [...wrapped(marked(place), width).map(line => [line, "ink", 600]), ...wrapped(note, width).map(line => [line, "soft", 400])];
  const top = 24 + 18 * above.length;
  const text = above.map(([line, role, weight], n) => `<text x="16" y="${28 + 18 * n}" font-size="13" font-weight="${weight}" fill="${COLOURS[role]}">${escaped(line)}</text>`).join("");
  const inner = [...drawn.childNodes].map(node => new XMLSerializer().serializeToString(node)).join("").replace(/ xmlns="[^"]*"/g, "");
  return `<svg xmlns="${drawn.namespaceURI}" width="${width + 32}" height="${high + top + 16}" font-family="sans-serif"><title>${escaped(marked(place))}</title><desc>${escaped(drawn.getAttribute("aria-label"))}</desc><rect width="100%" height="100%" fill="#ffffff"/>${text}<g transform="translate(16,${top})">${inner.replace(/var\(--chart-([\w-]+)\)/g, (_, role) => COLOURS[role])}</g></svg>`;
};

// As in table_files.py.
const guarded = text => /^'*[=+\-@\t\r\n]/.test(text) && !/^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text) ? `'${text}` : text;
const quoted = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
const textIn = (cell, what) => cell?.querySelector(what)?.textContent ?? "";
const table = place => {
  const whole = place.closest("table");
  const heads = [...whole.tHead.rows[0].cells].map(cell => cell.textContent);
  const rows = [...whole.tBodies[0].rows];
  const numbers = rows.filter(row => !row.classList.contains("group"));
  const bounded = heads.map((_, at) => at > 0 && numbers.some(row => row.cells[at].querySelector(".interval")));
  const grouped = numbers.length < rows.length;
  const out = [[...(grouped ? ["Group"] : []), ...heads.flatMap((name, at) => bounded[at] ? [name, `${name}, low`, `${name}, high`] : [name]), "Note"]];
  let group = "";
  for (const row of rows) {
    if (row.classList.contains("group")) { group = row.cells[0].textContent; continue; }
    const notes = SYNTHETIC ? ["synthetic"] : [];
    const cells = [...row.cells].flatMap((cell, at) => {
      if (at === 0) return [cell.textContent];
      const aside = textIn(cell, "small:not(.interval)");
      if (aside) notes.push(`${heads[at]}: ${aside}`);
      const interval = textIn(cell, ".interval");
      const bounds = interval ? interval.slice(1, -1).split(", ") : ["", ""];
      return [textIn(cell, ".estimate, .published"), ...(bounded[at] ? bounds : [])];
    });
    out.push([...(grouped ? [group] : []), ...cells, notes.join("; ")]);
  }
  return out.map(row => row.map(cell => quoted(guarded(cell))).join(",") + "\r\n").join("");
};

const KINDS = { SVG: ["image/svg+xml", picture], CSV: ["text/csv", table] };
for (const button of document.querySelectorAll("figcaption button, caption button")) {
  const [type, content] = KINDS[button.textContent];
  const place = button.parentElement;
  button.type = "button";
  button.setAttribute("aria-label", `Download ${button.textContent}: ${captionOf(place)}`);
  button.hidden = false;
  button.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content(place)], { type }));
    link.download = `${place.id}.${button.textContent.toLowerCase()}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  });
}
