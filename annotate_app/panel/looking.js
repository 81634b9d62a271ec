// Looking back at earlier answers; skipping and flagging, with a reason.

class LookingPanel extends FlaggingPanel {
  look(wish, task = "", listed = {}) {
    if (!this.answerable()) return;
    this.saveDraft();
    const inView = this.sheet?.earlier ? this.sheet.questions[0].task : "";
    const task_id = wish === "list" ? inView : task;
    this.looking = { wish, nonce: newId(), task_id, ...listed };
    this.lookingSince = performance.now();
    if (wish !== "list") {
      this.phase = "looking";
      this.say("");
      this.drawState();
    }
    this.send();
  }

  // What this window answered last, whatever other windows have answered since: keys typed after it
  // are meant for that.
  lookBack() {
    this.look("task", this.sheet?.before || this.answeredHere);
  }

  askReason(kind) {
    if (this.phase === "showing") return this.refuse(this.words.too_early);
    if (this.phase !== "choosing" || !this.sheet) return;
    const done = (reason, note) => (kind === "skip" ? this.skip(reason, note) : this.flag(reason, note));
    this.showDialog(reasonView(kind, this.words, this.data.asks[kind], done));
  }

  // Where there is one question, a reason is all that is needed to go on.
  skip(reason, note) {
    const at = Math.min(this.at, this.sheet.questions.length - 1);
    this.answers[at] = { skip: reason };
    const why = this.find("#rationale");
    if (note) why.value = [why.value, note].filter(Boolean).join("\n");
    this.saveDraft();
    if (this.sheet.questions.length === 1) this.submit();
    else this.moveTo(this.openQuestion(at), false);
  }

  // What this window asked to look at is here. Keys that waited for an earlier unit are nobody's
  // where there is none.
  arrive() {
    if (!this.looking || this.data.looked !== this.looking.nonce) return false;
    const { wish } = this.looking;
    const { sheet } = this.data;
    this.looking = undefined;
    if (wish === "list") {
      if (!this.answerable()) return false; // submitted meanwhile
      this.fillEarlier(this.data.earlier);
      return true;
    }
    const answeredElsewhere = sheet?.earlier && !this.sheet?.earlier;
    if (sheet?.id === this.sheet?.id && !answeredElsewhere) {
      this.reopen(this.words.no_earlier);
      return true;
    }
    const none = wish === "task" && !sheet?.earlier;
    if (none) this.ahead = [];
    this.open(sheet);
    if (none) this.say(this.words.no_earlier);
    return true;
  }
}
