"""Stage blocks one by one and commit them as a blob by a block list."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.adls.wire import xml_text
from asynccommit.testing.models.adls.refusals import Refusal, refusal

Part = tuple[str, bytes]

_NO_LIST = "XML specified is not syntactically valid."
_MOST = 50_000  # blocks of one blob


class _Committed(NamedTuple):
    """The committed blocks of a blob, valid while its etag is unchanged."""

    etag: str
    sizes: tuple[tuple[str, int], ...] = ()


class Blocks:
    """The staged blocks, and the committed blocks of the blobs made of them."""

    def __init__(self) -> None:
        self._staged: dict[tuple[str, str, str], dict[str, bytes]] = {}
        self._committed: dict[tuple[str, str, str], _Committed] = {}

    def stage(self, call: AdlsCall, name: str, data: bytes) -> None:
        """Stage a block.

        Its name is base64, of the same length for all blocks of a blob.
        """
        try:
            usable = 0 < len(base64.b64decode(name, validate=True)) <= 64
        except binascii.Error:
            usable = False
        if not usable:
            raise refusal("InvalidQueryParameterValue")
        if not data:
            raise refusal("InvalidHeaderValue")
        staged = self._staged.setdefault(_key(call), {})
        if len(staged) >= _MOST:
            raise Refusal(
                409, "BlockCountExceedsLimit", "The blob has too many uncommitted blocks."
            )
        staged[name] = data

    def take(
        self, call: AdlsCall, names: Iterable[tuple[str, str]], content: bytes | None
    ) -> list[Part]:
        """Return the blocks of a list, each from the place that the list names."""
        staged = self._staged.get(_key(call), {})
        old = self._old(call, content)
        parts = []
        for kind, name in names:
            places = {"Committed": (old,), "Uncommitted": (staged,)}.get(kind, (staged, old))
            data = next((place[name] for place in places if name in place), None)
            if data is None:
                raise Refusal(400, "InvalidBlockList", "The specified block list is invalid.")
            parts.append((name, data))
        return parts

    def _old(self, call: AdlsCall, content: bytes | None) -> Mapping[str, bytes]:
        committed = self._committed.get(_key(call))
        found: dict[str, bytes] = {}
        if committed is None or content is None:
            return found
        start = 0
        for name, size in committed.sizes:
            found[name] = content[start : start + size]
            start += size
        return found

    def commit(self, call: AdlsCall, etag: str, parts: Sequence[Part]) -> None:
        """Record the blocks of a blob and discard unused staged blocks."""
        sizes = tuple((name, len(data)) for name, data in parts)
        self._committed[_key(call)] = _Committed(etag, sizes)

    def known(
        self, call: AdlsCall, etag: str
    ) -> tuple[Sequence[tuple[str, int]], Sequence[tuple[str, int]]]:
        """Return names and sizes of the committed and of the uncommitted blocks."""
        committed = self._committed.get(_key(call))
        sizes = committed.sizes if committed is not None and committed.etag == etag else ()
        staged = self._staged.get(_key(call), {})
        return sizes, [(name, len(data)) for name, data in staged.items()]

    def forget(self, call: AdlsCall) -> None:
        """Forget the blocks of a blob that was overwritten."""
        self._staged.pop(_key(call), None)
        self._committed.pop(_key(call), None)


def _key(call: AdlsCall) -> tuple[str, str, str]:
    return call.account, call.filesystem, call.path


def read_block_list(body: bytes) -> list[tuple[str, str]]:
    """Parse a block list into kinds and names. Raises ``Refusal`` if invalid."""
    # Entities can expand a small document to a huge one; a block list has none.
    if b"<!" in body or len(body) > 64 * _MOST * 2:
        raise Refusal(400, "InvalidXmlDocument", _NO_LIST)
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise Refusal(400, "InvalidXmlDocument", _NO_LIST) from None
    if root.tag != "BlockList" or len(root) > _MOST:
        raise Refusal(400, "InvalidXmlDocument", _NO_LIST)
    return [(_.tag, (_.text or "").strip()) for _ in root]


def block_list(committed: Iterable[tuple[str, int]], staged: Iterable[tuple[str, int]]) -> bytes:
    """Return the XML document of committed and staged blocks."""
    return (
        '<?xml version="1.0" encoding="utf-8"?><BlockList>'
        f"<CommittedBlocks>{_blocks(committed)}</CommittedBlocks>"
        f"<UncommittedBlocks>{_blocks(staged)}</UncommittedBlocks></BlockList>"
    ).encode()


def _blocks(blocks: Iterable[tuple[str, int]]) -> str:
    return "".join(
        f"<Block><Name>{xml_text(name)}</Name><Size>{size}</Size></Block>" for name, size in blocks
    )
