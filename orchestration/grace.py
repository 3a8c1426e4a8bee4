"""The advice on grace for a stream: where the arrivals come from, and what a person tries.

Here belongs reading the lake or files given by hand, and the texts of ``--set``. How it is shown is
in ``orchestration.commands.grace``; what is computed is in ``transforms.grace.report``.
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from assets.arrivals import Arrivals, stored_arrivals
from assets.partitions import Axis
from assets.stores.lake import Lake
from assets.stores.sources.files import number_on, read_files
from assets.stores.tables import EVENT_TABLES
from orchestration.run import partition_of
from orchestration.settings import Settings
from transforms.durations import parse_duration
from transforms.errors import UsageError
from transforms.lateness.arrival_log import Log, read_log
from transforms.schemas import ARRIVAL_US, SEQ
from transforms.spec import StreamSpec


def parse_graces(spec: StreamSpec, texts: Sequence[str]) -> dict[str, int]:
    """Read ``profile=duration`` texts; UsageError for what is none or names no profile."""
    graces = dict[str, int]()
    for text in texts:
        profile, _, duration = text.partition("=")
        if profile not in spec.profiles.named:
            known = ", ".join(spec.profiles.named)
            raise UsageError(f"--set {text}: {spec.name} has no profile {profile}; known: {known}")
        try:
            graces[profile] = parse_duration(duration)
        except ValueError as error:
            raise UsageError(f"--set {text}: allowed is profile={error}") from error
    return graces


def arrivals_of_lake(settings: Settings, spec: StreamSpec, since: str | None) -> Arrivals:
    """Return the newest stored arrivals, or all from the partition of a time on."""
    lake, axis = Lake(settings.lake, event_tables=EVENT_TABLES), Axis.of_arrivals(spec)
    return stored_arrivals(spec, lake, axis, partition_of(spec, axis, since) if since else None)


def log_of_files(spec: StreamSpec, inputs: Sequence[str]) -> Log:
    """Return the arrivals that files hold, in the order given, as a replay reads them."""
    reads = list(number_on(read_files(spec, inputs, data_dir=Path())))
    staged = pl.concat([read.staged for read in reads])
    return read_log(spec, staged.sort(ARRIVAL_US, SEQ))
