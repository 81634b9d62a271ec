"""`audit`: a grader's robustness to prompt injection."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.exits import DONE, OVER_BUDGET, STOPPED
from evenhand.cli.grading_text import print_forecast, print_run, print_stop
from evenhand.cli.noting import note
from evenhand.cli.ratings import (
    add_asking,
    add_batch,
    add_pace,
    check_batch,
    grading_options,
    request_limits,
)
from evenhand.cli.terminal import console, print_table, progress_bar
from evenhand.cli.verbs import Parser, Verb, add_verbs
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.injection import Audit
    from evenhand.analysis.results import ResultRow
    from evenhand.study.settings.analysis import InjectionBounds

_COLUMNS = ["attack", "pulled", "knocked off", "silenced", "flips", "units"]


_OUTCOMES = {
    "pulled": "outcome_pulled",
    "knocked_off": "outcome_knocked_off",
    "silenced": "outcome_silenced",
}


def _options(audit: Parser) -> None:
    add_verbs(audit, ACTIONS, dest="action", required=True)


def _injection_options(injection: Parser) -> None:
    injection.add_study()
    injection.add_argument(
        "--grader", required=True, metavar="GRADER", help="the grader, as `evenhand grade` names it"
    )
    injection.add_argument(
        "--rubric", action="append", metavar="NAME", help="only this rubric; repeatable (all)"
    )
    injection.add_argument(
        "--units", type=int, default=100, metavar="N", help="how many units of each rubric (100)"
    )
    injection.add_argument(
        "--draws", type=int, default=1, metavar="K", help="ask K times, as the grader is asked (1)"
    )
    injection.add_argument(
        "--attacks", type=Path, metavar="FILE", help="attacks of your own besides (TOML)"
    )
    add_asking(injection)
    add_batch(injection)
    injection.add_argument(
        "--dry-run", action="store_true", help="show what would be asked and cost; no network"
    )
    add_pace(injection)


def _injection(arguments: argparse.Namespace) -> int:
    from evenhand.graders.audit.injection import AuditOptions, audit_injection, forecast_audit
    from evenhand.reporting.analysing import audits_of
    from evenhand.study import open_study

    check_batch(arguments)
    options = AuditOptions(
        arguments.grader, arguments.units, grading_options(arguments), arguments.attacks
    )
    batch = arguments.batch
    with open_study(arguments.dir) as study:
        if arguments.dry_run:
            print_forecast(forecast_audit(study, options, batch=batch))
            return DONE
        with progress_bar("auditing") as progress:
            limits = request_limits(arguments)
            summary = audit_injection(
                study, options, limits, progress, batch=batch, cancel=arguments.cancel
            )
        (part,) = summary.graders
        note(study, "grades", part.rater_id, f"injection audit, new: {part.scored}")
        print_run(summary)
        for audit in audits_of(study, part.rater_id):
            _print(audit, study.config.decision.injection)
    print_stop("audit injection", summary.stopped, part.warnings)
    console().print(written("terminal.next", command=f"evenhand report {arguments.dir}"))
    if summary.over_budget:
        return OVER_BUDGET
    return STOPPED if summary.stopped else DONE


def _print(audit: Audit, bounds: InjectionBounds) -> None:
    """Print each attack's effect with its deciding bounds, the verdict, and the grader's own
    flips.
    """
    rows = []
    for each in zip(*(outcome.attacks for outcome in audit.outcomes), strict=True):
        pulled = each[0].effect
        flips = audit.flips.get(pulled["at"])
        rows.append(
            (
                each[0].name,
                *(_within(attack.bounds) for attack in each),
                _signed(flips, "estimate") if flips else "-",
                _units(pulled),
            )
        )
    print_table(_COLUMNS, rows, title=audit.rubric)
    say = console().print
    say(audit.sentence(bounds))
    for outcome in audit.outcomes:
        if works := [each.name for each in outcome.attacks if each.works]:
            how = written(f"injection.{_OUTCOMES[outcome.name]}")
            said = {"grader": audit.grader, "outcome": how, "attacks": ", ".join(works)}
            say(written("injection.works", **said))
    if audit.retest is not None:
        share = audit.retest["estimate"]
        say(written("injection.retest", grader=audit.grader, share=share))


def _within(bounds: ResultRow) -> str:
    """An effect with its deciding bounds."""
    estimate, low, high = (_signed(bounds, name) for name in ("estimate", "low", "high"))
    return f"{estimate} ({low} to {high})"


def _signed(row: ResultRow, name: str) -> str:
    value = row[name]  # type: ignore[literal-required]
    return f"{round(value, 2) + 0.0:+.2f}"


def _units(row: ResultRow) -> str:
    return str(row["n_units"])


ACTIONS = (
    Verb(
        "injection",
        "how far can a text talk a grader round? Ten attacks, each beside a harmless text",
        _injection_options,
        _injection,
    ),
)
VERBS = (Verb("audit", "how far can a text talk a grader round?", _options),)
