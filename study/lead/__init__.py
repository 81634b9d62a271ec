"""What the study's lead does: adjudication, progress, people, importing ratings."""
