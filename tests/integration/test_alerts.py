"""What somebody must be told of a publication: checks that warn and stop nothing."""

import time
from itertools import count
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from publishing_desk import FAST, Moody
from river import River, arrivals

from assets.alerts import HELD, REACHED
from assets.catalogue import asset_key
from assets.history import Targets
from assets.stores.publishing.delivery import Sink
from assets.stores.targets.faults import TargetDataError, TargetOutageError
from orchestration.alerts import target_trouble
from orchestration.jobs import arrivals_job
from transforms.publishing.breaker import Breaker
from transforms.publishing.ledger import Note
from transforms.schemas import PUBLISHED_WINDOWS


@pytest.fixture
def river(tmp_path: Path) -> River:
    made = River(tmp_path)
    made.land(arrivals(rows=30))
    return made


def with_sink(river: River, sink: Sink) -> River:
    river.resources["targets"] = Targets({"default": sink.target}, _sinks={"default": sink})
    return river


def moody(river: River, mood: Moody) -> River:
    # Opened by its calls, it lets the next one through at once: nobody has to wait.
    breaker = Breaker(time.monotonic, reset_s=0.0)
    return with_sink(river, Sink(mood, breaker, retries=FAST, sleep=lambda _seconds: None))


def target_of(river: River) -> Moody:
    targets: Targets = river.resources["targets"]
    return targets.named["default"]  # type: ignore[return-value]


def checked(river: River, instance: dg.DagsterInstance) -> dict[str, dg.AssetCheckEvaluation]:
    """The last evaluation of each alert."""
    asset = asset_key(river.spec, PUBLISHED_WINDOWS)
    found = {}
    for name in (HELD, REACHED):
        [record, *_] = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(asset, name), limit=1
        )
        assert record.event is not None
        assert record.event.dagster_event is not None
        found[name] = record.event.dagster_event.asset_check_evaluation_data
    return found


def run(river: River) -> dict[str, dg.AssetCheckEvaluation]:
    with dg.DagsterInstance.ephemeral() as instance:
        river.jobs(instance).run(arrivals_job("river"), river.keys[:2])
        return checked(river, instance)


def test_a_target_that_takes_everything_is_no_news(river: River) -> None:
    found = run(river)
    assert all(evaluation.passed for evaluation in found.values())
    assert found[HELD].metadata["target_batches"].value > 0


def test_rows_that_the_target_cannot_hold_are_a_warning_that_stops_nothing(river: River) -> None:
    def picky(rows: pl.DataFrame, _note: Note) -> None:
        if "s1" in rows["key"]:
            raise TargetDataError("no", reason="nul-byte")

    found = run(moody(river, Moody(target_of(river), picky)))
    assert not found[HELD].passed
    assert found[HELD].severity is dg.AssetCheckSeverity.WARN
    assert "batches hold rows that the target cannot hold" in (found[HELD].description or "")
    assert found[REACHED].passed


def test_a_warning_reaches_who_is_to_be_told_once(river: River) -> None:
    def picky(rows: pl.DataFrame, _note: Note) -> None:
        if "s1" in rows["key"]:
            raise TargetDataError("no", reason="nul-byte")

    begun = time.time()
    picky_river = moody(river, Moody(target_of(river), picky))
    with dg.DagsterInstance.ephemeral() as instance:
        picky_river.jobs(instance).run(arrivals_job("river"), river.keys[:2])
        [alert] = target_trouble(instance, river.spec, begun)
        assert not list(target_trouble(instance, river.spec, time.time() + 1))
    assert alert.kind == "target_trouble"
    assert alert.text.startswith("river: ")
    assert HELD in alert.text


def test_a_target_that_was_long_down_is_a_warning_when_it_is_back(river: River) -> None:
    calls = count()

    def down(_rows: pl.DataFrame, _note: Note) -> None:
        if next(calls) < 6:
            raise TargetOutageError("no answer")

    found = run(moody(river, Moody(target_of(river), down)))
    assert found[HELD].passed
    assert not found[REACHED].passed
    assert "out of reach for" in (found[REACHED].description or "")


def test_a_target_that_stays_down_is_a_warning_of_the_run_that_it_fails(river: River) -> None:
    def down(_rows: pl.DataFrame, _note: Note) -> None:
        raise TargetOutageError("no answer")

    down_river = moody(river, Moody(target_of(river), down))
    with dg.DagsterInstance.ephemeral() as instance:
        with pytest.raises(TargetOutageError, match="kept in the lake"):
            down_river.jobs(instance).run(arrivals_job("river"), river.keys[:2])
        assert not checked(river, instance)[REACHED].passed
