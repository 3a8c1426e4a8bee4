"""What holds for all jobs and assets alike, said once.

Here belong the executor, the tags of runs, and which notices of Dagster are not passed on. The one
backfill policy is ``ONE_RUN`` in ``assets.catalogue``.
"""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Final

import dagster as dg

# A process for each step costs seconds, and steps of one stream follow one another anyway.
EXECUTOR: Final = dg.in_process_executor

# How often a step waits for another writer or for a target that is out of reach; all else fails.
RETRIES: Final = 3
# A run whose process died is run again, where the instance allows it; one that failed is not.
CRASHES: Final = {"dagster/max_retries": "1", "dagster/retry_on_asset_or_op_failure": "false"}


def run_tags(stream: str) -> dict[str, str]:
    """Return the tags of every run of a stream; the instance lets one of them run at a time."""
    return {"stream": stream, **CRASHES}


@contextlib.contextmanager
def beta_parameters() -> Iterator[None]:
    """Use parameters that Dagster calls beta, knowingly: the version is pinned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        warnings.simplefilter("ignore", dg.PreviewWarning)
        yield
