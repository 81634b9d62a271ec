// Finding words in the texts of a unit: all places are marked, and Enter goes from one to the next.

const MOST_FOUND = 2000;

class FindingPanel extends WaysPanel {
  found = [];
  foundAt = -1;

  toggleFinding() {
    const finder = this.find(".finder");
    finder.hidden = !finder.hidden;
    if (finder.hidden) return this.endFinding();
    this.find("#wanted").focus();
    this.find("#wanted").select();
    this.search();
  }

  endFinding() {
    this.find(".finder").hidden = true;
    this.showFound([]);
    this.toTexts();
  }

  // Anew for what is typed, and whenever the texts are drawn.
  search() {
    if (this.find(".finder").hidden) return;
    const wanted = this.find("#wanted").value;
    const texts = [...this.find(".material").querySelectorAll(".text")];
    this.showFound(wanted ? texts.flatMap((text) => placesIn(text, wanted)).slice(0, MOST_FOUND) : []);
    if (this.found.length > 0) this.toFound(0);
    else this.find(".places").textContent = wanted ? this.words.found_none : "";
  }

  showFound(ranges) {
    this.found = ranges;
    this.foundAt = -1;
    this.find(".places").textContent = "";
    globalThis.CSS?.highlights?.set("found", new Highlight(...ranges));
    globalThis.CSS?.highlights?.delete("found-here");
  }

  toFound(at) {
    const count = this.found.length;
    if (count === 0) return;
    this.foundAt = (at + count) % count;
    const range = this.found[this.foundAt];
    globalThis.CSS?.highlights?.set("found-here", new Highlight(range));
    const holder = range.startContainer.parentElement;
    const label = holder.closest(".block").querySelector("h2").firstChild.textContent;
    const number = filled(this.words.found, { at: this.foundAt + 1, count });
    this.find(".places").replaceChildren(number, element("span", {}, `, ${label}`));
    for (let fold = holder.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    const cut = holder.closest(".cut");
    if (cut) showWhole(cut);
    const text = holder.closest(".text");
    bringUp(text, range.getBoundingClientRect().top, scrollerAround(text).clientHeight / 3);
  }
}

// What a text says on the page, and the range of any part of it: what belongs to the page and not to
// the text is left out.
function saidIn(text) {
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement.closest("[data-turn], button, .empty")
      ? NodeFilter.FILTER_REJECT
      : NodeFilter.FILTER_ACCEPT,
  );
  const parts = [];
  let whole = "";
  while (walker.nextNode()) {
    parts.push({ node: walker.currentNode, from: whole.length });
    whole += walker.currentNode.data;
  }
  let at = 0; // ranges are asked for in their order
  const rangeOf = (start, beyond) => {
    const range = new Range();
    while (parts[at + 1]?.from <= start) at += 1;
    range.setStart(parts[at].node, start - parts[at].from);
    let end = at;
    while (parts[end + 1]?.from < beyond) end += 1;
    range.setEnd(parts[end].node, beyond - parts[end].from);
    return range;
  };
  return { whole, rangeOf };
}

// Where a text says this, in whatever case.
function placesIn(text, wanted) {
  const { whole, rangeOf } = saidIn(text);
  const plain = wanted.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const ranges = [];
  for (const { index, 0: said } of whole.matchAll(new RegExp(plain, "giu"))) {
    if (ranges.length === MOST_FOUND) break;
    ranges.push(rangeOf(index, index + said.length));
  }
  return ranges;
}
