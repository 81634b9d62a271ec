"""The study lead's and the experts' pages: the one part of the app that sees agreement and grades.

Nothing outside this package imports it, save the one line in `annotate_app.page` that hands a
visitor who asks for these pages over, and every page looks at the visitor's login itself.
"""
