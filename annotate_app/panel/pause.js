// How far one is, in blocks and minutes, and the pause that is offered between two units.

const RESTED_MS = 5 * 60 * 1000; // who did nothing for so long has had a pause
const QUIET_MS = 700; // no key for so long: the next Enter is meant for the offer

function paceText(words, minutes) {
  if (!minutes) return "";
  const hours = minutes >= 60 && minutes % 60 === 0 ? minutes / 60 : 0;
  const left = hours ? words.hours_left : words.minutes_left;
  return filled(left, { count: hours || minutes });
}

class RestingPanel extends ListingPanel {
  watchForRests(until) {
    const atWork = () => this.work && this.noteWork();
    for (const kind of ["keydown", "pointerdown", "wheel", "touchmove"]) {
      window.addEventListener(kind, atWork, { ...until, capture: true, passive: true });
    }
  }

  // Since when somebody has been at it, kept over a reload.
  noteWork(rested = false) {
    const now = Date.now();
    const away = !this.work || now - this.work.last > RESTED_MS || this.work.last > now;
    this.work = { since: rested || away ? now : this.work.since, last: now };
  }

  // The offer takes the place of the next unit, which is shown, and timed, once it is left.
  openNext(sheet) {
    this.work ??= this.drafts.read("work");
    this.noteWork();
    this.drafts.write("work", this.work);
    const minutes = (this.work.last - this.work.since) / 60000;
    const after = this.data.pause_minutes;
    if (sheet && after > 0 && minutes >= after) this.offerPause(minutes);
    else this.open(sheet);
  }

  offerPause(minutes) {
    this.sheet = undefined;
    [this.questions, this.answers, this.pending, this.ahead] = [[], [], [], []];
    this.phase = "resting";
    this.quietSince = performance.now();
    const leave = element("button", { type: "button", class: "go" }, this.words.pause_go_on, " ");
    leave.append(element("kbd", { "aria-hidden": "true" }, "Enter"));
    leave.addEventListener("click", () => this.endPause());
    const about = Math.max(1, minutes < 10 ? Math.round(minutes) : 5 * Math.round(minutes / 5));
    const text = filled(this.words.pause_text, { count: about });
    const material = this.find(".material");
    material.replaceChildren(messageView(this.words.pause_title, text, leave));
    material.setAttribute("aria-label", this.words.pause_title);
    this.find(".rail").hidden = true;
    this.drawState();
    this.toTexts();
  }

  // What was typed ahead for a unit answers nothing, and does not wave the offer away.
  restAction(event, target) {
    if (target.closest?.("button, a") || !KEYS_OF_A_UNIT.test(event.key)) return null;
    return () => {
      const quiet = performance.now() - this.quietSince >= QUIET_MS;
      this.quietSince = performance.now();
      if (event.key === "Enter" && quiet) this.endPause();
    };
  }

  endPause() {
    this.noteWork(true);
    this.drafts.write("work", this.work);
    this.open(this.offered());
    this.drawFrame();
  }
}
