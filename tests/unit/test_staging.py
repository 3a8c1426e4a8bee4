"""Raw rows to staged and rejected rows: keys, reasons in their order, profiles, resolution."""

import json
from typing import Any

import polars as pl
import pytest

from transforms.reading.ndjson import ndjson_rows
from transforms.reading.raw_rows import source_columns
from transforms.reading.text_lines import split_lines
from transforms.schemas import REJECTION_REASONS, rejected_schema, staged_schema
from transforms.spec import StreamSpec, load_spec
from transforms.staging import (
    Parsed,
    fill_arrival_for_partition,
    first_seq,
    parse,
    with_seq,
)

ROW = {"site": "north", "at": "2026-05-04T00:00:05Z", "got": "2026-05-04T00:00:06Z", "level": 1.5}
AT, GOT = 1_777_852_805_000_000, 1_777_852_806_000_000

SPEC = """
name: gauges
source: {kind: files, path: '*.ndjson', format: ndjson}
columns:
  key: KEY
  event_time: {column: at, unit: UNIT}
  arrival_time: {column: got, unit: iso8601}
  event_id: [EVENT_ID]
  values: {level: float, pulses: int}
  carry: [lat, firmware]
arrival: {grain: day, start: 2026-05-03, zone: UTC}
events: {grain: day}
profiles:
  default: {grace: 10s, idle_timeout: 'off', capacity: 1000, future_skew: 5m}
  satellite: {grace: 1h, idle_timeout: 'off', capacity: 1000, future_skew: 5m}
windows: [{name: minute, every: 1m}]
aggregates: {level: [sum]}
earliest_event_time: 2000-01-01
MORE
"""


def spec(
    key: str = "site", unit: str = "iso8601", event_id: str = "", more: str = "", by: str = ""
) -> StreamSpec:
    text = SPEC.replace("KEY", key).replace("UNIT", unit).replace("EVENT_ID", event_id)
    text = text.replace("profiles:\n", f"profiles:\n  by: {by}\n" if by else "profiles:\n")
    return load_spec(text.replace("MORE", more), file="gauges.yaml")


def stage(stream: StreamSpec, *lines: str | dict[str, Any]) -> Parsed:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    data = "".join(f"{text}\n" for text in texts).encode()
    rows = ndjson_rows(split_lines(data), source_columns(stream))
    parsed = parse(stream, rows, source="landing/a.ndjson")
    assert parsed.staged.schema == staged_schema(stream)
    assert parsed.rejected.schema == rejected_schema()
    assert parsed.height == rows.height
    return parsed


def staged(stream: StreamSpec, *lines: str | dict[str, Any]) -> list[dict[str, Any]]:
    parsed = stage(stream, *lines)
    assert parsed.rejected.is_empty(), parsed.rejected
    return parsed.staged.to_dicts()


def rejected(stream: StreamSpec, *lines: str | dict[str, Any]) -> list[dict[str, Any]]:
    parsed = stage(stream, *lines)
    assert parsed.staged.is_empty(), parsed.staged
    return parsed.rejected.to_dicts()


def test_a_clean_row_has_the_columns_of_the_contract() -> None:
    row = {**ROW, "pulses": 3, "lat": 1.10, "firmware": "2.1", "not_declared": {"x": 1}}
    line = json.dumps(row).replace("1.1,", "1.10,")
    assert staged(spec(), line) == [
        {
            "seq": 0,
            "key": "north",
            "event_us": AT,
            "arrival_us": GOT,
            "level": 1.5,
            "pulses": 3,
            "lat": "1.10",
            "firmware": "2.1",
            "unreadable": None,
        }
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *(('"north"', "north"), ("7", "7"), ("1.10", "1.10"), ("1e3", "1e3"), ("true", "true")),
        *(('" "', " "), ('"a|b"', "a|b"), ('"back\\\\slash"', "back\\slash"), ("NaN", "NaN")),
        ('{"b": 1.10, "a": ["x", null]}', '{"a":["x",null],"b":1.10}'),
    ],
)
def test_a_key_is_text_as_it_was_written(text: str, key: str) -> None:
    assert staged(spec(), json.dumps(ROW).replace('"north"', text))[0]["key"] == key


