"""A made-up environmental network whose truth is known: the stream ``fleet``.

River gauges, rain gauges, air quality and smoke sensors on four kinds of link, each late in its own
way; a few of them with the faults that real ones have; a flood and a wildfire, which come when
links are at their worst. All of it follows from a seed: the same seed, sensors and days make the
same files.

    python samples/fleet.py --sensors 200 --days 3 --seed 7

writes an NDJSON file for each arrival hour (``landing/fleet``) and, beside them, what really
happened (``truth/fleet``): every reading with its true time and value, how the device stamped it,
when it first arrived (null: never), what is wrong with its sensor. An hour of readings is made at a
time, so the size of the fleet is bounded by the disk: memory holds an hour and what is in flight.

Links
* wired: a fraction of a second.
* cellular: a second or two, at times a minute; coverage gaps, after which what was stored is handed
  over in one burst. Where the fire burns, the cells are saturated.
* lorawan: one uplink a minute; one in thirty is missed and sent again with a later one; a few are
  heard by two gateways.
* satellite: what was sampled since the last pass comes with the next, some passes fail; half of the
  devices send the newest reading first.
"""

import argparse
import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
START = 1_714_521_600 * SECOND  # 2024-05-01T00:00:00Z
LONG_AGO = 946_684_800 * SECOND  # 2000-01-01, where a device without a clock begins

KINDS = ("river", "rain", "air", "smoke")
LINKS = ("wired", "cellular", "lorawan", "satellite")
WIRED, CELLULAR, LORAWAN, SATELLITE = range(4)
INTERVAL = {WIRED: 30 * SECOND, CELLULAR: 30 * SECOND, LORAWAN: MINUTE, SATELLITE: 5 * MINUTE}
FAULTS = ("none", "drift", "reset", "zone", "wrap", "link")
NONE, DRIFT, RESET, ZONE, WRAP, LINK = range(6)
# One sensor in so many has a fault, each of them in turn.
FAULTY_EVERY = 25
# A counter of 32 bits, in microseconds, and for how long after each turn a device misses it.
TURN = 1 << 32
UNNOTICED = 90 * SECOND

SLICE = 200_000  # rows turned into text at a time

# How often links fail: uplinks sent again, uplinks lost, slow cells, passes without a contact.
MISSED = 1 / 30
LOST = 0.003
SLOW = 0.02
FAILED_PASSES = 0.05

# What purposes random numbers are drawn for: each has a generator of its own.
_SENSORS, _READINGS, _LINKS, _GAPS, _PASSES, _RESETS = range(6)


def draw(seed: int, purpose: int, number: int = 0) -> np.random.Generator:
    """A generator that depends on the seed, the purpose and the number of the hour or day alone."""
    return np.random.default_rng([seed, purpose, number])


@dataclass(frozen=True)
class Fleet:
    """The sensors, as arrays; ``link`` is what a sensor says, ``carrier`` what it is really on."""

    seed: int
    kind: Ints
    link: Ints
    carrier: Ints
    fault: Ints
    interval: Ints
    phase: Ints
    x: Floats  # from the source of the river (0) to its mouth (1)
    drift_ppm: Floats

    @property
    def size(self) -> int:
        """The number of sensors."""
        return int(self.kind.size)

    @property
    def names(self) -> pl.Series:
        """The key of each sensor."""
        kinds = pl.Series(KINDS).gather(pl.Series(self.kind))
        numbered = pl.DataFrame({"kind": kinds}).with_row_index("number")
        return numbered.select(pl.format("{}-{}", "kind", pl.col("number"))).to_series()


