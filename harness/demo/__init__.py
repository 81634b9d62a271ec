"""The program that made the demos' prompts, responses and ratings, which evenhand ships as tables:
`python -m harness.demo FOLDER` writes them again (`data/README.md`).
"""
