"""When and where: Dagster definitions, settings, jobs and the command line.

What exists is in ``assets``.
"""
