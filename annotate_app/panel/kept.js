// What the server sends once: words, rubrics and images. From then on it names them by their content, and
// this window puts them back.

const MOST_KEPT = 48;
const SAID_ONCE = ["words", "asks", "controls"];
const kept = new Map();

function restored(data) {
  for (const [name, part] of Object.entries(data.kept)) kept.set(name, part);
  const part = (name) => {
    const value = kept.get(name);
    if (kept.delete(name)) kept.set(name, value); // to the end of the queue for forgetting
    return value;
  };
  const questions = data.sheet?.questions.map(({ rubric, ...own }) => ({ ...part(rubric), ...own }));
  const blocks = data.sheet?.blocks.map((each) => ({
    ...each,
    tree: each.tree && spelled(each.tree, each.text),
    image: each.image && part(each.image),
  }));
  const sheet = data.sheet && { ...data.sheet, blocks, questions };
  const once = Object.fromEntries(SAID_ONCE.map((key) => [key, part(data[key])]));
  const whole = { ...data, ...once, sheet };
  for (const name of kept.keys()) if (kept.size > MOST_KEPT) kept.delete(name);
  return whole;
}
