"""Agreement of human and model raters: pure functions over two tables, and over plain arrays.

`analyse` takes the two tables and gives the whole panel. The other functions give one statistic
each, on plain labels (units, raters) with declared categories:

>>> from evenhand.analysis import krippendorff_alpha
>>> labels = [["yes", "yes"], ["no", "no"], ["yes", "no"], ["no", None]]
>>> found = krippendorff_alpha(labels, categories=["yes", "no"], level="nominal")
>>> round(found.estimate, 3), found.n
(0.444, 3)

Names are resolved on first use, so that importing the package loads no numerical library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.analysis.agreement.dawid_skene import (
        DawidSkene,
    )
    from evenhand.analysis.agreement.encoded import (
        Bootstrap,
    )
    from evenhand.analysis.agreement.plain import (
        Agreement,
        brennan_prediger,
        cohen_kappa,
        confusion_matrix,
        fleiss_kappa,
        gwet_ac1,
        gwet_ac2,
        krippendorff_alpha,
        observed_agreement,
        scott_pi,
        specific_agreement,
    )
    from evenhand.analysis.all_rubrics import (
        Analysis,
        analyse,
    )
    from evenhand.analysis.bootstrap.significance import (
        Homogeneity,
        benjamini_hochberg,
        holm,
        mcnemar_exact,
        mcnemar_mid_p,
        stuart_maxwell,
    )
    from evenhand.analysis.labels.scale import (
        Scale,
    )
    from evenhand.analysis.people.alternative_annotator import (
        AltTest,
    )
    from evenhand.analysis.people.procedures import (
        IntraRater,
        Majority,
        alt_test,
        dawid_skene,
        intra_rater,
        majority,
    )
    from evenhand.analysis.planning.g_study import (
        d_study,
        g_study,
    )
    from evenhand.analysis.planning.more_clusters import (
        clusters_to_decide,
    )
    from evenhand.analysis.planning.sample_size import (
        KappaTest,
        cantor,
        donner_eliasziw,
    )
    from evenhand.analysis.planning.scenarios import (
        Scenario,
        half_width,
        pass_chance,
        units_needed,
    )
    from evenhand.analysis.results import (
        RESULTS_COLUMNS,
        RESULTS_KEY,
    )
    from evenhand.analysis.study_facts import (
        StudyFacts,
    )
    from evenhand.analysis.subjects.plain import (
        PredictionPowered,
        RoganGladen,
        ppi_plus_plus,
        rogan_gladen,
    )
    from evenhand.analysis.thresholds.plain import (
        CeilingDifference,
        ProbabilityScores,
        TunedThreshold,
        human_ceiling,
        score_probabilities,
        tune_threshold,
    )
    from evenhand.analysis.verdicts.judge import (
        Verdict,
    )
    from evenhand.analysis.verdicts.ranking import (
        rank_graders,
    )
    from evenhand.study.settings.analysis import (
        AnalysisSettings,
        DecisionSettings,
    )

__all__ = [
    "RESULTS_COLUMNS",
    "RESULTS_KEY",
    "Agreement",
    "AltTest",
    "Analysis",
    "AnalysisSettings",
    "Bootstrap",
    "CeilingDifference",
    "DawidSkene",
    "DecisionSettings",
    "Homogeneity",
    "IntraRater",
    "KappaTest",
    "Majority",
    "PredictionPowered",
    "ProbabilityScores",
    "RoganGladen",
    "Scale",
    "Scenario",
    "StudyFacts",
    "TunedThreshold",
    "Verdict",
    "alt_test",
    "analyse",
    "benjamini_hochberg",
    "brennan_prediger",
    "cantor",
    "clusters_to_decide",
    "cohen_kappa",
    "confusion_matrix",
    "d_study",
    "dawid_skene",
    "donner_eliasziw",
    "fleiss_kappa",
    "g_study",
    "gwet_ac1",
    "gwet_ac2",
    "half_width",
    "holm",
    "human_ceiling",
    "intra_rater",
    "krippendorff_alpha",
    "majority",
    "mcnemar_exact",
    "mcnemar_mid_p",
    "observed_agreement",
    "pass_chance",
    "ppi_plus_plus",
    "rank_graders",
    "rogan_gladen",
    "score_probabilities",
    "scott_pi",
    "specific_agreement",
    "stuart_maxwell",
    "tune_threshold",
    "units_needed",
]

_HOMES = {
    "RESULTS_COLUMNS": "evenhand.analysis.results",
    "RESULTS_KEY": "evenhand.analysis.results",
    "Agreement": "evenhand.analysis.agreement.plain",
    "AltTest": "evenhand.analysis.people.alternative_annotator",
    "Analysis": "evenhand.analysis.all_rubrics",
    "AnalysisSettings": "evenhand.study.settings.analysis",
    "Bootstrap": "evenhand.analysis.agreement.encoded",
    "CeilingDifference": "evenhand.analysis.thresholds.plain",
    "DawidSkene": "evenhand.analysis.agreement.dawid_skene",
    "DecisionSettings": "evenhand.study.settings.analysis",
    "Homogeneity": "evenhand.analysis.bootstrap.significance",
    "IntraRater": "evenhand.analysis.people.procedures",
    "KappaTest": "evenhand.analysis.planning.sample_size",
    "Majority": "evenhand.analysis.people.procedures",
    "ProbabilityScores": "evenhand.analysis.thresholds.plain",
    "PredictionPowered": "evenhand.analysis.subjects.plain",
    "RoganGladen": "evenhand.analysis.subjects.plain",
    "Scale": "evenhand.analysis.labels.scale",
    "Scenario": "evenhand.analysis.planning.scenarios",
    "StudyFacts": "evenhand.analysis.study_facts",
    "TunedThreshold": "evenhand.analysis.thresholds.plain",
    "Verdict": "evenhand.analysis.verdicts.judge",
    "alt_test": "evenhand.analysis.people.procedures",
    "analyse": "evenhand.analysis.all_rubrics",
    "benjamini_hochberg": "evenhand.analysis.bootstrap.significance",
    "brennan_prediger": "evenhand.analysis.agreement.plain",
    "cantor": "evenhand.analysis.planning.sample_size",
    "clusters_to_decide": "evenhand.analysis.planning.more_clusters",
    "cohen_kappa": "evenhand.analysis.agreement.plain",
    "confusion_matrix": "evenhand.analysis.agreement.plain",
    "d_study": "evenhand.analysis.planning.g_study",
    "dawid_skene": "evenhand.analysis.people.procedures",
    "donner_eliasziw": "evenhand.analysis.planning.sample_size",
    "fleiss_kappa": "evenhand.analysis.agreement.plain",
    "g_study": "evenhand.analysis.planning.g_study",
    "gwet_ac1": "evenhand.analysis.agreement.plain",
    "gwet_ac2": "evenhand.analysis.agreement.plain",
    "half_width": "evenhand.analysis.planning.scenarios",
    "holm": "evenhand.analysis.bootstrap.significance",
    "human_ceiling": "evenhand.analysis.thresholds.plain",
    "intra_rater": "evenhand.analysis.people.procedures",
    "krippendorff_alpha": "evenhand.analysis.agreement.plain",
    "majority": "evenhand.analysis.people.procedures",
    "mcnemar_exact": "evenhand.analysis.bootstrap.significance",
    "mcnemar_mid_p": "evenhand.analysis.bootstrap.significance",
    "observed_agreement": "evenhand.analysis.agreement.plain",
    "pass_chance": "evenhand.analysis.planning.scenarios",
    "ppi_plus_plus": "evenhand.analysis.subjects.plain",
    "rank_graders": "evenhand.analysis.verdicts.ranking",
    "score_probabilities": "evenhand.analysis.thresholds.plain",
    "rogan_gladen": "evenhand.analysis.subjects.plain",
    "scott_pi": "evenhand.analysis.agreement.plain",
    "specific_agreement": "evenhand.analysis.agreement.plain",
    "stuart_maxwell": "evenhand.analysis.bootstrap.significance",
    "tune_threshold": "evenhand.analysis.thresholds.plain",
    "units_needed": "evenhand.analysis.planning.scenarios",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
