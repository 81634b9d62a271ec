// The panel: shows one unit, takes the answers, and goes on only when the server has stored them.

const OFFLINE_AFTER_MS = 3900; // by the second repeat
const READ_NOTICE_MS = 700; // the second half of a double Enter must not wave a notice away
const RESEND_MS = 2000;
const MOST_AT_ONCE = 50; // answers in a message, of which the server takes so many bytes and no more
const SEEN_MS = 150; // a unit has been seen when it has been painted for so long
const STORED = ["stored", "duplicate"];
const REFUSED = ["already_labelled", "unknown_task", "needs_evidence"];

const style = new CSSStyleSheet();
style.replaceSync(STYLE);

class Panel extends MarkingPanel {
  constructor(place) {
    super();
    this.place = place;
    place.adoptedStyleSheets = [style];
    place.append(document.createRange().createContextualFragment(MARKUP));
    this.root = place.querySelector(".panel");
    this.find = (selector) => this.root.querySelector(selector);
    this.sheet = undefined; // not known yet; null once there is nothing left to do
    // "showing" -> "choosing" -> "sending" or "looking" -> (another unit), or "notice" or "resting"
    // -> (next unit)
    this.phase = "showing";
    this.seen = new Set(); // ids of the sheets that this window has shown for long enough
    this.left = new Set(); // ids of the sheets that were answered here and gone on from
    this.pending = []; // submit ids of this unit's answers that are on their way
    this.statuses = new Map();
    this.most = MOST_AT_ONCE;
    this.hearing = new AbortController();
    this.line = new Line(place, () => this.drawChip());
    this.listen();
  }

  listen() {
    const until = { signal: this.hearing.signal };
    // Capturing on the window comes before Streamlit's own keys: r reruns, c clears caches.
    window.addEventListener("keydown", (event) => this.onKey(event), { ...until, capture: true });
    document.addEventListener("visibilitychange", () => this.onVisibility(), until);
    window.addEventListener("pagehide", () => this.depart(), until);
    this.watchForRests(until);
    const acts = {
      ".go": () => this.go(),
      ".more": () => this.openTools(!this.find(".bar").matches(".opened")),
      ".help": () => this.toggleKeys(),
      ".back": () => this.lookBack(),
      ".skip": () => this.askReason("skip"),
      ".flag": () => this.askReason("flag"),
      ".list": () => this.openEarlier(),
      ".search": () => this.toggleFinding(),
      ".before": () => this.toFound(this.foundAt - 1),
      ".end": () => this.endFinding(),
      ".leave": () => this.look("next"),
      ".way-out": () => this.logOut(),
      ".smaller": () => this.resize(-1),
      ".larger": () => this.resize(1),
      ".fold": () => this.foldQuestion(),
      ".to-earlier": () => this.openEarlier(),
      ".heard": () => this.hear(),
      ".noted": () => this.forgetLost(this.told.map(({ id }) => id)),
      ".again": () => this.tryNow(),
      ".differ": () => this.switchDifferences(),
      ".together": () => this.tie(),
      ".meanings": () => this.showMeanings(),
      ".source": () => this.showSource(),
      ".mark": () => this.toggleMarking(),
      ".sentence": () => this.toggleSentence(),
    };
    for (const [part, act] of Object.entries(acts)) {
      this.find(part).addEventListener("click", act, until);
    }
    this.find("#at-once").addEventListener("change", (event) => this.switchAtOnce(event.target.checked), until);
    this.find("#wanted").addEventListener("input", () => this.search(), until);
    const onward = (event) => {
      event.preventDefault();
      this.toFound(this.foundAt + 1);
    };
    this.find(".finder").addEventListener("submit", onward, until);
    this.find("#rationale").addEventListener("input", () => this.saveDraft(), until);
    this.find(".language").addEventListener("change", (event) => this.chooseLanguage(event), until);
    this.root.addEventListener("click", (event) => this.afterClick(event), until);
    // Once the selection is what the mouse made it.
    const pointed = () => setTimeout(() => this.onPointed());
    this.find(".material").addEventListener("mouseup", pointed, until);
    this.find(".sheet").addEventListener("close", () => this.leaveDialog(), until);
  }

