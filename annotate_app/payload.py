"""Data, ready for JSON, between the server and the panel, the component in which annotators label.

The panel gets a sheet (an item with its questions, each a task with an opaque id), the progress
and, where the rater looks back, earlier answers (`page_data`). It gets nothing that an annotator
must not know: no unit id (an item's), no subject, no order, no other rater's label. It sends
answers, flags, and wishes to look at an earlier item (`read_...`). What it already has is not sent
again (`lightened`). Its code is put together here, too. `language` is the language of the page.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from evenhand.annotate_app import text_trees
from evenhand.annotate_app.languages import ENGLISH, Language, Sentence, known_languages, offered
from evenhand.rubrics import TextBlock
from evenhand.rubrics.options import SEPARATOR
from evenhand.rubrics.rendering import Turn
from evenhand.study.desk import desk as desks
from evenhand.study.prompts.sampling import digest
from evenhand.study.tables.ratings import MOST_MARKS, read_marks, written_marks
from evenhand.texts import written

_LONGEST_ID = 128  # in characters, as the next two
_LONGEST_LABEL = 1000  # a set of options is all their keys
_LONGEST_TEXT = 4000
_LAST_START = 1_000_000  # place at which the list of earlier answers may begin
_LONGEST_SECONDS = 24 * 3600.0  # a longer time at an item is stored as this one
_IMPOSSIBLE_SECONDS = 1e12  # a number from here on, which may be too large for a float, is no time
_MOST_AT_ONCE = 100  # answers in a message at most. The panel sends those without a receipt again.

_LONGEST_LINE = 200  # characters of a text that is shown on one line
NO_RECEIPTS: Mapping[str, str] = {}
_FILLED_IN = ("items.title", "items.instructions_comparison")
"""Keys of texts that fill a rubric of which only the question is given: they are not shown."""


@dataclass(frozen=True)
class Navigation:
    """A request of the panel, a `wish`: "task" shows an earlier item (without an id the last one),
    "list" lists the earlier answers, with the item of `task_id` in view if any, "next" goes on.
    """

    nonce: str
    wish: str
    task_id: str = ""
    start: int = 0  # place of the first answer to list, from 0


@dataclass(frozen=True)
class PanelConfig:
    """Settings of the panel by the rater's step and way of entry: practice, words and links."""

    practice: bool = False
    words: Mapping[str, Sentence] = field(default_factory=dict)  # in place of the language's usual
    way_out: str = ""
    """Name of the way out that an annotator has, "change_rater" or "log_out"; "" for none."""
    finish: str = ""  # link to follow when nothing is left; sent only then
    resumes: str = ""  # time at which there is work again, if a day's work is done (ISO 8601)


def page_data(
    desk: desks.Desk,
    rater: str,
    receipts: Mapping[str, str] = NO_RECEIPTS,
    look: Navigation | None = None,
    read_config: Callable[[], PanelConfig] = PanelConfig,
    language: Language = ENGLISH,
) -> dict[str, Any]:
    """Return the data of all that the panel shows; `receipts`: statuses of what it sent, by id."""
    study = desk.study
    wish, task_id = (look.wish, look.task_id) if look else ("next", "")
    looks_back = wish == "task" or (wish == "list" and task_id != "")
    earlier = desk.reopen(rater, task_id) if looks_back else None
    sheet = earlier or desk.next_sheet(rater)
    ahead = desk.sheet_ahead(rater, sheet) if sheet and not earlier else None
    done, total = (sheet.done, sheet.total) if sheet else desk.progress(rater)
    annotation, display = study.config.annotation, study.config.annotation.display
    # Read last, so that the words for the end include an exclusion that came meanwhile.
    config = read_config()
    listed = desk.earlier(rater, look.start) if look and wish == "list" else None
    rows = [_earlier(row, language) for row in listed.rows] if listed else []
    return {
        "drafts": drafts_name(desk, rater, config.practice),
        "rater": rater,
        "practice": config.practice,
        "synthetic": study.config.synthetic,
        "language": language.code,
        "languages": {code: known.name for code, known in offered(annotation).items()},
        "words": language.part("panel") | dict(config.words),
        "way_out": config.way_out,
        "asks": {
            "confidence": [*language.part("confidence").values()] if annotation.confidence else [],
            "rationale": annotation.rationale,
            "skip": language.part("skip"),
            "flag": language.part("flag"),
        },
        "controls": language.part("controls") if annotation.show_controls else None,
        "progress": {"done": done, "total": total},
        "minutes": sheet.minutes if sheet else None,
        "pause_minutes": 0 if config.practice else study.config.session.pause_minutes,
        "receipts": dict(receipts),
        "flag_answers": [
            _flag(answered.reason, answered.text, language) | {"answer": answered.answer}
            for answered in desk.answers_to_flags(rater)
        ],
        "looked": look.nonce if look else "",
        "earlier": {"rows": rows, "start": listed.start, "found": listed.total} if listed else None,
        "sheet": _sheet(sheet, language, display, is_earlier=bool(earlier)) if sheet else None,
        "ahead": _sheet(ahead, language, display, is_earlier=False) if ahead else None,
        "resumes": "" if sheet else config.resumes,
        "finish": "" if sheet else config.finish,
    }


