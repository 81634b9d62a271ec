// Scrolling the texts by keyboard, wherever the focus is, and two sides as one.

const SCROLLS = { PageDown: 1, PageUp: -1, " ": 1, Home: -Infinity, End: Infinity };
const OWN_SPACE = "a, button, summary, input:not(:checked), input[type=checkbox]";

// How many pages a key scrolls, in all texts together; undefined where it does not, or where the
// focus is in what scrolls by itself: one text, the guidelines.
function pagesScrolled(event, target) {
  if (target.closest?.(".text, .guides")) return undefined;
  if (event.key !== " ") return SCROLLS[event.key];
  if (target.matches?.(OWN_SPACE)) return undefined;
  return event.shiftKey ? -1 : 1;
}

function scrollTexts(material, pages) {
  const columns = [...material.children].map((column) => [...column.querySelectorAll(".text")]);
  const texts = columns.flat().filter((text) => text.scrollHeight > text.clientHeight + 1);
  if (texts.length === 0) scrollBy(scrollerOf(material), pages); // a phone: all in one column
  else if (Number.isFinite(pages)) columns.forEach((column) => scrollColumn(column, pages));
  else texts.forEach((text) => scrollBy(text, pages));
}

// The material, or on the smallest screens all of the panel.
function scrollerOf(material) {
  return material.scrollHeight > material.clientHeight + 1 ? material : material.closest(".panel");
}

// Of the texts below each other the first that has more to show: as one would read them.
function scrollColumn(texts, pages) {
  const left = (text) =>
    pages > 0 ? text.scrollHeight - text.clientHeight - text.scrollTop : text.scrollTop;
  const next = (pages > 0 ? texts : texts.toReversed()).find((text) => left(text) > 1);
  if (next) scrollBy(next, pages);
}

// A page less a line or two, so that the eye finds its place.
function scrollBy(node, pages) {
  const whole = node.scrollHeight * Math.sign(pages);
  const top = Number.isFinite(pages) ? pages * Math.max(node.clientHeight - 48, 24) : whole;
  node.scrollBy({ top, behavior: "instant" });
}

// Both responses at the same share of their length, as long as `tied()`.
function tieScrolling(texts, tied) {
  const led = new Set(); // moved by this, not by the reader
  const room = (text) => text.scrollHeight - text.clientHeight;
  const follow = (leader) => {
    if (led.delete(leader) || !tied() || room(leader) < 1) return;
    for (const text of texts.filter((other) => other !== leader)) {
      const before = text.scrollTop;
      text.scrollTop = (leader.scrollTop / room(leader)) * room(text);
      if (text.scrollTop !== before) led.add(text);
    }
  };
  for (const text of texts) text.addEventListener("scroll", () => follow(text));
}
