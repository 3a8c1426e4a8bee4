"""What only a PostgreSQL target can do wrong: names, rights, passwords, views of other people."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from postgres_server import Server, connected, fresh_database
from river import River, arrivals

from assets.stores.targets.faults import TargetDataError, TargetOutageError
from assets.stores.targets.postgres_target import PostgresTarget
from orchestration.cli import main
from orchestration.resources import resources_of
from orchestration.settings import Settings
from transforms.errors import TargetError

SCHEMA = pl.Schema(
    {
        "stream": pl.String(),
        "window": pl.String(),
        "key": pl.String(),
        "window_start_us": pl.Int64(),
        "event_count": pl.Int64(),
        "revision": pl.Int64(),
        "published_at_us": pl.Int64(),
    }
)
WIDER = pl.Schema({**SCHEMA, "level_p95": pl.Float64()})
SECRET = "s3cr3t"  # noqa: S105 (it must be found nowhere)


def row(key: str = "a", start: int = 0) -> pl.DataFrame:
    return pl.DataFrame([("s", "hour", key, start, 1, 0, 5)], schema=SCHEMA, orient="row")


@pytest.fixture
def dsn(postgres: Server) -> str:
    return fresh_database(postgres)


@pytest.fixture
def target(dsn: str) -> Iterator[PostgresTarget]:
    with PostgresTarget(dsn) as opened:
        opened.prepare("s", SCHEMA)
        yield opened


def test_a_name_that_postgresql_would_cut_off_is_refused(target: PostgresTarget) -> None:
    long = pl.Schema({**SCHEMA, "v" * 64: pl.Float64()})
    with pytest.raises(TargetError, match="63 bytes"):
        target.prepare("s", long)


def test_a_schema_of_the_server_itself_is_refused(target: PostgresTarget) -> None:
    with pytest.raises(TargetError, match="schema name"):
        target.prepare("pg_weather", SCHEMA)


def test_who_may_read_the_view_may_read_it_after_a_new_statistic(
    dsn: str, target: PostgresTarget
) -> None:
    with connected(dsn) as admin:
        admin.execute("create role reader_of_views", "grant usage on schema s to reader_of_views")
        admin.execute("grant select on s.windows to reader_of_views")
        admin.execute("create view mine as select key from s.windows")
        target.prepare("s", WIDER)
        may = "select has_table_privilege('reader_of_views', 's.windows', 'select')"
        assert admin.execute(may) == [(True,)]
        assert admin.execute("select count(level_p95) from s.windows") == [(0,)]
        admin.execute("drop owned by reader_of_views", "drop role reader_of_views")


def test_who_publishes_needs_no_right_to_create(dsn: str, target: PostgresTarget) -> None:
    rights = (
        "create role publisher_only login",
        "grant usage on schema s to publisher_only",
        "grant select, insert, update on all tables in schema s to publisher_only",
    )
    with connected(dsn) as admin:
        admin.execute(*rights)
        with PostgresTarget(dsn.replace("postgres:@", "publisher_only:@")) as limited:
            limited.prepare("s", SCHEMA)
            limited.publish("s", row())
            with pytest.raises(TargetError, match=r"permission denied|must be owner"):
                limited.prepare("s", WIDER)
        admin.execute("drop owned by publisher_only", "drop role publisher_only")
    assert target.current("s").height == 1


def test_keys_come_in_the_order_of_their_bytes_whatever_the_language(
    target: PostgresTarget,
) -> None:
    keys = ["é", "a-b", "Z", "ab", "a", "A"]
    target.publish("s", pl.concat(row(key) for key in keys))
    assert target.current("s")["key"].to_list() == ["A", "Z", "a", "a-b", "ab", "é"]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [(row("a\0b"), "nul-byte"), (row(start=-(2**62)), "out-of-range")],
)
def test_a_value_that_the_server_cannot_hold_is_named(
    target: PostgresTarget, rows: pl.DataFrame, reason: str
) -> None:
    with pytest.raises(TargetDataError) as refused:
        target.publish("s", rows)
    assert refused.value.reason == reason
    assert refused.value.sqlstate.startswith("22")
    target.publish("s", row())
    assert target.current("s").height == 1


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@localhost:1/shop",
        f"postgresql://localhost:1/shop?password={SECRET}",
        f"postgresql://me:a/{SECRET}@localhost:1/shop",
        f"postgresql://me:%zz{SECRET}@localhost:1/shop",
        f"host=localhost port=1 dbname=shop password={SECRET}",
        f"host=localhost port=1 odd=1 password='{SECRET}'",
    ],
)
def test_a_password_is_in_no_error_and_no_description(dsn: str, tmp_path: Path) -> None:
    target = PostgresTarget(dsn)
    with pytest.raises(TargetOutageError) as out, target:
        pass
    told = [str(out.value), repr(out.value.__cause__), repr(target), target.label]
    settings = Settings.from_environment(
        {"LOWWATER_HOME": str(tmp_path), "LOWWATER_POSTGRES_DSN": dsn}
    )
    told += [repr(settings), repr(resources_of(settings))]
    assert not [text for text in told if SECRET in text]
    assert out.value.__suppress_context__


def test_a_stream_may_name_the_target_postgres_when_its_address_is_declared(tmp_path: Path) -> None:
    targets = resources_of(
        Settings.from_environment(
            {"LOWWATER_HOME": str(tmp_path), "LOWWATER_POSTGRES_DSN": "postgresql://db/shop"}
        )
    )["targets"]
    assert sorted(targets.named) == ["default", "postgres"]  # type: ignore[attr-defined]


def test_check_opens_the_target_and_says_what_is_missing(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    river = River(tmp_path)
    text = (river.settings.streams, river.spec)[0] / "river.yaml"
    text.write_text(text.read_text() + "target: postgres\n")
    river.land(arrivals(rows=5))
    monkeypatch.setenv("LOWWATER_HOME", str(tmp_path))
    monkeypatch.setenv("LOWWATER_STREAMS", str(river.settings.streams))
    assert main(["check", "river"]) == 2
    assert "set LOWWATER_POSTGRES_DSN" in "".join(capsys.readouterr())
    monkeypatch.setenv("LOWWATER_POSTGRES_DSN", dsn)
    assert main(["check", "river"]) == 0
    assert "fresh_" in capsys.readouterr().out
    monkeypatch.setenv("LOWWATER_POSTGRES_DSN", f"postgresql://me:{SECRET}@localhost:1/shop")
    assert main(["check", "river"]) == 3
    assert SECRET not in "".join(capsys.readouterr())
