"""Where windows lie, which rows fall into them, and the statistics of these.

Belongs here: grids, calendars, groups, readings. Which rows count and when a window is due is
`transforms.windows`; the columns of a published window are `transforms.aggregate`.
"""
