// A decision on one unit: digits choose, q w e r give a usual reason, Enter or Ctrl+Enter decides,
// s passes over. All texts go in as text.

const REASON_KEYS = "qwer";

class Decider {
  constructor(place) {
    this.place = place;
    this.find = (selector) => place.querySelector(selector);
    this.hearing = new AbortController();
    const until = { signal: this.hearing.signal };
    // Capturing on the window comes before Streamlit's own keys: r reruns, c clears caches.
    window.addEventListener("keydown", (event) => this.onKey(event), { ...until, capture: true });
    this.form = this.find("form");
    this.form.addEventListener("submit", (event) => this.onSubmit(event), until);
    this.find(".pass").addEventListener("click", () => this.pass(), until);
    this.find(".fold").addEventListener("click", () => this.fold(), until);
    this.find(".meanings").addEventListener("click", () => this.showMeanings(), until);
  }

  destroy() {
    this.hearing.abort();
  }

  update({ data, setTriggerValue }) {
    this.trigger = setTriggerValue;
    this.form.ariaBusy = "false"; // the server knows of what was sent, or it never arrived
    if (this.token !== data.token) {
      this.token = data.token;
      this.options = data.options;
      const number = data.number ? [numberView(data.number)] : [];
      const options = data.options.map((option) => optionView(option, data.several));
      this.find(".options").replaceChildren(...options, ...number);
      this.reasons = data.reasons;
      const reasons = data.reasons.map((text, at) => this.reasonView(text, at));
      this.find(".reasons").replaceChildren(...reasons);
      this.find("#reason").value = "";
      this.find("#reason").blur();
      this.complain("");
    }
    if (data.complaint) this.complain(data.complaint);
  }

  onKey(event) {
    if (event.isComposing || event.altKey) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key !== "Enter") return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!event.repeat) this.decide();
      return;
    }
    const target = event.composedPath()[0];
    const fields = { reason: () => this.inReason(event), number: () => this.inNumber(event) };
    const act = fields[target.id] ? fields[target.id]() : this.actionOf(event, target);
    if (!act) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat) act();
  }

  inReason(event) {
    if (event.key === "Enter" && !event.shiftKey) return () => this.decide();
    return event.key === "Escape" ? () => this.find("#reason").blur() : null;
  }

  inNumber(event) {
    if (event.key === "Enter") return () => this.decide();
    return event.key === "Escape" ? () => this.find("#number").blur() : null;
  }

  actionOf(event, target) {
    if (isField(target)) return null;
    if (event.key === "Enter") {
      const owns = target.closest?.("a, button, summary, [role=option], [role=button]");
      return owns || event.shiftKey ? null : () => this.decide();
    }
    if (event.key === "s") return () => this.pass();
    const usual = REASON_KEYS.indexOf(event.key);
    if (usual >= 0 && this.reasons[usual]) return () => this.giveReason(this.reasons[usual]);
    const number = this.find("#number");
    if (number && /^\d$/.test(event.key)) {
      return () => {
        number.value = event.key;
        number.focus();
        this.complain("");
      };
    }
    const at = this.options.findIndex((option) => option.digit && option.digit === event.key);
    return at < 0 ? null : () => this.choose(at);
  }

  // The part of the page that the decision is in, where lead.css gives the texts the room.
  panel() {
    return (this.place.getRootNode().host ?? this.place).closest(".st-key-decision");
  }

  fold() {
    this.find(".fold").ariaExpanded = String(!this.panel().toggleAttribute("data-folded"));
  }

  // On a phone, where else only the chosen option's meaning is in view.
  showMeanings() {
    const isOn = this.panel().toggleAttribute("data-meanings");
    this.form.toggleAttribute("data-meanings", isOn);
    this.find(".meanings").ariaPressed = String(isOn);
  }

  reasonView(text, at) {
    const button = element("button", "", `${text} `);
    button.type = "button";
    button.append(element("kbd", "", REASON_KEYS[at]));
    button.addEventListener("click", () => this.giveReason(text), { signal: this.hearing.signal });
    return button;
  }

  giveReason(text) {
    this.find("#reason").value = text;
    this.complain("");
  }

  choose(at) {
    const box = this.place.querySelectorAll(".option input")[at];
    box.checked = box.type === "radio" || !box.checked;
    box.focus();
    this.complain("");
  }

  onSubmit(event) {
    event.preventDefault();
    this.decide();
  }

  decide() {
    const number = this.find("#number");
    const boxes = [...this.place.querySelectorAll(".option input:checked")];
    const chosen = number?.value.trim() || boxes.map((box) => box.value).join(";");
    const reason = this.find("#reason");
    if (!chosen) return this.complain(number ? "Type a number." : "Choose an option.");
    if (!reason.value.trim()) {
      reason.focus();
      return this.complain("A decision needs a reason.");
    }
    return this.send({ label: chosen, reason: reason.value });
  }

  pass() {
    this.send({ passes: true });
  }

  // Once, until the page is drawn anew.
  send(what) {
    if (this.form.ariaBusy === "true") return;
    this.form.ariaBusy = "true";
    this.trigger("sent", { token: this.token, ...what });
  }

  complain(text) {
    const place = this.find(".complaint");
    place.textContent = text && text[0].toUpperCase() + text.slice(1).replace(/\.?$/, ".");
    place.hidden = !text;
  }
}

function optionView({ key, name, description, digit, votes }, several) {
  const isNamed = name.toLowerCase() === key.toLowerCase() || key === digit;
  const option = element("label", "option");
  const radio = element("input");
  Object.assign(radio, { type: several ? "checkbox" : "radio", name: "option", value: key });
  option.append(radio, element("kbd", "", digit), element("span", "name", isNamed ? name : `${key}: ${name}`));
  if (votes) option.lastChild.append(element("span", "votes", votes));
  if (!digit) option.querySelector("kbd").hidden = true;
  if (description) option.append(element("span", "description", description));
  return option;
}

function numberView(said) {
  const option = element("label", "typed", said[0].toUpperCase() + said.slice(1));
  const field = element("input");
  Object.assign(field, { type: "text", id: "number", autocomplete: "off", maxLength: 24 });
  option.append(field);
  return option;
}

function element(tag, kind = "", text = "") {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  made.textContent = text;
  return made;
}

function isField(node) {
  return node.isContentEditable || node.matches?.("textarea, select, input:not([type=radio], [type=checkbox])");
}

// Streamlit calls this on every change of the data; what it gives back, when the element leaves.
let decider = null;

export default function (component) {
  const place = component.parentElement;
  if (decider?.place !== place) {
    decider?.destroy();
    decider = new Decider(place);
  }
  decider.update(component);
  return () => {
    if (decider?.place !== place || place.isConnected) return;
    decider.destroy();
    decider = null;
  };
}
