"""What a bucket holds, as the checks of ``asynccommit.testing.models.invariants`` want it."""

from __future__ import annotations

from asynccommit.testing.models.gcs.model import GcsBucket, GcsObject, GcsService
from asynccommit.testing.models.invariants import Item

_DIRECTORY = Item()


def tree_of(service: GcsService, bucket: str) -> dict[str, Item]:
    """Return everything that a bucket holds: live objects as files; placeholders and folders.

    An item's etag is the object's CRC32C in hexadecimal: what survives a move. An object whose
    name ends in a slash is a directory, as are folders; a file of the same name hides it.
    """
    held = service.held(bucket)
    found = {f"/{name[:-1]}": _DIRECTORY for name in held.folder_names.below("")}
    files: dict[str, Item] = {}
    for name in held.names.below(""):
        if name[-1] == "/":
            found[f"/{name[:-1]}"] = _DIRECTORY
        else:
            files[f"/{name}"] = _file(held.objects[name])
    return dict(sorted({**found, **files}.items()))


def item_of(service: GcsService, bucket: str, path: str) -> Item | None:
    """Return what is at one path, ``None`` if nothing is."""
    held: GcsBucket = service.held(bucket)
    name = path[1:]
    there = held.objects.get(name)
    if there is not None:
        return _file(there)
    placed = f"{name}/" in held.objects or f"{name}/" in held.folders
    return _DIRECTORY if placed else None


def _file(found: GcsObject) -> Item:
    return Item(found.content.data, f"{found.crc32c:08x}")
