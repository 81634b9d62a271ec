// The words that decided an answer: marked with the mouse, or sentence by sentence with the keys.
// Here a mark counts as JavaScript counts, in UTF-16 units; on its way it counts code points.

class MarkingPanel extends RestingPanel {
  marks = []; // for each question: [{ text, start, end }]
  marking = null; // while someone marks: which of `sentences` they are at
  sentences = [];

  asked() {
    return this.sheet?.questions[this.at]?.evidence;
  }

  // The draft's marks, or those of the answer that is being changed.
  marksSoFar(question, draft) {
    const known = draft.marks?.[question.task] ?? question.evidence?.given ?? [];
    const text = ({ text: name }) => this.sheet.blocks.find((block) => block.name === name)?.text;
    return known
      .filter((mark) => text(mark) !== undefined)
      .map((mark) => ({
        text: mark.text,
        start: unitsBefore(text(mark), mark.start),
        end: unitsBefore(text(mark), mark.end),
      }));
  }

  marksToSend(at) {
    const text = (name) => this.sheet.blocks.find((block) => block.name === name).text;
    return (this.marks[at] ?? []).map((mark) => ({
      text: mark.text,
      start: pointsBefore(text(mark.text), mark.start),
      end: pointsBefore(text(mark.text), mark.end),
    }));
  }

  // The first question whose answer needs marks and has none; a skip needs none.
  unproven() {
    return this.questions.findIndex(
      (question, n) =>
        question.evidence?.ask === "required" && this.answers[n]?.option && !this.marks[n].length,
    );
  }

  // ---- marking -------------------------------------------------------------------------------

  toggleMarking() {
    if (this.marking !== null) return this.stopMarking();
    if (this.phase === "showing") return this.refuse(this.words.too_early);
    if (this.phase !== "choosing" || !this.asked()) return undefined;
    const selected = this.selected();
    const responses = this.texts.filter(({ block }) => block.kind === "response");
    this.sentences = responses.flatMap(({ block }) => sentencesOf(block));
    if (this.sentences.length === 0) return this.say(this.words.mark_nothing);
    const marks = this.marks[this.at];
    const at = this.sentences.findIndex((sentence) => marks.some((mark) => overlap(mark, sentence)));
    this.marking = Math.max(at, 0);
    this.say("");
    if (selected) this.addMark(selected);
    return this.drawMarking();
  }

  stopMarking() {
    this.marking = null;
    this.drawMarking();
    this.toTexts();
  }

  // The keys that belong to marking as long as it lasts; undefined for all others.
  markingAction(event, target) {
    if (this.marking === null || this.phase !== "choosing") return undefined;
    if (event.key === "Escape" || event.key === ",") return () => this.stopMarking();
    if (target.closest?.(".rail, .bar")) return undefined;
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (step) return () => this.goToSentence(this.marking + step);
    if (event.key === "Enter" || event.key === " ") return () => this.toggleSentence();
    return undefined;
  }

  goToSentence(at) {
    this.marking = Math.min(Math.max(at, 0), this.sentences.length - 1);
    this.drawMarking();
  }

  toggleSentence() {
    if (this.marking === null) return;
    const sentence = this.sentences[this.marking];
    const others = this.marks[this.at].filter((mark) => !overlap(mark, sentence));
    if (others.length < this.marks[this.at].length) this.setMarks(others);
    else this.addMark(sentence);
  }

  // Marks that overlap become one.
  addMark({ text, start, end }) {
    const near = this.marks[this.at].filter((mark) => overlap(mark, { text, start, end }));
    const others = this.marks[this.at].filter((mark) => !near.includes(mark));
    const most = this.asked().most;
    if (others.length >= most) return this.say(filled(this.words.mark_most, { most }));
    const whole = {
      text,
      start: Math.min(start, ...near.map((mark) => mark.start)),
      end: Math.max(end, ...near.map((mark) => mark.end)),
    };
    return this.setMarks([...others, whole]);
  }

  setMarks(marks) {
    if (this.phase !== "choosing") return;
    const place = (mark) => this.sheet.blocks.findIndex((block) => block.name === mark.text);
    this.marks[this.at] = marks.toSorted((one, two) => place(one) - place(two) || one.start - two.start);
    this.say("");
    this.saveDraft();
    this.drawMarking();
  }

  // What was selected with the mouse is marked; a click goes to its sentence.
  onPointed() {
    if (this.marking === null || this.phase !== "choosing") return;
    const selected = this.selected();
    if (selected) {
      document.getSelection().removeAllRanges();
      return this.addMark(selected);
    }
    const place = this.pointed();
    const at = this.sentences.findIndex(
      ({ text, start, end }) => place && text === place.text && start <= place.start && place.start <= end,
    );
    if (at >= 0) this.goToSentence(at);
  }

  // What is selected within one response, as it was written, without the white space around it.
  selected() {
    const range = this.pointed();
    const text = range?.block.text.slice(range.start, range.end) ?? "";
    if (text.trim() === "") return undefined;
    const start = range.start + text.length - text.trimStart().length;
    return { text: range.text, start, end: start + text.trim().length };
  }

