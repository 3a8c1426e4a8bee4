"""The made-up fleet: deterministic, late in the ways it says, and its truth is recovered."""

from pathlib import Path

import polars as pl
import pytest

from orchestration.grace import log_of_files
from orchestration.replay import replay
from samples import fleet
from samples.fleet import HOUR, START, fleet_of, landing, write
from transforms.lateness.profile import lateness_profile
from transforms.spec import StreamSpec, load_spec

SPEC = Path(__file__).parents[2] / "streams" / "fleet.yaml"
TRACKS = SPEC.with_name("early_warning.yaml")
SENSORS = 125  # one with each of the faults


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    write(fleet_of(SENSORS, seed=3), days=1, home=folder)
    return folder


@pytest.fixture(scope="module")
def truth(home: Path) -> pl.DataFrame:
    return pl.read_parquet(home / "truth" / "fleet" / "*.parquet")


@pytest.fixture(scope="module")
def files(home: Path) -> list[str]:
    return sorted(map(str, (home / "landing" / "fleet").glob("*.gz")))


@pytest.fixture(scope="module")
def answers(files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("answers") / "out"
    books = replay(SPEC, files, out, until_us=START + 48 * HOUR)
    assert books["balanced"]
    return out


def spec() -> StreamSpec:
    return load_spec(SPEC.read_text(), file=str(SPEC))


def test_the_same_seed_makes_the_same_files(tmp_path: Path) -> None:
    for name in "ab":
        write(fleet_of(8, seed=5), days=1, home=tmp_path / name)
    one, other = ({f.name: f.read_bytes() for f in (tmp_path / n).rglob("*.gz")} for n in "ab")
    assert one == other


def test_another_seed_makes_other_arrivals() -> None:
    one, other = (next(landing(fleet_of(8, seed), 1))[1] for seed in (5, 6))
    assert not one.equals(other)


def test_rows_land_in_the_hour_in_which_they_arrive() -> None:
    for hour, rows, _ in landing(fleet_of(16, seed=5), 3):
        assert rows["arrival"].is_sorted()
        assert rows["arrival"].is_between(START + hour * HOUR, START + (hour + 1) * HOUR - 1).all()


def test_the_truth_of_every_healthy_sensor_is_recovered(truth: pl.DataFrame, answers: Path) -> None:
    hour = (pl.col("time") // HOUR * HOUR).alias("window_start_us")
    came = truth.filter(fault="none").drop_nulls("arrival")
    expected = came.group_by(pl.col("sensor").alias("key"), hour).agg(
        pl.len().cast(pl.Int64).alias("event_count"),
        pl.col("value").min().alias("value_min"),
        pl.col("value").max().alias("value_max"),
        pl.col("value").mean().alias("value_mean"),
    )
    windows = pl.read_parquet(answers / "windows.parquet").filter(window="hour")
    both = expected.join(windows, on=["key", "window_start_us"], how="left", suffix="_found")
    assert both.height == 120 * 24
    for column in ("event_count", "value_min", "value_max"):
        assert both[column].equals(both[f"{column}_found"].alias(column))
    assert ((both["value_mean"] - both["value_mean_found"]).abs() < 1e-9).all()


def test_stamps_from_before_there_was_a_network_are_rejected(
    truth: pl.DataFrame, answers: Path
) -> None:
    unset = truth.filter(pl.col("stamp") < START, fault="reset").drop_nulls("arrival").height
    rejected = pl.read_parquet(answers / "rejected_rows.parquet")
    assert unset > 0
    assert set(rejected["reason"]) == {"implausible_event_time"}
    assert rejected.height >= unset


def test_faults_are_told_and_nothing_else(files: list[str], truth: pl.DataFrame) -> None:
    log = log_of_files(spec(), files)
    table = lateness_profile(log, tuple(spec().profiles.named)).filter(level="key")
    faulty = dict(truth.select("sensor", "fault").unique().filter(fault="link").iter_rows())
    alike = table.filter(pl.col("looks_like").is_not_null())
    assert alike.select("name", "looks_like").rows() == [(name, "satellite") for name in faulty]
    zones = table.filter(pl.col("clock_zone_minutes").is_not_null())
    assert zones.select("name", "clock_zone_minutes").rows() == [
        (name, -420) for name in truth.filter(fault="zone")["sensor"].unique()
    ]
    drifting = table.filter(pl.col("clock_drift_ppm").abs() > 60)
    assert drifting["name"].to_list() == truth.filter(fault="drift")["sensor"].unique().to_list()
    assert table["clock_jumps"].sum() == 0
    came = truth.drop_nulls("arrival").filter(fault="wrap")
    turned = came.filter(pl.col("stamp") < pl.col("time")).group_by("sensor").len()
    wrapped = table.filter(pl.col("wrapped_rows") > 0).select("name", "wrapped_rows")
    assert wrapped.rows() == turned.rows() != []


def test_a_clock_that_restarts_is_told_where_no_floor_rejects_its_rows(
    files: list[str], truth: pl.DataFrame
) -> None:
    log = log_of_files(spec().model_copy(update={"earliest_event_us": None}), files)
    table = lateness_profile(log, tuple(spec().profiles.named)).filter(pl.col("clock_jumps") > 0)
    (reset,) = truth.filter(fault="reset")["sensor"].unique()
    # Once down, once up again.
    assert table.select("name", "clock_jumps").rows() == [(reset, 2)]


def test_every_kind_is_on_every_link() -> None:
    made = fleet_of(64, seed=1)
    pairs = set(zip(made.kind.tolist(), made.carrier.tolist(), strict=True))
    assert len(pairs) == len(fleet.KINDS) * len(fleet.LINKS)


def test_a_month_is_made_hour_by_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    hour_of = fleet.hour_of
    monkeypatch.setattr(fleet, "hour_of", lambda f, hour: made.append(hour) or hour_of(f, hour))
    month = landing(fleet_of(8, seed=5), 24 * 30)
    in_flight = [next(month)[0] for _ in range(3)]
    assert made == in_flight == [0, 1, 2]


def test_the_fast_track_of_the_sample_says_in_the_end_what_the_authoritative_one_says(
    files: list[str], tmp_path: Path
) -> None:
    said, late = [], []
    for track in ("fast", "authoritative"):
        out = tmp_path / track
        replay(TRACKS, files, out, until_us=START + 48 * HOUR, track=track)
        windows = pl.read_parquet(out / "windows.parquet")
        said.append(windows.select("key", "window_start_us", "^value_.*$", "event_count"))
        late.append(pl.read_parquet(out / "dead_letters.parquet").height)
    assert said[0].equals(said[1])
    assert late[0] > 10 * late[1]
