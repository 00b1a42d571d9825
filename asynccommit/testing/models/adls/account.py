"""Model an ADLS Gen2 account without its wire format.

It is synchronous, in memory, and uses neither HTTP nor wall time; every rejected request raises
``Refusal``. The emulator and ``SimStore`` are built on it. Paths are decoded and have no slash at
either end: ``a/b``; the root is ``""``.

Comments mark behaviour that was *recorded* from the service, and behaviour that is only *inferred*;
the rest is documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from asynccommit.testing.models.adls import access, append_blobs, content, listing
from asynccommit.testing.models.adls.append_blobs import NO_LIMITS, AppendLimits
from asynccommit.testing.models.adls.conditions import (
    IF_ABSENT,
    NO_CONDITIONS,
    Conditions,
    check_place,
    check_read,
    check_write,
    existing,
)
from asynccommit.testing.models.adls.filesystems import MOST_ENTRIES, AdlsLimits, Filesystems
from asynccommit.testing.models.adls.leases import (
    ACTIONS,
    LeaseRequest,
    PathLease,
    check_held,
    check_named,
    state_of,
)
from asynccommit.testing.models.adls.listing import AdlsPage
from asynccommit.testing.models.adls.nodes import (
    PLAIN,
    Attributes,
    Cipher,
    Filesystem,
    Node,
    check_cipher,
    check_path,
    find,
    link,
    new_cipher,
    unlink,
    unlink_virtual,
)
from asynccommit.testing.models.adls.refusals import Refusal, refusal
from asynccommit.testing.models.adls.renames import (
    LEGACY,
    POSIX,
    final_path,
    move,
    place,
    refuse_into_itself,
    take,
)

__all__ = [
    "IF_ABSENT",
    "NO_CONDITIONS",
    "AdlsAccount",
    "AdlsLimits",
    "AdlsPage",
    "Attributes",
    "Conditions",
    "Filesystem",
    "LeaseAnswer",
    "Node",
    "PathLease",
    "Refusal",
]


class LeaseAnswer(NamedTuple):
    """The result of a lease action: node, id, seconds until broken."""

    node: Node
    id: str
    seconds: int


class AdlsAccount(Filesystems):
    """One storage account: filesystems of files and directories.

    Args:
        name: name of the account.
        now: the server's clock, seconds since the epoch.
        new_id: creates lease ids.
        hns: with a hierarchical namespace; a flat account has no access control, and renames there
            give new etags.
        limits: limits that split long operations; may be replaced at any time.

    Attributes:
        fabric: whether the account is OneLake, whose items Fabric manages.
    """

    fabric = False

    # --- making --------------------------------------------------------------------------------

    def create(
        self,
        fs: str,
        path: str,
        *,
        directory: bool = False,
        conditions: Conditions = NO_CONDITIONS,
        token: str | None = None,
        attributes: Attributes | None = None,
    ) -> Node:
        """Create a file or directory with its missing parents.

        An existing file is emptied, an existing directory stays with its content; neither replaces
        the other.
        """
        found = self.head_filesystem(fs)
        root = found.root
        if not path:  # inferred
            raise existing(root)
        check_path(path)
        if attributes is not None and attributes.expires is not None:
            self._plan_expiry(attributes.expires, directory=directory)
        if self.encrypted or (attributes is not None and attributes.cipher is not None):
            attributes = self._encrypted(found, attributes, directory=directory)
        if attributes is not None:
            access.check_attributes(attributes)
        parent_path, _, name = path.rpartition("/")
        now = self._now()
        parent = find(root, parent_path) or self._make_parents(root, parent_path, conditions, now)
        if parent.children is None:
            raise refusal("PathConflict")
        node = parent.children.get(name)
        if node is not None or conditions is not NO_CONDITIONS:
            check_place(None if node is not None and node.virtual else node, conditions)
            check_held(None if node is None else node.lease, conditions.lease, now)
        if node is None:
            node = Node({} if directory else None, self._tick(now), now, token)
            if attributes is not None or parent.extra is not None:
                access.dress(node, attributes, parent)
            link(parent, name, node)
        else:
            self._make_again(node, directory, now, token)
            if attributes is not None or not directory:
                access.dress(node, attributes, parent)
        return node

    def append(
        self,
        fs: str,
        path: str,
        position: int,
        data: bytes,
        *,
        conditions: Conditions = NO_CONDITIONS,
        md5: bytes | None = None,
        flush: bool = False,
    ) -> Node:
        """Append data that a flush will commit.

        With ``flush`` the data is committed too, completely or not at all. To an append blob the
        data is committed in any case, and only at its end.
        """
        node = self._file(fs, path)
        self._check_change(node, conditions)
        if node.by_blob:
            raise refusal("InvalidAppendOperation")
        if node.append_blob is not None:
            # Hadoop's client takes 400 for a repetition of an append that was done.
            if position != node.size:
                raise refusal("InvalidQueryParameterValue")
            append_blobs.append_block(node, data, md5, NO_LIMITS)
            self._touch(node, self._now())
            return node
        content.append(node, position, data, md5)
        if flush:
            try:
                self._flush(node, position + len(data), retain=False)
            except Refusal:
                content.forget(node, position)
                raise
        return node

    def append_block(
        self,
        fs: str,
        path: str,
        data: bytes,
        *,
        conditions: Conditions = NO_CONDITIONS,
        md5: bytes | None = None,
        limits: AppendLimits = NO_LIMITS,
    ) -> Node:
        """Add a block to the end of an append blob; readers see it at once."""
        node = self.head(fs, path)
        self._check_change(node, conditions)
        if node.append_blob is not None and not node.by_blob:
            raise refusal("BlobOperationNotSupported")
        append_blobs.append_block(node, data, md5, limits)
        self._touch(node, self._now())
        return node

    def seal(
        self,
        fs: str,
        path: str,
        *,
        conditions: Conditions = NO_CONDITIONS,
        limits: AppendLimits = NO_LIMITS,
    ) -> Node:
        """Make an append blob read-only."""
        node = self.head(fs, path)
        self._check_change(node, conditions)
        append_blobs.seal(node, limits)
        self._touch(node, self._now())
        return node

    def flush(
        self,
        fs: str,
        path: str,
        position: int,
        *,
        conditions: Conditions = NO_CONDITIONS,
        retain: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> Node:
        """Commit the data appended up to ``position``; drop the rest unless ``retain``."""
        node = self._file(fs, path)
        self._check_change(node, conditions)
        if node.by_blob:
            raise refusal("InvalidFlushOperation")
        self._flush(node, position, retain)
        if headers:
            node.more().headers = dict(headers)
        return node

    # --- reading -------------------------------------------------------------------------------

    def head(self, fs: str, path: str, conditions: Conditions = NO_CONDITIONS) -> Node:
        """Return the node at ``path``."""
        node = find(self.head_filesystem(fs).root, path)
        if node is None:
            raise refusal("PathNotFound")
        if conditions is not NO_CONDITIONS:
            check_read(node, conditions)
            check_named(node.lease, conditions.lease, self._now())
        return node

    def read(
        self,
        fs: str,
        path: str,
        start: int = 0,
        end: int | None = None,
        conditions: Conditions = NO_CONDITIONS,
    ) -> tuple[Node, bytes]:
        """Return a file and its bytes from ``start`` to before ``end``.

        A negative ``start`` counts from the end of the file.
        """
        node = self.head(fs, path, conditions)
        return node, content.read(node, start, end)

    def list(
        self,
        fs: str,
        directory: str = "",
        *,
        recursive: bool = False,
        limit: int | None = None,
        token: str | None = None,
        start: str | None = None,
    ) -> AdlsPage:
        """Return one page of a directory, recursively if requested.

        ``start`` is the path in the directory at which the listing begins, itself included.
        """
        if limit is not None and limit < 1:
            raise refusal("OutOfRangeQueryParameterValue")
        node = find(self.head_filesystem(fs).root, directory)
        if node is None:
            raise refusal("PathNotFound")
        if node.children is None:  # as Hadoop's listStatus of a file and its tests expect
            return AdlsPage([(directory, node)], None)
        most = min(limit or MOST_ENTRIES, self.limits.page, MOST_ENTRIES)
        empty = self.limits.empty_pages
        if start and not token:
            return listing.list_page_from(node, directory, recursive, most, start)
        return listing.list_page(node, directory, recursive, most, token or None, empty)

    # --- moving and removing -------------------------------------------------------------------

    def rename(
        self,
        fs: str,
        path: str,
        source_fs: str,
        source: str,
        *,
        mode: str = POSIX,
        conditions: Conditions = NO_CONDITIONS,
        source_conditions: Conditions = NO_CONDITIONS,
        token: str | None = None,
    ) -> Node:
        """Move ``source`` to ``path`` in one step.

        A file replaces a file, and a directory an empty one, unless ``conditions`` forbid it. In
        the mode ``posix``, the service's default, both move *into* a directory that exists at
        ``path``; the conditions are then about the path in it.
        The node keeps its etag and times (recorded).
        """
        root = self.head_filesystem(fs).root
        source_root = root if source_fs == fs else self.head_filesystem(source_fs).root
        if not source:
            raise refusal("InvalidSourceUri")
        if mode != LEGACY and mode != POSIX:
            raise refusal("InvalidQueryParameterValue")
        now = self._now()
        taken = take(source_root, source, source_conditions, now)
        node = taken[2]
        if node.children is not None and source_root is root:
            refuse_into_itself(node, source, path)
        path = final_path(root, path, taken, mode)
        check_path(path)
        move(taken, place(root, path, conditions, now), now)
        node.token = token
        if not self.hns:
            self._touch(node, now)
            unlink_virtual(source_root, source)
        return node

    def delete(
        self,
        fs: str,
        path: str,
        *,
        recursive: bool = False,
        token: str | None = None,
        conditions: Conditions = NO_CONDITIONS,
    ) -> str | None:
        """Delete a path; return a token if another request is needed."""
        root = self.head_filesystem(fs).root
        if not path:
            raise refusal("InvalidUri")  # inferred
        directory, _, name = path.rpartition("/")
        parent = find(root, directory)
        node = None if parent is None or parent.children is None else parent.children.get(name)
        if node is None or parent is None:
            raise refusal("PathNotFound")
        self._check_change(node, conditions)
        if token and listing.decode_token("delete", token) != path:
            raise refusal("InvalidQueryParameterValue")
        if node.children and not recursive:
            raise refusal("DirectoryNotEmpty")
        if node.children and self.limits.delete:
            listing.prune(node, self.limits.delete)
            if node.children:
                return listing.encode_token("delete", path)
        unlink(parent, name)
        if not self.hns:
            unlink_virtual(root, path)
        return None

    # --- leases, properties, access control ----------------------------------------------------

    def lease_state(self, node: Node) -> str:
        """Return the state of a lease.

        It is ``available``, ``leased``, ``expired``, ``breaking`` or ``broken``.
        """
        return state_of(node.lease, self._now())

    def lease(
        self,
        fs: str,
        path: str,
        action: str,
        *,
        id: str | None = None,
        proposed: str | None = None,
        duration: int | None = None,
        period: int | None = None,
        conditions: Conditions = NO_CONDITIONS,
    ) -> LeaseAnswer:
        """Do one of ``acquire``, ``renew``, ``change``, ``release``, ``break``.

        See ``asynccommit.testing.models.adls.leases`` for the effect of each in each state.
        """
        node = self.head(fs, path)
        if action not in ACTIONS:
            raise refusal("InvalidHeaderValue")
        check_write(node, conditions)
        asked = LeaseRequest(id, proposed, duration, period, self.new_id, self._now())
        node.lease, seconds = ACTIONS[action](node.lease, asked)
        return LeaseAnswer(node, node.lease.id if node.lease else id or "", seconds)

    def set_properties(
        self,
        fs: str,
        path: str,
        properties: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        conditions: Conditions = NO_CONDITIONS,
    ) -> Node:
        """Replace the properties or content headers of a path; ``None`` keeps them."""
        node = self.head(fs, path)
        self._check_change(node, conditions)
        if not path:  # Hadoop's tests expect a refusal; the code is inferred
            raise refusal("InvalidUri")
        if properties is not None:
            node.more().properties = dict(properties)
        if headers is not None:
            node.more().headers = dict(headers)
        self._touch(node, self._now())
        return node

    def set_expiry(
        self,
        fs: str,
        path: str,
        expires: float | None,
        *,
        conditions: Conditions = NO_CONDITIONS,
    ) -> Node:
        """Set the time at which a file is deleted; ``None`` means never."""
        node = self.head(fs, path)
        self._check_change(node, conditions)
        if expires is not None:
            self._plan_expiry(expires, directory=node.is_dir)
        node.more().expires = expires
        return node

    def _plan_expiry(self, expires: float, *, directory: bool) -> None:
        """Refuse a time that has passed, a directory, and a flat account."""
        if not self.hns:
            raise refusal("HierarchicalNamespaceNotEnabled")
        if directory or expires <= self._now():  # inferred
            raise refusal("InvalidHeaderValue")
        self._due = min(self._due, expires)

    def access_control(self, fs: str, path: str, conditions: Conditions = NO_CONDITIONS) -> Node:
        """Return the node of a path, for its access control.

        Owner, group, permissions and ACL are attributes of the node. Rejected by a flat account.
        """
        found = self.head_filesystem(fs)
        if not self.hns:
            raise refusal("HierarchicalNamespaceNotEnabled")
        return self.head(found.name, path, conditions)

    def set_access_control(
        self,
        fs: str,
        path: str,
        *,
        acl: str | None = None,
        owner: str | None = None,
        group: str | None = None,
        permissions: str | None = None,
        conditions: Conditions = NO_CONDITIONS,
        mode: str = "set",
    ) -> Node:
        """Change the given values; the etag stays the same (recorded).

        ``mode`` is ``set``, ``modify`` or ``remove``, and says what to do with ``acl``.
        """
        node = self.access_control(fs, path)
        self._check_change(node, conditions)
        if acl and permissions:
            raise refusal("InvalidHeaderValue")
        if permissions:
            access.set_permissions(node, permissions)
        if acl:
            access.ACL_MODES[mode](node, acl)
        extra = node.more()
        extra.owner = owner or extra.owner
        extra.group = group or extra.group
        return node

    # --- helpers -------------------------------------------------------------------------------

    def _encrypted(
        self, found: Filesystem, attributes: Attributes | None, *, directory: bool
    ) -> Attributes | None:
        """Return the attributes with the encryption that a new path gets."""
        given = None if attributes is None else attributes.cipher
        cipher = new_cipher(found, given, directory=directory)
        self.encrypted = self.encrypted or cipher is not None
        if attributes is None:
            return None if cipher is None else Attributes(cipher=cipher)
        return attributes._replace(cipher=cipher)

    def check_cipher(self, fs: str, path: str, given: Cipher) -> None:
        """Check the encryption of a request for a file that exists."""
        if not self.encrypted and given is PLAIN:
            return
        found = self._filesystems.get(fs)
        node = None if found is None else find(found.root, path)
        if node is not None:
            check_cipher(node, given)

    def _touch(self, node: Node, now: float) -> None:
        node.version = self._tick(now)
        node.modified = now

    def _flush(self, node: Node, position: int, retain: bool) -> None:
        content.flush(node, position, retain)
        self._touch(node, self._now())

    def _file(self, fs: str, path: str) -> Node:
        node = self.head(fs, path)
        if node.children is not None:
            raise refusal("ResourceTypeMismatch")
        return node

    def _check_change(self, node: Node, conditions: Conditions) -> None:
        if conditions is not NO_CONDITIONS:
            check_write(node, conditions)
        if node.lease is not None or conditions.lease:
            check_held(node.lease, conditions.lease, self._now())

    def _make_parents(self, root: Node, path: str, conditions: Conditions, now: float) -> Node:
        """Create the missing directories of ``path``, and return the last."""
        check_place(None, conditions)
        check_held(None, conditions.lease, now)
        node = root
        for name in path.split("/"):
            if node.children is None:
                raise refusal("PathConflict")
            if name not in node.children:
                made = Node({}, self._tick(now), now)
                if node.extra is not None:
                    access.dress(made, None, node)
                if not self.hns:
                    made.more().virtual = True
                link(node, name, made)
            node = node.children[name]
        return node

    def _make_again(self, node: Node, directory: bool, now: float, token: str | None) -> None:
        """Recreate an existing path."""
        if node.is_dir != directory:
            raise existing(node)
        if not directory:
            node.chunks, node.pending, node.size = (), None, 0
            node.extra = None
            node.created = now
        elif node.virtual:
            node.more().virtual = False
        node.token = token
        self._touch(node, now)
