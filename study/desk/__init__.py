"""What an annotator is given and what becomes of the answer: questions, tasks, claims, answers."""
