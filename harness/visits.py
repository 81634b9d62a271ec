"""Visitors of the app in this process, without a browser: they read a page and fill in its fields.

The app is the real one, behind Starlette's test client. A visit speaks Streamlit's messages over
the page's socket, as `harness.sessions` does, and keeps all that the page shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from google.protobuf.json_format import MessageToDict
from starlette.testclient import TestClient
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.util import calc_hash

from evenhand.annotate_app.logins import place_of
from evenhand.annotate_app.routes import ANSWERS
from evenhand.study import open_study
from evenhand.study.access import new_link_token
from evenhand.texts import written
from harness.sessions import Session

Act = dict[str, Any] | str | Callable[["Visit"], object] | None
"""Fields to fill in, a button to press (or the one at a place of a form, as in `invite#1`), what
else is done with the visit, or None to have the page drawn."""
ORIGIN = "http://localhost"
COOKIE = "a" * 43
"""What a browser holds, under the name that `cookie_of` gives."""
_AUXILIARY = {
    *("formId", "labelVisibility", "hideAnchor", "wrap", "pageScriptHash", "flexContainer"),
    *("jsContent", "cssContent", "htmlContent", "allowEmpty", "selectAll", "enterToSubmit"),
    *("justify", "align", "acceptNewOptions", "deferredFileId", "format", "hasMin", "hasMax"),
}
"""Parts of elements that only Streamlit needs."""
_DRAWN = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:\+00:00|Z)?|(?<!\w)t?(?=\d*[a-f])[0-9a-f]{8,64}(?!\w)|"
    r"(?<=lead=)[\w.-]{9,}|\.?e[yJ]J?[\w-]{20}[\w.-]*|(?<=base64,)[\w+/=]+|(?<=invite=)[\w.-]+|"
    r"(?<=\br-)\w{10}"  # a code may be digits alone
)
"""What is read from a clock, drawn at random, a digest, or a picture."""
_MOST_OPTIONS = 100
_BLOCK = r"(?<=>)(?=<(?:tr|p|div|h\d|li|dt|dd|section|figure)\b)"
"""Where HTML goes on in a new line of a page's text."""