def test_the_parts_of_a_composite_key_are_escaped_and_kept_beside_it() -> None:
    rows = staged(
        spec("[site, sensor]"),
        {**ROW, "sensor": "7"},
        {**ROW, "site": "a|b", "sensor": "c"},
        {**ROW, "site": "a", "sensor": "b|c"},
        {**ROW, "site": "a\\", "sensor": 1},
    )
    assert [row["key"] for row in rows] == ["north|7", "a\\|b|c", "a|b\\|c", "a\\\\|1"]
    assert [(row["site"], row["sensor"]) for row in rows][1:] == [
        ("a|b", "c"),
        ("a", "b|c"),
        ("a\\", "1"),
    ]


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ({"site": None}, "missing_key", "site is null or empty"),
        ({"site": ""}, "missing_key", "site is null or empty"),
        ({"at": None}, "missing_event_time", "at is null or empty"),
        ({"at": ""}, "missing_event_time", "at is null or empty"),
        ({"at": "noon"}, "unreadable_event_time", "at 'noon' is no ISO 8601 time"),
        ({"at": 1777852805}, "unreadable_event_time", "at '1777852805' is no ISO 8601 time"),
        ({"at": "2026-05-04T00:00:05"}, "unreadable_event_time", "no offset, and no zone"),
        ({"at": "1999-12-31T23:59:59.999999Z"}, "implausible_event_time", "before earliest_"),
        ({"got": None}, "missing_arrival_time", "got is null or empty"),
        ({"got": ""}, "missing_arrival_time", "got is null or empty"),
        ({"got": "later"}, "missing_arrival_time", "got 'later' is no ISO 8601 time"),
    ],
)
def test_each_reason_says_what_is_wrong(change: dict[str, Any], reason: str, words: str) -> None:
    line = json.dumps({**ROW, **change})
    (row,) = rejected(spec(), line)
    assert (row["reason"], row["raw"], row["line"]) == (reason, line, 1)
    assert words in row["detail"]
    assert row["source"] == "landing/a.ndjson"


def test_reasons_are_tested_in_the_order_of_the_contract() -> None:
    faults: list[str | dict[str, Any]] = [
        "{broken",
        {"site": "", "at": None, "got": None},
        {"site": "north", "at": "", "got": None},
        {"site": "north", "at": "noon", "got": None},
        {"site": "north", "at": "1970-01-01T00:00:00Z", "got": None},
        {"site": "north", "at": ROW["at"], "got": None},
    ]
    assert tuple(row["reason"] for row in rejected(spec(), *faults)) == REJECTION_REASONS


def test_a_composite_key_that_lacks_one_part_is_no_key() -> None:
    (one, both) = rejected(
        spec("[site, sensor]"), {**ROW, "sensor": ""}, {**ROW, "site": None, "sensor": None}
    )
    assert one["detail"] == "sensor is null or empty"
    assert both["detail"] == "site, sensor is null or empty"


def test_a_rejected_row_keeps_its_arrival_if_that_can_be_read() -> None:
    rows = rejected(spec(), {**ROW, "site": None}, {**ROW, "site": None, "got": None}, "{")
    assert [row["arrival_us"] for row in rows] == [GOT, None, None]


@pytest.mark.parametrize(
    ("declared", "number", "likely"),
    [("ms", 1777852805, "likely s (2026-05-04T00:00:05Z)"), ("us", 1777852805000, "likely ms")],
)
def test_an_implausible_time_names_the_likely_unit(declared: str, number: int, likely: str) -> None:
    (row,) = rejected(spec(unit=declared), {**ROW, "at": number})
    assert row["reason"] == "implausible_event_time"
    assert f"declared in {declared}, {likely}" in row["detail"]


def test_a_time_that_is_implausible_in_every_unit_names_none() -> None:
    (row,) = rejected(spec(unit="ms"), {**ROW, "at": 5})
    assert row["detail"].endswith("before earliest_event_time 2000-01-01T00:00:00Z")


def test_the_floor_itself_is_plausible() -> None:
    assert staged(spec(), {**ROW, "at": "2000-01-01T00:00:00Z"})


def test_values_that_cannot_be_read_are_kept_as_text() -> None:
    rows = staged(
        spec(),
        {**ROW, "level": "n/a", "pulses": 1.5},
        {**ROW, "level": {"mV": 3.10}, "pulses": None},
        {**ROW, "level": "", "pulses": "7"},
    )
    assert [(row["level"], row["pulses"]) for row in rows] == [(None, None)] * 2 + [(None, 7)]
    assert [row["unreadable"] for row in rows] == [
        '{"level":"n/a","pulses":"1.5"}',
        '{"level":"{\\"mV\\":3.1}"}',
        None,
    ]


def test_resolution_floors_the_time_and_keeps_the_one_that_was_sent() -> None:
    stream = spec(unit="us", more="resolution: 10s")
    early = spec(unit="us", more="resolution: 10s").model_copy(update={"earliest_event_us": None})
    (row,) = staged(stream, {**ROW, "at": AT})
    assert (row["event_us"], row["original_event_us"]) == (AT - 5_000_000, AT)
    (before,) = staged(early, {**ROW, "at": -1})
    assert (before["event_us"], before["original_event_us"]) == (-10_000_000, -1)
    (below,) = rejected(early, {**ROW, "at": -(2**63)})
    assert below["reason"] == "unreadable_event_time"


