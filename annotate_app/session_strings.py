"""Every sentence of the pages before and after the labelling."""

from __future__ import annotations

PLACE = "Step {at} of {of}"
GO_ON = "Continue"

WELCOME_TITLE = "Before you begin"
WARNING = "Please note"

CONSENT_TITLE = "Your consent"
AGREE = "I agree and want to take part"
DISAGREE = "I do not agree"

OPTIONS = "The possible answers"
EXAMPLE = "Example: {text}"

FEEDBACK_TITLE = "Practice"
RIGHT = "That is right."
WRONG = "That is not right."
YOUR_ANSWER = "Your answer: {answer}"
RIGHT_ANSWER = "The right answer: {answer}"
OR = " or "
SKIPPED = "none, you skipped it"
WHAT_YOU_READ = "What you read"

COMPREHENSION_TITLE = "A few questions about the task"
COMPREHENSION_TEXT = "They show whether the task is clear. You have two chances."
COMPREHENSION_AGAIN = "Not every answer was right; {left} chance is left. Please answer all again."
CHECK = "Check my answers"
ANSWER_ALL = "Please answer every question."

BACKGROUND_TITLE = "About you"
BACKGROUND_TEXT = (
    "Every question is optional. Your answers are kept apart from your ratings and serve to see "
    "whether different people rate alike."
)
PREFER_NOT = "Prefer not to say"
NOT_ANSWERED = "No answer"
SKIP_ALL = "Skip these questions"

BACK_TO_PROLIFIC = "Return to Prolific"
CLOSE = "You can close this window."
ENDED = {
    "no_consent": (
        "Thank you",
        "You chose not to take part, and nothing more is asked of you.",
    ),
    "screened_out": (
        "Thank you for your time",
        "The answers show that the task is not clear enough to go on, so your part ends here. "
        "That is no fault of yours.",
    ),
    "returned": (
        "Your part has ended",
        "This submission was returned. What you have answered is kept; thank you.",
    ),
    "timed_out": (
        "Your part has ended",
        "The time for this submission is over. What you have answered is kept; thank you.",
    ),
    "rejected": ("Your part has ended", "This submission is closed."),
}