  // The focus stays with the texts: what was clicked must not take the next Enter for itself.
  afterClick(event) {
    const pressed = event.target.closest("button, summary, .option, .track");
    if (!event.target.closest(".more, .smaller, .larger, .language")) this.openTools(false);
    const option = pressed?.matches(".option");
    const byArrows = option && event.detail === 0;
    if (!pressed || pressed.closest(".sheet, .finder, .search") || byArrows) return;
    setTimeout(() => {
      if (this.find(".sheet").open) return;
      this.toTexts();
      if (option) this.sendAtOnce(); // the box was ticked meanwhile
    });
  }

  toTexts() {
    if (this.marking !== null) return this.toHere();
    this.find(".material").focus({ preventScroll: true });
  }

  chooseLanguage(event) {
    this.trigger("language", { code: event.target.value });
    this.toTexts();
  }

  // Whoever has an account ends the login, on the server too; the others' link leads to the entry.
  logOut() {
    for (const name of Object.keys(sessionStorage)) {
      if (/^evenhand-(login|unsent)/.test(name)) sessionStorage.removeItem(name);
    }
    this.trigger("log_out", {});
  }

  // Both responses scroll together, or each by itself.
  tie() {
    this.drafts.write("together", !this.drafts.read("together"));
    this.drawFrame();
  }

  // On a small screen: what each answer means, or only what the chosen one means.
  showMeanings() {
    this.drafts.write("meanings", !this.drafts.read("meanings"));
    this.drawMeanings();
  }

  // The responses of this unit as they were written, or rendered; the reader stays at their place.
  showSource() {
    this.source = !this.source;
    this.opened ||= this.hasFolds();
    const read = this.texts.map(({ text }) => text.scrollTop / text.scrollHeight);
    this.drawTexts();
    this.texts.forEach(({ text }, at) => (text.scrollTop = read[at] * text.scrollHeight));
    this.drawFrame();
  }

  destroy() {
    this.wide?.disconnect();
    this.saveDraft();
    this.hearing.abort();
    this.line.leave();
    for (const timer of [this.timer, this.seenTimer]) clearTimeout(timer);
    this.root.remove();
  }

  // What waits for the reply to another message would be sent only by the next page.
  depart() {
    this.saveDraft();
    if (this.more) answerTo(this.ticket, this.message());
  }

  // ---- what the server says ------------------------------------------------------------------

  // Drawn by Streamlit: at first, and whenever the page has changed around it.
  update({ data: { ticket, note, panel }, setTriggerValue }) {
    [this.ticket, this.note, this.trigger] = [ticket, note, setTriggerValue];
    const drawn = JSON.stringify(panel);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.language = panel.language;
    if (this.data?.drafts === panel.drafts) return this.send();
    this.drafts = new Drafts(panel.drafts);
    this.take(panel);
    if (this.drafts.unsent().length > 0) this.send();
    else this.noteWaiting();
  }

  take(light) {
    const data = restored(light);
    this.data = data;
    for (const sheet of [data.sheet, data.ahead]) if (sheet) sheet.study_state = data.study_state;
    this.words = data.words;
    this.root.hidden = false; // before anything takes the focus
    this.settle(data.receipts);
    if (!this.arrive()) this.advance();
    this.reword();
    this.drawFrame();
    this.drawLost();
    this.takeFlags();
  }

  // An acknowledged answer needs no keeping; one that could not be stored is sent again.
  settle(receipts, drafts = this.drafts) {
    for (const answer of drafts.unsent()) {
      const status = receipts[answer.submit_id];
      if (!status) continue;
      this.statuses.set(answer.submit_id, status);
      if (REFUSED.includes(status)) {
        this.left.delete(answer.sheet_id);
        const { submit_id: id, unit } = answer;
        drafts.write(`refused:${id}`, { id, unit, status: isAnswer(answer) ? status : "flag_lost" });
      }
      drafts.drop(`answer:${answer.submit_id}`);
      if (isAnswer(answer)) drafts.drop(`draft:${answer.sheet_id}`);
    }
  }

