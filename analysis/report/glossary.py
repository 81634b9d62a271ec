"""What each statistic is: its column heading, its name, one line, and the source."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GLOSSARY", "Entry", "entry_for"]


@dataclass(frozen=True)
class Entry:
    """`label` heads a column; `name` and `meaning` explain it; `source` is author and year."""

    label: str
    name: str
    meaning: str = ""
    source: str = ""


GLOSSARY: dict[str, Entry] = {
    "observed_agreement": Entry(
        "Agreement",
        "Observed agreement",
        "share of units with the same label; for a group, of pairs of labels on a unit",
    ),
    "cohen_kappa": Entry(
        "Cohen κ",
        "Cohen's kappa",
        "agreement beyond what the two raters' own category shares would bring by chance; "
        "for a group the mean over its pairs of raters",
        "Cohen 1960",
    ),
    "weighted_kappa_linear": Entry(
        "κ linear",
        "Kappa, linear weights",
        "kappa where a disagreement counts by its distance on the scale",
        "Cohen 1968",
    ),
    "weighted_kappa_quadratic": Entry(
        "κ quadratic",
        "Kappa, quadratic weights",
        "kappa where a disagreement counts by its squared distance on the scale",
        "Cohen 1968",
    ),
    "scott_pi": Entry(
        "Scott π",
        "Scott's pi",
        "as kappa, with chance from the raters' pooled category shares",
        "Scott 1955",
    ),
    "fleiss_kappa": Entry(
        "Fleiss κ",
        "Fleiss' kappa",
        "chance-corrected agreement of a group, for unequal numbers of raters too",
        "Fleiss 1971; Gwet 2014",
    ),
    "gwet_ac1": Entry(
        "AC1",
        "Gwet's AC1",
        "chance-corrected agreement that stays steady where one category prevails",
        "Gwet 2008; Gwet 2014",
    ),
    "gwet_ac2": Entry(
        "AC2", "Gwet's AC2", "AC1 with quadratic weights, for ordered categories", "Gwet 2014"
    ),
    "brennan_prediger": Entry(
        "PABAK",
        "Brennan-Prediger coefficient",
        "chance is one over the number of categories; with two categories this is PABAK",
        "Brennan & Prediger 1981",
    ),
    "krippendorff_alpha_nominal": Entry(
        "α nominal",
        "Krippendorff's alpha, nominal",
        "one less observed over expected disagreement, every disagreement alike",
        "Krippendorff 2011",
    ),
    "krippendorff_alpha_ordinal": Entry(
        "α ordinal",
        "Krippendorff's alpha, ordinal",
        "alpha with distances from the ranks of the labels in use",
        "Krippendorff 2011",
    ),
    "krippendorff_alpha_interval": Entry(
        "α interval",
        "Krippendorff's alpha, interval",
        "alpha with squared distances, taking steps of the scale for equal",
        "Krippendorff 2011",
    ),
    "prevalence_index": Entry(
        "Prevalence index",
        "Prevalence index",
        "affirmative less other verdicts, over all of them; far from 0, kappa is hard to read",
        "Byrt, Bishop & Carlin 1993",
    ),
    "bias_index": Entry(
        "Bias index",
        "Bias index",
        "how much more often one of two raters is affirmative than the other",
        "Byrt, Bishop & Carlin 1993",
    ),
    "prevalence": Entry("Share", "Prevalence", "share of labels in a category"),
    "coverage": Entry(
        "Coverage",
        "Coverage",
        "share of the units put to a rater that have a valid label; the rest is unscored",
    ),
    "observed_agreement_unscored_as_disagreement": Entry(
        "Agreement, unscored as disagreement",
        "Observed agreement, unscored as disagreement",
        "a grader's agreement with people if each unscored unit counted as a disagreement",
    ),
    "human_ceiling_difference": Entry(
        "Difference to people",
        "Difference to the human ceiling",
        "a grader's mean kappa with people less people's mean kappa with each other, on the same "
        "units and resamples (quadratic weights where categories are ordered)",
    ),
    "subject_score": Entry(
        "Score", "Subject score", "share of affirmative verdicts among a subject's units"
    ),
    "subject_rank": Entry(
        "Rank", "Subject rank", "a subject's place by score, 1 the highest; equal scores share it"
    ),
    "spearman": Entry(
        "Spearman ρ", "Spearman's rho", "correlation of ranks; exact p up to 9 subjects"
    ),
    "kendall": Entry(
        "Kendall τ-b", "Kendall's tau-b", "concordant less discordant pairs, corrected for ties"
    ),
    "pearson": Entry("Pearson r", "Pearson's r", "linear correlation of the scores"),
    "threshold": Entry(
        "Threshold",
        "Tuned threshold",
        "the probability from which a verdict is affirmative, chosen by an exact sweep",
    ),
    "cohen_kappa_at_threshold": Entry(
        "Cohen κ", "Kappa at a threshold", "kappa with the reference at this threshold"
    ),
    "observed_agreement_at_threshold": Entry(
        "Agreement", "Agreement at a threshold", "agreement with the reference at this threshold"
    ),
    "cohen_kappa_at_threshold_corrected": Entry(
        "κ, corrected",
        "Kappa at a tuned threshold, corrected",
        "less the optimism of having tuned on the same units, measured by bootstrap",
        "Efron & Tibshirani 1993",
    ),
    "observed_agreement_at_threshold_corrected": Entry(
        "Agreement, corrected",
        "Agreement at a tuned threshold, corrected",
        "less the optimism of having tuned on the same units, measured by bootstrap",
        "Efron & Tibshirani 1993",
    ),
    "pair_observed_agreement": Entry(
        "Agreement",
        "Observed agreement on pairs",
        "on the verdict of a pair, taken from the mean of its two responses",
    ),
    "pair_cohen_kappa": Entry(
        "Cohen κ",
        "Cohen's kappa on pairs",
        "on the verdict of a pair, taken from the mean of its two responses",
        "Cohen 1960",
    ),
    "alt_test_winning_rate": Entry(
        "Winning rate",
        "Alternative annotator test, winning rate",
        "share of people whom the grader could replace, given a handicap; a pass alone decides "
        "nothing here, since a constant grader can pass",
        "Calderon, Reichart & Dror 2025",
    ),
    "alt_test_advantage": Entry(
        "Advantage",
        "Alternative annotator test, advantage probability",
        "how often the grader fits the other people at least as well as the person it replaces",
        "Calderon, Reichart & Dror 2025",
    ),
    "kappa_difference": Entry(
        "κ difference",
        "Paired difference of two graders",
        "one grader's mean kappa with people less another's, in the same resamples",
    ),
    "mcnemar_p": Entry(
        "McNemar p",
        "McNemar's test",
        "whether two graders agree with the people's majority equally often",
        "McNemar 1947",
    ),
    "stuart_maxwell_p": Entry(
        "Stuart-Maxwell p",
        "Stuart-Maxwell test of marginal homogeneity",
        "whether two raters use the categories equally often",
        "Stuart 1955; Maxwell 1970",
    ),
    "specific_agreement": Entry(
        "Specific agreement",
        "Agreement on a category",
        "of the labels in a category, the share that the other rater repeats",
        "Dice 1945; Fleiss 1975",
    ),
    "confusion": Entry("Count", "Confusion", "units by the labels of two raters, first > second"),
    "consensus_ties": Entry("Ties", "Ties", "share of units without a majority among people"),
    "consensus_agreement": Entry(
        "Agreement with consensus",
        "Agreement with the consensus",
        "share of units labelled as people together; a person is left out of the own reference",
        "Dawid & Skene 1979 for the weighted consensus",
    ),
    "consensus_kappa": Entry(
        "κ with consensus",
        "Kappa with the consensus",
        "as before, beyond chance",
        "Cohen 1960",
    ),
    "dawid_skene_prevalence": Entry(
        "Latent share",
        "Latent share of a category",
        "share of units in a category, as the latent class model has it",
        "Dawid & Skene 1979",
    ),
    "dawid_skene_confusion": Entry(
        "Rate",
        "A rater's confusion",
        "how often a rater answers the second category where the model has the first",
        "Dawid & Skene 1979",
    ),
    "threshold_recommended": Entry(
        "Recommended",
        "Recommended threshold",
        "the tuned threshold where it wins held out, else the default; or the best one is not "
        "identifiable, and the default stays",
    ),
    "f1_at_threshold": Entry(
        "F1",
        "F1 at a threshold",
        "twice the units that both affirm, over all affirmations of either",
    ),
    "youden_at_threshold": Entry(
        "Youden",
        "Youden's index at a threshold",
        "sensitivity + specificity - 1 with the reference",
        "Youden 1950",
    ),
    "prevalence_match_at_threshold": Entry(
        "Match of shares",
        "Match of shares at a threshold",
        "1 less the distance between the grader's and the reference's share of affirmatives",
    ),
    **{
        f"{name}_at_threshold_corrected": Entry(
            f"{title}, corrected",
            f"{title} at a tuned threshold, corrected",
            "less the optimism of having tuned on the same units, measured by bootstrap",
            "Efron & Tibshirani 1993",
        )
        for name, title in (
            ("f1", "F1"),
            ("youden", "Youden's index"),
            ("prevalence_match", "Match of shares"),
        )
    },
    "threshold_curve_kappa": Entry(
        "Cohen κ", "Kappa along the thresholds", "kappa with the reference at each threshold"
    ),
    "threshold_curve_agreement": Entry(
        "Agreement",
        "Agreement along the thresholds",
        "agreement with the reference at each threshold",
    ),
    "human_ceiling_difference_held_out": Entry(
        "Difference to people, held out",
        "Difference to the human ceiling, threshold held out",
        "as the difference, each verdict by a threshold tuned on other clusters",
    ),
    "cohen_kappa_held_out": Entry(
        "Cohen κ, held out",
        "Kappa with people, threshold held out",
        "mean kappa with people, each verdict by a threshold tuned on other clusters",
    ),
    "brier": Entry(
        "Brier",
        "Brier score",
        "mean squared distance of the probability from the reference, 0 or 1; lower is better",
        "Brier 1950",
    ),
    "brier_skill": Entry(
        "Brier skill",
        "Brier skill",
        "1 less the Brier score over that of always stating the share of affirmatives",
    ),
    "ece": Entry(
        "ECE",
        "Expected calibration error",
        "mean distance of stated probability and share affirmative over ten bins of equal width",
        "Naeini, Cooper & Hauskrecht 2015",
    ),
    "brier_recalibrated": Entry(
        "Brier, recalibrated",
        "Brier score after recalibration",
        "with an isotonic curve that was fitted on other clusters",
        "Zadrozny & Elkan 2002",
    ),
    "ece_recalibrated": Entry(
        "ECE, recalibrated",
        "Calibration error after recalibration",
        "with an isotonic curve that was fitted on other clusters",
        "Zadrozny & Elkan 2002",
    ),
    "reliability": Entry(
        "Share affirmative",
        "Reliability",
        "share that the reference affirms among units with a probability in this bin",
    ),
    "reliability_probability": Entry(
        "Mean probability", "Mean probability", "mean probability of the units in this bin"
    ),
    "threshold_held_out_gain": Entry(
        "Held-out gain",
        "Gain of a tuned threshold, held out",
        "what tuning gains on pairs that were not tuned on",
    ),
    "intra_rater_agreement": Entry(
        "Agreement with oneself", "Intra-rater agreement", "share of repeats labelled alike"
    ),
    "intra_rater_kappa": Entry(
        "κ with oneself", "Intra-rater kappa", "kappa between a rater's repeats", "Cohen 1960"
    ),
    "rater_agreement": Entry(
        "Agreement with other people",
        "A person's agreement with the others",
        "share of pairs of labels, the person's and another's on one unit, that are alike",
        "Cochran 1977 for the interval",
    ),
    "rater_seconds_median": Entry(
        "Median time, s",
        "Time per label",
        "median seconds from seeing a unit to its label, pauses left out",
        "Conover 1999 for the interval",
    ),
    "rater_seconds_drift": Entry(
        "Time, second half to first",
        "Change of speed",
        "typical (geometric mean) time in the second half of a session over that in the first; "
        "below 1 the rater became faster",
        "Welch 1947 for the interval",
    ),
    "rater_agreement_drift": Entry(
        "Agreement, second half less first",
        "Change of agreement",
        "agreement with the other people in the second half of a session less that in the first",
        "Cochran 1977 for the interval",
    ),
    "rater_seconds_part": Entry(
        "Median time, s",
        "Time per label by part of the session",
        "as the time per label, in one part of equally many labels",
        "Conover 1999 for the interval",
    ),
    "rater_agreement_part": Entry(
        "Agreement with other people",
        "Agreement by part of the session",
        "share of pairs of labels, the rater's and another person's, that are alike, in one part",
        "Cochran 1977 for the interval",
    ),
    "disagreement": Entry(
        "Size",
        "Disagreement on a unit",
        "mean distance of the grader's label to people's, less people's from each other; 1 is the "
        "whole scale, or another category against all people",
    ),
    "disagreement_probability": Entry(
        "Probability", "A grader's probability on a unit", "that the affirmative verdict holds"
    ),
    "grades_attempted": Entry("Attempts", "Attempts", "how often a grader was asked"),
    "grades_scored": Entry("Scored", "Grades scored", "questions whose latest answer has a label"),
    "grades_unscored": Entry(
        "Unscored", "Grades unscored", "questions whose latest answer has no valid label"
    ),
    "tokens_input": Entry("Tokens in", "Tokens read", "in all attempts, cached ones included"),
    "tokens_output": Entry("Tokens out", "Tokens written", "in all attempts"),
    "cost_usd": Entry(
        "Cost, USD", "Cost in US dollars", "of all attempts, failed ones too, at listed prices"
    ),
    "price_per_1000_units": Entry(
        "USD per 1,000",
        "Price of 1,000 units",
        "what the grader's attempts cost, over the units that it was asked about",
    ),
    "ensemble_agreement": Entry(
        "Agreement",
        "Agreement of an ensemble, and of its members",
        "share of units labelled as people's majority, where all members have a label; the best "
        "single grader is chosen on other clusters than those it is judged on",
    ),
    "ensemble_kappa": Entry("κ", "Kappa of an ensemble", "as before, beyond chance", "Cohen 1960"),
    "ensemble_balanced_accuracy": Entry(
        "Balanced accuracy",
        "Balanced accuracy of an ensemble",
        "the mean, over people's categories, of the share that is labelled alike",
        "Brodersen et al. 2010",
    ),
    "ensemble_mean_kappa": Entry(
        "Mean κ with people", "Mean kappa of an ensemble", "the mean of the kappas with each person"
    ),
    "rate_human": Entry(
        "People, on their sample",
        "People's rate",
        "share of a subject's units that people's majority affirms",
    ),
    "rate_raw": Entry(
        "Raw", "Raw rate", "share of a subject's units that a grader affirms, on all it graded"
    ),
    "rate_rogan_gladen": Entry(
        "Rogan-Gladen",
        "Rate corrected by Rogan and Gladen",
        "(raw rate + specificity - 1) / (sensitivity + specificity - 1), error rates from all "
        "subjects together",
        "Rogan & Gladen 1978",
    ),
    "rate_ppi": Entry(
        "PPI++",
        "Rate by prediction-powered inference",
        "people's rate on the sample, plus a weight times the grader's rate elsewhere less its "
        "rate on the sample",
        "Angelopoulos et al. 2023",
    ),
    "rate_ppi_lambda": Entry(
        "Weight λ",
        "Weight of PPI++",
        "how much the grader is drawn on, from 0 (people's sample alone) to 1",
        "Angelopoulos et al. 2023",
    ),
    "sensitivity": Entry(
        "Sensitivity", "Sensitivity", "of what people affirm, the share that the grader affirms"
    ),
    "specificity": Entry(
        "Specificity", "Specificity", "of what people do not affirm, the share left unaffirmed too"
    ),
    "youden_j": Entry(
        "Youden J",
        "Youden's J",
        "sensitivity + specificity - 1: 0 where verdicts say nothing",
        "Youden 1950",
    ),
    "rogan_gladen_bias": Entry(
        "Bias of Rogan-Gladen",
        "Bias of pooled error rates",
        "on the labelled units, what that correction makes of a subject's rate less people's own",
    ),
    "rate_rank_raw": Entry("Raw", "Place by the raw rate", "1 is the highest rate"),
    "rate_rank_ppi": Entry("PPI++", "Place by the rate of PPI++", "1 is the highest rate"),
    "rate_order_kendall": Entry(
        "τ-b", "Order before and after", "Kendall's tau-b of raw rates and those of PPI++"
    ),
    "rate_order_flip": Entry(
        "Flips",
        "Flips by PPI++",
        "share of resamples in which the corrected rates of two neighbours stand the other way",
    ),
    "slice_difference": Entry(
        "Difference to the rest",
        "Difference of a slice to the rest",
        "a grader's agreement with people in a part of the units less that in the others",
        "Benjamini & Hochberg 1995 for many slices",
    ),
    "direction_net": Entry(
        "Net direction",
        "Net direction",
        "share of units on which the first side is favoured less the share on which the second is; "
        "on single responses, how much more often the first side's is affirmative",
    ),
    "direction_share": Entry(
        "Share to the first",
        "Direction share",
        "of the units on which a side is favoured, the share on which the first side is",
    ),
    "bias_side": Entry(
        "Side",
        "Side of the pair",
        "a grader's net direction less people's, which is scaled to how sharply the grader sees",
        "Spearman 1904 for the scaling",
    ),
    "bias_side_share": Entry(
        "Share difference",
        "Direction share, grader less people",
        "plain difference on the units that both called; it moves with mere noise too",
    ),
    "bias_side_errors": Entry(
        "Side of errors",
        "Errors to the first side less to the second",
        "share of the units on which most people favour neither side; exact and mid-p in the note",
        "McNemar 1947; Fagerland et al. 2013",
    ),
    "bias_order": Entry(
        "Order",
        "Order of presentation",
        "what being shown first gains a side, per unit read in both orders; p of the sign test",
    ),
    "bias_order_flips": Entry(
        "Flips", "Labels that differ between the two orders", "share of units read in both orders"
    ),
    "bias_order_first": Entry(
        "To the first shown",
        "Moves to the side shown first",
        "of the units whose favoured side moves with the order, the share that move to the first",
    ),
    "bias_length": Entry(
        "Length",
        "Length",
        "rise of a grader's calls with every doubling of the words, less people's, scaled",
    ),
    "bias_self_preference": Entry(
        "Self-preference",
        "Self-preference",
        "affirmative calls on subjects of the grader's own family less on others, and from that "
        "people's difference, scaled",
    ),
    "bias_rater_group": Entry(
        "Group of people",
        "Siding with one group of people",
        "mean kappa with the people of one group less that with the others",
    ),
    "bias_slice": Entry(
        "Slice",
        "Part of the sample",
        "affirmative calls in a part of the sample less in the rest, and from that people's "
        "difference, scaled",
        "Benjamini & Hochberg 1995 for many parts",
    ),
    "stability_fleiss_kappa": Entry(
        "Stability κ",
        "Stability",
        "Fleiss' kappa across the variants of a question, or across wordings of the rubric",
        "Feng et al. 2023",
    ),
    "stability_sd": Entry(
        "Mean SD",
        "Spread across variants",
        "mean over questions of the standard deviation of the label's place on the scale",
        "Feng et al. 2023",
    ),
    "group_balanced_accuracy": Entry(
        "Balanced accuracy",
        "Balanced accuracy by group",
        "mean recall of the categories, against the majority of people",
    ),
    "group_precision": Entry(
        "Precision", "Precision by group", "of what the grader calls so, the share that people do"
    ),
    "group_recall": Entry(
        "Recall", "Recall by group", "of what people call so, the share that the grader does"
    ),
    "group_kappa": Entry(
        "Cohen κ", "Kappa by group", "the grader's kappa with the majority of people", "Cohen 1960"
    ),
    "group_difference": Entry(
        "To the rest",
        "Difference to the rest",
        "the group's balanced accuracy less that of all other groups' units",
    ),
    "group_gap": Entry(
        "Gap",
        "Gap between groups",
        "best group's balanced accuracy less the worst one's, with an interval for all at once",
    ),
    "clear_share": Entry(
        "Clear", "Clear units", "share of units on which the majority of people sees a side"
    ),
    "clear_agreement": Entry(
        "On clear units",
        "Agreement on clear units",
        "share of the clear units on which the grader says what most people say",
        "Feng et al. 2023",
    ),
    "sorted_agreement": Entry(
        "On all units",
        "Agreement on all units",
        "the same on all units, unclear being a category of its own",
    ),
    "confidence_coverage": Entry(
        "Kept",
        "Coverage of a confidence cut",
        "of a grader's labels on units with a majority of people, the share that the cut keeps",
    ),
    "confidence_agreement": Entry(
        "Agreement of those kept",
        "Agreement above a confidence cut",
        "share of the kept labels that are what most people say",
        "Feng et al. 2023",
    ),
    "confidence_cut": Entry(
        "Chosen cut",
        "Chosen confidence cut",
        "the smallest cut whose kept labels reach the target agreement with people",
    ),
    "confidence_coverage_held_out": Entry(
        "Kept, held out",
        "Coverage of a confidence cut, held out",
        "as before, every cluster cut by what was chosen on other clusters",
    ),
    "confidence_agreement_held_out": Entry(
        "Agreement, held out",
        "Agreement above a confidence cut, held out",
        "as before, every cluster cut by what was chosen on other clusters",
    ),
    "mean_confidence": Entry(
        "Confidence",
        "Mean confidence",
        "the grader's probability of its likeliest category, where people see a side or none",
        "Feng et al. 2023",
    ),
}


def entry_for(statistic: str) -> Entry:
    """The entry of a statistic; one that has none goes by its own name.

    >>> entry_for("gwet_ac1").label, entry_for("some_new_index").name
    ('AC1', 'some new index')
    """
    plain = statistic.replace("_", " ")
    tested = GLOSSARY.get(statistic.removesuffix("_p"))
    if statistic not in GLOSSARY and tested:
        return Entry(f"{tested.label}, p", f"{tested.name}, corrected p")
    return GLOSSARY.get(statistic, Entry(plain, plain))
