"""The stream spec: one YAML file that declares a stream, read into one frozen model.

Here belong the spec as a whole, its reading, and its fingerprint. The sections are in modules of
their own (``spec.source``, ``spec.partitions``, ``spec.profiles``, ``spec.windows``), rules between
sections in ``spec.rules``, the wording of mistakes in ``spec.words`` and ``spec.problems``.
"""

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from transforms.errors import SpecError, SpecProblem
from transforms.schemas import EVENT_US, ID_PREFIX
from transforms.spec.fields import (
    Count,
    InstantUs,
    Name,
    PositiveDurationUs,
    Section,
    Text,
    TextList,
)
from transforms.spec.partitions import Arrival, Events, Grain, events_with_start
from transforms.spec.problems import fields_of, mistakes_of, problems_of
from transforms.spec.profiles import DEFAULT, LINKS, NamedProfiles, Profile, Profiles
from transforms.spec.rules import rule_mistakes
from transforms.spec.source import Columns, Source, TimeColumn, ValueType
from transforms.spec.tracks import profiles_beside, profiles_in, stream_of_track
from transforms.spec.windows import Window, WindowSpec
from transforms.spec.yaml_text import read_yaml

if TYPE_CHECKING:
    from transforms.spec.words import Mistake

__all__ = [
    "DEFAULT",
    "Alerts",
    "Arrival",
    "Columns",
    "Events",
    "Grain",
    "Profile",
    "Profiles",
    "Source",
    "SpecError",
    "SpecProblem",
    "StreamSpec",
    "TimeColumn",
    "ValueType",
    "WindowSpec",
    "load_spec",
]


class Alerts(Section):
    """When to raise an alarm.

    The share of dead letters above which a partition is not well; how long nothing may arrive.
    """

    dead_letter_fraction: float | None = Field(default=None, ge=0, le=1)
    stale_after_us: PositiveDurationUs | None = Field(default=None, validation_alias="stale_after")


