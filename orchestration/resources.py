"""The resources of all assets, by role: what they read from and write to.

Here belongs which store stands behind a role in this installation.
"""

from assets.catalogue import Landing, Locks, Progress
from assets.history import Targets
from assets.stores.lake import Lake
from assets.stores.tables import EVENT_TABLES
from assets.stores.targets.duckdb_target import DuckDBTarget
from assets.stores.targets.target import DEFAULT_TARGET
from orchestration.settings import Settings


def resources_of(settings: Settings) -> dict[str, object]:
    """Return the resources by role."""
    lake = Lake(settings.lake, event_tables=EVENT_TABLES)
    return {
        "lake": lake,
        "landing": Landing(lake, settings.home),
        "locks": Locks(settings.locks),
        "targets": Targets({DEFAULT_TARGET: DuckDBTarget(settings.target)}),
        "progress": Progress(),
    }
