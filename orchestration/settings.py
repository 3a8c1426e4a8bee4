"""Settings: where this installation keeps its things. The environment is read here, once.

Here belongs every path and address that differs between installations. What a stream is, is in its
spec.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from transforms.errors import UsageError

HOME = "LOWWATER_HOME"
STREAMS = "LOWWATER_STREAMS"
LAKE = "LOWWATER_LAKE"
TARGET = "LOWWATER_TARGET"
POSTGRES_DSN = "LOWWATER_POSTGRES_DSN"
DAGSTER_HOME = "DAGSTER_HOME"
ALERT_WEBHOOK = "LOWWATER_ALERT_WEBHOOK"
ALERT_COMMAND = "LOWWATER_ALERT_COMMAND"
UI = "LOWWATER_UI"
REPORTS_URL = "LOWWATER_REPORTS_URL"
REPORTS_PORT = 3001
KEEP_RUNS = "LOWWATER_KEEP_RUNS_DAYS"
KEEP_VERSIONS = "LOWWATER_KEEP_VERSIONS_DAYS"
KEEP_REPORTS = "LOWWATER_KEEP_REPORTS_DAYS"

# Where `lowwater ui` and `lowwater reports` serve them.
SERVED_REPORTS = f"http://127.0.0.1:{REPORTS_PORT}"


@dataclass(frozen=True)
class Settings:
    """Where things are.

    ``home`` is the data directory, from which relative sources are read; ``streams`` the folder of
    the specs; ``lake`` a folder or a URI; ``target`` the DuckDB file of the target ``default``;
    ``dagster_home`` the folder of the Dagster instance. ``postgres_dsn`` is the address of the
    target ``postgres``; empty: there is none. ``alert_webhook`` and ``alert_command`` say who is
    told of failures. These three may hold secrets and are never shown. ``ui`` is the address of the
    UI and ``reports_url`` that of the reports, for links. ``keep_..._days`` is how long runs,
    versions of the lake, logs and reports stay.
    """

    home: Path
    streams: Path
    lake: str
    target: Path
    dagster_home: Path
    postgres_dsn: str = field(default="", repr=False)
    alert_webhook: str = field(default="", repr=False)
    alert_command: str = field(default="", repr=False)
    ui: str = ""
    reports_url: str = SERVED_REPORTS
    keep_runs_days: int = 90
    keep_versions_days: int = 30
    keep_reports_days: int = 365

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read the environment; what it leaves out is below the current directory."""
        given = os.environ if environment is None else environment
        home = Path(given.get(HOME, "data")).absolute()
        return cls(
            home=home,
            streams=Path(given.get(STREAMS, "streams")).absolute(),
            lake=given.get(LAKE, str(home / "lake")),
            target=Path(given.get(TARGET, home / "published.duckdb")).absolute(),
            dagster_home=Path(given.get(DAGSTER_HOME, home / "dagster")).absolute(),
            postgres_dsn=given.get(POSTGRES_DSN, ""),
            alert_webhook=given.get(ALERT_WEBHOOK, ""),
            alert_command=given.get(ALERT_COMMAND, ""),
            ui=given.get(UI, ""),
            reports_url=given.get(REPORTS_URL, cls.reports_url),
            keep_runs_days=_days(given, KEEP_RUNS, cls.keep_runs_days),
            keep_versions_days=_days(given, KEEP_VERSIONS, cls.keep_versions_days),
            keep_reports_days=_days(given, KEEP_REPORTS, cls.keep_reports_days),
        )

    @classmethod
    def under(cls, folder: Path) -> Self:
        """Return settings that keep all things in one folder."""
        return cls.from_environment({HOME: str(folder), STREAMS: str(folder / "streams")})

    @property
    def locks(self) -> Path:
        """The folder of the locks."""
        return self.home / "locks"

    @property
    def breakers(self) -> Path:
        """The folder that says which targets were down."""
        return self.home / "breakers"

    @property
    def reports(self) -> Path:
        """The folder of what checks found, and of the pages that show it."""
        return self.home / "reports"

    @property
    def logs(self) -> Path:
        """The folder of what runs wrote down."""
        return self.home / "logs"


def _days(given: Mapping[str, str], name: str, default: int) -> int:
    """Read a number of days; anything but a whole number of 1 or more is a UsageError."""
    text = given.get(name, "") or str(default)
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{name}: found {text}; allowed: a whole number of days, 1 or more")
    return int(text)
