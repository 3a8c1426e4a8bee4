"""The figures of practice: an hour of a cellular link, a LoRaWAN node."""

import numpy as np
import polars as pl
from unit.small_logs import SECOND, stream

from transforms import schemas
from transforms.grace.advice import capacity_of
from transforms.grace.sweep import DEAD, PEAK_ROWS, Sweep, sweep_of
from transforms.lateness.arrival_log import read_log
from transforms.reorder import advance, empty_state
from transforms.spec import StreamSpec

HOUR_S = 3600


def one_sensor(spec: StreamSpec, event_s: np.ndarray, late_s: np.ndarray) -> pl.DataFrame:
    """Staged rows of one key in arrival order."""
    event = (event_s * SECOND).astype(np.int64)
    rows = pl.DataFrame({"event_us": event, "arrival_us": event + (late_s * SECOND).astype(int)})
    rows = rows.sort("arrival_us").with_row_index("seq").with_columns(pl.col("seq").cast(pl.Int64))
    lacking = [
        pl.lit(None, kind).alias(name)
        for name, kind in schemas.staged_schema(spec).items()
        if name not in rows.columns
    ]
    whole = rows.with_columns(lacking).with_columns(pl.lit("a").alias("key"))
    return whole.select(list(schemas.staged_schema(spec)))


def an_hour_of_cellular(spec: StreamSpec) -> pl.DataFrame:
    """A reading a second: a second or two late, 3 % up to a minute, one gap of 80 s."""
    rng = np.random.default_rng(4)
    event = np.arange(HOUR_S, dtype=np.float64)
    late = rng.lognormal(0.4, 0.5, HOUR_S)
    slow = rng.random(HOUR_S) < 0.03
    late[slow] += rng.uniform(5, 60, slow.sum())
    gap = (event >= 1200) & (event < 1280)
    late[gap] = 1281 - event[gap] + 0.02 * np.arange(gap.sum())
    return one_sensor(spec, event, late)


def test_an_hour_of_cellular_is_released_in_order_with_under_one_percent_dead_letters() -> None:
    spec = stream(grace="90s", capacity=256)
    rows = an_hour_of_cellular(spec)
    earlier = schemas.row_schema(spec).to_frame()
    outcome = advance(spec, rows, empty_state(spec), earlier, None)
    assert rows.height == 3600
    assert outcome.ordered["event_us"].is_sorted()
    assert outcome.ordered.height > 3400
    assert outcome.dead_letters.height < 36
    sweep = sweep_of(spec, read_log(spec, rows), "default")
    assert sweep.point(90 * SECOND, 256)[DEAD] == outcome.dead_letters.height


def lorawan_sweep() -> Sweep:
    spec = stream(grace="30m", capacity=64)
    minutes = np.arange(1440, dtype=np.float64) * 60
    late = np.random.default_rng(5).uniform(0.5, 2.5, 1440)
    return sweep_of(spec, read_log(spec, one_sensor(spec, minutes, late)), "default")


def test_a_lorawan_node_with_half_an_hour_of_grace_holds_about_thirty_rows() -> None:
    point = lorawan_sweep().point(30 * 60 * SECOND)
    assert 30 <= point[PEAK_ROWS] <= 32


def test_its_capacity_is_grace_times_peak_rate_times_one_and_a_half() -> None:
    sweep = lorawan_sweep()
    room = capacity_of(sweep, sweep.point(30 * 60 * SECOND))
    assert room.by_rate == 45
    assert (room.measured, room.rows) == (32, 48)
