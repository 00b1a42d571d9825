"""Model a rename in the service's two modes, and the conditions that reject it.

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


def move(
    source: tuple[Node, str, Node], dest: tuple[Node, str, Node | None], mode: str, now: float
) -> None:
    """Move the source to the destination; etag and times stay (recorded)."""
    old_parent, old_name, node = source
    parent, name, there = dest
    if there is node:
        return
    if there is not None:
        parent, name = _instead(node, old_name, dest, mode)
        if parent is not there:
            _break_lease(there, node, now)
    unlink(old_parent, old_name)
    link(parent, name, node)


def refuse_into_itself(node: Node, source: str, path: str) -> None:
    """Reject a move of a directory onto or below itself."""
    if node.children is not None and (path == source or path.startswith(f"{source}/")):
        raise refusal("InvalidRenameSourcePath")


def _break_lease(there: Node, node: Node, now: float) -> None:
    """Break the lease of the overwritten node.

    Inferred: the path shows it as broken.
    """
    if node.lease is None and state_of(there.lease, now) in (LEASED, BREAKING):
        assert there.lease is not None
        node.lease = replace(there.lease, breaks=now)


def _instead(
    node: Node, old_name: str, dest: tuple[Node, str, Node | None], mode: str
) -> tuple[Node, str]:
    """Return the final parent and name of ``node``, given the destination."""
    parent, name, there = dest
    assert there is not None
    if node.is_dir != there.is_dir:
        raise refusal("InvalidSourceOrDestinationResourceType")
    if not node.is_dir:
        return parent, name
    if mode == POSIX:
        return _inside(node, old_name, there)
    if there.children:
        raise refusal("DirectoryNotEmpty", "The destination directory is not empty.")
    return parent, name


def _inside(node: Node, name: str, there: Node) -> tuple[Node, str]:
    """Return the target inside an existing directory: posix moves into it."""
    inner = (there.children or {}).get(name)
    if inner is not None and inner is not node:  # inferred: as if that had been the destination
        if not inner.is_dir:
            raise refusal("InvalidSourceOrDestinationResourceType")
        if inner.children:
            raise refusal("DirectoryNotEmpty", "The destination directory is not empty.")
    return there, name
