"""Where a study meets the analysis, without a terminal: reports, thresholds, quality."""
