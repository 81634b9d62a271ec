"""Small exports of other tools, each made by the tool itself: the files in tests/exchange/files
with ratings, and those in tests/exchange/items with texts to rate (in FOLDER/items).

`python -m harness.exports TOOL FOLDER`, with the Python of an environment that has the tool
installed. Each tool is a file with the function `make(folder)`. In each export something has to be
left out, such as a draft or a cancelled annotation.
"""

TOOLS = (
    "argilla", "braintrust", "by_hand", "datasets", "deepeval", "doccano", "inspect_ai",
    "label_studio", "langfuse", "langsmith", "lm_eval", "mlflow", "mt_bench",
    "openinference", "openpyxl", "opik", "phoenix", "potato", "prodigy",
    "promptfoo", "weave",
)  # fmt: skip
