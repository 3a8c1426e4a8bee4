"""What integration tests share: one PostgreSQL server for all of them."""

from collections.abc import Iterator

import pytest
from postgres_server import running_server


@pytest.fixture(scope="session")
def postgres_dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN of a server that is started when the first test asks."""
    with running_server(tmp_path_factory.mktemp("postgres")) as dsn:
        yield dsn
