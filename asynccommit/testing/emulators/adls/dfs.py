"""Serve the dfs endpoint of an ADLS Gen2 account."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from asynccommit.testing.emulators.adls import headers as sent
from asynccommit.testing.emulators.adls.call import AdlsCall, bad_parameter, flag, number
from asynccommit.testing.emulators.adls.paths import (
    access_lines,
    acl_line,
    answer_lease,
    answer_read,
    check_new_lease,
    lease_after,
    lease_before,
    new_lease,
    scope_lines,
    status_lines,
)
from asynccommit.testing.emulators.adls.permissions import acting_user
from asynccommit.testing.emulators.adls.wire import (
    AdlsWire,
    filesystem_identity,
    filesystems_json,
    identity,
    paths_json,
)
from asynccommit.testing.models.adls.access import ACL_MODES, without_defaults
from asynccommit.testing.models.adls.account import AdlsAccount, Attributes, Filesystem, Node
from asynccommit.testing.models.adls.listing import decode_token, encode_token
from asynccommit.testing.models.adls.nodes import AppendBlob
from asynccommit.testing.models.adls.permits import need_ownership
from asynccommit.testing.models.adls.refusals import Refusal, refusal

Handler = Callable[[AdlsCall], bytes]

_PAGE = 5000
_JSON = "Content-Type: application/json;charset=utf-8\r\n"


class AdlsRoute(NamedTuple):
    """An operation's name, as faults and statistics use it, and its handler."""

    op: str
    handler: Handler


