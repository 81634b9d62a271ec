// A question that asks for a number: one field, in which digits are typed.

const A_NUMBER = /^-?(\d+\.?\d*|\.\d+)$/;

// A typed number as it is stored, 0.5 for "0,50"; "" where it is none that may be given.
function numberKey({ low, high, step, places }, text) {
  const typed = text.trim().replace(",", ".").replace("\u2212", "-");
  const value = A_NUMBER.test(typed) ? Number(typed) : NaN;
  if (!(value >= low && value <= high)) return "";
  const steps = (value - low) / step;
  if (Math.abs(steps - Math.round(steps)) > 1e-6) return "";
  const key = value.toFixed(places);
  return (key.includes(".") ? key.replace(/\.?0+$/, "") : key).replace(/^-0$/, "0");
}

// Whether a stored answer is one that a question takes.
function takes(question, key) {
  if (question.number) return key !== undefined && numberKey(question.number, key) === key;
  if (question.several) return takesSet(question, key);
  return question.options.some((option) => option.key === key);
}

// A field, and beside it a track for who points: it shows no value until one is given.
function numberView(question, at, onType, how) {
  const { low, high, step, places, said } = question.number;
  const field = element("input", {
    type: "text",
    class: "number",
    inputmode: low < 0 ? "text" : places > 0 ? "decimal" : "numeric", // phones' digits have no minus
    autocomplete: "off",
    maxlength: "24",
    dir: "ltr",
    "aria-labelledby": `question-${at}`,
    "aria-describedby": `bounds-${at}`,
  });
  const bounds = { min: low, max: high, step };
  const track = element("input", { type: "range", class: "track", tabindex: "-1", "aria-hidden": "true", ...bounds });
  const end = (value) => element("span", { "aria-hidden": "true" }, String(value));
  field.addEventListener("input", () => onType(field.value));
  const point = () => {
    field.value = Number(track.value).toFixed(places);
    onType(field.value);
  };
  track.addEventListener("input", point);
  track.addEventListener("click", point); // where the hidden thumb stood
  return [
    element("div", { class: "typed" }, field, element("div", { class: "scale", dir: "ltr" }, end(low), track, end(high))),
    element("p", { class: "bounds", id: `bounds-${at}` }, `${said}. ${how}`),
  ];
}

// The track says what the field does: nothing where that is no number.
function showOnTrack(ask, key) {
  const track = ask.querySelector(".track");
  track.classList.toggle("unset", !key);
  if (key) track.value = key;
}

// The digit that a key types, on French keyboards too, which have digits behind Shift.
function typedDigit(event) {
  if (/^\d$/.test(event.key)) return event.key;
  return event.shiftKey ? undefined : /^Digit(\d)$/.exec(event.code)?.[1];
}
