"""Define the fault dialect of S3.

Pass it to ``Weather``, ``Climate.from_json`` and ``Fault.from_json``.
"""

from __future__ import annotations

from asynccommit.testing.models.fault_rules import Dialect
from asynccommit.testing.models.s3.refusals import CODES, refuse

WRITES = frozenset(
    {
        *("put", "copy", "copy_part", "delete", "delete_many"),
        *("create_upload", "put_part", "complete_upload", "abort_upload"),
    }
)
"""The operations that change the content of a bucket."""

OPS = (
    *("list_buckets", "bucket", "head", "get", "list", "list_versions"),
    *("list_uploads", "list_parts", *sorted(WRITES), "other"),
)
"""The names of operations in rules, besides ``*``. The model implements those on objects."""

S3 = Dialect(
    name="s3",
    ops=OPS,
    codes=CODES,
    busy="SlowDown",
    timed_out="InternalError",
    refuse=refuse,
)

EXPRESS_WRITES = WRITES | {"rename"}
"""The same for a directory bucket."""

S3_EXPRESS = Dialect(
    name="s3-express",
    ops=(*OPS, "rename", "session"),
    codes=CODES,
    busy="SlowDown",
    timed_out="InternalError",
    refuse=refuse,
)
