"""A stream's target against the lake, on both targets: the proof, the check, the repair."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import duckdb
import polars as pl
import pytest
from postgres_server import Server, connected, copy_of, fresh_database
from river import River, arrivals

from assets.catalogue import asset_key
from assets.history import Targets
from assets.parity import prove_partitions, prove_stream, unproved
from assets.stored import stored_of
from assets.stores.parity.options import Options, Wanted
from assets.stores.targets.postgres_target import PostgresTarget
from assets.stores.targets.writers import publish
from expectations.invariants import BY_NAME
from expectations.run import gather
from orchestration.cli import main
from orchestration.jobs import parity_job
from transforms.errors import CheckError
from transforms.parity.proof import Proof
from transforms.schemas import TARGET_PARITY, WINDOW_HISTORY

Change = Callable[[str], None]
CHECK = "the_target_equals_the_lake_to_the_bit"
DAYS = ("2024-01-01", "2024-01-02")


@pytest.fixture(scope="module")
def taken_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stream that was taken in, amended and published to DuckDB."""
    made = River(tmp_path_factory.mktemp("river"))
    made.land(arrivals(rows=60))
    made.run()
    return made.folder


@pytest.fixture(scope="module")
def template(postgres: Server, taken_in: Path) -> str:
    """The DSN of a database that holds the same."""
    dsn = fresh_database(postgres)
    made = River(taken_in)
    sink = Targets({"default": PostgresTarget(dsn)}).sink_of(made.spec)
    history = made.history
    publish(sink, made.spec, history.with_partition(made.table(WINDOW_HISTORY)))
    return dsn


@pytest.fixture(params=["duckdb", "postgres"])
def river(request: pytest.FixtureRequest, tmp_path: Path, taken_in: Path) -> River:
    """A copy of them, to be spoiled."""
    shutil.copytree(taken_in, tmp_path, dirs_exist_ok=True)
    made = River(tmp_path)
    if request.param == "postgres":
        server, dsn = (request.getfixturevalue(name) for name in ("postgres", "template"))
        made.resources["targets"] = Targets({"default": PostgresTarget(copy_of(server, dsn))})
    return made


@pytest.fixture
def change(river: River) -> Change:
    """Changes the table of the target behind everybody's back."""

    def run(statement: str) -> None:
        target = river.resources["targets"].named["default"]
        if isinstance(target, PostgresTarget):
            with connected(target._connections.dsn) as server:
                server.execute(statement.format(t="river.windows_current"))
        else:
            with duckdb.connect(str(target.path)) as connection:
                connection.execute("set TimeZone = 'UTC'")
                connection.execute(statement.format(t='"river"."windows_current"'))

    return run


def proved(river: River, *, mend: bool = False, approved: int | None = None) -> Proof:
    wanted = Wanted(Options(datetime.now(UTC).date()), mend=mend, approved=approved)
    return prove_stream(river.spec, river.resources, wanted)


def counts(proof: Proof) -> dict[str, int]:
    return {str(name): count for name, count in proof.counts().items() if count}


def test_what_was_published_is_there_bit_for_bit(river: River) -> None:
    proof = proved(river)
    assert proof.holds(), proof.summary()
    assert counts(proof) == {"EQUAL": river.current().height}
    assert proof.total("source").n > 20


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("update {t} set stage_mean = stage_mean + 1e-15 where key = 's1'", "CHANGED"),
        ("update {t} set known_at = known_at + interval '1 microsecond'", "CHANGED"),
        ("delete from {t} where key = 's1'", "MISSING"),
        ("update {t} set key = 's1x' where key = 's1'", "EXTRA"),
        (
            "update {t} set window_start = window_start + interval '9 years' where key = 's1'",
            "EXTRA",
        ),
    ],
)
def test_what_changed_behind_our_back_is_found_and_repaired(
    river: River, change: Change, statement: str, found: str
) -> None:
    change(statement)
    before = proved(river)
    assert counts(before)[found] > 0
    assert not before.holds()
    after = proved(river, mend=True)
    assert after.holds(), after.summary()
    assert proved(river).holds()
    assert river.published().equals(river.current(), null_equal=True)


