// A conversation as turns; passages that were found. What only machines said to one another is folded away, and a long turn is
// cut off until all of it is asked for.

const LONG_TURN = 1500; // characters
const LEAD_IN = 40; // pixels of what comes before a turn
const FOLDED = ["system", "call", "tool"];

// Of a conversation that is rated itself, the answer at its end is marked.
function turnNodes({ turns, kind }, words, controls) {
  const total = turns.length;
  return turns.map((turn, at) => {
    const said = element("div", { class: "said", dir: "auto" }, ...textNodes(turn.text, words, controls));
    const [around, above] = FOLDED.includes(turn.role) ? ["details", "summary"] : ["section", "h3"];
    const name = filled(words.turn, { turn: at + 1, total, label: turn.label });
    const isLast = kind === "response" && total > 1 && at === total - 1 && turn.role === "assistant";
    const view = element(
      around,
      { class: `turn ${turn.role}${isLast ? " judged" : ""}`, tabindex: "-1", role: "group", "aria-label": name },
      element(above, { "data-turn": `${at + 1} / ${total}` }, turn.label),
      said,
    );
    if (isLast) view.firstChild.append(lastMark(words));
    if (turn.text.length > LONG_TURN) view.append(wholeButton(said, turn.text.length, words));
    return view;
  });
}

function lastMark(words) {
  return element("span", { class: "last" }, words.last_turn, " ", element("kbd", { class: "single", "aria-hidden": "true" }, "$"));
}

// What is to be rated of a conversation: its last answer, or the text after it. Of what leads there
// the end is in view.
function toJudged(material) {
  const turns = [...material.querySelectorAll(".block:not(.response) > .text:has(> .turn), .text:has(> .judged)")];
  for (const text of turns) {
    const last = text.querySelector(":scope > .judged") ?? text.lastElementChild;
    if (text.scrollHeight <= text.clientHeight + 1) continue;
    const whole = last.getBoundingClientRect();
    const fits = whole.height < text.clientHeight - LEAD_IN;
    if (fits) text.scrollTop = text.scrollHeight;
    else text.scrollTop += whole.top - text.getBoundingClientRect().top - LEAD_IN;
  }
  const judged = material.querySelector(".judged");
  const scroller = scrollerOf(material);
  if (!judged || scroller.scrollHeight <= scroller.clientHeight + 1) return;
  const top = judged.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
  if (turns.every((text) => scrollerAround(text) === scroller)) scroller.scrollTop += top - 2 * LEAD_IN;
}

// The button that shows what was cut off.
function wholeButton(said, characters, words) {
  said.classList.add("cut");
  const count = characters.toLocaleString();
  const more = element("button", { type: "button", class: "quiet whole" }, filled(words.whole_turn, { count }));
  more.addEventListener("click", () => showWhole(said));
  return more;
}

function showWhole(said) {
  said.classList.remove("cut");
  said.parentElement.querySelector(":scope > .whole")?.remove();
}

// To the turn or passage after (1) or before (-1) the one at hand: that with the focus, or the first in view.
function toTurn(material, step) {
  const turns = [...material.querySelectorAll(".turn, .passage")];
  if (turns.length === 0) return;
  const top = (turn) => scrollerAround(turn.closest(".text")).getBoundingClientRect().top + 8;
  const held = turns.findIndex((turn) => turn.contains(material.getRootNode().activeElement));
  const seen = turns.findIndex((turn) => turn.getBoundingClientRect().bottom > top(turn));
  const begins = seen >= 0 && turns[seen].getBoundingClientRect().top >= top(turns[seen]) - 8;
  const next = held >= 0 ? held + step : begins && step > 0 ? seen : seen + step;
  const turn = turns[Math.min(Math.max(next, 0), turns.length - 1)];
  turn.focus({ preventScroll: true });
  bringUp(turn.closest(".text"), turn.getBoundingClientRect().top, 4);
}

// A text, or what it scrolls with where the texts stand in one column.
function scrollerAround(text) {
  return text.scrollHeight > text.clientHeight + 1 ? text : scrollerOf(text.closest(".material"));
}

// Brings what is at this height of the window to the top of its text, less a margin.
function bringUp(text, height, margin) {
  const scroller = scrollerAround(text);
  const by = height - scroller.getBoundingClientRect().top - margin;
  scroller.scrollBy({ top: by, behavior: "instant" });
}
