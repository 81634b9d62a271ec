// The panel: shows one unit, takes the answer, and goes on only when the server has stored it.

const RESEND_MS = 2000;
const OFFLINE_AFTER_MS = 3900; // by the second repeat
const READ_NOTICE_MS = 700; // the second half of a double Enter must not wave a notice away
const STORED = ["stored", "duplicate"];

class Panel {
  constructor(place) {
    this.place = place;
    this.root = place.querySelector(".panel");
    this.find = (selector) => this.root.querySelector(selector);
    this.task = undefined; // not known yet; null once there is nothing left to do
    this.phase = "choosing"; // -> "sending" -> (next unit) or "notice" -> (next unit)
    this.hearing = new AbortController();
    this.listen();
  }

  listen() {
    const until = { signal: this.hearing.signal };
    // Capturing on the window comes before Streamlit's own keys: r reruns, c clears caches.
    window.addEventListener("keydown", (event) => this.onKey(event), { ...until, capture: true });
    document.addEventListener("visibilitychange", () => this.onVisibility(), until);
    window.addEventListener("pagehide", () => this.saveDraft(), until);
    this.find(".go").addEventListener("click", () => this.go(), until);
    this.find(".help").addEventListener("click", () => this.toggleSheet(), until);
  }

  destroy() {
    this.saveDraft();
    this.hearing.abort();
    clearTimeout(this.timer);
  }

  // ---- what the server says ------------------------------------------------------------------

  update({ data, setTriggerValue }) {
    if (this.data?.shelf !== data.shelf) this.shelf = new Shelf(data.shelf);
    this.data = data;
    this.words = data.words;
    this.trigger = setTriggerValue;
    this.settle(data.receipts);
    this.advance(data.receipts[this.submitId]);
    this.drawFrame();
    this.send();
  }

  // An acknowledged answer needs no keeping; one that could not be stored is sent again.
  settle(receipts) {
    for (const answer of this.shelf.unsent()) {
      const status = receipts[answer.submit_id];
      if (!status || status === "failed") continue;
      this.shelf.drop(`answer:${answer.submit_id}`);
      this.shelf.drop(`draft:${answer.task_id}`);
    }
  }

  advance(status) {
    const offered = this.data.task;
    const same = this.task !== undefined && this.task?.id === offered?.id;
    const refused = ["already_labelled", "unknown_task"].includes(status);
    if (this.phase === "notice") return; // until the reader goes on
    if (same) return refused && this.reopen(this.words[status]);
    if (!this.task || STORED.includes(status)) this.open(offered);
    else if (refused) this.interrupt(this.words[status]);
    else if (this.phase === "choosing") this.interrupt(this.words.elsewhere);
  }

  // ---- one unit ------------------------------------------------------------------------------

  open(task) {
    this.task = task;
    this.phase = "choosing";
    this.submitId = undefined;
    const draft = (task && this.shelf.read(`draft:${task.id}`)) || {};
    this.answer = task?.options.find((option) => option.key === draft.answer)?.key;
    this.clock = new Clock(draft.seconds);
    const onItsWay = this.shelf.unsent().find((answer) => answer.task_id === task?.id);
    if (onItsWay) this.wait(onItsWay);
    this.drawTask();
  }

  choose(key) {
    if (this.phase !== "choosing") return;
    this.answer = key;
    this.saveDraft();
    this.say("");
    this.drawState();
  }

  go() {
    if (this.phase === "notice") this.leaveNotice();
    else if (this.phase === "choosing" && this.task) this.submit();
  }

  submit() {
    if (!this.answer) return this.say(this.words.choose_first);
    const answer = {
      submit_id: newId(),
      task_id: this.task.id,
      option_key: this.answer,
      seconds: this.clock.seconds(),
    };
    this.shelf.write(`answer:${answer.submit_id}`, answer);
    this.wait(answer);
    this.send();
  }

  wait(answer) {
    this.phase = "sending";
    this.submitId = answer.submit_id;
    this.answer = answer.option_key;
    this.drawState();
  }

  // Send whatever waits, again and again: the submit id makes a repeat harmless.
  send() {
    clearTimeout(this.timer);
    const answers = this.shelf.unsent();
    if (answers.length > 0) {
      this.waitingSince ??= performance.now();
      this.trigger("submit", { answers });
      this.timer = setTimeout(() => this.send(), RESEND_MS);
    } else {
      this.waitingSince = undefined;
    }
    this.drawChip(answers);
  }

  reopen(notice) {
    this.phase = "choosing";
    this.submitId = undefined;
    this.say(notice);
    this.drawState();
  }

  // The server offers another unit although this window's answer to this one is not stored.
  interrupt(notice) {
    this.phase = "notice";
    this.noticedAt = performance.now();
    this.shelf.drop(`draft:${this.task.id}`);
    this.say(notice);
    this.drawState();
  }

  leaveNotice() {
    if (performance.now() - this.noticedAt < READ_NOTICE_MS) return;
    this.open(this.data.task);
    this.drawFrame();
  }

