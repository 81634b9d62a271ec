// A code as text, and a button that copies it. The old command needs no permission and no TLS; where
// a browser refuses even that, the code is marked, and the reader copies it by hand.

function codeView(code, words) {
  const [before, after] = words.code.split("{code}");
  const line = document.createElement("p");
  line.className = "code";
  const shown = document.createElement("strong");
  shown.textContent = code;
  line.append(before, shown, after);
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = words.copy;
  const said = document.createElement("span");
  said.className = "copied";
  said.setAttribute("role", "status");
  button.addEventListener("click", () => {
    const done = copyText(code);
    if (!done) selectText(shown);
    said.textContent = done ? words.copied : words.marked;
  });
  const row = document.createElement("p");
  row.append(button, " ", said);
  return [line, row];
}

function copyText(text) {
  const before = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.readOnly = true;
  field.style.cssText = "position: fixed; inset-block-start: 0; opacity: 0;";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus?.({ preventScroll: true });
  return done;
}

function selectText(node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const selection = window.getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
}
