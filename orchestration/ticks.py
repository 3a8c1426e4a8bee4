"""What schedules and sensors have in common: whether a stream is busy, and how a run is asked for.

Here belongs nothing that decides which partitions are run.
"""

from collections.abc import Sequence
from typing import Final

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from orchestration.ranges import range_tags

# Why a run was asked for, in words; shown with the run.
WHY: Final = "lowwater/why"
_LONGEST_TAG: Final = 250


def unfinished_run(instance: dg.DagsterInstance, job: str) -> dg.DagsterRun | None:
    """Return a run of a job that waits or is under way, if there is one."""
    runs = instance.get_runs(
        dg.RunsFilter(job_name=job, statuses=list(NOT_FINISHED_STATUSES)), limit=1
    )
    return runs[0] if runs else None


def request(job: str, partitions: Sequence[str], key: str, why: str) -> dg.RunRequest:
    """Ask for a run of a job over a range of partitions."""
    return dg.RunRequest(
        run_key=key,
        job_name=job,
        tags={**range_tags(partitions[0], partitions[-1]), WHY: why[:_LONGEST_TAG]},
    )


def named(first: str, last: str) -> str:
    """Return a range of partitions in words."""
    return first if first == last else f"{first} to {last}"
