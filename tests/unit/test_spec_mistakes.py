"""Mistakes in a stream spec: each is told with its place, what was found, what is allowed."""

from typing import Any

import pytest
import yaml

from transforms.spec import SpecError, SpecProblem, load_spec

BASE = """\
name: gauges
source: {kind: files, path: '*.ndjson', format: ndjson}
columns:
  key: station
  event_time: {column: t, unit: iso8601}
  arrival_time: {column: a, unit: iso8601}
  values: {level: float, rain: float}
arrival: {grain: day, start: 2024-01-01}
profiles:
  default: {grace: 90s, idle_timeout: 10m, capacity: 256, future_skew: 5m}
windows: [{name: minute, every: 1m}]
"""


def problems(text: str) -> tuple[SpecProblem, ...]:
    with pytest.raises(SpecError) as caught:
        load_spec(text, file="spec.yaml")
    return caught.value.problems


def with_sections(**sections: Any) -> str:
    tree = yaml.load(BASE, Loader=yaml.BaseLoader)  # noqa: S506 - only texts
    for name, section in sections.items():
        both = isinstance(tree.get(name), dict) and isinstance(section, dict)
        tree[name] = {**tree[name], **section} if both else section
    return yaml.safe_dump(tree, sort_keys=False)


def only(text: str) -> SpecProblem:
    (problem,) = problems(text)
    return problem


def test_a_problem_is_one_line_with_file_line_path_found_and_allowed() -> None:
    text = BASE.replace("capacity: 256", "capacity: 0")
    assert str(only(text)) == (
        "spec.yaml:10: profiles.default.capacity: found '0'; allowed: a whole number of 1 or more"
    )


def test_all_mistakes_are_told_at_once_whatever_else_is_wrong() -> None:
    text = """\
name: River
descripton: a typo
source: {path: x, format: ndjson, separator: ;}
columns:
  key: station
  event_time: {column: t, unit: ms, zone: UTC}
  arrival_time: {column: a}
  values: {level: flot, event: int}
  carry: [level]
  dedup_horizon: 1d
arrival: {grain: week, start: 2024-13-01, zone: Europe/Berln}
profiles:
  by: link
  key_map: {k: satelite}
  default: {grace: 90s, idle_timeout: 10m, capacity: 256}
  satellite: {grace: soon, idle_timeout: 10m, capacity: 256, future_skew: 5m}
windows:
  - {name: hour, every: 1h, length: 10m}
  - {name: hour, every: 1h, zone: UTC, origin: 2024-01-01}
  - {nam: month, every: 1mo, length: 1w}
aggregates: {level: [mena], lvel: [mean]}
shards: two
"""
    assert {problem.path for problem in problems(text)} == {
        *("name", "descripton", "source.kind", "source.separator", "columns.event_time.zone"),
        *("columns.arrival_time.unit", "columns.values.level", "columns.values.event"),
        *("columns.carry[0]", "columns.dedup_horizon", "arrival.grain", "arrival.start"),
        *("arrival.zone", "profiles.key_map", "profiles.key_map.k"),
        *("profiles.default.future_skew", "profiles.satellite.grace", "windows[0].every"),
        *("windows[1].name", "windows[1].origin", "windows[2].name", "windows[2].nam"),
        *("windows[2].every", "aggregates.level[0]", "aggregates.lvel", "shards"),
    }


@pytest.mark.parametrize(
    ("sections", "path", "hint"),
    [
        ({"windws": []}, "windws", "did you mean windows?"),
        ({"source": {"formt": "csv"}}, "source.formt", "did you mean format?"),
        ({"columns": {"keys": "x"}}, "columns.keys", "did you mean key?"),
        (
            {"columns": {"event_time": {"column": "t", "unit": "s", "zoen": "UTC"}}},
            "columns.event_time.zoen",
            "did you mean zone?",
        ),
        ({"arrival": {"grian": "day"}}, "arrival.grian", "did you mean grain?"),
        ({"events": {"strat": "2024-01-01"}}, "events.strat", "did you mean start?"),
        ({"alerts": {"dead_letters": "1"}}, "alerts.dead_letters", "dead_letter_fraction?"),
        (
            {"windows": [{"name": "w", "every": "1h", "lenght": "2h"}]},
            "windows[0].lenght",
            "did you mean length?",
        ),
    ],
)
def test_an_unknown_field_names_the_nearest_known_one(
    sections: dict[str, Any], path: str, hint: str
) -> None:
    problem = only(with_sections(**sections))
    assert (problem.path, problem.found) == (path, "an unknown field")
    assert problem.hint.endswith(hint)


