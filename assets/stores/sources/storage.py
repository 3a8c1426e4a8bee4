"""Where the bytes of a source lie: local files, or object storage where fsspec is installed.

Belongs here: finding, opening and describing files. What is in them is `files` and its siblings.
"""

import glob
import importlib
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, cast

from transforms.errors import SourceError


class Version(NamedTuple):
    """What tells one state of a file from another, without reading it."""

    size: int
    stamp: str


class Storage(Protocol):
    """A place that holds files by name."""

    def find(self, pattern: str) -> list[str]:
        """The names of the files that a glob matches, sorted."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading bytes; OSError if there is none."""

    def version(self, name: str) -> Version:
        """The present state of a file; OSError if there is none."""


class LocalStorage:
    """Files by a path, absolute or relative to a root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find(self, pattern: str) -> list[str]:
        """The names of the files that a glob matches, sorted; relative to the root as it is."""
        found = glob.glob(pattern, root_dir=self._root, recursive=True)  # noqa: PTH207  # as named
        return sorted(name for name in found if (self._root / name).is_file())

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading bytes."""
        return (self._root / name).open("rb")

    def version(self, name: str) -> Version:
        """Size, and time of change and inode."""
        found = (self._root / name).stat()
        return Version(found.st_size, f"{found.st_mtime_ns} {found.st_ino}")


class RemoteStorage:
    """Files by a URL, through a file system of fsspec."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        try:
            fsspec = importlib.import_module("fsspec")
            self._files: Any = fsspec.filesystem(protocol)
        except (ImportError, ValueError) as error:
            raise SourceError(
                f"{protocol}:// cannot be read: {error}; install fsspec and its {protocol} driver"
            ) from error

    def find(self, pattern: str) -> list[str]:
        """The URLs of the files that a glob matches, sorted."""
        return sorted(self._files.unstrip_protocol(name) for name in self._files.glob(pattern))

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading bytes."""
        return cast("IO[bytes]", self._files.open(name, "rb"))

    def version(self, name: str) -> Version:
        """Size, and whatever the store has to tell two states apart."""
        self._files.invalidate_cache()
        info = self._files.info(name)
        marks = (info.get(mark) for mark in ("ETag", "etag", "LastModified", "mtime", "created"))
        return Version(int(info["size"]), " ".join(str(mark) for mark in marks))


def storage_of(pattern: str, root: Path) -> Storage:
    """The storage of a glob or name, `scheme://...` or a local path; SourceError if none is."""
    scheme, mark, _ = pattern.partition("://")
    return RemoteStorage(scheme) if mark else LocalStorage(root)
