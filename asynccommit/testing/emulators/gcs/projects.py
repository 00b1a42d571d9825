"""Serve requests about HMAC keys, service accounts and notifications.

They are kept and shown: nothing is signed, and no notification is sent.
"""

from __future__ import annotations

import zlib
from typing import Any

from asynccommit.testing.emulators.gcs.call import GcsCall, number
from asynccommit.testing.emulators.gcs.object_json import Json, b64, wrong
from asynccommit.testing.emulators.gcs.wire import NO_CONTENT, GcsResponse, json_answer, rfc3339
from asynccommit.testing.models.gcs.hmac_keys import HmacKey
from asynccommit.testing.models.gcs.listing import check_most, decode_token, encode_token
from asynccommit.testing.models.gcs.model import GcsService, refuse

_TOPIC = "//pubsub.googleapis.com/"
_MEMBERS = ("payload_format", "event_types", "custom_attributes", "object_name_prefix")


class ProjectRoutes:
    """The operations on what a project and a bucket have besides objects."""

    def __init__(self, service: GcsService, scheme: str) -> None:
        self._service = service
        self._scheme = scheme

    def service_account(self, call: GcsCall) -> GcsResponse:
        """Return the service account of a project; its number is made of the id."""
        email = f"service-{zlib.crc32(call.bucket.encode())}@gs-project-accounts"
        email += ".iam.gserviceaccount.com"
        return json_answer({"kind": "storage#serviceAccount", "email_address": email})

    # --- HMAC keys -----------------------------------------------------------------------------

    def _key(self, call: GcsCall, key: HmacKey) -> Json:
        place = f"projects/{key.project}/hmacKeys/{key.access_id}"
        return {
            "kind": "storage#hmacKeyMetadata",
            "id": f"{key.project}/{key.access_id}",
            "selfLink": f"{call.origin(self._scheme)}/storage/v1/{place}",
            "accessId": key.access_id,
            "projectId": key.project,
            "serviceAccountEmail": key.email,
            "state": key.state,
            "timeCreated": rfc3339(key.created),
            "updated": rfc3339(key.updated),
            "etag": _etag(key),
        }

    def create_key(self, call: GcsCall) -> GcsResponse:
        """Create an HMAC key; its secret is in this response only."""
        email = call.query.get("serviceAccountEmail", "")
        if not email:
            name = "serviceAccountEmail"
            raise refuse("required", f"Required parameter: {name}", location=name)
        key, secret = self._service.hmac_keys.create(call.bucket, email)
        shown = {"kind": "storage#hmacKey", "metadata": self._key(call, key), "secret": secret}
        return json_answer(shown)

    def list_keys(self, call: GcsCall) -> GcsResponse:
        """Return a page of the HMAC keys."""
        query = call.query
        found = self._service.hmac_keys.list(call.bucket, query.get("serviceAccountEmail", ""))
        most = check_most(number(query, "maxResults"), self._service.limits.page)
        after = decode_token(query["pageToken"])[0] if query.get("pageToken") else ""
        found = [key for key in found if key.access_id > after]
        shown: Json = {"kind": "storage#hmacKeysMetadata"}
        if found[most:]:
            shown["nextPageToken"] = encode_token((found[most - 1].access_id, 0, 0))
        if found:
            shown["items"] = [self._key(call, key) for key in found[:most]]
        return json_answer(shown)

    def get_key(self, call: GcsCall) -> GcsResponse:
        """Return the metadata of an HMAC key."""
        return json_answer(self._key(call, self._service.hmac_keys.get(call.bucket, call.name)))

    def update_key(self, call: GcsCall) -> GcsResponse:
        """Activate or deactivate an HMAC key."""
        given, keys = call.json(), self._service.hmac_keys
        found = keys.get(call.bucket, call.name)
        etag = given.get("etag")
        if etag and etag != _etag(found):
            raise refuse("conditionNotMet")
        changed = keys.update(call.bucket, call.name, str(given.get("state", "")), found.version)
        return json_answer(self._key(call, changed))

    def delete_key(self, call: GcsCall) -> GcsResponse:
        """Delete an inactive HMAC key."""
        self._service.hmac_keys.delete(call.bucket, call.name)
        return NO_CONTENT

    # --- notifications -------------------------------------------------------------------------

    def create_notification(self, call: GcsCall) -> GcsResponse:
        """Keep a notification configuration of a bucket."""
        bucket, given = self._service.get_bucket(call.bucket), call.json()
        topic = given.get("topic")
        if not isinstance(topic, str) or not topic.startswith(_TOPIC):
            raise wrong("topic", topic)
        identity = str(max(map(int, bucket.notifications), default=0) + 1)
        kept: dict[str, Any] = {name: given[name] for name in _MEMBERS if name in given}
        bucket.notifications[identity] = {"topic": topic, **kept}
        return json_answer(self._notification(call, identity))

    def _notification(self, call: GcsCall, identity: str) -> Json:
        kept = self._service.get_bucket(call.bucket).notifications.get(identity)
        if kept is None:
            raise refuse("notFound", f"Notification {identity[:100]} was not found.")
        place = f"b/{call.bucket}/notificationConfigs/{identity}"
        return {
            "kind": "storage#notification",
            "id": identity,
            "selfLink": f"{call.origin(self._scheme)}/storage/v1/{place}",
            "etag": identity,
            "payload_format": "JSON_API_V1",
            **kept,
        }

    def list_notifications(self, call: GcsCall) -> GcsResponse:
        """Return the notification configurations of a bucket."""
        names = self._service.get_bucket(call.bucket).notifications
        shown: Json = {"kind": "storage#notifications"}
        if names:
            shown["items"] = [self._notification(call, name) for name in names]
        return json_answer(shown)

    def get_notification(self, call: GcsCall) -> GcsResponse:
        """Return a notification configuration."""
        return json_answer(self._notification(call, call.name))

    def delete_notification(self, call: GcsCall) -> GcsResponse:
        """Delete a notification configuration."""
        self._notification(call, call.name)
        del self._service.get_bucket(call.bucket).notifications[call.name]
        return NO_CONTENT


def _etag(key: HmacKey) -> str:
    return b64(f"{key.version}".encode())
