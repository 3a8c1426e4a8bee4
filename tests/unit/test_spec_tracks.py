"""Tracks in a spec: each is a stream of its own over the same staged rows; mistakes are named."""

from pathlib import Path

import pytest

from orchestration.specs import load_specs
from transforms.durations import SECOND_US
from transforms.errors import UsageError
from transforms.spec import SpecError, StreamSpec, load_spec

HEAD = """\
name: gauges
source: {kind: files, path: '*.ndjson', format: ndjson}
columns:
  key: station
  event_time: {column: t, unit: iso8601}
  arrival_time: {column: a, unit: iso8601}
  values: {level: float}
arrival: {grain: day, start: 2024-01-01}
windows: [{name: minute, every: 1m}]
"""


def numbers(grace: str) -> str:
    return f"{{grace: {grace}, idle_timeout: 10m, capacity: 256, future_skew: 5m}}"


TRACKS = f"""\
profiles: {{by: link}}
tracks:
  fast:
    default: {numbers("5s")}
  authoritative:
    default: {numbers("90s")}
    satellite: {numbers("30m")}
"""
ALONE = f"profiles: {{by: link, default: {numbers('90s')}, satellite: {numbers('30m')}}}\n"


def read(text: str, name: str = "gauges") -> StreamSpec:
    return load_spec(HEAD.replace("gauges", name) + text, file="spec.yaml")


