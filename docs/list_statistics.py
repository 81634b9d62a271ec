"""The page of every row of results.csv, as the table of statistics has them."""

from evenhand.analysis.statistics import VARIANTS, statistics


def rows_page() -> str:
    """Every statistic of results.csv: its name, what it says, its source, and why it is there."""
    lines = [
        "---\nhide: [toc]\n---\n",
        "# Every row of results.csv\n",
        "How each is computed, and when it is undefined: [statistics](../docs/statistics.md).\n",
        "| statistic | is | says | source | is there because |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, about in statistics().items():
        said = about.meaning.replace("|", "\\|")
        lines.append(f"| `{name}` | {about.name} | {said} | {about.source} | {about.why} |")
    lines += ["\n## Variants\n", "| a name with | is the statistic |", "| --- | --- |"]
    for affix, (_, words) in VARIANTS.items():
        lines.append(f"| `{affix}` | {words} |")
    return "\n".join(lines) + "\n"