def read_sent(sent: Any) -> list[desks.Submission]:
    """Return the answers and flags in what a browser sent. Anything else is left out."""
    return [read for entry in _entries(sent) if (read := _submission(entry)) is not None]


def read_states(sent: Any) -> dict[str, str]:
    """Return the state of the study in which each answer's item was shown, by submit id."""
    states = {}
    for entry in _entries(sent):
        match entry:
            case {"submit_id": str(submit_id), "study_state": str(state)}:
                states[submit_id] = state
    return states


def unread_ids(sent: Any) -> list[str]:
    """Return the submit ids of what `read_sent` leaves out: the panel must not send it again."""
    unread = [entry for entry in _entries(sent) if _submission(entry) is None]
    ids = [entry.get("submit_id") for entry in unread if isinstance(entry, dict)]
    return [submit_id for submit_id in ids if isinstance(submit_id, str) and _are_ids([submit_id])]


def _entries(sent: Any) -> list[Any]:
    """Return what may be the answers and flags in what a browser sent, each yet to be checked."""
    entries = sent.get("answers") if isinstance(sent, Mapping) else None
    return entries[:_MOST_AT_ONCE] if isinstance(entries, list) else []


def read_navigation(sent: Any) -> Navigation | None:
    """Return the panel's wish to look at an item or the list; None if it is not a valid one."""
    match sent:
        case {
            "nonce": str(nonce),
            "wish": "task" | "list" | "next" as wish,
            "task_id": str(task),
        } if _are_ids([nonce]) and (not task or _are_ids([task])):
            start = sent.get("start") if wish == "list" else 0
            is_valid = isinstance(start, int) and 0 <= start <= _LAST_START
            return Navigation(nonce, wish, task, int(start) if is_valid else 0)
    return None


def _submission(entry: Any) -> desks.Submission | None:
    """Return an entry as a flag or an answer; None if it is neither, or out of bounds."""
    match entry:
        case {
            "submit_id": str(submit_id),
            "task_id": str(task_id),
            "flag": str(reason),
            "text": str(text),
        } if _are_ids([submit_id, task_id, reason]):
            return desks.Flag(submit_id=submit_id, task_id=task_id, reason=reason, text=_note(text))
        case {
            "submit_id": str(submit_id),
            "task_id": str(task_id),
            "option_key": str(option_key),
            "skip_reason": str(skip_reason),
            "seconds": int() | float() as seconds,
            "edit": bool(edit),
            "confidence": None | int() as confidence,
            "rationale": str(rationale),
        } if (
            -_IMPOSSIBLE_SECONDS < seconds < _IMPOSSIBLE_SECONDS
            and _are_ids([submit_id, task_id])
            and (option_key or skip_reason)
            and (not skip_reason or _are_ids([skip_reason]))
            and (not option_key or _are_ids(option_key.split(SEPARATOR)))
            and len(option_key) <= _LONGEST_LABEL
            and not isinstance(confidence, bool)
            and confidence in (None, *desks.CONFIDENCE_LEVELS)
            and (evidence := read_marks(entry.get("evidence", []))) is not None
            and (display := entry.get("display", "")) in ("", *desks.DISPLAYS)  # "": older page
        ):
            language = entry.get("language")  # missing or unknown: the answer counts all the same
            is_known = isinstance(language, str) and language in known_languages()
            return desks.Answer(
                submit_id=submit_id,
                task_id=task_id,
                option_key=option_key,
                skip_reason=skip_reason,
                seconds=min(max(float(seconds), 0.0), _LONGEST_SECONDS),
                edit=edit,
                confidence=confidence,
                rationale=_note(rationale),
                language=language if is_known else "",
                display=display,
                evidence=evidence,
            )
    return None


