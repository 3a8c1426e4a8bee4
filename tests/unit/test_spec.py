"""The stream spec: what a file means, and that every mistake in it is told, all at once."""

from copy import deepcopy
from typing import Any

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from transforms.durations import DAY_US, MINUTE_US, SECOND_US
from transforms.spec import SpecError, SpecProblem, StreamSpec, load_spec

FULL = """\
name: river_gauges
description: Stage and rain from river gauges on three kinds of link.
source: {kind: files, path: 'landing/**/*.csv.gz', format: csv, separator: ;, nulls: [NA, '-']}
columns:
  key: station_id
  event_time: {column: sampled_at, unit: iso8601, zone: Europe/Berlin}
  arrival_time: {column: received_at, unit: ms}
  event_id: [counter, firmware]
  values: {stage_m: float, pulses: int, wet: bool, price: 'decimal(10, 2)'}
  carry: [lat, firmware]
  dedup_horizon: 7d
arrival: {grain: hour, start: 2024-07-01T06:00:00, zone: Europe/Berlin, settle: 10m}
events: {grain: day, start: 2023-12-01}
profiles:
  by: link
  default: {grace: 90s, idle_timeout: 10m, capacity: 256, future_skew: 5m}
  archive: {grace: 0s, idle_timeout: off, capacity: 4096, future_skew: 1h}
resolution: 1s
earliest_event_time: 2000-01-01
windows:
  - {name: ten_minutes, every: 10m}
aggregates:
  stage_m: [mean, p99.9]
alerts: {dead_letter_fraction: 0.05}
target: warehouse
shards: 4
"""
SMALL = """\
name: small
source: {kind: files, path: '*.ndjson', format: ndjson}
columns:
  key: station
  event_time: {column: t, unit: iso8601}
  arrival_time: {column: a, unit: iso8601}
arrival: {grain: day, start: 2024-01-01}
profiles:
  default: {grace: 90s, idle_timeout: 10m, capacity: 256, future_skew: 5m}
windows: [{name: minute, every: 1m}]
"""


def read(text: str) -> StreamSpec:
    return load_spec(text, file="spec.yaml")


def changed(path: str, value: Any, base: str = FULL) -> str:
    """The spec with another value at a path; None takes the field out."""
    tree = yaml.load(base, Loader=yaml.BaseLoader)  # noqa: S506 - only texts
    *above, last = path.split(".")
    place = tree
    for name in above:
        place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return yaml.safe_dump(tree, sort_keys=False)


def problems(text: str) -> tuple[SpecProblem, ...]:
    with pytest.raises(SpecError) as caught:
        read(text)
    return caught.value.problems


def problems_if_any(text: str) -> tuple[SpecProblem, ...]:
    try:
        read(text)
    except SpecError as error:
        return error.problems
    return ()


def messages(text: str) -> list[str]:
    """The problems without file and line."""
    return [f"{p.path}: {p.found}; {p.allowed}; {p.hint}" for p in problems(text)]


def test_a_full_spec_is_read_into_microseconds_and_types() -> None:
    spec = read(FULL)
    assert (spec.name, spec.target, spec.shards) == ("river_gauges", "warehouse", 4)
    assert (spec.source.separator, spec.source.nulls) == (";", ("NA", "-"))
    assert spec.columns.key == ("station_id",)
    assert spec.columns.event_time.zone == "Europe/Berlin"
    assert spec.columns.dedup_horizon_us == 7 * DAY_US
    assert (spec.arrival.grain, spec.arrival.settle_us) == ("hour", 10 * MINUTE_US)
    assert spec.profiles.named["archive"].grace_us == 0
    assert spec.profiles.default.idle_timeout_us == 10 * MINUTE_US
    assert (spec.resolution_us, spec.earliest_event_us) == (SECOND_US, 946_684_800_000_000)
    assert spec.aggregates == {"stage_m": ("mean", "p99.9")}
    assert spec.alerts.dead_letter_fraction == 0.05


def test_a_small_spec_needs_only_what_has_no_default() -> None:
    spec = read(SMALL)
    assert (spec.target, spec.shards, spec.description) == ("default", 1, "")
    assert (spec.resolution_us, spec.earliest_event_us) == (None, None)
    assert (spec.columns.values, spec.columns.carry, spec.aggregates) == ({}, (), {})
    assert (spec.arrival.zone, spec.arrival.settle_us, spec.events.grain) == ("UTC", 0, "day")
    assert spec.alerts.dead_letter_fraction is None


