"""Buckets: made, changed, listed, deleted, guarded and copied."""

from __future__ import annotations

import pytest

from asynccommit.testing.models.gcs.bucket import BucketOptions
from asynccommit.testing.models.gcs.buckets import GcsLimits
from asynccommit.testing.models.gcs.model import Details, Preconditions
from asynccommit.testing.models.gcs.quotas import Quotas
from tests.testing.models.gcs.model import BUCKET, Bench, refused


def test_a_bucket_is_as_it_was_made() -> None:
    """Options and times are kept; its layout is told to whoever may list."""
    bench = Bench(hns=True, location="EU")
    found = bench.get_bucket(BUCKET)

    assert (found.options.hns, found.options.location) == (True, "EU")
    assert (found.created, found.metageneration) == (bench.clock.now, 1)
    assert bench.storage_layout(BUCKET) is found
    assert repr(bench) == "Bench(data)"
    assert "data" in repr(found)


def test_a_zonal_bucket_has_folders_and_takes_no_object() -> None:
    """Its objects are appendable ones, which only gRPC writes; folders are made as ever."""
    with refused(400, "invalid", "needs a hierarchical namespace"):
        Bench(storage_class="RAPID")
    bench = Bench(hns=True, storage_class="RAPID", location="US-CENTRAL1")
    bench.insert_folder(BUCKET, "d")

    assert bench.get_bucket(BUCKET).options.location_type == "zone"
    with refused(400, "invalid", "requires appendable objects"):
        bench.put("d/f")


@pytest.mark.parametrize("name", ["ab", "A-bucket", "-abc", "abc-", "a/b", "x" * 64, ""])
def test_bad_names(name: str) -> None:
    """As in https://cloud.google.com/storage/docs/buckets#naming."""
    with refused(400, "invalid", "Invalid bucket name"):
        Bench().create_bucket(name)


def test_a_name_is_taken_once() -> None:
    """409 until the bucket is deleted, which must be empty."""
    bench = Bench()
    bench.put("a")
    with refused(409, "conflict", "you already own it"):
        bench.create_bucket(BUCKET)
    with refused(409, "conflict", "not empty"):
        bench.delete_bucket(BUCKET)
    bench.delete(BUCKET, "a")
    bench.delete_bucket(BUCKET)
    with refused(404, "notFound", "The specified bucket does not exist."):
        bench.put("a")

    assert bench.create_bucket(BUCKET).objects == {}


def test_options_change() -> None:
    """But not the namespace, nor fields that are none; metagenerations count."""
    bench = Bench()
    bench.clock.now += 5
    found = bench.patch_bucket(BUCKET, {"versioning": True}, Preconditions(metageneration_match=1))

    assert (found.options.versioning, found.metageneration) == (True, 2)
    assert found.updated == found.created + 5
    with refused(412, "conditionNotMet"):
        bench.patch_bucket(BUCKET, {}, Preconditions(metageneration_match=1))
    with refused(412, "conditionNotMet"):
        bench.delete_bucket(BUCKET, Preconditions(metageneration_match=1))
    with refused(304, "notModified"):
        bench.get_bucket(BUCKET, Preconditions(metageneration_not_match=2))
    with refused(400, "invalid"):
        bench.patch_bucket(BUCKET, {"hns": True})
    with refused(400, "invalid"):
        bench.patch_bucket(BUCKET, {"colour": "red"})
    bench.patch_bucket(BUCKET, {"hns": False, "location": "EU"})


def test_versioning_and_folders_exclude_each_other() -> None:
    """As in https://cloud.google.com/storage/docs/hns-overview."""
    bench = Bench()
    with refused(400, "invalid", "not supported with hierarchical namespace"):
        bench.create_bucket("other", BucketOptions(hns=True, versioning=True))


def test_buckets_are_listed_in_pages() -> None:
    """By name, behind a prefix, each once."""
    bench = Bench(limits=GcsLimits(page=2))
    for name in ("b-3", "b-1", "b-2", "c-1"):
        bench.create_bucket(name)
    first, token = bench.list_buckets("b-")
    rest, end = bench.list_buckets("b-", token)

    assert [found.name for found in first + rest] == ["b-1", "b-2", "b-3"]
    assert (bool(token), end) == (True, "")
    with refused(400, "invalid"):
        bench.list_buckets(max_results=0)


def test_new_objects_get_what_the_bucket_says() -> None:
    """Storage class, key and hold, where the request says nothing of them."""
    bench = Bench(storage_class="NEARLINE", default_kms_key_name="key")
    plain = bench.insert(BUCKET, "a", b"").details
    said = bench.insert(BUCKET, "b", b"", details=Details(storage_class="STANDARD")).details

    assert (plain.storage_class, plain.kms_key_name) == ("NEARLINE", "key")
    assert (said.storage_class, said.kms_key_name) == ("STANDARD", "key")


@pytest.mark.parametrize("denied", ["storage.objects.delete", "data:storage.objects.delete"])
def test_a_permission_is_denied(denied: str) -> None:
    """403 names the caller and the permission; another bucket's does not count."""
    bench = Bench()
    bench.put("a")
    bench.denied.add(denied)
    with refused(403, "forbidden", "does not have storage.objects.delete access") as caught:
        bench.delete(BUCKET, "a")

    assert bench.principal in caught.value.message
    assert "Permission 'storage.objects.delete' denied on resource" in caught.value.message
    bench.denied = {"other:storage.objects.delete"}
    bench.delete(BUCKET, "a")


def test_requester_pays() -> None:
    """A request must name a project; the reason and words are those seen on the wire."""
    bench = Bench(requester_pays=True)
    with refused(400, "required", "requester pays bucket but no user project"):
        bench.admit("get", BUCKET)
    bench.admit("get", BUCKET, user_project="mine")
    bench.admit("get", "other")


def test_quotas_are_of_the_bucket() -> None:
    """They refuse what is admitted, not the verbs; other options leave the counts alone."""
    bench = Bench(quotas=Quotas(writes=10, burst=0.1))
    bench.admit("insert", BUCKET, "a")
    bench.patch_bucket(BUCKET, {"versioning": True})
    with refused(429, "rateLimitExceeded", "exceeded your bucket's IO capacity"):
        bench.admit("insert", BUCKET, "b")
    bench.put("b")
    bench.patch_bucket(BUCKET, {"quotas": Quotas()})
    bench.admit("insert", BUCKET, "b")


def test_a_copy_goes_its_own_way() -> None:
    """Objects, folders, renames, quotas and permissions; what was there is shared."""
    bench = Bench(hns=True, soft_delete=9.0, quotas=Quotas(writes=10, burst=0.1))
    bench.put("a", "d/b")
    bench.limits = GcsLimits(operation_seconds=5)
    bench.rename_folder(BUCKET, "d", "e")
    other = bench.copy()
    other.delete(BUCKET, "a")
    other.denied.add("storage.objects.list")
    other.admit("insert", BUCKET)
    bench.admit("insert", BUCKET)
    bench.clock.now += 5
    bench.put("f/c")

    assert type(other) is Bench
    assert other.get(BUCKET, "e/b").content is bench.get(BUCKET, "e/b").content
    assert bench.names() == ["a", "e/b", "f/c"]
    assert bench.folder_names() == ["e/", "f/"]
    assert other.folder_names() == ["e/"]
    other.denied.clear()
    assert other.names() == ["e/b"]
    assert other.names(soft_deleted=True) == ["a"]
    assert bench.names(soft_deleted=True) == []
