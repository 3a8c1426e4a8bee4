"""The jobs of a stream: one over arrival partitions, one over event partitions.

Here belongs which assets run together. No job can hold assets of both axes.
"""

from typing import TYPE_CHECKING, Final

import dagster as dg

from assets.catalogue import asset_key
from orchestration.policies import EXECUTOR, run_tags
from transforms import schemas
from transforms.spec import StreamSpec

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import (
        UnresolvedAssetJobDefinition,
    )

EVENT_ASSETS: Final = (schemas.AMENDED_WINDOWS,)
ARRIVALS: Final = "Take arrival partitions in, reorder them, publish the windows they close."
EVENTS: Final = "Give windows whose rows changed another revision, by event partition."


def arrivals_job(stream: str) -> str:
    """Return the name of the job over arrival partitions."""
    return f"{stream}_arrivals"


def events_job(stream: str) -> str:
    """Return the name of the job over event partitions."""
    return f"{stream}_events"


def jobs_of(spec: StreamSpec) -> list["UnresolvedAssetJobDefinition"]:
    """Return both jobs of a stream."""
    of_events = dg.AssetSelection.assets(*(asset_key(spec, name) for name in EVENT_ASSETS))
    of_arrivals = dg.AssetSelection.key_prefixes(spec.name) - of_events
    return [
        _job(spec, arrivals_job(spec.name), of_arrivals, ARRIVALS),
        _job(spec, events_job(spec.name), of_events, EVENTS),
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