def test_an_unknown_field_of_a_profile_names_the_nearest_known_one() -> None:
    problem = only(BASE.replace("capacity: 256", "capacity: 256, graze: 1s"))
    assert (problem.path, problem.hint) == ("profiles.default.graze", "did you mean grace?")


def test_a_misspelt_by_is_no_profile() -> None:
    problem = only(with_sections(profiles={"bye": "link"}))
    assert (problem.path, problem.hint) == ("profiles.bye", "did you mean by?")


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("name: [a\n", 2, "broken YAML"),
        ("name: a\n  b: c: d\n", 2, "broken YAML"),
        ("name: a\n---\nname: b\n", 2, "broken YAML"),
        ("name: a\n\tb: c\n", 2, "broken YAML"),
    ],
)
def test_broken_yaml_is_a_problem_with_its_line(text: str, line: int, found: str) -> None:
    problem = only(text)
    assert (problem.line, problem.allowed) == (line, "valid YAML")
    assert problem.found.startswith(found)


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "words", "[a, b]"])
def test_a_spec_is_a_mapping(text: str) -> None:
    assert only(text).allowed == "a mapping with the fields of a stream spec"


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        (f"{BASE}name: other\n", "name", 12),
        (BASE.replace("rain: float", "level: int"), "columns.values.level", 7),
        (BASE.replace("capacity: 256", "grace: 1s, capacity: 256"), "profiles.default.grace", 10),
    ],
)
def test_a_key_may_not_stand_twice(text: str, path: str, line: int) -> None:
    problem = only(text)
    assert (problem.path, problem.line) == (path, line)
    assert (problem.found, problem.allowed) == ("the same key twice", "each key once")


def test_merge_keys_and_aliases_of_themselves_are_refused() -> None:
    merged = BASE.replace("{grace: 90s", "{<<: {grace: 1s}, grace: 90s")
    assert "a merge key (<<)" in {problem.found for problem in problems(merged)}
    assert "an alias" in {problem.found for problem in problems("name: &x [*x]\n")}


def test_an_alias_saves_writing_a_thing_twice() -> None:
    text = BASE.replace("arrival_time: {column: a, unit: iso8601}", "arrival_time: *time")
    text = text.replace("event_time: {", "event_time: &time {")
    columns = load_spec(text, file="spec.yaml").columns
    assert columns.arrival_time == columns.event_time


# Source, times, types.


@pytest.mark.parametrize("kind", ["postgres", "kafka"])
def test_sources_to_come_say_so_and_nothing_else(kind: str) -> None:
    problem = only(with_sections(source={"kind": kind, "dsn": "x"}))
    assert problem.path == "source.kind"
    assert problem.hint == f"sources of kind {kind} are not supported yet"


def test_session_windows_say_that_they_are_to_come() -> None:
    problem = only(with_sections(windows=[{"name": "bursts", "session_gap": "15m"}]))
    assert problem.path == "windows[0].session_gap"
    assert problem.hint == "session windows are not supported yet"


@pytest.mark.parametrize(("field", "value"), [("separator", ";"), ("nulls", ["NA"])])
@pytest.mark.parametrize("kind", ["ndjson", "parquet"])
def test_separator_and_nulls_are_of_csv_alone(field: str, value: Any, kind: str) -> None:
    problem = only(with_sections(source={"format": kind, field: value}))
    assert (problem.path, problem.allowed) == (
        f"source.{field}",
        "this field only with format: csv",
    )


@pytest.mark.parametrize("separator", ["", ";;", '"', "\n"])
def test_a_separator_is_one_character_that_can_part_fields(separator: str) -> None:
    problem = only(with_sections(source={"format": "csv", "separator": separator}))
    assert problem.path == "source.separator"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_zone_is_for_times_written_as_text(unit: str) -> None:
    time = {"column": "t", "unit": unit, "zone": "UTC"}
    problem = only(with_sections(columns={"event_time": time}))
    assert problem.path == "columns.event_time.zone"
    assert problem.allowed == "a zone only for times written as text"


@pytest.mark.parametrize("unit", ["%d.%m.%Y %H:%M", "%Y%m%d", "%Y-%j %Z"])
def test_a_format_that_reads_no_offset_needs_a_zone(unit: str) -> None:
    time = {"column": "t", "unit": unit}
    problem = only(with_sections(columns={"event_time": time}))
    assert (problem.path, problem.found) == ("columns.event_time.zone", "nothing")
    time["zone"] = "Europe/Berlin"
    assert load_spec(with_sections(columns={"event_time": time}), file="x").columns


