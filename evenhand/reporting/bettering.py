"""A better grader, for the lead: what came of each candidate, where graders and people differ, and
the next step. Reads what `improve` kept; asks no model.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis.verdicts.ranking import Candidate
    from evenhand.study import Study

_EXAMPLE = "anthropic:claude-opus-5"
"""A grader in a command that names one for the user to replace."""
LEVEL = 0.025
"""Of each of the two bounds of a gain on the labels to choose on."""


@dataclass(frozen=True)
class NextMove:
    """The next step in a sentence, and the command that takes it: keys for models and the decision
    to spend are on the machine, not in a browser.
    """

    said: str
    command: str


def latest_end(study: Study, rubric: str) -> dict[str, Any] | None:
    """Return what came of the last run of `improve` on a rubric; None where there was none."""
    from evenhand.study.store.logs.improvements import ends_of

    own = [end for name, end in ends_of(study.store) if name == rubric]
    return own[-1] if own else None


def asked_anew(study: Study, rubric: str, end: Mapping[str, Any]) -> bool:
    """Return True if the rubric's text has changed since that run: its proof is of another text."""
    known = study.accepted_hashes().get(rubric, ())
    return bool(end.get("rubric_hash")) and end["rubric_hash"] not in known


def sorted_by_kind(study: Study, rubric: str) -> dict[str, Counter[str]]:
    """Count how the lead sorted disagreements with people, by grader and kind."""
    from evenhand.study.lead.disagreements import sorted_so_far

    found: dict[str, Counter[str]] = {}
    for each in sorted_so_far(study):
        if each.rubric == rubric:
            found.setdefault(each.grader, Counter())[each.kind] += 1
    return found


def errors_by_kind(study: Study, rubric: str, grader: str) -> tuple[pd.DataFrame, int]:
    """Count the units to learn from on which a grader's label is not that of most people: a row for
    each `people, grader` with `units`, and `clear`, those where all people agree; and how many
    units there are. Labels of the other parts are not read, so that nobody tunes to them.
    """
    import pandas as pd

    from evenhand.errors import InputError
    from evenhand.reporting.improving import ImproveOptions, Trial

    columns = ["people", "grader", "units", "clear"]
    try:
        trial = Trial(study, ImproveOptions(rubric=rubric, grader=grader))
        lessons = [each for each in trial.lessons(grader) if each.graded and each.majority]
    except InputError:  # too few labels to part, or no parts of such a rubric
        return pd.DataFrame(columns=columns), 0
    errors = [each for each in lessons if each.is_error]
    counts = Counter((each.majority, each.graded) for each in errors)
    clear = Counter((each.majority, each.graded) for each in errors if each.is_clear)
    rows = [(*kind, count, clear[kind]) for kind, count in counts.most_common()]
    return pd.DataFrame(rows, columns=columns), len(lessons)


def words_tried(study: Study, rubric: str) -> dict[str, str]:
    """Return the file of each candidate with words of its own, and where these come from, by its
    rater id.
    """
    from evenhand.rubrics.judge_prompt import own_prompt_of
    from evenhand.study.store.logs.improvements import candidates_of
    from evenhand.study.workspace import PROMPTS_FOLDER

    found = {}
    for rater, tried in candidates_of(study.store, rubric).items():
        if tried.has_own_text and (digits := own_prompt_of(rater)):
            for file in (study.folder / PROMPTS_FOLDER).glob(f"{digits}*.toml"):
                found[rater] = f"# {tried.origin}\n{file.read_text('utf-8')}"
    return found


def tried_table(study: Study, rubric: str, end: Mapping[str, Any]) -> pd.DataFrame:
    """Return a row for the old grader and for each candidate: `grader, origin, clusters, kappa` in
    the last round that it met, and `gain, low, high`, its gain in kappa over the old grader on the
    labels to choose on as they are now, with a 95% interval; NaN where that is not known.
    """
    import pandas as pd

    from evenhand.reporting.analysing import last_kappas
    from evenhand.study.store.logs.improvements import candidates_of

    tried, last = candidates_of(study.store, rubric), last_kappas(end)
    gains = _gains(study, rubric, end["old"], [name for name in last if name != end["old"]])
    rows = [
        {
            "grader": name,
            "origin": tried[name].origin if name in tried else written("improve.old"),
            "clusters": clusters,
            "kappa": math.nan if kappa is None else kappa,
            **gains.get(name, dict.fromkeys(("gain", "low", "high"), math.nan)),
        }
        for name, (kappa, clusters) in last.items()
    ]
    return pd.DataFrame(rows)


