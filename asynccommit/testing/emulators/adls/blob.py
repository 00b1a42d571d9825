"""Serve the blob endpoint, as far as SDKs and adlfs use it.

In a hierarchical namespace a directory is a blob without content whose metadata contain
``hdi_isfolder``. Snapshots, versions, tiers, page blobs and queries are rejected. Append blobs are
in ``append_blob``; tags, access policies and delegation keys in ``documents``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from asynccommit.testing.emulators.adls import headers as sent
from asynccommit.testing.emulators.adls.append_blob import AppendBlobs, check_new
from asynccommit.testing.emulators.adls.auth import AccountKeys
from asynccommit.testing.emulators.adls.batch import read_batch, write_batch
from asynccommit.testing.emulators.adls.blocks import Blocks, block_list, read_block_list
from asynccommit.testing.emulators.adls.call import (
    AdlsCall,
    AdlsTarget,
    bad_parameter,
    number,
    read_target,
)
from asynccommit.testing.emulators.adls.dfs import AdlsRoute
from asynccommit.testing.emulators.adls.documents import Documents, header_tags, public_line
from asynccommit.testing.emulators.adls.list import blobs_xml, containers_xml
from asynccommit.testing.emulators.adls.paths import (
    answer_lease,
    answer_read,
    scope_lines,
    status_lines,
)
from asynccommit.testing.emulators.adls.tags import tagged_blobs_xml
from asynccommit.testing.emulators.adls.wire import (
    AdlsWire,
    filesystem_identity,
    http_date,
    identity,
    one_line,
)
from asynccommit.testing.emulators.server import ServerRequest
from asynccommit.testing.models.adls.account import (
    AdlsAccount,
    Attributes,
    Filesystem,
    Node,
    Refusal,
)
from asynccommit.testing.models.adls.leases import check_held
from asynccommit.testing.models.adls.nodes import PLAIN, AppendBlob, check_cipher
from asynccommit.testing.models.adls.refusals import refusal

Table = Mapping[tuple[str, str], AdlsRoute]

_XML = "Content-Type: application/xml\r\n"
_ENCRYPTED = "x-ms-request-server-encrypted: true\r\n"


class Blob:
    """The operations of the blob endpoint; each method is one operation."""

    def __init__(
        self,
        accounts: Mapping[str, AdlsAccount],
        wire: AdlsWire,
        new_id: Callable[[], str],
        check: Callable[[AdlsCall, str], None],
        keyring: AccountKeys,
    ) -> None:
        self._check = check  # of credentials, for the parts of a batch
        self._accounts = accounts
        self._wire = wire
        self._new_id = new_id
        self._blocks = Blocks()
        self._append_blobs = AppendBlobs(accounts, wire, self._source)
        self._documents = Documents(accounts, wire, keyring)
        self._copies: dict[tuple[str, str, str], tuple[str, str]] = {}  # place -> etag, headers
        self._service: Table = {
            ("GET", "list"): AdlsRoute("list_filesystems", self.list_containers),
            ("GET", "blobs"): AdlsRoute("list", self.find),
            ("GET", "properties"): AdlsRoute("list_filesystems", self.account),
            ("HEAD", "properties"): AdlsRoute("list_filesystems", self.account),
            ("POST", "batch"): AdlsRoute("batch", self.batch),
            ("POST", "userdelegationkey"): AdlsRoute("access", self._documents.delegation_key),
        }
        self._containers = self._container_table()
        self._paths = self._path_table()

    def _container_table(self) -> Table:
        told = AdlsRoute("filesystem", self.head_container)
        return {
            ("PUT", ""): AdlsRoute("filesystem", self.create_container),
            ("GET", ""): told,
            ("HEAD", ""): told,
            ("GET", "metadata"): told,
            ("HEAD", "metadata"): told,
            ("PUT", "metadata"): AdlsRoute("filesystem", self.set_container),
            ("GET", "acl"): AdlsRoute("filesystem", self._documents.get_policies),
            ("PUT", "acl"): AdlsRoute("filesystem", self._documents.set_policies),
            ("DELETE", ""): AdlsRoute("filesystem", self.delete_container),
            ("GET", "list"): AdlsRoute("list", self.list),
            ("GET", "blobs"): AdlsRoute("list", self.find),
            ("POST", "batch"): AdlsRoute("batch", self.batch),
        }

    def _path_table(self) -> Table:
        told, read = AdlsRoute("head", self.head), AdlsRoute("read", self.read)
        return {
            ("PUT", ""): AdlsRoute("create", self.put),
            ("PUT", "block"): AdlsRoute("append", self.put_block),
            ("PUT", "blocklist"): AdlsRoute("flush", self.put_blocks),
            ("PUT", "appendblock"): AdlsRoute("append", self._append_blobs.append),
            ("PUT", "seal"): AdlsRoute("properties", self._append_blobs.seal),
            ("PUT", "metadata"): AdlsRoute("properties", self.set_metadata),
            ("PUT", "properties"): AdlsRoute("properties", self.set_headers),
            ("PUT", "expiry"): AdlsRoute("properties", self.set_expiry),
            ("PUT", "lease"): AdlsRoute("lease", self.lease),
            ("PUT", "tags"): AdlsRoute("properties", self._documents.set_tags),
            ("GET", "tags"): AdlsRoute("head", self._documents.get_tags),
            ("GET", "blocklist"): AdlsRoute("read", self.blocks),
            ("GET", "metadata"): told,
            ("HEAD", "metadata"): told,
            ("HEAD", ""): told,
            ("GET", ""): read,
            ("DELETE", ""): AdlsRoute("delete", self.delete),
        }

    def reset(self) -> None:
        """Forget the blocks and the copies."""
        self._blocks = Blocks()
        self._copies.clear()

    def state(self) -> object:
        """Return the blocks and the copies."""
        return self._blocks, self._copies

    def restore(self, state: Any) -> None:
        """Take what ``state`` returned."""
        self._blocks, self._copies = state

    def route(self, call: AdlsCall) -> AdlsRoute:
        """Return the route of a request. Raises ``Refusal`` if there is none."""
        component = call.query.get("comp", "")
        table = self._paths if call.path else self._containers
        route = (table if call.filesystem else self._service).get((call.method, component))
        if route is None:
            raise bad_parameter("comp", component) if component else refusal("UnsupportedHttpVerb")
        return route

    def account(self, call: AdlsCall) -> bytes:
        """Return the kind of the account."""
        namespace = "true" if self._accounts[call.account].hns else "false"
        lines = "x-ms-sku-name: Standard_LRS\r\nx-ms-account-kind: StorageV2\r\n"
        return self._wire.answer(call, 200, f"{lines}x-ms-is-hns-enabled: {namespace}\r\n")

    def list_containers(self, call: AdlsCall) -> bytes:
        """Return a page of the containers."""
        query = call.query
        found, token = self._accounts[call.account].list_filesystems(
            query.get("prefix", ""), number(query, "maxresults"), query.get("marker") or None
        )
        return self._wire.answer(
            call, 200, _XML, containers_xml(call, self._wire.scheme, found, token)
        )

    def create_container(self, call: AdlsCall) -> bytes:
        """Create a container."""
        given = dict(sent.properties(call.headers) or {})
        scope, fixed = sent.default_scope(call.headers)
        made = self._accounts[call.account].create_filesystem(
            call.filesystem, given, scope=scope, scope_fixed=fixed
        )
        made.public = sent.public_access(call.headers)
        return self._wire.answer(call, 201, filesystem_identity(made))

    def head_container(self, call: AdlsCall) -> bytes:
        """Return the properties of a container."""
        account = self._accounts[call.account]
        found = account.head_filesystem(call.filesystem)
        return self._wire.answer(call, 200, _container_lines(account, found))

    def set_container(self, call: AdlsCall) -> bytes:
        """Replace the metadata of a container."""
        given = dict(sent.properties(call.headers) or {})
        found = self._accounts[call.account].set_filesystem_properties(call.filesystem, given)
        return self._wire.answer(call, 200, filesystem_identity(found))

    def delete_container(self, call: AdlsCall) -> bytes:
        """Delete a container with its content."""
        wanted = sent.conditions(call.headers)
        self._accounts[call.account].delete_filesystem(call.filesystem, wanted)
        return self._wire.answer(call, 202)

    def batch(self, call: AdlsCall) -> bytes:
        """Delete several blobs; each request in the body has an answer of its own."""
        answers = [
            (part.content_id, self._answer_part(call, part.request)) for part in read_batch(call)
        ]
        boundary = f"batchresponse_{self._new_id()}"
        lines = f"Content-Type: multipart/mixed; boundary={boundary}\r\n"
        return self._wire.answer(call, 202, lines, write_batch(answers, boundary))

    def _answer_part(self, outer: AdlsCall, request: ServerRequest) -> bytes:
        """Answer one request of a batch; only deletes are modelled."""
        try:
            part = AdlsCall(request, _part_target(outer, request, self._accounts))
            if part.account != outer.account or part.filesystem != (
                outer.filesystem or part.filesystem
            ):
                raise refusal("InvalidInput", "The request is for another account or container.")
            if part.method != "DELETE" or not part.path or "comp" in part.query:
                raise refusal("InvalidInput", "Only the deletion of blobs works in a batch here.")
            self._check(part, "delete")
            return self.delete(part)
        except Refusal as error:
            return self._wire.refusal(request, error, blob=True)

    def list(self, call: AdlsCall) -> bytes:
        """Return a page of blobs; with a delimiter, those of one directory."""
        account = self._accounts[call.account]
        home = account.head_filesystem(call.filesystem)
        uncommitted = self._blocks.uncommitted(home, account.now())
        body = blobs_xml(account, call, self._wire.scheme, uncommitted)
        return self._wire.answer(call, 200, _XML, body)

    def find(self, call: AdlsCall) -> bytes:
        """Return a page of the blobs whose tags an expression selects."""
        body = tagged_blobs_xml(self._accounts[call.account], call, self._wire.scheme)
        return self._wire.answer(call, 200, _XML, body)

    def put(self, call: AdlsCall) -> bytes:
        """Write a whole blob, create one to append to, or copy one."""
        kind = call.headers.get("x-ms-blob-type", "").lower()
        if "x-ms-copy-source" in call.headers:
            return self._copy(call) if not kind else self._put_from(call, kind)
        if kind not in ("blockblob", "appendblob"):
            raise refusal("InvalidHeaderValue" if kind else "MissingRequiredHeader")
        data, md5 = call.body, sent.content_md5(call.headers)
        if md5 is not None and hashlib.md5(data, usedforsecurity=False).digest() != md5:
            raise refusal("Md5Mismatch")
        attributes = _attributes(call, self._accounts[call.account].now())
        if _is_marker(call) and not data:
            node = self._accounts[call.account].create(
                call.filesystem,
                call.path,
                directory=True,
                conditions=sent.conditions(call.headers),
                attributes=attributes,
            )
            return self._wire.answer(call, 201, identity(node) + _ENCRYPTED)
        if kind == "blockblob":
            attributes = _with_md5(attributes or Attributes(), data)
        else:
            check_new(call)
            attributes = (attributes or Attributes())._replace(append_blob=AppendBlob())
        node = self._write(call, data, attributes)
        return self._wire.answer(call, 201, identity(node) + _ENCRYPTED)

    def _write(self, call: AdlsCall, data: bytes, attributes: Attributes | None) -> Node:
        account = self._accounts[call.account]
        wanted, tags = sent.conditions(call.headers), header_tags(call)
        node = account.create(call.filesystem, call.path, conditions=wanted, attributes=attributes)
        self._blocks.forget(call)
        if data:
            held = wanted._replace(if_match=None, if_none_match=None)
            where = (call.filesystem, call.path)
            account.append(*where, 0, data, conditions=held, flush=True)
            node = account.head(*where)
        node.more().by_blob = True
        node.more().tags = tags
        return node

    def _source(self, call: AdlsCall) -> tuple[Node, bytes]:
        """Return the source of a copy, which must be in this emulator, and its content."""
        label, first, rest = sent.copy_source(call.headers)
        if label not in self._accounts:
            label, (first, _, rest) = first, rest.partition("/")
        if label not in self._accounts:
            raise Refusal(404, "CannotVerifyCopySource", "The source is not in this emulator.")
        source, data = self._accounts[label].read(
            first, rest, conditions=sent.source_conditions(call.headers)
        )
        check_cipher(source, PLAIN)  # the key of the source can only be given for a URL
        return source, data

    def _copy(self, call: AdlsCall) -> bytes:
        """Copy synchronously.

        The copy of an append blob is one, and is only sealed if the request says so.
        """
        source, data = self._source(call)
        kept = Attributes(properties=dict(source.properties), headers=dict(source.headers))
        given = _attributes(call, self._accounts[call.account].now())
        kept = given if given and given.properties else kept
        node = self._write(call, data, kept)
        if source.append_blob is not None:
            sealed = call.headers.get("x-ms-seal-blob", "").lower() == "true"
            node.more().append_blob = source.append_blob._replace(sealed=sealed)
        lines = f"x-ms-copy-id: {self._new_id()}\r\nx-ms-copy-status: success\r\n"
        told = (
            f"{lines}x-ms-copy-source: {call.headers['x-ms-copy-source'].partition('?')[0]}\r\n"
            f"x-ms-copy-progress: {node.size}/{node.size}\r\n"
            f"x-ms-copy-completion-time: {http_date(node.modified)}\r\n"
        )
        self._copies[call.account, call.filesystem, call.path] = (node.etag, told)
        return self._wire.answer(call, 202, identity(node) + lines)

    def _put_from(self, call: AdlsCall, kind: str) -> bytes:
        """Write a block blob from another.

        Source: Microsoft's page "Put Blob From URL". The properties of the source are those of the
        copy, unless the request says otherwise; its metadata are so if the request has none.
        """
        if kind != "blockblob" or call.body:
            raise refusal("InvalidHeaderValue")
        source, data = self._source(call)
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        for name in ("x-ms-source-content-md5", "content-md5"):
            if sent.content_md5(call.headers, name) not in (None, digest):
                raise refusal("Md5Mismatch")
        given = _attributes(call, self._accounts[call.account].now()) or Attributes()
        if given.properties is None:
            given = given._replace(properties=dict(source.properties))
        if call.headers.get("x-ms-copy-source-blob-properties", "true").lower() != "false":
            given = given._replace(headers={**source.headers, **(given.headers or {})})
        node = self._write(call, data, _with_md5(given, data))
        told = f"{identity(node)}Content-MD5: {sent.encoded_md5(digest)}\r\n"
        return self._wire.answer(call, 201, told + _ENCRYPTED)

    def put_block(self, call: AdlsCall) -> bytes:
        """Stage a block, from the body or from another blob."""
        account = self._accounts[call.account]
        home = account.head_filesystem(call.filesystem)
        node = self._block_blob(call)
        lease = None if node is None else node.lease
        check_held(lease, sent.conditions(call.headers).lease, account.now())
        copied = "x-ms-copy-source" in call.headers
        data = self._append_blobs.copied(call) if copied else call.body
        self._blocks.stage(call, home, call.query.get("blockid", ""), data, account.now())
        return self._wire.answer(call, 201, _ENCRYPTED)

    def put_blocks(self, call: AdlsCall) -> bytes:
        """Write a blob from a block list."""
        names = read_block_list(call.body)
        account = self._accounts[call.account]
        home = account.head_filesystem(call.filesystem)
        node = self._block_blob(call)
        old = ("", b"") if node is None else (node.etag, node.read())
        parts = self._blocks.take(call, home, names, old, account.now())
        attributes = _attributes(call, account.now())
        data = b"".join(data for _, data in parts)
        node = self._write(call, data, attributes)
        self._blocks.commit(call, node.etag, parts)
        return self._wire.answer(call, 201, identity(node) + _ENCRYPTED)

    def _block_blob(self, call: AdlsCall) -> Node | None:
        """Return the block blob at a path, or ``None``; an append blob is refused."""
        try:
            node = self._blob(call)
        except Refusal as error:
            if error.code != "PathNotFound":
                raise
            return None
        if node.append_blob is not None:
            raise refusal("InvalidBlobType")
        return node

    def _blob(self, call: AdlsCall) -> Node:
        """Return what is at a path.

        The virtual directories of flat accounts are not blobs.
        """
        node = self._accounts[call.account].head(call.filesystem, call.path)
        if node.virtual:
            raise refusal("PathNotFound")
        return node

    def blocks(self, call: AdlsCall) -> bytes:
        """Return the blocks of a blob, committed or not.

        Only a committed blob has an etag, and only without any blocks is it not found.
        """
        account = self._accounts[call.account]
        home = account.head_filesystem(call.filesystem)
        node = self._block_blob(call)
        known = self._blocks.known(call, home, node.etag if node else "", account.now())
        lines = f"{identity(node)}x-ms-blob-content-length: {node.size}\r\n" if node else ""
        body = block_list(call.query.get("blocklisttype", "").lower(), *known)
        return self._wire.answer(call, 200, lines + _XML, body)

    def head(self, call: AdlsCall) -> bytes:
        """Return a blob's properties, with its copy source until it is rewritten."""
        account = self._accounts[call.account]
        self._blob(call)
        node = account.head(call.filesystem, call.path, sent.conditions(call.headers))
        etag, copied = self._copies.get((call.account, call.filesystem, call.path), ("", ""))
        lines = status_lines(account, node, call.headers)
        lines += copied if etag == node.etag else ""
        return self._wire.answer(call, 200, lines, length=node.size)

    def read(self, call: AdlsCall) -> bytes:
        """Return a blob's bytes, or a range of them."""
        self._blob(call)
        return answer_read(self._accounts[call.account], self._wire, call)

    def lease(self, call: AdlsCall) -> bytes:
        """Acquire, renew, change, release or break the lease of a blob."""
        self._blob(call)
        return answer_lease(self._accounts[call.account], self._wire, call)

    def set_metadata(self, call: AdlsCall) -> bytes:
        """Replace the metadata of a blob."""
        self._blob(call)
        node = self._accounts[call.account].set_properties(
            call.filesystem,
            call.path,
            sent.properties(call.headers) or {},
            conditions=sent.conditions(call.headers),
        )
        return self._wire.answer(call, 200, identity(node) + _ENCRYPTED)

    def set_headers(self, call: AdlsCall) -> bytes:
        """Set the headers that a blob is served with."""
        self._blob(call)
        node = self._accounts[call.account].set_properties(
            call.filesystem,
            call.path,
            headers=sent.content_headers(call.headers) or {},
            conditions=sent.conditions(call.headers),
        )
        return self._wire.answer(call, 200, identity(node))

    def set_expiry(self, call: AdlsCall) -> bytes:
        """Set the time at which a file is deleted."""
        account, where = self._accounts[call.account], (call.filesystem, call.path)
        if "x-ms-expiry-option" not in call.headers:
            raise refusal("MissingRequiredHeader")
        node = account.head(*where)
        expires = sent.expiry(call.headers, account.now(), node.created)
        node = account.set_expiry(*where, expires, conditions=sent.conditions(call.headers))
        return self._wire.answer(call, 200, identity(node))

    def delete(self, call: AdlsCall) -> bytes:
        """Delete a blob or an empty directory.

        In a flat account the marker of a directory goes, and the blobs in the directory stay.
        """
        account, where = self._accounts[call.account], (call.filesystem, call.path)
        wanted = sent.conditions(call.headers)
        if not account.hns and self._blob(call).children:
            account.set_properties(*where, {}, headers={}, conditions=wanted).more().virtual = True
        else:
            account.delete(*where, conditions=wanted)
        return self._wire.answer(call, 202, "x-ms-delete-type-permanent: true\r\n")


