"""What exists: thin Dagster assets, and in ``stores`` what they read and write.

How a stage works is in ``transforms``.
"""