  // What is said of refused answers until it is read, over reloads and in every window; one that is
  // waited for here has its notice.
  drawLost() {
    this.told = this.drafts.under("refused:").filter(({ id }) => !this.pending.includes(id));
    const said = this.told.map(({ unit, status }) => {
      const why = this.words[status];
      return unit ? this.ofUnit(why, unit) : why; // of an older page: without a number
    });
    const text = [...new Set(said)].join(" ");
    const place = this.find(".lost span");
    if (place.textContent !== text) place.textContent = text; // an alert speaks when it changes
    this.find(".lost").hidden = said.length === 0;
    this.find(".to-earlier").hidden = !this.told.some(({ status }) => status === "already_labelled");
  }

  ofUnit(why, unit = this.sheet.number) {
    return filled(this.words.lost, { unit, why });
  }

  forgetLost(ids) {
    for (const id of ids) this.drafts.drop(`refused:${id}`);
    this.drawLost();
  }

  // Whether what the server said is of the time before it heard of this window's last answer.
  behind() {
    const { sheet } = this.data;
    return Boolean(sheet) && this.left.has(sheet.id);
  }

  // The unit whose turn it is, as far as is known.
  offered() {
    return this.behind() ? this.data.ahead : this.data.sheet;
  }

  // To the unit that was sent ahead, while the answer is on its way.
  goAhead() {
    const { sheet, ahead } = this.data;
    if (this.away) return; // nobody goes on into the unknown
    if (!ahead || this.left.has(ahead.id) || sheet?.id !== this.sheet.id) return;
    this.left.add(this.sheet.id);
    this.openNext(ahead);
    this.drawFrame();
    this.drawChip();
  }

  advance() {
    const offered = this.offered();
    const same = this.sheet !== undefined && this.sheet?.id === offered?.id;
    const statuses = this.pending.map((id) => this.statuses.get(id));
    const refused = statuses.find((status) => REFUSED.includes(status));
    const stored = statuses.length > 0 && statuses.every((status) => STORED.includes(status));
    if (this.phase === "notice" || this.phase === "resting") return; // until the reader goes on
    if (this.phase === "looking") return; // until what was asked for is here
    if (same) return refused && this.reopen(this.ofUnit(this.words[refused]));
    if (this.behind() && !offered) return; // more will be known once it has heard
    if (!this.sheet || stored) this.openNext(offered);
    else if (refused) this.interrupt(this.ofUnit(this.words[refused]));
    else if (this.answerable() && !this.behind()) {
      if (!offered && !this.sheet.earlier && !this.answers.some(Boolean)) return this.open(null);
      this.interrupt(this.ofUnit(this.sheet.earlier ? this.words.edit_lost : this.words.elsewhere));
    }
  }

  // The unit in view, as the server has sent it now.
  sentAnew() {
    return [this.data.sheet, this.data.ahead].find((sheet) => sheet && sheet.id === this.sheet?.id);
  }

  // The same unit in another language: what was chosen stays chosen.
  reword() {
    const offered = this.sentAnew();
    if (!offered) return;
    if (this.sheet.language === offered.language) return;
    Object.assign(this.sheet, offered); // still the same: what waits for it to be seen goes on
    this.questions = [...offered.questions, ...this.confidenceQuestion()];
    this.drawSheet();
    this.drawState();
  }

  // ---- one unit ------------------------------------------------------------------------------

