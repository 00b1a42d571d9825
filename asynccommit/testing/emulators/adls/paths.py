"""Path operations of both ADLS Gen2 endpoints."""

from __future__ import annotations

import hashlib

from asynccommit.testing.emulators.adls import headers as sent
from asynccommit.testing.emulators.adls.call import AdlsCall
from asynccommit.testing.emulators.adls.wire import AdlsWire, http_date, identity, one_line
from asynccommit.testing.models.adls.account import (
    AdlsAccount,
    Conditions,
    Filesystem,
    LeaseAnswer,
    Node,
)
from asynccommit.testing.models.adls.leases import LeaseRequest, acquire
from asynccommit.testing.models.adls.nodes import cipher_of
from asynccommit.testing.models.adls.refusals import refusal

_STATUS = {"acquire": 201, "renew": 200, "change": 200, "release": 200, "break": 202}
_SHOWN = ("content-encoding", "content-language", "content-disposition", "content-md5")


def status_lines(
    account: AdlsAccount, node: Node, headers: sent.Headers, *, brief: bool = False
) -> str:
    """Return the headers that describe ``node``; ``brief`` omits the user's properties."""
    kind = "directory" if node.is_dir else "file"
    lines = (
        f"{identity(node)}{_content_lines(node)}Accept-Ranges: bytes\r\n"
        f"x-ms-resource-type: {kind}\r\nx-ms-creation-time: {http_date(node.created)}\r\n"
        f"x-ms-server-encrypted: true\r\n{_lease_lines(account, node)}"
    )
    if account.hns:
        lines += access_lines(account, node)
    if node.token and sent.knows_transactions(headers):
        lines += f"x-ms-client-transaction-id: {node.token}\r\n"
    if node.extra is not None and node.extra.expires is not None:
        lines += f"x-ms-expiry-time: {http_date(node.extra.expires)}\r\n"
    if account.encrypted:
        lines += _cipher_lines(node)
    if brief:
        return lines
    if account.hns:
        lines += acl_line(account, node)
    if node.tags:
        lines += f"x-ms-tag-count: {len(node.tags)}\r\n"
    if node.properties:
        lines += f"x-ms-properties: {sent.encoded(node.properties)}\r\n"
    return lines + blob_lines(node)


def access_lines(account: AdlsAccount, node: Node) -> str:
    """Return the headers of owner, group and permissions."""
    permissions = "---------" if account.fabric else node.permissions
    owners = f"x-ms-owner: {node.owner}\r\nx-ms-group: {node.group}\r\n"
    return f"{owners}x-ms-permissions: {permissions}\r\n"


def acl_line(account: AdlsAccount, node: Node) -> str:
    """Return the header of the ACL; OneLake has that of the caller alone."""
    return f"x-ms-acl: {'rwx' if account.fabric else node.acl}\r\n"


def _cipher_lines(node: Node) -> str:
    """Return the headers of encryption; the answer adds the digest of the key."""
    cipher = cipher_of(node)
    lines = f"x-ms-encryption-scope: {cipher.scope}\r\n" if cipher.scope else ""
    if cipher.context:
        lines += f"x-ms-encryption-context: {one_line(cipher.context)}\r\n"
    return lines


def scope_lines(found: Filesystem) -> str:
    """Return the headers of a filesystem's default encryption scope."""
    if found.scope is None:
        return ""
    fixed = "true" if found.scope_fixed else "false"
    return (
        f"x-ms-default-encryption-scope: {found.scope}\r\n"
        f"x-ms-deny-encryption-scope-override: {fixed}\r\n"
    )


def _content_lines(node: Node) -> str:
    headers = node.headers
    kind = headers.get("content-type", "application/octet-stream")
    lines = f"Content-Type: {kind}\r\n"
    for name in _SHOWN:
        if name in headers:
            lines += f"{name}: {headers[name]}\r\n"
    if "cache-control" in headers:
        lines += f"Cache-Control: {headers['cache-control']}\r\n"
    return lines


def _lease_lines(account: AdlsAccount, node: Node) -> str:
    state = account.lease_state(node)
    locked = "locked" if state in ("leased", "breaking") else "unlocked"
    lines = f"x-ms-lease-state: {state}\r\nx-ms-lease-status: {locked}\r\n"
    if state == "leased" and node.lease is not None:
        length = "infinite" if node.lease.duration == -1 else "fixed"
        lines += f"x-ms-lease-duration: {length}\r\n"
    return lines


