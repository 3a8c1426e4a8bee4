"""From the bytes of a file to typed columns: lines, records, numbers, times.

Belongs here: what knows a format, a unit or a way of writing. What a row means for its stream is
`transforms.staging`.
"""
