"""What the figures were measured on. No figure of ours lives here."""

import os
import platform
from importlib.metadata import version

import psutil

LIBRARIES = ("polars", "duckdb", "deltalake", "pyarrow", "dagster")


def facts() -> dict[str, str]:
    """Processor count, memory, system and the versions that decide the speed."""
    memory = psutil.virtual_memory().total / 2**30
    machine = {
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    return machine | {name: version(name) for name in LIBRARIES}