  open(sheet) {
    this.sheet = sheet;
    [this.source, this.opened] = [false, false];
    this.find(".finder").hidden = true;
    this.pending = [];
    this.at = 0;
    this.questions = sheet ? [...sheet.questions, ...this.confidenceQuestion()] : [];
    const draft = (sheet && !sheet.earlier && this.drafts.read(`draft:${sheet.id}`)) || {};
    this.answers = this.questions.map((question) => this.answerSoFar(question, draft));
    this.marks = this.questions.map((question) => this.marksSoFar(question, draft));
    this.marking = null;
    this.clock = new Clock(draft.seconds);
    this.appear();
    this.find("#rationale").value = draft.rationale ?? sheet?.rationale ?? "";
    const onItsWay = this.drafts.unsent().filter((sent) => isAnswer(sent) && sent.sheet_id === sheet?.id);
    if (onItsWay.length > 0) this.wait(onItsWay);
    this.drawSheet();
    this.drawFlags();
    this.moveTo(this.openQuestion(0), false);
    this.root.scrollTop = 0; // where all scrolls as one, a unit begins with its texts
    toJudged(this.find(".material"));
    const arrived = () => this.sheet === sheet && this.phase === "showing" && toJudged(this.find(".material"));
    if (document.fonts.status !== "loaded") document.fonts.ready.then(arrived); // lines break anew
    this.takeKeys();
  }

  // Only what was seen is answered: the second frame begins when the first one has been painted.
  appear() {
    const { sheet } = this;
    clearTimeout(this.seenTimer);
    this.phase = sheet ? "showing" : "choosing";
    const seen = () => {
      if (this.sheet !== sheet || this.phase !== "showing") return;
      this.seen.add(sheet.id);
      this.phase = "choosing";
      this.drawState();
      this.takeKeys();
    };
    const painted = () => {
      if (sheet && this.sheet === sheet) this.seenTimer = setTimeout(seen, SEEN_MS);
    };
    requestAnimationFrame(() => requestAnimationFrame(painted));
  }

  // Whether its reader has seen this unit before: an earlier one they have even answered.
  known() {
    return this.sheet.earlier || this.seen.has(this.sheet.id);
  }

  answerable() {
    return this.phase === "choosing" || this.phase === "showing";
  }

  // Another unit was asked for; until it is here, keys belong to none.
  awaits() {
    return this.phase === "looking" || this.phase === "sending";
  }

  // Confidence is asked like any other question; an answer is complete without it.
  confidenceQuestion() {
    const levels = this.data.asks.confidence;
    if (levels.length === 0) return [];
    const options = levels.map((name, n) => ({
      key: String(n + 1),
      name,
      description: "",
      examples: [],
    }));
    const given = this.sheet.confidence ? { option: String(this.sheet.confidence) } : null;
    return [{ task: "", title: "", question: this.words.confidence, options, given }];
  }

  // The draft's answer, or the one that is being changed; only what is still among the options.
  answerSoFar(question, draft) {
    const answer = draft.answers?.[question.task] ?? question.given ?? {};
    if (takes(question, answer.option)) return { option: answer.option };
    return answer.skip in this.data.asks.skip ? { skip: answer.skip } : undefined;
  }

  choose(at, option) {
    if (this.phase === "showing") this.refuse(this.words.too_early);
    if (this.phase !== "choosing") return;
    const { several, task } = this.questions[at];
    const label = several ? toggled(this.questions[at], this.answers[at]?.option, option) : option;
    this.answers[at] = label ? { option: label } : undefined;
    if (this.root.querySelector("summary:focus")) this.toTexts(); // it would take the next Enter
    this.say("");
    this.saveDraft();
    // Of several that may apply there may be more to come.
    this.moveTo(several ? at : task ? this.openQuestion(at) : this.at, false);
  }

  // What is typed is an answer as soon as it is a number that may be given.
  typeNumber(at, text) {
    if (this.phase === "showing") this.refuse(this.words.too_early);
    if (this.phase !== "choosing") return;
    const key = numberKey(this.questions[at].number, text);
    this.answers[at] = key ? { option: key } : undefined;
    this.say("");
    this.saveDraft();
    if (this.at === at) this.drawState();
    else this.moveTo(at, false);
  }