def blob_lines(node: Node) -> str:
    """Return the headers that only the blob endpoint has."""
    lines = "x-ms-blob-type: BlockBlob\r\nx-ms-access-tier: Hot\r\n"
    if (appended := node.append_blob) is not None:
        lines = "x-ms-blob-type: AppendBlob\r\n"
        lines += f"x-ms-blob-committed-block-count: {appended.blocks}\r\n"
        lines += "x-ms-blob-sealed: true\r\n" if appended.sealed else ""
    for name, value in node.properties.items():
        lines += f"x-ms-meta-{name}: {one_line(value)}\r\n"
    return f"{lines}x-ms-meta-hdi_isfolder: true\r\n" if node.is_dir else lines


def answer_read(account: AdlsAccount, wire: AdlsWire, call: AdlsCall) -> bytes:
    """Return a file's bytes, or the requested range."""
    conditions = sent.conditions(call.headers)
    span = sent.byte_range(call.headers)
    if span is None:
        node, data = account.read(call.filesystem, call.path, conditions=conditions)
        return wire.answer(call, 200, status_lines(account, node, call.headers), data)
    node = account.head(call.filesystem, call.path, conditions)
    start, end = span
    if not node.is_dir and start >= node.size:
        raise refusal("InvalidRange", headers={"Content-Range": f"bytes */{node.size}"})
    node, data = account.read(call.filesystem, call.path, start, end, conditions=conditions)
    lines = f"Content-Range: bytes {start}-{start + len(data) - 1}/{node.size}\r\n"
    if call.headers.get("x-ms-range-get-content-md5", "").lower() == "true":
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        lines += f"Content-MD5: {sent.encoded_md5(digest)}\r\n"
    return wire.answer(call, 206, lines + status_lines(account, node, call.headers), data)


def answer_lease(account: AdlsAccount, wire: AdlsWire, call: AdlsCall) -> bytes:
    """Perform the lease action in the headers on a path."""
    action = call.headers.get("x-ms-lease-action", "").lower()
    if action not in _STATUS:
        raise refusal("MissingRequiredHeader" if not action else "InvalidHeaderValue")
    done = _lease(account, call, action, sent.conditions(call.headers)._replace(lease=None))
    lines = identity(done.node)
    if action == "break":
        lines += f"x-ms-lease-time: {done.seconds}\r\n"
    elif action != "release":
        lines += f"x-ms-lease-id: {done.id}\r\n"
    return wire.answer(call, _STATUS[action], lines)


def _lease(
    account: AdlsAccount, call: AdlsCall, action: str, conditions: Conditions
) -> LeaseAnswer:
    get = call.headers.get
    return account.lease(
        call.filesystem,
        call.path,
        action,
        id=get("x-ms-lease-id") or None,
        proposed=get("x-ms-proposed-lease-id") or None,
        duration=_duration(call),
        period=_whole(get("x-ms-lease-break-period", "")),
        conditions=conditions,
    )


def _whole(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 10):
        raise refusal("InvalidHeaderValue")
    return int(text)


def check_new_lease(call: AdlsCall) -> None:
    """Reject a create with an invalid lease before anything is made."""
    acquire(None, LeaseRequest(None, "", _duration(call), None, str, 0.0))


def new_lease(account: AdlsAccount, call: AdlsCall) -> str:
    """Acquire the lease that a create requests; return its headers."""
    proposed = call.headers["x-ms-proposed-lease-id"]
    given = call.headers.get("x-ms-lease-id")
    where = (call.filesystem, call.path)
    done = account.lease(
        *where, "acquire", id=given, proposed=proposed or None, duration=_duration(call)
    )
    return f"x-ms-lease-id: {done.id}\r\n"


def _duration(call: AdlsCall) -> int | None:
    return _whole(call.headers.get("x-ms-lease-duration", ""))


def lease_before(account: AdlsAccount, call: AdlsCall) -> Conditions:
    """Perform the lease action that must precede an append or flush.

    Returns the conditions that remain to be checked.
    """
    conditions = sent.conditions(call.headers)
    action = call.headers.get("x-ms-lease-action", "").lower()
    if action not in ("acquire", "acquire-release"):
        return conditions
    held = _lease(account, call, "acquire", conditions._replace(lease=None))
    return conditions._replace(lease=held.id)


def lease_after(account: AdlsAccount, call: AdlsCall, lease: str | None) -> str:
    """Perform the lease action that must follow an append or flush.

    Returns the response headers for it.
    """
    action = call.headers.get("x-ms-lease-action", "").lower()
    if not action or not lease:
        return ""
    where = (call.filesystem, call.path)
    if action == "auto-renew":
        account.lease(*where, "renew", id=lease)
        return "x-ms-lease-renewed: true\r\n"
    if action in ("release", "acquire-release"):
        account.lease(*where, "release", id=lease)
        return ""
    return f"x-ms-lease-id: {lease}\r\n"
