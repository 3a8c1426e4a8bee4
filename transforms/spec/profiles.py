"""The four numbers of lateness, chosen per key by its link: the section ``profiles``.

Here belongs what a profile is and how a row or a key finds its own. What the numbers do is in
``watermark.py`` and ``reorder.py``.
"""

from typing import Final

from pydantic import ConfigDict, Field

from transforms.spec.fields import Count, DurationUs, IdleTimeoutUs, Section, Text

DEFAULT: Final = "default"
# The fields of ``profiles`` that are no profiles.
LINKS: Final = ("by", "key_map")


class Profile(Section):
    """Grace, idle timeout (None: off), buffer capacity in rows, future skew; none has a default."""

    grace_us: DurationUs = Field(validation_alias="grace")
    idle_timeout_us: IdleTimeoutUs = Field(validation_alias="idle_timeout")
    capacity: Count
    future_skew_us: DurationUs = Field(validation_alias="future_skew")


class NamedProfiles(Section):
    """Profiles by name, one of which serves all rows that name none of them."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Profile]

    default: Profile

    @property
    def named(self) -> dict[str, Profile]:
        """Every profile by its name, ``default`` first."""
        return {DEFAULT: self.default, **self.__pydantic_extra__}


class Profiles(NamedProfiles):
    """All profiles, and what names that of a row: a column (``by``), its key, or nothing."""

    by: Text | None = None
    key_map: dict[str, Text] = Field(default_factory=dict)

    def of_key(self, key: str) -> str:
        """Return the name of a key's profile, by ``key_map`` or default."""
        return self.key_map.get(key, DEFAULT)
