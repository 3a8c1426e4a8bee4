"""Alerts of a publication as checks: news for who operates it, which stop nothing.

Here belong their names and claims. The thresholds are ``assets.stores.publishing.figures``.
"""

from collections.abc import Callable, Iterator
from typing import Final

import dagster as dg

from assets.catalogue import asset_key
from assets.steps import Stores, Watch
from assets.stores.publishing.figures import DEAD_LETTER_SHARE, Figures
from transforms.publishing.breaker import RESET_S
from transforms.schemas import AMENDED_WINDOWS, PUBLISHED_WINDOWS
from transforms.spec import StreamSpec

HELD: Final = "the_target_can_hold_what_is_published"
REACHED: Final = "the_target_was_never_long_out_of_reach"
_CLAIMS: Final = {
    HELD: (
        f"At most {DEAD_LETTER_SHARE:.1%} of the batches of a run hold rows that the target cannot"
        " hold; these rows are in publish_dead_letters, each with its reason."
    ),
    REACHED: (
        f"The circuit breaker was open for no longer than one reset period ({RESET_S:.0f} s);"
        " what could not be written meanwhile is kept in the lake."
    ),
}
_ALERTS: Final[dict[str, Callable[[Figures], str]]] = {
    HELD: Figures.too_many_refused,
    REACHED: Figures.too_long_down,
}


def warnings_of(spec: StreamSpec) -> list[dg.AssetCheckKey]:
    """Return all checks of a stream that tell of its target."""
    assets = (asset_key(spec, table) for table in (PUBLISHED_WINDOWS, AMENDED_WINDOWS))
    return [dg.AssetCheckKey(asset, name) for asset in assets for name in _ALERTS]


def alerts_of(spec: StreamSpec, table: str) -> Watch:
    """Return the alerts of the step that publishes a table, over all partitions of its run."""
    asset = asset_key(spec, table)
    specs = [dg.AssetCheckSpec(name, asset=asset, description=_CLAIMS[name]) for name in _ALERTS]

    def begin(stores: Stores) -> Callable[[], Iterator[dg.AssetCheckResult]]:
        record = stores.targets.sink_of(spec).record
        before = record.figures
        return lambda: _results(asset, record.figures.since(before))

    return Watch(specs, begin)


def _results(asset: dg.AssetKey, figures: Figures) -> Iterator[dg.AssetCheckResult]:
    for name, alert in _ALERTS.items():
        said = alert(figures)
        yield dg.AssetCheckResult(
            passed=not said,
            asset_key=asset,
            check_name=name,
            severity=dg.AssetCheckSeverity.WARN,
            description=said,
            metadata=figures.metadata(),
        )
