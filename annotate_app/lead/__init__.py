"""The study lead's and the experts' pages: the one part of the app that sees agreement and grades.

Nothing outside this package imports it, save the one line in `annotate_app.entry` that hands over a
visitor whose login is valid, and every page checks that login itself.
"""
