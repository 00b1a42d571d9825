"""The file by which the owner of a commit lets its workers go on.

JSON: ``type``, ``number`` (which grows with each renewal), ``parts`` (among how many workers the
rate of the account is shared) and ``stop``. Readers ignore unknown fields.
"""

from __future__ import annotations

from dataclasses import dataclass

from asynccommit.formats.fields import check_size, dump_object, load_object

TYPE = "asynccommit.CommitGrants/1"
MAX_GRANTS_BYTES = 64 * 1024
"""Maximum number of bytes to read."""
MAX_PARTS = 4096


@dataclass(frozen=True, slots=True)
class Grants:
    """The statement of an owner that it lives.

    Attributes:
        number: another one in each renewal.
        parts: number of workers that share the rate of the account.
        stop: whether the workers must end.
    """

    number: int
    parts: int = 1
    stop: bool = False


def encode_grants(grants: Grants) -> bytes:
    """Return the JSON of the file."""
    value = {
        "type": TYPE,
        "number": grants.number,
        "parts": grants.parts,
        "stop": grants.stop,
    }
    return dump_object(value, "grants.json")


def decode_grants(data: bytes, path: str) -> Grants:
    """Read the file. Raises ``ManifestError`` for anything else."""
    check_size(data, path, MAX_GRANTS_BYTES)
    fields = load_object(data, path)
    fields.is_type(TYPE)
    return Grants(
        fields.count("number"),
        fields.count("parts", minimum=1, maximum=MAX_PARTS),
        fields.boolean("stop"),
    )
