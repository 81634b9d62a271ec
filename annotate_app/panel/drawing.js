// How the panel looks at any moment: drawn from its data, its unit and its phase.

const MOST_APART = 3; // texts below each other that each scroll by themselves; more are one page

class DrawnPanel {
  drawFrame() {
    const { words, progress, practice, synthetic, rater, way_out } = this.data;
    for (const node of this.root.querySelectorAll("[data-word]")) {
      node.textContent = words[node.dataset.word] ?? "";
    }
    this.drawLanguages();
    this.find(".rater").textContent = this.find(".rater").title = rater; // a long one is cut off
    this.find(".who a").hidden = way_out !== "change_rater";
    this.find(".way-out").hidden = way_out !== "log_out";
    this.find(".practice").hidden = !practice;
    this.find(".synthetic").hidden = !synthetic;
    this.find(".editing").hidden = !this.sheet?.earlier;
    this.find(".skip span").textContent = this.sheet?.earlier ? words.skip_instead : words.skip;
    this.find(".editing span").textContent = this.sheet ? filled(words.editing, { unit: this.sheet.number }) : "";
    this.find(".why").hidden = !this.data.asks.rationale;
    this.find(".together").hidden = !this.hasSides();
    this.find(".search").hidden = !this.sheet;
    this.drawMeanings();
    this.drawWays();
    this.drawTold();
    this.find(".together").setAttribute("aria-pressed", String(this.tied()));
    this.drawSource();
    this.drawCount();
    if (this.data.minutes || !this.data.sheet) this.find(".pace").textContent = paceText(words, this.data.minutes);
  }

  // The button that shows texts as they were written, or opens JSON: only where it does something.
  drawSource() {
    const [button, isRendered, { words }] = [this.find(".source"), this.isRendered(), this.data];
    const isFolded = this.hasFolds() && (this.source || this.opened || this.isAnyFolded());
    button.hidden = !isRendered && !isFolded;
    button.querySelector("span").textContent = isRendered ? words.source : words.open_all;
    button.setAttribute("aria-pressed", String(this.source));
  }

  drawLanguages() {
    const { language, languages, words } = this.data;
    const select = this.find(".language");
    select.hidden = Object.keys(languages).length < 2;
    select.setAttribute("aria-label", words.language);
    const options = Object.entries(languages).map(([code, name]) => {
      const option = new Option(name, code, false, code === language);
      option.lang = code;
      return option;
    });
    select.replaceChildren(...options);
  }

  drawSheet() {
    const { sheet, words, questions } = this;
    this.say("");
    const material = this.find(".material");
    this.texts = [];
    const fill = (text, block) => this.texts.push({ text, block });
    const below = (at) => (sheet?.blocks ?? []).filter(({ side }) => side === at).length;
    material.classList.toggle("page", ["", "a", "b"].some((side) => below(side) > MOST_APART));
    // Halves are as wide as they can be in all of a study whose texts may hold tables or code.
    material.classList.toggle("roomy", Boolean(sheet?.blocks.some((b) => b.tree || b.plain || b.code || b.image)));
    material.replaceChildren(...(sheet ? materialView(sheet.blocks, words, fill) : [this.ending()]));
    this.drawTexts();
    this.find(".rail").hidden = !sheet;
    tieScrolling([...material.querySelectorAll(".side .response .text")], () => this.tied());
    const several = questions.length > 1;
    this.find(".asks").replaceChildren(
      ...questions.map((question, at) =>
        questionView(
          question,
          at,
          several,
          question.number ? words.number_how : words.choose_several,
          (key) => this.choose(at, key),
          (text) => this.typeNumber(at, text),
        ),
      ),
    );
    questions.forEach((question, at) => {
      if (question.number) this.numberField(at).value = this.answers[at]?.option ?? "";
    });
    const guides = (sheet?.questions ?? []).filter(isGuided).map((question) => {
      const guide = guidelinesView(question, words, sheet.questions.length > 1, this.data.controls);
      this.keepGuidelinesOpen(guide, question, sheet.questions.length > 1);
      return guide;
    });
    this.find(".guides").replaceChildren(...guides);
    this.drawEvidence();
    this.drawKeys();
    this.drawJumps(material);
    this.toTop(material);
  }

  // Where the sides stand below each other: from one response to the other, and where they differ.
  drawJumps(material) {
    const responses = [...material.querySelectorAll(".side .response")];
    if (responses.length < 2) return;
    const jumps = responses.map((response) => {
      const label = response.querySelector("h2").firstChild.textContent;
      const named = { "aria-label": filled(this.words.jump, { label }) };
      const jump = element("button", { type: "button", class: "quiet", dir: "auto", ...named }, label);
      jump.addEventListener("click", () => response.scrollIntoView({ behavior: "instant" }));
      return jump;
    });
    const differ = element("button", { type: "button", class: "quiet differ" }, this.words.differ);
    differ.addEventListener("click", () => this.switchDifferences());
    material.prepend(element("nav", { class: "jumps", "aria-label": this.words.jumps }, ...jumps, differ));
  }