def test_a_row_that_is_there_twice_is_found_and_repaired(river: River, change: Change) -> None:
    if not isinstance(river.resources["targets"].named["default"], PostgresTarget):
        pytest.skip("DuckDB cannot drop a primary key")
    change("alter table {t} drop constraint windows_current_pkey")
    change("insert into {t} select * from {t} where key = 's1'")
    before = proved(river)
    assert counts(before)["DUPLICATE"] > 0
    assert proved(river, mend=True).holds()


def test_a_row_of_a_newer_revision_is_shown_and_stays(river: River, change: Change) -> None:
    change("update {t} set revision = revision + 7 where key = 's1'")
    after = proved(river, mend=True)
    assert not after.holds()
    assert {f["cause"] for f in after.findings()} == {"revision-ahead"}


def test_a_key_that_the_server_cannot_hold_is_a_dead_letter_and_told_as_missing(
    postgres: Server, tmp_path: Path
) -> None:
    dsn = fresh_database(postgres)
    river = River(tmp_path)
    river.resources["targets"] = Targets({"default": PostgresTarget(dsn)})
    log = [
        {**row, "station": "nul\0byte"} if row["station"] == "s1" else row
        for row in arrivals(rows=40)
    ]
    river.land(log)
    river.run()
    lost = river.current().filter(pl.col("key") == "nul\0byte").height
    assert lost > 0
    assert river.published().height == river.current().height - lost
    with connected(dsn) as server:
        reasons = server.execute("select distinct reason from river.publish_dead_letters")
    assert reasons == [("nul-byte",)]
    proof = proved(river, mend=True)
    assert counts(proof) == {"EQUAL": river.current().height - lost, "MISSING": lost}
    assert {f["cause"] for f in proof.findings()} == {"refused-by-target"}


def test_each_partition_is_proved_kept_and_not_proved_again(river: River) -> None:
    partitions = unproved(river.history)
    assert set(DAYS) <= set(partitions)
    found = list(prove_partitions(river.history, river.resources["targets"], partitions))
    assert [each.figures()["verdict"] for each in found] == ["EQUAL"] * len(partitions)
    assert unproved(river.history) == []
    figures = found[-1].figures()
    assert figures["verdict"] == "EQUAL"
    assert figures["source_root"] == figures["target_root"]
    assert figures["publication_number"] > 0  # type: ignore[operator]


def test_a_difference_is_told_for_its_partition_alone(river: River, change: Change) -> None:
    change("update {t} set stage_mean = 99 where window_start < timestamptz '2024-01-02 00:00:00Z'")
    partitions = unproved(river.history)
    found = prove_partitions(river.history, river.resources["targets"], partitions)
    verdicts = {each.partition: each.figures()["verdict"] for each in found}
    assert (verdicts[DAYS[0]], verdicts[DAYS[1]]) == ("CHANGED", "EQUAL")
    stored = stored_of(river.lake, river.spec, river.history.events, partitions)
    evidence = gather(stored, [BY_NAME[CHECK]])[CHECK].filter(pl.col("violations") > 0)
    assert set(evidence["partition"]) == {DAYS[0]}
    assert any("CHANGED stage_mean" in subject for subject in evidence["subject"])


def test_the_asset_has_a_check_that_blocks_and_figures(river: River, change: Change) -> None:
    key = asset_key(river.spec, TARGET_PARITY)
    with dg.DagsterInstance.ephemeral() as instance:
        river.jobs(instance).run(parity_job("river"), DAYS)
        event = instance.get_latest_materialization_event(key)
        assert event is not None
        assert event.asset_materialization is not None
        assert "verdict" in event.asset_materialization.metadata
        change("delete from {t} where key = 's1'")
        with pytest.raises(CheckError, match=CHECK):
            river.jobs(instance).run(parity_job("river"), DAYS)


