"""HMAC keys, service accounts, notification configurations and locked retention."""

from __future__ import annotations

from asynccommit.testing.emulators.gcs.emulator import GcsEmulator
from tests.testing.emulators.gcs.client import Answer, GcsClient

KEYS = "/storage/v1/projects/p/hmacKeys"
TOPIC = {"topic": "//pubsub.googleapis.com/projects/p/topics/t", "event_types": ["OBJECT_DELETE"]}


async def _json(gcs: GcsClient, method: str, target: str, value: object = None) -> Answer:
    return await gcs.send_json(method, target, {} if value is None else value)


async def test_hmac_key_lives(gcs: GcsClient) -> None:
    """A key is made with a secret, listed without, deactivated, and deleted only then."""
    made = (await _json(gcs, "POST", f"{KEYS}?serviceAccountEmail=a@b")).json
    place = f"{KEYS}/{made['metadata']['accessId']}"
    other = await _json(gcs, "GET", place.replace("/p/", "/q/"))

    assert len(made["secret"]) == 40
    assert (await _json(gcs, "GET", place)).json == made["metadata"]
    assert (await _json(gcs, "GET", KEYS)).json["items"] == [made["metadata"]]
    assert other.brief == (404, "notFound")
    assert (await _json(gcs, "DELETE", place)).brief == (400, "invalid")
    changed = (await _json(gcs, "PUT", place, {"state": "INACTIVE"})).json
    assert (changed["state"], changed["etag"] != made["metadata"]["etag"]) == ("INACTIVE", True)
    assert (await _json(gcs, "DELETE", place)).status == 204
    assert (await _json(gcs, "GET", place)).brief == (404, "notFound")
    assert "items" not in (await _json(gcs, "GET", KEYS)).json


async def test_hmac_keys_are_listed_in_pages(gcs: GcsClient) -> None:
    """By project and service account."""
    for email in ("a@b", "a@b", "c@d"):
        await _json(gcs, "POST", f"{KEYS}?serviceAccountEmail={email}")

    first = (await _json(gcs, "GET", f"{KEYS}?maxResults=2")).json
    rest = (await _json(gcs, "GET", f"{KEYS}?pageToken={first['nextPageToken']}")).json
    found = {key["accessId"] for page in (first, rest) for key in page["items"]}
    chosen = (await _json(gcs, "GET", f"{KEYS}?serviceAccountEmail=a@b")).json["items"]

    assert (len(found), len(chosen)) == (3, 2)
    assert (await _json(gcs, "POST", KEYS)).brief == (400, "required")


async def test_hmac_key_that_has_changed_is_not_updated(gcs: GcsClient) -> None:
    """An etag that is given must be the present one; a state must be known."""
    key = (await _json(gcs, "POST", f"{KEYS}?serviceAccountEmail=a@b")).json["metadata"]
    place, change = f"{KEYS}/{key['accessId']}", {"state": "INACTIVE", "etag": key["etag"]}

    assert (await _json(gcs, "PUT", place, {"state": "?"})).brief == (400, "invalid")
    assert (await _json(gcs, "PUT", place, change)).status == 200
    assert (await _json(gcs, "PUT", place, change)).brief == (412, "conditionNotMet")


async def test_service_account(gcs: GcsClient) -> None:
    """Each project has one of its own."""
    targets = [f"/storage/v1/projects/{name}/serviceAccount" for name in ("p", "q", "p")]
    found = [(await _json(gcs, "GET", target)).json["email_address"] for target in targets]

    assert found[0] == found[2] != found[1]


async def test_notification_configurations_are_kept(gcs: GcsClient) -> None:
    """They belong to a bucket, and have numbers."""
    place = "/storage/v1/b/data/notificationConfigs"
    first, second = [(await _json(gcs, "POST", place, TOPIC)).json for _ in range(2)]

    assert first.items() >= {**TOPIC, "id": "1", "payload_format": "JSON_API_V1"}.items()
    assert (await _json(gcs, "GET", f"{place}/2")).json == second
    assert (await _json(gcs, "DELETE", f"{place}/1")).status == 204
    assert (await _json(gcs, "DELETE", f"{place}/1")).brief == (404, "notFound")
    assert (await _json(gcs, "GET", place)).json["items"] == [second]
    assert (await _json(gcs, "POST", place, {"topic": "t"})).brief == (400, "invalid")


async def test_locked_retention_only_grows(gcs: GcsClient) -> None:
    """It needs a policy and the metageneration; then it cannot be taken back."""
    place, lock = "/storage/v1/b/data", "/storage/v1/b/data/lockRetentionPolicy"
    policy = {"retentionPolicy": {"retentionPeriod": "60"}}

    assert (await _json(gcs, "POST", lock)).brief == (400, "required")
    assert (await _json(gcs, "POST", f"{lock}?ifMetagenerationMatch=1")).brief == (400, "invalid")
    await _json(gcs, "PATCH", place, policy)
    stale = await _json(gcs, "POST", f"{lock}?ifMetagenerationMatch=1")
    locked = await _json(gcs, "POST", f"{lock}?ifMetagenerationMatch=2")
    shorter = await _json(gcs, "PATCH", place, {"retentionPolicy": None})
    policy["retentionPolicy"]["retentionPeriod"] = "90"
    longer = await _json(gcs, "PATCH", place, policy)

    assert stale.brief == (412, "conditionNotMet")
    assert locked.json["retentionPolicy"]["isLocked"] is True
    assert shorter.brief == (403, "forbidden")
    assert longer.json["retentionPolicy"]["retentionPeriod"] == "90"


async def test_saved_state_has_keys_and_notifications(gcs: GcsClient) -> None:
    """They are there after a restart, like objects."""
    key = (await _json(gcs, "POST", f"{KEYS}?serviceAccountEmail=a@b")).json["metadata"]
    await _json(gcs, "POST", "/storage/v1/b/data/notificationConfigs", TOPIC)
    state = gcs.emulator.service.dump()

    other = GcsEmulator()
    other.service.load(state)

    assert other.service.hmac_keys.get("p", key["accessId"]).email == "a@b"
    assert list(other.service.get_bucket("data").notifications) == ["1"]
