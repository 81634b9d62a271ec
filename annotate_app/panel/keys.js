// Which key does what. Keys are silent while someone types in a field.

class KeyedPanel extends DrawnPanel {
  onKey(event) {
    if (!event.key || event.isComposing || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    const act = this.inField(event, target) ?? (isTyping(target) ? null : this.actionOf(event, target));
    if (act) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!event.repeat) act();
    } else if (!isTyping(target) && !event.ctrlKey && /^[a-z]$/i.test(event.key)) {
      event.stopImmediatePropagation(); // see listen()
    }
  }

  inField(event, target) {
    if (target.id !== "rationale") return undefined;
    if (event.key === "Enter" && event.ctrlKey) return () => this.go();
    return event.key === "Escape" ? () => this.find(".material").focus() : undefined;
  }

  actionOf(event, target) {
    if (event.ctrlKey) return null;
    if (this.find(".sheet").open) return this.dialogAction(event);
    switch (event.key) {
      case "?":
        return () => this.toggleKeys();
      case "Enter": {
        const ownsEnter = target.closest?.("a, summary, button:not(.go)");
        return ownsEnter || event.shiftKey ? null : () => this.go();
      }
      case "Backspace":
        return () => this.lookBack();
      case "Escape":
        return this.sheet?.earlier ? () => this.look("next") : null;
      case "ArrowLeft":
      case "ArrowRight":
        if (this.questions.length < 2) return null;
        return () => this.moveTo(this.at + (event.key === "ArrowLeft" ? -1 : 1));
      case "-":
        return () => this.askReason("skip");
      case "+":
        return () => this.askReason("flag");
      case ".":
        return this.data.asks.rationale && this.sheet ? () => this.find("#rationale").focus() : null;
    }
    return this.choiceAction(event);
  }

  // The present question's options; a letter that is not among them may be another question's.
  choiceAction(event) {
    const places = this.questions.map((_, n) => n);
    const letters = /^[a-z]$/i.test(event.key) ? places : [];
    for (const at of [this.at, ...letters]) {
      const option = this.questions[at] && pressedOption(event, this.questions[at].options);
      if (option) return () => this.choose(at, option.key);
    }
    return null;
  }

  dialogAction(event) {
    if (event.key === "?") return () => this.toggleKeys();
    const radio = this.root.querySelectorAll(".sheet .reason input")[Number(event.key) - 1];
    if (!radio) return null;
    return () => {
      radio.checked = true;
      radio.focus();
    };
  }

  toggleKeys() {
    const sheet = this.find(".sheet");
    if (sheet.open) return sheet.close();
    this.showDialog(keysView(this.words, this.questions, this.data.asks.rationale));
  }

  showDialog(parts) {
    const sheet = this.find(".sheet");
    if (sheet.open) sheet.close();
    sheet.replaceChildren(...parts);
    sheet.showModal();
  }
}

function isTyping(node) {
  return node.isContentEditable || node.matches?.("textarea, select, input:not([type=radio])");
}
