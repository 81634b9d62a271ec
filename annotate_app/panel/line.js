// Whether the server answers. Streamlit says when its socket closes; a line that has gone silent is
// found by asking.

// A message without an answer is given up, and sent again: later than nginx asks a second process.
const ANSWER_MS = 12000;
const UPLOAD_PER_MS = 10; // characters
const WHOLE_MS = 120000; // an answer that has begun, with its images
const ANEW_MS = 60000;
const KEPT_ALIVE = 20000; // characters of a message that a page may leave behind as it closes
const HEARTBEAT_MS = 10000;
const NO_ANSWER_MS = 4000;
const DOWN = ["PINGING_SERVER", "DISCONNECTED_FOREVER", "CONNECTING"];

class Line {
  constructor(place, onChange) {
    this.onChange = onChange;
    this.silent = false;
    this.host = place.getRootNode().host ?? place;
    this.watching = new MutationObserver(() => {
      this.keepInReach();
      onChange();
    });
    this.watching.observe(document.body, {
      subtree: true,
      attributeFilter: ["data-test-connection-state", "inert", "aria-hidden"],
    });
    this.heartbeat = setInterval(() => document.hidden || this.listen(), HEARTBEAT_MS);
  }

  get down() {
    const state = document.querySelector(".stApp")?.dataset.testConnectionState;
    return this.silent || DOWN.includes(state);
  }

  async listen() {
    const asked = { cache: "no-store", signal: AbortSignal.timeout(NO_ANSWER_MS) };
    const answer = await fetch(new URL("_stcore/health", document.baseURI), asked).catch(() => null);
    this.silent = !answer?.ok;
    this.onChange();
  }

  // Streamlit's dialog about the connection, which page.css hides, would put all else out of reach.
  keepInReach() {
    for (const node of document.querySelectorAll("[inert], [aria-hidden=true]")) {
      if (!node.contains(this.host)) continue;
      node.inert = false;
      node.removeAttribute("aria-hidden");
    }
  }

  leave() {
    this.watching.disconnect();
    clearInterval(this.heartbeat);
  }
}

// What the server says to a message of the panel's; undefined where there is no answer.
async function answerTo(ticket, said) {
  const body = JSON.stringify(said);
  const headers = { "Content-Type": "application/json", "X-Evenhand-Ticket": ticket };
  const giveUp = new AbortController();
  const after = (ms) => setTimeout(() => giveUp.abort(), ms);
  let timer = after(ANSWER_MS + body.length / UPLOAD_PER_MS);
  const keepalive = body.length < KEPT_ALIVE;
  const how = { method: "POST", headers, body, keepalive, signal: giveUp.signal };
  try {
    const answer = await fetch(new URL("evenhand/answers", document.baseURI), how);
    clearTimeout(timer);
    timer = after(WHOLE_MS);
    return { status: answer.status, data: answer.ok ? await answer.json() : null };
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

// The ticket is over, or the browser's cookie another one: what is kept here outlives a reload.
function beginAnew() {
  try {
    if (Date.now() - Number(sessionStorage.getItem("evenhand-anew")) < ANEW_MS) return;
    sessionStorage.setItem("evenhand-anew", Date.now());
  } catch {
    return; // nothing would tell that it was tried
  }
  location.reload();
}
