// A question of which several options may apply: a label is their keys, in the rubric's order.

const NONE = "none"; // said by an option of its own, so that nothing ticked is no answer yet

function chosenKeys(option) {
  return option ? option.split(";") : [];
}

// The label once an option was ticked or unticked; undefined where nothing is ticked.
function toggled({ options }, label, key) {
  const before = chosenKeys(label);
  if (key === NONE) return before.includes(NONE) ? undefined : NONE;
  const now = before.includes(key) ? before.filter((each) => each !== key) : [...before, key];
  const kept = options.map((option) => option.key).filter((each) => each !== NONE && now.includes(each));
  return kept.join(";") || undefined;
}

// Whether a stored label is one of these options' in their order.
function takesSet(question, label) {
  const keys = chosenKeys(label);
  const known = question.options.map((option) => option.key).filter((key) => keys.includes(key));
  return keys.length > 0 && known.join(";") === label && (keys.length === 1 || !keys.includes(NONE));
}
