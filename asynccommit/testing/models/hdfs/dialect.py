"""Define the fault dialect of HDFS.

Its codes are the Java classes of a NameNode's exceptions. Pass it to ``Weather``,
``Climate.from_json`` and ``Fault.from_json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.fault_rules import Dialect

OPS = ("create", "mkdir", "rename", "delete", "head", "read", "list")
"""The names of operations in rules, besides ``*``."""

CODES: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "AccessControlException": (403, "Permission denied: user=simulated, access=WRITE"),
        "DSQuotaExceededException": (403, "The DiskSpace quota is exceeded"),
        "NSQuotaExceededException": (403, "The NameSpace quota is exceeded"),
        "SafeModeException": (503, "Name node is in safe mode."),
        "ServerTooBusyException": (503, "Server is too busy to receive call"),
        "SnapshotException": (403, "The directory cannot be deleted since it is snapshottable"),
        "StandbyException": (500, "Operation category is not supported in state standby"),
    }
)
"""The exceptions that rules may use, with a status for HTTP and a message."""


def _refuse(
    code: str, message: str | None = None, headers: Mapping[str, str] | None = None
) -> Refusal:
    status, words = CODES.get(code, (500, code))
    return Refusal(status, code, words if message is None else message, headers)


HDFS = Dialect(
    name="hdfs",
    ops=OPS,
    codes=CODES,
    busy="ServerTooBusyException",
    timed_out="StandbyException",
    refuse=_refuse,
)
