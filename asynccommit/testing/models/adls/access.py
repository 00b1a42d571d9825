"""Compute owners, permissions and ACLs, which are never enforced.

An access control list is completed as Hadoop's tests of ``setAcl`` and ``setPermission`` expect it
from the service: missing entries of user, group and other come from the present list, or for
default entries from the access entries; a missing mask is computed if named entries need one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from asynccommit.testing.models.adls.nodes import Attributes, Extra, Node, plain_modes
from asynccommit.testing.models.adls.refusals import refusal

_SYMBOLIC = re.compile(r"(?:[r-][w-][x-]){2}[r-][w-][xtT-]\+?").fullmatch
_OCTAL = re.compile(r"[01]?[0-7]{3}").fullmatch
_MODE = re.compile(r"[r-][w-][x-]").fullmatch
_KINDS = ("user", "group", "mask", "other")
_BASE = ("user", "group", "other")
_ORDER = {("user", False): 0, ("user", True): 1, ("group", False): 2, ("group", True): 3}
_ORDER |= {("mask", False): 4, ("other", False): 5}
_NEW_FILE, _NEW_DIRECTORY = "rw-rw-rw-", "rwxrwxrwx"


class AclEntry(NamedTuple):
    """One entry of an access control list; ``mode`` is empty in a removal."""

    default: bool
    kind: str
    name: str
    mode: str = ""

    def __str__(self) -> str:
        return f"{'default:' if self.default else ''}{self.kind}:{self.name}:{self.mode}"


Acl = dict[tuple[bool, str, str], AclEntry]


def permissions_of(text: str, umask: str | None = None) -> str:
    """Return octal or symbolic permissions as symbols, reduced by ``umask``.

    The set-user-ID and set-group-ID bits, which the service does not have, are refused.
    """
    if _SYMBOLIC(text):
        return text[:9]
    if not _OCTAL(text) or (umask and not _OCTAL(umask)):
        raise refusal("InvalidHeaderValue")
    bits = int(text, 8) & ~(int(umask, 8) & 0o777 if umask else 0)
    shown = "".join(
        letter if bits >> (8 - place) & 1 else "-" for place, letter in enumerate("rwx" * 3)
    )
    return _with_sticky(shown, bool(bits & 0o1000))


def set_permissions(node: Node, text: str) -> None:
    """Set the modes of user, other, and the mask, or else the group."""
    shown = permissions_of(text)
    user, group, other = plain_modes(shown)
    entries = _read(node.acl)
    second = "mask" if (False, "mask", "") in entries else "group"
    for kind, mode in (("user", user), (second, group), ("other", other)):
        entries[False, kind, ""] = AclEntry(False, kind, "", mode)
    _keep(node.more(), entries, sticky=shown[8] in "tT")


def set_acl(node: Node, text: str) -> None:
    """Replace the access control list, and so the permissions."""
    _put(node, _read(text))


def modify_acl(node: Node, text: str) -> None:
    """Add the entries to the list, in place of those with the same name."""
    given = _read(text)
    present = _read(node.acl)
    for default in {_.default for _ in given.values()}:
        present.pop((default, "mask", ""), None)  # computed anew, unless it is given
    _put(node, present | given)


def remove_acl(node: Node, text: str) -> None:
    """Remove named entries, which ``text`` gives without modes."""
    given = _read(text, modes=False)
    if any(entry.kind in _BASE and not (entry.name or entry.default) for entry in given.values()):
        raise refusal("InvalidHeaderValue")
    present = _read(node.acl)
    for default in {_.default for _ in given.values()}:
        present.pop((default, "mask", ""), None)
    _put(node, {key: entry for key, entry in present.items() if key not in given})


ACL_MODES = {"set": set_acl, "modify": modify_acl, "remove": remove_acl}
"""The modes of a recursive change."""


def without_defaults(text: str) -> str:
    """Return the entries of a recursive change that a file has."""
    return ",".join(_ for _ in text.split(",") if not _.strip().startswith("default:"))


def check_attributes(attributes: Attributes) -> None:
    """Refuse invalid permissions or ACLs before a path is made."""
    if attributes.permissions:
        permissions_of(attributes.permissions, attributes.umask)
    if attributes.acl:
        _read(attributes.acl)
        if attributes.permissions:
            raise refusal("InvalidHeaderValue")


def dress(node: Node, attributes: Attributes | None, parent: Node) -> None:
    """Give a new path its attributes, and what it inherits from its parent.

    As POSIX has it, and Hadoop's tests expect: the default entries of the parent become the access
    entries of the child, reduced by its permissions; the umask is then not used.
    """
    inherited = parent.extra is not None and "default:" in (parent.extra.acl or "")
    if attributes is None and not inherited:
        return
    given = attributes or Attributes()
    extra = node.more()
    extra.properties = dict(given.properties or {})
    extra.headers = dict(given.headers or {})
    extra.append_blob = None if node.is_dir else given.append_blob
    extra.cipher = given.cipher
    extra.expires = given.expires
    extra.owner = given.owner or extra.owner
    extra.group = given.group or extra.group
    if given.acl:
        set_acl(node, given.acl)
    elif inherited:
        _inherit(node, given.permissions, _read(parent.acl))
    elif given.permissions:
        extra.permissions = permissions_of(given.permissions, given.umask)


def _inherit(node: Node, permissions: str | None, above: Acl) -> None:
    defaults = {key: entry for key, entry in above.items() if entry.default}
    access = [entry._replace(default=False) for entry in defaults.values()]
    entries = {_key(entry): entry for entry in access}
    shown = permissions_of(permissions or (_NEW_DIRECTORY if node.is_dir else _NEW_FILE))
    user, group, other = plain_modes(shown)
    second = (False, "mask", "") if (False, "mask", "") in entries else (False, "group", "")
    for key, mode in (
        ((False, "user", ""), user),
        (second, group),
        ((False, "other", ""), other),
    ):
        entries[key] = entries[key]._replace(mode=_both(entries[key].mode, mode))
    _keep(node.more(), entries | defaults if node.is_dir else entries, sticky=shown[8] in "tT")


def _read(text: str, *, modes: bool = True) -> Acl:
    """Return the entries of a list.

    Raises ``Refusal`` if one is invalid or comes twice.
    """
    found: Acl = {}
    for word in filter(None, text.replace(" ", "").split(",")):
        default = word.startswith("default:")
        kind, *rest = word.removeprefix("default:").split(":")
        name, mode = ([*rest, "", ""])[:2]
        usable = kind in _KINDS and not (name and kind in ("mask", "other"))
        if not usable or (len(rest) != 2 or not _MODE(mode) if modes else len(rest) > 2 or mode):
            raise refusal("InvalidHeaderValue")
        entry = AclEntry(default, kind, name, mode)
        if _key(entry) in found:
            raise refusal("InvalidAclEntries")
        found[_key(entry)] = entry
    if not found:
        raise refusal("InvalidHeaderValue")
    return found


def _key(entry: AclEntry) -> tuple[bool, str, str]:
    return entry.default, entry.kind, entry.name


def _put(node: Node, entries: Acl) -> None:
    """Complete a list and give it to ``node``."""
    if not node.is_dir and any(entry.default for entry in entries.values()):
        raise refusal("InvalidAclEntries", "Default entries are for directories only.")
    present = _read(node.acl)
    if not any(not entry.default for entry in entries.values()):
        kept = {key: entry for key, entry in present.items() if not entry.default}
        entries = entries | kept
    for kind in _BASE:
        entries.setdefault((False, kind, ""), present[False, kind, ""])
    _add_mask(entries, default=False)
    if any(entry.default for entry in entries.values()):
        for kind in _BASE:
            above = entries[False, kind, ""]._replace(default=True)
            entries.setdefault((True, kind, ""), above)
        _add_mask(entries, default=True)
    _keep(node.more(), entries, sticky=node.permissions[8] in "tT")


def _add_mask(entries: Acl, *, default: bool) -> None:
    """Add the mask that named entries need: the union of the group class."""
    mine = [entry for entry in entries.values() if entry.default == default]
    if any(_.kind == "mask" for _ in mine) or not any(_.name for _ in mine):
        return
    modes = [_.mode for _ in mine if _.name or _.kind == "group"]
    mask = "".join(letter if any(letter in mode for mode in modes) else "-" for letter in "rwx")
    entries[default, "mask", ""] = AclEntry(default, "mask", "", mask)


def _keep(extra: Extra, entries: Acl, *, sticky: bool) -> None:
    """Keep a whole list in the service's order, and its permissions.

    Inferred: named entries of one kind stay in the order in which they were given.
    """
    order = sorted(entries.values(), key=_place)
    modes = {entry.kind: entry.mode for entry in order if not entry.default and not entry.name}
    shown = modes["user"] + modes.get("mask", modes["group"]) + modes["other"]
    extra.permissions = _with_sticky(shown, sticky) + ("+" if len(order) > len(_BASE) else "")
    extra.acl = _text(order) if len(order) > len(_BASE) else None


def _place(entry: AclEntry) -> tuple[bool, int]:
    return entry.default, _ORDER[entry.kind, bool(entry.name)]


def _text(entries: Iterable[AclEntry]) -> str:
    return ",".join(map(str, entries))


def _both(one: str, other: str) -> str:
    return "".join(letter if letter in one and letter in other else "-" for letter in "rwx")


def _with_sticky(shown: str, sticky: bool) -> str:
    if not sticky:
        return shown
    return shown[:8] + ("t" if shown[8] == "x" else "T")
