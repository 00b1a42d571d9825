"""Stage blocks one by one and commit them as a blob by a block list.

The limits, and what ends the blocks that no list has named, are those of Microsoft's pages "Put
Block", "Put Block List" and "Get Block List"; the codes are those of "Blob Storage error codes".
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.adls.wire import xml_text
from asynccommit.testing.models.adls.nodes import Filesystem
from asynccommit.testing.models.adls.refusals import Refusal, refusal

Part = tuple[str, bytes]
Sizes = Sequence[tuple[str, int]]
_Key = tuple[str, str, str]

_NO_LIST = "XML specified is not syntactically valid."
_MOST = 50_000  # blocks of one blob
_MOST_STAGED = 100_000  # blocks of one blob that are in no list
_LONGEST_NAME = 64  # bytes, before the encoding
_KEPT = 7 * 24 * 3600.0  # seconds after the last block


class _Committed(NamedTuple):
    """The committed blocks of a blob, valid while its etag is unchanged."""

    etag: str
    sizes: Sizes = ()


class _Staged:
    """The blocks of a blob that are in no list; they end with their container."""

    def __init__(self, home: Filesystem) -> None:
        self.home = home
        self.blocks: dict[str, bytes] = {}
        self.last = 0.0  # when the last one came

    def sizes(self) -> Sizes:
        """Return names and sizes, in the order of the names."""
        return [(name, len(self.blocks[name])) for name in sorted(self.blocks)]


class Blocks:
    """The staged blocks, and the committed blocks of the blobs made of them."""

    def __init__(self) -> None:
        self._staged: dict[_Key, _Staged] = {}
        self._committed: dict[_Key, _Committed] = {}

    def stage(self, call: AdlsCall, home: Filesystem, name: str, data: bytes, now: float) -> None:
        """Stage a block of a blob in the container ``home``.

        Its name is base64, of as many bytes as those of the blob's other staged blocks.
        """
        length = _name_length(name)
        if not data:
            raise refusal("InvalidHeaderValue")
        staged = self._unlisted(call, home, now)
        blocks = staged.blocks
        if blocks and _name_length(next(iter(blocks))) != length:
            raise refusal("InvalidBlobOrBlock")
        if name not in blocks and len(blocks) >= _MOST_STAGED:
            text = (
                f"The uncommitted block count cannot exceed the maximum limit of {_MOST_STAGED:,}"
            )
            raise refusal("BlockCountExceedsLimit", f"{text} blocks.")
        blocks[name], staged.last = data, now
        self._staged.pop(_key(call), None)  # to the end: the oldest come first
        self._staged[_key(call)] = staged

    def take(
        self,
        call: AdlsCall,
        home: Filesystem,
        names: Iterable[tuple[str, str]],
        old: tuple[str, bytes],
        now: float,
    ) -> list[Part]:
        """Return the blocks of a list, each from the place that the list names.

        ``old`` is the etag of the present blob, and its content.
        """
        staged = self._unlisted(call, home, now).blocks
        committed = self._old(call, *old)
        parts = []
        for kind, name in names:
            places = {"Committed": (committed,), "Uncommitted": (staged,)}.get(
                kind, (staged, committed)
            )
            data = next((place[name] for place in places if name in place), None)
            if data is None:
                raise Refusal(400, "InvalidBlockList", "The specified block list is invalid.")
            parts.append((name, data))
        return parts

    def _old(self, call: AdlsCall, etag: str, content: bytes) -> Mapping[str, bytes]:
        found: dict[str, bytes] = {}
        start = 0
        for name, size in self._listed(call, etag):
            found[name] = content[start : start + size]
            start += size
        return found

    def commit(self, call: AdlsCall, etag: str, parts: Sequence[Part]) -> None:
        """Record the blocks of a blob and discard unused staged blocks."""
        sizes = tuple((name, len(data)) for name, data in parts)
        self._committed[_key(call)] = _Committed(etag, sizes)

    def known(self, call: AdlsCall, home: Filesystem, etag: str, now: float) -> tuple[Sizes, Sizes]:
        """Return names and sizes of the committed and of the uncommitted blocks.

        ``etag`` is empty if there is no blob. Rejected if there are no blocks then.
        """
        staged = self._unlisted(call, home, now)
        if not etag and not staged.blocks:
            raise refusal("PathNotFound")
        return self._listed(call, etag), staged.sizes()

    def uncommitted(self, home: Filesystem, now: float) -> Mapping[str, float]:
        """Return the paths with staged blocks, and when the last came."""
        self._expire(now)
        return {key[2]: _.last for key, _ in self._staged.items() if _.home is home}

    def forget(self, call: AdlsCall) -> None:
        """Forget the blocks of a blob that was overwritten."""
        self._staged.pop(_key(call), None)
        self._committed.pop(_key(call), None)

    def _listed(self, call: AdlsCall, etag: str) -> Sizes:
        committed = self._committed.get(_key(call))
        return committed.sizes if committed is not None and committed.etag == etag else ()

    def _unlisted(self, call: AdlsCall, home: Filesystem, now: float) -> _Staged:
        self._expire(now)
        found = self._staged.get(_key(call))
        return found if found is not None and found.home is home else _Staged(home)

    def _expire(self, now: float) -> None:
        """Discard the blocks of blobs to which no block has been added for a week."""
        while self._staged:  # those with the oldest last block come first
            key, staged = next(iter(self._staged.items()))
            if now < staged.last + _KEPT:
                break
            del self._staged[key]


def _name_length(name: str) -> int:
    """Return the bytes of a block's name. Raises ``Refusal`` if it is invalid."""
    try:
        length = len(base64.b64decode(name, validate=True))
    except binascii.Error:
        length = 0
    if not 0 < length <= _LONGEST_NAME:
        raise refusal("InvalidQueryParameterValue")
    return length


def _key(call: AdlsCall) -> _Key:
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
    if root.tag != "BlockList":
        raise Refusal(400, "InvalidXmlDocument", _NO_LIST)
    if len(root) > _MOST:
        raise refusal("BlockListTooLong")
    return [(_.tag, (_.text or "").strip()) for _ in root]


def block_list(kind: str, committed: Sizes, staged: Sizes) -> bytes:
    """Return the XML document of committed and staged blocks.

    ``kind`` is ``committed``, the default, ``uncommitted`` or ``all``: a list that was not asked
    for is left out.
    """
    if kind not in ("", "committed", "uncommitted", "all"):
        raise refusal("InvalidQueryParameterValue")
    shown = "" if kind == "uncommitted" else _section("CommittedBlocks", committed)
    if kind in ("uncommitted", "all"):
        shown += _section("UncommittedBlocks", staged)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{shown}</BlockList>'.encode()


def _section(tag: str, blocks: Sizes) -> str:
    shown = "".join(
        f"<Block><Name>{xml_text(name)}</Name><Size>{size}</Size></Block>" for name, size in blocks
    )
    return f"<{tag}>{shown}</{tag}>"