def _is_marker(call: AdlsCall) -> bool:
    """Return whether the metadata say that the blob is a directory."""
    return call.headers.get("x-ms-meta-hdi_isfolder", "").lower() == "true"


def _with_md5(attributes: Attributes, data: bytes) -> Attributes:
    """Return the attributes with the digest of a whole blob."""
    digest = base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode("ascii")
    return attributes._replace(headers={"content-md5": digest, **(attributes.headers or {})})


def _attributes(call: AdlsCall, now: float) -> Attributes | None:
    """Return the attributes of the new blob, without the directory marker."""
    given = sent.attributes(call.headers, now)
    if given is None or not given.properties:
        return given
    kept = {name: _ for name, _ in given.properties.items() if name != "hdi_isfolder"}
    return given._replace(properties=kept)


def _part_target(
    outer: AdlsCall, request: ServerRequest, accounts: Mapping[str, AdlsAccount]
) -> AdlsTarget:
    """Return the target of a request in a batch.

    Azure's SDKs leave the account out of its path, also where that of the batch has it.
    """
    first = request.target.split(b"?")[0].split(b"/")[1].decode("latin-1")
    if first in accounts or request.headers["host"].partition(".")[0] in accounts:
        return read_target(request, accounts)._replace(endpoint="blob")
    whole = ServerRequest()
    whole.headers = request.headers
    whole.target = b"/" + outer.account.encode() + request.target
    raw = request.target.decode("latin-1").partition("?")[0]
    return read_target(whole, accounts)._replace(raw_path=raw, endpoint="blob")


def _container_lines(account: AdlsAccount, found: Filesystem) -> str:
    namespace = "true" if account.hns else "false"
    lines = (
        f"{filesystem_identity(found)}x-ms-lease-status: unlocked\r\n"
        "x-ms-lease-state: available\r\nx-ms-has-immutability-policy: false\r\n"
        f"x-ms-has-legal-hold: false\r\nx-ms-namespace-enabled: {namespace}\r\n"
    )
    for name, value in found.properties.items():
        lines += f"x-ms-meta-{name}: {one_line(value)}\r\n"
    return lines + scope_lines(found) + public_line(found)
