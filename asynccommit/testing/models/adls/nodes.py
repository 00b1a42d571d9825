"""Represent the files and directories of the model.

A filesystem is a tree of nodes, so that moving a directory moves one entry whatever it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from asynccommit.testing.models.adls.leases import PathLease
from asynccommit.testing.models.adls.refusals import refusal

SUPERUSER = "$superuser"
_NOTHING: Mapping[str, str] = MappingProxyType({})
_DIRECTORY = "rwxr-x---"
_FILE = "rw-r-----"
_LONGEST_NAME = 255
_LONGEST_PATH = 1024


class Cipher(NamedTuple):
    """The encryption of a request or a path; ``None`` means absent.

    Attributes:
        key: SHA-256 of the customer-provided key, as base64 text.
        scope: name of an encryption scope.
        context: text that the client keeps beside the file.
    """

    key: str | None = None
    scope: str | None = None
    context: str | None = None


class AppendBlob(NamedTuple):
    """The attributes of an append blob.

    Attributes:
        blocks: number of its blocks.
        sealed: whether it is read-only.
    """

    blocks: int = 0
    sealed: bool = False


class Attributes(NamedTuple):
    """The attributes that a create may set; ``None`` means absent.

    Attributes:
        properties: the user's properties, with decoded values.
        permissions: octal or symbolic.
        umask: octal.
        owner: owner of the path.
        group: group of the path.
        acl: as text, ``user::rwx,group::r-x,other::---``.
        headers: content headers, by lower-case name: ``content-type``, ...
        cipher: encryption of the path.
        expires: time at which a file is deleted, seconds since the epoch.
        append_blob: for a file that is an append blob.
    """

    properties: Mapping[str, str] | None = None
    permissions: str | None = None
    umask: str | None = None
    owner: str | None = None
    group: str | None = None
    acl: str | None = None
    headers: Mapping[str, str] | None = None
    cipher: Cipher | None = None
    expires: float | None = None
    append_blob: AppendBlob | None = None


class Extra:
    """Rare attributes of nodes, stored apart to keep plain files small."""

    __slots__ = (
        "acl",
        "append_blob",
        "by_blob",
        "cipher",
        "expires",
        "group",
        "headers",
        "owner",
        "permissions",
        "properties",
        "tags",
        "virtual",
    )

    def __init__(self) -> None:
        self.acl: str | None = None
        self.append_blob: AppendBlob | None = None
        self.by_blob = False
        self.cipher: Cipher | None = None
        self.expires: float | None = None
        self.group = SUPERUSER
        self.headers: Mapping[str, str] = _NOTHING
        self.owner = SUPERUSER
        self.permissions: str | None = None
        self.properties: Mapping[str, str] = _NOTHING
        self.tags: Mapping[str, str] = _NOTHING
        self.virtual = False


class Node:
    """A file or directory. It stays the same object when it is renamed.

    Attributes:
        children: name -> node; ``None`` for a file.
        chunks: committed bytes of a file.
        created: seconds since the epoch.
        extra: owner, properties and the like, if any were ever set.
        lease: last lease acquired on it.
        modified: seconds since the epoch.
        names: sorted names of the children, while they are unchanged.
        pending: position -> appended bytes that are not yet flushed.
        size: number of committed bytes.
        token: client transaction id of the request that created or renamed it.
        version: value from which its etag is made.
    """

    __slots__ = (
        "children",
        "chunks",
        "created",
        "extra",
        "lease",
        "modified",
        "names",
        "pending",
        "size",
        "token",
        "version",
    )

    def __init__(
        self,
        children: dict[str, Node] | None,
        version: int,
        now: float,
        token: str | None = None,
    ) -> None:
        self.children = children
        self.chunks: tuple[bytes, ...] = ()
        self.created = now
        self.extra: Extra | None = None
        self.lease: PathLease | None = None
        self.modified = now
        self.names: list[str] | None = None
        self.pending: dict[int, bytes] | None = None
        self.size = 0
        self.token = token
        self.version = version

    def __repr__(self) -> str:
        kind = "directory" if self.is_dir else f"file of {self.size} bytes"
        return f"<{kind}, etag {self.etag}>"

    @property
    def is_dir(self) -> bool:
        """Return whether this is a directory."""
        return self.children is not None

    @property
    def by_blob(self) -> bool:
        """Return whether the blob endpoint wrote this file."""
        return self.extra is not None and self.extra.by_blob

    @property
    def virtual(self) -> bool:
        """Return whether this directory is only a prefix of names, as in flat accounts."""
        return self.extra is not None and self.extra.virtual

    @property
    def etag(self) -> str:
        """The etag, without quotes."""
        return f"0x{self.version:X}"

    @property
    def owner(self) -> str:
        """The owner's name or id."""
        return self.extra.owner if self.extra else SUPERUSER

    @property
    def group(self) -> str:
        """The group's name or id."""
        return self.extra.group if self.extra else SUPERUSER

    @property
    def permissions(self) -> str:
        """The permissions, ``rwxr-x---``, with ``+`` if there is an extended ACL."""
        if self.extra is not None and self.extra.permissions is not None:
            return self.extra.permissions
        return _FILE if self.children is None else _DIRECTORY

    @property
    def acl(self) -> str:
        """The access control list as text."""
        if self.extra is not None and self.extra.acl is not None:
            return self.extra.acl
        user, group, other = plain_modes(self.permissions)
        return f"user::{user},group::{group},other::{other}"

    @property
    def append_blob(self) -> AppendBlob | None:
        """The attributes of an append blob; ``None`` for any other path."""
        return self.extra.append_blob if self.extra else None

    @property
    def properties(self) -> Mapping[str, str]:
        """The user's properties, decoded."""
        return self.extra.properties if self.extra else _NOTHING

    @property
    def headers(self) -> Mapping[str, str]:
        """The content headers that were set, by lower-case name."""
        return self.extra.headers if self.extra else _NOTHING

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags of a blob."""
        return self.extra.tags if self.extra else _NOTHING

    def more(self) -> Extra:
        """Return ``extra``, created if needed."""
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the committed bytes from ``start`` to before ``end``."""
        end = self.size if end is None else min(end, self.size)
        if len(self.chunks) == 1:
            return self.chunks[0][start:end]
        parts, offset = [], 0
        for chunk in self.chunks:
            if offset < end and start < offset + len(chunk):
                parts.append(chunk[max(0, start - offset) : end - offset])
            offset += len(chunk)
        return b"".join(parts)


