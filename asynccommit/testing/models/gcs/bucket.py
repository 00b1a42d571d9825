"""One bucket: what it holds, and the options it was made with."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

from asynccommit.testing.models.gcs.names import SortedNames
from asynccommit.testing.models.gcs.objects import NO_DETAILS, Details, GcsObject
from asynccommit.testing.models.gcs.quotas import NO_QUOTAS, Meter, Quotas
from asynccommit.testing.models.gcs.refusals import GcsRefusal

WEEK = 604_800.0


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """What a bucket is made with; ``Service.patch_bucket`` changes some of it.

    Attributes:
        hns: with a hierarchical namespace; cannot be changed.
        location: where it is; a rewrite to another location may take several calls.
        storage_class: of objects that do not say theirs.
        versioning: what is replaced or deleted becomes noncurrent.
        soft_delete: seconds that what is deleted can be restored; 0 is never. Real buckets have
            7 days (``WEEK``) unless told otherwise.
        requester_pays: requests must name a project to bill.
        retention: seconds that every object is kept from deletion and replacement.
        default_event_based_hold: new objects are under an event-based hold.
        default_kms_key_name: of objects that do not say theirs.
        moves: knows ``moveTo``; ``False`` as on an older server or another location.
        quotas: what it takes.
    """

    hns: bool = False
    location: str = "US"
    storage_class: str = "STANDARD"
    versioning: bool = False
    soft_delete: float = 0.0
    requester_pays: bool = False
    retention: float = 0.0
    default_event_based_hold: bool = False
    default_kms_key_name: str = ""
    moves: bool = True
    quotas: Quotas = NO_QUOTAS


class Folder(NamedTuple):
    """A folder.

    Attributes:
        bucket: its name.
        name: with a slash at its end: ``a/b/``.
        created: seconds since the epoch (``createTime``).
        updated: seconds since the epoch (``updateTime``).
        metageneration: of the folder.
        pending: the id of the operation that renames it, ``""`` if none.
    """

    bucket: str
    name: str
    created: float
    updated: float
    metageneration: int = 1
    pending: str = ""


class Operation(NamedTuple):
    """The rename of a folder, as it is now.

    Attributes:
        bucket: its name.
        id: in the bucket.
        source: of the folder, with a slash at its end.
        dest: of the folder, with a slash at its end.
        created: seconds since the epoch.
        due: when it takes effect unless it is cancelled.
        ended: when it took effect or failed; ``None`` while it is under way.
        folder: what came of it.
        refusal: why it failed.
    """

    bucket: str
    id: str
    source: str
    dest: str
    created: float
    due: float
    ended: float | None = None
    folder: Folder | None = None
    refusal: GcsRefusal | None = None

    @property
    def done(self) -> bool:
        """Whether it has ended, in whichever way."""
        return self.ended is not None


class GcsBucket:
    """One bucket. What it holds is changed by the service alone.

    Attributes:
        name: of the bucket.
        options: as they are now.
        created: seconds since the epoch.
        updated: seconds since the epoch.
        metageneration: 1, and one more with each change.
        objects: name -> the live object.
        names: of the live objects, in order.
        noncurrent: name -> what was live, the oldest first.
        soft_deleted: name -> what can be restored, the oldest first.
        folders: name -> folder.
        folder_names: of the folders, in order.
        operations: id -> rename, the oldest first.
        pending: the ids of those that are under way.
        meter: counts requests, if there are quotas.
        plain: the details of an object of which nothing is said.
    """

    def __init__(self, name: str, options: BucketOptions, now: float) -> None:
        self.name = name
        self.created = now
        self.updated = now
        self.metageneration = 1
        self.objects: dict[str, GcsObject] = {}
        self.names = SortedNames(self.objects)
        self.noncurrent: dict[str, tuple[GcsObject, ...]] = {}
        self.soft_deleted: dict[str, tuple[GcsObject, ...]] = {}
        self.folders: dict[str, Folder] = {}
        self.folder_names = SortedNames(self.folders)
        self.operations: dict[str, Operation] = {}
        self.pending: list[str] = []
        self.meter: Meter | None = None
        self.plain = NO_DETAILS
        self.options = options
        self.configure(options)

    def __repr__(self) -> str:
        return f"<bucket {self.name}, {len(self.objects)} objects>"

    def configure(self, options: BucketOptions) -> None:
        """Take other options; the counts of quotas go on if those stay."""
        if self.meter is None or options.quotas != self.options.quotas:
            quotas = options.quotas
            self.meter = None if quotas == NO_QUOTAS else Meter(quotas, self.name)
        self.options = options
        self.plain = NO_DETAILS._replace(
            storage_class=options.storage_class,
            kms_key_name=options.default_kms_key_name,
            event_based_hold=options.default_event_based_hold,
        )

    def filled(self, details: Details) -> Details:
        """Return the details of a new object, with the bucket's where nothing is said."""
        if details is NO_DETAILS:
            return self.plain
        plain = self.plain
        return details._replace(
            storage_class=details.storage_class or plain.storage_class,
            kms_key_name=details.kms_key_name or plain.kms_key_name,
            event_based_hold=details.event_based_hold or plain.event_based_hold,
        )

    def retained_until(self, found: GcsObject) -> float | None:
        """Return when the retention of an object ends (``retentionExpirationTime``), if ever."""
        ends = []
        if self.options.retention:
            ends.append(found.created + self.options.retention)
        if found.details.retention is not None:
            ends.append(found.details.retention.until)
        return max(ends, default=None)

    def put(self, made: GcsObject) -> None:
        """Make an object the live one of its name."""
        if made.name not in self.objects:
            self.names.added(made.name)
        self.objects[made.name] = made

    def take(self, name: str) -> None:
        """Take out the live object of a name."""
        del self.objects[name]
        self.names.removed()

    def make_folders(self, name: str, now: float) -> None:
        """Make the folders that are missing above a name (or of it, if it ends in a slash)."""
        end = name.rfind("/") + 1
        while end and name[:end] not in self.folders:
            folder = name[:end]
            self.folders[folder] = Folder(self.name, folder, now, now)
            self.folder_names.added(folder)
            end = name.rfind("/", 0, end - 1) + 1

    def copy(self) -> GcsBucket:
        """Return one with the same content, that shares the objects."""
        made = copy.copy(self)
        made.objects = dict(self.objects)
        made.names = SortedNames(made.objects)
        made.noncurrent = dict(self.noncurrent)
        made.soft_deleted = dict(self.soft_deleted)
        made.folders = dict(self.folders)
        made.folder_names = SortedNames(made.folders)
        made.operations = dict(self.operations)
        made.pending = list(self.pending)
        made.meter = None if self.meter is None else self.meter.copy()
        return made
