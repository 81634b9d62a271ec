"""Every sentence that an annotator reads and no rubric provides."""

from __future__ import annotations

PAGE_TITLE = "Annotation"
NO_ANSWER = (
    "No answer from the server. What you have sent is stored; this page goes on by itself as soon "
    "as there is an answer."
)

ENTRY_TITLE = "Annotation"
ENTRY_TEXT = (
    "Enter the rater code that you were given. You can stop at any time: "
    "with the same code you go on where you left off."
)
ENTRY_LABEL = "Rater code"
ENTRY_BUTTON = "Start"
ENTRY_EMPTY = "Please enter your rater code."

ENTRY_INVITE = "Please open this study by the link that you were given."
LOGIN_TITLE = "Log in with an account"
LOGIN_NAME = "Name"
LOGIN_PASSWORD = "Password"  # noqa: S105 - a label
LOGIN_BUTTON = "Log in"

NO_STUDY = (
    "Name the folder of the study when you start the app: "
    "streamlit run annotate_app/app.py -- STUDY_DIR"
)

CONFIDENCE = ["A guess", "Fairly sure", "Certain"]
"""From the lowest level to the highest."""

SKIP_REASONS = {
    "skipped_undecidable": "I cannot decide",
    "skipped_broken_text": "The text is broken or cut off",
    "skipped_language": "I do not read this language well enough",
    "skipped_distressing": "I would rather not read this",
    "skipped_other": "Another reason",
}

FLAG_REASONS = {
    "harmful": "Harmful or dangerous content",
    "personal_data": "Data of a real person",
    "broken_text": "The text is broken or cut off",
    "unclear_rubric": "The question does not fit this unit",
    "other": "Something else",
}

COPYING = {
    "code": "If the link does not open, enter this code at Prolific: {code}",
    "copy": "Copy the code",
    "copied": "Copied.",
    "marked": "The code is selected: press Ctrl + C, or Cmd + C on a Mac.",
}
"""The code at the end, which can be copied as text."""

