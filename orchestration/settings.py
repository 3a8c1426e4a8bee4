"""Settings: where this installation keeps its things. The environment is read here, once.

Here belongs every path and address that differs between installations. What a stream is, is in its
spec.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

HOME = "LOWWATER_HOME"
STREAMS = "LOWWATER_STREAMS"
LAKE = "LOWWATER_LAKE"
TARGET = "LOWWATER_TARGET"
POSTGRES_DSN = "LOWWATER_POSTGRES_DSN"
DAGSTER_HOME = "DAGSTER_HOME"
ALERT_WEBHOOK = "LOWWATER_ALERT_WEBHOOK"
ALERT_COMMAND = "LOWWATER_ALERT_COMMAND"
UI = "LOWWATER_UI"


@dataclass(frozen=True)
class Settings:
    """Where things are.

    ``home`` is the data directory, from which relative sources are read; ``streams`` the folder of
    the specs; ``lake`` a folder or a URI; ``target`` the DuckDB file of the target ``default``;
    ``dagster_home`` the folder of the Dagster instance. ``postgres_dsn`` is the address of the
    target ``postgres``; empty: there is none. ``alert_webhook`` and ``alert_command`` say who is
    told of failures. These three may hold secrets and are never shown. ``ui`` is the address of the
    UI, for links.
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
    def reports(self) -> Path:
        """The folder of what checks found, and of the pages that show it."""
        return self.home / "reports"

    @property
    def logs(self) -> Path:
        """The folder of what runs wrote down."""
        return self.home / "logs"