class Filesystem:
    """One filesystem (container) of an account.

    Attributes:
        name: in the account.
        root: its root directory.
        etag: without quotes.
        modified: seconds since the epoch.
        policies: access policies, as XML.
        properties: the user's, decoded.
        public: who may read without a key, ``container`` or ``blob``; kept and not granted.
        scope: default encryption scope of its files.
        scope_fixed: whether requests may name no other scope.
    """

    __slots__ = (
        "modified",
        "name",
        "policies",
        "properties",
        "public",
        "root",
        "scope",
        "scope_fixed",
        "version",
    )

    def __init__(self, name: str, root: Node, properties: Mapping[str, str]) -> None:
        self.scope: str | None = None
        self.scope_fixed = False
        self.policies = ""
        self.public: str | None = None
        self.name = name
        self.root = root
        self.version = root.version
        self.modified = root.modified
        self.properties = dict(properties)

    @property
    def etag(self) -> str:
        """The etag, without quotes."""
        return f"0x{self.version:X}"


def plain_modes(permissions: str) -> tuple[str, str, str]:
    """Return the modes of user, group and other, without the sticky bit."""
    other = permissions[6:9].replace("t", "x").replace("T", "-")
    return permissions[:3], permissions[3:6], other


def find(root: Node, path: str) -> Node | None:
    """Return the node at ``path`` below ``root``."""
    if not path:
        return root
    node = root
    try:
        for name in path.split("/"):
            node = node.children[name]  # type: ignore[index]  # a file raises TypeError
    except (KeyError, TypeError):
        return None
    return node


def link(directory: Node, name: str, node: Node) -> None:
    """Put ``node`` at ``name`` in ``directory``, replacing the present one."""
    children = directory.children
    assert children is not None
    if directory.names is not None and name not in children:
        directory.names = None
    children[name] = node


def unlink(directory: Node, name: str) -> None:
    """Remove ``name`` from ``directory``."""
    assert directory.children is not None
    del directory.children[name]
    directory.names = None


def unlink_virtual(root: Node, path: str) -> None:
    """Remove the empty virtual directories above ``path``."""
    while path := path.rpartition("/")[0]:
        node, parent = find(root, path), find(root, path.rpartition("/")[0])
        if node is None or parent is None or node.children or not node.virtual:
            return
        unlink(parent, path.rpartition("/")[2])


def check_path(path: str) -> None:
    """Check that something may be created at a path."""
    if len(path) > _LONGEST_PATH or path[:1] == "/" or path[-1:] == "/" or "//" in path:
        raise refusal("InvalidUri")
    if len(path) > _LONGEST_NAME and any(len(name) > _LONGEST_NAME for name in path.split("/")):
        raise refusal("InvalidUri")


PLAIN = Cipher()


# Nothing is encrypted: of a customer's key the digest is kept, and a later request must give the
# same key. As Hadoop's tests expect, moving, deleting, listing and access control need no key.


def cipher_of(node: Node) -> Cipher:
    """Return the encryption of a path."""
    return PLAIN if node.extra is None else node.extra.cipher or PLAIN


def check_cipher(node: Node, given: Cipher) -> None:
    """Check that a request may read or change the content of a file."""
    own = cipher_of(node)
    if node.is_dir or (own is PLAIN and given is PLAIN):
        return
    if own.key and not given.key:
        raise refusal("BlobUsesCustomerSpecifiedEncryption")
    if given.key and not own.key:
        raise refusal("BlobDoesNotUseCustomerSpecifiedEncryption")
    if own.key != given.key or (given.scope and own.scope != given.scope):
        raise refusal("BlobCustomerSpecifiedEncryptionMismatch")


def new_cipher(found: Filesystem, given: Cipher | None, *, directory: bool) -> Cipher | None:
    """Return the encryption of a new path, with the default of its filesystem."""
    given = given or PLAIN
    if found.scope is not None and found.scope_fixed and given.scope not in (None, found.scope):
        raise refusal("RequestForbiddenByContainerEncryptionPolicy")
    scope = given.scope or (None if given.key else found.scope)
    kept = Cipher(None, scope) if directory else given._replace(scope=scope)
    return None if kept == PLAIN else kept
