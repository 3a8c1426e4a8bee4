"""Tracks through Dagster: staged once, each as if declared alone, and how far they differ."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

import dagster as dg
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from river import OF_THE_WAY, ROW_TABLES, SPEC, TABLES, arrivals

from assets.history import History
from assets.partitions import Axis
from assets.publication import publish_windows
from assets.quality import PAGE
from assets.reconcile import amend
from assets.reorder import reorder
from assets.staging import stage
from assets.stores.tables import SHARED_TABLES, frame_schema, unit_of
from assets.touched import waiting
from assets.windows import close_windows
from expectations.invariants import BY_NAME, STAGING
from expectations.report.page import page
from expectations.report.state import state_of
from expectations.results import Results, Verdict
from orchestration.cli import main
from orchestration.definitions import build_defs
from orchestration.embedded import instance_of
from orchestration.maintenance import INSTANCE_JOB
from orchestration.run import Runner
from orchestration.settings import Settings
from transforms import schemas
from transforms.spec import StreamSpec, load_spec

LOG = arrivals()
FAST = """
  default: {grace: 2m, idle_timeout: 5h, capacity: 3, future_skew: 5m}
  slow: {grace: 20m, idle_timeout: off, capacity: 50, future_skew: 5m}"""
AUTHORITATIVE = """
  default: {grace: 40m, idle_timeout: 5h, capacity: 3, future_skew: 5m}
  slow: {grace: 3h, idle_timeout: off, capacity: 50, future_skew: 5m}"""
OF_TRACK = {"fast": FAST, "authoritative": AUTHORITATIVE}
# Everything but what is shared, in the folder of a track.
TRACK_TABLES = [name for name in TABLES if name not in {*SHARED_TABLES, schemas.SOURCE_FILES}]


def river_spec(profiles: str, name: str = "river") -> str:
    """The river of the other tests with another section of profiles."""
    text = SPEC.format(grain="day", events="day", shards=2).replace("name: river", f"name: {name}")
    before, rest = text.split("profiles:")
    return f"{before}{profiles}\nwindows:{rest.split('windows:')[1]}"


def with_tracks() -> str:
    tracks = [f"{name}:{text}" for name, text in OF_TRACK.items()]
    indented = indent("\n".join(tracks), "  ")
    return f"profiles: {{by: link}}\ntracks:\n{indented}"


def home_of(folder: Path, text: str, log: Sequence[dict[str, Any]]) -> Runner:
    """Write a spec and its log; return who runs the stream."""
    settings = Settings.under(folder)
    spec = load_spec(text, file="spec.yaml")
    settings.streams.mkdir(parents=True)
    (settings.streams / f"{spec.name}.yaml").write_text(text)
    (folder / "landing").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in log)
    (folder / "landing" / "log.ndjson").write_text(lines)
    return Runner.of(settings, spec)


def run_stages(runner: Runner, keys: Sequence[str]) -> None:
    """Run a stream without Dagster."""
    spec, lake, targets = runner.spec, runner.lake, runner.resources["targets"]
    axis, history = Axis.of_arrivals(spec), History(lake, spec, Axis.of_events(spec))
    intake = runner.resources["landing"].of(spec)
    list(stage(spec, lake, intake, axis, keys))
    list(reorder(spec, lake, axis, keys))
    list(close_windows(spec, lake, axis, keys))
    list(publish_windows(history, targets, keys, "a run"))
    list(amend(history, targets, axis, waiting(history), "a run"))


def table(runner: Runner, spec: StreamSpec, name: str) -> pl.DataFrame:
    if runner.lake.version(spec.name, name) is None and name not in SHARED_TABLES:
        return frame_schema(spec, name).to_frame()
    rows = unit_of(runner.lake, spec, schemas.WATERMARKS).read(name)
    if name != schemas.WINDOW_HISTORY:
        return rows
    return rows.drop(OF_THE_WAY).sort(*schemas.WINDOW_IDENTITY, schemas.REVISION)


def differences(runner: Runner) -> pl.DataFrame:
    return table(runner, runner.spec, schemas.TRACK_DIFFERENCE)


def versions(runner: Runner) -> dict[str, int | None]:
    names = [*TABLES, schemas.TRACK_DIFFERENCE]
    streams = [runner.spec.name, *(part.name for part in runner.spec.computed)]
    return {
        f"{stream}/{name}": runner.lake.version(stream, name)
        for stream in streams
        for name in names
    }


@pytest.fixture(scope="module")
def river(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """The river of the other tests, on two tracks."""
    runner = home_of(tmp_path_factory.mktemp("river"), river_spec(with_tracks()), LOG)
    assert runner.run().arrivals
    return runner


def test_rows_are_staged_once_for_all_tracks(river: Runner) -> None:
    folders = sorted(path.name for path in Path(river.lake.root).iterdir())
    assert folders == ["river", "river_authoritative", "river_fast"]
    staged = {path.name for path in (Path(river.lake.root) / "river").iterdir()}
    assert staged == {*SHARED_TABLES, schemas.SOURCE_FILES, schemas.TRACK_DIFFERENCE}
    for name in ("river_fast", "river_authoritative"):
        own = {path.name for path in (Path(river.lake.root) / name).iterdir()}
        assert own.isdisjoint(staged)
        assert own >= set(TRACK_TABLES)


@pytest.mark.parametrize("track", OF_TRACK)
def test_a_track_is_what_a_stream_alone_with_its_profiles_would_be(
    river: Runner, tmp_path: Path, track: str
) -> None:
    profiles = f"profiles:\n  by: link{OF_TRACK[track]}"
    alone = home_of(tmp_path, river_spec(profiles, f"river_{track}"), LOG)
    run_stages(alone, ["2024-01-01", "2024-01-02"])
    spec = river.spec.of_track(track)
    for name in {*ROW_TABLES, schemas.WINDOW_AGGREGATES, schemas.WINDOW_HISTORY}:
        expected = table(alone, alone.spec, name)
        assert_frame_equal(table(river, spec, name), expected, check_exact=True)
    assert_frame_equal(published(river, spec), published(alone, alone.spec), check_exact=True)


def published(runner: Runner, spec: StreamSpec) -> pl.DataFrame:
    with runner.resources["targets"].of(spec) as target:
        target.prepare(spec.name, schemas.window_history_schema(spec))
        held: pl.DataFrame = target.current(spec.name)
    assert held.height
    return held.drop(OF_THE_WAY).sort(schemas.WINDOW_IDENTITY)


def test_the_fast_track_was_off_and_came_to_agree(river: Runner) -> None:
    found = differences(river)
    fast = table(river, river.spec.of_track("fast"), schemas.WINDOW_HISTORY)
    assert found.drop_nulls("revision").height == fast.height
    first = found.filter(pl.col("revision") == 0)
    assert first.filter(~pl.col("is_equal")).height
    last = found.drop_nulls("is_equal").group_by("window", "key", "window_start_us").last()
    assert last.height
    # What overflowed or came from the future in one track alone is not looked for here: all rows
    # are in both by now, and the newest revisions are equal.
    assert last["is_equal"].all()


def test_a_second_run_commits_nothing(river: Runner) -> None:
    before = versions(river)
    outcome = Runner.of(river.settings, river.spec).run()
    assert (outcome.arrivals, outcome.events) == ((), [])
    assert versions(river) == before


def test_a_range_that_is_run_again_commits_nothing(river: Runner) -> None:
    before = versions(river)
    assert Runner.of(river.settings, river.spec).run("2024-01-01", "2024-01-02").arrivals
    assert versions(river) == before


def test_what_was_not_compared_is_compared_by_the_next_run(river: Runner) -> None:
    before = differences(river)
    river.lake.delete_partitions("river", schemas.TRACK_DIFFERENCE, {"2024-01-01"})
    outcome = Runner.of(river.settings, river.spec).run()
    assert (outcome.arrivals, outcome.events) == ((), [])
    assert_frame_equal(differences(river), before)


def test_every_asset_of_a_track_is_shown_with_its_figures(river: Runner) -> None:
    with instance_of(river.settings) as instance:
        for name in ("river_fast", "river_authoritative"):
            key = dg.AssetKey([name, schemas.PUBLISHED_WINDOWS])
            assert instance.get_materialized_partitions(key) >= {"2024-01-01", "2024-01-02"}
        records = instance.fetch_materializations(
            dg.AssetKey(["river", schemas.TRACK_DIFFERENCE]), limit=1
        ).records
        assert records[0].asset_materialization is not None
        shown = records[0].asset_materialization.metadata
    assert {"fast_windows", "fast_windows_off_now", "fast_equal_after_minutes"} <= set(shown)
    assert re.search(
        r"\| fast \| event_count \| \d+ \| 0 \|", str(shown["largest_differences"].value)
    )


def test_the_graph_has_one_staging_and_two_of_all_else(river: Runner) -> None:
    defs = build_defs(river.settings, specs={"river": river.spec})
    keys = [spec.key.path for spec in defs.resolve_all_asset_specs()]
    assert sorted(name for stream, name in keys if stream == "river") == [
        schemas.REJECTED_ROWS,
        schemas.STAGED_EVENTS,
        schemas.TRACK_DIFFERENCE,
    ]
    fast, authoritative = (
        {name for stream, name in keys if stream == f"river_{track}"} for track in OF_TRACK
    )
    assert fast == authoritative
    names = {job.name for job in defs.resolve_all_job_defs() if not job.name.startswith("__")}
    jobs = ("arrivals", "events", "advice", "tracks", "parity", "report", "maintenance")
    assert names - {INSTANCE_JOB} == {f"river_{job}" for job in jobs}


def test_what_is_staged_is_checked_once_and_told_on_the_page_of_every_track(river: Runner) -> None:
    defs = build_defs(river.settings, specs={"river": river.spec})
    checks = [key for part in defs.asset_checks or () for key in part.check_keys]
    assert len(checks) == len(set(checks))
    streams = {invariant.name: set[str]() for invariant in STAGING}
    for key in checks:
        streams.get(key.name, set()).add(key.asset_key.path[0])
    assert set(map(frozenset, streams.values())) == {frozenset({"river"})}
    for part in river.spec.computed:
        folder = river.settings.reports / part.name
        told = {verdict.invariant for verdict in Results(folder).all()}
        assert told == set(BY_NAME)
        assert f"<h1>{part.name}</h1>" in (folder / PAGE).read_text()


def test_the_target_of_every_track_is_proved(river: Runner) -> None:
    for part in river.spec.computed:
        proofs = table(river, part, schemas.TARGET_PARITY)
        assert proofs.height
        assert set(proofs["verdict"]) == {"EQUAL"}
        assert proofs["target_rows"].sum() == published(river, part).height


def test_what_to_do_about_a_track_names_the_stream_that_is_run(river: Runner) -> None:
    part = river.spec.of_track("fast")
    wrong = Verdict("every_row_is_accounted_for", "2024-01-01", False, 9, 1)
    html = page(part, state_of([wrong]), None, [wrong], [])
    assert "lowwater run river --from 2024-01-01" in html
    assert "lowwater run river_fast" not in html


GUIDE = (Path(__file__).parents[2] / "docs" / "choose-a-grace.md").read_text(encoding="utf-8")
# The section on tracks: a spec, a log, the last words of a run, how to read the table, the table.
SECTION = GUIDE.split("## Two graces at once")[1].split("\n## ")[0]
BY_HAND, READINGS, LAST_WORDS, QUERY, TABLE = re.findall(r"```\w+\n(.*?)```", SECTION, re.DOTALL)


@pytest.fixture(scope="module")
def gauge(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """What the guide does, in a folder of its own."""
    folder = tmp_path_factory.mktemp("gauge")
    log = [json.loads(line) for line in READINGS.splitlines()]
    runner = home_of(folder / "data", BY_HAND, log)
    runner.run()
    return runner


def test_the_table_of_the_guide_is_what_its_query_prints(
    gauge: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(gauge.settings.home.parent)
    exec(QUERY, {})  # noqa: S102 (the query of the guide)
    assert capsys.readouterr().out == TABLE


def test_differences_are_those_found_by_hand(gauge: Runner) -> None:
    found = differences(gauge).select(
        "authoritative_revision", "event_count_difference", "level_sum_difference", "is_equal"
    )
    # The first hour without the 8 that came late, then with it; the second hour; the fourth, which
    # is still open to the authoritative track.
    assert found.rows() == [
        (0, 2 - 3, 3.0 - 11.0, False),
        (0, 3 - 3, 11.0 - 11.0, True),
        (0, 1 - 1, 4.0 - 4.0, True),
        (None, None, None, None),
    ]


@pytest.fixture
def at_home(gauge: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOWWATER_HOME", str(gauge.settings.home))
    monkeypatch.setenv("LOWWATER_STREAMS", str(gauge.settings.streams))


@pytest.mark.usefixtures("at_home")
def test_a_run_tells_of_each_track_and_how_far_it_is_off(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", "gauge", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["stream"] == "gauge"
    assert [track["windows"] for track in told["tracks"].values()] == [
        {"published": 3, "amended": 1},
        {"published": 2, "amended": 0},
    ]
    assert told["track_difference"]["fast"] == {
        "windows": 2,
        "windows_off_at_first": 1,
        "windows_off_now": 0,
        "equal_after_us": 50 * 60_000_000,
        "largest": {
            "event_count": {"first": 1.0, "now": 0.0},
            "level_count": {"first": 1.0, "now": 0.0},
            "level_sum": {"first": 8.0, "now": 0.0},
        },
    }
    assert main(["run", "gauge"]) == 0
    words = capsys.readouterr().out
    assert words.startswith("gauge is up to date\ntrack fast:\n")
    assert LAST_WORDS in words


@pytest.mark.usefixtures("at_home")
def test_commands_about_one_track_take_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dead-letters", "gauge_fast", "--json"]) == 0
    assert "late_closed_window" in capsys.readouterr().out
    assert main(["parity", "gauge_fast"]) == 0
    assert "EQUAL: proved" in capsys.readouterr().out
    assert main(["grace", "gauge_authoritative"]) == 0
    assert "gauge_authoritative: 6 rows" in capsys.readouterr().out
    assert main(["dead-letters", "gauge"]) == 2
    assert "name one of them: gauge_fast, gauge_authoritative" in capsys.readouterr().err
    assert main(["run", "gauge_fast"]) == 2
    assert "gauge_fast is a track of gauge; name that: gauge" in capsys.readouterr().err


def test_a_replay_is_of_one_track(
    gauge: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = gauge.settings.home
    words = ["replay", str(home / "streams" / "gauge.yaml")]
    words += ["--input", str(home / "landing" / "log.ndjson"), "--out"]
    dead = {}
    for track in ((), ("--track", "authoritative"), ("--track", "fast")):
        out = tmp_path / "-".join(track)
        assert main([*words, str(out / "out"), *track]) == 0
        dead[track] = pl.read_parquet(out / "out" / "dead_letters.parquet").height
    assert list(dead.values()) == [0, 0, 1]
    capsys.readouterr()
    assert main([*words, str(tmp_path / "none"), "--track", "slow"]) == 2
    assert "--track slow: gauge has no such track; known: fast, auth" in capsys.readouterr().err