  pointed() {
    const root = this.root.getRootNode();
    const selection = document.getSelection();
    const range =
      selection?.getComposedRanges?.({ shadowRoots: [root] })[0] ??
      (root.getSelection?.().rangeCount ? root.getSelection().getRangeAt(0) : undefined);
    const within = ({ text, block }) =>
      block.kind === "response" &&
      !text.classList.contains("rendered") &&
      text.contains(range?.startContainer) &&
      text.contains(range.endContainer);
    const found = this.texts.find(within);
    if (!found) return undefined;
    const before = (node, offset) => {
      const all = document.createRange();
      all.setStart(found.text, 0);
      all.setEnd(node, offset);
      return all.toString().length;
    };
    const length = found.block.text.length; // what is said of an empty text stands behind it
    const start = Math.min(before(range.startContainer, range.startOffset), length);
    const end = Math.min(before(range.endContainer, range.endOffset), length);
    return { text: found.block.name, block: found.block, start, end };
  }

  // ---- how it looks --------------------------------------------------------------------------

  drawMarking() {
    this.drawTexts();
    this.drawEvidence();
    this.drawState();
    if (this.marking !== null) this.toHere();
  }

  toHere() {
    const here = this.find(".here");
    here?.focus({ preventScroll: true });
    here?.scrollIntoView({ block: "nearest" });
  }

  drawEvidence() {
    const asked = this.asked();
    const { words } = this;
    this.find(".evidence").hidden = !asked;
    if (!asked) return;
    const several = this.sheet.questions.length > 1;
    const title = asked.ask === "required" ? words.evidence_required : words.evidence_optional;
    const of = several ? `${this.sheet.questions[this.at].title}: ` : "";
    this.find("#evidence-title").textContent = of + title;
    this.find(".mark").setAttribute("aria-pressed", String(this.marking !== null));
    this.find(".sentence").hidden = this.marking === null;
    const said = matchMedia("(hover: none)").matches ? words.mark_how_touch : words.mark_how;
    const how = [said, this.isRendered() ? words.mark_source : ""].join(" ").trim();
    this.find(".how").textContent = this.marking === null ? "" : how;
    this.find(".marks").replaceChildren(...this.marks[this.at].map((mark) => this.quoteView(mark)));
  }

  quoteView(mark) {
    const block = this.sheet.blocks.find(({ name }) => name === mark.text);
    const quote = block.text.slice(mark.start, mark.end);
    const remove = element(
      "button",
      { type: "button", class: "quiet unmark", "aria-label": filled(this.words.unmark, { quote }) },
      "×",
    );
    remove.addEventListener("click", () =>
      this.setMarks(this.marks[this.at].filter((other) => other !== mark)),
    );
    const where = block.side ? [element("span", { class: "where" }, block.label)] : [];
    return element("li", {}, ...where, element("q", { dir: "auto" }, quote), remove);
  }
}

function overlap(one, other) {
  return one.text === other.text && one.start < other.end && other.start < one.end;
}

// A response sentence by sentence, without the white space between them.
function sentencesOf({ name, text }) {
  const parts = Intl.Segmenter
    ? [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text)]
    : [...text.matchAll(/[^\n]+/g)].map((match) => ({ segment: match[0], index: match.index }));
  return parts
    .filter(({ segment }) => segment.trim() !== "")
    .map(({ segment, index }) => {
      const start = index + segment.length - segment.trimStart().length;
      return { text: name, start, end: start + segment.trim().length };
    });
}

function pointsBefore(text, units) {
  return [...text.slice(0, units)].length;
}

function unitsBefore(text, points) {
  let units = 0;
  for (let left = points; left > 0 && units < text.length; left -= 1) {
    units += text.codePointAt(units) > 0xffff ? 2 : 1;
  }
  return units;
}

// A text cut where a mark or the present sentence begins and ends.
function markedNodes(text, marks, here, nodesOf) {
  const ends = [...marks, ...(here ? [here] : [])].flatMap(({ start, end }) => [start, end]);
  const cuts = [...new Set([0, ...ends, text.length])].sort((one, other) => one - other);
  const sentence = here && element("span", { class: "here", tabindex: "-1", role: "button" });
  const nodes = [];
  for (let n = 0; n + 1 < cuts.length; n += 1) {
    const [start, end] = [cuts[n], cuts[n + 1]];
    const marked = marks.some((mark) => mark.start <= start && end <= mark.end);
    const inside = nodesOf(text.slice(start, end));
    const piece = marked ? [element("mark", {}, ...inside)] : inside;
    if (!here || start < here.start || end > here.end) nodes.push(...piece);
    else sentence.append(...piece);
    if (here && start === here.start) nodes.push(sentence);
  }
  if (sentence) sentence.setAttribute("aria-pressed", String(marks.some((mark) => overlap(mark, here))));
  return nodes;
}
