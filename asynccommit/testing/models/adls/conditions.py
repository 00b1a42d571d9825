"""What a request demands of the path it is about, and what it is told if that does not hold."""

from __future__ import annotations

from typing import NamedTuple

from asynccommit.testing.models.adls.nodes import Filesystem, Node
from asynccommit.testing.models.adls.refusals import CODES, Refusal, refusal


class Conditions(NamedTuple):
    """The conditional headers of a request; ``None`` and ``""`` are not given.

    Etags may be quoted or not, ``*`` is any etag; times are seconds since the epoch.
    """

    if_match: str | None = None
    if_none_match: str | None = None
    if_modified_since: float | None = None
    if_unmodified_since: float | None = None
    lease: str | None = None


Tagged = Node | Filesystem  # what has an etag and a time

NO_CONDITIONS = Conditions()
IF_ABSENT = Conditions(if_none_match="*")


def existing(node: Node) -> Refusal:
    """Return the refusal to take a path that is taken; it says by what."""
    kind = "directory" if node.is_dir else "file"
    return refusal("PathAlreadyExists", headers={"x-ms-existing-resource-type": kind})


def check_place(node: Node | None, conditions: Conditions) -> None:
    """Refuse to make something where ``node`` is, or nothing if it is ``None``."""
    if node is None:
        if conditions.if_match:
            raise refusal("ConditionNotMet")
    elif conditions.if_none_match == "*":
        raise existing(node)
    elif not _met(node, conditions):
        raise refusal("ConditionNotMet")


def check_write(node: Tagged, conditions: Conditions, failed: str = "ConditionNotMet") -> None:
    """Refuse a change of what is there, as ``failed``."""
    if not _met(node, conditions):
        raise refusal(failed)


def check_read(node: Tagged, conditions: Conditions) -> None:
    """Refuse a read: 412 if something else was expected, 304 if nothing is new."""
    if not _met(node, conditions._replace(if_none_match=None, if_modified_since=None)):
        raise refusal("ConditionNotMet")
    if not _met(node, conditions._replace(if_match=None, if_unmodified_since=None)):
        raise Refusal(304, "ConditionNotMet", CODES["ConditionNotMet"][1])


def _met(node: Tagged, conditions: Conditions) -> bool:
    match, none_match, since, unmodified_since, _ = conditions
    if match and not _matches(node, match):
        return False
    if none_match and _matches(node, none_match):
        return False
    if since is None and unmodified_since is None:
        return True
    whole = int(node.modified)  # the wire knows whole seconds
    if since is not None and whole <= since:
        return False
    return unmodified_since is None or whole <= unmodified_since


def _matches(node: Tagged, etags: str) -> bool:
    """Whether the etag is one of a list, each quoted or not, or the list is ``*``."""
    own = node.etag
    if etags.strip('"') == own or etags == "*":
        return True
    return "," in etags and any(etag.strip().strip('"') == own for etag in etags.split(","))
