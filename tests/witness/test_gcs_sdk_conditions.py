"""Conditions, versions, soft deletion, holds and bills by google-cloud-storage."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from tests.witness.gcs import answer_of, names, write

FAR = timedelta(days=1)
CONDITION = r"412|304"


def of_source(wanted: dict[str, int]) -> dict[str, int]:
    """Return the same conditions, on the source."""
    return {f"if_source{name[2:]}": value for name, value in wanted.items()}


def held(blob: Any) -> dict[str, dict[str, int]]:
    """Return conditions that an object meets, by a name."""
    generation, metageneration = blob.generation, blob.metageneration
    return {
        "generation": {"if_generation_match": generation},
        "another generation": {"if_generation_not_match": generation + 1},
        "metageneration": {"if_metageneration_match": metageneration},
        "another metageneration": {"if_metageneration_not_match": metageneration + 1},
    }


def broken(blob: Any) -> dict[str, dict[str, int]]:
    """Return conditions that an object does not meet, by a name."""
    generation, metageneration = blob.generation, blob.metageneration
    return {
        "generation": {"if_generation_match": generation + 1},
        "absent": {"if_generation_match": 0},
        "another generation": {"if_generation_not_match": generation},
        "metageneration": {"if_metageneration_match": metageneration + 1},
        "another metageneration": {"if_metageneration_not_match": metageneration},
    }


HELD = ["generation", "another generation", "metageneration", "another metageneration"]
BROKEN = [*HELD, "absent"]
VERBS = ["upload", "patch", "delete", "copy", "move", "rewrite"]
# Of an upload the SDK sends "ifMetaGenerationNotMatch", which is no parameter of the service.
UNSENT = ("upload", "another metageneration")


def verbs(bucket: Any, blob: Any) -> dict[str, Callable[..., Any]]:
    """Return what changes or replaces an object, under conditions on it."""
    source = write(bucket, "source", b"new")

    def patch(**wanted: int) -> Any:
        blob.metadata = {"k": "v"}
        return blob.patch(**wanted)

    return {
        "upload": lambda **wanted: blob.upload_from_string(b"new", **wanted),
        "patch": patch,
        "delete": lambda **wanted: blob.delete(**wanted),
        "copy": lambda **wanted: bucket.copy_blob(source, bucket, blob.name, **wanted),
        "move": lambda **wanted: bucket.move_blob(source, blob.name, **wanted),
        "rewrite": lambda **wanted: blob.rewrite(source, **wanted),
    }


@pytest.mark.parametrize("name", HELD)
@pytest.mark.parametrize("verb", VERBS)
def test_condition_that_holds(bucket: Any, verb: str, name: str) -> None:
    """A request under a condition that holds is done."""
    blob = write(bucket, "file", b"old")
    verbs(bucket, blob)[verb](**held(blob)[name])
    found = bucket.get_blob("file")

    assert (found is None) == (verb == "delete")
    assert verb == "delete" or found.generation != blob.generation or found.metadata or found.size


@pytest.mark.parametrize("verb, name", [pair for pair in product(VERBS, BROKEN) if pair != UNSENT])
def test_condition_that_does_not_hold(bucket: Any, verb: str, name: str) -> None:
    """A request under a condition that does not hold is answered 412, and changes nothing."""
    blob = write(bucket, "file", b"old")
    before = blob.generation
    ask = verbs(bucket, blob)[verb]
    with pytest.raises(Exception, match="412") as caught:
        ask(**broken(blob)[name])
    found = bucket.get_blob("file")

    # Of an upload's refusal the SDK keeps the status only.
    assert verb == "upload" or answer_of(caught.value) == (412, "conditionNotMet")
    assert (found.generation, found.metageneration, found.metadata) == (before, 1, None)
    assert names(bucket) == ["file", "source"]


@pytest.mark.parametrize("name", HELD)
def test_move_from_a_source_that_is_as_wanted(bucket: Any, name: str) -> None:
    """An object is moved under a condition on itself."""
    blob = write(bucket, "file")
    bucket.move_blob(blob, "moved", **of_source(held(blob)[name]))

    assert names(bucket) == ["moved"]


@pytest.mark.parametrize("name", [*HELD])
def test_move_from_a_source_that_is_not_as_wanted(bucket: Any, name: str) -> None:
    """A condition on the source that does not hold: 412, 304 if it may not match; nothing moves."""
    blob = write(bucket, "file")
    with pytest.raises(Exception, match=CONDITION) as caught:
        bucket.move_blob(blob, "moved", **of_source(broken(blob)[name]))

    assert caught.value.code in (412, 304)  # type: ignore[attr-defined]
    assert names(bucket) == ["file"]


def test_move_without_replacing(bucket: Any) -> None:
    """Generation 0 at the destination: what is there stays, where nothing is it moves."""
    blob, other = write(bucket, "file", b"new"), write(bucket, "other", b"old")
    with pytest.raises(Exception, match="412") as caught:
        bucket.move_blob(blob, "other", if_generation_match=0)
    moved = bucket.move_blob(blob, "free", if_generation_match=0)

    assert answer_of(caught.value) == (412, "conditionNotMet")
    assert (other.download_as_bytes(), moved.download_as_bytes()) == (b"old", b"new")


def test_move_that_is_sent_twice(bucket: Any) -> None:
    """The second of two equal moves finds no source: 404, as if there had never been one."""
    blob = write(bucket, "file")
    wanted = {"if_source_generation_match": blob.generation, "if_generation_match": 0}
    bucket.move_blob(blob, "moved", **wanted)
    with pytest.raises(Exception, match="404") as caught:
        bucket.move_blob(blob, "moved", **wanted)

    assert answer_of(caught.value)[0] == 404
    assert names(bucket) == ["moved"]


def test_move_onto_itself(bucket: Any) -> None:
    """An object is not moved to where it is."""
    blob = write(bucket, "file")
    with pytest.raises(Exception, match="400"):
        bucket.move_blob(blob, "file")

    assert names(bucket) == ["file"]


@pytest.mark.parametrize("name", HELD)
def test_read_under_a_condition(bucket: Any, name: str) -> None:
    """A read is refused with 412 where something should match, and with 304 where it should not."""
    blob = write(bucket, "file", b"12345")
    with pytest.raises(Exception, match=CONDITION) as caught:
        blob.reload(**broken(blob)[name])
    again = bucket.blob("file")
    again.reload(**held(blob)[name])

    assert caught.value.code == (304 if "another" in name else 412)  # type: ignore[attr-defined]
    assert again.size == 5
    assert blob.download_as_bytes(**held(blob)[name]) == b"12345"
    with pytest.raises(Exception, match=CONDITION):
        blob.download_as_bytes(**broken(blob)[name])


def test_read_by_etag(bucket: Any) -> None:
    """Etags do for reads what generations do."""
    blob = write(bucket, "file", b"12345")
    with pytest.raises(Exception, match="412"):
        bucket.blob("file").reload(if_etag_match=["CAE="])
    with pytest.raises(Exception, match="304"):
        bucket.blob("file").reload(if_etag_not_match=[blob.etag])

    assert blob.download_as_bytes(if_etag_match=blob.etag) == b"12345"


def test_compose_under_conditions(bucket: Any) -> None:
    """Each source and the destination are only taken as they are wanted."""
    parts = [write(bucket, name, name.encode()) for name in ("a", "b")]
    whole = bucket.blob("whole")
    generations = [part.generation for part in parts]
    with pytest.raises(Exception, match="412"):
        whole.compose(parts, if_source_generation_match=[generations[0], 1])
    whole.compose(parts, if_source_generation_match=generations, if_generation_match=0)
    with pytest.raises(Exception, match="412"):
        whole.compose(parts, if_generation_match=0)

    assert whole.download_as_bytes() == b"ab"


def test_versions(client: Any) -> None:
    """What is replaced or deleted stays as a version, which can be read, and copied back."""
    bucket = client.bucket("versions")
    first = write(bucket, "file", b"first").generation
    second = write(bucket, "file", b"second").generation
    # A blob that knows its generation would delete that one for good.
    bucket.delete_blob("file")
    versions = [blob.generation for blob in bucket.list_blobs(versions=True)]
    old = bucket.blob("file", generation=first)
    back = bucket.copy_blob(old, bucket, "file", source_generation=first)

    assert versions == [first, second]
    assert bucket.get_blob("file", generation=first).time_deleted is not None
    assert old.download_as_bytes() == back.download_as_bytes() == b"first"


def test_version_that_a_move_replaced(client: Any) -> None:
    """What a move replaces stays as a version; what it moves does not."""
    bucket = client.bucket("versions")
    old, new = write(bucket, "file", b"old"), write(bucket, "new", b"new")
    moved = bucket.move_blob(new, "file")

    assert [(blob.name, blob.generation) for blob in bucket.list_blobs(versions=True)] == [
        ("file", old.generation),
        ("file", moved.generation),
    ]


def test_delete_of_a_version(client: Any) -> None:
    """A version that is named is gone for good, and the live object stays."""
    bucket = client.bucket("versions")
    first = write(bucket, "file", b"first").generation
    write(bucket, "file", b"second")
    bucket.blob("file", generation=first).delete()

    assert len(list(bucket.list_blobs(versions=True))) == 1
    assert bucket.blob("file").download_as_bytes() == b"second"


def test_read_of_an_older_generation(bucket: Any) -> None:
    """Without versions, a generation that was replaced is not there any more."""
    first = write(bucket, "file", b"first").generation
    write(bucket, "file", b"second")
    with pytest.raises(Exception, match="404"):
        bucket.blob("file", generation=first).download_as_bytes()

    assert bucket.get_blob("file", generation=first) is None


@pytest.mark.parametrize("kind", ["data", "tree"])
def test_soft_deletion(client: Any, kind: str) -> None:
    """What was deleted is listed as such and restored, as another generation."""
    bucket = client.bucket(kind)
    blob = write(bucket, "d/file", b"12345")
    blob.delete()
    deleted = list(bucket.list_blobs(soft_deleted=True))
    found = bucket.get_blob("d/file", generation=blob.generation, soft_deleted=True)
    restored = bucket.restore_blob("d/file", generation=blob.generation)

    assert [(_.name, _.generation) for _ in deleted] == [("d/file", blob.generation)]
    assert found.hard_delete_time - found.soft_delete_time == timedelta(days=7)
    assert restored.generation > blob.generation
    assert restored.download_as_bytes() == b"12345"


def test_soft_deletion_of_what_was_replaced(bucket: Any) -> None:
    """What an upload or a move replaced can be restored, too; what was moved away cannot."""
    old = write(bucket, "file", b"old").generation
    new = write(bucket, "new", b"new")
    bucket.move_blob(new, "file")
    deleted = {(_.name, _.generation) for _ in bucket.list_blobs(soft_deleted=True)}
    bucket.restore_blob("file", generation=old)

    assert ("file", old) in deleted
    assert bucket.blob("file").download_as_bytes() == b"old"


@pytest.mark.parametrize("hold", ["temporary_hold", "event_based_hold"])
def test_hold(bucket: Any, hold: str) -> None:
    """An object on hold is neither deleted, replaced nor moved, until the hold is lifted."""
    blob, other = write(bucket, "file"), write(bucket, "other")
    setattr(blob, hold, True)
    blob.patch()
    for forbidden in (
        blob.delete,
        lambda: bucket.move_blob(blob, "moved"),
        lambda: bucket.move_blob(other, "file"),
        lambda: bucket.copy_blob(other, bucket, "file"),
    ):
        with pytest.raises(Exception, match="hold") as caught:
            forbidden()
        assert answer_of(caught.value)[0] == 403
    setattr(blob, hold, False)
    blob.patch()
    blob.delete()

    assert names(bucket) == ["other"]


def test_retention_policy(bucket: Any) -> None:
    """A bucket's retention period keeps its objects."""
    blob = write(bucket, "file")
    bucket.retention_period = 3600
    bucket.patch()
    with pytest.raises(Exception, match="retention") as caught:
        blob.delete()
    assert answer_of(caught.value)[0] == 403
    assert bucket.retention_policy_effective_time is not None


