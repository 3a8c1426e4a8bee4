"""The targets of this installation, by the names that specs give them.

Here belongs which store stands behind a name; nothing is opened.
"""

from typing import Final

from assets.stores.targets.duckdb_target import PATIENCE_S, DuckDBTarget
from assets.stores.targets.postgres_target import PostgresTarget
from assets.stores.targets.target import DEFAULT_TARGET, Target
from orchestration.settings import POSTGRES_DSN, Settings
from transforms.errors import UsageError
from transforms.spec import StreamSpec

POSTGRES_TARGET: Final = "postgres"


def targets_of(settings: Settings, *, patience_s: float = PATIENCE_S) -> dict[str, Target]:
    """Return the embedded target, and the one in PostgreSQL if its address is known."""
    targets: dict[str, Target] = {
        DEFAULT_TARGET: DuckDBTarget(settings.target, patience_s=patience_s)
    }
    if settings.postgres_dsn:
        targets[POSTGRES_TARGET] = PostgresTarget(settings.postgres_dsn)
    return targets


def target_of(settings: Settings, spec: StreamSpec, *, patience_s: float = PATIENCE_S) -> Target:
    """Return the target of a stream. Raises UsageError for one that is not declared."""
    targets = targets_of(settings, patience_s=patience_s)
    if spec.target in targets:
        return targets[spec.target]
    known = ", ".join(sorted(targets))
    hint = f"; set {POSTGRES_DSN} to have it" if spec.target == POSTGRES_TARGET else ""
    raise UsageError(f"target {spec.target} is not declared; known: {known}{hint}")
