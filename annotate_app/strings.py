"""Every sentence that an annotator reads and no rubric provides."""

from __future__ import annotations

PAGE_TITLE = "Annotation"

ENTRY_TITLE = "Annotation"
ENTRY_TEXT = (
    "Enter the rater code that you were given. You can stop at any time: "
    "with the same code you go on where you left off."
)
ENTRY_LABEL = "Rater code"
ENTRY_BUTTON = "Start"
ENTRY_EMPTY = "Please enter your rater code."

NO_STUDY = (
    "Name the folder of the study when you start the app: "
    "streamlit run annotate_app/app.py -- STUDY_DIR"
)

PANEL = {
    "rater": "Rater",
    "change_rater": "Change code",
    "keys": "Keys",
    "unit": "Unit {unit} of {total}",
    "progress": "{done} of {total} answered",
    "synthetic": "Synthetic study: responses or ratings in it are simulated.",
    "saved": "Saved",
    "waiting": "Saving",
    "offline": "Not saved yet: no answer from the server. Kept in this browser and sent again.",
    "failed": "Not saved: the server could not store it. Kept in this browser and sent again.",
    "guidelines": "Guidelines",
    "examples": "Examples",
    "submit": "Submit and go on",
    "choose_first": "Choose an answer first.",
    "elsewhere": "You have already answered this one in another window. What you chose here is not "
    "stored.",
    "already_labelled": "You had already answered this one in another window. The first answer "
    "counts; the one you just gave is not stored.",
    "unknown_task": "The study has changed and this answer is not stored.",
    "go_on": "Show the next one",
    "done_title": "All done",
    "done_text": "Every unit that was assigned to you has your answer. Thank you. "
    "You can close this window.",
    "nothing_title": "Nothing to do",
    "nothing_text": "No unit is assigned to this rater code at present. Please ask whoever gave "
    "you the code.",
    "sheet_title": "Keys",
    "sheet_choose_number": "Choose an answer by its place in the list",
    "sheet_choose_letter": "Choose an answer by its letter",
    "sheet_submit": "Submit and go on to the next unit",
    "sheet_help": "Show or close this list",
    "sheet_note": "Keys are off while you type in a field and together with Ctrl, Alt or Cmd.",
    "sheet_close": "Close",
}
