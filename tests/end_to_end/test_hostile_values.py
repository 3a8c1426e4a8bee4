"""Names and values that are SQL, HTML, paths or patterns are text, through the whole flow."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest
import yaml
from river import DAY_US, START_US

from assets.history import History, Targets
from assets.partitions import Axis
from assets.touched import waiting
from orchestration.definitions import build_defs
from orchestration.jobs import arrivals_job, events_job, report_job
from orchestration.resources import resources_of
from orchestration.run import Jobs
from orchestration.settings import Settings
from transforms import schemas
from transforms.spec import StreamSpec, load_spec

HOUR_US = DAY_US // 24
HOSTILE = (
    "'; drop table windows; --",
    '"; drop schema hostile cascade; --',
    "<script>document.title='owned'</script>",
    "<img src=x onerror=alert(1)>",
    "../../../../etc/passwd",
    "/etc/passwd",
    "a\\b|c",
    "line\nfeed\r\n\ttab",
    "\x1b[31mred",
    "%s {0} ${HOME} `id` $(id)",
    "*?[a-z]",
    "NULL",
    "ключ ключ 🜁",
)
# Columns of the stream: one that is a key, a value and a carried one.
KEY, VALUE, CARRIED = "key\"'; --", "le<b>vel'\"", "../up\\<i>"
FILES = ("'; drop table x; --.ndjson", "<script>alert(1)<_script>.ndjson", "a [b] %s.ndjson")


def spec_of(folder: Path) -> StreamSpec:
    text = yaml.safe_dump(
        {
            "name": "hostile",
            "description": HOSTILE[2],
            "source": {"kind": "files", "path": "landing/*.ndjson", "format": "ndjson"},
            "columns": {
                "key": KEY,
                "event_time": {"column": "sampled", "unit": "us"},
                "arrival_time": {"column": "received", "unit": "us"},
                "values": {VALUE: "float"},
                "carry": [CARRIED],
            },
            "arrival": {"grain": "day", "start": "2024-01-01"},
            "events": {"grain": "day"},
            "profiles": {
                "default": {
                    "grace": "1m",
                    "idle_timeout": "off",
                    "capacity": 100,
                    "future_skew": "5m",
                }
            },
            "windows": [{"name": "hour", "every": "1h"}],
            "aggregates": {VALUE: ["mean"]},
        }
    )
    (folder / "streams").mkdir()
    (folder / "streams" / "hostile.yaml").write_text(text)
    return load_spec(text, file="hostile.yaml")


def rows() -> list[dict[str, Any]]:
    """Each key on time, a day later, and very late; and with a value that is no number."""
    log = []
    for number, key in enumerate(HOSTILE):
        for event_h, arrival_h in ((1.0, 1.1), (25.0, 25.1), (2.0, 26.0)):
            log.append(
                {
                    KEY: key,
                    "sampled": START_US + round(event_h * HOUR_US),
                    "received": START_US + round(arrival_h * HOUR_US) + number,
                    VALUE: 1.0,
                    CARRIED: key,
                }
            )
        log.append({**log[-3], "sampled": log[-3]["sampled"] + 1, VALUE: key})
    return log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "inner" / "home"


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture(scope="module")
def spec(folder: Path, instance: dg.DagsterInstance) -> StreamSpec:
    """The stream, run from files to published and amended windows through Dagster."""
    (folder / "landing").mkdir(parents=True)
    spec, log = spec_of(folder), rows()
    for number, name in enumerate(FILES):
        part = log[number :: len(FILES)]
        text = "".join(json.dumps(row) + "\n" for row in part)
        (folder / "landing" / name).write_text(text + f'{{"broken": "{HOSTILE[2]}\n')
    settings = Settings.under(folder)
    resources = resources_of(settings)
    defs = build_defs(settings, specs={"hostile": spec}, resources=resources)
    jobs = Jobs(defs, instance)
    jobs.run(arrivals_job("hostile"), ("2024-01-01", "2024-01-02"))
    late = waiting(History(resources["lake"], spec, Axis.of_events(spec)))
    jobs.run(events_job("hostile"), late)
    jobs.run(report_job("hostile"))
    return spec


def published(folder: Path, spec: StreamSpec) -> pl.DataFrame:
    targets = resources_of(Settings.under(folder))["targets"]
    assert isinstance(targets, Targets)
    with targets.of(spec) as target:
        target.prepare("hostile", schemas.window_history_schema(spec))
        return target.current("hostile")


def test_every_key_is_published_as_it_was_written(folder: Path, spec: StreamSpec) -> None:
    found = published(folder, spec)
    assert set(found[schemas.KEY]) == set(HOSTILE)
    assert f"{VALUE}_mean" in found.columns
    assert set(found[schemas.REASON]) == {schemas.CLOSED, schemas.LATE_ROWS}


def test_nothing_was_written_outside_of_the_data_directory(folder: Path, spec: StreamSpec) -> None:
    assert spec
    assert [path.name for path in folder.parents[1].iterdir()] == ["inner"]
    assert [path.name for path in folder.parent.iterdir()] == ["home"]


def test_what_the_ui_shows_is_text_or_json_never_markup(
    instance: dg.DagsterInstance, spec: StreamSpec
) -> None:
    """Markdown is rendered by the UI; values that came with the data are never in it."""
    assert spec
    kinds = set()
    for table in (schemas.STAGED_EVENTS, schemas.AMENDED_WINDOWS, schemas.ORDER_AUDIT):
        for record in instance.fetch_materializations(
            dg.AssetKey(["hostile", table]), limit=10
        ).records:
            told = record.asset_materialization
            assert told
            for value in told.metadata.values():
                kinds.add(type(value).__name__)
                if isinstance(value, dg.MarkdownMetadataValue):
                    assert not any(text in value.value for text in HOSTILE)
    assert kinds


def test_the_report_shows_hostile_keys_and_files_as_text(folder: Path, spec: StreamSpec) -> None:
    page = (Settings.under(folder).reports / spec.name / "quality.html").read_text()
    assert "&lt;script&gt;" in page
    for text in (*HOSTILE, *FILES):
        if "<" in text:
            assert text not in page


def test_nothing_but_a_report_is_written_beside_reports(folder: Path, spec: StreamSpec) -> None:
    reports = Settings.under(folder).reports
    assert [path.name for path in reports.iterdir()] == [spec.name]
    assert all(path.resolve().is_relative_to(reports) for path in reports.rglob("*"))


def test_a_hostile_description_reaches_the_ui_as_text(folder: Path, spec: StreamSpec) -> None:
    defs = build_defs(Settings.under(folder), specs={"hostile": spec})
    for asset in defs.resolve_all_asset_specs():
        assert "<script>" not in (asset.description or "")
