"""Windows as they are against windows as they should be, and what became of dead letters.

Belongs here: judgements. The revisions that follow from them are `transforms.reconcile`.
"""