  // A digit goes to the field wherever the focus is: the first one begins a new number.
  typeDigit(digit) {
    const field = this.numberField(this.at);
    const goesOn = field.getRootNode().activeElement === field;
    field.value = goesOn ? field.value + digit : digit;
    field.focus();
    this.typeNumber(this.at, field.value);
  }

  numberField(at) {
    return this.root.querySelectorAll(".ask")[at]?.querySelector(".number");
  }

  // Confidence has a key of its own, so that a digit always is an answer to a rubric.
  asksConfidence() {
    return Boolean(this.sheet) && this.data.asks.confidence.length > 0;
  }

  // From one level to the next, and back to none.
  stepConfidence() {
    if (this.phase !== "choosing") return;
    const at = this.sheet.questions.length;
    const level = Number(this.answers[at]?.option ?? 0) + 1;
    const none = level > this.questions[at].options.length;
    this.answers[at] = none ? undefined : { option: String(level) };
    this.saveDraft();
    this.drawState();
  }

  // The next question without an answer; where there is none, the same one.
  openQuestion(from) {
    const asked = this.sheet?.questions ?? [];
    const places = asked.map((_, n) => (from + n) % asked.length);
    return places.find((place) => !this.answers[place]) ?? from;
  }

  moveTo(at, focus = true) {
    const last = (this.sheet?.questions.length ?? 1) - 1;
    const before = this.at;
    this.at = Math.min(Math.max(at, 0), last);
    if (this.at !== before) {
      this.marking = null;
      this.drawTexts(); // this question's marks
    }
    this.drawState();
    this.drawEvidence();
    const ask = this.root.querySelectorAll(".ask")[this.at];
    if (this.questions.length > 1) ask?.scrollIntoView({ block: "nearest" });
    if (focus) ask?.querySelector("input:checked, input")?.focus();
  }

  missing() {
    return this.questions.findIndex((question, n) => question.task && !this.answers[n]);
  }

  go() {
    if (this.phase === "notice") this.leaveNotice();
    else if (this.phase === "choosing" && this.sheet) this.submit();
  }

  // What an answer still lacks: the question's place, why it cannot go, and that in a few words.
  lacking() {
    const { words } = this;
    const [missing, unproven] = [this.missing(), this.unproven()];
    const { number } = this.questions[missing] ?? {};
    if (number) return [missing, filled(words.number_first, number), words.submit_number];
    if (missing >= 0 && this.sheet.questions.length > 1) return [missing, words.choose_all, words.submit_all];
    if (missing >= 0) return [missing, words.choose_first, words.submit_choose];
    return unproven >= 0 ? [unproven, words.needs_evidence, words.submit_mark] : undefined;
  }

  submit() {
    const lacks = this.lacking();
    if (lacks) {
      const [at, why] = lacks;
      if (this.drafts.read("folded")) this.foldQuestion();
      this.moveTo(at, Boolean(this.questions[at].number && !this.answers[at]));
      return this.say(why);
    }
    const asked = this.sheet.questions;
    const confidence = this.answers[asked.length]?.option;
    const sent = asked.map(({ task }, n) => ({
      submit_id: newId(),
      sheet_id: this.sheet.id,
      study_state: this.sheet.study_state, // in which it was shown
      at: Date.now(),
      unit: this.sheet.number, // to name it, should it be refused
      task_id: task,
      option_key: this.answers[n].option ?? "",
      skip_reason: this.answers[n].skip ?? "",
      seconds: this.clock.seconds() / asked.length,
      edit: this.sheet.earlier,
      confidence: confidence ? Number(confidence) : null,
      rationale: this.find("#rationale").value,
      language: this.sheet.language, // as it was shown
      display: this.display(),
      evidence: this.answers[n].skip ? [] : this.marksToSend(n),
    }));
    if (!this.sheet.earlier) this.answeredHere = asked[0].task;
    this.wait(sent);
    this.send();
    this.goAhead();
  }

