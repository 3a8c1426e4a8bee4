import pytest

from assets.stores.parity.dsn import redacted, secrets_of, with_timeout

SECRET = "s3cr3t"  # noqa: S105 (it must be found nowhere)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        (f"postgresql://me:{SECRET}@db.example:5433/shop", "postgresql://db.example:5433/shop"),
        (f"postgresql://me:{SECRET}%40x@db/shop?sslmode=require", "postgresql://db/shop"),
        (f"postgresql://db/shop?user=me&password={SECRET}", "postgresql://db/shop"),
        (f"postgresql:///shop?host=/run/pg&password={SECRET}", "postgresql:///run/pg/shop"),
        (f"host=db port=5433 dbname=shop password={SECRET}", "postgresql://db:5433/shop"),
        (f"dbname=shop password = '{SECRET} x'", "postgresql://local/shop"),
        (f"postgresql://me:a/{SECRET}@db/shop", "postgresql://db/shop"),
        (f"postgresql://me:a@{SECRET}@db/shop", "postgresql://db/shop"),
        (f"postgresql://me:{SECRET}?x@db/shop", "postgresql://unreadable/"),
        ("postgresql://db/shop", "postgresql://db/shop"),
    ],
)
def test_an_address_is_shown_without_its_password_however_it_is_written(
    dsn: str, shown: str
) -> None:
    assert redacted(dsn) == shown
    assert SECRET not in redacted(dsn)
    message = dsn
    for secret in secrets_of(dsn):
        message = message.replace(secret, "***")
    assert SECRET not in message


def test_a_password_is_known_as_it_stands_and_as_it_is_meant() -> None:
    assert {"p%40ss", "p@ss"} <= set(secrets_of("postgresql://me:p%40ss@db/shop"))


@pytest.mark.parametrize(
    ("dsn", "limited"),
    [
        ("postgresql://db/shop", "postgresql://db/shop?connect_timeout=10"),
        ("postgresql://db/shop?a=b", "postgresql://db/shop?a=b&connect_timeout=10"),
        ("dbname=shop", "dbname=shop connect_timeout=10"),
        ("dbname=shop connect_timeout=3", "dbname=shop connect_timeout=3"),
    ],
)
def test_nobody_waits_for_ever_to_be_connected(dsn: str, limited: str) -> None:
    assert with_timeout(dsn) == limited