class Dfs:
    """The operations of the dfs endpoint; each method is one operation."""

    def __init__(self, accounts: Mapping[str, AdlsAccount], wire: AdlsWire) -> None:
        self._accounts = accounts
        self._wire = wire
        self._actions = {
            "append": AdlsRoute("append", self.append),
            "flush": AdlsRoute("flush", self.flush),
            "setproperties": AdlsRoute("properties", self.set_properties),
            "setaccesscontrol": AdlsRoute("access", self.set_access),
            "setaccesscontrolrecursive": AdlsRoute("access", self.set_access_recursive),
        }
        self._filesystem = {
            "PUT": AdlsRoute("filesystem", self.create_filesystem),
            "HEAD": AdlsRoute("filesystem", self.head_filesystem),
            "DELETE": AdlsRoute("filesystem", self.delete_filesystem),
            "PATCH": AdlsRoute("filesystem", self.set_filesystem),
            "GET": AdlsRoute("list", self.list),
        }
        self._paths = {
            "HEAD": AdlsRoute("head", self.head),
            "GET": AdlsRoute("read", self.read),
            "DELETE": AdlsRoute("delete", self.delete),
            "POST": AdlsRoute("lease", self.lease),
        }
        self._rename = AdlsRoute("rename", self.rename)
        self._create = AdlsRoute("create", self.create)
        self._mkdir = AdlsRoute("mkdir", self.create)
        self._access = AdlsRoute("access", self.access)
        self._accounts_route = AdlsRoute("list_filesystems", self.list_filesystems)
        self._account_head = AdlsRoute("list_filesystems", self.head_account)

    def route(self, call: AdlsCall) -> AdlsRoute:
        """Return the route of a request. Raises ``Refusal`` if there is none."""
        query, method = call.query, call.method
        if method == "PUT":
            if "x-ms-rename-source" in call.headers:
                return self._rename
            kind = query.get("resource", "")
            if kind == "filesystem" and not call.path:
                return self._filesystem["PUT"]
            if kind in ("file", "directory"):
                return self._create if kind == "file" else self._mkdir
            raise bad_parameter("resource", kind)
        if not call.filesystem and method in ("GET", "HEAD"):
            return self._accounts_route if method == "GET" else self._account_head
        if query.get("resource") == "filesystem" and method in self._filesystem:
            return self._filesystem[method]
        action = query.get("action", "").lower()
        if method == "PATCH":
            if action not in self._actions:
                raise bad_parameter("action", action)
            return self._actions[action]
        if method == "HEAD" and action in ("getaccesscontrol", "checkaccess"):
            return self._access
        if method not in self._paths:
            raise refusal("UnsupportedHttpVerb")
        return self._paths[method]

    def create_filesystem(self, call: AdlsCall) -> bytes:
        """Create a filesystem."""
        account = self._accounts[call.account]
        given = dict(sent.properties(call.headers) or {})
        scope, fixed = sent.default_scope(call.headers)
        made = account.create_filesystem(call.filesystem, given, scope=scope, scope_fixed=fixed)
        return self._wire.answer(call, 201, _filesystem_lines(account, made))

    def head_filesystem(self, call: AdlsCall) -> bytes:
        """Return the properties of a filesystem."""
        account = self._accounts[call.account]
        found = account.head_filesystem(call.filesystem)
        own = f"x-ms-properties: {sent.encoded(found.properties)}\r\n"
        return self._wire.answer(call, 200, _filesystem_lines(account, found) + own)

    def delete_filesystem(self, call: AdlsCall) -> bytes:
        """Delete a filesystem with its content."""
        account = self._accounts[call.account]
        account.delete_filesystem(call.filesystem, sent.conditions(call.headers))
        return self._wire.answer(call, 202)

    def set_filesystem(self, call: AdlsCall) -> bytes:
        """Replace the properties of a filesystem."""
        account = self._accounts[call.account]
        given = dict(sent.properties(call.headers) or {})
        conditions = sent.conditions(call.headers)
        found = account.set_filesystem_properties(call.filesystem, given, conditions)
        return self._wire.answer(call, 200, _filesystem_lines(account, found))

    def head_account(self, call: AdlsCall) -> bytes:
        """Say that there is this account; only OneLake has such a request."""
        if not self._accounts[call.account].fabric:
            raise refusal("InvalidResourceName")
        return self._wire.answer(call, 200)

    def list_filesystems(self, call: AdlsCall) -> bytes:
        """Return a page of the filesystems."""
        query = call.query
        found, token = self._accounts[call.account].list_filesystems(
            query.get("prefix", ""), _page(call, "maxresults"), query.get("continuation") or None
        )
        lines = _JSON + _continuation(token)
        return self._wire.answer(call, 200, lines, filesystems_json(found))

    def list(self, call: AdlsCall) -> bytes:
        """Return a page of the paths in a directory, recursively if requested."""
        query = call.query
        if "recursive" not in query:
            raise refusal("MissingRequiredQueryParameter")
        entries, token = self._accounts[call.account].list(
            call.filesystem,
            query.get("directory", "").strip("/"),
            recursive=flag(query, "recursive"),
            limit=_page(call, "maxresults"),
            token=query.get("continuation") or None,
            start=query.get("beginfrom", "").strip("/") or None,
        )
        return self._wire.answer(call, 200, _JSON + _continuation(token), paths_json(entries))

    def create(self, call: AdlsCall) -> bytes:
        """Create a file or a directory, and its missing parents."""
        headers, account = call.headers, self._accounts[call.account]
        if "x-ms-proposed-lease-id" in headers:
            check_new_lease(call)
        node = account.create(
            call.filesystem,
            call.path,
            directory=call.query["resource"] == "directory",
            conditions=sent.conditions(headers),
            token=sent.transaction_id(headers),
            attributes=_attributes(call, account.now()),
        )
        own = "x-ms-request-server-encrypted: true\r\n"
        if "x-ms-proposed-lease-id" in headers:
            own += new_lease(account, call)
        return self._wire.answer(call, 201, identity(node) + own)

    def rename(self, call: AdlsCall) -> bytes:
        """Move a file or directory to this path; it keeps its ETag and time.

        Recordings disagree whether the response contains them: those of the .NET and Python SDKs
        contain neither, those of the C++ SDK contain both, and that SDK crashes without them.
        """
        headers = call.headers
        mode = call.query.get("mode", "posix")
        if mode not in ("posix", "legacy"):
            raise bad_parameter("mode", mode)
        node = self._accounts[call.account].rename(
            call.filesystem,
            call.path,
            *sent.rename_source(call),
            mode=mode,
            conditions=sent.conditions(headers),
            source_conditions=sent.source_conditions(headers),
            token=sent.transaction_id(headers),
        )
        lines = identity(node) if "azsdk-cpp" in headers.get("user-agent", "") else ""
        return self._wire.answer(call, 201, lines)

    def append(self, call: AdlsCall) -> bytes:
        """Append uncommitted data; with ``flush=true`` commit it as well."""
        headers, flush = call.headers, flag(call.query, "flush")
        account = self._accounts[call.account]
        lease = lease_before(account, call)
        account.append(
            call.filesystem,
            call.path,
            _position(call),
            call.body,
            conditions=lease,
            md5=sent.content_md5(headers),
            flush=flush,
        )
        own = "x-ms-request-server-encrypted: true\r\n"
        if flush:
            own += identity(account.head(call.filesystem, call.path))
        return self._wire.answer(call, 202, own + lease_after(account, call, lease.lease))

    def flush(self, call: AdlsCall) -> bytes:
        """Commit the appended data up to a position."""
        account = self._accounts[call.account]
        lease = lease_before(account, call)
        node = account.flush(
            call.filesystem,
            call.path,
            _position(call),
            conditions=lease,
            retain=flag(call.query, "retainuncommitteddata"),
            headers=sent.content_headers(call.headers),
        )
        encrypted = "true" if "x-ms-encryption-key" in call.headers else "false"
        own = f"{identity(node)}x-ms-request-server-encrypted: {encrypted}\r\n"
        return self._wire.answer(call, 200, own + lease_after(account, call, lease.lease))

    def head(self, call: AdlsCall) -> bytes:
        """Return a path's properties; for a status query, without the user's.

        The root has none, as Hadoop's tests expect; the code is inferred.
        """
        if not call.path and "action" not in call.query:
            raise refusal("InvalidUri")
        account = self._accounts[call.account]
        node = account.head(call.filesystem, call.path, sent.conditions(call.headers))
        lines = status_lines(account, node, call.headers, brief="action" in call.query)
        return self._wire.answer(call, 200, lines, length=node.size)

    def access(self, call: AdlsCall) -> bytes:
        """Return the access control list; rejected by a flat account."""
        account = self._accounts[call.account]
        conditions = sent.conditions(call.headers)
        node = account.access_control(call.filesystem, call.path, conditions)
        lines = identity(node) + access_lines(account, node) + acl_line(account, node)
        return self._wire.answer(call, 200, lines)

    def read(self, call: AdlsCall) -> bytes:
        """Return a file's bytes, or a range of them."""
        return answer_read(self._accounts[call.account], self._wire, call)

    def delete(self, call: AdlsCall) -> bytes:
        """Delete a file or directory, possibly in several requests."""
        token = self._accounts[call.account].delete(
            call.filesystem,
            call.path,
            recursive=flag(call.query, "recursive"),
            token=call.query.get("continuation") or None,
            conditions=sent.conditions(call.headers),
        )
        return self._wire.answer(call, 200, _continuation(token))

    def lease(self, call: AdlsCall) -> bytes:
        """Acquire, renew, change, release or break the lease of a path."""
        return answer_lease(self._accounts[call.account], self._wire, call)

    def set_properties(self, call: AdlsCall) -> bytes:
        """Replace the user's properties and the given content headers."""
        headers = call.headers
        node = self._accounts[call.account].set_properties(
            call.filesystem,
            call.path,
            sent.properties(headers),
            headers=sent.content_headers(headers),
            conditions=sent.conditions(headers),
        )
        own = "x-ms-request-server-encrypted: true\r\n" * ("x-ms-encryption-key" in headers)
        return self._wire.answer(call, 200, identity(node) + own)

    def set_access(self, call: AdlsCall) -> bytes:
        """Set owner, group, permissions or the access control list."""
        node = _set_access(self._accounts[call.account], call, call.path)
        return self._wire.answer(call, 200, identity(node))

    def set_access_recursive(self, call: AdlsCall) -> bytes:
        """Change the ACLs of a directory and everything below it, in pages.

        A path that a user may not change ends the operation, unless it is forced.
        """
        account, acl = self._accounts[call.account], call.headers.get("x-ms-acl", "")
        mode = call.query.get("mode", "")
        if mode not in ACL_MODES:
            raise bad_parameter("mode", mode)
        account.access_control(call.filesystem, call.path)
        paths, token = _page_below(account, call)
        nodes: list[Node] = []
        failed: list[Mapping[str, str]] = []
        for path in paths:
            try:
                _check_owner(account, call, path)
            except Refusal as error:
                failed.append(_failed_entry(account.head(call.filesystem, path), path, error))
                if not flag(call.query, "forceflag"):
                    token = None
                    break
            else:
                nodes.append(_change_below(account, call, path, mode, acl))
        directories = sum(node.is_dir for node in nodes)
        counts = {
            "directoriesSuccessful": directories,
            "filesSuccessful": len(nodes) - directories,
            "failureCount": len(failed),
            "failedEntries": failed,
        }
        lines = _JSON + _continuation(token)
        return self._wire.answer(call, 200, lines, json.dumps(counts).encode())


