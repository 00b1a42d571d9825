"""Check a server of S3 against the rules of the stores: one line a rule.

    python -m tests.witness.s3_server http://HOST:PORT BUCKET [KEY SECRET]

The bucket must exist. Each rule uses a directory of its own in it, which stays.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence

import pytest

from asynccommit.runtime.host import this_host
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.urls import parse_url
from tests.support.contract import FLAT_RULES, name_of
from tests.support.contract_multipart import MULTIPART_RULES
from tests.support.s3_servers import KEY, SECRET, options


async def check(store: S3Store, run: str) -> AsyncIterator[tuple[str, str]]:
    """Yield each rule, and how the server breaks it: empty if it keeps the rule."""
    for number, rule in enumerate((*FLAT_RULES, *MULTIPART_RULES)):
        root = f"/{run}/{number}"
        try:
            await store.mkdir(root)
            await rule(store, root)
        except (Exception, pytest.fail.Exception) as error:
            said = " ".join(str(error).split())[:160]
            yield name_of(rule), f"{type(error).__name__}: {said}"  # type: ignore[arg-type]
        else:
            yield name_of(rule), ""  # type: ignore[arg-type]


async def run(url: str, bucket: str, key: str, secret: str) -> int:
    """Print the table; return the number of rules that the server breaks."""
    given = {**options(url), "key": key, "secret": secret}
    store = S3Store(parse_url(f"s3://{bucket}/"), given, environ={})
    kept = broken = 0
    try:
        async for name, said in check(store, this_host().new_id()[:8]):
            sys.stdout.write(f"{'no' if said else 'yes':4}{name} {said}\n")
            kept, broken = kept + (not said), broken + bool(said)
    finally:
        await store.aclose()
    sys.stdout.write(f"{kept} of {kept + broken} rules are kept\n")
    return broken


def main(arguments: Sequence[str]) -> int:
    """Check the server; return the exit code."""
    if len(arguments) not in (2, 4):
        sys.exit(__doc__)
    url, bucket, *keys = arguments
    key, secret = keys or (KEY, SECRET)
    return int(bool(asyncio.run(run(url, bucket, key, secret))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
