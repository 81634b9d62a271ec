"""A study with another value of one setting, and the tests of settings that no report shows."""

from __future__ import annotations

import shutil
from pathlib import Path

from evenhand.study.settings.study_toml import change_config


def changed(folder: Path, to: Path, setting: str, value: object) -> Path:
    """A copy of the study with another value of one setting in its study.toml."""
    shutil.copytree(folder, to)
    section, _, key = setting.rpartition(".")
    text = (to / "study.toml").read_text("utf-8")
    if not section and not isinstance(value, dict):  # a key at the top
        lines = [line for line in text.splitlines() if not line.startswith(f"{setting} =")]
        written = str(value).lower() if isinstance(value, bool) else repr(value)
        (to / "study.toml").write_text("\n".join([f"{setting} = {written}", *lines]), "utf-8")
    elif isinstance(value, dict) and not section:
        change_config(to, {f"{setting}.{each}": inner for each, inner in value.items()})
    else:
        change_config(to, {section: {key: value}})
    return to


ELSEWHERE = {
    "analysis.overlap": (
        "analysis/people/test_selection.py",
        "test_overlap_declared_random_is_not_tested",
    ),
    "analysis.missing": ("evenhand/cli/test_exports.py", "test_an_import_leaves_codes_out"),
    "store": ("study/store/test_store.py", "test_postgresql_keeps_a_study_just_so"),
    "rewording.rubric": (
        "study/test_rewording.py",
        "test_each_unit_has_one_wording_for_all_and_each_rater_meets_both",
    ),
    "rewording.after": (
        "study/test_rewording.py",
        "test_a_trial_takes_pairs_that_nobody_was_given_and_adds_what_is_missing",
    ),
    "rewording.pairs": (
        "study/test_rewording.py",
        "test_a_trial_takes_pairs_that_nobody_was_given_and_adds_what_is_missing",
    ),
    "rewording.ended": (
        "study/test_rewording.py",
        "test_a_trial_that_has_ended_gives_out_no_more_of_its_units",
    ),
    "published": ("evenhand/cli/test_reproduce.py", "test_a_study_names_its_own_published_figures"),
    "annotation.lease_minutes": (
        "study/desk/test_answers.py",
        "test_a_lease_that_ran_out_frees_the_place_and_the_late_label_counts",
    ),
    "session.entry": (
        "study/access/test_admission.py",
        "test_an_invite_lets_in_the_rater_it_is_for_and_nobody_else",
    ),
    "session.hosts": (
        "annotate_app/test_session_cookie.py",
        "test_only_the_studys_own_names_are_answered",
    ),
    "session.pause_minutes": (
        "annotate_app/test_pace.py",
        "test_a_pause_is_offered_between_units_and_its_time_counts_for_none",
    ),
    **{
        f"session.{key}": ("study/desk/test_pace.py", "test_enough_for_a_day")
        for key in ("answers_per_day", "minutes_per_day")
    },
    "session.time_zone": (
        "study/desk/test_pace.py",
        "test_a_day_begins_at_midnight_where_the_study_says",
    ),
    "session.trusted_proxies": (
        "annotate_app/test_serving.py",
        "test_an_address_is_taken_from_a_trusted_proxy_alone",
    ),
    "session.idle_minutes": ("study/session/test_crowd.py", "test_times_leave_idle_time_out"),
    "consent.text": (
        "study/session/test_sessions.py",
        "test_who_agreed_to_another_text_is_asked_again",
    ),
    **{
        f"training.{key}": (
            "study/session/test_sessions.py",
            "test_the_pass_mark_must_be_reached_in_one_of_the_attempts",
        )
        for key in ("pass_mark", "attempts")
    },
    **{
        f"comprehension.{key}": (
            "study/session/test_sessions.py",
            "test_comprehension_has_two_chances",
        )
        for key in ("question", "options", "answer")
    },
    "comprehension.explanation": (
        "annotate_app/test_whole_sessions.py",
        "test_from_prolifics_link_to_the_completion_code",
    ),
    "background.questions": (
        "study/session/test_sessions.py",
        "test_background_answers_are_a_table_of_raters",
    ),
    "attention.file": (
        "study/desk/test_attention.py",
        "test_one_check_comes_in_every_stretch_at_a_place_that_the_key_draws",
    ),
    **{
        f"prolific.{key}": ("study/session/test_crowd.py", "test_links_to_and_from_prolific")
        for key in ("complete", "screened_out", "no_consent", "stopped", "nothing_left", "returned")
    },
    "annotation.language": ("annotate_app/test_languages.py", "test_the_study_says_what"),
    "annotation.languages": ("annotate_app/test_languages.py", "test_the_study_says_what"),
    "prolific.signed_for": (
        "study/access/test_signed_address.py",
        "test_who_prolific_signed_for_is_let_in_as_the_one_it_names",
    ),
    "prolific.signing_keys": (
        "study/access/test_signed_address.py",
        "test_a_new_key_is_asked_for_but_not_at_every_forged_token",
    ),
    "prolific.places": (
        "study/access/test_participants.py",
        "test_invented_participants_get_no_more_than_the_places",
    ),
    "prolific.free_again": (
        "study/access/test_participants.py",
        "test_a_place_is_free_again_only_as_the_study_says",
    ),
    **{
        f"pay.{key}": (
            "study/session/test_crowd.py",
            "test_times_say_how_each_part_ended_and_what_is_owed_for_it",
        )
        for key in ("complete", "currency", "screened_out", "nothing_left")
    },
    "pay.stopped": ("study/session/test_crowd.py", "test_who_is_stopped_is_paid_as_the_study_says"),
    **{
        f"oidc.{key}": (
            "annotate_app/test_single_sign_on.py",
            "test_a_lead_comes_in_and_what_let_them_in_ends_with_the_login",
        )
        for key in ("server_metadata_url", "client_id", "client_secret", "address", "label")
    },
    **{
        f"oidc.{key}": (
            "study/access/test_single_sign_on.py",
            "test_who_is_listed_comes_in_as_what_they_are_listed_as",
        )
        for key in ("leads", "experts")
    },
    **{
        f"providers.{key}": ("graders/test_providers.py", "test_a_provider_of_the_studys_own")
        for key in ("base_url", "key_env", "headers")
    },
    "providers.speaks": (
        "graders/test_providers.py",
        "test_a_provider_of_the_studys_own_that_speaks_as_claude_does",
    ),
    **{
        f"prices.{key}": ("graders/running/test_usage.py", "test_a_study_can_name_prices")
        for key in ("input", "output", "cache_read", "cache_write")
    },
    "same_text": ("evenhand/reporting/test_settings_in_force.py", "test_an_older_text_that"),
    "decision.drift_margin": (
        "evenhand/reporting/gate/test_baseline.py",
        "test_the_margin_is_frozen_with_the_labels_and_may_be_named_anew",
    ),
    "quality.stop": ("evenhand/reporting/test_settings_of_people.py", "test_only_the_flags_named"),
}
"""Setting -> the file under tests/ and the test that sees what it does."""