  wait(sent) {
    this.phase = "sending";
    this.marking = null;
    this.looking = undefined; // the list of earlier answers, if it was asked for, comes too late
    this.pending = sent.map((answer) => answer.submit_id);
    for (const answer of sent) {
      // Here too, for one given before a reload: another window may have it acknowledged and dropped.
      this.drafts.write(`answer:${answer.submit_id}`, answer);
      const at = this.questions.findIndex(({ task }) => task === answer.task_id);
      this.answers[at] = answer.skip_reason
        ? { skip: answer.skip_reason }
        : { option: answer.option_key };
    }
    this.drawState();
  }

  // Send whatever waits, again and again: the submit id makes a repeat harmless. One message after the
  // other, so that each reply knows of all that went before it.
  send() {
    clearTimeout(this.timer);
    this.more = true;
    this.noteWaiting();
    if (!this.speaking) this.speak();
  }

  noteWaiting() {
    if (this.note) this.drafts.leaveNote(this.note);
    if (this.drafts.unsent().length > 0) this.waitingSince ??= performance.now();
    else this.waitingSince = undefined;
    this.drawChip();
  }

  // At once, as the reader asks, and not with the next repeat.
  async tryNow() {
    const again = this.find(".again");
    again.disabled = true; // for as long as it takes
    this.send();
    await this.line.listen();
    again.disabled = false;
  }

  async speak() {
    this.speaking = true;
    this.more = false;
    const { drafts } = this;
    const reply = await answerTo(this.ticket, this.message());
    this.speaking = false;
    this.away = reply?.status === 503;
    this.most = reply?.status === 413 ? Math.ceil(this.most / 2) : MOST_AT_ONCE;
    const { data } = reply ?? {};
    if (data) this.settle(data.receipts, drafts);
    if (this.hearing.signal.aborted) return;
    if (reply?.status === 403) beginAnew();
    if (data?.page) this.trigger("page", {}); // of another step
    else if (data && drafts === this.drafts) this.take(data);
    this.noteWaiting();
    const heard = data && !data.page && !this.looking && this.drafts.unsent().length === 0;
    if (this.more) this.send();
    else if (!heard) this.timer = setTimeout(() => this.send(), RESEND_MS);
  }

  message() {
    const { data, drafts, language, sheet } = this;
    const stays = sheet?.earlier && this.answerable();
    const inView = stays ? { nonce: newId(), wish: "task", task_id: sheet.questions[0].task } : null;
    return {
      answers: drafts.unsent().slice(0, this.most),
      look: this.looking ?? inView,
      has: [...kept.keys()],
      practice: data.practice,
      language,
    };
  }

  reopen(notice) {
    const { pending } = this;
    this.pending = [];
    this.forgetLost(pending);
    this.appear();
    this.refuse(notice);
  }

  // Says why what was pressed is not taken, and forgets what was pressed after it.
  refuse(notice) {
    this.ahead = [];
    this.say(notice);
    this.drawState();
  }

  // The server offers another unit although this window's answer to this one is not stored.
  interrupt(notice) {
    this.phase = "notice";
    this.noticedAt = performance.now();
    this.drafts.drop(`draft:${this.sheet.id}`);
    this.refuse(notice);
  }

  leaveNotice() {
    if (performance.now() - this.noticedAt < READ_NOTICE_MS) return;
    this.forgetLost(this.pending);
    this.open(this.offered());
    this.drawFrame();
  }

  saveDraft() {
    if (!this.sheet || this.sheet.earlier || this.phase !== "choosing") return;
    const answers = Object.fromEntries(
      this.questions.map(({ task }, n) => [task, this.answers[n]]).filter(([, answer]) => answer),
    );
    const rationale = this.find("#rationale").value;
    const marks = Object.fromEntries(this.sheet.questions.map(({ task }, n) => [task, this.marksToSend(n)]));
    this.drafts.write(`draft:${this.sheet.id}`, { answers, marks, rationale, seconds: this.clock.seconds() });
  }

  onVisibility() {
    this.clock?.tick();
    this.saveDraft();
  }
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
