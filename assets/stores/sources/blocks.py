"""Files as blocks of whole lines: unpacked, hashed as they are read, broken off where they break.

Belongs here: gzip, Zstandard and the cutting of a stream of bytes at line ends. What a line says is
none of its business.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, NamedTuple

import zstandard

from transforms.errors import SourceError
from transforms.reading.text_lines import BYTE_ORDER_MARK, PADDING

CHUNK_BYTES = 1 << 20
BLOCK_BYTES = 4 << 20

_PIECE_BYTES = 1 << 14
_GZIP_WINDOW = 31


class BrokenDataError(Exception):
    """Packed data end or go wrong; everything before was given."""


class Block(NamedTuple):
    """Some whole lines; or, with a `fault`, what is left of the one in which the data broke.

    Behind the content there is the padding of `text_lines`.
    """

    padded: bytes
    fault: str | None = None

    @property
    def content(self) -> bytes:
        """The bytes without the padding."""
        return self.padded[: -len(PADDING)]


class HashingReader:
    """Reads a file and keeps the sha256 and the size of what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def read(self) -> bytes:
        """The next chunk; empty at the end."""
        chunk = self._file.read(CHUNK_BYTES)
        self._hash.update(chunk)
        self.size += len(chunk)
        return chunk

    def chunks(self) -> Iterator[bytes]:
        """What is left, chunk by chunk."""
        while chunk := self.read():
            yield chunk

    def fingerprint(self) -> str:
        """The hash and size of the whole file, of which the rest is read for it."""
        for _ in self.chunks():
            pass
        return f"sha256:{self._hash.hexdigest()}:{self.size}"


class _Packing(NamedTuple):
    """A way of packing: how it is called, how a file of it begins, what unpacks one member."""

    title: str
    magic: bytes
    new: Callable[[], Any]


_PACKINGS = {
    ".gz": _Packing("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(_GZIP_WINDOW)),
    ".zst": _Packing(
        "Zstandard", b"\x28\xb5\x2f\xfd", lambda: zstandard.ZstdDecompressor().decompressobj()
    ),
}


def unpacked(reader: HashingReader, name: str) -> Iterator[bytes]:
    """The content, unpacked as the name says; BrokenDataError where it breaks.

    SourceError if the file does not even begin like one that is packed so.
    """
    for suffix, packing in _PACKINGS.items():
        if name.endswith(suffix):
            return _members(reader, name, packing)
    return reader.chunks()


def _members(reader: HashingReader, name: str, packing: _Packing) -> Iterator[bytes]:
    """The content of all packed members of a file; zeros may fill it up at its end."""
    member: Any = None
    done = 0
    for piece in _pieces(reader.chunks()):
        if not done and piece[: len(packing.magic)] != packing.magic[: len(piece)]:
            raise SourceError(f"{name}: this is not {packing.title} data, as its name says it is")
        rest = piece
        while rest := rest if member is not None else rest.lstrip(b"\0"):
            member = member or packing.new()
            before = member.copy() if packing.title == "gzip" else None
            try:
                yield member.decompress(rest)
            except (zlib.error, zstandard.ZstdError) as error:
                yield _salvaged(before, rest)
                where = f"near byte {done + len(piece) - len(rest)}"
                raise BrokenDataError(f"the {packing.title} data break {where}: {error}") from error
            rest, member = (member.unused_data, None) if member.eof else (b"", member)
        done += len(piece)
    if member is not None:
        raise BrokenDataError(f"the {packing.title} data end early, after {done} bytes")


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Small pieces: what is unpacked of one is lost if it is broken."""
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE_BYTES):
            yield chunk[start : start + _PIECE_BYTES]


def _salvaged(member: Any, piece: bytes) -> bytes:
    """What a gzip member gives byte by byte before it breaks."""
    content = bytearray()
    for at in range(len(piece) if member is not None else 0):
        try:
            content += member.decompress(piece[at : at + 1])
        except zlib.error:
            break
    return bytes(content)


def blocks(chunks: Iterable[bytes]) -> Iterator[Block]:
    """Cut content into blocks of whole lines, without a byte order mark at its start.

    If the data break, the last block holds what is there of a line, and the fault.
    """
    parts: list[bytes] = []
    fault = None
    size, enough = 0, BLOCK_BYTES
    try:
        for chunk in _without_mark(chunks):
            parts.append(chunk)
            size += len(chunk)
            if size >= enough:
                whole, parts = _cut(parts)
                size = sum(map(len, parts))
                # A line that is longer than a block is not searched for its end again and again.
                enough = max(BLOCK_BYTES, 2 * size)
                if whole:
                    yield Block(b"".join((*whole, PADDING)))
    except BrokenDataError as error:
        fault = str(error)
    whole, rest = _cut(parts) if fault else (parts, [])
    if any(whole):
        yield Block(b"".join((*whole, PADDING)))
    if fault:
        yield Block(b"".join((*rest, PADDING)), fault)


def _without_mark(chunks: Iterable[bytes]) -> Iterator[bytes]:
    head: bytes | None = b""
    try:
        for chunk in chunks:
            if head is None:
                yield chunk
                continue
            head += chunk
            if len(head) >= len(BYTE_ORDER_MARK):
                yield head.removeprefix(BYTE_ORDER_MARK)
                head = None
    except BrokenDataError:
        yield head or b""
        raise
    yield head or b""


def _cut(parts: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Whole lines, and the beginning of one, both in parts that are not joined yet."""
    for at in reversed(range(len(parts))):
        end = parts[at].rfind(b"\n") + 1
        if end:
            return [*parts[:at], parts[at][:end]], [parts[at][end:], *parts[at + 1 :]]
    return [], parts
