"""The jobs of a stream: over arrival partitions, over event partitions, over all that is stored.

Here belongs which assets run together. No job can hold assets of both axes.
"""

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


def parity_job(stream: str) -> str:
    """Return the name of the job that proves event partitions."""
    return f"{stream}_parity"


def report_job(stream: str) -> str:
    """Return the name of the job that writes the report."""
    return f"{stream}_report"


def jobs_of(spec: StreamSpec) -> list["UnresolvedAssetJobDefinition"]:
    """Return the jobs of a stream."""
    of_events, of_advice, of_report = (
        dg.AssetSelection.assets(*(asset_key(spec, name) for name in names))
        for names in (EVENT_ASSETS, ADVICE_ASSETS, (QUALITY_REPORT,))
    )
    proof = dg.AssetSelection.assets(asset_key(spec, schemas.TARGET_PARITY))
    everything = dg.AssetSelection.key_prefixes(spec.name)
    of_arrivals = everything - of_events - of_advice - of_report
    return [
        _job(spec, arrivals_job(spec.name), of_arrivals, ARRIVALS),
        _job(spec, events_job(spec.name), of_events, EVENTS),
        _job(spec, parity_job(spec.name), proof, PARITY),
        _job(spec, advice_job(spec.name), of_advice, ADVICE),
        _job(spec, report_job(spec.name), of_report, REPORT),
    ]


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
