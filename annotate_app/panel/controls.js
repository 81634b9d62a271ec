// Characters that cannot be seen are shown as marks, so that people read all of a text. A mark is made
// beside its character, which stays in the text: copying and counting find it where it was.

const SHORT = {
  "00ad": "SHY", "061c": "ALM", "180e": "MVS", "200b": "ZWSP", "200c": "ZWNJ", "200d": "ZWJ",
  "200e": "LRM", "200f": "RLM", "202a": "LRE", "202b": "RLE", "202c": "PDF", "202d": "LRO",
  "202e": "RLO", "2060": "WJ", "2061": "f()", "2062": "×", "2063": "sep", "2064": "+",
  "2066": "LRI", "2067": "RLI", "2068": "FSI", "2069": "PDI", feff: "BOM",
};
const LONGEST_HIDDEN = 200;

// Where joiners and zero-width spaces are how a script is written, or how an emoji is put together.
const scripts = (names) => names.split(" ").map((name) => `\\p{scx=${name}}`).join("");
const JOINED = `[${scripts(
  "Arabic Syriac Mandaic Nko Mongolian Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu " +
    "Kannada Malayalam Sinhala Khmer Myanmar",
)}]`;
const UNSPACED = `[${scripts("Khmer Thai Lao Myanmar")}]`;
const EMOJI = "[\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\u{fe0f}\\u{e007f}]";
const MEANT = [
  `(?<=${JOINED})[\\u200c\\u200d](?=${JOINED})`,
  `(?<=${UNSPACED})\\u200b(?=${UNSPACED})`,
  `(?<=${EMOJI})\\u200d(?=\\p{Extended_Pictographic})`,
  "(?<=\\u{1f3f4})[\\u{e0030}-\\u{e007a}]{1,8}\\u{e007f}", // the flags of England and others
].join("|");
const UNSEEN =
  "[\\0-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b-\\u200f\\u202a-\\u202e" +
  "\\u2060-\\u2064\\u2066-\\u206f\\ufeff\\ufff9-\\ufffb]";
const TAGGED = "[\\u{e0000}-\\u{e007f}]+";
const CONTROL = new RegExp(`(${MEANT})|(\\r\\n)|(\\r)|(${TAGGED})|(?:(${UNSEEN})\\5*)`, "gu");

// A text as what is to be put into the page: strings, and an element for each mark. `controls` are
// the names of characters, or null where marks are not wanted.
function textNodes(text, words, controls) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(CONTROL)) {
    const [found, meant, newline, lone, tags, unseen] = match;
    if (meant || newline || (!lone && !controls)) continue;
    nodes.push(text.slice(from, match.index));
    if (lone) nodes.push(element("span", { class: "return" }, found));
    else nodes.push(...controlViews(found, tags ? tagsMark(found, words) : mark(unseen, found, words, controls)));
    from = match.index + found.length;
  }
  nodes.push(text.slice(from));
  return nodes.filter((node) => node !== "");
}

// The character stands inside, shut off from the text around it: an override turns nothing. Only the
// marks that Hebrew and Arabic need between words and numbers keep their effect.
function controlViews(found, { short, name }) {
  const named = { class: "control", role: "img", "aria-label": name, title: name, "data-mark": short };
  return /^[\u061c\u200e\u200f]/.test(found)
    ? [element("span", named), found]
    : [element("span", named, found)];
}

function mark(character, found, words, names) {
  const code = character.codePointAt(0).toString(16).padStart(4, "0");
  const short = SHORT[code] ?? `U+${code.toUpperCase()}`;
  const name = names[code] ?? filled(words.control, { code: `U+${code.toUpperCase()}` });
  const count = found.length;
  if (count === 1) return { short, name };
  return { short: `${short} ×${count}`, name: filled(words.controls, { name, count }) };
}

// Tag characters are a second, invisible ASCII: what they say is said.
function tagsMark(found, words) {
  const said = [...found].map((each) => String.fromCharCode(each.codePointAt(0) - 0xe0000));
  const text = said.join("").replace(/[^ -~]/g, "·").slice(0, LONGEST_HIDDEN);
  return { short: `TAG ${text}`, name: filled(words.hidden_tags, { text }) };
}

// A text as it was written; one without a word says so.
function sourceNodes(block, words, controls, marks = [], here = undefined) {
  const nodesOf = (text) => textNodes(text, words, controls);
  const bare = marks.length === 0 && !here;
  const said = bare ? nodesOf(block.text) : markedNodes(block.text, marks, here, nodesOf);
  if (block.text.trim() !== "") return said;
  return [...said, element("span", { class: "empty" }, words[`empty_${block.kind}`])];
}
