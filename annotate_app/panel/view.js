// Building the page. Every text goes in as a text node: nothing that a response, a prompt or a
// rubric says is ever read as HTML or LaTeX, and Markdown only as markdown.js has it.

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A sentence that counts something has a form for one and one for any other number.
function filled(sentence, values) {
  const forms = typeof sentence === "string" ? { other: sentence } : sentence;
  const template = (values.count === 1 && forms.one) || forms.other;
  return template.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function inLanguage(code) {
  return code ? { lang: code } : {};
}

// The texts to read: what both sides share on top, then the sides next to each other.
// `fill(text, block)` puts a block's text into its place.
function materialView(blocks, words, fill) {
  const sides = [...new Set(blocks.map((block) => block.side))].sort();
  const column = (side) => {
    const own = blocks.filter((block) => block.side === side);
    const views = own.map((block, number) => blockView(block, number, words, fill));
    own.forEach(({ kind }, at) => {
      if (kind === "response" && own[at - 1]?.turns) views[at].classList.add("judged");
    });
    return element("div", { class: side ? "side" : "shared" }, ...views);
  };
  return sides.map(column);
}

function blockView(block, number, words, fill) {
  const id = `text-${block.side}-${number}`;
  const text = element(
    "div",
    // What it is written in nobody has said; it need not be the page's language.
    { class: "text", dir: "auto", lang: "", role: "region", "aria-labelledby": id, tabindex: "0" },
  );
  fill(text, block);
  const label = block.plain ? filled(words.as_source, block) : block.label;
  const steps = block.turns ?? (hasPassages(block) ? block.nodes : []);
  const [next, before] = block.turns ? [words.next_turn, words.turn_before] : [words.next_passage, words.passage_before];
  const caps = [`${before} `, element("kbd", {}, ":"), ` ${next} `, element("kbd", {}, ";")];
  const keys = steps.length > 1 ? [element("span", { class: "steps", "aria-hidden": "true" }, ...caps)] : [];
  return element(
    "section",
    { class: `block ${block.kind}${block.code ? " code" : ""}` },
    element("h2", { id, dir: "auto" }, label, ...keys),
    text,
  );
}

// The questions with their options as native radio buttons: focus, arrows and names come with them.
function questionView(question, at, several, hint, onChoose, onType) {
  const options = question.options.map((option, place) => {
    const caps = question.task ? keyCaps(option, place) : []; // confidence has one key for all
    return optionView(option, caps, place, at, question.several, onChoose);
  });
  const title = question.title ? [element("p", { class: "rubric", dir: "auto" }, question.title)] : [];
  return element(
    "section",
    {
      class: ["ask", several && "several", !question.task && "confidence"].filter(Boolean).join(" "),
      dir: directionOf(question.question),
      ...inLanguage(question.lang),
    },
    ...title,
    element("h2", { id: `question-${at}`, dir: "auto" }, question.question),
    ...(question.task ? [] : [element("kbd", { "aria-hidden": "true" }, "0")]),
    ...(question.several ? [element("p", { class: "hint" }, hint)] : []),
    ...(question.number
      ? numberView(question, at, onType, hint)
      : [element("div", { class: "options", role: question.several ? "group" : "radiogroup", "aria-labelledby": `question-${at}` }, ...options)]),
    element("p", { class: "skipped", hidden: "" }),
  );
}

function optionView(option, caps, place, at, several, onChoose) {
  const [name, description] = [`name-${at}-${place}`, `description-${at}-${place}`];
  const radio = element("input", {
    type: several ? "checkbox" : "radio",
    name: `answer-${at}`,
    value: option.key,
    "aria-labelledby": name,
  });
  if (caps.length > 0) radio.setAttribute("aria-keyshortcuts", caps.join(" "));
  if (option.description) radio.setAttribute("aria-describedby", description);
  radio.addEventListener("change", () => onChoose(option.key));
  return element(
    "label",
    { class: "option" },
    radio,
    element("span", { class: "name", id: name, dir: "auto" }, option.name),
    element("span", { class: "caps", "aria-hidden": "true" }, ...caps.map((cap) => element("kbd", {}, cap))),
    element("span", { class: "description", id: description, dir: "auto", "data-of": option.name }, option.description),
  );
}

// Whether somebody wrote how to answer it.
function isGuided({ guide, instructions, options }) {
  return Boolean(guide || instructions || options.some(({ examples }) => examples.length > 0));
}

function guidelinesView(question, words, named, controls) {
  const title = named && question.title ? `${words.guidelines}: ${question.title}` : words.guidelines;
  const summary = element("summary", { dir: "auto" }, title);
  const key = element("kbd", { class: "single" }, "#");
  summary.append(" ", key);
  return element("details", { class: "guidelines" }, summary, ...guidelineParts(question, words, controls));
}

function guidelineParts(question, words, controls) {
  const examples = question.options
    .filter((option) => option.examples.length > 0)
    .flatMap((option) => [
      element("dt", { dir: "auto" }, option.name),
      ...option.examples.map((example) => element("dd", { dir: "auto" }, example)),
    ]);
  const own = inLanguage(question.lang); // a rubric without a translation stays in its own
  const instructions = element("div", { class: "instructions", ...own });
  if (question.guide) instructions.classList.add("rendered");
  instructions.append(...(question.guide ? renderedNodes(question.guide, words, controls) : [question.instructions]));
  instructions.dir = directionOf(instructions.textContent);
  const parts = instructions.textContent ? [instructions] : [];
  if (examples.length > 0) {
    parts.push(element("h3", {}, words.examples), element("dl", own, ...examples));
  }
  return parts;
}

function messageView(title, text, ...leave) {
  return element(
    "div",
    { class: "message" },
    element("h2", {}, title),
    element("p", {}, text),
    ...leave,
  );
}

// Which keys choose an option: its place in the list, and its own where that is one letter. What is
// stored is always the option's key, never the key that was pressed.
function hasLetter(option) {
  return /^[a-z]$/i.test(option.key);
}

function keyCaps(option, place) {
  return [...(hasLetter(option) ? [option.key.toUpperCase()] : []), ...(place < 9 ? [String(place + 1)] : [])];
}

function pressedOption(event, options) {
  const letter = options.find(
    (option) => hasLetter(option) && option.key.toUpperCase() === event.key.toUpperCase(),
  );
  if (letter) return letter;
  // French keyboards have the digits behind Shift; the key's place tells which one is meant.
  const place = event.shiftKey ? null : /^Digit([1-9])$/.exec(event.code);
  const digit = /^[1-9]$/.test(event.key) ? event.key : place?.[1];
  return options[Number(digit) - 1];
}
