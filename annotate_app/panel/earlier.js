// The list of all earlier answers, loaded as one scrolls.

class ListingPanel extends LookingPanel {
  openEarlier() {
    if (!this.answerable()) return;
    const { words } = this;
    const list = element("ol", { class: "past-list" });
    list.addEventListener("scroll", () => this.listMore());
    this.showDialog([
      heading(words.earlier),
      element("p", {}, words.earlier_text),
      element("p", { class: "past-found", role: "status" }, words.earlier_loading),
      list,
      element("form", { method: "dialog" }, button(words.sheet_close, "quiet")),
    ]);
    const sheet = this.find(".sheet");
    sheet.classList.add("earlier");
    sheet.onkeydown = (event) => this.onListKey(event);
    list.tabIndex = -1;
    list.focus();
    this.listEarlier(0);
  }

  listEarlier(start) {
    this.look("list", "", { start });
  }

  // A page of it is here; nobody waits for it where the dialog was closed.
  fillEarlier({ rows, start, found }) {
    const list = this.find(".past-list");
    if (!list || start !== (start && list.children.length)) return;
    const items = rows.map((row) => this.pastView(row));
    if (start) list.append(...items);
    else list.replaceChildren(...items);
    this.found = found;
    const some = filled(this.words.earlier_all, { count: found });
    this.find(".past-found").textContent = found ? some : this.words.earlier_none;
    if (start === 0) list.scrollTop = 0;
    this.listMore();
  }

  listMore() {
    const list = this.find(".past-list");
    const near = list.scrollTop + 2 * list.clientHeight >= list.scrollHeight;
    const loaded = list.children.length;
    if (near && loaded < this.found && !this.looking) this.listEarlier(loaded);
  }

  pastView(row) {
    const { words } = this;
    const answer = row.skipped ? filled(words.skipped, { reason: row.answer }) : row.answer;
    const at = row.at && timeOf(new Date(row.at), this.data.language);
    const part = (name, text) => element("span", { class: `past-${name}`, dir: "auto" }, text);
    const open = element(
      "button",
      { type: "button", class: "past" },
      part("number", filled(words.earlier_number, row)),
      part("answer", answer),
      element("time", { class: "past-time", datetime: row.at }, at),
      part("title", row.title),
      ...(row.flagged ? [part("flagged", words.earlier_flagged)] : []),
      ...row.excerpt.split("\n").map((side) => part("text", side)),
    );
    open.addEventListener("click", () => {
      this.find(".sheet").close();
      this.look("task", row.task);
    });
    return element("li", {}, open);
  }

  onListKey(event) {
    if (event.isComposing) return;
    const items = [...this.root.querySelectorAll(".past")];
    const at = items.indexOf(event.target);
    const within = at >= 0 || event.target.matches(".past-list");
    if (within && event.key === "ArrowDown") items[at + 1]?.focus();
    else if (at > 0 && event.key === "ArrowUp") items[at - 1].focus();
    else return;
    event.preventDefault();
  }

  // What the list was asked for is nobody's any more.
  leaveDialog() {
    const sheet = this.find(".sheet");
    if (!sheet.open) {
      sheet.classList.remove("earlier");
      sheet.onkeydown = null;
      sheet.replaceChildren();
      this.forgetList();
    }
    this.toTexts();
  }

  forgetList() {
    if (this.looking?.wish !== "list") return;
    this.looking = undefined;
    this.drawChip();
  }
}

// "now", "5 minutes ago", or the day and hour if that is longer ago.
function timeOf(when, language) {
  const minutes = Math.round((when - Date.now()) / 60_000);
  if (minutes < -59) return when.toLocaleString(language, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
  return new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(Math.min(minutes, 0), minutes < 0 ? "minute" : "second");
}
