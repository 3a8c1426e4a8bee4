"""The resources of all assets, by role: what they read from and write to.

Here belongs which store stands behind a role in this installation.
"""

from typing import Final

from assets.catalogue import Landing, Locks, Progress
from assets.history import Targets
from assets.stores.lake import Lake
from assets.stores.tables import EVENT_TABLES
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.stores.targets.postgres_target import PostgresTarget
from assets.stores.targets.target import DEFAULT_TARGET, Target
from orchestration.settings import Settings
from orchestration.telemetry import export_traces

POSTGRES_TARGET: Final = "postgres"


def resources_of(settings: Settings) -> dict[str, object]:
    """Return the resources by role; traces are exported from here on, if they are to be."""
    export_traces()
    lake = Lake(settings.lake, event_tables=EVENT_TABLES)
    return {
        "lake": lake,
        "landing": Landing(lake, settings.home),
        "locks": Locks(settings.locks),
        "targets": Targets(targets_of(settings)),
        "progress": Progress(),
    }


def targets_of(settings: Settings) -> dict[str, Target]:
    """Return the targets by the name a spec gives: the embedded one, and PostgreSQL if declared."""
    targets: dict[str, Target] = {DEFAULT_TARGET: DuckDBTarget(settings.target)}
    if settings.postgres_dsn:
        targets[POSTGRES_TARGET] = PostgresTarget(settings.postgres_dsn)
    return targets