def mistakes(text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        read(text)
    return [str(problem).removeprefix("spec.yaml:") for problem in caught.value.problems]


def graces(spec: StreamSpec) -> dict[str, int]:
    return {name: one.grace_us // SECOND_US for name, one in spec.profiles.named.items()}


def test_a_track_is_a_stream_of_its_own_over_rows_staged_for_another() -> None:
    fast, authoritative = read(TRACKS).computed
    assert (fast.name, fast.staged_as) == ("gauges_fast", "gauges")
    assert (authoritative.name, authoritative.staged_as) == ("gauges_authoritative", "gauges")
    assert authoritative.profiles == read(ALONE).profiles
    assert not fast.tracks
    assert fast.computed == (fast,)


def test_a_profile_that_a_track_leaves_out_is_served_by_its_default() -> None:
    fast, authoritative = read(TRACKS).computed
    assert graces(fast) == {"default": 5, "satellite": 5}
    assert graces(authoritative) == {"default": 90, "satellite": 1_800}


def test_a_stream_with_tracks_has_the_profiles_of_the_authoritative_one() -> None:
    assert read(TRACKS).profiles == read(ALONE).profiles


def test_all_tracks_have_the_fingerprint_of_the_rows_they_share() -> None:
    spec = read(TRACKS)
    assert {part.fingerprint() for part in spec.computed} == {read(ALONE).fingerprint()}


def test_without_tracks_a_stream_computes_itself() -> None:
    spec = read(ALONE)
    assert spec.computed == (spec,)
    assert spec.staged_as == "gauges"


def test_profiles_may_be_left_out_beside_tracks_and_only_beside_them() -> None:
    assert read(TRACKS.replace("profiles: {by: link}\n", "")).profiles.by is None
    assert mistakes("") == [
        "1: profiles: found nothing; allowed: a mapping with default and further profiles"
    ]


def test_keys_are_mapped_to_profiles_of_any_track() -> None:
    text = TRACKS.replace("{by: link}", "{key_map: {one: satellite, two: sattelite}}")
    assert mistakes(text) == [
        (
            "10: profiles.key_map.two: found 'sattelite'; allowed: a declared profile: default,"
            " satellite (did you mean satellite?)"
        )
    ]


NEEDED = "a mapping with the profiles of authoritative, and of one track or more beside it"


@pytest.mark.parametrize(
    ("tracks", "found"),
    [
        ("tracks:\n", "nothing"),
        ("tracks: {}\n", "an empty mapping"),
        ("tracks: [fast]\n", "a list"),
        (f"tracks: {{authoritative: {{default: {numbers('1m')}}}}}\n", "authoritative"),
        (f"tracks: {{fast: {{default: {numbers('1m')}}}}}\n", "fast"),
    ],
)
def test_tracks_are_authoritative_and_at_least_one_beside_it(tracks: str, found: str) -> None:
    assert f"10: tracks: found {found}; allowed: {NEEDED}" in mistakes(tracks)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "  fast:",
            "  Fast-1:",
            (
                "12: tracks.Fast-1: found a track 'Fast-1'; allowed: lower case letters,"
                " digits and _, with a letter first, at most 100"
            ),
        ),
        (
            "  fast:",
            f"  {'f' * 94}:",
            (
                f"12: tracks.{'f' * 94}: found a track '{'f' * 94}'; allowed: a name that makes at"
                " most 100 letters with that of the stream (stream and track together are the name"
                " of its folder and tables)"
            ),
        ),
        (
            "{by: link}",
            "{by: link, default: {}}",
            (
                "10: profiles.default: found an empty mapping; allowed: only by and key_map beside"
                " tracks (each track declares profiles of its own)"
            ),
        ),
        (
            "  fast:\n",
            "  fast:\n    by: link\n",
            (
                "13: tracks.fast.by: found 'link'; allowed: a mapping with grace, idle_timeout,"
                " capacity and future_skew (by stands under profiles, for all tracks)"
            ),
        ),
        (
            "    satellite: {grace: 30m,",
            "    satellite: {grase: 30m,",
            (
                "16: tracks.authoritative.satellite.grase: found an unknown field; allowed: grace,"
                " idle_timeout, capacity, future_skew (did you mean grace?)"
            ),
        ),
        (
            "    default: {grace: 5s,",
            "    default: {",
            (
                "13: tracks.fast.default.grace: found nothing; allowed: a duration such as 500ms,"
                " 90s, 10m, 6h or 1d"
            ),
        ),
        (
            "    default: {grace: 5s,",
            "    other: {grace: 5s,",
            (
                "12: tracks.fast.default: found nothing; allowed: a mapping with grace,"
                " idle_timeout, capacity and future_skew"
            ),
        ),
    ],
)
def test_a_mistake_in_a_track_is_named_once_with_its_place(old: str, new: str, told: str) -> None:
    said = mistakes(TRACKS.replace(old, new, 1))
    assert said.count(told) == 1
    section = told.split(": ")[1].split(".", maxsplit=1)[0]
    assert all(text.split(": ")[1].startswith(section) for text in said)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gauges.yaml").write_text(HEAD + TRACKS)
    return tmp_path


def test_a_stream_may_not_have_the_name_of_a_track(folder: Path) -> None:
    path = folder / "gauges_fast.yaml"
    path.write_text(HEAD.replace("gauges", "gauges_fast") + ALONE)
    assert str(load_specs(folder).broken[path]).endswith(
        "name: found 'gauges_fast'; allowed: a name no other stream or track has"
    )


def test_a_track_may_not_have_the_name_of_a_stream(folder: Path) -> None:
    (folder / "a.yaml").write_text(HEAD.replace("gauges", "gauges_authoritative") + ALONE)
    assert str(load_specs(folder).broken[folder / "gauges.yaml"]).endswith(
        "tracks: found 'gauges_authoritative'; allowed: a name no other stream or track has"
    )


def test_a_track_is_found_by_its_own_name_where_only_one_will_do(folder: Path) -> None:
    specs = load_specs(folder)
    assert specs.computed("gauges_fast") == specs.stream("gauges").of_track("fast")
    with pytest.raises(UsageError, match="one of them: gauges_fast, gauges_authoritative"):
        specs.computed("gauges")
    with pytest.raises(UsageError, match="gauges_fast is a track of gauges; name that: gauges"):
        specs.stream("gauges_fast")
