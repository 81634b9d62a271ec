// Which key does what. Keys are silent while someone types in a field.

const KEPT_MS = 4000; // a key that has waited longer for its unit is not taken
const KEYS_OF_A_UNIT = /^(.|Enter|Backspace|Escape|ArrowLeft|ArrowRight)$/;
const TAKEN_AT_ONCE = /^(Backspace|Escape|ArrowLeft|ArrowRight|[./*!;:$#<>])$/; // they answer nothing
const OPENS_A_FIELD = /^[-+./,!]$/; // what follows is meant for the field, or for marking

class KeyedPanel extends FindingPanel {
  ahead = []; // keys that wait for the unit that was asked for

  onKey(event) {
    if (!event.key || event.isComposing || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    const act = this.inField(event, target) ?? (isTyping(target) ? null : this.actionOf(event, target));
    if (act) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!event.repeat || event.key in SCROLLS) act();
    } else if (!isTyping(target) && !event.ctrlKey && /^[a-z]$/i.test(event.key)) {
      event.stopImmediatePropagation(); // see listen()
    }
  }

  inField(event, target) {
    if (target.id === "wanted") return this.inSearch(event);
    const inNumber = target.matches?.(".number");
    if (target.id !== "rationale" && !inNumber) return undefined;
    if (event.key === "Enter" && event.ctrlKey !== inNumber) return () => this.go();
    return event.key === "Escape" ? () => this.toTexts() : undefined;
  }

  inSearch(event) {
    if (event.key === "Enter") return () => this.toFound(this.foundAt + (event.shiftKey ? -1 : 1));
    return event.key === "Escape" ? () => this.endFinding() : undefined;
  }

  // Letters, digits and signs as keys can be switched off (WCAG 2.1.4): dictated words and unsteady
  // hands press them unawares.
  singleKeys() {
    return this.drafts.read("single-keys") ?? true;
  }

  switchSingleKeys(on) {
    this.drafts.write("single-keys", on);
    this.ahead = [];
    this.drawKeys();
  }

  actionOf(event, target) {
    if (event.ctrlKey || (isSingle(event.key) && !this.singleKeys())) return null;
    if (this.find(".sheet").open) return this.dialogAction(event);
    if (event.key === "?") return () => this.toggleKeys();
    if (this.phase === "resting") return this.restAction(event, target);
    const marks = this.markingAction(event, target);
    if (marks) return marks;
    const pages = pagesScrolled(event, target);
    if (pages !== undefined) return () => scrollTexts(this.find(".material"), pages);
    if (target.closest?.(".wide") && /^Arrow/.test(event.key)) return null; // scrolls it
    if (event.key === "=" && this.hasSides()) return () => this.tie();
    if (event.key === "%" && this.bothResponses().length > 0) return () => this.switchDifferences();
    const inText = target.closest?.(".text") && !this.sheet?.earlier;
    if (event.key === "Escape" && inText && !this.awaits()) return () => this.toTexts();
    const ownsEnter = event.shiftKey || target.closest?.("a, summary, button:not(.go)");
    if (event.key === "Enter" && ownsEnter) return null;
    const belongs = this.awaits() ? KEYS_OF_A_UNIT.test(event.key) : this.unitAction(event);
    return belongs ? () => this.press(event) : null;
  }

  // While a unit that was asked for is on its way, keys belong to no other unit: they wait for it.
  press(event) {
    this.ahead.push(event);
    if (this.awaits() && event.key !== "Enter") this.say(this.words.keys_wait);
    this.takeKeys();
  }

  takeKeys() {
    if (this.awaits()) return;
    const late = this.ahead.some((event) => performance.now() - event.timeStamp > KEPT_MS);
    if (late) return this.refuse(this.words.too_late);
    while (this.ahead.length > 0 && !this.awaits()) {
      const event = this.ahead[0];
      if (this.phase === "showing" && !TAKEN_AT_ONCE.test(event.key)) {
        if (this.known()) return; // until it has been seen once more
        if (event.key !== "Enter") return this.refuse(this.words.too_early);
      }
      this.ahead.shift();
      if (OPENS_A_FIELD.test(event.key)) this.ahead = [];
      if (this.phase !== "showing" || event.key !== "Enter") this.unitAction(event)?.();
    }
  }

  // What a key does to the unit in view.
  unitAction(event) {
    switch (event.key) {
      case "Enter":
        return () => this.go();
      case "Backspace":
        return () => this.lookBack();
      case "Escape":
        return this.sheet?.earlier ? () => this.look("next") : null;
      case "ArrowLeft":
      case "ArrowRight":
        if (!(this.sheet?.questions.length > 1)) return null;
        return () => this.moveTo(this.at + (event.key === "ArrowLeft" ? -1 : 1));
      case "!":
        return () => this.openEarlier();
      case "-":
        return () => this.askReason("skip");
      case "+":
        return () => this.askReason("flag");
      case "/":
        return this.sheet ? () => this.toggleFinding() : null;
      case ";":
      case ":":
        return this.hasSteps() ? () => toTurn(this.find(".material"), event.key === ";" ? 1 : -1) : null;
      case "$":
        return this.find(".judged") ? () => toJudged(this.find(".material")) : null;
      case "#":
        return this.sheet?.questions.some(isGuided) ? () => this.toggleGuidelines() : null;
      case "<":
      case ">":
        return () => this.resize(event.key === ">" ? 1 : -1);
      case "*":
        return this.isRendered() || this.hasFolds() ? () => this.showSource() : null;
      case ",":
        return this.asked() ? () => this.toggleMarking() : null;
      case ".":
        return this.data.asks.rationale && this.sheet ? () => this.find("#rationale").focus() : null;
    }
    const digit = typedDigit(event);
    if (digit && this.sheet && this.questions[this.at].number) return () => this.typeDigit(digit);
    const zero = event.key === "0" || (event.code === "Digit0" && !event.shiftKey);
    if (zero) return this.asksConfidence() ? () => this.stepConfidence() : null;
    return this.choiceAction(event);
  }

  // The present question's options; a letter that is not among them may be another question's.
  choiceAction(event) {
    const places = (this.sheet?.questions ?? []).map((_, n) => n);
    const letters = /^[a-z]$/i.test(event.key) ? places : [];
    for (const at of [this.at, ...letters]) {
      const option = this.sheet && pressedOption(event, this.questions[at].options);
      if (option) {
        return () => {
          this.choose(at, option.key);
          this.sendAtOnce();
        };
      }
    }
    return null;
  }

  dialogAction(event) {
    if (event.key === "?") return () => this.toggleKeys();
    if (event.key === "#" && this.find(".sheet .guidelines")) return () => this.toggleGuidelines();
    const radio = this.root.querySelectorAll(".sheet .reason input")[Number(event.key) - 1];
    if (!radio) return null;
    return () => {
      radio.click();
      radio.focus();
    };
  }

  toggleKeys() {
    const sheet = this.find(".sheet");
    if (sheet.open) return sheet.close();
    const asks = {
      why: this.data.asks.rationale,
      confidence: this.asksConfidence(),
      source: this.isRendered(),
      turns: this.hasSteps(),
      judged: Boolean(this.find(".judged")),
      folds: this.hasFolds(),
      evidence: this.sheet?.questions.some((question) => question.evidence),
    };
    const show = () =>
      this.showDialog(
        keysView(this.words, this.sheet?.questions ?? [], asks, this.hasSides(), this.singleKeys(), (on) => {
          this.switchSingleKeys(on);
          show();
          this.find("#single-keys").focus();
        }),
      );
    show();
  }

  // The guidelines of the question at hand: unfolded where they stand if all of them have room there,
  // and folded again, else over the texts.
  toggleGuidelines() {
    if (this.find(".sheet").open) return this.find(".sheet").close();
    const asked = this.questions[Math.min(this.at, this.sheet.questions.length - 1)];
    const question = isGuided(asked) ? asked : this.sheet.questions.find(isGuided);
    const guide = this.find(".guides").children[this.sheet.questions.filter(isGuided).indexOf(question)];
    const summary = guide.firstChild;
    if (summary.matches(":focus") && guide.open) {
      guide.open = false;
      return this.toTexts();
    }
    const before = guide.open;
    const isBeside = matchMedia("(min-width: 1100px)").matches; // else the panel has no room
    guide.open = before || isBeside;
    if (isBeside && guide.offsetHeight < this.find(".question").clientHeight) {
      guide.scrollIntoView({ block: "nearest" });
      return summary.focus({ focusVisible: true });
    }
    guide.open = before;
    const title = heading([this.words.guidelines, question.title].filter(Boolean).join(": "));
    title.tabIndex = -1;
    title.autofocus = true; // reading begins at the top, not at the button below
    this.showDialog([
      title,
      element("div", { class: "guidelines" }, ...guidelineParts(question, this.words, this.data.controls)),
      element("form", { method: "dialog" }, button(this.words.sheet_close, "quiet")),
    ]);
  }

  showDialog(parts) {
    const sheet = this.find(".sheet");
    if (sheet.open) sheet.close();
    sheet.replaceChildren(...parts);
    sheet.showModal();
  }
}

function isSingle(key) {
  return key.length === 1 && key !== " ";
}

function isTyping(node) {
  return node.isContentEditable || node.matches?.("textarea, select, input:not([type=radio], [type=checkbox], [type=range])");
}
