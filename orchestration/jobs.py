"""The jobs of a stream: over arrival partitions, over event partitions, over all that is stored.

Here belongs which assets run together. No job can hold assets of both axes.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import dagster as dg

from assets.catalogue import asset_key
from assets.report import QUALITY_REPORT
from orchestration.policies import EXECUTOR, run_tags
from transforms import schemas
from transforms.spec import StreamSpec

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import (
        UnresolvedAssetJobDefinition,
    )

EVENT_ASSETS: Final = (schemas.AMENDED_WINDOWS, schemas.TARGET_PARITY)
ARRIVALS: Final = "Take arrival partitions in, reorder them, publish the windows they close."
EVENTS: Final = (
    "Give windows whose rows changed another revision and prove the target, by event partition."
)
TRACKS: Final = "Say how far each track is off the authoritative one, by event partition."
PARITY: Final = "Prove that the target holds what was published, by event partition."
ADVICE_ASSETS: Final = (schemas.LATENESS_PROFILE, schemas.GRACE_ADVICE)
REPORT: Final = "Write the quality page and the Data Docs."
ADVICE: Final = "Profile how late rows come, and say which grace to choose."


def arrivals_job(stream: str) -> str:
    """Return the name of the job over arrival partitions."""
    return f"{stream}_arrivals"


def events_job(stream: str) -> str:
    """Return the name of the job over event partitions."""
    return f"{stream}_events"


def advice_job(stream: str) -> str:
    """Return the name of the job over all stored arrivals."""
    return f"{stream}_advice"


def tracks_job(stream: str) -> str:
    """Return the name of the job that compares the tracks of a stream that has any."""
    return f"{stream}_tracks"


def parity_job(stream: str) -> str:
    """Return the name of the job that proves event partitions."""
    return f"{stream}_parity"


def report_job(stream: str) -> str:
    """Return the name of the job that writes the report."""
    return f"{stream}_report"


def jobs_of(spec: StreamSpec) -> list["UnresolvedAssetJobDefinition"]:
    """Return the jobs of a stream; those of its tracks run together."""
    tracks = [asset_key(spec, schemas.TRACK_DIFFERENCE)] if spec.tracks else []
    of_tracks = dg.AssetSelection.assets(*tracks)
    of_events = dg.AssetSelection.assets(*_keys(spec, EVENT_ASSETS), *tracks)
    of_advice, of_report, proof = (
        dg.AssetSelection.assets(*_keys(spec, tables))
        for tables in (ADVICE_ASSETS, (QUALITY_REPORT,), (schemas.TARGET_PARITY,))
    )
    names = dict.fromkeys(part.name for part in (spec, *spec.computed))
    of_arrivals = dg.AssetSelection.key_prefixes(*names) - of_events - of_advice - of_report
    return [
        _job(spec, arrivals_job(spec.name), of_arrivals, ARRIVALS),
        _job(spec, events_job(spec.name), of_events, EVENTS),
        _job(spec, parity_job(spec.name), proof, PARITY),
        _job(spec, advice_job(spec.name), of_advice, ADVICE),
        _job(spec, report_job(spec.name), of_report, REPORT),
        *([_job(spec, tracks_job(spec.name), of_tracks, TRACKS)] if tracks else []),
    ]


def _keys(spec: StreamSpec, tables: Iterable[str]) -> list[dg.AssetKey]:
    """Return the keys of tables, in every track."""
    return [asset_key(part, table) for part in spec.computed for table in tables]


def _job(
    spec: StreamSpec, name: str, selection: dg.AssetSelection, text: str
) -> "UnresolvedAssetJobDefinition":
    return dg.define_asset_job(
        name,
        selection=selection,
        description=text,
        executor_def=EXECUTOR,
        tags=run_tags(spec.name),
    )