  saveDraft() {
    if (!this.task || this.phase !== "choosing") return;
    const draft = { answer: this.answer, seconds: this.clock.seconds() };
    this.shelf.write(`draft:${this.task.id}`, draft);
  }

  onVisibility() {
    this.clock?.tick();
    this.saveDraft();
  }

  // ---- keys ----------------------------------------------------------------------------------

  onKey(event) {
    if (!event.key || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    if (isTyping(target)) return;
    const act = this.actionOf(event, target);
    if (act) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!event.repeat) act();
    } else if (/^[a-z]$/i.test(event.key)) {
      event.stopImmediatePropagation(); // see listen()
    }
  }

  actionOf(event, target) {
    if (event.key === "?") return () => this.toggleSheet();
    if (this.find(".sheet").open) return null;
    if (event.key === "Enter") {
      const ownsEnter = target.closest?.("a, summary, button:not(.go)");
      return ownsEnter || event.shiftKey ? null : () => this.go();
    }
    const option = this.task && pressedOption(event, this.task.options);
    return option ? () => this.choose(option.key) : null;
  }

  toggleSheet() {
    const sheet = this.find(".sheet");
    if (sheet.open) return sheet.close();
    sheet.replaceChildren(...sheetView(this.words, this.task));
    sheet.showModal();
  }

  // ---- drawing -------------------------------------------------------------------------------

  drawFrame() {
    const { words, progress, synthetic, rater } = this.data;
    for (const node of this.root.querySelectorAll("[data-word]")) {
      node.textContent = words[node.dataset.word];
    }
    this.find(".rater").textContent = rater;
    this.find(".synthetic").hidden = !synthetic;
    this.find(".count").textContent = filled(words.progress, progress);
    const bar = this.find(".progress");
    bar.setAttribute("aria-label", filled(words.progress, progress));
    bar.setAttribute("aria-valuemax", progress.total);
    bar.setAttribute("aria-valuenow", progress.done);
    this.find(".filled").style.inlineSize = `${(100 * progress.done) / (progress.total || 1)}%`;
    this.root.hidden = false;
  }

  drawTask() {
    const { task, words } = this;
    const material = this.find(".material");
    material.replaceChildren(...(task ? materialView(task.blocks) : [this.ending()]));
    this.find(".rail").hidden = !task;
    this.find(".question").replaceChildren(
      ...(task ? questionView(task, words, (key) => this.choose(key)) : []),
    );
    if (task) this.keepGuidelinesOpen(this.find(".guidelines"));
    this.say("");
    this.drawState();
    this.toTop(material);
  }

  ending() {
    const { total } = this.data.progress;
    const kind = total > 0 ? "done" : "nothing";
    return messageView(this.words[`${kind}_title`], this.words[`${kind}_text`]);
  }

  // A reader hears where they are, and Tab leads to the first text.
  toTop(material) {
    const { done, total } = this.data.progress;
    const unit = filled(this.words.unit, { unit: done + 1, total });
    material.setAttribute("aria-label", this.task ? unit : this.words.done_title);
    material.scrollTop = 0;
    this.find(".rail").scrollTop = 0;
    material.focus({ preventScroll: true });
  }

  // Open when a rubric is new to this reader, then as they leave it.
  keepGuidelinesOpen(details) {
    const name = `guidelines:${this.task.title}`;
    details.open = this.shelf.read(name) ?? matchMedia("(min-width: 1100px)").matches;
    details.addEventListener("toggle", () => this.shelf.write(name, details.open));
  }

  drawState() {
    for (const radio of this.root.querySelectorAll(".option input")) {
      radio.checked = radio.value === this.answer;
      radio.disabled = this.phase !== "choosing";
    }
    const go = this.find(".go");
    const noticed = this.phase === "notice";
    this.find(".go span").textContent = noticed ? this.words.go_on : this.words.submit;
    go.setAttribute("aria-disabled", String(!noticed && !(this.answer && this.phase === "choosing")));
    this.root.dataset.phase = this.phase;
  }

  drawChip(unsent) {
    const failed = unsent.some((answer) => this.data.receipts[answer.submit_id] === "failed");
    const late = performance.now() - this.waitingSince >= OFFLINE_AFTER_MS;
    const state = unsent.length === 0 ? "saved" : failed ? "failed" : late ? "offline" : "waiting";
    const chip = this.find(".chip");
    if (chip.dataset.state === state) return; // a live region speaks when it changes, only then
    chip.dataset.state = state;
    chip.textContent = this.words[state];
  }

  say(notice) {
    this.find(".notice").textContent = notice;
  }
}

function isTyping(node) {
  return node.isContentEditable || node.matches?.("textarea, select, input:not([type=radio])");
}

// Streamlit calls this on every change of the data, and calls what it gave back not before each
// new call but when the element leaves the page. So one panel stays, and each call updates it.
let panel = null;

export default function (component) {
  const place = component.parentElement;
  if (panel?.place !== place) {
    panel?.destroy();
    panel = new Panel(place);
  }
  panel.update(component);
  return () => {
    if (panel?.place !== place || place.isConnected) return;
    panel.destroy();
    panel = null;
  };
}
