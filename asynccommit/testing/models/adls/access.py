"""Store owners, permissions and ACLs, which are never enforced."""

from __future__ import annotations

import re

from asynccommit.testing.models.adls.nodes import Attributes, Extra
from asynccommit.testing.models.adls.refusals import refusal

_SYMBOLIC = re.compile(r"(?:[r-][w-][xst-]){2}[r-][w-][xtT-]\+?").fullmatch
_OCTAL = re.compile(r"[0-7]{3,4}").fullmatch
_ENTRY = re.compile(r"(?:default:)?(?:user|group|mask|other):[^:,]*:[r-][w-][x-]").fullmatch


def permissions_of(text: str, umask: str | None = None) -> str:
    """Return octal or symbolic permissions as symbols, reduced by ``umask``."""
    if _SYMBOLIC(text):
        return text
    if not _OCTAL(text) or (umask and not _OCTAL(umask)):
        raise refusal("InvalidHeaderValue")
    bits = int(text, 8) & ~(int(umask, 8) if umask else 0)
    return "".join(
        letter if bits >> (8 - place) & 1 else "-" for place, letter in enumerate("rwx" * 3)
    )


def set_permissions(extra: Extra, text: str, umask: str | None = None) -> None:
    """Set the permissions and drop the access control list."""
    extra.permissions = permissions_of(text, umask)
    extra.acl = None


def set_acl(extra: Extra, acl: str) -> None:
    """Set the access control list, and the permissions that follow from it."""
    entries = [entry for entry in acl.replace(" ", "").split(",") if entry]
    if not entries or not all(map(_ENTRY, entries)):
        raise refusal("InvalidHeaderValue")
    plain = {
        kind: mode for kind, name, mode in (_parts(entry) for entry in entries) if not name and kind
    }
    if not {"user", "group", "other"} <= plain.keys():
        raise refusal("InvalidHeaderValue")
    shown = plain["user"] + plain.get("mask", plain["group"]) + plain["other"]
    extra.permissions = shown + ("+" if len(entries) > 3 else "")
    extra.acl = ",".join(entries)


def extra_of(attributes: Attributes) -> Extra:
    """Return the ``Extra`` of a new path."""
    extra = Extra()
    extra.properties = dict(attributes.properties or {})
    extra.headers = dict(attributes.headers or {})
    extra.owner = attributes.owner or extra.owner
    extra.group = attributes.group or extra.group
    if attributes.permissions:
        set_permissions(extra, attributes.permissions, attributes.umask)
    if attributes.acl:
        set_acl(extra, attributes.acl)
    return extra


def _parts(entry: str) -> tuple[str, str, str]:
    """Return kind, name and mode; a default entry's kind is empty."""
    if entry.startswith("default:"):
        return "", "", ""
    kind, name, mode = entry.split(":")
    return kind, name, mode
