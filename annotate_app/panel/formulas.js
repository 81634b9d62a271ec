// Formulas as MathML, which Temml makes. Until it is here, and where it cannot read one, a formula
// stands as it was written; links and images are none of its commands.

const LONGEST_FORMULA = 2000; // characters
const MOST_FORMULAS = 300; // of an item; more are too many for a page
const FORMULAS = [
  [/^\$\$(.*)\$\$$/s, true],
  [/^\\\[(.*)\\\]$/s, true],
  [/^\\\((.*)\\\)$/s, false],
  [/^\$(.*)\$$/s, false],
  [/^(\\begin.*)$/s, true],
];
const MATH = "http://www.w3.org/1998/Math/MathML";
const OF_MATH =
  /^(class|style|display(style)?|scriptlevel|math(variant|color|background|size)|stretchy|symmetric|fence|separator|form|[lr]space|movablelimits|accent(under)?|largeop|linebreak|(column|row)(align|spacing|lines|span)|(min|max)size|width|height|depth|voffset|linethickness|notation|encoding|xmlns)$/;
const ELSEWHERE = /url\(|position:|z-index/i; // of no formula's style
let typesetter = null; // once it is here
let formulasLeft = MOST_FORMULAS;

function typeset(place, source) {
  const [pattern, displayMode] = FORMULAS.find(([shape]) => shape.test(source)) ?? [];
  if (!pattern || source.length > LONGEST_FORMULA || formulasLeft-- <= 0) return;
  const draw = () => {
    const made = document.createElement("span");
    try {
      const bounds = { throwOnError: true, trust: false, maxSize: [20, 20], maxExpand: 200 };
      typesetter.render(pattern.exec(source)[1], made, { displayMode, ...bounds });
      for (const number of made.querySelectorAll(".tml-eqn:empty")) number.remove();
      if (![...made.querySelectorAll("*")].every(isMath)) return;
    } catch {
      return; // as it was written
    }
    place.replaceChildren(...made.childNodes);
    place.classList.add("typeset");
    place.title = source;
  };
  if (typesetter) return draw();
  import(TYPESETTER).then((module) => {
    typesetter = module.default;
    draw();
  }, () => {});
}

// Nothing but MathML is ever put into the page, and no attribute that is not listed here.
function isMath({ namespaceURI, attributes }) {
  const known = ({ name, value }) => OF_MATH.test(name) && !(name === "style" && ELSEWHERE.test(value));
  return namespaceURI === MATH && [...attributes].every(known);
}
