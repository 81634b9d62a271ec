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
    from evenhand.analysis.alternative_annotator import (
        AltTest,
    )
    from evenhand.analysis.bias import (
        BiasSettings,
    )
    from evenhand.analysis.decision_rule import (
        DecisionRule,
    )
    from evenhand.analysis.decisions import (
        CeilingDifference,
        ProbabilityScores,
        TunedThreshold,
        human_ceiling,
        score_probabilities,
        tune_threshold,
    )
    from evenhand.analysis.encoded import (
        Bootstrap,
    )
    from evenhand.analysis.functions import (
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
    from evenhand.analysis.generalizability import (
        d_study,
        g_study,
    )
    from evenhand.analysis.latent_class import (
        DawidSkene,
    )
    from evenhand.analysis.panel import (
        Analysis,
        analyse,
    )
    from evenhand.analysis.planning import (
        Scenario,
        half_width,
        pass_chance,
        units_needed,
    )
    from evenhand.analysis.procedures import (
        IntraRater,
        Majority,
        alt_test,
        dawid_skene,
        intra_rater,
        majority,
    )
    from evenhand.analysis.rate_functions import (
        PredictionPowered,
        RoganGladen,
        ppi_plus_plus,
        rogan_gladen,
    )
    from evenhand.analysis.results import (
        RESULTS_COLUMNS,
        RESULTS_KEY,
    )
    from evenhand.analysis.sample_growth import (
        clusters_to_decide,
    )
    from evenhand.analysis.sample_size import (
        KappaTest,
        cantor,
        donner_eliasziw,
    )
    from evenhand.analysis.scale import (
        Scale,
    )
    from evenhand.analysis.selection import (
        rank_graders,
    )
    from evenhand.analysis.significance import (
        Homogeneity,
        benjamini_hochberg,
        holm,
        mcnemar_exact,
        mcnemar_mid_p,
        stuart_maxwell,
    )
    from evenhand.analysis.verdicts import (
        Verdict,
    )

__all__ = [
    "RESULTS_COLUMNS",
    "RESULTS_KEY",
    "Agreement",
    "AltTest",
    "Analysis",
    "BiasSettings",
    "Bootstrap",
    "CeilingDifference",
    "DawidSkene",
    "DecisionRule",
    "Homogeneity",
    "IntraRater",
    "KappaTest",
    "Majority",
    "PredictionPowered",
    "ProbabilityScores",
    "RoganGladen",
    "Scale",
    "Scenario",
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
    "Agreement": "evenhand.analysis.functions",
    "AltTest": "evenhand.analysis.alternative_annotator",
    "Analysis": "evenhand.analysis.panel",
    "BiasSettings": "evenhand.analysis.bias",
    "Bootstrap": "evenhand.analysis.encoded",
    "CeilingDifference": "evenhand.analysis.decisions",
    "DawidSkene": "evenhand.analysis.latent_class",
    "DecisionRule": "evenhand.analysis.decision_rule",
    "Homogeneity": "evenhand.analysis.significance",
    "IntraRater": "evenhand.analysis.procedures",
    "KappaTest": "evenhand.analysis.sample_size",
    "Majority": "evenhand.analysis.procedures",
    "ProbabilityScores": "evenhand.analysis.decisions",
    "PredictionPowered": "evenhand.analysis.rate_functions",
    "RoganGladen": "evenhand.analysis.rate_functions",
    "Scale": "evenhand.analysis.scale",
    "Scenario": "evenhand.analysis.planning",
    "TunedThreshold": "evenhand.analysis.decisions",
    "Verdict": "evenhand.analysis.verdicts",
    "alt_test": "evenhand.analysis.procedures",
    "analyse": "evenhand.analysis.panel",
    "benjamini_hochberg": "evenhand.analysis.significance",
    "brennan_prediger": "evenhand.analysis.functions",
    "cantor": "evenhand.analysis.sample_size",
    "clusters_to_decide": "evenhand.analysis.sample_growth",
    "cohen_kappa": "evenhand.analysis.functions",
    "confusion_matrix": "evenhand.analysis.functions",
    "d_study": "evenhand.analysis.generalizability",
    "dawid_skene": "evenhand.analysis.procedures",
    "donner_eliasziw": "evenhand.analysis.sample_size",
    "fleiss_kappa": "evenhand.analysis.functions",
    "g_study": "evenhand.analysis.generalizability",
    "gwet_ac1": "evenhand.analysis.functions",
    "gwet_ac2": "evenhand.analysis.functions",
    "half_width": "evenhand.analysis.planning",
    "holm": "evenhand.analysis.significance",
    "human_ceiling": "evenhand.analysis.decisions",
    "intra_rater": "evenhand.analysis.procedures",
    "krippendorff_alpha": "evenhand.analysis.functions",
    "majority": "evenhand.analysis.procedures",
    "mcnemar_exact": "evenhand.analysis.significance",
    "mcnemar_mid_p": "evenhand.analysis.significance",
    "observed_agreement": "evenhand.analysis.functions",
    "pass_chance": "evenhand.analysis.planning",
    "ppi_plus_plus": "evenhand.analysis.rate_functions",
    "rank_graders": "evenhand.analysis.selection",
    "score_probabilities": "evenhand.analysis.decisions",
    "rogan_gladen": "evenhand.analysis.rate_functions",
    "scott_pi": "evenhand.analysis.functions",
    "specific_agreement": "evenhand.analysis.functions",
    "stuart_maxwell": "evenhand.analysis.significance",
    "tune_threshold": "evenhand.analysis.decisions",
    "units_needed": "evenhand.analysis.planning",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'analysis' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
