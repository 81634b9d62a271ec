// Ways of reading and working that are each reader's own, and that this browser remembers.

const TWICE_MS = 700; // the second half of a double click, or of a double press, comes within it
const SIZES = [0.85, 1, 1.15, 1.3, 1.5, 1.75, 2];

class WaysPanel extends DrawnPanel {
  // Larger or smaller letters in the texts; the page around them stays as it is.
  resize(steps) {
    const at = SIZES.indexOf(this.size()) + steps;
    this.drafts.write("size", SIZES[Math.min(Math.max(at, 0), SIZES.length - 1)]);
    this.drawWays();
  }

  size() {
    const size = this.drafts.read("size");
    return SIZES.includes(size) ? size : 1;
  }

  // Marks the words that one of two responses has and the other has not.
  switchDifferences() {
    this.drafts.write("differences", !this.showsDifferences());
    this.drawWays();
    this.drawDifferences();
  }

  showsDifferences() {
    return this.bothResponses().length > 0 && this.drafts.read("differences") === true;
  }

  // The two responses that can be compared; none where there are not just two.
  bothResponses() {
    const texts = [...this.find(".material").querySelectorAll(".side .response .text")];
    return texts.length === 2 ? texts : [];
  }

  drawDifferences() {
    globalThis.CSS?.highlights?.delete("differs");
    if (!this.showsDifferences()) return;
    const ranges = this.opposites().flatMap((texts) => {
      const said = texts.map(saidIn);
      const places = differences(said[0].whole, said[1].whole);
      if (!places) this.say(this.words.differ_everywhere);
      return (places ?? []).flatMap((own, side) => own.map(([start, beyond]) => said[side].rangeOf(start, beyond)));
    });
    globalThis.CSS?.highlights?.set("differs", new Highlight(...ranges));
  }

  // The texts of two sides that stand opposite each other: prompts where both have one, and responses.
  opposites() {
    const [one, other] = this.bothResponses().map((text) => [...text.closest(".side").querySelectorAll(".text")]);
    return one.length === other.length ? one.map((text, at) => [text, other[at]]) : [this.bothResponses()];
  }

  // Whether an answer goes as soon as it is chosen; only where nothing else is asked for.
  atOnce() {
    return this.mayGoAtOnce() && this.drafts.read("at-once") === true;
  }

  mayGoAtOnce() {
    const { questions, data } = this;
    if (!questions?.length || data.asks.rationale) return false;
    return questions.every(({ task, evidence, number, several }) => task && !evidence && !number && !several);
  }

  switchAtOnce(on) {
    this.drafts.write("at-once", on);
    this.toTexts();
  }

  // Not twice by one press: the unit that follows is in view by then, and nobody has read it.
  sendAtOnce() {
    if (performance.now() - this.sentAtOnce < TWICE_MS) return;
    if (this.phase !== "choosing" || !this.atOnce() || this.missing() >= 0) return;
    this.sentAtOnce = performance.now();
    this.submit();
  }

  drawWays() {
    this.root.style.setProperty("--size", this.size());
    this.drawSize(".smaller", this.words.smaller_text, SIZES[0]);
    this.drawSize(".larger", this.words.larger_text, SIZES.at(-1));
    for (const differ of this.root.querySelectorAll(".differ")) {
      differ.hidden = this.bothResponses().length === 0;
      differ.setAttribute("aria-pressed", String(this.showsDifferences()));
    }
    const folded = this.drafts.read("folded") === true;
    this.root.toggleAttribute("data-folded", folded);
    this.find(".fold").setAttribute("aria-expanded", String(!folded));
    this.find(".fold .asked").textContent = this.questions?.[0]?.question ?? "";
    this.find(".folds").textContent = folded ? this.words.unfold : this.words.fold;
    this.find(".fold").title = this.find(".folds").textContent;
    this.find(".at-once").hidden = !this.mayGoAtOnce();
    this.find("#at-once").checked = this.atOnce();
  }

  // On a phone: what stands on a bar elsewhere.
  openTools(open) {
    this.find(".bar").classList.toggle("opened", open);
    this.find(".more").setAttribute("aria-expanded", String(open));
  }

  drawSize(name, said, last) {
    const key = this.find(name);
    key.setAttribute("aria-label", said);
    key.title = said;
    key.setAttribute("aria-disabled", String(this.size() === last));
  }

  // On a phone: the question put away, for the texts to have the screen.
  foldQuestion() {
    this.drafts.write("folded", !this.drafts.read("folded"));
    this.drawWays();
  }
}
