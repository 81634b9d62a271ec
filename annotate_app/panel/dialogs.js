// The panel's dialogs: the keys, and a reason to skip or flag.

function heading(text) {
  return element("h2", { id: "sheet-title" }, text);
}

const NO_CHARACTERS = /^(← →|⌫|.*[a-z].*)$/; // arrows, Backspace, and keys with a name

// The keys that do something here, under the headings of what they are for: [heading, [[keys, what they do]]].
function keyGroups(words, questions, asks, hasSides) {
  const given = (isThere, keys, does) => (isThere ? [[keys, does]] : []);
  const hasItem = questions.length > 0;
  const letters = [...new Set(questions.flatMap(({ options }) => options.filter(hasLetter).map(({ key }) => key.toUpperCase())))];
  const most = Math.min(Math.max(0, ...questions.map(({ options }) => options.length)), 9);
  const isSet = questions.some(({ several }) => several);
  return [
    [
      words.sheet_answering,
      [
        ...given(questions.some(({ number }) => number), "0 – 9", words.sheet_number),
        ...given(most > 0, `1 – ${most}`, isSet ? words.sheet_several : words.sheet_choose_number),
        ...given(letters.length > 0, letters.join(" "), words.sheet_choose_letter),
        ...given(asks.confidence, "0", words.sheet_confidence),
        ...given(asks.evidence, ",", words.sheet_mark),
        ...given(asks.why, ".", words.sheet_rationale),
        ...given(hasItem, words.key_enter, words.sheet_submit),
        ...given(hasItem, "−", words.sheet_skip),
        ...given(hasItem, "+", words.sheet_flag),
      ],
    ],
    [
      words.sheet_moving,
      [
        ...given(questions.length > 1, "← →", words.sheet_move),
        ...given(hasItem, "⌫", words.sheet_back),
        ...given(hasItem, "!", words.sheet_earlier),
        ...given(hasItem, "Esc", words.sheet_escape),
        ["?", words.sheet_help],
      ],
    ],
    [
      words.sheet_reading,
      [
        ...given(hasItem, words.keys_scroll, hasSides ? words.sheet_scroll_sides : words.sheet_scroll),
        ...given(hasSides, "=", words.sheet_together),
        ...given(hasSides, "%", words.sheet_differ),
        ...given(asks.turns, "; :", words.sheet_turns),
        ...given(asks.judged, "$", words.sheet_judged),
        ...given(hasItem, "/", words.sheet_find),
        ...given(asks.source || asks.folds, "*", asks.source ? words.sheet_source : words.sheet_open_all),
        ...given(questions.some(isGuided), "#", words.sheet_guidelines),
        ...given(hasItem, "< >", words.sheet_size),
      ],
    ],
  ];
}

// `single`: whether letters, digits and signs are keys; onSwitch(what they shall be from now on)
function keysView(words, questions, asks, hasSides, single, onSwitch) {
  let groups = keyGroups(words, questions, asks, hasSides);
  if (!single) {
    groups = groups.map(([name, rows]) => [name, rows.filter(([keys]) => NO_CHARACTERS.test(keys))]);
    if (questions.length > 0) groups[0][1].unshift(["Tab ↑ ↓ Space", words.sheet_choose_tab]);
  }
  const box = element("input", { type: "checkbox", id: "single-keys" });
  box.checked = single;
  box.addEventListener("change", () => onSwitch(box.checked));
  const cap = (key) => (key === "–" ? " – " : element("kbd", {}, key));
  const row = ([keys, does]) => element("div", {}, element("dt", {}, ...keys.split(" ").map(cap)), element("dd", {}, does));
  const group = ([name, rows]) => element("section", {}, element("h3", {}, name), element("dl", {}, ...rows.map(row)));
  const title = heading(words.sheet_title);
  title.tabIndex = -1;
  title.autofocus = true; // else the list would open where the box is: at its end
  return [
    title,
    element("div", { class: "key-groups" }, ...groups.filter(([, rows]) => rows.length > 0).map(group)),
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
      button(words.reason_first, "go"),
      element("button", { type: "submit", class: "quiet", formnovalidate: "" }, words.cancel),
    ),
  );
  const send = form.querySelector(".go");
  send.setAttribute("aria-disabled", "true"); // pressed nevertheless, the browser asks for a reason
  form.addEventListener("change", ({ target }) => {
    if (target.type !== "radio") return;
    send.removeAttribute("aria-disabled");
    send.textContent = words[`${kind}_confirm`];
  });
  form.addEventListener("submit", (event) => {
    const chosen = form.querySelector("input[name=reason]:checked");
    if (event.submitter?.formNoValidate || !chosen) return;
    onDone(chosen.value, note.value);
  });
  const title = heading(words[`${kind}_title`]);
  title.tabIndex = -1;
  title.autofocus = true; // a reason with the focus would look chosen
  return [title, element("p", {}, words[`${kind}_text`]), form];
}

function button(text, kind) {
  return element("button", { type: "submit", class: kind }, text);
}
