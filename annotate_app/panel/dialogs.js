// The panel's dialogs: the keys, and a reason to skip or flag.

function heading(text) {
  return element("h2", { id: "sheet-title" }, text);
}

const NO_CHARACTERS = /^(← →|⌫|.*[a-z].*)$/; // arrows, Backspace, and keys with a name

// `single`: whether letters, digits and signs are keys; onSwitch(what they shall be from now on)
function keysView(words, questions, asks, hasSides, single, onSwitch) {
  let rows = [["?", words.sheet_help]];
  if (questions.length > 0) {
    const options = questions.flatMap((question) => question.options);
    const letters = [...new Set(options.filter(hasLetter).map((o) => o.key.toUpperCase()))];
    const last = Math.min(Math.max(...questions.map((question) => question.options.length)), 9);
    const asksNumber = questions.some((question) => question.number);
    rows.unshift(["⌫", words.sheet_back], ["/", words.sheet_earlier], ["−", words.sheet_skip], ["+", words.sheet_flag]);
    if (hasSides) rows.unshift(["=", words.sheet_together], ["%", words.sheet_differ]);
    if (asks.evidence) rows.unshift([",", words.sheet_mark]);
    rows.unshift(["!", words.sheet_find]);
    if (asks.judged) rows.unshift(["$", words.sheet_judged]);
    if (asks.turns) rows.unshift(["; :", words.sheet_turns]);
    rows.unshift(["< >", words.sheet_size]);
    if (questions.some(isGuided)) rows.unshift(["#", words.sheet_guidelines]);
    if (asks.source || asks.folds) rows.unshift(["*", asks.source ? words.sheet_source : words.sheet_open_all]);
    rows.unshift([words.keys_scroll, hasSides ? words.sheet_scroll_sides : words.sheet_scroll]);
    if (asks.why) rows.unshift([".", words.sheet_rationale]);
    if (asks.confidence) rows.unshift(["0", words.sheet_confidence]);
    rows.unshift([words.key_enter, words.sheet_submit]);
    if (questions.length > 1) rows.unshift(["← →", words.sheet_move]);
    if (letters.length > 0) rows.unshift([letters.join(" "), words.sheet_choose_letter]);
    const ticked = questions.some((question) => question.several);
    if (last > 0) rows.unshift([`1 – ${last}`, ticked ? words.sheet_several : words.sheet_choose_number]);
    if (asksNumber) rows.unshift(["0 – 9", words.sheet_number]);
    rows.push(["Esc", words.sheet_escape]);
  }
  if (!single) {
    rows = rows.filter(([keys]) => NO_CHARACTERS.test(keys));
    rows.unshift(["Tab ↑ ↓ Space", words.sheet_choose_tab]);
  }
  const box = element("input", { type: "checkbox", id: "single-keys" });
  box.checked = single;
  box.addEventListener("change", () => onSwitch(box.checked));
  const cap = (key) => (key === "–" ? " – " : element("kbd", {}, key));
  const cells = rows.flatMap(([keys, does]) => [
    element("dt", {}, ...keys.split(" ").map(cap)),
    element("dd", {}, does),
  ]);
  const title = heading(words.sheet_title);
  title.tabIndex = -1;
  title.autofocus = true; // else the list would open where the box is: at its end
  return [
    title,
    element("dl", {}, ...cells),
    element("label", { class: "reason", for: "single-keys" }, box, words.single_keys),
    element("p", {}, words.sheet_note),
    element("form", { method: "dialog" }, button(words.sheet_close, "quiet")),
  ];
}

// A form with one reason to choose and a note; onDone(reason, note) once it is sent.
function reasonView(kind, words, reasons, onDone) {
  const choices = Object.entries(reasons).map(([key, name], place) => {
    const radio = element("input", { type: "radio", name: "reason", value: key, required: "" });
    const cap = element("kbd", { "aria-hidden": "true" }, String(place + 1));
    return element("label", { class: "reason" }, radio, element("span", {}, name), cap);
  });
  const note = element("input", { type: "text", id: "note", maxlength: "1000", dir: "auto" });
  const form = element(
    "form",
    { method: "dialog" },
    element("div", { role: "radiogroup", "aria-label": words.reason }, ...choices),
    element("label", { for: "note", class: "note" }, words.note),
    note,
    element(
      "div",
      { class: "decide" },
      button(words[`${kind}_confirm`], "go"),
      element("button", { type: "submit", class: "quiet", formnovalidate: "" }, words.cancel),
    ),
  );
  form.addEventListener("submit", (event) => {
    const chosen = form.querySelector("input[name=reason]:checked");
    if (event.submitter?.formNoValidate || !chosen) return;
    onDone(chosen.value, note.value);
  });
  return [heading(words[`${kind}_title`]), element("p", {}, words[`${kind}_text`]), form];
}

function button(text, kind) {
  return element("button", { type: "submit", class: kind }, text);
}
