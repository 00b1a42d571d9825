"""Serve the operations of append blobs on the blob endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from asynccommit.testing.emulators.adls import headers as sent
from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.adls.wire import AdlsWire, identity
from asynccommit.testing.models.adls.account import AdlsAccount, Node
from asynccommit.testing.models.adls.append_blobs import AppendLimits, append_blob_of
from asynccommit.testing.models.adls.refusals import refusal

_MIB = 1024 * 1024
_LARGE_BLOCKS = "2022-11-02"  # version from which a block may have 100 MiB

ReadSource = Callable[[AdlsCall], tuple[Node, bytes]]


class AppendBlobs:
    """The operations of append blobs; each method is one operation."""

    def __init__(
        self, accounts: Mapping[str, AdlsAccount], wire: AdlsWire, source: ReadSource
    ) -> None:
        self._accounts = accounts
        self._wire = wire
        self._source = source  # of a block that is copied

    def append(self, call: AdlsCall) -> bytes:
        """Append a block, from the body or from another blob of the emulator."""
        account, where = self._accounts[call.account], (call.filesystem, call.path)
        if "x-ms-copy-source" in call.headers:
            data, md5 = (
                self.copied(call),
                sent.content_md5(call.headers, "x-ms-source-content-md5"),
            )
        else:
            data, md5 = call.body, sent.content_md5(call.headers)
        if len(data) > _most_bytes(call):
            raise refusal("RequestBodyTooLarge")
        node = account.append_block(
            *where, data, conditions=sent.conditions(call.headers), md5=md5, limits=_limits(call)
        )
        lines = identity(node) + f"x-ms-blob-append-offset: {node.size - len(data)}\r\n"
        lines += f"x-ms-blob-committed-block-count: {append_blob_of(node).blocks}\r\n"
        lines += "x-ms-request-server-encrypted: true\r\n"
        if md5 is not None:
            lines += f"Content-MD5: {sent.encoded_md5(md5)}\r\n"
        return self._wire.answer(call, 201, lines)

    def copied(self, call: AdlsCall) -> bytes:
        """Return the range of another blob that a request names."""
        if call.body:
            raise refusal("InvalidHeaderValue")
        _, data = self._source(call)
        span = sent.byte_range(call.headers, "x-ms-source-range")
        if span is not None and span[0] >= len(data):
            raise refusal("InvalidRange")
        return data if span is None else data[span[0] : span[1]]

    def seal(self, call: AdlsCall) -> bytes:
        """Make an append blob read-only."""
        node = self._accounts[call.account].seal(
            call.filesystem,
            call.path,
            conditions=sent.conditions(call.headers),
            limits=_limits(call),
        )
        return self._wire.answer(call, 200, f"{identity(node)}x-ms-blob-sealed: true\r\n")


def check_new(call: AdlsCall) -> None:
    """Reject a new append blob that comes with content."""
    if call.body:  # the status is documented, the code is inferred
        raise refusal("InvalidHeaderValue")


def _most_bytes(call: AdlsCall) -> int:
    return (100 if call.headers.get("x-ms-version", "") >= _LARGE_BLOCKS else 4) * _MIB


def _limits(call: AdlsCall) -> AppendLimits:
    names = ("x-ms-blob-condition-appendpos", "x-ms-blob-condition-maxsize")
    return AppendLimits(*(sent.size(call.headers, name) for name in names))
