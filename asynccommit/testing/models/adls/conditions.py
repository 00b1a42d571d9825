"""Check the conditional headers of a request."""

from __future__ import annotations

from typing import NamedTuple

from asynccommit.testing.models.adls.nodes import Filesystem, Node
from asynccommit.testing.models.adls.refusals import CODES, Refusal, refusal


class Conditions(NamedTuple):
    """The conditional headers of a request; ``None`` and ``""`` mean absent.

    Etags may be quoted or not, ``*`` is any etag; times are seconds since the epoch.
    """

    if_match: str | None = None
    if_none_match: str | None = None
    if_modified_since: float | None = None
    if_unmodified_since: float | None = None
    lease: str | None = None


Tagged = Node | Filesystem  # nodes with an etag and a time

NO_CONDITIONS = Conditions()
IF_ABSENT = Conditions(if_none_match="*")


def existing(node: Node) -> Refusal:
    """Return the refusal to overwrite a path; it names the kind of the node."""
    kind = "directory" if node.is_dir else "file"
    return refusal("PathAlreadyExists", headers={"x-ms-existing-resource-type": kind})


def check_place(node: Node | None, conditions: Conditions) -> None:
    """Check that something may be created at ``node``, which is ``None`` if nothing exists."""
    if node is None:
        if conditions.if_match:
            raise refusal("ConditionNotMet")
    elif conditions.if_none_match == "*":
        raise existing(node)
    elif not _met(node, conditions):
        raise refusal("ConditionNotMet")


def check_write(node: Tagged, conditions: Conditions, failed: str = "ConditionNotMet") -> None:
    """Check that ``node`` may be changed; raise ``failed`` otherwise."""
    if not _met(node, conditions):
        raise refusal(failed)


def check_read(node: Tagged, conditions: Conditions) -> None:
    """Check the conditions of a read: 412 if they fail, 304 if unmodified."""
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
    whole = int(node.modified)  # the wire has whole seconds
    if since is not None and whole <= since:
        return False
    return unmodified_since is None or whole <= unmodified_since


def _matches(node: Tagged, etags: str) -> bool:
    """Return whether an etag list matches.

    Each etag may be quoted or not; the list may be ``*``.
    """
    own = node.etag
    if etags.strip('"') == own or etags == "*":
        return True
    return "," in etags and any(etag.strip().strip('"') == own for etag in etags.split(","))
