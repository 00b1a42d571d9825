"""The HMAC keys of a project.

Source: https://cloud.google.com/storage/docs/json_api/v1/projects/hmacKeys
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse

ACTIVE, INACTIVE = "ACTIVE", "INACTIVE"
_SECRET = 30  # bytes, 40 characters as base64


class HmacKey(NamedTuple):
    """The metadata of a key; its secret is returned once and not kept.

    Attributes:
        access_id: its name.
        project: id of the project.
        email: the service account whose key it is.
        created: seconds since the epoch.
        updated: seconds since the epoch.
        state: ``ACTIVE`` or ``INACTIVE``.
        version: 1, plus one for each change.
    """

    access_id: str
    project: str
    email: str
    created: float
    updated: float
    state: str = ACTIVE
    version: int = 1


class HmacKeys:
    """The keys of all projects; nothing is signed with them."""

    def __init__(self, now: Callable[[], float], new_id: Callable[[], str]) -> None:
        self._now = now
        self._new_id = new_id
        self._keys: dict[str, HmacKey] = {}

    def dump(self) -> Mapping[str, HmacKey]:
        """Return what is kept, shared and not copied."""
        return self._keys

    def load(self, state: Any) -> None:
        """Keep what ``dump`` returned."""
        self._keys = state

    def create(self, project: str, email: str) -> tuple[HmacKey, str]:
        """Create a key of a service account; return it with its secret."""
        now = self._now()
        access_id = f"GOOG1E{self._new_id().replace('-', '').upper()}"
        digest = hashlib.sha256(self._new_id().encode()).digest()
        made = HmacKey(access_id, project, email, now, now)
        self._keys[access_id] = made
        return made, base64.b64encode(digest[:_SECRET]).decode()

    def get(self, project: str, access_id: str) -> HmacKey:
        """Return a key. Rejected if it does not exist (404)."""
        found = self._keys.get(access_id)
        if found is None or found.project != project:
            raise refuse("notFound", f"Access ID not found in project {project}.")
        return found

    def list(self, project: str, email: str = "") -> list[HmacKey]:
        """Return the keys of a project, or of a service account, by name."""
        found = [key for key in self._keys.values() if key.project == project]
        return sorted(key for key in found if not email or key.email == email)

    def update(self, project: str, access_id: str, state: str, version: int | None) -> HmacKey:
        """Change the state of a key.

        Rejected if ``version`` is given and is another than the key's (412).
        """
        found = self.get(project, access_id)
        if version is not None and version != found.version:
            raise refuse("conditionNotMet")
        if state not in (ACTIVE, INACTIVE):
            raise refuse("invalid", f"Invalid state: expected {ACTIVE} or {INACTIVE}.")
        made = found._replace(state=state, updated=self._now(), version=found.version + 1)
        self._keys[access_id] = made
        return made

    def delete(self, project: str, access_id: str) -> None:
        """Delete a key. Rejected while it is active (400)."""
        if self.get(project, access_id).state == ACTIVE:
            raise GcsRefusal(400, "invalid", "Cannot delete keys in 'ACTIVE' state.")
        del self._keys[access_id]
