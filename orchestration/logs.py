"""Where the log of a run in this process goes: a file, so that the terminal stays readable.

Here belongs the logger that takes the place of Dagster's console. The events themselves are in the
instance, and the UI shows them.
"""

import logging
from pathlib import Path

import dagster as dg

FILE = "file"
FORMAT = "%(asctime)s %(levelname)s %(message)s"


def file_logger(path: Path) -> dg.LoggerDefinition:
    """Return the definition of a logger that appends to a file."""

    def to_file(_: dg.InitLoggerContext) -> logging.Logger:
        path.parent.mkdir(parents=True, exist_ok=True)
        log = logging.Logger("lowwater", logging.DEBUG)  # noqa: LOG001 (of this run alone)
        # Opened with the first line, and anew by each job of a run; a handler of another job of
        # this process is not shared.
        handler = logging.FileHandler(path, delay=True)
        handler.setFormatter(logging.Formatter(FORMAT))
        log.addHandler(handler)
        return log

    return dg.LoggerDefinition(to_file, description=f"Appends to {path}.")
