"""The embedded Dagster instance: made on first use, with no set-up.

Here belongs how a process comes by its instance. What the instance is configured with is in
``instance/embedded.yaml``; an instance that is configured already is taken as it is.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.settings import DAGSTER_HOME, Settings

if TYPE_CHECKING:
    import dagster as dg

EMBEDDED = Path(__file__).parent / "instance" / "embedded.yaml"
CONFIGURATION = "dagster.yaml"
# How many events of one asset go to the log in one transaction.
BATCH = ("DAGSTER_EVENT_BATCH_SIZE", "1000")


def prepare(settings: Settings) -> Path:
    """Make the folder of the instance, with a configuration if it has none; returns it."""
    settings.dagster_home.mkdir(parents=True, exist_ok=True)
    configuration = settings.dagster_home / CONFIGURATION
    if not configuration.exists():
        configuration.write_text(EMBEDDED.read_text())
    # Dagster looks for its home in the environment, and so do the processes it starts.
    os.environ[DAGSTER_HOME] = str(settings.dagster_home)
    os.environ.setdefault(*BATCH)
    return settings.dagster_home


def instance_of(settings: Settings) -> "dg.DagsterInstance":
    """Return the instance; use it in a ``with`` block."""
    import dagster as dg  # noqa: PLC0415 (a second to import; most commands do without)

    return dg.DagsterInstance.from_config(str(prepare(settings)))
