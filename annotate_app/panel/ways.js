// Ways of reading and working that are each reader's own, and that this browser remembers.

const TWICE_MS = 700;
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
    return this.hasSides() && this.drafts.read("differences") === true;
  }

  drawDifferences() {
    globalThis.CSS?.highlights?.delete("differs");
    const texts = [...this.find(".material").querySelectorAll(".side .response .text")];
    if (!this.showsDifferences() || texts.length !== 2) return;
    const said = texts.map(saidIn);
    const places = differences(said[0].whole, said[1].whole);
    if (!places) return this.say(this.words.differ_everywhere);
    const ranges = places.flatMap((own, side) => own.map(([start, beyond]) => said[side].rangeOf(start, beyond)));
    globalThis.CSS?.highlights?.set("differs", new Highlight(...ranges));
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

  // The second half of a double click, or of a double press, is no answer to the unit that follows.
  sendAtOnce() {
    const twice = performance.now() - this.sentAtOnce < TWICE_MS;
    if (twice) return;
    if (this.phase === "choosing" && this.atOnce() && this.missing() < 0) {
      this.sentAtOnce = performance.now();
      this.submit();
    }
  }

  drawWays() {
    this.find(".material").style.setProperty("--size", this.size());
    this.drawSize(".smaller", this.words.smaller_text, SIZES[0]);
    this.drawSize(".larger", this.words.larger_text, SIZES.at(-1));
    this.find(".differ").hidden = this.find(".material").querySelectorAll(".side .response").length !== 2;
    this.find(".differ").setAttribute("aria-pressed", String(this.showsDifferences()));
    const folded = this.drafts.read("folded") === true;
    this.root.toggleAttribute("data-folded", folded);
    this.find(".fold").setAttribute("aria-expanded", String(!folded));
    this.find(".fold .asked").textContent = this.questions?.[0]?.question ?? "";
    this.find(".folds").textContent = folded ? this.words.unfold : this.words.fold;
    this.find(".at-once").hidden = !this.mayGoAtOnce();
    this.find("#at-once").checked = this.atOnce();
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

  // The guidelines of the question at hand, over the texts.
  toggleGuidelines() {
    if (this.find(".sheet").open) return this.find(".sheet").close();
    const question = this.questions[Math.min(this.at, this.sheet.questions.length - 1)];
    const title = heading(`${this.words.guidelines}: ${question.title}`);
    title.tabIndex = -1;
    title.autofocus = true; // reading begins at the top, not at the button below
    this.showDialog([
      title,
      element("div", { class: "guidelines" }, ...guidelineParts(question, this.words, this.data.controls)),
      element("form", { method: "dialog" }, button(this.words.sheet_close, "quiet")),
    ]);
  }

  // An answer that was refused although nobody here waits for it: given before a reload, say.
  lose(answer, status) {
    const why = this.words[status];
    const said = answer.unit ? filled(this.words.lost, { unit: answer.unit, why }) : why;
    this.lost = [...new Set([...(this.lost ?? []), said])];
    this.drawLost();
  }

  drawLost() {
    this.find(".lost span").textContent = (this.lost ?? []).join(" ");
    this.find(".lost").hidden = !this.lost?.length;
  }

  forgetLost() {
    this.lost = [];
    this.drawLost();
  }
}
