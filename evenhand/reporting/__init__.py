"""Reports, thresholds and quality of a study: the analysis applied to it, without a terminal."""