def fleet_of(sensors: int, seed: int) -> Fleet:
    """Place the sensors: kinds and links in turn, a fault on every 25th, one after another."""
    rng = draw(seed, _SENSORS)
    number = np.arange(sensors)
    link = (number // len(KINDS)) % len(LINKS)
    turn = number // FAULTY_EVERY % (len(FAULTS) - 1)
    fault = np.where(number % FAULTY_EVERY == FAULTY_EVERY - 1, DRIFT + turn, NONE)
    # A sensor whose link is declared wrongly says cellular and is on a satellite.
    carrier = np.where(fault == LINK, SATELLITE, link)
    link = np.where(fault == LINK, CELLULAR, link)
    interval = np.array([INTERVAL[code] for code in range(len(LINKS))])[carrier]
    return Fleet(
        seed=seed,
        kind=number % len(KINDS),
        link=link,
        carrier=carrier,
        fault=fault,
        interval=interval,
        phase=(rng.random(sensors) * interval).astype(np.int64) // SECOND * SECOND,
        x=rng.random(sensors),
        drift_ppm=np.where(fault == DRIFT, rng.choice([-1, 1], sensors) * 120.0, 0.0),
    )


def bump(hours: Floats, at: Floats | float, width: float) -> Floats:
    """A smooth rise and fall around a time, 1 at its top."""
    shape: Floats = np.exp(-(((hours - at) / width) ** 2))
    return shape


def true_value(fleet: Fleet, sensor: Ints, time: Ints) -> Floats:
    """What a sensor measures at a time, without noise: the same for whoever asks.

    It rains on the second day from hour 24 on; the flood wave takes eight hours from the source to
    the mouth. The wildfire burns from hour 40 on around x = 0.7.
    """
    hours = (time - START) / HOUR
    x, kind = fleet.x[sensor], fleet.kind[sensor]
    daily = np.sin(2 * np.pi * hours / 24)
    plume = bump(hours, 44.0, 4.0) * bump(x, 0.7, 0.15)
    river = 1.2 + 0.05 * daily + 3.5 * bump(hours, 30 + 8 * x, 3.0)
    rain = 4.0 * bump(hours, 27.0, 2.0)
    air = 12 + 4 * daily + 180 * plume
    smoke = 0.02 + 2.5 * plume
    value: Floats = np.choose(kind, [river, rain, air, smoke])
    return np.round(value, 3)


def readings(fleet: Fleet, hour: int) -> pl.DataFrame:
    """All readings of one hour of true time: sensor, time, value; by sensor, then time."""
    begin = START + hour * HOUR
    first = begin + (fleet.phase - begin) % fleet.interval
    count = -(-(begin + HOUR - first) // fleet.interval)
    sensor = np.repeat(np.arange(fleet.size), count)
    within = np.arange(sensor.size) - np.repeat(np.cumsum(count) - count, count)
    time = first[sensor] + within * fleet.interval[sensor]
    value = true_value(fleet, sensor, time)
    return pl.DataFrame({"sensor": sensor, "time": time, "value": value})


def stamps(fleet: Fleet, sensor: Ints, time: Ints) -> Ints:
    """How the devices stamp their readings: the true time, but for a few clocks.

    A drifting clock was right at the start; a reset one counts from 2000 until it is set again; a
    zone is seven hours of local time taken for UTC; a counter that wraps is a turn behind until the
    device notices.
    """
    drifted = ((time - START) * fleet.drift_ppm[sensor] / 1e6).astype(np.int64)
    stamp = time + drifted - np.where(fleet.fault[sensor] == ZONE, 7 * HOUR, 0)
    begin, end = reset_of(fleet, sensor, time)
    unset = (fleet.fault[sensor] == RESET) & (begin <= time) & (time < end)
    wrapped = (fleet.fault[sensor] == WRAP) & ((time - START) % TURN < UNNOTICED)
    return np.where(unset, LONG_AGO + time - begin, stamp - TURN * wrapped)


def reset_of(fleet: Fleet, sensor: Ints, time: Ints) -> tuple[Ints, Ints]:
    """When the clock of a sensor is unset on the day of a time: from, until."""
    return _daily(fleet, _RESETS, sensor, time, length=(30 * MINUTE, 2 * HOUR))


def gap_of(fleet: Fleet, sensor: Ints, time: Ints) -> tuple[Ints, Ints]:
    """When a cellular sensor has no coverage on the day of a time: from, until."""
    return _daily(fleet, _GAPS, sensor, time, length=(2 * MINUTE, 40 * MINUTE))


def _daily(
    fleet: Fleet, purpose: int, sensor: Ints, time: Ints, length: tuple[int, int]
) -> tuple[Ints, Ints]:
    """One stretch of each day for each sensor, wholly within the day."""
    days = (time - START) // DAY
    begin, end = np.empty_like(time), np.empty_like(time)
    for day in np.unique(days):
        rng = draw(fleet.seed, purpose, int(day))
        lengths = rng.integers(*length, fleet.size)
        begins = START + day * DAY + (rng.random(fleet.size) * (DAY - lengths)).astype(np.int64)
        of_day = days == day
        begin[of_day] = begins[sensor[of_day]]
        end[of_day] = (begins + lengths)[sensor[of_day]]
    return begin, end


def arrivals(fleet: Fleet, hour: int, sensor: Ints, time: Ints) -> tuple[Ints, Mask]:
    """When each reading first arrives, and which never do."""
    rng = draw(fleet.seed, _LINKS, hour)
    carrier = fleet.carrier[sensor]
    quick = time + (rng.exponential(0.2, time.size) * SECOND).astype(np.int64) + 50_000
    by_link = (
        quick,
        _by_cell(fleet, rng, sensor, time),
        _by_lorawan(rng, time),
        _by_satellite(fleet, rng, sensor, time),
    )
    lost = (carrier == LORAWAN) & (rng.random(time.size) < LOST)
    return np.choose(carrier, by_link), lost


def _by_cell(fleet: Fleet, rng: np.random.Generator, sensor: Ints, time: Ints) -> Ints:
    seconds = rng.lognormal(0.4, 0.5, time.size)
    slow = rng.random(time.size) < SLOW
    seconds[slow] += rng.uniform(5, 60, int(slow.sum()))
    hours = (time - START) / HOUR
    seconds *= 1 + 15 * bump(hours, 44.0, 4.0) * bump(fleet.x[sensor], 0.7, 0.15)
    delay = (seconds * SECOND).astype(np.int64)
    begin, end = gap_of(fleet, sensor, time)
    stored = (begin <= time) & (time < end)
    # What was stored follows in order, twenty milliseconds apart.
    place = (time - begin) // fleet.interval[sensor]
    return np.where(stored, end + SECOND + place * 20_000, time + delay)


def _by_lorawan(rng: np.random.Generator, time: Ints) -> Ints:
    delay = rng.uniform(0.4, 2.5, time.size)
    missed = rng.random(time.size) < MISSED
    again = MINUTE * rng.integers(1, 16, time.size)
    return time + (delay * SECOND).astype(np.int64) + np.where(missed, again, 0)


def _by_satellite(fleet: Fleet, rng: np.random.Generator, sensor: Ints, time: Ints) -> Ints:
    period = (22 + sensor % 7) * MINUTE
    number = (time - fleet.phase[sensor]) // period + 1
    # A pass that fails leaves its readings to the next: that is the same for all readings of it.
    fails = _hash01(fleet.seed, sensor, number) < FAILED_PASSES
    pass_at = (number + fails) * period + fleet.phase[sensor]
    backlog = (pass_at - time) // fleet.interval[sensor]
    newest_first = sensor % 2 == 1
    place = np.where(newest_first, backlog, 100 - np.minimum(backlog, 100))
    jitter = rng.integers(0, 50_000, time.size)
    arrival: Ints = pass_at + 40 * SECOND + place * 200_000 + jitter
    return arrival


def _hash01(seed: int, sensor: Ints, number: Ints) -> Floats:
    """A number in [0, 1) for each sensor and number, by splitmix64."""
    with np.errstate(over="ignore"):
        mixed = (sensor.astype(np.uint64) << np.uint64(32)) ^ number.astype(np.uint64)
        mixed += np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed ^ (mixed >> np.uint64(31))).astype(np.float64) / 2.0**64


@dataclass(frozen=True)
class Hour:
    """One hour of true time: what happened, and what of it was delivered, twice at times."""

    truth: pl.DataFrame
    delivered: pl.DataFrame


def hour_of(fleet: Fleet, hour: int) -> Hour:
    """Make the readings of an hour and their deliveries."""
    truth = readings(fleet, hour)
    sensor, time = truth["sensor"].to_numpy(), truth["time"].to_numpy()
    arrival, lost = arrivals(fleet, hour, sensor, time)
    truth = truth.with_columns(
        pl.Series("stamp", stamps(fleet, sensor, time) // 1000 * 1000),
        pl.Series("arrival", arrival).set(pl.Series(lost), None),
    )
    return Hour(truth, deliveries(fleet, hour, truth.drop_nulls("arrival")))


def deliveries(fleet: Fleet, hour: int, arrived: pl.DataFrame) -> pl.DataFrame:
    """What arrived, and some of it again: a second gateway, a retransmission."""
    rng = draw(fleet.seed, _READINGS, hour)
    carrier = fleet.carrier[arrived["sensor"].to_numpy()]
    twice = rng.random(arrived.height) < np.choose(carrier, [0.0, 0.01, 0.1, 0.01])
    later = np.where(carrier == LORAWAN, rng.integers(1, 2 * SECOND, arrived.height), 5 * MINUTE)
    again = arrived.with_columns(pl.col("arrival") + pl.Series(later)).filter(pl.Series(twice))
    return pl.concat([arrived, again])


def landing(fleet: Fleet, hours: int) -> Iterator[tuple[int, pl.DataFrame, pl.DataFrame | None]]:
    """``(hour, rows that arrive in it, truth of it)``, in order; after the last readings no truth.

    The rows are in arrival order, as a consumer would get them.
    """
    flying: pl.DataFrame | None = None
    hour = 0
    while hour < hours or (flying is not None and flying.height):
        made = hour_of(fleet, hour) if hour < hours else None
        pending = [] if flying is None else [flying]
        every = pl.concat([*pending, made.delivered] if made else pending)
        here = pl.col("arrival") < START + (hour + 1) * HOUR
        flying = every.filter(~here)
        arrived = every.filter(here).sort("arrival", "sensor", "time")
        yield hour, arrived, made.truth if made else None
        hour += 1


def as_telemetry(fleet: Fleet, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows as devices and gateways write them."""

    def iso(column: str) -> pl.Expr:
        stamp = pl.col(column).cast(pl.Datetime("us"))
        return stamp.dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")

    code = pl.col("sensor")
    return rows.select(
        sensor=pl.lit(fleet.names).gather(code),
        kind=pl.lit(pl.Series(KINDS)).gather(pl.lit(pl.Series(fleet.kind)).gather(code)),
        link=pl.lit(pl.Series(LINKS)).gather(pl.lit(pl.Series(fleet.link)).gather(code)),
        sampled_at=iso("stamp"),
        received_at=iso("arrival"),
        value=pl.col("value"),
    )


def as_truth(fleet: Fleet, rows: pl.DataFrame) -> pl.DataFrame:
    """The truth of readings, times in microseconds UTC."""
    code = pl.col("sensor")
    fault = pl.lit(pl.Series(FAULTS)).gather(pl.lit(pl.Series(fleet.fault)).gather(code))
    return rows.with_columns(sensor=pl.lit(fleet.names).gather(code), fault=fault)


def write(fleet: Fleet, days: float, home: Path) -> int:
    """Write landing and truth files, an hour at a time; gives the number of rows delivered."""
    lands, truths = home / "landing" / "fleet", home / "truth" / "fleet"
    for folder in (lands, truths):
        folder.mkdir(parents=True, exist_ok=True)
    delivered = 0
    for hour, rows, truth in landing(fleet, round(24 * days)):
        name = np.datetime_as_string(np.datetime64(START + hour * HOUR, "us"), "h")
        write_packed(fleet, rows, lands / f"{name}.ndjson.gz")
        if truth is not None:
            as_truth(fleet, truth).write_parquet(truths / f"{name}.parquet")
        delivered += rows.height
    return delivered


def write_packed(fleet: Fleet, rows: pl.DataFrame, path: Path) -> None:
    """Write rows as gzipped NDJSON, a slice at a time; the same rows give the same bytes."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", 1, file, mtime=0) as packed:
        for part in rows.iter_slices(SLICE):
            packed.write(as_telemetry(fleet, part).write_ndjson().encode())


def main() -> None:
    """Write the fleet under the data directory (``LOWWATER_HOME``, by default ``data``)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sensors", type=int, default=200)
    parser.add_argument("--days", type=float, default=3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("LOWWATER_HOME", "data")))
    given = parser.parse_args()
    rows = write(fleet_of(given.sensors, given.seed), given.days, given.home)
    print(f"{rows:,} rows of {given.sensors:,} sensors in {given.home / 'landing' / 'fleet'}")  # noqa: T201 - it is the result of a script


if __name__ == "__main__":
    main()
