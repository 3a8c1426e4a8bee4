"""What `lowwater dead-letters` tells of a stream in the lake, before and after reconciliation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_stream import MINUTES, SPEC_TEXT

from orchestration.cli import main

# Event and arrival in seconds of the first of January 1970, and the level.
LOG = [
    (8, 9, 1.0),
    (8, 10, 2.0),  # conflicting
    (90, 91, 1.0),
    (75, 92, 1.0),  # behind W, and its minute is open
    (41, 93, 1.0),  # its minute is closed
    (100, 94, "n/a"),
    (10**12, 95, 1.0),  # from the year 33658
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with one stream and its landing file."""
    (tmp_path / "streams").mkdir()
    spec = SPEC_TEXT.replace("WINDOWS", MINUTES).replace("unit: iso8601", "unit: s")
    (tmp_path / "streams" / "gauges.yaml").write_text(spec)
    rows = [
        {"station": "a", "sampled_at": event, "received_at": arrival, "level": level}
        for event, arrival, level in LOG
    ]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setenv("LOWWATER_HOME", str(tmp_path))
    monkeypatch.setenv("LOWWATER_STREAMS", str(tmp_path / "streams"))
    return tmp_path


@pytest.fixture
def stages(home: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    """Take the first arrival day in and publish it; reconcile the first event day."""
    from assets.history import History, Targets  # noqa: PLC0415
    from assets.partitions import Axis  # noqa: PLC0415
    from assets.publication import publish_windows  # noqa: PLC0415
    from assets.reconcile import amend  # noqa: PLC0415
    from assets.reorder import reorder  # noqa: PLC0415
    from assets.staging import stage  # noqa: PLC0415
    from assets.stores.intake import Intake  # noqa: PLC0415
    from assets.stores.lake import Lake  # noqa: PLC0415
    from assets.stores.tables import EVENT_TABLES  # noqa: PLC0415
    from assets.stores.targets.duckdb_target import DuckDBTarget  # noqa: PLC0415
    from assets.windows import close_windows  # noqa: PLC0415
    from orchestration.specs import load_specs  # noqa: PLC0415

    spec = load_specs(home / "streams").stream("gauges")
    lake = Lake(str(home / "lake"), event_tables=EVENT_TABLES)
    arrivals, events = Axis.of_arrivals(spec), Axis.of_events(spec)
    history = History(lake, spec, events)
    targets = Targets({"default": DuckDBTarget(home / "published.duckdb")})
    day = ["1970-01-01"]

    def take_in() -> None:
        list(stage(spec, lake, Intake(lake, home, spec), arrivals, day))
        list(reorder(spec, lake, arrivals, day))
        list(close_windows(spec, lake, arrivals, day))
        list(publish_windows(history, targets, day, "run"))

    def reconcile() -> None:
        list(amend(history, targets, events, day, "run"))

    return take_in, reconcile


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["dead-letters", "gauges", "--json", *words]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def outcome_of(result: dict[str, Any]) -> dict[str, str]:
    return {group["reason"]: group["outcome"] for group in result["outcomes"]}


def test_a_stream_that_never_ran_has_none(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = told(capsys)
    assert (result["dead_letters"], result["waiting"], result["outcomes"]) == (0, 0, [])
    assert not (home / "lake").exists()


def test_every_dead_letter_is_counted_amended_or_waiting_with_a_reason(
    stages: tuple[Callable[[], None], Callable[[], None]], capsys: pytest.CaptureFixture[str]
) -> None:
    take_in, reconcile = stages
    refused = dict.fromkeys(
        ("behind_watermark", "conflicting_duplicate", "future_timestamp", "invalid_value"),
        "waiting",
    )
    take_in()
    assert outcome_of(told(capsys)) == {**refused, "late_closed_window": "waiting"}
    reconcile()
    result = told(capsys, "--rows", "2")
    assert outcome_of(result) == {**refused, "late_closed_window": "amended"}
    assert (result["dead_letters"], result["waiting"]) == (5, 4)
    assert [row["seq"] for row in result["newest_waiting"]] == [6, 5]
    assert all(group["why"] for group in result["outcomes"])
    assert main(["dead-letters", "gauges"]) == 0
    shown = capsys.readouterr().out
    assert "5 dead letters, 4 waiting" in shown
    assert "1000000000000000000 us: future_timestamp" in shown


def test_an_unknown_stream_is_bad_usage(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert home.exists()
    assert main(["dead-letters", "rivers"]) == 2
    assert "known: gauges" in capsys.readouterr().err
