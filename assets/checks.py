"""Every check of a stream, in one list.

Here belongs what Dagster is to evaluate. What a check judges is in the module of its stage.
"""

import dagster as dg

from assets.partitions import Axis
from assets.quality import quality_checks, staging_checks
from transforms.spec import StreamSpec


def staging_checks_of(spec: StreamSpec, arrivals: Axis) -> list[dg.AssetChecksDefinition]:
    """Return the checks of what is staged of a stream, for all its tracks."""
    return [staging_checks(spec, arrivals)]


def checks_of(spec: StreamSpec, arrivals: Axis, events: Axis) -> list[dg.AssetChecksDefinition]:
    """Return the checks of what is computed: of a track, or of a stream without any."""
    return quality_checks(spec, arrivals, events)
