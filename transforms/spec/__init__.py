"""The stream spec: what a stream declares, as one frozen model.

Belongs here: the sections, their rules and the wording of their mistakes. Others import from here
what they need of it.
"""

from transforms.spec.stream import (
    DEFAULT,
    Alerts,
    Arrival,
    Columns,
    Events,
    Grain,
    Profile,
    Profiles,
    Source,
    SpecError,
    SpecProblem,
    StreamSpec,
    TimeColumn,
    ValueType,
    WindowSpec,
    load_spec,
)

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
