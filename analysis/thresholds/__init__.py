"""From probabilities to verdicts: thresholds, their uncertainty, and calibration."""
