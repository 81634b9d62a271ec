"""The report's pictures: one function per chart, from results rows to a Vega-Lite spec.

A spec is a plain dict, drawn into the page by `analysis.report.charts.svg` and by any other tool
that reads Vega-Lite. Every datum of a chart names its `row` of results.csv.
"""
