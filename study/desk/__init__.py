"""What an annotator is given and what becomes of the answer: dealing, tasks, claims, answers."""
