"""Buckets, listings, batches and who may ask, by google-cloud-storage."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import answer_of, asked, names, open_client, sdk, write

QUARTER = 256 * 1024


def test_buckets(client: Any) -> None:
    """A bucket is made once, is listed, is changed, and is gone after its deletion."""
    made = client.create_bucket("one", location="europe-west1")
    with pytest.raises(Exception, match="you already own it") as twice:
        client.create_bucket("one")
    made.versioning_enabled = True
    made.storage_class = "NEARLINE"
    made.patch()
    found = client.get_bucket("one")
    listed = [bucket.name for bucket in client.list_buckets(prefix="o")]
    found.delete()

    assert answer_of(twice.value) == (409, "conflict")
    assert (found.location, found.location_type) == ("EUROPE-WEST1", "region")
    assert (found.versioning_enabled, found.storage_class) == (True, "NEARLINE")
    assert found.metageneration > made.metageneration - 1 > 0
    assert listed == ["one"]
    assert client.lookup_bucket("one") is None


def test_bucket_with_folders(client: Any) -> None:
    """A bucket is made with a hierarchical namespace, and says so."""
    wanted = client.bucket("folders")
    wanted.hierarchical_namespace_enabled = True
    wanted.iam_configuration.uniform_bucket_level_access_enabled = True
    client.create_bucket(wanted)

    assert client.get_bucket("folders").hierarchical_namespace_enabled
    assert not client.get_bucket("data").hierarchical_namespace_enabled


def test_bucket_that_is_not_empty(client: Any, bucket: Any) -> None:
    """A bucket with an object is not deleted, unless the SDK deletes the objects before."""
    write(bucket, "a")
    with pytest.raises(Exception, match="not empty") as caught:
        bucket.delete()
    bucket.delete(force=True)

    assert answer_of(caught.value) == (409, "conflict")
    assert not bucket.exists()


def test_bucket_permissions(bucket: Any) -> None:
    """Who may do what is asked and set, as far as there is anything to say."""
    asked_for = ["storage.objects.delete", "storage.objects.get"]

    assert sorted(bucket.test_iam_permissions(asked_for)) == asked_for
    assert list(bucket.get_iam_policy()) == []


def test_list_by_pages(bucket: Any) -> None:
    """Pages of the size that was asked for bring every object once, in order."""
    wanted = [f"d{number % 3}/file{number:02}" for number in range(20)]
    for name in wanted:
        write(bucket, name)
    pages = [[blob.name for blob in page] for page in bucket.list_blobs(page_size=6).pages]
    few = [blob.name for blob in bucket.list_blobs(max_results=7)]

    assert [len(page) for page in pages] == [6, 6, 6, 2]
    assert [name for page in pages for name in page] == sorted(wanted)
    assert few == sorted(wanted)[:7]


def test_list_with_a_delimiter(bucket: Any) -> None:
    """What has the delimiter behind the prefix is told as a prefix, page by page, each once."""
    for name in ("d/a", "d/b/1", "d/b/2", "d/c", "d/e/", "d/e/1", "other"):
        write(bucket, name)
    listed = bucket.list_blobs(prefix="d/", delimiter="/", page_size=2)
    found = [blob.name for blob in listed]
    trailing = bucket.list_blobs(prefix="d/", delimiter="/", include_trailing_delimiter=True)

    assert (found, listed.prefixes) == (["d/a", "d/c"], {"d/b/", "d/e/"})
    assert [blob.name for blob in trailing] == ["d/a", "d/c", "d/e/"]


def test_list_with_offsets_and_globs(bucket: Any) -> None:
    """A listing begins and ends where it is told to, and brings what a pattern says."""
    for name in ("a", "b", "c/1.txt", "c/2.txt", "c/d/3.txt", "e"):
        write(bucket, name)
    between = bucket.list_blobs(start_offset="b", end_offset="c/2")
    matching = bucket.list_blobs(match_glob="c/*.txt")
    deep = bucket.list_blobs(match_glob="c/**.txt")

    assert [blob.name for blob in between] == ["b", "c/1.txt"]
    assert [blob.name for blob in matching] == ["c/1.txt", "c/2.txt"]
    assert [blob.name for blob in deep] == ["c/1.txt", "c/2.txt", "c/d/3.txt"]


def test_list_of_some_fields(bucket: Any) -> None:
    """A listing of two fields brings these two."""
    write(bucket, "a", b"12345")
    found = list(bucket.list_blobs(fields="items(name,size),nextPageToken"))

    assert [blob._properties for blob in found] == [{"name": "a", "size": "5"}]


def test_list_of_folders(client: Any) -> None:
    """On a bucket with folders, those that are empty are prefixes if they are asked for."""
    bucket = client.bucket("tree")
    write(bucket, "d/e/file").delete()
    plain = bucket.list_blobs(delimiter="/")
    folders = bucket.list_blobs(delimiter="/", include_folders_as_prefixes=True)

    assert (list(plain), plain.prefixes) == ([], set())
    assert (list(folders), folders.prefixes) == ([], {"d/"})


def test_batch(gcs: GcsEmulatorThread, client: Any, bucket: Any) -> None:
    """Many deletions and changes are one request; each has an answer of its own."""
    blobs = [write(bucket, f"d/{number} é%") for number in range(4)]
    with client.batch(raise_exception=False) as batch:
        for blob in blobs[:3]:
            bucket.delete_blob(blob.name)
        bucket.delete_blob("nowhere")
        blobs[3].metadata = {"k": "v"}
        blobs[3].patch()
    statuses = [answer.status_code for answer in batch._responses]

    assert statuses == [204, 204, 204, 404, 200]
    assert blobs[3].metadata == {"k": "v"}
    assert names(bucket) == ["d/3 é%"]
    assert asked(gcs)["batch"] == 1


def test_batch_with_an_error(client: Any, bucket: Any) -> None:
    """What is wrong with one request of a batch is raised, when all others have been done."""
    write(bucket, "a")
    wrong = pytest.raises(Exception, match="No such object: data/nowhere")
    with wrong as caught, client.batch():
        bucket.delete_blob("nowhere")
        bucket.delete_blob("a")

    assert answer_of(caught.value) == (404, "notFound")
    assert names(bucket) == []


def test_batch_of_too_many(client: Any, bucket: Any) -> None:
    """The SDK would send a thousand at one time; the service takes a hundred."""
    with pytest.raises(Exception, match="100") as caught, client.batch():
        for number in range(101):
            bucket.delete_blob(f"{number}")

    assert answer_of(caught.value) == (400, "badRequest")


def test_emulator_by_the_environment(
    gcs: GcsEmulatorThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``STORAGE_EMULATOR_HOST`` alone leads the SDK here, without credentials or a project."""
    for name, value in gcs.environ.items():
        monkeypatch.setenv(name, value)
    with sdk().Client() as client:
        write(client.bucket("data"), "a", b"12345")
        listed = [bucket.name for bucket in client.list_buckets()]

        assert client.bucket("data").blob("a").download_as_bytes() == b"12345"
    assert listed == ["data", "tree", "versions"]


