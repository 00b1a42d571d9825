"""Represent one bucket: its content and its options."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from asynccommit.testing.models.gcs.names import SortedNames
from asynccommit.testing.models.gcs.objects import NO_DETAILS, Details, GcsObject
from asynccommit.testing.models.gcs.quotas import NO_QUOTAS, Meter, Quotas
from asynccommit.testing.models.gcs.refusals import GcsRefusal

WEEK = 604_800.0


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """The options of a bucket; ``Service.patch_bucket`` changes some of them.

    Attributes:
        hns: with a hierarchical namespace; cannot be changed.
        location: location; a rewrite to another location may take several calls.
        storage_class: default storage class of objects; with ``RAPID`` the bucket is in one zone.
        versioning: replaced and deleted objects become noncurrent.
        soft_delete: seconds during which deleted objects can be restored; 0 disables it. Real
            buckets have 7 days (``WEEK``) by default.
        requester_pays: requests must name a project to bill.
        retention: seconds during which no object may be deleted or replaced.
        default_event_based_hold: new objects are under an event-based hold.
        default_kms_key_name: default KMS key of objects.
        moves: supports ``moveTo``; ``False`` as on an older server or in another location.
        quotas: request quotas.
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

    @property
    def zonal(self) -> bool:
        """Return whether the bucket is in one zone, so only gRPC writes there."""
        return self.storage_class == "RAPID"

    @property
    def location_type(self) -> str:
        """Return the kind of the location."""
        if self.zonal:
            return "zone"
        return "multi-region" if len(self.location) == 2 else "region"


class Folder(NamedTuple):
    """A folder.

    Attributes:
        bucket: name of the bucket.
        name: name with a slash at its end: ``a/b/``.
        created: seconds since the epoch (``createTime``).
        updated: seconds since the epoch (``updateTime``).
        metageneration: metageneration of the folder.
        pending: id of the operation that renames it, ``""`` if there is none.
    """

    bucket: str
    name: str
    created: float
    updated: float
    metageneration: int = 1
    pending: str = ""


class Operation(NamedTuple):
    """The state of a folder rename.

    Attributes:
        bucket: name of the bucket.
        id: id in the bucket.
        source: name of the source folder, with a slash at its end.
        dest: name of the destination folder, with a slash at its end.
        created: seconds since the epoch.
        due: time at which it takes effect unless cancelled.
        ended: time at which it took effect or failed; ``None`` while it is running.
        folder: resulting folder.
        refusal: reason of a failure.
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
        """Return whether the operation has ended, successfully or not."""
        return self.ended is not None


class GcsBucket:
    """A bucket, whose content is changed only by the service.

    Attributes:
        name: name of the bucket.
        options: present options.
        created: seconds since the epoch.
        updated: seconds since the epoch.
        metageneration: 1, plus one for each change.
        objects: name -> the live object.
        names: names of the live objects, in order.
        noncurrent: name -> noncurrent objects, the oldest first.
        soft_deleted: name -> restorable objects, the oldest first.
        folders: name -> folder.
        folder_names: names of the folders, in order.
        operations: id -> rename, the oldest first.
        pending: ids of the running renames.
        meter: counts requests, if there are quotas.
        notifications: id -> notification configuration, as JSON.
        retention_locked: whether the retention may only grow.
        settings: settings without effect, as JSON.
        plain: default details of an object.
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
        self.notifications: dict[str, Mapping[str, Any]] = {}
        self.retention_locked = False
        self.settings: Mapping[str, Any] = {}
        self.plain = NO_DETAILS
        self.options = options
        self.configure(options)

    def __repr__(self) -> str:
        return f"<bucket {self.name}, {len(self.objects)} objects>"

    def configure(self, options: BucketOptions) -> None:
        """Replace the options; quota counts go on if the quotas are the same."""
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
        """Return the details of a new object, completed by the bucket's defaults."""
        if details is NO_DETAILS:
            return self.plain
        plain = self.plain
        return details._replace(
            storage_class=details.storage_class or plain.storage_class,
            kms_key_name=details.kms_key_name or plain.kms_key_name,
            event_based_hold=details.event_based_hold or plain.event_based_hold,
        )

    def retained_until(self, found: GcsObject) -> float | None:
        """Return the end of an object's retention (``retentionExpirationTime``), if it has one."""
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
        """Remove and return the live object of a name."""
        del self.objects[name]
        self.names.removed()

    def make_folders(self, name: str, now: float) -> None:
        """Create the missing folders above a name, and its own if it ends in a slash."""
        end = name.rfind("/") + 1
        while end and name[:end] not in self.folders:
            folder = name[:end]
            self.folders[folder] = Folder(self.name, folder, now, now)
            self.folder_names.added(folder)
            end = name.rfind("/", 0, end - 1) + 1

    def copy(self) -> GcsBucket:
        """Return a bucket with the same content, which shares the objects."""
        made = copy.copy(self)
        made.objects = dict(self.objects)
        made.names = SortedNames(made.objects)
        made.noncurrent = dict(self.noncurrent)
        made.soft_deleted = dict(self.soft_deleted)
        made.folders = dict(self.folders)
        made.folder_names = SortedNames(made.folders)
        made.operations = dict(self.operations)
        made.pending = list(self.pending)
        made.notifications = dict(self.notifications)
        made.meter = None if self.meter is None else self.meter.copy()
        return made
