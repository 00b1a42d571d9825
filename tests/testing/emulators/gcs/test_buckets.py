"""Buckets over the JSON API, how they are laid out, and who may do what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.testing.emulators.gcs.client import Answer, GcsClient


async def _make(gcs: GcsClient, **given: Any) -> Answer:
    return await gcs.send_json("POST", "/storage/v1/b?project=p", given)


async def test_a_bucket_is_made_and_told(gcs: GcsClient) -> None:
    """With all that was said of it."""
    given = {
        "location": "europe-west1",
        "storageClass": "NEARLINE",
        "versioning": {"enabled": True},
        "billing": {"requesterPays": True},
        "softDeletePolicy": {"retentionDurationSeconds": "0"},
        "retentionPolicy": {"retentionPeriod": "60"},
        "defaultEventBasedHold": True,
        "encryption": {"defaultKmsKeyName": "K"},
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
    }
    made = await _make(gcs, name="new-one", **given)
    got = await gcs.send("GET", "/storage/v1/b/new-one?userProject=p")
    shown = got.json

    assert (made.status, made.json) == (200, shown)
    assert (shown["kind"], shown["name"], shown["metageneration"]) == (
        "storage#bucket",
        "new-one",
        "1",
    )
    assert (shown["location"], shown["locationType"]) == ("EUROPE-WEST1", "region")
    assert shown["retentionPolicy"]["retentionPeriod"] == "60"
    for key in ("storageClass", "versioning", "billing", "defaultEventBasedHold", "encryption"):
        assert shown[key] == given[key]


async def test_layout_tells_the_namespace(gcs: GcsClient) -> None:
    """A hierarchical one is said to be enabled."""
    await _make(gcs, name="deep", hierarchicalNamespace={"enabled": True})
    flat = (await gcs.ask("GET", "storageLayout")).json
    deep = (await gcs.send("GET", "/storage/v1/b/deep/storageLayout")).json

    assert flat["kind"] == "storage#storageLayout"
    assert not flat.get("hierarchicalNamespace", {}).get("enabled")
    assert deep["hierarchicalNamespace"] == {"enabled": True}
    assert (deep["bucket"], deep["location"], deep["locationType"]) == (
        "deep",
        "US",
        "multi-region",
    )


async def test_buckets_that_cannot_be_made(gcs: GcsClient) -> None:
    """A second time, with a name that is none, with none, and with what is no setting."""
    assert (await _make(gcs, name="data")).brief == (409, "conflict")
    assert (await _make(gcs, name="Data!")).brief == (400, "invalid")
    assert (await _make(gcs)).brief == (400, "required")
    assert (await _make(gcs, name="x-y", versioning=5)).brief == (400, "invalid")
    wrong = {"retentionPeriod": "long"}
    assert (await _make(gcs, name="x-y", retentionPolicy=wrong)).brief == (400, "invalid")


async def test_buckets_are_listed(gcs: GcsClient) -> None:
    """By prefix, in pages, of a project."""
    for name in ("data-a", "data-b", "other"):
        await _make(gcs, name=name)
    url = "/storage/v1/b?project=p&prefix=data&maxResults=2&fields=items/name,nextPageToken"
    page = (await gcs.send("GET", url)).json
    rest = (await gcs.send("GET", f"{url}&pageToken={page['nextPageToken']}")).json

    assert page["items"] == [{"name": "data"}, {"name": "data-a"}]
    assert rest == {"items": [{"name": "data-b"}]}
    assert (await gcs.send("GET", "/storage/v1/b")).brief == (400, "required")


async def test_a_bucket_is_changed_and_deleted(gcs: GcsClient) -> None:
    """Only an empty one goes; conditions hold."""
    await gcs.make("a")
    patched = await gcs.ask("PATCH", "", {"versioning": {"enabled": True}}, ifMetagenerationMatch=1)
    stale = await gcs.ask("PATCH", "", {"billing": None}, ifMetagenerationMatch=1)
    known = await gcs.ask("GET", "", ifMetagenerationNotMatch=2)
    full = await gcs.ask("DELETE", "")
    await gcs.ask("PUT", "", {"versioning": {"enabled": False}})
    await gcs.delete("a")

    assert (patched.status, patched.json["metageneration"]) == (200, "2")
    assert (stale.status, known.status, full.brief) == (412, 304, (409, "conflict"))
    assert (await gcs.ask("DELETE", "")).status == 204
    assert (await gcs.ask("GET", "")).brief == (404, "notFound")


async def test_requester_pays(gcs: GcsClient) -> None:
    """A request names a project, in the query or in a header, or is refused with 400."""
    await gcs.make("a")
    gcs.emulator.service.patch_bucket("data", {"requester_pays": True})
    refused = await gcs.get("a")
    paid = await gcs.get("a", userProject="p")
    header = await gcs.send("GET", "/storage/v1/b/data/o/a", b"", {"x-goog-user-project": "p"})
    batch = await gcs.batch(["DELETE /storage/v1/b/data/o/a HTTP/1.1"])

    assert refused.status == 400
    assert "requester pays" in refused.json["error"]["message"]
    assert (paid.status, header.status) == (200, 200)
    assert batch[0][0] == 400


async def test_permissions_that_are_lacking(gcs: GcsClient) -> None:
    """403 names the permission; who asks is told what it has."""
    await gcs.make("a")
    gcs.emulator.service.denied = {"storage.objects.delete", "data:storage.objects.list"}
    denied = await gcs.delete("a")
    url = "/storage/v1/b/data/iam/testPermissions"
    asked = "&".join(f"permissions=storage.objects.{_}" for _ in ("delete", "get", "list"))
    held = (await gcs.send("GET", f"{url}?{asked}")).json

    assert denied.brief == (403, "forbidden")
    assert "storage.objects.delete" in denied.json["error"]["message"]
    assert held["permissions"] == ["storage.objects.get"]
    assert (await gcs.page()).status == 403


async def test_policies_are_answered(gcs: GcsClient) -> None:
    """And not kept."""
    policy = (await gcs.ask("GET", "iam")).json
    put = await gcs.ask("PUT", "iam", {"bindings": [{"role": "r", "members": []}]})

    assert policy["bindings"] == []
    assert put.json["bindings"] == [{"role": "r", "members": []}]


@pytest.mark.parametrize("path", ["storageLayout", "iam", "iam/testPermissions", "managedFolders"])
async def test_nothing_of_a_bucket_that_is_not_there(gcs: GcsClient, path: str) -> None:
    """404."""
    gcs.bucket = "none"

    assert (await gcs.ask("GET", path)).brief == (404, "notFound")


SETTINGS = {
    "labels": {"team": "sales", "cost-centre": "7"},
    "lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]},
    "cors": [{"origin": ["*"], "method": ["GET"], "maxAgeSeconds": 60}],
    "website": {"mainPageSuffix": "index.html", "notFoundPage": "404.html"},
    "logging": {"logBucket": "logs", "logObjectPrefix": "data"},
}


async def test_settings_of_a_bucket_are_kept_and_shown(gcs: GcsClient) -> None:
    """They are so when it is made, when it is read, and in a list."""
    made = await _make(gcs, name="set", **SETTINGS)
    got = (await gcs.send("GET", "/storage/v1/b/set")).json
    listed = (await gcs.send("GET", "/storage/v1/b?project=p&prefix=set")).json["items"][0]

    for shown in (made.json, got, listed):
        assert {name: shown[name] for name in SETTINGS} == SETTINGS


async def test_patch_merges_settings_and_update_replaces_them(gcs: GcsClient) -> None:
    """A label that is null goes; what an update leaves out is as in a new bucket."""
    await gcs.ask("PATCH", "", {**SETTINGS, "versioning": {"enabled": True}})
    labels = {"team": None, "stage": "test"}
    patched = await gcs.ask("PATCH", "", {"labels": labels, "website": None})
    emptied = await gcs.ask("PATCH", "", {"lifecycle": {"rule": []}, "cors": []})
    updated = await gcs.ask("PUT", "", {"labels": {"a": ""}})

    assert patched.json["labels"] == {"cost-centre": "7", "stage": "test"}
    assert "website" not in patched.json
    assert patched.json["cors"] == SETTINGS["cors"]
    assert not {"lifecycle", "cors"} & emptied.json.keys()
    assert updated.json["labels"] == {"a": ""}
    assert not {"logging", "versioning"} & updated.json.keys()


async def test_public_access_prevention_is_kept(gcs: GcsClient) -> None:
    """Access itself is uniform in each bucket."""
    given = {"iamConfiguration": {"publicAccessPrevention": "enforced"}}
    shown = (await gcs.ask("PATCH", "", given)).json["iamConfiguration"]

    assert shown["publicAccessPrevention"] == "enforced"
    assert shown["uniformBucketLevelAccess"] == {"enabled": True}


@pytest.mark.parametrize(
    "given",
    [
        {"labels": {"Team": "x"}},
        {"labels": {"a": "x" * 64}},
        {"labels": {"a": 5}},
        {"labels": {f"l{number}": "" for number in range(65)}},
        {"lifecycle": {"rule": [{"action": {"type": "Burn"}, "condition": {"age": 1}}]}},
        {"lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {}}]}},
        {"lifecycle": {"rule": 5}},
        {"cors": {}},
        {"website": "index.html"},
        {"newSetting": {"enabled": True}},
    ],
)
async def test_settings_that_are_invalid_or_unknown_are_refused(
    gcs: GcsClient, given: dict[str, Any]
) -> None:
    """None is taken and forgotten, and nothing of the request is done."""
    answer = await gcs.ask("PATCH", "", {**given, "versioning": {"enabled": True}})

    assert answer.brief == (400, "invalid")
    assert (await gcs.ask("GET", "")).json["metageneration"] == "1"
