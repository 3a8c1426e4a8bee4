"""Arithmetic that loses nothing, or next to nothing, for many groups at once.

Belongs here: sums and words of columns, which know no stream and no window.
"""
