"""Where the log of a run in this process goes: a file, so that the terminal stays readable.

Here belongs the logger that takes the place of Dagster's console. The events themselves are in the
instance, and the UI shows them.
"""

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import dagster as dg

FILE: Final = "file"
FORMAT: Final = "%(asctime)s %(levelname)s %(message)s"


@contextlib.contextmanager
def file_logger(path: Path) -> Iterator[dg.LoggerDefinition]:
    """Give the definition of a logger that appends to a file, open as long as the block runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file is made with the first line: a run that does nothing leaves none.
    with contextlib.closing(logging.FileHandler(path, delay=True)) as handler:
        handler.setFormatter(logging.Formatter(FORMAT))
        log = logging.Logger("lowwater", logging.DEBUG)  # noqa: LOG001 (of this run alone)
        log.addHandler(handler)
        yield dg.LoggerDefinition(lambda _: log, description=f"Appends to {path}.")
