"""A new study from uploaded files: first a preview, then the study itself.

After a new input or click, Streamlit may end the present run of the page at most of its calls. So
the button *Create the study* only adds a request to the session's state. The next run draws the
form, and thus knows all fields; then `_carry_out` removes the request, and makes the study without
a call that may end the run. At its end, a run removes requests that it could not carry out, as when
a field is wrong. A preview stores nothing and needs no request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from evenhand.annotate_app.acts import present_outcomes, show_outcome
from evenhand.annotate_app.html_texts import drawn_blocks, heading, items, show, show_complaint
from evenhand.annotate_app.languages import ENGLISH
from evenhand.annotate_app.lead import parts
from evenhand.annotate_app.logins import place_of, require, root_address
from evenhand.annotate_app.sites import add_study, check_names, present_site, sites
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.reporting import new_study
from evenhand.reporting.new_study import ItemFile, StudyPreview
from evenhand.reporting.ratings_file.declared import ItemOptions, LabelOptions
from evenhand.reporting.workers import one_at_a_time, run_apart
from evenhand.rubrics import Rubric, load_rubric, named_rubrics, shipped_rubrics
from evenhand.study import Study, open_study
from evenhand.study.access import LINK_PARAMETER, Visitor, copy_access, new_link_token
from evenhand.study.creation import USUAL_SAMPLE, StudyPlan
from evenhand.study.lead.progress import SECONDS_TO_DECIDE, WORDS_PER_MINUTE
from evenhand.study.store.logs.decisions import note_act
from evenhand.study.workspace import RUBRICS_FOLDER
from evenhand.texts import written

Result = TypeVar("Result")

_MOST_SAMPLED, _MOST_RATERS = 100_000, 50
_KINDS, _ROLES = parts.WORDS["kinds"], parts.WORDS["roles"]
_FIELDS = parts.WORDS["fields"]
"""Titles of fields by the option of `evenhand label` to which they correspond."""
_ANSWERS, _ORDERS = parts.WORDS["answers"], parts.WORDS["orders_of_answers"]
_QUESTION, _LIBRARY, _FILE = "A question", "Library rubric", "Rubric file"
_MADE = "new_study_made"  # name of the act whose outcome is shown (see `acts`)
# Keys in the session's state: requests to create a study, files as read, and the file of items.
_REQUESTS, _READ_FILES, _UPLOAD = "new_study_requests", "new_study_files", "new_study_upload"
_Request = Literal["preview", "create"]
_Creation = tuple[Callable[..., StudyPreview], tuple[object, ...]]
"""A function and its arguments: `function(folder, *arguments)` makes the study in a folder."""


class _Form(NamedTuple):
    """A form as it is filled in."""

    needs: dict[str, object]  # what a study needs, by name; empty if missing
    read: Callable[[], AbstractContextManager[_Creation]]  # a context with the uploads as files


def show_new_study(study: Study) -> None:
    """Draw the form of a new study of items, of comparisons or of paired prompts."""
    who = require(study, "lead")
    st.text(written("lead.new_study"))
    # From the top: the fields; what the buttons did (a preview, an error, the new study); buttons.
    fields, bar = st.container(), st.container(key="in-view")
    with bar.container(key="offer"):
        try:
            with fields:
                name = st.text_input("Name of the study, and of its folder", autocomplete="off")
                if _has_address():
                    st.text(written("several.name_is_read"))
                label, title_of = "What annotators rate", _KINDS.__getitem__
                explained = list(parts.WORDS["kinds_explained"].values())
                kind = st.radio(label, _KINDS, format_func=title_of, captions=explained)
                st.header("Items", anchor=False)
                pairs, compared = kind == "pairs", kind == "compared"
                form = _ask_for_pairs(study) if pairs else _ask_for_items(study, who, compared)
            with bar, st.container(horizontal=True, vertical_alignment="center"):
                request = _ask_for_request({"a name": name, **form.needs})
            if request:
                with form.read() as creation:
                    _carry_out(study, who, request, name, creation)
        except InputError as error:
            _complain(str(error))
        show_outcome(_MADE)
    st.session_state.get(_REQUESTS, []).clear()  # those not carried out


def _ask_for_items(study: Study, who: Visitor, compared: bool) -> _Form:
    """Draw the form of a study of items; `compared`: each has two answers, to be compared."""
    label = "A table (one row per item, its texts in columns), or another tool's export"
    upload = st.file_uploader(label, parts.OF_TOOLS, key=_UPLOAD, max_upload_size=parts.MOST_MB)
    options, stratify = ItemOptions(), list[str]()
    if upload is not None:
        options, stratify = _ask_for_columns(upload, compared, who)
    st.header("Question", anchor=False)
    key, ways = f"asked-{compared}", (_QUESTION, _LIBRARY, _FILE)
    way = st.segmented_control("What annotators answer", ways, default=_QUESTION, key=key)
    options, rubric_file = _ask_for_rubric(study, options, way or _QUESTION, compared)
    sampling = _ask_for_sampling("Items to label", sample=None)

    @contextmanager
    def read_files() -> Iterator[_Creation]:
        with (
            parts.uploaded_files(parts.OF_TOOLS, items=upload) as files,
            parts.uploaded_files(["toml"], rubric=rubric_file) as rubrics,
            st.spinner("Reading the file"),
        ):
            names = [*options.rubric, *(str(path) for path in rubrics.values() if path)]
            values = vars(options) | sampling | {"rubric": names, "stratify": stratify}
            yield new_study.create_items, (files["items"], LabelOptions(**values))

    question = options.question or options.rubric or rubric_file
    return _Form({"a file of items": upload, "a question": question}, read_files)


def _ask_for_columns(
    upload: UploadedFile, compared: bool, who: Visitor
) -> tuple[ItemOptions, list[str]]:
    """Draw the roles of the file's columns and the fields that change them; return what is entered,
    and the columns whose shares the sample keeps. Raises InputError if the file cannot be read.
    """
    sheet = ""
    if upload.name.lower().endswith(".xlsx"):
        sheet = st.text_input(_FIELDS["sheet"], autocomplete="off").strip()
    fields = st.container()
    # The file is read twice: by the names of its columns alone, to fill the fields, then with what
    # is entered in them, to show the roles. Unless answers are compared, both times with a question
    # on one answer ("-" stands for it): without any, two columns could be read as two answers.
    plain_options = ItemOptions(sheet=sheet)
    if not compared:
        plain_options = replace(plain_options, question="-", options=("yes", "no"))
    by_names = _read_once(upload, plain_options, who)
    names = [name for name, _ in by_names.columns]
    key, as_named = f"{upload.file_id}-{compared}-{sheet}", "As the names say"

    def choose(field: str, placeholder: str, default: Sequence[str] = (), most: int = 0) -> Any:
        name, limit = f"{field}-{key}-{default}", most or None
        return st.multiselect(
            _FIELDS[field], names, default, key=name, placeholder=placeholder, max_selections=limit
        )

    title = "Columns, where their names do not say what they are"
    with fields, st.expander(title, expanded=bool(by_names.fault)):
        show = choose("show", "Choose the columns", by_names.show)
        subject = choose("subject", as_named, most=2 if compared else 1)
        title_by_name = dict(zip(names, names, strict=True))  # columns are shown by their names
        cluster = parts.choose_any(_FIELDS["cluster"], title_by_name, as_named, f"cluster-{key}")
        judge = parts.choose_any(  # a tool's file has judges that are no columns
            _FIELDS["judge"], title_by_name, "None", f"judge-{key}", accept_new_options=True
        )
        missing = st.text_input(_FIELDS["missing"], key=f"missing-{key}", autocomplete="off")
        each_turn = not compared and st.toggle(_FIELDS["each-turn"], key=f"turn-{key}")
        stratify = choose("stratify", "None")

    entered = ItemOptions(
        show=show if show != list(by_names.show) else (), subject=subject, cluster=cluster or "",
        judge=judge or "", missing=tuple(parts.split_list(missing)), sheet=sheet,
        each_turn=each_turn,
    )  # fmt: skip
    roles_entered = replace(  # turns change no column's role
        entered, question=plain_options.question, options=plain_options.options, each_turn=False
    )
    try:
        as_entered = _read_once(upload, roles_entered, who)
    except InputError as error:  # there are no labels of that judge
        as_entered = replace(by_names, fault=str(error))
    rows = [(name, text, _role_of(name, as_entered)) for name, text in as_entered.columns]
    titles = {"column": "Column", "text": "First row", "role": "Role"}
    parts.show_table(pd.DataFrame(rows, columns=list(titles)), "Role of each column", titles)
    for note in as_entered.notes:
        st.text(_in_page(note))
    if as_entered.fault:
        _complain(as_entered.fault)
    return entered, stratify


def _read_once(upload: UploadedFile, options: ItemOptions, who: Visitor) -> ItemFile:
    """Return the columns of the file, read once and kept with the last three others."""
    by_key: dict[str, ItemFile] = st.session_state.setdefault(_READ_FILES, {})
    key = f"{upload.file_id}-{options}"
    if key not in by_key:
        uploaded = parts.uploaded_files(parts.OF_TOOLS, items=upload)
        with uploaded as files, st.spinner("Reading the file"):
            contents = _run_guarded(who, new_study.look_at_items, files["items"], options)
        by_key = {**dict(list(by_key.items())[-3:]), key: contents}
        st.session_state[_READ_FILES] = by_key
    return by_key[key]


def _role_of(column: str, file: ItemFile) -> str:
    """Return the roles in which a column of the file is used, in words."""
    # `columns` is one name, which may have a comma, or several with commas between them.
    roles = [role for role, columns in file.roles if column in (columns, *columns.split(", "))]
    return ", ".join(_ROLES[role] for role in roles) or ("" if file.fault else "kept with the item")


def _ask_for_rubric(
    study: Study, options: ItemOptions, way: str, compared: bool
) -> tuple[ItemOptions, UploadedFile | None]:
    """Draw the fields of the question; return the options with what is entered, and the upload."""
    if way == _FILE:
        return options, st.file_uploader(_FIELDS["rubric-file"], ["toml"], max_upload_size=1)
    if way == _LIBRARY:
        unit = "comparison" if compared else "response"
        folder = study.folder / RUBRICS_FOLDER
        file_by_name = {name: str(folder / f"{name}.toml") for name in study.rubrics}
        by_name = {name: load_rubric(name) for name in named_rubrics()} | study.rubrics
        names = [name for name, rubric in by_name.items() if rubric.unit == unit]
        rubrics = [file_by_name.get(name, name) for name in _choose_rubrics(names, by_name)]
        return replace(options, rubric=rubrics), None
    question = st.text_input(_FIELDS["question"], autocomplete="off").strip()
    options = replace(options, question=question)
    if compared:
        steps = st.selectbox(_FIELDS["steps"], [2, 3, 5], index=1)
        return replace(options, steps=steps if question else None), None
    label, named = "Annotators choose", _ANSWERS.__getitem__
    kind = st.segmented_control(label, _ANSWERS, default="options", format_func=named, key="way")
    if kind == "scale":
        scale = st.text_input(_FIELDS["scale"], autocomplete="off", placeholder="1-5").strip()
        return replace(options, scale=scale), None
    example = "yes: Every statement is supported\nno: At least one is not"
    answers = st.text_area(_FIELDS["options"], height=130, placeholder=example)
    lines = [line.partition(":") for line in parts.split_list(answers, "\n")]
    names = [name.strip() for name, _, _ in lines]
    described = {name.strip(): text.strip() for name, _, text in lines if text.strip()}
    options = replace(options, options=names, descriptions=described, several=kind == "several")
    level: Any = ""
    if not options.several:
        level = st.selectbox(_FIELDS["level"], _ORDERS, format_func=_ORDERS.__getitem__)
    return replace(options, level=level or None), None


def _ask_for_pairs(study: Study) -> _Form:
    """Draw the form of a study of paired prompts."""
    by_name = {name: load_rubric(name) for name in shipped_rubrics()} | study.rubrics
    pairs = st.file_uploader("Pairs of prompts", parts.TABLES, max_upload_size=parts.MOST_MB)
    label, size = "Responses, if there are any yet", parts.MOST_MB
    responses = st.file_uploader(label, parts.TABLES, max_upload_size=size)
    st.header("Question", anchor=False)
    rubrics = _choose_rubrics(by_name, by_name)
    sampling = _ask_for_sampling("Pairs to label", sample=USUAL_SAMPLE)

    @contextmanager
    def read_files() -> Iterator[_Creation]:
        uploaded = parts.uploaded_files(pairs=pairs, responses=responses)
        with uploaded as files, st.spinner("Reading the files"):
            plan = StudyPlan(
                pairs=files["pairs"], responses=files["responses"],
                rubrics=[by_name[name] for name in rubrics], sample=sampling["sample"],
                raters_per_unit=sampling["raters"], seed=sampling["seed"],
            )  # fmt: skip
            yield new_study.create_and_preview, (plan,)

    return _Form({"a file of pairs": pairs, "a rubric": rubrics}, read_files)


def _choose_rubrics(names: Iterable[str], by_name: Mapping[str, Rubric]) -> list[str]:
    """Draw the choice of rubrics by their titles; return their names."""
    label, title_of = _FIELDS["rubric"], (lambda name: by_name[name].title)
    return st.multiselect(label, names, format_func=title_of, placeholder="Choose at least one")


def _ask_for_sampling(label: str, sample: int | None) -> dict[str, Any]:
    """Draw fields of the sample: its size, at first `sample`, annotators per item, and seed."""
    st.header("Sample", anchor=False)
    left, middle, right = st.columns(3)
    default_size = f"{USUAL_SAMPLE}, or all if fewer"
    return {
        "sample": left.number_input(label, 1, _MOST_SAMPLED, sample, placeholder=default_size),
        "raters": middle.number_input(_FIELDS["raters"], 1, _MOST_RATERS, value=3),
        "seed": right.number_input(_FIELDS["seed"], 0, 2**31 - 1, value=1),
    }


def _ask_for_request(needs: Mapping[str, object]) -> _Request | None:
    """Draw the buttons, which work once no need is empty; return what is requested, if anything."""
    requests: list[str] = st.session_state.setdefault(_REQUESTS, [])
    add_request = partial(requests.append, "create")
    missing = ", ".join(need for need, value in needs.items() if not value)
    label, is_off = "Create the study", bool(missing)
    st.button(label, key="create", type="primary", disabled=is_off, on_click=add_request)
    wants_preview = st.button("Preview", disabled=is_off)
    if missing:
        st.text(written("lead.new_needs", missing=missing))
    return "create" if requests else "preview" if wants_preview else None


def _carry_out(
    study: Study, who: Visitor, request: _Request, name: str, creation: _Creation
) -> None:
    """Draw a preview of the study, made in a temporary folder, or create it. Raises InputError if
    another study has the folder or the address.
    """
    create, arguments = creation
    if request == "preview":
        _show_preview(_run_guarded(who, new_study.preview_only, create, *arguments))
        return
    requests, outcomes = st.session_state[_REQUESTS], present_outcomes()
    requests.clear()  # first, so that no other run creates this study again
    folder = new_study.folder_next_to(study.folder, name.strip())
    if _has_address():
        check_names([*(site.folder.name for site in sites()), name.strip()])
    preview = _run_guarded(who, create, folder, *arguments)
    note_act(study.store, "study", about=folder.name, detail="", done_by=who.name)
    token, has_account = "", False
    if _has_address():
        with open_study(folder) as created:
            has_account = copy_access(study, created, who)
            token = new_link_token(created.store)
        add_study(folder)
    outcomes[_MADE] = partial(_show_created, folder.name, token, has_account, preview)


def _show_created(name: str, token: str, has_account: bool, preview: StudyPreview) -> None:
    """Draw where the new study is, with a link to it that holds the `token`, and its preview."""
    if token:
        parent_address = root_address().rstrip("/").rpartition("/")[0]
        st.text(written("several.opened", name=name, address=f"{parent_address}/{name}/"))
        if has_account:
            st.text(written("several.goes_along"))
        text = written("several.invite")
        link = f'<a href="../{name}/{place_of("Recruitment")}?{LINK_PARAMETER}={token}">{text}</a>'
        show(f'<p class="evenhand-way-in">{link}</p>')
    else:
        st.text(written("lead.new_written", name=name))
    _show_preview(preview)


def _show_preview(preview: StudyPreview) -> None:
    """Draw what annotators see first, what was read and sampled, and how much work it is."""
    if preview.first is not None:
        rubric, values = preview.first
        people = rubric.for_people(values)
        options = items((option.name, [option.description]) for option in rubric.kind.listed)
        blocks = drawn_blocks(people.blocks, ENGLISH, preview.markup)
        parts.show_annotator_view(heading(people.question) + blocks + options)
    for sentence in preview.read:
        st.text(_in_page(sentence))
    sizes = {"sampled": preview.sampled, "total": preview.total, "noun": preview.noun}
    st.text(written("lead.new_sampled", **sizes))
    if not preview.load:
        st.text(written("lead.new_no_responses"))
    else:
        columns = ("rubric", "units", "raters", "judgments", "hours")
        rows = [[getattr(work, name) for name in columns] for work in preview.load]
        parts.show_table(pd.DataFrame(rows, columns=columns), "Work", " ".join(columns))
        st.text(written("lead.new_hours", words=WORDS_PER_MINUTE, seconds=SECONDS_TO_DECIDE))
    for sentence in filter(None, (preview.display, *preview.precision, *preview.names)):
        st.text(_in_page(sentence))


def _run_guarded(who: Visitor, function: Callable[..., Result], *arguments: object) -> Result:
    """Run a function in a separate process, within limits and one at a time for each lead: a file
    that harms its reader does not affect the annotators.
    """
    with one_at_a_time(who.name):
        return run_apart(function, *arguments, is_limited=True)


def _has_address() -> bool:
    """Return True if a new study is served at once, under its name."""
    site = present_site()
    return site is not None and not site.alone


def _complain(complaint: str) -> None:
    """Draw an error that names the page's fields and the uploaded file."""
    file = getattr(st.session_state.get(_UPLOAD), "name", "")
    show_complaint(_in_page(re.sub(r"\bitems\.\w+", lambda match: file or match[0], complaint)))


def _in_page(sentence: str) -> str:
    """Return a sentence with the page's fields in place of options of the command line.

    >>> _in_page("name what annotators read with --show COLUMN,COLUMN")
    'name what annotators read with “Columns that annotators read, in this order”'
    """
    options = "|".join(sorted(_FIELDS, key=len, reverse=True))
    example = r"[A-Z]\w*(?:,[A-Z]\w*)*|\w+,\w+|\d-\d"  # COLUMN or COLUMN,COLUMN; a,b; 1-5
    pattern = rf"--({options})\b(?: (?:{example})(?!\w))?"
    return re.sub(pattern, lambda match: f"“{_FIELDS[match[1]]}”", sentence)
