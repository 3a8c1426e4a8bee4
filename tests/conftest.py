"""What all tests share: how hard Hypothesis tries, and one server and browser for those that ask.

What the fixtures need is imported when one is asked for: most tests want none of it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from parity_tables import Tables
    from postgres_server import Server

# No test is timed: a deadline fails on a slow machine and says nothing about the code. CI draws
# the same examples every time; on a desk new ones are drawn.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("desk"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Server"]:
    """A server that is started when the first test asks."""
    from postgres_server import running_server  # noqa: PLC0415

    with running_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A browser that is started when the first test asks."""
    from chromium import chromium  # noqa: PLC0415

    with chromium() as browser:
        yield browser


@pytest.fixture
def tables(tmp_path: Path, postgres: "Server") -> "Tables":
    """Tables in a DuckDB file of this test and in that server."""
    from parity_tables import Tables  # noqa: PLC0415

    return Tables(tmp_path, postgres)
