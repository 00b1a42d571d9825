"""Completing uploads that are really there, on moto: everybody does the same, and it is checked."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from asynccommit.demo.moto import serving_moto
from bench.child import Child
from bench.s3.account import BUCKET, KEY, REGION, SECRET, WORKERS, pending
from bench.s3.completers import OURS
from bench.s3.cpu import CLIENT

_CLIENTS = (OURS, "aiobotocore", "botocore, 64 threads")


def run(*, quick: bool) -> dict[str, Any]:
    """Have each client complete uploads of one part, turn by turn; returns medians."""
    count, rounds = (200, 2) if quick else (1_000, 3)
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name in _CLIENTS}
    with ExitStack() as running:
        host = running.enter_context(serving())
        clients = {name: running.enter_context(Child(CLIENT)) for name in _CLIENTS}
        for name, client in clients.items():
            client.ask("open_completer", name=name, host=host, count=0)
        maker = _client(host)
        for number in range(rounds):
            for name, client in clients.items():
                prefix = f"{number}/{name[:4]}"
                client.ask("take", uploads=_begin(maker, prefix, count))
                taken[name].append(client.ask("complete"))
                _check(maker, prefix, count)
        for client in clients.values():
            client.ask("close")
    seconds = {name: median(one["seconds"] for one in found) for name, found in taken.items()}
    cpu = {name: median(one["cpu_us"] for one in found) for name, found in taken.items()}
    return {
        "uploads": count,
        "in_flight": WORKERS,
        "rounds": rounds,
        "seconds": seconds,
        "cpu_us": cpu,
        "times_ours": {name: took / seconds[OURS] for name, took in seconds.items()},
    }


@contextmanager
def serving() -> Iterator[str]:
    """Run moto with the bucket; yield its host and port."""
    with (
        tempfile.TemporaryDirectory(prefix="asynccommit-bench-") as scratch,
        serving_moto(Path(scratch, "moto.log")) as moto,
    ):
        moto.make_bucket(BUCKET)
        yield moto.url.removeprefix("http://")


def _client(host: str) -> Any:
    import botocore.session

    return botocore.session.get_session().create_client(
        "s3",
        endpoint_url=f"http://{host}",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
        region_name=REGION,
    )


def _begin(maker: Any, prefix: str, count: int) -> list[Any]:
    """Begin uploads, send their parts; return key, id and etags of each."""
    begun = []
    for upload in pending(count):
        key = f"{prefix}/{upload.key}"
        made = maker.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
        where = {"Bucket": BUCKET, "Key": key, "UploadId": made}
        part = maker.upload_part(**where, PartNumber=1, Body=key.encode())
        begun.append((key, made, [part["ETag"]]))
    return begun


def _check(maker: Any, prefix: str, count: int) -> None:
    pages = maker.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
    found = sum(len(page.get("Contents", ())) for page in pages)
    if found != count:
        raise RuntimeError(f"{found} of {count} files are there after {prefix}")
