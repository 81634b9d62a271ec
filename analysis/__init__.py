"""Agreement of human and model raters: pure functions over two tables, and over plain arrays.

`analyse` takes the two tables and gives the whole panel. The other functions give one statistic
each, on plain labels (units, raters) with declared categories:

>>> from analysis import krippendorff_alpha
>>> labels = [["yes", "yes"], ["no", "no"], ["yes", "no"], ["no", None]]
>>> found = krippendorff_alpha(labels, categories=["yes", "no"], level="nominal")
>>> round(found.estimate, 3), found.n
(0.444, 3)

Names are resolved on first use, so that importing the package loads no numerical library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.alternative_annotator import (
        AltTest,
    )
    from analysis.bias import (
        BiasSettings,
    )
    from analysis.decision_rule import (
        DecisionRule,
    )
    from analysis.decisions import (
        CeilingDifference,
        ProbabilityScores,
        TunedThreshold,
        human_ceiling,
        score_probabilities,
        tune_threshold,
    )
    from analysis.encoded import (
        Bootstrap,
    )
    from analysis.functions import (
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
    from analysis.generalizability import (
        d_study,
        g_study,
    )
    from analysis.latent_class import (
        DawidSkene,
    )
    from analysis.panel import (
        Analysis,
        analyse,
    )
    from analysis.planning import (
        Scenario,
        half_width,
        pass_chance,
        units_needed,
    )
    from analysis.procedures import (
        IntraRater,
        Majority,
        alt_test,
        dawid_skene,
        intra_rater,
        majority,
    )
    from analysis.rate_functions import (
        PredictionPowered,
        RoganGladen,
        ppi_plus_plus,
        rogan_gladen,
    )
    from analysis.results import (
        RESULTS_COLUMNS,
        RESULTS_KEY,
    )
    from analysis.sample_growth import (
        clusters_to_decide,
    )
    from analysis.sample_size import (
        KappaTest,
        cantor,
        donner_eliasziw,
    )
    from analysis.scale import (
        Scale,
    )
    from analysis.selection import (
        rank_graders,
    )
    from analysis.significance import (
        Homogeneity,
        benjamini_hochberg,
        holm,
        mcnemar_exact,
        mcnemar_mid_p,
        stuart_maxwell,
    )
    from analysis.verdicts import (
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
    "RESULTS_COLUMNS": "analysis.results",
    "RESULTS_KEY": "analysis.results",
    "Agreement": "analysis.functions",
    "AltTest": "analysis.alternative_annotator",
    "Analysis": "analysis.panel",
    "BiasSettings": "analysis.bias",
    "Bootstrap": "analysis.encoded",
    "CeilingDifference": "analysis.decisions",
    "DawidSkene": "analysis.latent_class",
    "DecisionRule": "analysis.decision_rule",
    "Homogeneity": "analysis.significance",
    "IntraRater": "analysis.procedures",
    "KappaTest": "analysis.sample_size",
    "Majority": "analysis.procedures",
    "ProbabilityScores": "analysis.decisions",
    "PredictionPowered": "analysis.rate_functions",
    "RoganGladen": "analysis.rate_functions",
    "Scale": "analysis.scale",
    "Scenario": "analysis.planning",
    "TunedThreshold": "analysis.decisions",
    "Verdict": "analysis.verdicts",
    "alt_test": "analysis.procedures",
    "analyse": "analysis.panel",
    "benjamini_hochberg": "analysis.significance",
    "brennan_prediger": "analysis.functions",
    "cantor": "analysis.sample_size",
    "clusters_to_decide": "analysis.sample_growth",
    "cohen_kappa": "analysis.functions",
    "confusion_matrix": "analysis.functions",
    "d_study": "analysis.generalizability",
    "dawid_skene": "analysis.procedures",
    "donner_eliasziw": "analysis.sample_size",
    "fleiss_kappa": "analysis.functions",
    "g_study": "analysis.generalizability",
    "gwet_ac1": "analysis.functions",
    "gwet_ac2": "analysis.functions",
    "half_width": "analysis.planning",
    "holm": "analysis.significance",
    "human_ceiling": "analysis.decisions",
    "intra_rater": "analysis.procedures",
    "krippendorff_alpha": "analysis.functions",
    "majority": "analysis.procedures",
    "mcnemar_exact": "analysis.significance",
    "mcnemar_mid_p": "analysis.significance",
    "observed_agreement": "analysis.functions",
    "pass_chance": "analysis.planning",
    "ppi_plus_plus": "analysis.rate_functions",
    "rank_graders": "analysis.selection",
    "score_probabilities": "analysis.decisions",
    "rogan_gladen": "analysis.rate_functions",
    "scott_pi": "analysis.functions",
    "specific_agreement": "analysis.functions",
    "stuart_maxwell": "analysis.significance",
    "tune_threshold": "analysis.decisions",
    "units_needed": "analysis.planning",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'analysis' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