def test_a_value_has_the_type_of_its_column() -> None:
    dtypes = [kind.dtype for kind in read(FULL).columns.values.values()]
    assert dtypes == [pl.Float64(), pl.Int64(), pl.Boolean(), pl.Decimal(10, 2)]


def test_a_spec_cannot_be_changed() -> None:
    spec = read(FULL)
    for part, field in ((spec, "name"), (spec.profiles, "by"), (spec.profiles.default, "grace_us")):
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, field, "other")


# Off, dates, texts: YAML decides nothing that the field should decide.


@pytest.mark.parametrize("word", ["off", "'off'", "OFF", "false", "False", "no"])
def test_an_idle_timeout_may_be_off(word: str) -> None:
    spec = read(SMALL.replace("idle_timeout: 10m", f"idle_timeout: {word}"))
    assert spec.profiles.default.idle_timeout_us is None


@pytest.mark.parametrize("field", ["grace", "future_skew"])
@pytest.mark.parametrize("word", ["off", "false"])
def test_nothing_but_the_idle_timeout_may_be_off(field: str, word: str) -> None:
    (message,) = messages(changed(f"profiles.default.{field}", word, SMALL))
    assert message == (
        f"profiles.default.{field}: '{word}'; a duration such as 500ms, 90s, 10m, 6h or 1d; "
        "only idle_timeout may be off"
    )


@pytest.mark.parametrize("start", ["2024-01-01", "'2024-01-01'", "2024-01-01T00:00:00Z"])
def test_a_date_may_stand_with_or_without_quotes(start: str) -> None:
    spec = read(SMALL.replace("start: 2024-01-01", f"start: {start}"))
    assert spec.arrival.start_us == 1_704_067_200_000_000


def test_a_start_without_offset_is_read_in_the_zone_of_the_arrivals() -> None:
    spec = read(FULL)
    assert spec.arrival.start_us == 1_719_806_400_000_000
    assert spec.arrival.start_time.isoformat() == "2024-07-01T06:00:00+02:00"


def test_events_start_with_the_arrivals_on_the_grid_of_utc() -> None:
    text = SMALL.replace("start: 2024-01-01", "start: 2024-01-01, zone: Asia/Kolkata")
    spec = read(text)
    assert spec.arrival.start_us == 1_704_047_400_000_000
    assert spec.events.start_us == 1_703_980_800_000_000
    assert read(text + "events: {grain: 15m}\n").events.start_us == spec.arrival.start_us


def test_names_that_yaml_takes_for_something_else_stay_names() -> None:
    values = "values: {no: int, 007: float, 1.10: bool}"
    spec = read(SMALL.replace("columns:\n", f"columns:\n  {values}\n"))
    assert list(spec.columns.values) == ["no", "007", "1.10"]


# Identity and content.


def test_without_event_id_the_identity_is_key_and_event_time() -> None:
    spec = read(SMALL)
    assert (spec.identity_columns, spec.identity_has_event_time) == ((), True)


@pytest.mark.parametrize(
    ("event_id", "columns", "has_event_time"),
    [
        (["sampled_at"], (), True),
        (["counter"], ("id_counter",), False),
        (["counter", "firmware"], ("id_counter", "firmware"), False),
        (["station_id", "sampled_at", "lat"], ("lat",), True),
        (["stage_m", "sampled_at"], ("id_stage_m",), True),
    ],
)
def test_the_identity_names_staged_columns(
    event_id: list[str], columns: tuple[str, ...], *, has_event_time: bool
) -> None:
    text = changed("columns.dedup_horizon", None)
    spec = read(changed("columns.event_id", event_id, text))
    assert spec.identity_columns == columns
    assert spec.identity_has_event_time is has_event_time


def test_content_is_the_event_time_the_values_and_what_is_carried() -> None:
    content = ("event_us", "stage_m", "pulses", "wet", "price", "lat", "firmware")
    assert read(FULL).content_columns == content


def test_a_key_of_one_column_has_no_parts() -> None:
    spec = read(SMALL)
    assert (spec.is_composite_key, spec.key_parts) == (False, ())
    spec = read(changed("columns.key", ["site", "sensor"], SMALL))
    assert (spec.is_composite_key, spec.key_parts) == (True, ("site", "sensor"))
    assert not read(changed("columns.key", ["site"], SMALL)).is_composite_key


# Profiles.


def test_profiles_stand_by_name_with_default_first() -> None:
    text = FULL.replace("  default: {", "  later: {").replace("  archive: {", "  default: {")
    profiles = read(text).profiles
    assert list(profiles.named) == ["default", "later"]
    assert profiles.named["default"].capacity == 4096


