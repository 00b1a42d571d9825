"""Decide what permissions of paths allow to a user without other rights.

The algorithm is that of "Access control lists in Azure Data Lake Storage", with its table of the
permissions that each operation needs. A user is known by an id and belongs to no group.
"""

from __future__ import annotations

from asynccommit.testing.models.adls.nodes import Node, find
from asynccommit.testing.models.adls.refusals import refusal

_ALL = "rwx"


def allows(node: Node, user: str, permissions: str) -> bool:
    """Return whether ``user`` has each of the permissions on ``node``.

    ``wanted`` are letters of ``rwx``. The owner has the first entry, which no mask limits. As
    documented, the mask limits the entry of others too.
    """
    modes = _modes(node.acl)
    mask = modes.get("mask:", _ALL)
    if user == node.owner:
        granted, mask = modes["user:"], _ALL
    else:
        granted = modes.get(f"user:{user}", modes["other:"])
    return all(letter in granted and letter in mask for letter in permissions)


def _modes(acl: str) -> dict[str, str]:
    """Return kind and name of each access entry, and its mode."""
    return {
        word.rpartition(":")[0]: word.rpartition(":")[2]
        for word in acl.split(",")
        if not word.startswith("default:")
    }


def need(node: Node, user: str, permissions: str) -> None:
    """Raise ``Refusal`` unless ``user`` has the permissions on ``node``."""
    if not allows(node, user, permissions):
        raise refusal("AuthorizationPermissionMismatch")


def walk(root: Node, path: str, user: str) -> Node:
    """Return the last directory above ``path`` that is there.

    Raises ``Refusal`` unless ``user`` may pass through all directories above it.
    """
    node = root
    need(node, user, "x")
    for name in path.split("/")[:-1]:
        below = (node.children or {}).get(name)
        if below is None or not below.is_dir:
            break
        node = below
        need(node, user, "x")
    return node


def need_path(root: Node, path: str, user: str, permissions: str) -> None:
    """Raise ``Refusal`` unless ``user`` has the permissions on a path; a missing one passes."""
    walk(root, path, user)
    node = find(root, path)
    if node is not None:
        need(node, user, permissions)


def need_new(root: Node, path: str, user: str) -> None:
    """Raise ``Refusal`` unless ``user`` may create a path or write to it.

    That an existing file needs no permission of its directory is inferred.
    """
    above = walk(root, path, user)
    node = find(root, path)
    if node is None:
        need(above, user, "wx")
    elif not node.is_dir:
        need(node, user, "w")


def need_removal(root: Node, path: str, user: str, *, recursive: bool = False) -> None:
    """Raise ``Refusal`` unless ``user`` may take a path out of its directory.

    In a directory with the sticky bit only the owners of it and of the path may. A recursive
    deletion needs all permissions of each directory.
    """
    above = walk(root, path, user)
    need(above, user, "wx")
    node = find(root, path)
    if node is None:
        return
    if above.permissions[8] in "tT" and user not in (above.owner, node.owner):
        raise refusal("AuthorizationPermissionMismatch")
    if recursive:
        need_all(node, user, _ALL)


def need_all(node: Node, user: str, permissions: str) -> None:
    """Raise ``Refusal`` unless ``user`` has the permissions on each directory."""
    if node.children is not None:
        need(node, user, permissions)
        for child in node.children.values():
            need_all(child, user, permissions)


def need_ownership(root: Node, path: str, user: str) -> None:
    """Raise ``Refusal`` unless ``user`` owns a path that is there."""
    walk(root, path, user)
    node = find(root, path)
    if node is not None and node.owner != user:
        raise refusal("AuthorizationPermissionMismatch")
