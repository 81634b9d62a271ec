"""The tools of the study's lead: adjudication, progress, people, importing ratings."""