  drawMeanings() {
    const shown = this.drafts.read("meanings") === true;
    this.root.dataset.meanings = shown ? "all" : "chosen";
    const some = this.questions?.some(({ options }) => options.some(({ description }) => description));
    this.find(".meanings").hidden = !some;
    this.find(".meanings").setAttribute("aria-pressed", String(shown));
  }

  // What is on no key shows none, and names none to a screen reader.
  drawKeys() {
    const on = this.singleKeys();
    this.root.dataset.singleKeys = on ? "on" : "off";
    for (const node of this.root.querySelectorAll("[aria-keyshortcuts], [data-key]")) {
      node.dataset.key ??= node.getAttribute("aria-keyshortcuts");
      if (on || !node.dataset.key.split(" ").some(isSingle)) node.setAttribute("aria-keyshortcuts", node.dataset.key);
      else node.removeAttribute("aria-keyshortcuts");
    }
  }

  // Rendered, or as they were written.
  drawTexts() {
    const { controls } = this.data;
    formulasLeft = MOST_FORMULAS;
    for (const { text, block } of this.texts) {
      const marking = this.marking !== null && block.kind === "response"; // only responses are marked
      const rendered = Boolean(block.tree) && !this.source && !marking;
      text.classList.toggle("rendered", rendered);
      text.replaceChildren();
      const [marks = [], here] = this.marksIn(block);
      const unmarked = marks.length === 0 && !marking;
      const inTurns = Boolean(block.turns) && unmarked;
      let nodes;
      if (block.nodes && unmarked) nodes = renderedNodes(block.nodes, this.words, controls);
      else if (block.image) nodes = imageNodes(block, this.words);
      else if (rendered) nodes = renderedNodes(block.tree, this.words, controls);
      else if (inTurns) nodes = turnNodes(block, this.words, controls);
      else nodes = sourceNodes(block, this.words, controls, marks, here);
      for (const node of nodes) text.append(node); // one by one: there may be 100,000
      text.dir = block.code ? "ltr" : directionOf(block.text);
    }
    for (const { text, block } of this.texts) if (folds(block)) this.unfold(text);
    this.drawSource();
    this.wide?.disconnect();
    this.wide = reachable(this.find(".material").querySelectorAll(".wide"));
    this.search();
    this.drawDifferences();
  }

  // The marks in a text, and the sentence at hand where it lies in this one.
  marksIn(block) {
    if (block.kind !== "response") return [];
    const here = this.marking === null ? undefined : this.sentences[this.marking];
    const marks = this.marks[this.at] ?? [];
    return [
      marks.filter((mark) => mark.text === block.name),
      here?.text === block.name ? here : undefined,
    ];
  }

  // JSON as far as there is room, or all of it.
  unfold(text) {
    if (!this.source) return openToFill(text);
    for (const fold of text.querySelectorAll("details")) fold.open = true;
  }

  isRendered() {
    return Boolean(this.sheet?.blocks.some((block) => block.tree));
  }

  hasFolds() {
    return Boolean(this.sheet?.blocks.some(folds));
  }

  isAnyFolded() {
    return Boolean(this.find(".material .code details:not([open])"));
  }

  hasSteps() {
    return Boolean(this.sheet?.blocks.some(steps));
  }

  // How the texts were shown when they were answered.
  display() {
    if (this.isRendered()) return "markdown";
    const isOpen = this.hasFolds() && !this.isAnyFolded();
    return isOpen || this.opened ? "opened" : "text";
  }

  hasSides() {
    return Boolean(this.sheet?.blocks.some((block) => block.side));
  }

  tied() {
    return this.hasSides() && this.drafts.read("together") === true;
  }

  ending() {
    const { done, total } = this.data.progress;
    const kind = total > 0 ? "done" : "nothing";
    const { finish } = this.data;
    const code = finish && new URL(finish).searchParams.get("cc"); // the link may not open
    const leave = finish
      ? [
          element("a", { class: "finish", href: finish }, this.words.finish),
          ...codeView(code, this.words),
        ]
      : [];
    const text = filled(this.words[`${kind}_text`], { when: this.resumes() });
    const message = messageView(this.words[`${kind}_title`], text, ...leave);
    message.classList.toggle("complete", total > 0 && done >= total);
    return message;
  }