def _are_ids(texts: Iterable[str]) -> bool:
    """Return True if all may be ids, or keys: not empty, short, without control characters."""
    return all(0 < len(text) <= _LONGEST_ID and text.isprintable() for text in texts)


def _note(text: str) -> str:
    """Return a free text, cut, and without what databases cannot store: lone surrogates, NUL."""
    return text.strip()[:_LONGEST_TEXT].encode("utf-8", "ignore").decode("utf-8").replace("\0", "")


def _sheet(
    sheet: desks.Sheet, language: Language, display: str, *, is_earlier: bool
) -> dict[str, Any]:
    """Return an item for the panel: its questions, and once each text that any of them needs."""
    blocks = {block.variable: block for task in sheet.tasks for block in task.people.blocks}
    first = sheet.tasks[0].stored_answer  # one confidence and rationale for all questions
    # Questions come before answers; blocks that a rubric declares keep their order.
    in_order = sorted(blocks.values(), key=lambda b: b.kind == "response" and b.declared is None)
    return {
        "id": "-".join(task.task_id for task in sheet.tasks),
        "language": language.code,
        "earlier": is_earlier,
        "number": sheet.number,
        "before": sheet.previous_task_id,
        "blocks": [_block(block, language, display) for block in in_order],
        "questions": [_question(task, language) for task in sheet.tasks],
        "confidence": first.confidence if first else None,
        "rationale": first.rationale if first else "",
        "flags": [_flag(flag.reason, flag.text, language) for flag in sheet.flags],
    }


def _flag(reason: str, text: str, language: Language) -> dict[str, Any]:
    return {"reason": language.part("flag").get(reason, ""), "text": text[:_LONGEST_LINE]}


def _question(task: desks.Task, language: Language) -> dict[str, Any]:
    """Return a rubric with the rater's answer to it, for the panel."""
    texts = task.people_in(language.code)
    rubric, evidence = task.rubric.in_language(language.code), {}
    # Links are drawn only if the lead wrote all of it: an item's text may be filled into it.
    is_as_written = texts.instructions == rubric.instructions
    instructions = own_words(texts.instructions)
    guide = text_trees.markdown_nodes(instructions, links=True) if is_as_written else None
    if task.rubric.evidence:
        marks = written_marks(task.stored_answer.evidence) if task.stored_answer else None
        evidence = {"ask": task.rubric.evidence, "most": MOST_MARKS, "given": marks}
    return {
        **({"evidence": evidence} if evidence else {}),
        "task": task.task_id,
        "lang": rubric.language,
        "wording": task.rubric.hash,
        "title": own_words(texts.title),
        "question": texts.question,
        "instructions": "" if guide else instructions,
        "guide": guide,
        "options": [
            option.model_dump(mode="json", include={"key", "name", "description", "examples"})
            for option in texts.kind.choices(language.say("several.none"))
        ],
        **texts.kind.widget(language.say),
        "given": _given(task),
    }


def own_words(text: str) -> str:
    """Return a rubric's text; "" if nobody wrote it (`_FILLED_IN`)."""
    return "" if text in map(written, _FILLED_IN) else text


def _given(task: desks.Task) -> dict[str, str] | None:
    """Return the answer that the rater gave before: an option, or a reason to skip the question."""
    if task.stored_answer is None:
        return None
    return {"option": task.stored_answer.option_key, "skip": task.stored_answer.skip_reason}