def test_plausible_is_judged_after_resolution() -> None:
    stream = spec(unit="us", more="resolution: 10s")
    late_start = stream.model_copy(update={"earliest_event_us": AT})
    (row,) = rejected(late_start, {**ROW, "at": AT + 1})
    assert row["reason"] == "implausible_event_time"


def test_the_profile_of_a_row_is_resolved() -> None:
    rows = staged(
        spec(by="link"),
        {**ROW, "link": "satellite"},
        {**ROW, "link": "pigeon"},
        {**ROW, "link": None},
        ROW,
    )
    assert [row["profile"] for row in rows] == ["satellite", "default", "default", "default"]


def test_columns_of_the_identity_alone_have_names_of_their_own() -> None:
    (row,) = staged(spec(event_id="counter, at, firmware"), {**ROW, "counter": 7, "firmware": "x"})
    assert row["id_counter"] == "7"
    assert not {"id_at", "id_firmware"} & set(row)


def test_an_empty_carried_text_is_no_null() -> None:
    rows = staged(spec(), {**ROW, "lat": "", "firmware": None}, {**ROW, "lat": False})
    assert [(row["lat"], row["firmware"]) for row in rows] == [("", None), ("false", None)]


def test_seq_is_given_by_file_and_row() -> None:
    parsed = stage(spec(), ROW, "{broken", ROW)
    assert parsed.staged["seq"].to_list() == [0, 2]
    assert parsed.rejected["seq"].to_list() == [1]
    moved = with_seq(parsed, first_seq(3))
    assert moved.staged["seq"].to_list() == [3 * 2**32, 3 * 2**32 + 2]
    assert moved.rejected["seq"].to_list() == [3 * 2**32 + 1]


def test_blank_lines_take_no_seq_but_are_lines() -> None:
    parsed = stage(spec(), "", ROW, " \t", "{broken", "")
    assert parsed.staged["seq"].to_list() == [0]
    assert parsed.rejected.select("seq", "line").rows() == [(1, 4)]


def arrival(second: int | None) -> str:
    got = None if second is None else f"2026-05-04T00:00:{second:02}Z"
    return json.dumps({**ROW, "got": got})


def test_a_row_without_arrival_goes_with_the_last_readable_one_before_it() -> None:
    keyless = json.dumps({**ROW, "site": None, "got": "2026-05-04T00:00:30Z"})
    parsed = stage(spec(), arrival(10), arrival(None), keyless, "{", arrival(20), "{")
    seconds = (fill_arrival_for_partition(parsed) - GOT) // 1_000_000 + 6
    assert seconds.to_list() == [10, 30, 30, 20]


def test_without_one_before_it_it_goes_with_the_next() -> None:
    parsed = stage(spec(), "{", arrival(None), arrival(20), "{")
    seconds = (fill_arrival_for_partition(parsed) - GOT) // 1_000_000 + 6
    assert seconds.to_list() == [20, 20, 20]


def test_a_file_without_any_readable_arrival_has_none_to_give() -> None:
    assert fill_arrival_for_partition(stage(spec(), "{", arrival(None))).to_list() == [None, None]
    assert fill_arrival_for_partition(stage(spec(), arrival(1))).to_list() == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{broken", "not JSON"),
        ("[1]", "a list, not a JSON object"),
        ("5", "a number, not a JSON object"),
        ('"x"', "a string, not a JSON object"),
        ("null", "null, not a JSON object"),
        ("true", "a boolean, not a JSON object"),
        (json.dumps(ROW) + " x", "not JSON: Extra data"),
        ("{'site': 1}", "not JSON"),
        ('{"site": "a\tb"}', "not JSON"),
        ('{"site": "\\ud83d"}', "half of a surrogate pair"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_line_that_is_no_json_object_is_malformed(line: str, words: str) -> None:
    (row,) = rejected(spec(), line)
    assert row["reason"] == "malformed_record"
    assert words in row["detail"]
    assert row["raw"] == line


def test_of_a_name_that_occurs_twice_the_last_wins() -> None:
    line = json.dumps(ROW).replace("{", '{"site": "south", ', 1)
    assert staged(spec(), line)[0]["key"] == "north"


def test_half_a_surrogate_pair_in_a_column_of_no_interest_does_no_harm() -> None:
    line = json.dumps({**ROW, "note": "X"}).replace("X", "\\ud83d")
    assert staged(spec(), line)[0]["key"] == "north"


def test_parse_takes_no_rows() -> None:
    assert stage(spec()).height == 0
    assert isinstance(stage(spec()).staged, pl.DataFrame)
