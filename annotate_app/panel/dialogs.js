// The panel's dialogs: the keys, a reason to skip or flag, the earlier answers.

function heading(text) {
  return element("h2", { id: "sheet-title" }, text);
}

function keysView(words, questions, asks, hasSides) {
  const rows = [["?", words.sheet_help]];
  if (questions.length > 0) {
    const options = questions.flatMap((question) => question.options);
    const letters = [...new Set(options.filter(hasLetter).map((o) => o.key.toUpperCase()))];
    const last = Math.min(Math.max(...questions.map((question) => question.options.length)), 9);
    rows.unshift(["⌫", words.sheet_back], ["−", words.sheet_skip], ["+", words.sheet_flag]);
    if (hasSides) rows.unshift(["=", words.sheet_together]);
    if (asks.evidence) rows.unshift([",", words.sheet_mark]);
    if (asks.source) rows.unshift(["/", words.sheet_source]);
    rows.unshift(["PageDown PageUp Space Home End", hasSides ? words.sheet_scroll_sides : words.sheet_scroll]);
    if (asks.why) rows.unshift([".", words.sheet_rationale]);
    if (asks.confidence) rows.unshift(["0", words.sheet_confidence]);
    rows.unshift(["Enter", words.sheet_submit]);
    if (questions.length > 1) rows.unshift(["← →", words.sheet_move]);
    if (letters.length > 0) rows.unshift([letters.join(" "), words.sheet_choose_letter]);
    rows.unshift([`1 – ${last}`, words.sheet_choose_number]);
    rows.push(["Esc", words.sheet_escape]);
  }
  const cap = (key) => (key === "–" ? " – " : element("kbd", {}, key));
  const cells = rows.flatMap(([keys, does]) => [
    element("dt", {}, ...keys.split(" ").map(cap)),
    element("dd", {}, does),
  ]);
  return [
    heading(words.sheet_title),
    element("dl", {}, ...cells),
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

function earlierView(words, rows, onChoose) {
  const items = rows.map((row) => {
    const answer = row.skipped ? filled(words.skipped, { reason: row.answer }) : row.answer;
    const open = element(
      "button",
      { type: "button", class: "past" },
      element("span", { class: "past-answer", dir: "auto" }, answer),
      element("span", { class: "past-title", dir: "auto" }, row.title),
      element("span", { class: "past-text", dir: "auto" }, row.excerpt),
    );
    open.addEventListener("click", () => onChoose(row.task));
    return element("li", {}, open);
  });
  return [
    heading(words.earlier),
    element("p", {}, rows.length > 0 ? words.earlier_text : words.earlier_none),
    element("ol", { class: "past-list" }, ...items),
    element("form", { method: "dialog" }, button(words.sheet_close, "quiet")),
  ];
}

function button(text, kind) {
  return element("button", { type: "submit", class: kind }, text);
}