def _earlier(row: desks.EarlierAnswer, language: Language) -> dict[str, Any]:
    """Return a row of the list of earlier answers."""
    task = row.task
    given = _given(task) or {"option": "", "skip": ""}
    rubric = task.rubric.in_language(language.code)
    name = rubric.kind.name_of(given["option"], language.say("several.none"))
    return {
        "task": task.task_id,
        "number": row.number,
        "title": own_words(task.people_in(language.code).title)[:_LONGEST_LINE],
        "lang": rubric.language,
        "answer": str(name or language.part("skip").get(given["skip"], ""))[:_LONGEST_LINE],
        "skipped": bool(given["skip"]),
        "at": task.stored_answer.created_at if task.stored_answer else "",
        "flagged": row.flagged,
        "excerpt": row.excerpt,
    }


def _block(block: TextBlock, language: Language, display: str) -> dict[str, Any]:
    """Return a text for the panel. `tree` has the nodes of its Markdown; "plain" says that it is
    Markdown that cannot be drawn, so that its source is shown.
    """
    is_markdown = _is_markdown(block, display)
    tree = text_trees.markdown_nodes(block.text) if is_markdown else None
    text = language.say("panel.image_missing") if block.is_missing else block.text
    turns = [
        {"role": turn.role, "label": turn_label(turn, language), "text": turn.text}
        for turn in block.turns
    ]
    return {
        "name": block.variable,
        "label": block_label(block, language),
        "kind": block.kind,
        "code": _declared_kind(block) in ("code", "json"),
        **({"turns": turns} if turns else {}),
        **({"nodes": nodes} if (nodes := drawn_code(block, language)) else {}),
        **({"image": block.image.uri, "alt": block.image.alt} if block.image else {}),
        "side": block.side,
        "text": text,
        "tree": tree,
        "plain": is_markdown and tree is None and bool(block.text.strip()),
    }


def _declared_kind(block: TextBlock) -> str:
    return block.declared.kind if block.declared else ""


def _is_markdown(block: TextBlock, display: str) -> bool:
    """Return True if a rubric declares a text to be Markdown, or the study shows responses so."""
    if declared := _declared_kind(block):
        return declared == "markdown"
    return display == "markdown" and block.kind == "response"


def tree_of(block: TextBlock, display: str) -> tuple[text_trees.Node, ...] | None:
    """Return the nodes of a text that is drawn as Markdown; None for any other."""
    return text_trees.markdown_nodes(block.text) if _is_markdown(block, display) else None


def drawn_code(block: TextBlock, language: Language) -> tuple[text_trees.Node, ...] | None:
    """Return the nodes of passages, of code in colours, or of JSON that folds; None otherwise."""
    kind = _declared_kind(block)
    if block.declared and kind == "code" and block.declared.language:
        return text_trees.code_nodes(block.text, block.declared.language)
    heading = language.say("turn.passage", at="{at}", of="{of}")  # a template, to be filled in
    may_be_passages = block.kind != "response" and kind in ("json", "")
    passages = text_trees.passage_nodes(block.text, heading) if may_be_passages else None
    return passages or (text_trees.json_nodes(block.text) if kind == "json" else None)


def turn_label(turn: Turn, language: Language) -> str:
    """Return the label above a turn: its role in the reader's words, and its name if it has one."""
    name = f" · {turn.name[:_LONGEST_LINE]}" if turn.name else ""
    return language.say(f"turn.{turn.role}") + name


def block_label(block: TextBlock, language: Language) -> str:
    """Return the label above a text: the rubric's own, or else the reader's word for it."""
    return block.label if block.declared else language.say(f"block.{block.variable}")


def drafts_name(desk: desks.Desk, rater: str, practice: bool = False) -> str:
    """Return the name under which a browser keeps a rater's drafts and unsent answers of a study.
    Raters who began before 0.3.0 keep an older name, which can be guessed: answers may wait there.
    """
    study = desk.study
    if not desk.has_early_task_ids(rater):
        return digest(study.blinding_key, "drafts", rater, "practice" if practice else "")[:16]
    owner = f"{study.folder.resolve()}\n{study.config.name}\n{study.config.seed}\n{rater}"
    return hashlib.sha256(owner.encode()).hexdigest()[:16]