def _gains(
    study: Study, rubric: str, old: str, names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return each candidate's paired gain on *choose*. It is too high on average for the best."""
    from evenhand.analysis.verdicts.improvement import gain_between
    from evenhand.errors import InputError
    from evenhand.reporting.improving import ImproveOptions, Trial

    try:
        trial = Trial(study, ImproveOptions(rubric=rubric, grader=old))
    except InputError:  # settings changed since; what was kept is shown without gains
        return {}
    clusters, found = trial.clusters_in("choose"), {}
    for name in names:
        gain = gain_between(trial.labels_of([old, name], clusters), old, name, LEVEL)
        found[name] = {"gain": gain.estimate, "low": gain.low, "high": gain.high}
    return found


def next_move(
    study: Study, rubric: str, end: Mapping[str, Any] | None, ranking: Sequence[Candidate]
) -> NextMove | None:
    """Return the next step on a rubric; None where its best grader passes, or there is none."""
    from evenhand.analysis.verdicts.wording import PASSES
    from evenhand.reporting.improving import can_be_asked

    folder = str(study.folder)
    if end is not None and asked_anew(study, rubric, end):
        end = None
    if end is not None and end["outcome"] == "better" and end.get("command"):
        new = end["new"]
        if not _graded_all(study, rubric, new):
            return NextMove(written("better.grade_rest", new=new), end["command"])
        about = [folder, "--rubric", rubric, "--grader", new, "--file", f"{rubric}-grader.json"]
        said = written("better.freeze", new=new)
        return NextMove(said, shlex.join(["evenhand", "baseline", "save", *about]))
    best = ranking[0] if ranking else None
    if best is None or best.verdict["verdict"] in PASSES:
        return None
    if any(each.limit for each in ranking):
        command = ["evenhand", "rubric", "suggest", folder, "--rubric", rubric]
        return NextMove(written("better.mend", rubric=rubric), shlex.join(command))
    hopes = [each.verdict for each in ranking if each.verdict["promising"]]
    hopes = [each for each in hopes if each["more_clusters"] > 0]
    if end is None and hopes:  # as the report recommends
        first = min(hopes, key=lambda each: each["more_clusters"])
        count = str(first["more_clusters"])
        said = written("better.label_first", grader=first["grader"], more=count)
        return NextMove(said, shlex.join(["evenhand", "extend", folder, "--pairs", count]))
    grader = (end["old"] if end else best.verdict["grader"]).partition("#")[0]
    if end is not None and (more := _more_pairs(end)):
        said = written("better.label_more", more=more)
        return NextMove(said, shlex.join(["evenhand", "extend", folder, "--pairs", str(more)]))
    if not can_be_asked(study, grader):
        command = ["evenhand", "improve", folder, "--rubric", rubric, "--grader", grader]
        said = written("better.imported", grader=grader)
        return NextMove(said, shlex.join([*command, "--candidate", _EXAMPLE, "--dry-run"]))
    asked = (end or {}).get("asked") or ["--rubric", rubric, "--grader", grader]
    command = ["evenhand", "improve", folder, *asked]
    said = written("better.try_others" if end else "better.try_some", grader=grader)
    writes = [] if grader.startswith("baseline:") else ["--propose", "4"]
    return NextMove(said, shlex.join([*command, *writes, "--dry-run"]))


def _graded_all(study: Study, rubric: str, grader: str) -> bool:
    ratings = study.ratings()
    is_own = (ratings["rubric"] == rubric) & (ratings["rater_id"] == grader)
    units = study.rubric_units(study.rubrics[rubric], "all")
    return set(units) <= set(ratings.loc[is_own, "unit_id"])


def _more_pairs(end: Mapping[str, Any]) -> int | None:
    """Return how many further clusters, over all parts, would show a gain that lasts; None where
    none is likely, or no realistic number would.
    """
    from evenhand.analysis.planning.more_clusters import Bound, clusters_to_decide
    from evenhand.analysis.planning.parting import SHARES

    if end["outcome"] != "not_shown" or end.get("low") is None or not end["estimate"] > 0:
        return None
    level = end["level"]
    bound = Bound(end["low"], end["estimate"], end["high"], 0.0, level, level)
    more = clusters_to_decide(end["clusters"], [bound], 0)
    return None if more is None else math.ceil(more / SHARES["prove"])