class StreamSpec(Section):
    """A stream as declared. Durations and instants are int microseconds, names end in ``_us``.

    With ``tracks``, ``profiles`` are those of the authoritative one; what is computed is computed
    by the spec of each track (``computed``).
    """

    name: Name
    description: str = ""
    source: Source
    columns: Columns
    arrival: Arrival
    events: Events
    tracks: dict[str, NamedProfiles] = Field(default_factory=dict)
    profiles: Profiles
    resolution_us: PositiveDurationUs | None = Field(default=None, validation_alias="resolution")
    earliest_event_us: InstantUs | None = Field(
        default=None, validation_alias="earliest_event_time"
    )
    windows: tuple[Window, ...] = Field(min_length=1)
    aggregates: dict[str, Annotated[TextList, Field(min_length=1)]] = Field(default_factory=dict)
    alerts: Alerts = Alerts()
    target: Text = "default"
    shards: Count = 1
    _staged_as: str | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _events_start_with_arrivals(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {**data, "events": events_with_start(data.get("arrival"), data.get("events"))}

    @model_validator(mode="before")
    @classmethod
    def _profiles_may_be_left_out(cls, data: Any) -> Any:
        """Beside tracks there need not be a section ``profiles``."""
        if not isinstance(data, dict) or not data.get("tracks"):
            return data
        return {**data, "profiles": {} if data.get("profiles") is None else data["profiles"]}

    @field_validator("profiles", mode="before")
    @classmethod
    def _profiles_of_tracks(cls, written: Any, info: ValidationInfo) -> Any:
        return profiles_beside(info.data.get("tracks"), written)

    @property
    def staged_as(self) -> str:
        """The name of the stream as it is declared: a track shares what that one has staged."""
        return self._staged_as or self.name

    @property
    def computed(self) -> tuple["StreamSpec", ...]:
        """The specs by which rows become windows: those of the tracks, without any its own."""
        return tuple(self.of_track(track) for track in self.tracks) or (self,)

    def of_track(self, track: str) -> "StreamSpec":
        """Return the spec of a track: a stream of its own over the rows staged for this one."""
        links = self.profiles.model_dump(include=set(LINKS))
        update = {
            "name": stream_of_track(self.name, track),
            "tracks": {},
            "profiles": Profiles.model_validate(links | profiles_in(self.tracks, track)),
        }
        spec = self.model_copy(update=update)
        spec._staged_as = self.name  # noqa: SLF001 (a spec of this class, made here)
        return spec

    @property
    def is_composite_key(self) -> bool:
        """Whether the key is made of several columns."""
        return len(self.columns.key) > 1

    @property
    def key_parts(self) -> tuple[str, ...]:
        """The columns of a composite key; none for a key of one column, which is ``key``."""
        return self.columns.key if self.is_composite_key else ()

    @property
    def identity_has_event_time(self) -> bool:
        """Whether two events of one identity have the same event time."""
        event_id = self.columns.event_id
        return not event_id or self.columns.event_time.column in event_id

    @property
    def identity_columns(self) -> tuple[str, ...]:
        """Staged columns that make the identity, with the key and, if it has one, the event time.

        Empty when the identity is (key, event time).
        """
        columns = self.columns
        named = {
            ID_PREFIX + name if ID_PREFIX + name in columns.id_columns else name: None
            for name in columns.event_id
        }
        in_the_key = {columns.event_time.column, *columns.key}
        return tuple(name for name in named if name not in in_the_key)

    @property
    def content_columns(self) -> tuple[str, ...]:
        """Staged columns that two rows of one identity must share to be the same event."""
        return (EVENT_US, *self.columns.values, *self.columns.carry)

    def fingerprint(self) -> str:
        """Return the hex sha256 of what the state of a stream depends on."""
        text = json.dumps(self.fingerprint_parts(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def fingerprint_parts(self) -> dict[str, str]:
        """Return what the state depends on as path to text, so that a change can be named.

        Left out, for they act from the next partition on or not on the state at all: the numbers of
        profiles, which profiles there are and ``key_map`` (state that names a profile no longer
        declared is served by default), description, alerts, target, where and in which format files
        are, where events start, and when a partition counts as complete (``settle``). All tracks of
        a stream have its fingerprint, for they build on the same staged rows.
        ``profiles.by`` is in, for it decides the columns of a row.
        """
        columns = self.columns
        parts: dict[str, Any] = {
            "name": self.staged_as,
            "arrival.grain": self.arrival.grain,
            "arrival.start": self.arrival.start_us,
            "arrival.zone": self.arrival.zone,
            # The history of windows is cut by it.
            "events.grain": self.events.grain,
            "profiles.by": self.profiles.by,
            "resolution": self.resolution_us,
            "earliest_event_time": self.earliest_event_us,
            "shards": self.shards,
            # The order of values and statistics is that of columns and of what is hashed.
            "columns.values": [[name, kind.text] for name, kind in columns.values.items()],
            "aggregates": [[name, list(listed)] for name, listed in self.aggregates.items()],
        }
        reading = self.source.model_dump(include={"separator", "nulls"})
        parts |= {f"source.{name}": value for name, value in reading.items()}
        dumped = columns.model_dump(exclude={"values"})
        parts |= {f"columns.{name.removesuffix('_us')}": value for name, value in dumped.items()}
        parts |= {f"windows.{window.name}": window.model_dump() for window in self.windows}
        return {path: json.dumps(part, sort_keys=True) for path, part in parts.items()}


def load_spec(text: str, *, file: str) -> StreamSpec:
    """Read a stream spec; ``file`` is named in messages. Raises SpecError with all mistakes."""
    document = read_yaml(text)
    written = document.value
    spec: StreamSpec | None = None
    mistakes: list[Mistake] = list(document.mistakes)
    if written is not None or not mistakes:
        try:
            spec = StreamSpec.model_validate(written)
        except ValidationError as error:
            mistakes += mistakes_of(error, written, fields_of(StreamSpec))
        mistakes += rule_mistakes(written)
    if spec is None or mistakes:
        raise SpecError(problems_of(file, document, mistakes))
    return spec
