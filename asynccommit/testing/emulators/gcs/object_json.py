"""Convert objects to and from the resources of the JSON API.

64-bit numbers are strings, checksums base64, times RFC 3339; unset members are omitted.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import quote

from asynccommit.testing.emulators.gcs.fields import Mask, select
from asynccommit.testing.emulators.gcs.wire import rfc3339
from asynccommit.testing.models.gcs.checksums import encode_crc32c
from asynccommit.testing.models.gcs.model import GcsObject, GcsRefusal, Retention, refuse

Json = dict[str, Any]

_CLASS = "STANDARD"


_is_plain = re.compile(r"[\w.~/-]*", re.ASCII).fullmatch


def b64(data: bytes) -> str:
    """Return ``data`` in base64."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def quoted(name: str) -> str:
    """Return a name percent-encoded as one segment of a URL."""
    return name.replace("/", "%2F") if _is_plain(name) else quote(name, safe="")


# Detail -> its name in JSON, for text and boolean details.
_TEXTS = {
    "cache_control": "cacheControl",
    "content_disposition": "contentDisposition",
    "content_encoding": "contentEncoding",
    "content_language": "contentLanguage",
}
DETAILS = {
    **_TEXTS,
    "content_type": "contentType",
    "storage_class": "storageClass",
    "kms_key_name": "kmsKeyName",
    "temporary_hold": "temporaryHold",
    "event_based_hold": "eventBasedHold",
    "custom_time": "customTime",
    "metadata": "metadata",
    "retention": "retention",
}
"""Field of ``Details`` -> member of the JSON."""

# The members of one object; listings often select a few of them from a thousand objects.
_MEMBERS: Mapping[str, Callable[[GcsObject], object]] = {
    "kind": lambda _: "storage#object",
    "name": lambda _: _.name,
    "bucket": lambda _: _.bucket,
    "id": lambda _: f"{_.bucket}/{_.name}/{_.generation}",
    "generation": lambda _: str(_.generation),
    "metageneration": lambda _: str(_.metageneration),
    "size": lambda _: str(_.size),
    "crc32c": lambda _: encode_crc32c(_.crc32c),
    "etag": lambda _: _.etag,
    "updated": lambda _: rfc3339(_.updated),
    "timeCreated": lambda _: rfc3339(_.created),
    "contentType": lambda _: _.details.content_type,
    "temporaryHold": lambda _: _.details.temporary_hold or "",
    "eventBasedHold": lambda _: _.details.event_based_hold or "",
}

_RETAINED = "retentionExpirationTime"
Retained: TypeAlias = Callable[[GcsObject], float | None]
"""Returns when the retention of an object ends, if it has one."""


def viewer(
    mask: Mask | None, origin: str, retained: Retained | None = None
) -> Callable[[GcsObject], Json]:
    """Return a function that shows the selected members of an object.

    Args:
        mask: selected members; ``None`` for all.
        origin: origin of the URLs.
        retained: returns the retention, if the caller may see the bucket's.
    """
    if mask is None or "*" in mask:
        return lambda found: show_object(found, origin, retained)
    if mask.keys() <= _MEMBERS.keys() | {_RETAINED} and not any(mask.values()):
        rare = {_RETAINED: lambda found: _retention(found, retained)}
        members = [(name, _MEMBERS.get(name) or rare[name]) for name in mask]
        if retained is None:
            members = [(name, member) for name, member in members if name != _RETAINED]
        return lambda found: {
            name: value for name, member in members if (value := member(found)) != ""
        }
    return lambda found: select(show_object(found, origin, retained), mask)


def _retention(found: GcsObject, retained: Retained | None) -> str:
    """Return the end of a retention, which an event-based hold leaves unknown (documented)."""
    until = None if retained is None or found.details.event_based_hold else retained(found)
    return "" if until is None else rfc3339(until)


def show_object(found: GcsObject, origin: str, retained: Retained | None = None) -> Json:
    """Return an object's resource."""
    bucket, name, details, content = found.bucket, found.name, found.details, found.content
    path = f"b/{bucket}/o/{quoted(name)}"
    generation, created = str(found.generation), rfc3339(found.created)
    updated = created if found.updated == found.created else rfc3339(found.updated)
    shown: Json = {
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{generation}",
        "selfLink": f"{origin}/storage/v1/{path}",
        "mediaLink": f"{origin}/download/storage/v1/{path}?generation={generation}&alt=media",
        "name": name,
        "bucket": bucket,
        "generation": generation,
        "metageneration": str(found.metageneration),
        "storageClass": details.storage_class or _CLASS,
        "size": str(found.size),
        "crc32c": encode_crc32c(found.crc32c),
        "etag": found.etag,
        "timeCreated": created,
        "updated": updated,
        "timeStorageClassUpdated": created,
        "timeFinalized": created,
    }
    if (md5 := content.md5) is not None:
        shown["md5Hash"] = b64(md5)
    if details.content_type:
        shown["contentType"] = details.content_type
    if details.metadata:
        shown["metadata"] = dict(details.metadata)
    if until := _retention(found, retained):
        shown[_RETAINED] = until
    return _add_rare(shown, found)