def test_retention_of_an_object(bucket: Any) -> None:
    """An object's own retention keeps it as long as it says."""
    blob = write(bucket, "file")
    until = datetime.now(UTC).replace(microsecond=123_000) + FAR
    blob.retention.mode = "Unlocked"
    blob.retention.retain_until_time = until
    blob.patch()
    with pytest.raises(Exception, match="403"):
        blob.delete()
    found = bucket.get_blob("file")

    assert (found.retention.mode, found.retention.retain_until_time) == ("Unlocked", until)


def test_requester_pays(client: Any, bucket: Any) -> None:
    """Where the requester pays, requests name a project; those that do not are refused."""
    bucket.requester_pays = True
    bucket.patch()
    with pytest.raises(Exception, match="requester pays") as caught:
        list(bucket.list_blobs())
    paying = client.bucket("data", user_project="project")
    write(paying, "file", b"12345")

    assert answer_of(caught.value)[0] == 400
    assert paying.blob("file").download_as_bytes() == b"12345"


def test_denied(gcs: GcsEmulatorThread, bucket: Any) -> None:
    """A permission that is lacking is named; a move needs one of its own."""
    blob = write(bucket, "file")
    lacking = ["storage.objects.delete", "storage.objects.move"]
    gcs.do(lambda running: running.service.denied.update(lacking))
    with pytest.raises(Exception, match=r"storage\.objects\.delete") as caught:
        blob.delete()
    with pytest.raises(Exception, match=r"storage\.objects\.move"):
        bucket.move_blob(blob, "moved")

    assert answer_of(caught.value) == (403, "forbidden")
    assert bucket.test_iam_permissions(["storage.objects.delete"]) == []


def test_bucket_that_is_not_there(client: Any) -> None:
    """A request to a bucket that is not there says so, and not that the object is missing."""
    bucket = client.bucket("nowhere")
    for ask in (lambda: write(bucket, "a"), lambda: list(bucket.list_blobs()), bucket.reload):
        with pytest.raises(Exception, match="404") as caught:
            ask()
        assert "bucket does not exist" in str(caught.value)

    assert bucket.get_blob("a") is None
