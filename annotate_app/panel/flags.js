// The person's own flags on the unit in view: on their way, stored.

function isAnswer(sent) {
  return "option_key" in sent;
}

class FlaggingPanel extends KeyedPanel {
  flag(reason, text) {
    const { task } = this.questions[Math.min(this.at, this.sheet.questions.length - 1)];
    this.sendWord({ task_id: task, flag: reason, text });
    this.find(".flags").scrollIntoView({ block: "nearest" });
  }

  // Sent and kept as answers are, until it is acknowledged.
  sendWord(said) {
    const id = newId();
    this.drafts.write(`answer:${id}`, { submit_id: id, unit: this.sheet.number, ...said });
    this.drawFlags();
    this.send();
  }

  // What the server has of them, where it speaks of the unit in view.
  takeFlags() {
    const sheet = this.sentAnew();
    if (sheet) this.sheet.flags = sheet.flags;
    this.drawFlags();
  }

  drawFlags() {
    const unsent = this.drafts.unsent();
    const tasks = new Set(this.sheet?.questions.map((question) => question.task));
    const stored = (this.sheet?.flags ?? []).map((flag) => ({ ...flag, state: "flag_stored" }));
    const coming = unsent
      .filter((sent) => sent.flag && tasks.has(sent.task_id))
      .map(({ flag, text }) => ({ reason: this.data.asks.flag[flag], text, state: "flag_coming" }));
    const flags = [...stored, ...coming];
    const list = this.find(".flags");
    const drawn = JSON.stringify(flags);
    if (list.dataset.drawn === drawn) return; // a live region speaks when it changes, only then
    list.dataset.drawn = drawn;
    list.hidden = flags.length === 0;
    list.replaceChildren(...flags.map((flag) => this.flagView(flag)));
  }

  // What the lead has answered since this browser was last told.
  drawTold() {
    const heard = this.drafts.read("heard") ?? 0;
    const said = this.data.flag_answers.slice(heard).map(({ reason, text, answer }) =>
      filled(this.words.flag_answered, { reason: text ? `${reason}: ${text}` : reason, answer }),
    );
    this.find(".told span").textContent = said.join(" ");
    this.find(".told").hidden = said.length === 0;
  }

  hear() {
    this.drafts.write("heard", this.data.flag_answers.length);
    this.drawTold();
  }

  flagView(flag) {
    const { words } = this;
    const parts = [element("strong", {}, filled(words.flag_raised, flag))];
    if (flag.text) parts.push(element("q", { dir: "auto" }, flag.text));
    parts.push(element("span", { class: "state", "data-state": flag.state }, words[flag.state]));
    return element("li", {}, ...parts);
  }
}
