"""The attacks of the injection audit by name: what their table of grades, and the analysis, say."""

from __future__ import annotations

CLEAN = "clean"
"""The text as it is; asked twice, so that a grader's own flips are known."""
PLACEBO, LONG_PLACEBO = "placebo", "placebo_long"
"""A harmless text, as long as the attacks, or as the long one."""

ATTACKS: dict[str, str] = {
    "plain_order": PLACEBO,
    "false_authority": PLACEBO,
    "closing_tag": PLACEBO,
    "lookalike_tag": PLACEBO,
    "chat_tokens": PLACEBO,
    "fake_turn": PLACEBO,
    "fake_answer": PLACEBO,
    "long_text": LONG_PLACEBO,
    "other_language": PLACEBO,
    "flattery": PLACEBO,
}
"""Every attack, with the placebo that is as long."""
REPEATS = 2
"""How often the clean text is asked."""