class Visit:
    """A page in one window, open until `close`; `shown` has its elements and blocks in order."""

    def __init__(self, client: TestClient, path: str, query: str = "", place: str = "") -> None:
        self.client, self.path, self.query, self.place = client, path, query, place
        self.shown: dict[tuple[int, ...], Any] = {}
        self.title, self.pages = "", list[str]()
        self.session, self._page, self._states = "", "", dict[str, WidgetState]()
        name = "evenhand_session" + path.replace("/", "_")
        self.headers = {"cookie": f"{name}={COOKIE}", "origin": ORIGIN}
        address = f"ws{ORIGIN.removeprefix('http')}{path}/_stcore/stream"
        subprotocols = ["streamlit"]
        self._stack = ExitStack()
        self._socket = self._stack.enter_context(
            client.websocket_connect(address, subprotocols, headers=self.headers)
        )
        self.run()

    def close(self) -> None:
        self._stack.close()

    def turn_to(self, title: str, query: str = "") -> Self:
        """Open another of the lead's pages, as a link with this query does."""
        self.place, self.query, self._states = place_of(title), query, {}
        self._page = calc_hash(self.place)
        return self.run()

    def run(self, *events: WidgetState) -> Self:
        """Have the page drawn with what is filled in, and with events that happen once."""
        message = BackMsg()
        asked = message.rerun_script
        asked.query_string, asked.page_script_hash = self.query, self._page
        asked.context_info.timezone = "UTC"
        asked.context_info.url = f"{ORIGIN}{self.path}/{self.place}"
        asked.widget_states.widgets.extend([*self._states.values(), *events])
        asked.widget_states.SetInParent()
        self._socket.send_bytes(message.SerializeToString())
        while not self._is_finished(ForwardMsg.FromString(self._socket.receive_bytes())):
            pass
        return self

    def _is_finished(self, message: ForwardMsg) -> bool:
        match message.WhichOneof("type"):
            case "new_session":
                self._page, self.shown = message.new_session.page_script_hash, {}
                self.session = message.new_session.initialize.session_id
            case "navigation":
                self._page = message.navigation.page_script_hash
                pages = message.navigation.app_pages
                self.pages = [page.page_name for page in pages if not page.is_hidden]
            case "page_config_changed":
                self.title = message.page_config_changed.title or self.title
            case "page_info_changed":
                self.query = message.page_info_changed.query_string
            case "delta":
                path = tuple(message.metadata.delta_path)
                if message.delta.WhichOneof("type") == "add_block":
                    self.shown = {
                        at: it for at, it in self.shown.items() if at[: len(path)] != path
                    }
                self.shown[path] = message.delta
            case "script_finished":
                return message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN
        return False

    # ---- what is shown ----

    def elements(self) -> Iterator[tuple[bool, str, str, dict[str, Any]]]:
        """Yield what is on the page: is it in the sidebar, its kind, its identity, its parts."""
        for path, delta in sorted(self.shown.items()):
            outer = getattr(delta, delta.WhichOneof("type"))
            kind = outer.WhichOneof("type") or "block"
            parts = MessageToDict(outer if kind == "block" else getattr(outer, kind))
            identity = parts.pop("id", "") or getattr(outer, "id", "") or parts.get("formId", "")
            parts = {name: part for name, part in parts.items() if not name.endswith("Config")}
            yield path[0] == 1, kind, identity, parts

    def text(self, *, sidebar: bool = False) -> str:
        """Return the page as lines of text, without what is drawn at random, and without the line
        that tells how far the figures are.
        """
        frame = [f"title: {self.title}", f"pages: {', '.join(self.pages)}", f"query: {self.query}"]
        lines = frame if sidebar else []
        for is_aside, kind, identity, parts in self.elements():
            if is_aside and not sidebar:
                continue
            shown = {name: part for name, part in parts.items() if name not in _AUXILIARY}
            content = str(shown.pop("body", ""))
            if len(shown.get("options", ())) > _MOST_OPTIONS:  # as many as this machine knows
                shown |= {"options": "many", "default": shown["options"][shown["default"]]}
            if kind == "bidi_component":
                data = json.loads(shown.get("json", "0"))
                if kept := data and data.get("panel", {}).get("kept"):  # in no order
                    parts_kept = (json.dumps(kept[name], sort_keys=True) for name in kept)
                    data["panel"]["kept"] = sorted(_DRAWN.sub("~", part) for part in parts_kept)
                shown = {"of": shown["componentName"], "data": data}
            if shown and shown != {"direction": "VERTICAL"}:
                content += f" {json.dumps(shown, ensure_ascii=False)}"
            if not content and (kind, key_of(identity)) == ("flex_container", ""):
                continue
            content = re.sub(r"<style>.*?</style>", "", content, flags=re.DOTALL)
            content = re.sub(_BLOCK, "\n", content)
            head = f"{kind} {key_of(identity)}".strip()
            lines += f"{head}: {content}".replace("\n", "\n  ").splitlines()
        making = written("lead.making", stage="", seconds=0)[:9]
        texts = (_DRAWN.sub("~", line).rstrip() for line in lines if making not in line)
        return "".join(f"{text}\n" for text in texts)

    @property
    def headings(self) -> list[str]:
        """The headings on the page, in order."""
        return [parts["body"] for _, kind, _, parts in self.elements() if kind == "heading"]

    # ---- what is done ----

    def field(self, name: str) -> tuple[str, str, dict[str, Any]]:
        """Return kind, identity and parts of the only field or button with this key or label."""
        fields = [
            (kind, identity, parts)
            for _, kind, identity, parts in self.elements()
            if identity and kind not in ("block", "form")
        ]
        matches = [field for field in fields if name in (key_of(field[1]), field[2].get("label"))]
        if not matches:
            matches = [field for field in fields if field[1].endswith(f".{name.lstrip('.')}")]
        if len(matches) != 1:
            names = [key_of(identity) for _, identity, _ in fields]
            raise LookupError(f"{len(matches)} fields are called {name!r} among {names}")
        return matches[0]

    def fill(self, values: Mapping[str, Any]) -> Self:
        """Fill in fields by their keys or labels, without drawing the page. Options may be named by
        their places.
        """
        for name, value in values.items():
            kind, identity, parts = self.field(name)
            state = WidgetState(id=identity)
            options: list[str] = [
                option["content"] if isinstance(option, dict) else option
                for option in parts.get("options", ())
            ]
            given = value if isinstance(value, list) else [value]
            chosen = [
                options[choice] if options and isinstance(choice, int) else choice
                for choice in given
            ]
            match kind:
                case "checkbox" | "expandable":
                    state.bool_value = value
                case "number_input":
                    state.double_value = value
                case "multiselect" | "button_group":
                    state.string_array_value.data.extend(chosen)
                case "selectbox" | "radio":
                    state.string_value = chosen[0]
                case _:
                    state.string_value = value
            self._states[identity] = state
        return self

    def press(self, name: str, place: int = 0) -> Self:
        """Press the button with this key or label, or the one at this place in the form."""
        return self.run(self.event(name, place))

    def event(self, name: str, place: int = 0) -> WidgetState:
        """Return the event of pressing a button."""
        buttons = [
            identity
            for _, kind, identity, parts in self.elements()
            if kind == "button"
            and (
                name in (key_of(identity), parts.get("label"), parts.get("formId"))
                or parts.get("formId", "").endswith(f".{name}")
            )
        ]
        if len(buttons) <= place:
            raise LookupError(f"no button is called {name!r}")
        return WidgetState(id=buttons[place], trigger_value=True)

    def act(self, things: Sequence[Act], before: str = "") -> list[str]:
        """Do these things in order; return the lines that each shows anew, where the page had the
        text `before`.
        """
        news, seen = list[str](), {*before.splitlines()}
        for thing in things:
            match thing:
                case dict():
                    self.fill(thing)
                    continue
                case str():
                    button, _, place = thing.partition("#")
                    self.press(button, int(place or 0))
                case None:
                    self.run()
                case _:
                    thing(self)
            lines = self.text(sidebar=True).splitlines()
            news += [f"== {thing if isinstance(thing, str) else ''}".rstrip()]
            news += [line for line in lines if line not in seen]
            seen = {*lines}
        return news

    def answer(self, option: str) -> Self:
        """Answer the item in the panel, by its message, and have the page drawn anew."""
        drawn, session = self.data("evenhand_panel"), Session(0, "")
        session.take(drawn["panel"])
        answers = session.first_options(session.data["sheet"])
        message = {"answers": [answers[0] | {"option_key": option}]}
        content = json.dumps(message | {"practice": session.data["practice"]})
        headers = self.headers | {"x-evenhand-ticket": drawn["ticket"]}
        reply = self.client.post(f"{self.path}/{ANSWERS}", content=content, headers=headers)
        reply.raise_for_status()
        return self.run()

    def send(self, component: str, event: str, value: Any) -> Self:
        """Have a component of this name tell of an event."""
        (identity,) = (
            identity
            for _, kind, identity, parts in self.elements()
            if kind == "bidi_component" and parts["componentName"] == component
        )
        events = json.dumps([{"event": event, "value": value}])
        name = f"$$STREAMLIT_INTERNAL_KEY_{identity}__events"
        return self.run(WidgetState(id=name, json_trigger_value=events))

    def upload(self, name: str, file: str, content: bytes) -> Self:
        """Choose a file of this name in a field, as a browser sends it ahead of the next run."""
        _, identity, _ = self.field(name)
        token = self.client.get(f"{self.path}/_stcore/health").cookies["_streamlit_xsrf"]
        address = f"/_stcore/upload_file/{self.session}/{file}"
        cookies = f"{self.headers['cookie']}; _streamlit_xsrf={token}"
        headers = {"cookie": cookies, "x-xsrftoken": token}
        sent = self.client.put(
            f"{self.path}{address}", files={"file": (file, content)}, headers=headers
        )
        sent.raise_for_status()
        state = self._states.setdefault(identity, WidgetState(id=identity))
        added = state.file_uploader_state_value.uploaded_file_info.add()
        added.file_id, added.name, added.size = file, file, len(content)
        added.file_urls.file_id = file
        return self

    def download(self, name: str) -> bytes:
        """Return the file that the button with this label gives."""
        _, _, parts = self.field(name)
        message = BackMsg()
        request = message.backend_operation_request
        request.request_id, request.session_id = "1", self.session
        request.deferred_file.file_id = parts["deferredFileId"]
        self._socket.send_bytes(message.SerializeToString())
        answer = ForwardMsg()
        while answer.WhichOneof("type") != "backend_operation_response":
            answer = ForwardMsg.FromString(self._socket.receive_bytes())
        url = answer.backend_operation_response.deferred_file.url
        given = self.client.get(f"{self.path}{url}", headers=self.headers)
        given.raise_for_status()
        return given.content

    def data(self, component: str) -> Any:
        """Return what a component of this name was given."""
        (text,) = (
            parts["json"]
            for _, kind, _, parts in self.elements()
            if kind == "bidi_component" and parts["componentName"] == component
        )
        return json.loads(text)


def key_of(identity: str) -> str:
    """Return the key that the code gave a field, of its identity."""
    key = re.sub(r"^\$\$ID-[0-9a-f]{32}-", "", identity)
    return "" if key == "None" else key


def lead_query(folder: Path) -> str:
    """Return the query with which a lead comes in, once."""
    with open_study(folder) as study:
        return f"lead={new_link_token(study.store)}"
