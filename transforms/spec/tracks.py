"""Tracks: several sets of profiles over the same staged rows: the section ``tracks``.

Here belongs what tracks may be declared and which profiles each of them has in the end. The spec of
a track as a stream of its own is made in ``spec.py``; how two tracks differ is in ``tracks.py``.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from transforms.spec.fields import LONGEST_NAME
from transforms.spec.profiles import DEFAULT, LINKS, NamedProfiles, Profile
from transforms.spec.words import ALLOWED, Mistake, Words
from transforms.spec.written import mapping, text

# The track that all others are measured by.
AUTHORITATIVE: Final = "authoritative"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_SHORTER: Final = f"a name that makes at most {LONGEST_NAME} letters with that of the stream"
_STAND_IN: Final = Profile.model_validate(
    {"grace": "0s", "idle_timeout": "off", "capacity": 1, "future_skew": "0s"}
)

Tracks = Mapping[str, NamedProfiles]


def stream_of_track(stream: str, track: str) -> str:
    """Return the name of the stream that a track of a stream is."""
    return f"{stream}_{track}"


def profiles_in(tracks: Tracks, track: str) -> dict[str, Profile]:
    """Return the profiles of a track; one that only other tracks name is served by its default."""
    own = tracks[track]
    names = dict.fromkeys(name for each in tracks.values() for name in each.named)
    return {name: own.named.get(name, own.default) for name in names}


def profiles_beside(tracks: Tracks | None, written: Any) -> Any:
    """Return the section ``profiles`` of a spec, to be validated.

    Beside tracks it is written without profiles; those of the authoritative track take their place.
    ``tracks`` is None where they have mistakes: then the links alone are looked at.
    """
    if not isinstance(written, dict) or (tracks is not None and not tracks):
        return written
    links = {name: written[name] for name in LINKS if name in written}
    if tracks is None or AUTHORITATIVE not in tracks:
        return {**links, DEFAULT: _STAND_IN}
    return links | profiles_in(tracks, AUTHORITATIVE)


def declared_profiles(spec: Any) -> list[str]:
    """Return the names of all profiles of a spec as written, those of its tracks among them."""
    tracks = mapping(spec, "tracks")
    sections = [mapping(tracks, name) for name in tracks] or [mapping(spec, "profiles")]
    return list(dict.fromkeys(name for each in sections for name in each if name not in LINKS))


def track_mistakes(spec: Any) -> Iterator[Mistake]:
    """Yield the mistakes between tracks, and between them and ``profiles``."""
    tracks = spec.get("tracks") if isinstance(spec, dict) else None
    if not isinstance(tracks, dict):
        return
    if AUTHORITATIVE not in tracks or len(tracks) == 1:
        found = Words(", ".join(tracks)) if tracks else tracks
        yield Mistake(("tracks",), found, ALLOWED["tracks"])
    stream = text(spec, "name") or ""
    for track in tracks:
        if not _NAME.fullmatch(track):
            yield Mistake(("tracks", track), Words(f"a track {track!r}"), ALLOWED["name"])
        elif len(stream_of_track(stream, track)) > LONGEST_NAME:
            hint = "stream and track together are the name of its folder and tables"
            yield Mistake(("tracks", track), Words(f"a track {track!r}"), _SHORTER, hint)
    for name, profile in mapping(spec, "profiles").items():
        if name not in LINKS:
            allowed = f"only {' and '.join(LINKS)} beside tracks"
            hint = "each track declares profiles of its own"
            yield Mistake(("profiles", name), profile, allowed, hint)
