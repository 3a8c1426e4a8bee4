"""How assets are named, described and told about: what every stage shares towards Dagster.

Here belong asset keys, the one backfill policy and the roles of resources. Steps that go by
partition are `steps`; what an asset does is in the module of its stage.
"""

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import dagster as dg

from assets.metadata import COLUMNS, table_schema
from assets.stores.intake import Intake
from assets.stores.lake import Lake
from assets.stores.lock import PATIENCE_S, StreamLock
from assets.stores.tables import frame_schema, stream_of
from transforms.errors import LowwaterError
from transforms.spec import StreamSpec

# One run takes a whole range of partitions; assets with different policies would not share runs.
ONE_RUN: Final = dg.BackfillPolicy.single_run()
# Dagster's bookkeeping of one run grows with the square of its partitions.
RUN_PARTITIONS: Final = 512
OWNERS: Final = ("team:telemetry",)


@dataclass(frozen=True)
class Locks:
    """The resource ``locks``: who may write to which stream.

    What fails under a lock for a reason that may pass (another writer, a target out of reach) is
    tried again so many times in the same run, after a wait in seconds.
    """

    folder: Path
    patience_s: float = PATIENCE_S
    retries: int = 0
    wait_s: float = 30

    def of(self, stream: str) -> Callable[[], AbstractContextManager[None]]:
        """Return the lock of a stream as it is declared, to be held while a step writes.

        Its tracks have no other. Raises LockHeld.
        """
        return lambda: self._held(stream)

    @contextmanager
    def _held(self, stream: str) -> Iterator[None]:
        try:
            with StreamLock(self.folder, stream, self.patience_s)():
                yield
        except LowwaterError as error:
            if not (self.retries and error.may_pass):
                raise
            raise dg.RetryRequested(self.retries, self.wait_s) from error


@dataclass
class Landing:
    """The resource ``landing``: where source files are; remembers what was read of each stream."""

    lake: Lake
    data_dir: Path
    _intakes: dict[str, Intake] = field(default_factory=dict, repr=False)

    def of(self, spec: StreamSpec) -> Intake:
        """Return the intake of a stream, the same one each time."""
        known = self._intakes.get(spec.name)
        if known is None or known.spec != spec:
            known = self._intakes[spec.name] = Intake(self.lake, self.data_dir, spec)
        return known


@dataclass(frozen=True)
class Progress:
    """The resource ``progress``: is told of every partition that a stage is done with."""

    done: Callable[[str, str], None] = lambda _stage, _partition: None


def pool_of(spec: StreamSpec) -> str:
    """Return the pool of all steps that write to a stream; the instance gives it one slot.

    Tracks build on the same staged rows, so all of a stream are in one.
    """
    return spec.staged_as


def asset_key(spec: StreamSpec, table: str) -> dg.AssetKey:
    """Return the key of an asset: the stream that the table is kept under, then the table."""
    return dg.AssetKey([stream_of(spec, table), table])


def asset_spec(
    spec: StreamSpec,
    table: str,
    description: str,
    deps: Sequence[dg.AssetDep] = (),
    kinds: Iterable[str] = ("deltalake", "polars"),
) -> dg.AssetSpec:
    """Return what Dagster knows of an asset before it is ever made."""
    return dg.AssetSpec(
        asset_key(spec, table),
        deps=deps,
        # The UI reads a description as Markdown, where HTML is HTML.
        description=f"{description} {html.escape(spec.description, quote=False)}".strip(),
        metadata={COLUMNS: table_schema(frame_schema(spec, table))},
        group_name=spec.name,
        owners=OWNERS,
        tags={"stream": spec.name},
        kinds=set(kinds),
    )


def dep(spec: StreamSpec, table: str, mapping: dg.PartitionMapping | None = None) -> dg.AssetDep:
    """Return a dependency on a table of the same stream."""
    return dg.AssetDep(asset_key(spec, table), partition_mapping=mapping)
