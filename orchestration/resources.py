"""The resources of all assets, by role: what they read from and write to.

Here belongs which store stands behind a role in this installation.
"""

from assets.catalogue import Landing, Locks, Progress
from assets.history import Targets
from assets.quality import Reports
from assets.stores.counting import Told, nobody
from assets.stores.lake import Lake
from assets.stores.tables import EVENT_TABLES
from orchestration.settings import Settings
from orchestration.targets import targets_of
from orchestration.telemetry import export_traces


def resources_of(settings: Settings, *, retries: int = 0, told: Told = nobody) -> dict[str, object]:
    """Return the resources by role; traces are exported from here on, if they are to be.

    ``retries`` is how often a step tries again what may pass; ``told`` is who hears of rows that
    are published or proved.
    """
    export_traces()
    lake = Lake(settings.lake, event_tables=EVENT_TABLES)
    return {
        "lake": lake,
        "landing": Landing(lake, settings.home),
        "locks": Locks(settings.locks, retries=retries),
        "targets": Targets(targets_of(settings), settings.breakers, told),
        "progress": Progress(),
        "reports": Reports(settings.reports, settings.reports_url),
    }