def test_anonymous_client(gcs: GcsEmulatorThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's client for public data finds the emulator, too."""
    for name, value in gcs.environ.items():
        monkeypatch.setenv(name, value)
    with sdk().Client.create_anonymous_client() as client:
        write(client.bucket("data"), "a", b"1")

        assert names(client.bucket("data")) == ["a"]


def test_tokens(gcs: GcsEmulatorThread) -> None:
    """With tokens that are known, the right one is taken, another one and none are refused."""
    credentials = sdk("oauth2.credentials", "google").Credentials
    gcs.do(lambda running: setattr(running.keys, "tokens", {"good"}))
    with open_client(gcs.endpoint, credentials=credentials("good")) as client:
        write(client.bucket("data"), "a", b"12345")
    # At 401 the SDK asks for another token, and has nobody to ask.
    refused = pytest.raises(Exception, match="refresh")
    for options in ({}, {"credentials": credentials("bad")}):
        with open_client(gcs.endpoint, **options) as client, refused:
            client.bucket("data").get_blob("a")

    assert set(gcs.do(lambda running: running.stats())["statuses"]) == {"200", "401"}


def test_settings_of_a_bucket(client: Any, bucket: Any) -> None:
    """Labels, rules of lifecycle and CORS, and a website are there for who reads it again."""
    bucket.labels = {"team": "sales"}
    bucket.add_lifecycle_delete_rule(age=30)
    bucket.cors = [{"origin": ["*"], "method": ["GET"]}]
    bucket.configure_website("index.html", "404.html")
    bucket.patch()
    found = client.get_bucket("data")
    found.clear_lifecycle_rules()
    found.labels = {}
    found.update()
    later = client.get_bucket("data")

    assert bucket.labels == {"team": "sales"}
    assert next(iter(bucket.lifecycle_rules))["condition"] == {"age": 30}
    assert found.cors == [{"origin": ["*"], "method": ["GET"]}]
    assert (list(later.lifecycle_rules), later.labels) == ([], {})
    assert later._properties["website"]["mainPageSuffix"] == "index.html"
