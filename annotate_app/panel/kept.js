// What the server sends once: words, rubrics and texts. From then on it names them by their content, and
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
  const whole = (sheet) => {
    if (!sheet) return sheet;
    const questions = sheet.questions.map(({ rubric, ...own }) => ({ ...part(rubric), ...own }));
    const blocks = sheet.blocks.map((name) => {
      const block = part(name);
      return { ...block, code: block.code && !hasPassages(block) };
    });
    return { ...sheet, blocks, questions };
  };
  const once = Object.fromEntries(SAID_ONCE.map((key) => [key, part(data[key])]));
  const restored = { ...data, ...once, sheet: whole(data.sheet), ahead: whole(data.ahead) };
  for (const name of kept.keys()) if (kept.size > MOST_KEPT) kept.delete(name);
  return restored;
}