def _page_below(account: AdlsAccount, call: AdlsCall) -> tuple[list[str], str | None]:
    """Return a page of a path with everything below it, and the next token."""
    subject, token = f"acl {call.path}", call.query.get("continuation")
    paths, more = [call.path], None
    while True:
        page = account.list(call.filesystem, call.path, recursive=True, token=more)
        paths += [path for path, _ in page.entries if path != call.path]
        more = page.token
        if more is None:
            break
    if token:
        last = decode_token(subject, token)
        paths = paths[paths.index(last) + 1 :] if last in paths else []
    size = _page(call, "maxrecords") or _PAGE
    return paths[:size], encode_token(subject, paths[size - 1]) if paths[size:] else None


def _check_owner(account: AdlsAccount, call: AdlsCall, path: str) -> None:
    if user := acting_user(call):
        need_ownership(account.head_filesystem(call.filesystem).root, path, user)


def _failed_entry(node: Node, path: str, error: Refusal) -> Mapping[str, str]:
    kind = "DIRECTORY" if node.is_dir else "FILE"
    return {"name": path, "type": kind, "errorMessage": error.message}


def _change_below(account: AdlsAccount, call: AdlsCall, path: str, mode: str, acl: str) -> Node:
    node = account.access_control(call.filesystem, path)
    mine = acl if node.is_dir else without_defaults(acl)
    if not mine and acl:
        return node
    where = (call.filesystem, path)
    return account.set_access_control(*where, acl=mine or ",", mode=mode)


