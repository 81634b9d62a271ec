// Asks for the page's first run while Streamlit's files are on their way, and hands it over once
// they ask for a connection: one that seems open as soon as the run is there. The real one needs
// two ways there and back more and takes up the run's session, as after a break; without a first
// run it is all there is. Stands in the page itself: nginx knows it by its hash.
(() => {
  const Usual = window.WebSocket;
  const address = new URL("_stcore/stream", document.baseURI);
  address.protocol = address.protocol.replace("http", "ws");
  address.search = "";
  const token = /\b_streamlit_xsrf=([^;]*)\b/.exec(document.cookie)?.[1];
  const protocols = ["streamlit", token ?? "PLACEHOLDER_AUTH_TOKEN"];

  // The session, and the messages of its first run.
  async function firstRun() {
    if (!location.pathname.endsWith("/")) return []; // a page of the lead's
    const answer = await fetch(`evenhand/first-run${location.search}`, {
      method: "POST",
      headers: {
        "X-Evenhand-Protocols": protocols.join(),
        "X-Evenhand-Locale": navigator.language,
      },
    });
    if (answer.headers.get("Content-Type") !== "application/octet-stream") return [];
    const parts = [];
    const bytes = await answer.arrayBuffer();
    for (let at = 0; at < bytes.byteLength; ) {
      const end = at + 4 + new DataView(bytes).getUint32(at);
      parts.push(bytes.slice(at + 4, end));
      at = end;
    }
    return [new TextDecoder().decode(parts[0]), ...parts.slice(1)];
  }

  class Early extends EventTarget {
    readyState = Usual.CONNECTING;
    unsent = [];
    taken = new Promise((taken) => (this.take = taken));

    async connect() {
      const [session, ...messages] = await firstRun().catch(() => []);
      if (this.readyState === Usual.CLOSED) return;
      this.line = new Usual(address, session ? [...protocols, session] : protocols);
      this.line.binaryType = "arraybuffer";
      const opened = new Promise((open) => this.line.addEventListener("open", open));
      opened.then(() => this.unsent.splice(0).forEach((each) => this.line.send(each)));
      this.line.addEventListener("message", ({ data }) => this.tell(data));
      this.line.addEventListener("error", () => this.dispatchEvent(new Event("error")));
      this.line.addEventListener("close", (event) => {
        this.readyState = Usual.CLOSED;
        this.dispatchEvent(new CloseEvent("close", event));
      });
      await Promise.all([this.taken, session || opened]);
      if (this.readyState === Usual.CLOSED) return;
      this.readyState = Usual.OPEN;
      this.dispatchEvent(new Event("open"));
      messages.forEach((each) => this.tell(each));
    }

    tell(data) {
      this.dispatchEvent(new MessageEvent("message", { data }));
    }

    send(data) {
      if (this.line.readyState === Usual.CONNECTING) this.unsent.push(data);
      else this.line.send(data);
    }

    close(...reason) {
      this.readyState = Usual.CLOSED;
      this.line?.close(...reason);
    }
  }

  const early = new Early();
  early.connect();
  window.WebSocket = new Proxy(Usual, {
    construct(_, [asked, named]) {
      window.WebSocket = Usual; // one page, one connection; later ones are Streamlit's own
      // A page that takes up an earlier session names it in third place.
      const fits = new URL(asked).href === address.href && named.length === 2;
      if (!fits || early.readyState === Usual.CLOSED) {
        early.close();
        return new Usual(asked, named);
      }
      early.take();
      return early;
    },
  });
})();
