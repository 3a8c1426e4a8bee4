"""What Dagster loads: the assets and jobs of every stream that is declared.

Here belongs how the pieces are put together, and nothing else. Of a stream whose spec is broken the
mistakes are logged as errors; the other streams are there all the same.
"""

import logging
import os
from collections.abc import Mapping

import dagster as dg

from assets.checks import checks_of, staging_checks_of
from assets.grace import grace_assets
from assets.lateness import lateness_assets
from assets.order_audit import order_audit_assets
from assets.parity import parity_assets
from assets.partitions import Axis
from assets.publication import publication_assets
from assets.reconcile import reconcile_assets
from assets.reorder import reorder_assets
from assets.report import report_asset
from assets.staging import staging_assets
from assets.tracks import track_assets
from assets.windows import window_assets
from orchestration.alerts import alerts_sensor
from orchestration.embedded import BATCH
from orchestration.hooks import hooks_of
from orchestration.jobs import jobs_of
from orchestration.maintenance import upkeep
from orchestration.policies import EXECUTOR, RETRIES, beta_parameters
from orchestration.resources import resources_of
from orchestration.schedules import schedules_of
from orchestration.sensors import sensors_of
from orchestration.settings import Settings
from orchestration.specs import load_specs
from transforms.spec import StreamSpec

LOG = logging.getLogger("lowwater")


def build_defs(
    settings: Settings | None = None,
    *,
    specs: Mapping[str, StreamSpec] | None = None,
    resources: Mapping[str, object] | None = None,
    loggers: Mapping[str, dg.LoggerDefinition] | None = None,
) -> dg.Definitions:
    """Return the definitions of all streams; what is given replaces what the settings say."""
    settings = settings or Settings.from_environment()
    streams = declared(settings) if specs is None else specs
    with beta_parameters():
        parts = [stream_defs(spec) for spec in streams.values()]
        return dg.Definitions.merge(
            *parts,
            upkeep(settings, streams.values()),
            dg.Definitions(
                resources={**resources_of(settings, retries=RETRIES), **(resources or {})},
                sensors=[alerts_sensor(streams.values(), hooks_of(settings), settings.ui)],
                loggers=loggers,
                executor=EXECUTOR,
            ),
        )


def declared(settings: Settings) -> Mapping[str, StreamSpec]:
    """Return the specs that can be read, and log the mistakes of the others."""
    found = load_specs(settings.streams)
    for path, error in found.broken.items():
        LOG.error("the stream of %s is left out, its spec is broken:\n%s", path, error)
    return found.good


def stream_defs(spec: StreamSpec) -> dg.Definitions:
    """Return the assets and jobs of one stream: what all its tracks share, then each of them."""
    arrivals, events = Axis.of_arrivals(spec), Axis.of_events(spec)
    jobs = jobs_of(spec)
    return dg.Definitions.merge(
        dg.Definitions(
            assets=[staging_assets(spec, arrivals), *track_assets(spec, events)],
            asset_checks=staging_checks_of(spec, arrivals),
            jobs=jobs,
            schedules=schedules_of(spec, [job.name for job in jobs]),
            sensors=sensors_of(spec),
        ),
        *(track_defs(part, arrivals, events) for part in spec.computed),
    )


def track_defs(spec: StreamSpec, arrivals: Axis, events: Axis) -> dg.Definitions:
    """Return what is computed from staged rows: for each track, or for a stream without any."""
    return dg.Definitions(
        assets=[
            reorder_assets(spec, arrivals),
            window_assets(spec, arrivals),
            publication_assets(spec, arrivals, events),
            order_audit_assets(spec, arrivals),
            reconcile_assets(spec, arrivals, events),
            lateness_assets(spec, arrivals),
            grace_assets(spec, arrivals),
            parity_assets(spec, events),
            report_asset(spec, arrivals, events),
        ],
        asset_checks=checks_of(spec, arrivals, events),
    )


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions of this installation."""
    # In every process that loads them, whoever started it: runs write their events from here.
    os.environ.setdefault(*BATCH)
    return build_defs()