@pytest.mark.parametrize("unit", ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %:z"])
def test_a_format_that_reads_an_offset_needs_no_zone(unit: str) -> None:
    text = with_sections(columns={"event_time": {"column": "t", "unit": unit}})
    assert load_spec(text, file="x").columns.event_time.zone is None


@pytest.mark.parametrize("unit", ["%H:%M", "%Y-%m", "%Y-%m-%d %Q", "%F %I", "%Y-%m-%d %Y", "%"])
def test_a_format_says_which_day_it_is_in_known_directives(unit: str) -> None:
    time = {"column": "t", "unit": unit, "zone": "UTC"}
    problem = only(with_sections(columns={"event_time": time}))
    assert (problem.path, problem.found) == ("columns.event_time.unit", f"'{unit}'")
    assert "the format" in problem.hint


@pytest.mark.parametrize("unit", ["seconds", "iso", "", "min"])
def test_a_unit_is_a_known_one_or_a_format(unit: str) -> None:
    problem = only(with_sections(columns={"event_time": {"column": "t", "unit": unit}}))
    assert problem.path == "columns.event_time.unit"


@pytest.mark.parametrize("zone", ["Europe/Berln", "Mars/Base", "", "localtime", "../etc"])
def test_a_zone_is_a_known_one(zone: str) -> None:
    problem = only(with_sections(arrival={"zone": zone}))
    assert (problem.path, problem.found) == ("arrival.zone", f"'{zone}'")


@pytest.mark.parametrize(
    "kind",
    [
        *("str", "Float", "", ["float"], {"kind": "float"}),
        *("decimal", "decimal(10)", "decimal(0,0)", "decimal(39,2)", "decimal(5,6)"),
    ],
)
def test_a_value_is_of_a_known_type(kind: Any) -> None:
    assert only(with_sections(columns={"values": {"v": kind}})).path == "columns.values.v"


@pytest.mark.parametrize("kind", ["decimal(1,0)", "decimal(38,38)", "decimal( 10 , 2 )"])
def test_a_decimal_has_up_to_38_digits(kind: str) -> None:
    load_spec(with_sections(columns={"values": {"v": kind}}), file="x")


@pytest.mark.parametrize("name", ["River", "1st", "a-b", "", "a b", "straße", "a\n"])
def test_a_name_can_stand_in_a_path_and_in_sql(name: str) -> None:
    assert only(with_sections(name=name)).path == "name"
    windows = [{"name": name, "every": "1h"}]
    assert only(with_sections(windows=windows)).path == "windows[0].name"


@pytest.mark.parametrize(
    ("arrival", "allowed"),
    [
        ({"start": "2024-01-01T06:00"}, "midnight in UTC, for the grain is day"),
        ({"start": "2024-01-01T00:00Z", "zone": "Asia/Kolkata"}, "midnight in Asia/Kolkata"),
        ({"start": "2024-01-01T00:30", "grain": "hour"}, "a full hour in UTC"),
        ({"start": "2024-01-01T00:05", "grain": "15m"}, "a quarter of an hour in UTC"),
    ],
)
def test_a_start_lies_on_a_boundary_of_its_grain(arrival: dict[str, str], allowed: str) -> None:
    problem = only(with_sections(arrival=arrival))
    assert problem.path == "arrival.start"
    assert problem.allowed.startswith(allowed)


def test_a_day_whose_midnight_is_skipped_starts_at_its_first_instant() -> None:
    # In Beirut the clock went from 2024-03-30 23:59:59 to 2024-03-31 01:00:00.
    arrival = {"start": "2024-03-31", "zone": "Asia/Beirut"}
    spec = load_spec(with_sections(arrival=arrival), file="x")
    assert spec.arrival.start_time.isoformat() == "2024-03-31T01:00:00+03:00"


@pytest.mark.parametrize("start", ["2024-02-30", "2024-1-1", "01.01.2024", "now", "", "0001-01-01"])
def test_a_start_is_a_date_or_time_that_exists(start: str) -> None:
    assert only(with_sections(arrival={"start": start})).path == "arrival.start"


def test_a_resolution_is_above_zero() -> None:
    problem = only(with_sections(resolution="0s"))
    assert (problem.path, problem.found) == ("resolution", "'0s'")


# Profiles and identity.


def test_a_column_or_the_key_names_the_profile_not_both() -> None:
    problem = only(with_sections(profiles={"by": "link", "key_map": {"k": "default"}}))
    assert (problem.path, problem.found) == ("profiles.key_map", "both by and key_map")


def test_a_key_map_names_declared_profiles() -> None:
    problem = only(with_sections(profiles={"key_map": {"station.7": "defualt"}}))
    assert problem.path == "profiles.key_map.station.7"
    assert problem.hint == "did you mean default?"


@pytest.mark.parametrize("event_id", [[], ["t"], ["n", "t"]])
def test_a_horizon_is_for_an_identity_without_event_time(event_id: list[str]) -> None:
    columns = {"event_id": event_id, "dedup_horizon": "7d"}
    assert only(with_sections(columns=columns)).path == "columns.dedup_horizon"


def test_an_identity_is_more_than_the_key() -> None:
    problem = only(with_sections(columns={"event_id": ["station"]}))
    assert (problem.path, problem.found) == ("columns.event_id", "the key: station")


# Names.


@pytest.mark.parametrize(
    "name",
    [
        *("key", "seq", "event_us", "event", "arrival", "reason", "is_late", "watermark", "KEY"),
        *("shard", "lateness_us", "windows_missed", "duplicate_of_seq", "_digest", "Window"),
    ],
)
def test_a_value_or_carried_column_or_key_part_takes_no_name_of_ours(name: str) -> None:
    for columns in ({"values": {name: "int"}}, {"carry": [name]}, {"key": ["site", name]}):
        found = [p for p in problems(with_sections(columns=columns)) if p.found == f"'{name}'"]
        assert [p.allowed for p in found] == [
            "a name that is not one of the platform's own columns"
        ]


@pytest.mark.parametrize("name", ["key", "seq", "event", "line", "raw", "source", "arrival"])
def test_a_column_that_no_table_has_may_be_called_anything(name: str) -> None:
    time = {"column": name, "unit": "iso8601"}
    columns = {"key": name, "event_time": time, "arrival_time": time, "event_id": ["n", name]}
    load_spec(with_sections(columns=columns), file="x")


@pytest.mark.parametrize(
    ("columns", "path"),
    [
        ({"carry": ["level"]}, "columns.carry[0]"),
        ({"carry": ["lat", "LAT"]}, "columns.carry[1]"),
        ({"carry": ["id_n"], "event_id": ["n"]}, "columns.event_id[0]"),
        ({"event_id": ["n", "n"]}, "columns.event_id[1]"),
        ({"key": ["site", "sensor"], "carry": ["site"]}, "columns.carry[0]"),
        ({"values": {"v": "int", "V": "int"}}, "columns.values.V"),
    ],
)
def test_a_column_stands_once_whatever_the_case(columns: dict[str, Any], path: str) -> None:
    assert path in {problem.path for problem in problems(with_sections(columns=columns))}


@pytest.mark.parametrize(
    ("columns", "aggregates", "path"),
    [
        ({"values": {"late_arrival": "int"}}, {}, "columns.values.late_arrival"),
        (
            {"values": {"a": "int", "a_time_weighted": "int"}},
            {"a": ["time_weighted_mean"], "a_time_weighted": ["mean"]},
            "aggregates.a_time_weighted",
        ),
        ({"key": ["site", "level_mean"]}, {"level": ["mean"]}, "aggregates.level"),
        ({"key": ["site", "level_count"]}, {}, "columns.values.level"),
    ],
)
def test_published_names_do_not_meet(
    columns: dict[str, Any], aggregates: dict[str, Any], path: str
) -> None:
    assert only(with_sections(columns=columns, aggregates=aggregates)).path == path


@pytest.mark.parametrize("statistic", ["mena", "p", "p101", "p-1", "p1e2", "P95", "median", "p9."])
def test_a_statistic_is_a_known_one(statistic: str) -> None:
    assert only(with_sections(aggregates={"level": [statistic]})).path == "aggregates.level[0]"


@pytest.mark.parametrize("statistic", ["p0", "p5", "p50", "p99.9", "p100", "p100.0"])
def test_a_percentile_is_known_and_keeps_its_text(statistic: str) -> None:
    text = with_sections(aggregates={"level": [statistic]})
    assert load_spec(text, file="x").aggregates == {"level": (statistic,)}


def test_aggregates_are_of_declared_values() -> None:
    problem = only(with_sections(aggregates={"lvel": ["mean"]}))
    assert (problem.path, problem.hint) == ("aggregates.lvel", "did you mean level?")


@pytest.mark.parametrize("listed", ["mean", [], ["mean", "mean"], None])
def test_statistics_are_a_list_with_each_once(listed: Any) -> None:
    assert only(with_sections(aggregates={"level": listed})).path.startswith("aggregates.level")