def test_the_command_proves_a_stream_and_repairs_it(
    postgres: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dsn = fresh_database(postgres)
    river = River(tmp_path)
    text = (river.spec and (river.settings.streams / "river.yaml")).read_text()
    (river.settings.streams / "river.yaml").write_text(text + "target: postgres\n")
    river.resources["targets"] = Targets({"default": PostgresTarget(dsn)})
    river.land(arrivals(rows=40))
    river.run()
    monkeypatch.setenv("LOWWATER_HOME", str(tmp_path))
    monkeypatch.setenv("LOWWATER_STREAMS", str(river.settings.streams))
    monkeypatch.setenv("LOWWATER_POSTGRES_DSN", dsn)
    assert main(["parity", "river", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "EQUAL"
    with connected(dsn) as server:
        server.execute("delete from river.windows_current where key = 's2'")
    evidence = tmp_path / "evidence.json"
    assert main(["parity", "river", "--evidence", str(evidence)]) == 1
    assert "MISSING" in capsys.readouterr().out
    said = json.loads(evidence.read_text())
    assert said["verdict"] == "MISSING"
    assert set(DAYS) <= said["revisions"].keys()
    assert main(["parity", "river", "--repair"]) == 0
    assert main(["parity", "river"]) == 0


@pytest.fixture(name="at_home")
def river_of_the_command_line(river: River, monkeypatch: pytest.MonkeyPatch) -> River:
    """The installation of the river is that of the command line."""
    target = river.resources["targets"].named["default"]
    monkeypatch.setenv("LOWWATER_HOME", str(river.folder))
    monkeypatch.setenv("LOWWATER_STREAMS", str(river.settings.streams))
    spec = river.spec and river.settings.streams / "river.yaml"
    if isinstance(target, PostgresTarget):
        monkeypatch.setenv("LOWWATER_POSTGRES_DSN", target._connections.dsn)
        spec.write_text(spec.read_text() + "target: postgres\n")
    return river


def test_a_resumed_proof_of_a_stream_reads_what_is_new_alone(
    at_home: River, change: Change, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, evidence = tmp_path / "read.jsonl", tmp_path / "evidence.json"
    assert at_home.current().height
    words = ["parity", "river", "--resume", str(ledger), "--evidence", str(evidence)]

    def resumed() -> list[str]:
        found = json.loads(evidence.read_text())["partitions"]
        return [partition["name"] for partition in found if partition["resumed"]]

    assert main(words) == 0, capsys.readouterr().out
    assert resumed() == []
    whole = evidence.read_text()
    lines = ledger.read_text().splitlines(keepends=True)
    ledger.write_text(lines[0] + lines[1][:30])  # killed at the second
    assert main(words) == 0, capsys.readouterr().out
    assert len(resumed()) == 1
    assert json.loads(evidence.read_text())["roots"] == json.loads(whole)["roots"]
    # A partition that was published to since is not believed to be as it was.
    change('update river.publication_numbers set "number" = "number" + 1')
    assert main(words) == 0
    assert resumed() == []


def test_a_second_look_and_little_memory_are_for_streams_too(
    at_home: River, change: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    change("delete from {t} where key = 's1'")
    assert at_home.spec.name == "river"
    assert main(["parity", "river", "--lag", "0.01", "--memory", "64", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "MISSING"


def test_a_server_can_be_told_to_make_the_sums_and_a_file_cannot(
    at_home: River, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = tmp_path / "evidence.json"
    is_server = isinstance(at_home.resources["targets"].named["default"], PostgresTarget)
    code = main(["parity", "river", "--push-down", "--evidence", str(evidence)])
    if is_server:
        assert code == 0
        assert json.loads(evidence.read_text())["sides"]["target"]["first_level"] == "pushed down"
    else:
        assert code == 2
        assert "nothing can be pushed down" in capsys.readouterr().err


def test_a_stream_or_two_tables_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parity"]) == 2
    assert "name a stream" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--key", "k"], "--key"),
        (["--source", "a.parquet"], "--source"),
        (["--leave-out", "v", "--type", "v=int"], "--leave-out, --type"),
        (["--partition", "window"], "--partition"),
        (["--approve-deletes", "3"], "--approve-deletes is for --repair"),
        (["--repair", "--resume", "file"], "--resume: a repair reads everything anew"),
    ],
)
def test_an_option_that_would_be_without_effect_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["parity", "river", *words]) == 2
    assert said in capsys.readouterr().err