def _add_rare(shown: Json, found: GcsObject) -> Json:
    """Add the members that few objects have."""
    details, components = found.details, found.content.components
    if components is not None:
        shown["componentCount"] = components
    if details[2:6] != _SAID or details[7:] != _KEPT:
        for field, member in _TEXTS.items():
            if value := getattr(details, field):
                shown[member] = value
        _add_kept(shown, found)
    if found.deleted is not None:
        soft = found.purged is not None
        shown["softDeleteTime" if soft else "timeDeleted"] = rfc3339(found.deleted)
        if found.purged is not None:
            shown["hardDeleteTime"] = rfc3339(found.purged)
    return shown


_SAID = ("", "", "", "")
_KEPT = ("", None, False, False, None)


def _add_kept(shown: Json, found: GcsObject) -> None:
    details = found.details
    if details.kms_key_name:
        shown["kmsKeyName"] = details.kms_key_name
    if details.custom_time is not None:
        shown["customTime"] = rfc3339(details.custom_time)
    if details.temporary_hold:
        shown["temporaryHold"] = True
    if details.event_based_hold:
        shown["eventBasedHold"] = True
    if details.retention is not None:
        mode, until = details.retention
        shown["retention"] = {"mode": mode, "retainUntilTime": rfc3339(until)}


# --- parsing ---------------------------------------------------------------------------------


def read_details(given: Mapping[str, Any]) -> Json:
    """Return the ``Details`` fields in a resource; ``None`` clears a field.

    Raises ``GcsRefusal`` for a value of another type.
    """
    if given.get("acl"):
        raise uniform_access()
    found: Json = {}
    for field, member in DETAILS.items():
        if member in given:
            value = given[member]
            found[field] = None if value is None else _read_detail(field, member, value)
    return found


def _read_detail(field: str, member: str, value: Any) -> object:
    if field == "metadata":
        if not isinstance(value, dict):
            raise wrong(member, value)
        return {key: None if _ is None else str(_) for key, _ in value.items()}
    if field == "custom_time":
        return read_time(member, value)
    if field in ("temporary_hold", "event_based_hold"):
        if not isinstance(value, bool):
            raise wrong(member, value)
        return value
    if field == "retention":
        return _read_retention(member, value)
    if not isinstance(value, str):
        raise wrong(member, value)
    return value


def _read_retention(member: str, value: Any) -> Retention | None:
    if not isinstance(value, dict):
        raise wrong(member, value)
    if not value:
        return None
    mode = value.get("mode")
    if mode not in ("Locked", "Unlocked"):
        raise wrong(f"{member}.mode", mode)
    return Retention(mode, read_time(f"{member}.retainUntilTime", value.get("retainUntilTime")))


def read_time(member: str, value: Any) -> float:
    """Parse a time in RFC 3339 to seconds. Raises ``GcsRefusal``."""
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise wrong(member, value) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_hashes(header: str) -> dict[str, str]:
    """Parse the checksums in ``x-goog-hash`` into metadata members."""
    found: dict[str, str] = {}
    for pair in header.split(","):
        key, _, value = pair.strip().partition("=")
        if key in ("crc32c", "md5"):
            found["md5Hash" if key == "md5" else key] = value
    return found


def shown_hashes(crc32c: int, md5: bytes | None) -> str:
    """Return checksums for ``x-goog-hash``; some objects have no MD5."""
    crc = f"crc32c={encode_crc32c(crc32c)}"
    return crc if md5 is None else f"{crc},md5={b64(md5)}"


def read_checksums(given: Mapping[str, Any]) -> tuple[int | None, bytes | None]:
    """Return the CRC32C and MD5 in a resource.

    Raises ``GcsRefusal`` if invalid.
    """
    crc, md5 = (_read_checksum(given, *_) for _ in (("crc32c", 4), ("md5Hash", 16)))
    return None if crc is None else int.from_bytes(crc, "big"), md5


def _read_checksum(given: Mapping[str, Any], member: str, size: int) -> bytes | None:
    value = given.get(member)
    if value is None:
        return None
    try:
        found = base64.b64decode(value, validate=True)
    except (TypeError, ValueError):
        found = b""
    if len(found) != size:
        raise wrong(member, value)
    return found


def uniform_access() -> GcsRefusal:
    """Return the refusal of an ACL: access to every bucket here is uniform."""
    return refuse(
        "invalid",
        "Cannot use ACL API to update bucket policy, or legacy ACLs of objects, when uniform "
        "bucket-level access is enabled. Read more at "
        "https://cloud.google.com/storage/docs/uniform-bucket-level-access",
    )


def wrong(member: str, value: object) -> GcsRefusal:
    """Return the refusal of an invalid value in a resource."""
    return refuse("invalid", f"Invalid value for {member}: {str(value)[:100]!r}")
