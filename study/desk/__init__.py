"""The annotation desk: questions, tasks and claims handed to annotators, and their answers."""
