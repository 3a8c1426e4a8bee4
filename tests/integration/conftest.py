"""What integration tests share: one PostgreSQL server for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from parity_tables import Tables
from postgres_server import Server, running_server


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that is started when the first test asks."""
    with running_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def tables(tmp_path: Path, postgres: Server) -> Tables:
    """Tables in a DuckDB file of this test and in that server."""
    return Tables(tmp_path, postgres)
