// What the browser keeps: drafts, and answers that the server has not acknowledged yet.

// One entry per answer, so that two windows of one rater never overwrite each other's.
class Drafts {
  constructor(place) {
    this.place = place;
    this.prefix = `evenhand:${place}:`;
    this.spare = new Map(); // for a browser that refuses localStorage, or whose storage is full
  }

  write(name, value) {
    const text = JSON.stringify(value);
    this.spare.set(name, text);
    try {
      localStorage.setItem(this.prefix + name, text);
    } catch {
      // Kept in `spare`: lost with the window, but the answer still reaches the server.
    }
  }

  read(name) {
    let text = null;
    try {
      text = localStorage.getItem(this.prefix + name);
    } catch {
      // As above.
    }
    return parsed(text ?? this.spare.get(name));
  }

  drop(name) {
    this.spare.delete(name);
    try {
      localStorage.removeItem(this.prefix + name);
    } catch {
      // As above.
    }
  }

  // The answers still to be acknowledged, this window's and those of one that crashed, as they were
  // given: of two to one unit the later counts. Version 0.2 could leave flags to be withdrawn here.
  unsent() {
    const kept = this.under("answer:").filter((each) => !("withdraw" in each));
    return kept.sort((one, other) => (one.at ?? 0) - (other.at ?? 0));
  }

  // Those whose fate a page without the panel tells.
  waiting() {
    return this.unsent().map(({ submit_id: id, unit }) => ({ id, unit }));
  }

  // Where they wait, for a page that does not know whose they are: whoever has a link is known by it,
  // whoever logged in by this window.
  leaveNote({ name, by_link }) {
    try {
      const storage = by_link ? localStorage : sessionStorage;
      if (this.waiting().length + this.under("refused:").length > 0) storage.setItem(name, this.place);
      else storage.removeItem(name);
    } catch {
      // As above.
    }
  }

  // What is kept under names that begin so.
  under(beginning) {
    const names = this.names().filter((name) => name.startsWith(beginning));
    return names.map((name) => this.read(name)).filter((value) => value !== null);
  }

  names() {
    const names = new Set(this.spare.keys());
    try {
      for (const name of Object.keys(localStorage)) {
        if (name.startsWith(this.prefix)) names.add(name.slice(this.prefix.length));
      }
    } catch {
      // As above.
    }
    return [...names];
  }
}

function noteLeft({ name, by_link }) {
  try {
    return (by_link ? localStorage : sessionStorage).getItem(name);
  } catch {
    return null;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}

// randomUUID would need https; a study on a local network has plain http.
function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// Seconds that a unit has been in view; time in another tab or application window is left out.
class Clock {
  constructor(seconds = 0) {
    this.before = seconds;
    this.since = document.hidden ? null : performance.now();
  }

  tick() {
    this.before = this.seconds();
    this.since = document.hidden ? null : performance.now();
  }

  seconds() {
    const running = this.since === null ? 0 : (performance.now() - this.since) / 1000;
    return this.before + running;
  }
}
