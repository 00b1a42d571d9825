"""Sign requests to S3: with given keys, the machine's, or not at all.

A ``S3Credential`` knows its own secrets, so that no error repeats one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from asynccommit.errors import OptionError
from asynccommit.redact import redact, short
from asynccommit.stores.http.options import flag
from asynccommit.stores.http.tokens import ROOM, Flight, Refusals, TokenError
from asynccommit.stores.s3.endpoint import S3Endpoint
from asynccommit.stores.s3.hadoop import S3aOptions
from asynccommit.stores.s3.machine import AwsMachine, explain
from asynccommit.stores.s3.sign import SigningKeys

_LOOK = 30.0  # seconds between two checks whether keys need renewal
_PATIENCE = 60.0


class S3Credential(Protocol):
    """A credential that signs requests.

    Attributes:
        renew_at: time from which ``renew`` must be awaited before a request; infinite for some.
    """

    renew_at: float

    @property
    def anonymous(self) -> bool:
        """Return whether it signs nothing."""
        ...

    @property
    def keys(self) -> SigningKeys | None:
        """The signing keys; ``None`` before the first ``renew``, and if anonymous."""
        ...

    async def renew(self) -> None:
        """Get keys. Raises ``TokenError`` if there are none to use."""
        ...

    async def refused(self, keys: SigningKeys) -> bool:
        """Record that ``keys`` have expired; return whether there are others."""
        ...

    @property
    def in_doubt(self) -> bool:
        """True while ``accepted`` must be called for requests that succeed."""
        ...

    def accepted(self, keys: SigningKeys) -> None:
        """Record that a request signed with ``keys`` succeeded."""
        ...

    def explain(self) -> str:
        """Return why a renewal did not end the refusals; ``""`` before one."""
        ...

    def hide(self, text: str) -> str:
        """Return ``text`` with every secret in it replaced."""
        ...


class Given:
    """Given keys, until they expire; requests without keys are unsigned."""

    in_doubt = False

    def __init__(self, keys: SigningKeys | None = None) -> None:
        self.renew_at = math.inf
        self._keys = keys

    def __repr__(self) -> str:
        return f"Given({self._keys!r})"

    @property
    def anonymous(self) -> bool:
        return self._keys is None

    @property
    def keys(self) -> SigningKeys | None:
        return self._keys

    async def renew(self) -> None:
        return None

    async def refused(self, keys: SigningKeys) -> bool:
        return False

    def accepted(self, keys: SigningKeys) -> None:
        return None

    def explain(self) -> str:
        if self._keys is None or not self._keys.token:
            return ""
        return (
            "the session that was given (by options or AWS_SESSION_TOKEN) has expired, and only "
            "a profile or a role is renewed by itself: give a new one, then resume"
        )

    def hide(self, text: str) -> str:
        return redact(text, self._keys[1:] if self._keys else ())


class OfMachine:
    """The keys of the machine, renewed before they expire.

    All requests share one renewal; while there are keys, only the request that began it waits.

    Args:
        machine: the source of the keys.
        now: seconds since the epoch.
        patience: maximum number of seconds to find them.
    """

    anonymous = False

    def __init__(
        self, machine: AwsMachine, now: Callable[[], float], *, patience: float = _PATIENCE
    ) -> None:
        self.renew_at = -math.inf
        self._machine = machine
        self._now = now
        self._patience = patience
        self._keys: SigningKeys | None = None
        self._refusals = Refusals[SigningKeys | None]("session", now)
        self._flight = Flight(self._fetch)
        self._anew = Flight(partial(self._fetch, anew=True))

    def __repr__(self) -> str:
        return f"OfMachine({self._machine!r})"

    @property
    def keys(self) -> SigningKeys | None:
        return self._keys

    async def renew(self) -> None:
        if self._keys is not None:
            self.renew_at = self._now() + _LOOK
            if not self._machine.stale():
                return
        failure = await self._flight()
        if failure is not None and self._keys is None:
            raise TokenError(failure.detail, again=failure.again)

    async def refused(self, keys: SigningKeys) -> bool:
        if keys != self._keys:
            return True  # renewed since
        if self._refusals.is_second(keys):
            return False
        failure = await self._anew()
        if failure is not None:
            raise TokenError(failure.detail, again=failure.again)
        return self._refusals.is_renewed(keys, self._keys)

    @property
    def in_doubt(self) -> bool:
        return self._refusals.in_doubt

    def accepted(self, keys: SigningKeys) -> None:
        self._refusals.accepted(keys)

    def explain(self) -> str:
        return self._refusals.explain(self._machine.holder)

    def hide(self, text: str) -> str:
        return redact(text, self._keys[1:] if self._keys else ())

    async def _fetch(self, *, anew: bool = False) -> TokenError | None:
        """Find keys; return what kept it from that."""
        try:
            async with asyncio.timeout(self._patience):
                self._keys = await asyncio.to_thread(self._machine.keys, anew=anew)
        except Exception as error:  # of botocore and all that it asks: the machine tells them apart
            failure = explain(error)
            return TokenError(short(self.hide(failure.detail), ROOM), again=failure.again)
        self.renew_at = self._now() + _LOOK
        return None


# --- the choice among several ----------------------------------------------------------------

_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def credential_of(
    told: Mapping[str, Any],
    hadoop: S3aOptions,
    place: S3Endpoint,
    machine: AwsMachine,
    environ: Mapping[str, str],
    now: Callable[[], float],
) -> S3Credential:
    """Return the credential from the options, or else that of the machine.

    Args:
        told: options; only ``anon``, ``key``, ``secret``, ``token`` and ``profile`` are read.
        hadoop: Hadoop's options, for what ``told`` does not set.
        place: the endpoint for requests.
        machine: finds credentials if none are configured.
        environ: the environment, which precedes files, but not a profile.
        now: seconds since the epoch.

    Raises:
        OptionError: the credential is incomplete, or would be sent unencrypted.
    """
    provider = hadoop.provider()
    if flag(told, "anon") or (provider == "anonymous" and not told.keys() & {"key", "profile"}):
        return Given()
    keys = _of_options(told)
    if keys is None and "profile" not in told:
        keys = hadoop.keys() if provider != "machine" else None
        keys = keys or _of_environment(environ)
    if keys is None:
        return OfMachine(machine, now)
    if keys.token:
        place.refuse_plain("session tokens")
    return Given(keys)


def region_of(told: Mapping[str, Any], hadoop: S3aOptions, environ: Mapping[str, str]) -> str:
    """Return the region from the options or environment, or ``""``."""
    # What Hadoop says for "ask the bucket", and for "ask the SDK".
    named = hadoop.get("endpoint.region")
    named = "" if named in ("sdk", "ec2") else named
    known = (told.get("region"), named, *map(environ.get, _REGIONS))
    return str(next(filter(None, known), "")).strip()


def _of_options(told: Mapping[str, Any]) -> SigningKeys | None:
    key, secret, token = (str(told.get(name, "")).strip() for name in ("key", "secret", "token"))
    if not (key or secret):
        if token:
            raise OptionError("token is given without key and secret: a session needs all three")
        return None
    if not (key and secret):
        raise OptionError(
            f"{'secret' if key else 'key'} is missing: key and secret must be given together"
        )
    return SigningKeys(key, secret, token)


def _of_environment(environ: Mapping[str, str]) -> SigningKeys | None:
    key, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    token = environ.get("AWS_SESSION_TOKEN", "") or environ.get("AWS_SECURITY_TOKEN", "")
    return SigningKeys(key, secret, token) if key and secret else None
