"""Model a rename in the service's two modes, with conditions.

The order of the checks is the service's where it was recorded: a missing source is reported before
any problem of the destination, so that a rename sent twice finds its source gone.
"""

from __future__ import annotations

from dataclasses import replace

from asynccommit.testing.models.adls.conditions import (
    NO_CONDITIONS,
    Conditions,
    check_place,
    check_write,
)
from asynccommit.testing.models.adls.leases import (
    BREAKING,
    LEASED,
    check_held,
    check_named,
    state_of,
)
from asynccommit.testing.models.adls.nodes import Node, find, link, unlink
from asynccommit.testing.models.adls.refusals import refusal

LEGACY = "legacy"
POSIX = "posix"


def take(root: Node, path: str, conditions: Conditions, now: float) -> tuple[Node, str, Node]:
    """Return parent, name and node of the source, if its conditions hold."""
    directory, _, name = path.rpartition("/")
    parent = find(root, directory)
    node = None if parent is None or parent.children is None else parent.children.get(name)
    if node is None or parent is None:
        raise refusal("SourcePathNotFound")
    if conditions is not NO_CONDITIONS:
        check_write(node, conditions, "SourceConditionNotMet")
    if node.lease is not None or conditions.lease:
        check_held(node.lease, conditions.lease, now)
    return parent, name, node


def place(
    root: Node, path: str, conditions: Conditions, now: float
) -> tuple[Node, str, Node | None]:
    """Return parent, name and node of the destination, if its conditions hold.

    A lease of the overwritten node need not be named: it is broken together with that node.
    """
    directory, _, name = path.rpartition("/")
    parent = find(root, directory)
    if parent is None:
        raise refusal("RenameDestinationParentPathNotFound")
    if parent.children is None:
        raise refusal("InvalidDestinationPath")
    there = parent.children.get(name)
    if conditions is not NO_CONDITIONS:
        check_place(there, conditions)
        if conditions.lease:
            check_named(None if there is None else there.lease, conditions.lease, now)
    return parent, name, there


def final_path(root: Node, path: str, source: tuple[Node, str, Node], mode: str) -> str:
    """Return the path at which a rename puts its source.

    In the mode ``posix`` an existing directory is a place to move into, and conditions are about
    the path in it: Hadoop's client renames with ``If-None-Match: *``, and its tests of rename
    expect that a file or a directory is moved into the directory that is there.
    """
    _, name, node = source
    if mode == LEGACY:
        if not path:
            raise refusal("InvalidRenameDestinationPath")
        return path
    there = find(root, path)
    if there is None or not there.is_dir or there is node:
        return path
    return f"{path}/{name}" if path else name


def move(source: tuple[Node, str, Node], dest: tuple[Node, str, Node | None], now: float) -> None:
    """Move the source to the destination; etag and times stay (recorded)."""
    old_parent, old_name, node = source
    parent, name, there = dest
    if there is node:
        return
    if there is not None:
        _refuse_other_kind(node, there)
        _break_lease(there, node, now)
    unlink(old_parent, old_name)
    link(parent, name, node)


def refuse_into_itself(node: Node, source: str, path: str) -> None:
    """Reject a move of a directory onto or below itself."""
    if node.children is not None and (path == source or path.startswith(f"{source}/")):
        raise refusal("InvalidRenameSourcePath")


def _break_lease(there: Node, node: Node, now: float) -> None:
    """Break the lease of the overwritten node, as the new path shows it (inferred)."""
    if node.lease is None and state_of(there.lease, now) in (LEASED, BREAKING):
        assert there.lease is not None
        node.lease = replace(there.lease, breaks=now)


def _refuse_other_kind(node: Node, there: Node) -> None:
    """Reject a node that may not replace the existing one.

    Inferred for a directory inside the destination: as if that had been the destination.
    """
    if node.is_dir != there.is_dir:
        raise refusal("InvalidSourceOrDestinationResourceType")
    if there.children:
        raise refusal("DirectoryNotEmpty", "The destination directory is not empty.")