def test_a_key_map_names_the_profile_of_a_key() -> None:
    text = changed("profiles.by", None)
    profiles = read(changed("profiles.key_map", {"station-7": "archive"}, text)).profiles
    assert profiles.of_key("station-7") == "archive"
    assert profiles.of_key("station-8") == "default"


@pytest.mark.parametrize("field", ["grace", "idle_timeout", "capacity", "future_skew"])
def test_a_profile_that_lacks_a_number_is_named_with_the_field(field: str) -> None:
    (problem,) = problems(changed(f"profiles.archive.{field}", None))
    assert problem.path == f"profiles.archive.{field}"
    assert problem.found == "nothing"


def test_the_default_profile_is_required() -> None:
    (problem,) = problems(changed("profiles.default", None))
    assert problem.path == "profiles.default"


# The fingerprint.


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("profiles.default.grace", "1h"),
        ("profiles.archive.capacity", "1"),
        ("profiles.satellite", dict.fromkeys(("grace", "idle_timeout", "future_skew"), "1m")),
        ("description", "other"),
        ("alerts.dead_letter_fraction", "0.5"),
        ("target", "other"),
        ("source.path", "elsewhere/*.csv"),
        ("arrival.settle", "1h"),
        ("arrival.start", "2024-07-01T04:00:00Z"),
        ("columns.key", ["station_id"]),
    ],
)
def test_what_the_state_does_not_depend_on_leaves_the_fingerprint(path: str, value: Any) -> None:
    if path == "profiles.satellite":
        value = {**value, "capacity": "1"}
    assert read(changed(path, value)).fingerprint() == read(FULL).fingerprint()


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ("columns.key", "sensor", "columns.key"),
        ("columns.carry", ["lat", "firmware", "lon"], "columns.carry"),
        ("columns.values.pulses", "float", "columns.values"),
        ("columns.dedup_horizon", "8d", "columns.dedup_horizon"),
        ("columns.event_time.zone", "UTC", "columns.event_time"),
        ("arrival.grain", "15m", "arrival.grain"),
        ("events.grain", "hour", "events.grain"),
        ("profiles.by", "model", "profiles.by"),
        ("resolution", "2s", "resolution"),
        ("windows.0.every", "5m", "windows.ten_minutes"),
        ("aggregates.stage_m", ["mean"], "aggregates"),
        ("source.separator", ",", "source.separator"),
        ("shards", "2", "shards"),
    ],
)
def test_what_the_state_depends_on_changes_the_fingerprint_by_name(
    path: str, value: Any, part: str
) -> None:
    before, after = read(FULL), read(changed(path, value))
    assert before.fingerprint() != after.fingerprint()
    old, new = before.fingerprint_parts(), after.fingerprint_parts()
    assert {name for name in old | new if old.get(name) != new.get(name)} == {part}


def test_the_order_of_values_is_part_of_the_fingerprint_for_it_is_the_order_of_columns() -> None:
    values = read(FULL).columns.values
    turned = {name: values[name].text for name in reversed(values)}
    assert read(changed("columns.values", turned)).fingerprint() != read(FULL).fingerprint()


def test_a_fingerprint_is_the_same_on_every_machine() -> None:
    assert read(SMALL).fingerprint().startswith("b0f0c1af1c1c5633")


# Whatever is written, the answer is a spec or its problems.

JUNK = st.sampled_from(
    [
        *(None, "", " ", "x", "0", "-1", "off", "1d", "1mo", "2024-01-01", "2024-02-30", "%H"),
        *("9999-12-31", "Europe/Berlin", "decimal(5,6)", "key", "Level", "p50", "kafka"),
        *([], ["x", "x"], [None], [[]], {}, {"x": "y"}, {"default": None}),
        {"name": "a", "every": "1h", "zone": "Mars/Base"},
    ]
)


def places(tree: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = tree.items() if isinstance(tree, dict) else enumerate(tree)
    found = [above]
    for name, child in children:
        inner = isinstance(child, dict | list)
        found += places(child, (*above, name)) if inner else [(*above, name)]
    return found


@given(st.data())
def test_any_junk_anywhere_gives_a_spec_or_problems_with_a_place(data: st.DataObject) -> None:
    tree = yaml.load(FULL, Loader=yaml.BaseLoader)  # noqa: S506 - only texts
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(places(tree)[1:]))
        place = tree
        for name in above:
            place = place[name]
        place[last] = deepcopy(data.draw(JUNK))
    found = problems_if_any(yaml.safe_dump(tree, sort_keys=False))
    assert all(p.path and p.found and p.allowed and p.line for p in found)


@given(st.text())
def test_any_text_gives_a_spec_or_problems(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    assert caught.value.problems
