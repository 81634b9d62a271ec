// A response's Markdown, built node by node from the tree that the server made of it. Only what is
// listed here is ever built, and no attribute of a response's own reaches the page.

const TAGS = new Set(
  (
    "p h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td em strong s pre code hr br div span " +
    "details summary section a"
  ).split(" "),
);
const LOOKS =
  /^(h[1-6]|wide|link|image|formula|address|left|center|right|passage|is-(comment|keyword|string|number|name|count|fold|close))$/;
const A_LETTER = /\p{L}/gu;
const RIGHT_TO_LEFT =
  /[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Adlm}\p{sc=Rohg}\p{sc=Samr}\p{sc=Mand}]/gu;
const ENOUGH_LETTERS = 4000;

// The way in which most of a text runs: its paragraphs, lists and tables stand on that side.
function directionOf(text) {
  const some = text.slice(0, ENOUGH_LETTERS);
  const count = (letters) => some.match(letters)?.length ?? 0;
  return 2 * count(RIGHT_TO_LEFT) > count(A_LETTER) ? "rtl" : "ltr";
}

function renderedNodes(nodes, words, controls) {
  return nodes.flatMap((node) => {
    if (typeof node === "string") return textNodes(node, words, controls);
    return [partView(node, words, controls)];
  });
}

function partView([tag, { class: look, start, href }, ...children], words, controls) {
  const made = element(TAGS.has(tag) ? tag : "span");
  if (LOOKS.test(look)) made.className = look;
  if (tag === "pre") [made.className, made.dir] = ["wide", "ltr"];
  if (look === "passage") made.tabIndex = -1;
  if (tag === "details") made.open = start === 1;
  if (tag === "a" && /^(https?:|mailto:)/.test(href)) {
    for (const [name, value] of Object.entries({ href, target: "_blank", rel: "noopener noreferrer" })) made.setAttribute(name, value);
  }
  if (tag === "ol" && Number.isInteger(start)) made.start = start;
  if (look === "wide" || tag === "pre") made.dataset.name = tag === "pre" ? words.code_block : words.wide_table;
  const inside =
    look === "image"
      ? [filled(words.image, { alt: children.join("") })]
      : look === "address"
        ? [` (${children.join("")})`]
        : children;
  made.append(...renderedNodes(inside, words, controls));
  if (look === "formula") typeset(made, children.join(""));
  return made;
}

const MOST_ROWS = 150; // more than any window has
const CORRECTIONS = 3; // of an estimate by rows, as lines that wrap are higher

// JSON opens level by level, each from its top, as far as its box has room.
function openToFill(text) {
  const folds = inLevels([...text.querySelectorAll("details")]);
  openRows(folds, MOST_ROWS);
  if (!isFull(text)) return;
  const row = folds[0].firstElementChild.getBoundingClientRect().height || 1;
  let rows = Math.floor(roomOf(text) / row);
  for (let n = 0; n < CORRECTIONS; n++) {
    if (openRows(folds, rows) || !isFull(text)) return;
    rows = Math.floor((rows * roomOf(text)) / heightOf(text));
  }
}

function inLevels(folds) {
  const depth = new Map();
  for (const fold of folds) depth.set(fold, (depth.get(fold.parentElement) ?? 0) + 1);
  return folds.sort((one, other) => depth.get(one) - depth.get(other));
}

// Opens what has room in so many rows; what would leave a third of them empty opens too, and is told of.
function openRows(folds, rows) {
  let left = rows - 1;
  let [isOver, overfull] = [false, false];
  for (const fold of folds) {
    const own = fold.childElementCount - 1;
    if (!isOver && own > left) {
      isOver = true;
      overfull = left > rows / 3;
      fold.open = overfull;
    } else fold.open = !isOver;
    left -= own;
  }
  return overfull;
}

function isFull(text) {
  return heightOf(text) > roomOf(text) + 1;
}

function heightOf(text) {
  return text.lastElementChild.getBoundingClientRect().bottom - text.firstElementChild.getBoundingClientRect().top;
}

// Where texts do not scroll by themselves, half of the window is enough for one.
function roomOf(text) {
  const { overflowY, paddingBlockStart, paddingBlockEnd } = getComputedStyle(text);
  const padding = parseFloat(paddingBlockStart) + parseFloat(paddingBlockEnd);
  return overflowY === "auto" ? text.clientHeight - padding : innerHeight / 2;
}

// An image that is a unit's own: only what the message itself holds is ever shown.
function imageNodes({ image, alt }, words) {
  if (!/^data:image\/(png|jpeg|webp);base64,/.test(image)) return [];
  const shown = element("img", { src: image, alt: alt || words.image_unsaid, class: "picture" });
  const size = element("button", { type: "button", class: "quiet", "aria-pressed": "false" }, words.full_size);
  size.addEventListener("click", () => size.setAttribute("aria-pressed", String(shown.classList.toggle("full"))));
  return [shown, size];
}

// Whatever is wider than the page scrolls by itself, and can be reached by Tab to scroll it.
function reachable(parts) {
  const watch = new ResizeObserver((changed) => {
    for (const { target } of changed) {
      const wide = target.scrollWidth > target.clientWidth + 1;
      const named = wide ? { tabindex: "0", role: "region", "aria-label": target.dataset.name } : {};
      for (const name of ["tabindex", "role", "aria-label"]) {
        if (named[name]) target.setAttribute(name, named[name]);
        else target.removeAttribute(name);
      }
    }
  });
  for (const part of parts) watch.observe(part);
  return watch;
}
