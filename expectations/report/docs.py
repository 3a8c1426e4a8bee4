"""The Data Docs of Great Expectations, built from the validation results that are kept.

Here belongs their one writer, and how many results are kept. Their pages load styles from the
internet; the page of ``page`` does not, and says the same.
"""

import shutil
from pathlib import Path
from typing import Final

from expectations.suites.judge import DOCS, VALIDATIONS, context_of

# Newest validations kept of each suite; every partition keeps its own verdict besides.
KEPT: Final = 20


def build_docs(folder: Path) -> Path:
    """Prune old validation results, build the site anew, and return its first page."""
    prune(folder)
    shutil.rmtree(folder / DOCS, ignore_errors=True)
    context_of(folder).build_data_docs()
    return folder / DOCS / "index.html"


def prune(folder: Path) -> None:
    """Delete all but the newest validation results of each suite."""
    for suite in (folder / VALIDATIONS).glob("*/*"):
        runs = sorted(path for path in suite.iterdir() if path.is_dir())
        for run in runs[:-KEPT]:
            shutil.rmtree(run)
