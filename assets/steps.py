"""Steps that go partition by partition, as Dagster sees them: one lock, one pool, one policy.

Here belongs what all of them share: what they get, that they hold the lock of their stream, and
that each partition is told about as soon as it is done. What a step does is in the module of its
stage, where nothing knows Dagster but the names of its assets.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from assets.catalogue import ONE_RUN, Landing, Locks, Progress, asset_key, pool_of
from assets.history import Targets
from assets.metadata import Metadata
from assets.partitions import Axis
from assets.stores.lake import Lake
from transforms.errors import LowwaterError
from transforms.spec import StreamSpec


@dataclass(frozen=True)
class Stores:
    """What a step reads from and writes to, and the run that it is part of."""

    lake: Lake
    landing: Landing
    targets: Targets
    run_id: str


# A partition that is done, and the figures of its tables.
Done = tuple[str, Mapping[str, Metadata]]
Work = Callable[[Stores, Sequence[str]], Iterable[Done]]
Results = Callable[[], Iterable[dg.AssetCheckResult]]


@dataclass(frozen=True)
class Watch:
    """Checks that a step judges itself, by what it met on its way, also where it failed there.

    ``begin`` is called before the work, and what it returns after it.
    """

    specs: Sequence[dg.AssetCheckSpec] = ()
    begin: Callable[[Stores], Results] = lambda _stores: tuple


def step(
    spec: StreamSpec,
    name: str,
    axis: Axis,
    specs: Sequence[dg.AssetSpec],
    work: Work,
    *,
    watch: Watch | None = None,
) -> dg.AssetsDefinition:
    """Return the assets of a step; ``work`` yields each partition as soon as it is written."""
    watch = watch or Watch()

    @dg.multi_asset(
        name=f"{spec.name}__{name}",
        specs=specs,
        check_specs=watch.specs or None,
        partitions_def=axis.definition,
        backfill_policy=ONE_RUN,
        pool=pool_of(spec),
    )
    def stepping(
        context: dg.AssetExecutionContext,
        *,
        lake: dg.ResourceParam[Lake],
        landing: dg.ResourceParam[Landing],
        targets: dg.ResourceParam[Targets],
        locks: dg.ResourceParam[Locks],
        progress: dg.ResourceParam[Progress],
    ) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
        stores = Stores(lake, landing, targets, context.run.run_id)
        judged = watch.begin(stores)
        try:
            with locks.of(spec.staged_as)():
                for partition, figures in work(stores, context.partition_keys):
                    _tell(context, spec, partition, figures)
                    progress.done(next(iter(figures)), partition)
        except LowwaterError:
            yield from judged()
            raise
        # All partitions of the run are there, those without rows too.
        for described in specs:
            yield dg.MaterializeResult(asset_key=described.key)
        yield from judged()

    return stepping


def _tell(
    context: dg.AssetExecutionContext,
    spec: StreamSpec,
    partition: str,
    figures: Mapping[str, Metadata],
) -> None:
    """Attach the figures of a partition to its materialization, table by table."""
    for table, metadata in figures.items():
        key = asset_key(spec, table)
        context.add_asset_metadata(metadata, asset_key=key, partition_key=partition)