def _attributes(call: AdlsCall, now: float) -> Attributes | None:
    """Return the attributes of a new path; a file may be an append blob."""
    given, kind = sent.attributes(call.headers, now), call.query.get("blobtype", "").lower()
    if kind in ("", "blockblob"):
        return given
    if kind != "appendblob":
        raise bad_parameter("blobtype", kind)
    return (given or Attributes())._replace(append_blob=AppendBlob())


def _set_access(account: AdlsAccount, call: AdlsCall, path: str) -> Node:
    get = call.headers.get
    return account.set_access_control(
        call.filesystem,
        path,
        acl=get("x-ms-acl") or None,
        owner=get("x-ms-owner") or None,
        group=get("x-ms-group") or None,
        permissions=get("x-ms-permissions") or None,
        conditions=sent.conditions(call.headers),
    )


def _filesystem_lines(account: AdlsAccount, found: Filesystem) -> str:
    namespace = "true" if account.hns else "false"
    lines = f"{filesystem_identity(found)}x-ms-namespace-enabled: {namespace}\r\n"
    return lines + scope_lines(found)


def _continuation(token: str | None) -> str:
    return f"x-ms-continuation: {token}\r\n" if token else ""


def _page(call: AdlsCall, key: str) -> int | None:
    size = number(call.query, key)
    if size == 0:
        raise refusal("OutOfRangeQueryParameterValue")
    return size


def _position(call: AdlsCall) -> int:
    position = number(call.query, "position")
    if position is None:
        raise refusal("MissingRequiredQueryParameter")
    return position
