"""People whose labels deserve a second look: pace, runs, agreement with the others, drift."""
