"""Enforce the permissions of paths where a SAS asks for it.

A SAS that is signed with a user's delegation key may name a user, ``suoid``, who has the rights
that the access control lists give, and no others. Any other credential is that of a superuser.
"""

from __future__ import annotations

from collections.abc import Callable

from asynccommit.testing.emulators.adls.call import AdlsCall, flag
from asynccommit.testing.emulators.adls.headers import rename_source
from asynccommit.testing.models.adls import permits
from asynccommit.testing.models.adls.account import AdlsAccount, Attributes
from asynccommit.testing.models.adls.nodes import Node, find
from asynccommit.testing.models.adls.refusals import refusal

Rule = Callable[[AdlsCall, Node, str], None]


def acting_user(call: AdlsCall) -> str:
    """Return the user for whom permissions are enforced, or ``""`` for a superuser."""
    return call.query.get("suoid", "") if "sig" in call.query else ""


def check_permissions(account: AdlsAccount, call: AdlsCall, op: str) -> None:
    """Raise ``Refusal`` unless the user whom the SAS names may do ``op``.

    What the user creates belongs to the user.
    """
    user = acting_user(call)
    if not user or not account.hns:
        return
    rule = _RULES.get(op)
    if rule is None:
        raise refusal("AuthorizationPermissionMismatch")
    root = account.head_filesystem(call.filesystem).root
    rule(call, root, user)
    if op in ("create", "mkdir"):
        call.headers["x-ms-owner"] = user
        if "if-match" not in call.headers:
            _make_parents(account, call, user)


def _make_parents(account: AdlsAccount, call: AdlsCall, user: str) -> None:
    above = call.path.rpartition("/")[0]
    if above and find(account.head_filesystem(call.filesystem).root, above) is None:
        names = above.split("/")
        for depth in range(1, len(names) + 1):
            where = (call.filesystem, "/".join(names[:depth]))
            account.create(*where, directory=True, attributes=Attributes(owner=user))


def _read(call: AdlsCall, root: Node, user: str) -> None:
    permits.need_path(root, call.path, user, "r")


def _write(call: AdlsCall, root: Node, user: str) -> None:
    permits.need_path(root, call.path, user, "w")


def _append(call: AdlsCall, root: Node, user: str) -> None:
    """Require the documented permissions of an append.

    A new blob must be allowed to be created.
    """
    if find(root, call.path) is None:
        permits.need_new(root, call.path, user)
    else:
        permits.need_path(root, call.path, user, "rw")


def _look(call: AdlsCall, root: Node, user: str) -> None:
    """Let a user look at what the user may reach."""
    asked = call.query.get("fsaction", "").replace("-", "")  # of checkAccess
    permits.need_path(root, call.path, user, asked)


def _access(call: AdlsCall, root: Node, user: str) -> None:
    """Let only the owner change access control, and never give it to another."""
    if call.method == "HEAD":
        _look(call, root, user)
        return
    if call.headers.get("x-ms-owner", user) != user or call.headers.get("x-ms-group"):
        raise refusal("AuthorizationPermissionMismatch")
    if call.query.get("action", "").lower() == "setaccesscontrolrecursive":
        permits.walk(root, call.path, user)  # each path is checked on its own
    else:
        permits.need_ownership(root, call.path, user)


def _list(call: AdlsCall, root: Node, user: str) -> None:
    """Require the permissions of a listing.

    Those of the directories below a recursive one are inferred.
    """
    prefix = call.query.get("prefix", "").rpartition("/")[0]
    directory = prefix if call.blob else call.query.get("directory", "").strip("/")
    permits.need_path(root, directory, user, "rx")
    node = find(root, directory)
    if node is not None and _is_recursive(call):
        permits.need_all(node, user, "rx")


def _is_recursive(call: AdlsCall) -> bool:
    return "delimiter" not in call.query if call.blob else flag(call.query, "recursive")


def _create(call: AdlsCall, root: Node, user: str) -> None:
    permits.need_new(root, call.path, user)


def _delete(call: AdlsCall, root: Node, user: str) -> None:
    recursive = not call.blob and flag(call.query, "recursive")
    permits.need_removal(root, call.path, user, recursive=recursive)


def _rename(call: AdlsCall, root: Node, user: str) -> None:
    """Require the removal of the source, and a new path at the destination."""
    filesystem, source = rename_source(call)
    if filesystem != call.filesystem:  # the SAS is for one filesystem
        raise refusal("AuthorizationPermissionMismatch")
    permits.need_removal(root, source, user)
    permits.need(permits.walk(root, call.path, user), user, "wx")


_RULES: dict[str, Rule] = {
    "access": _access,
    "append": _append,
    "create": _create,
    "delete": _delete,
    "flush": _append,
    "head": _look,
    "lease": _write,
    "list": _list,
    "mkdir": _create,
    "properties": _write,
    "read": _read,
    "rename": _rename,
}