  // When the work goes on, by the reader's own clock.
  resumes() {
    const at = this.data.resumes;
    return at && new Date(at).toLocaleString(this.data.language, { weekday: "long", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  }

  // A reader hears where they are, and Tab leads to the first text.
  toTop(material) {
    const { total } = this.data.progress;
    const unit = this.sheet && filled(this.words.unit, { unit: this.sheet.number, total });
    const title = this.sheet?.earlier ? filled(this.words.editing, { unit: this.sheet.number }) : unit;
    material.setAttribute("aria-label", this.sheet ? title : this.words.done_title);
    material.scrollTop = 0;
    this.find(".rail").scrollTop = 0;
    this.find(".question").scrollTop = 0;
    this.toTexts();
  }

  // Open when a rubric is new to this reader and there is room, and when its words are not those of the
  // unit before; then as they leave it.
  keepGuidelinesOpen(details, { title, wording }, several) {
    const [name, last] = [`guidelines:${title}`, `wording:${title}`];
    const room = !several && matchMedia("(min-width: 1100px)").matches;
    const before = this.drafts.read(last);
    if (before && before !== wording) this.drafts.write(name, true);
    if (before !== wording) this.drafts.write(last, wording);
    details.open = this.drafts.read(name) ?? room;
    details.addEventListener("toggle", () => this.drafts.write(name, details.open));
  }

  drawState() {
    const choosing = this.phase === "choosing";
    const answerable = this.answerable();
    this.find("#rationale").readOnly = !answerable;
    this.root.querySelectorAll(".ask").forEach((ask, at) => {
      const answer = this.answers[at];
      ask.classList.toggle("current", at === this.at);
      const number = ask.querySelector(".number");
      if (number) {
        number.readOnly = !answerable;
        if (answer?.skip) number.value = "";
        number.setAttribute("aria-invalid", String(number.value.trim() !== "" && !answer));
        ask.querySelector(".track").disabled = !answerable;
        showOnTrack(ask, answer?.option);
      }
      const keys = this.questions[at]?.several ? chosenKeys(answer?.option) : [answer?.option];
      for (const box of ask.querySelectorAll(".option input")) {
        box.checked = keys.includes(box.value);
        box.disabled = !answerable;
      }
      const skipped = ask.querySelector(".skipped");
      skipped.hidden = !answer?.skip;
      skipped.textContent = filled(this.words.skipped, { reason: this.data.asks.skip[answer?.skip] });
    });
    this.drawSubmit(answerable, choosing);
    this.root.dataset.phase = this.phase;
  }

  // What the button does, what is missing, or that an answer waits for the connection.
  drawSubmit(answerable = this.answerable(), choosing = this.phase === "choosing") {
    const noticed = this.phase === "notice";
    const go = this.find(".foot .go");
    const [, , lacks] = (answerable && this.lacking()) || [];
    const does = this.sheet?.earlier ? this.words.change : this.words.submit;
    const waits = !choosing && this.find(".chip").dataset.state === "offline";
    const held = waits ? this.words.held : undefined;
    go.querySelector("span").textContent = noticed ? this.words.go_on : (held ?? lacks ?? does);
    go.setAttribute("aria-disabled", String(!noticed && (!choosing || Boolean(lacks))));
    for (const tool of this.root.querySelectorAll(".foot .tools .quiet")) tool.setAttribute("aria-disabled", String(waits));
  }

  // How many are answered, in words and in the bar; answers that wait for the connection count, too.
  drawCount() {
    const waiting = this.line.down ? this.drafts.unsent().filter(isAnswer).filter(({ edit }) => !edit).length : 0;
    const { total } = this.data.progress;
    const done = Math.min(this.data.progress.done + waiting, total);
    const text = filled(this.words.progress, { done, total });
    const [count, bar] = [this.find(".count"), this.find(".progress")];
    if (count.textContent === text) return;
    count.textContent = text;
    bar.setAttribute("aria-label", text);
    bar.setAttribute("aria-valuemax", total);
    bar.setAttribute("aria-valuenow", done);
    this.find(".filled").style.inlineSize = `${(100 * done) / (total || 1)}%`;
  }

  // What has become of the answers, and whether the server is there: at any time, not only when
  // something is sent.
  drawChip() {
    if (!this.data) return;
    const chip = this.find(".chip");
    this.drawCount();
    const count = this.drafts.unsent().length;
    const state = count > 0 ? this.stateOfSending() : this.stateOfLine();
    const said = filled(this.words[state], { count });
    if (chip.textContent === said) return; // a live region speaks when it changes, only then
    chip.dataset.state = state;
    chip.textContent = said;
    this.drawSubmit();
  }

  stateOfSending() {
    if (this.away) return "failed";
    const late = performance.now() - this.waitingSince >= OFFLINE_AFTER_MS;
    return late || this.line.down ? "offline" : "waiting";
  }

  stateOfLine() {
    const late = this.looking && performance.now() - this.lookingSince >= OFFLINE_AFTER_MS;
    return late || this.line.down || this.away ? "away" : "saved";
  }

  say(notice) {
    this.find(".notice").textContent = notice;
  }
}

// JSON that folds; turns and passages, from one to the next of which a key goes.
function folds(block) {
  return block.code && block.nodes?.[0]?.[0] === "details";
}

function steps(block) {
  return Boolean(block.turns) || hasPassages(block);
}

function hasPassages({ nodes }) {
  return nodes?.[0]?.[0] === "section";
}
