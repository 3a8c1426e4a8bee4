"""The proof that two tables hold the same rows: canonical frames, cells, descent, verdicts, repair.

Belongs here: what a proof is, as values and as SQL text. Connections and tables are `assets`.
"""
