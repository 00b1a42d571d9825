"""Convert the content of a bucket to a tree for ``invariants``."""

from __future__ import annotations

from asynccommit.testing.models.gcs.model import GcsBucket, GcsObject, GcsService
from asynccommit.testing.models.invariants import Item

_DIRECTORY = Item()


def tree_of(service: GcsService, bucket: str) -> dict[str, Item]:
    """Return the content of a bucket as a tree.

    Live objects become files; placeholders and folders become directories. An item's etag is the
    object's CRC32C in hexadecimal, which survives a move. An object whose name ends in a slash is a
    directory, as are folders; a file of the same name hides it.
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
    """Return the item at one path, ``None`` if there is none."""
    held: GcsBucket = service.held(bucket)
    name = path[1:]
    there = held.objects.get(name)
    if there is not None:
        return _file(there)
    placed = f"{name}/" in held.objects or f"{name}/" in held.folders
    return _DIRECTORY if placed else None


def _file(found: GcsObject) -> Item:
    return Item(found.content.data, f"{found.crc32c:08x}")
