// Opens the page's connection while Streamlit's files are on their way, and hands it over once they
// ask for one. Stands in the page itself: nginx knows it by its hash.
(() => {
  const Usual = window.WebSocket;
  const address = new URL("_stcore/stream", document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  address.search = "";
  const token = /\b_streamlit_xsrf=([^;]*)\b/.exec(document.cookie)?.[1];
  const early = new Usual(address, ["streamlit", token ?? "PLACEHOLDER_AUTH_TOKEN"]);
  const opened = () => early.readyState === Usual.OPEN && early.dispatchEvent(new Event("open"));
  window.WebSocket = new Proxy(Usual, {
    construct(_, [asked, protocols]) {
      window.WebSocket = Usual; // one page, one connection; later ones are Streamlit's own
      // A page that takes up an earlier session names it in third place.
      const fits = new URL(asked).href === early.url && protocols.length === 2;
      if (!fits || early.readyState > Usual.OPEN) {
        early.close();
        return new Usual(asked, protocols);
      }
      if (early.readyState === Usual.OPEN) setTimeout(opened); // nobody listened when it was
      return early;
    },
  });
})();