# ---- data without what the browser has ----
# Words, rubrics and texts are parts, named by digests, that are sent once and kept by the browser.
# With each answer the browser lists the names of the parts that it has; these are not sent again.
# The server remembers none of this: a page that is drawn again gets all parts.

_DIGITS = 16  # hexadecimal, of a part's name
_MOST_NAMES = 64  # that a browser may list
_PAGE_PARTS = ("words", "asks", "controls")
_SHEETS = ("sheet", "ahead")
_ITEM_FIELDS = ("task", "given", "evidence")
"""Fields of a question that belong to the present item; the others are its rubric's."""


def lightened(data: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the data with names in place of parts; "kept" has the parts not `known` by name."""
    parts: dict[str, Any] = {}

    def name_of(part: Any) -> str:
        name = hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:_DIGITS]
        parts[name] = part
        return name

    def lightened_sheet(sheet: dict[str, Any]) -> dict[str, Any]:
        questions = []
        for question in sheet["questions"]:
            item_fields = {key: question[key] for key in _ITEM_FIELDS if key in question}
            rubric = {key: question[key] for key in question.keys() - item_fields.keys()}
            questions.append({**item_fields, "rubric": name_of(rubric)})
        return {**sheet, "questions": questions, "blocks": list(map(name_of, sheet["blocks"]))}

    light = {**data, **{key: name_of(data[key]) for key in _PAGE_PARTS}}
    light |= {key: lightened_sheet(data[key]) for key in _SHEETS if data[key]}
    light["kept"] = {name: part for name, part in parts.items() if name not in known}
    return light


def read_known(sent: Any) -> frozenset[str]:
    """Return the names of the parts that the browser lists as kept; none if it is no such list."""
    names = sent.get("has") if isinstance(sent, Mapping) else None
    listed = names[:_MOST_NAMES] if isinstance(names, list) else ()
    return frozenset(name for name in listed if isinstance(name, str) and len(name) == _DIGITS)


# ---- the panel's code ----
# The panel's code, style and markup are one file, a JavaScript module that a browser fetches once
# and keeps. Streamlit sends a component's inline code with every item; so the only inline code is
# the line that fetches this file.

_STYLE = (
    "panel.css", "texts.css", "dialogs.css", "copying.css", "narrow.css", "pause.css",
    "earlier.css", "flags.css",
)  # fmt: skip
# One module: the parts share its scope.
_CODE = (
    "line.js", "kept.js", "drafts.js", "view.js", "numbers.js", "several.js", "controls.js",
    "turns.js", "formulas.js", "markdown.js", "dialogs.js", "reading.js", "copying.js",
    "drawing.js", "differing.js", "ways.js", "finding.js", "keys.js", "flags.js", "looking.js",
    "earlier.js", "pause.js", "marks.js", "panel.js",
)  # fmt: skip


@cache
def panel_module() -> str:
    """Return the module: `MARKUP` and `STYLE` as strings, then the code."""
    style, code = ([f"panel/{name}" for name in names] for names in (_STYLE, _CODE))
    texts = {"MARKUP": app_files("panel/panel.html"), "STYLE": app_files(*style)}
    lines = [f"const {name} = {json.dumps(text)};" for name, text in texts.items()]
    lines.append(f"const TYPESETTER = new URL('{Path(typesetter()[0]).name}', import.meta.url);")
    return "\n".join([*lines, app_files(*code)])


@cache
def panel_path() -> str:
    """Return the path of the panel's module on the server; see `module_path`."""
    return module_path("panel", panel_module())


@cache
def typesetter() -> tuple[str, str]:
    """Return the path and text of Temml, which draws formulas; a page fetches it with the first."""
    text = app_files("panel/temml.min.js")
    return module_path("temml", text), text


def module_path(name: str, text: str) -> str:
    """Return a script's path, without a first slash; by its text, so that browsers may keep it."""
    return f"evenhand/{name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}.js"


def app_files(*names: str) -> str:
    """Return the app's own files of these names, one after the other."""
    return "\n".join((Path(__file__).parent / name).read_text("utf-8") for name in names)