PANEL = {
    "rater": "Rater",
    "change_rater": "Change code",
    "log_out": "",
    "new_code": "",
    "keys": "Keys",
    "unit": "Unit {unit} of {total}",
    "progress": "{done} of {total} answered",
    "practice": "Practice: after each answer you are told what would be right.",
    "synthetic": "Synthetic study: responses or ratings in it are simulated.",
    "saved": "Saved",
    "waiting": "Saving",
    "offline": "Not saved yet: no answer from the server. Kept in this browser and sent again.",
    "away": "The server does not answer. All your answers are saved; this page goes on by itself.",
    "failed": "Not saved: the server could not store it. Kept in this browser and sent again.",
    "guidelines": "Guidelines",
    "examples": "Examples",
    "confidence": "How sure are you? (optional)",
    "rationale": "Why? (optional)",
    "rationale_hint": "Ctrl + Enter submits, Esc leaves the field.",
    "submit": "Submit and go on",
    "change": "Save the change",
    "too_early": "Not taken: this unit had only just appeared. Read it, then choose.",
    "too_late": "Not taken: this unit was too long on its way. Please choose again.",
    "keys_wait": "One moment: the unit that you asked for is on its way.",
    "choose_first": "Choose an answer first.",
    "choose_all": "One question still needs an answer.",
    "elsewhere": "This one is no longer open to you: you have answered it in another window, or it "
    "went to someone else while you were away. What you chose here is not stored.",
    "edit_lost": "The connection was renewed and your earlier answer is unchanged.",
    "already_labelled": "You had already answered this one in another window. The first answer "
    "counts; the one you just gave is not stored.",
    "unknown_task": "The study has changed and this answer is not stored.",
    "go_on": "Show the next one",
    "back": "Back",
    "skip": "Skip",
    "flag": "Flag",
    "skip_title": "Skip this unit",
    "skip_text": "It is recorded as not answered, with your reason.",
    "flag_title": "Flag this unit",
    "flag_text": "The people who run the study see it. It changes nothing in your answer.",
    "reason": "Reason",
    "note": "Note (optional)",
    "skip_confirm": "Skip",
    "flag_confirm": "Send the flag",
    "cancel": "Cancel",
    "skipped": "Skipped: {reason}",
    "flagged": "Your flag is on its way. Go on with your answer.",
    "together": "Scroll together",
    "earlier": "Earlier answers",
    "earlier_text": "Choose one to change it. The history is kept; the latest answer counts.",
    "earlier_none": "There is none yet.",
    "editing": "You are changing an earlier answer.",
    "leave_editing": "Leave it as it is",
    "no_earlier": "There is no earlier answer.",
    "done_title": "All done",
    "done_text": "Every unit that was assigned to you has your answer. Thank you. "
    "You can close this window.",
    "nothing_title": "Nothing to do",
    "nothing_text": "No unit is assigned to this rater code at present. Please ask whoever gave "
    "you the code.",
    "finish": "Return to Prolific",
    **COPYING,
    "sheet_title": "Keys",
    "sheet_choose_number": "Choose an answer by its place in the list",
    "sheet_choose_letter": "Choose an answer by its letter",
    "sheet_confidence": "How sure you are: a guess, fairly sure, certain, no answer",
    "sheet_scroll": "Scroll the texts",
    "sheet_scroll_sides": "Scroll both sides at once. To scroll one text, click it or press Tab; "
    "Esc returns to both",
    "sheet_together": "Tie the two responses, so that one scrolls with the other; again: untie",
    "sheet_move": "To the question before or after",
    "sheet_submit": "Submit and go on to the next unit",
    "sheet_back": "Back to the last answer, to change it; again: further back",
    "sheet_skip": "Skip the question, with a reason",
    "sheet_flag": "Flag the unit, with a reason",
    "sheet_rationale": "To the field for your reasons",
    "sheet_escape": "Leave an earlier answer as it is",
    "sheet_help": "Show or close this list",
    "sheet_note": "Keys are off while you type in a field and together with Ctrl, Alt or Cmd.",
    "sheet_close": "Close",
}

NEW_CODE = {
    "new_code": "Nothing is answered under this code yet. If you have labelled here before, check "
    "how you wrote it; otherwise go on."
}
"""For who came by a code, until their first answer."""
LOG_OUT = {"change_rater": "", "log_out": "Log out"}
"""For who came by an account."""
NO_WAY_OUT = {"change_rater": ""}
"""For who came by a link: there is no code to change."""
PROLIFIC = NO_WAY_OUT | {
    "done_text": "Every unit that was assigned to you has your answer. Thank you. Use the link "
    "below to return to Prolific: it brings your completion code with it.",
    "nothing_title": "Nothing is left to do",
    "nothing_text": "Others have taken the last units. Thank you for coming. Use the link below to "
    "return to Prolific: it brings your completion code with it.",
}


def _end(title: str, text: str) -> dict[str, str]:
    """The words of the last screen, whether or not there was work before it."""
    return {"done_title": title, "nothing_title": title, "done_text": text, "nothing_text": text}


ENDED = {
    "": {},
    "paused": _end(
        "Paused",
        "The study is paused for now. Everything you answered is stored. "
        "Please come back later: with the same code you go on where you left off.",
    ),
    "excluded": _end(
        "Thank you",
        "Your part in this study is over. Everything you answered is stored. "
        "You can close this window; if you have a question, ask whoever gave you the code.",
    ),
}
"""The last screen where the lead has paused the study, or ended a rater's part in it."""
STOPPED_PROLIFIC = _end(
    "Thank you",
    "Your part in this study is over. Everything you answered is stored. Use the link below to "
    "return to Prolific: it brings your code with it.",
)
"""The same for a participant from Prolific, where the study has a code for it."""

LEAD_TITLE = "Leading a study"
LEAD_TEXT = (
    "For the study's lead and its experts. If you came to label, use the link you were given."
)
LEAD_NOT_YOURS = "this page is not open to your account"
