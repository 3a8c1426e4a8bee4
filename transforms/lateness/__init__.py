"""How late the rows of a stream come, and what that says of links, clocks and deliveries.

Belongs here: what was measured. What it means for the choice of a grace is `transforms.grace`.
"""
