// The code at the end of a session, without the panel; `codeView` stands in panel/copying.js.

export default function ({ data, parentElement }) {
  const place = parentElement.querySelector(".end");
  if (place.dataset.code === data.code) return;
  place.dataset.code = data.code;
  place.replaceChildren(...codeView(data.code, data.words));
}
