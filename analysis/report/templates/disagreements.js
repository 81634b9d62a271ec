"use strict";
// Shows the units that match what is searched and chosen, some at a time. Without this script the
// page shows all of them. Nothing is asked of anywhere.
const AT_ONCE = 25;
const form = document.getElementById("filters");
const status_ = document.getElementById("shown");
const more = document.getElementById("more");
const unfold = document.getElementById("unfold");
const units = [...document.querySelectorAll("article")].map(node => ({
  node,
  rubric: [node.dataset.rubric],
  grader: JSON.parse(node.dataset.graders),
  kind: JSON.parse(node.dataset.kinds),
  part: JSON.parse(node.dataset.parts),
  text: "",
}));
let most = AT_ONCE;

const matches = (unit, words, chosen) => {
  if (!chosen.every(([name, value]) => unit[name].includes(value))) return false;
  if (words.length && !unit.text) unit.text = unit.node.textContent.toLowerCase();
  return words.every(word => unit.text.includes(word));
};
// A grader's disagreement was sorted, not a unit: with both chosen, they must be of the same one.
const together = (unit, grader, kind) => unit.grader.some((name, at) => name === grader && unit.kind[at] === kind);

const show = () => {
  const given = Object.fromEntries(new FormData(form));
  const words = given.words.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = Object.entries(given).filter(([name, value]) => name !== "words" && value !== "*");
  const { grader, kind } = Object.fromEntries(chosen);
  const both = grader !== undefined && kind !== undefined;
  let found = 0;
  for (const unit of units) {
    const matched = matches(unit, words, chosen) && (!both || together(unit, grader, kind));
    if (matched) found += 1;
    unit.node.hidden = !matched || found > most;
  }
  status_.textContent = status_.dataset.said.replace("{shown}", Math.min(found, most)).replace("{found}", found);
  more.hidden = found <= most;
};

form.addEventListener("input", () => { most = AT_ONCE; show(); });
form.addEventListener("submit", event => event.preventDefault());
more.addEventListener("click", () => {
  const first = most;
  most += AT_ONCE;
  show();
  const next = units.filter(unit => !unit.node.hidden)[first]?.node.querySelector("h2");
  next?.setAttribute("tabindex", "-1");
  next?.focus();
});
unfold.addEventListener("click", () => {
  const open = unfold.getAttribute("aria-pressed") !== "true";
  unfold.setAttribute("aria-pressed", open);
  for (const each of document.querySelectorAll("details")) each.open = open;
});
form.hidden = false;
show();
