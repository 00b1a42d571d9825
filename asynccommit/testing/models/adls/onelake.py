"""Model OneLake: an account that Microsoft Fabric manages.

It follows Microsoft's pages "OneLake and Azure Data Lake Storage (ADLS) API parity" and "Connecting
to Microsoft OneLake", and adds nothing to them. They name no error codes, so those are *inferred*.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn
from uuid import UUID, uuid5

from asynccommit.testing.models.adls.account import AdlsAccount, LeaseAnswer
from asynccommit.testing.models.adls.nodes import Filesystem, Node, find
from asynccommit.testing.models.adls.refusals import Refusal, refusal

FOLDERS = ("Files", "Tables")
"""The managed folders of a new item."""

_MANAGED = 2  # an item, and the first level of folders within it
_IDS = UUID("0f0c6a4e-2b57-4a0e-9d2a-5d3e7f0b7c11")


def guid_of(name: str) -> str:
    """Return the GUID of a workspace, or of ``WORKSPACE/ITEM.TYPE``."""
    return str(uuid5(_IDS, name))


class OneLakeAccount(AdlsAccount):
    """One tenant's OneLake: workspaces of items of managed folders.

    Programs cannot create, rename or delete those; what is below them is theirs. A workspace and
    its items have GUIDs, of which an address has both or none.

    Args: see ``AdlsAccount``.
    """

    fabric = True

    def add_workspace(self, name: str, items: Iterable[str]) -> None:
        """Make a workspace with items such as ``Sales.Lakehouse``."""
        named, by_id = self._items_of(name), self._items_of(guid_of(name))
        for item in items:
            if item not in named:
                node = self.new_node(directory=True)
                node.children = {folder: self.new_node(directory=True) for folder in FOLDERS}
                named[item] = by_id[guid_of(f"{name}/{item}")] = node

    def _items_of(self, workspace: str) -> dict[str, Node]:
        made = Filesystem(workspace, self.new_node(directory=True), {})
        found = self._filesystems.setdefault(workspace, made).root.children
        assert found is not None
        return found

    # --- what Fabric manages -----------------------------------------------------------------

    def create_filesystem(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: workspaces are made in Fabric."""
        raise _managed()

    def delete_filesystem(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: workspaces are deleted in Fabric."""
        raise _managed()

    def set_filesystem_properties(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: of a workspace only HEAD is allowed."""
        raise _managed()

    def list_filesystems(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: of a tenant only HEAD is allowed."""
        raise _managed()

    def set_access_control(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: permissions are given in Fabric."""
        raise refusal("UnsupportedQueryParameter")

    def create(self, fs: str, path: str, **options: Any) -> Node:
        """See ``AdlsAccount.create``; items and their folders are not made."""
        _need_below(path)
        above = "/".join(path.split("/")[:_MANAGED])
        if find(self.head_filesystem(fs).root, above) is None:
            raise _managed()
        return super().create(fs, path, **options)

    def rename(self, fs: str, path: str, source_fs: str, source: str, **options: Any) -> Node:
        """See ``AdlsAccount.rename``; items and their folders stay."""
        _need_below(source)
        if options.get("mode") == "legacy":
            _need_below(path)
        return super().rename(fs, path, source_fs, source, **options)

    def delete(self, fs: str, path: str, **options: Any) -> str | None:
        """See ``AdlsAccount.delete``; items and their folders stay."""
        _need_below(path)
        return super().delete(fs, path, **options)

    def lease(self, fs: str, path: str, action: str, **options: Any) -> LeaseAnswer:
        """See ``AdlsAccount.lease``; items and their folders are read only."""
        _need_below(path)
        return super().lease(fs, path, action, **options)

    def set_properties(
        self, fs: str, path: str, properties: Mapping[str, str] | None = None, **options: Any
    ) -> Node:
        """See ``AdlsAccount``; items and their folders are read only."""
        _need_below(path)
        return super().set_properties(fs, path, properties, **options)


def _need_below(path: str) -> None:
    if path.count("/") < _MANAGED:
        raise _managed()


def _managed() -> Refusal:
    return refusal("AuthorizationFailure", "Workspaces, items and their folders are managed.")
