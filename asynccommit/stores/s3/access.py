"""Choose among several credentials and regions for a store on S3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.stores.http.option_values import flag
from asynccommit.stores.s3.credentials import Given, OfMachine, S3Credential
from asynccommit.stores.s3.endpoint import S3Endpoint
from asynccommit.stores.s3.hadoop import S3aOptions
from asynccommit.stores.s3.machine import AwsMachine
from asynccommit.stores.s3.sign import SigningKeys

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
            raise OptionError("token is given without key and secret: a session has all three")
        return None
    if not (key and secret):
        raise OptionError(f"{'secret' if key else 'key'} is not given, only the other of the two")
    return SigningKeys(key, secret, token)


def _of_environment(environ: Mapping[str, str]) -> SigningKeys | None:
    key, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    token = environ.get("AWS_SESSION_TOKEN", "") or environ.get("AWS_SECURITY_TOKEN", "")
    return SigningKeys(key, secret, token) if key and secret else None
