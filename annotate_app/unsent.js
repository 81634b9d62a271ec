// What waits in this browser, where no panel is to send it. The server is asked first, where it knows
// whose it is: an answer may have arrived without its receipt. `Drafts` stands in panel/drafts.js.

const MOST_ASKED = 200;

export default function ({ data, parentElement, setTriggerValue }) {
  const { note, arrived, kind, words } = data;
  const line = parentElement.querySelector(".unsent");
  const place = data.drafts || noteLeft(note);
  const drafts = new Drafts(place);
  const said = () => {
    if (!place) return [];
    const read = drafts.read(`read:${kind}`) ?? [];
    const lost = kind === "over" ? drafts.under("refused:") : [];
    return [...drafts.waiting(), ...lost].filter(({ id }) => !read.includes(id));
  };
  const draw = () => {
    const told = said();
    const units = [...new Set(told.map(({ unit }) => unit))].filter(Boolean).sort((a, b) => a - b);
    const why = filled(words.why, { count: told.length });
    const text = units.length > 0 ? filled(words.lost, { unit: units.join(", "), why }) : why;
    const span = line.querySelector("span");
    line.hidden = told.length === 0;
    if (span.textContent !== text) span.textContent = text; // an alert speaks when it changes
    const button = line.querySelector("button");
    button.textContent = words.noted;
    button.onclick = () => {
      const ids = told.map(({ id }) => id);
      drafts.write(`read:${kind}`, [...(drafts.read(`read:${kind}`) ?? []), ...ids]);
      draw();
    };
  };
  if (data.drafts) {
    const ids = drafts.waiting().map(({ id }) => id).slice(0, MOST_ASKED);
    if (ids.some((id) => !(id in arrived))) return void setTriggerValue("waiting", ids);
    for (const id of ids) if (arrived[id]) drafts.drop(`answer:${id}`);
    drafts.leaveNote(note);
  }
  draw();
}
