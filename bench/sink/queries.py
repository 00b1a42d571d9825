"""Batches of Spark's file sink, ours beside stock, on a disk, ADLS and S3.

Both queries run in one Spark and write in turns. A whole batch has also what the protocol has no
part in: the tasks' reading and writing, and the log. A commit is the part that it has.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from asynccommit.demo import adls, s3
from asynccommit.demo.emulated import serving
from asynccommit.demo.moto import serving_moto
from asynccommit.errors import AsyncCommitError
from bench.child import Child

FILES = (1, 20, 200)
LATENCY = 0.03
"""Seconds of an answer of ADLS; S3 and the disk answer as soon as they can."""
Place = Mapping[str, Any]


def run(*, quick: bool, folder: str | None) -> dict[str, Any]:
    """Return medians of each store in milliseconds, and what was left out."""
    found: dict[str, Any] = {"latency": LATENCY, "places": {}, "skipped": {}}
    for name, open_place in _PLACES.items():
        with tempfile.TemporaryDirectory(prefix="asynccommit-bench-", dir=folder) as scratch:
            try:
                with open_place(Path(scratch)) as place:
                    found["places"][name] = _measure(place, folder, quick=quick)
            except AsyncCommitError as error:
                found["skipped"][name] = str(error)
    return found


def _measure(place: Place, folder: str | None, *, quick: bool) -> dict[str, Any]:
    # A batch of 200 files takes half a minute on ADLS.
    rounds = {1: 20, 20: 5, 200: 2} if quick else {1: 60, 20: 20, 200: 5}
    with Child("bench.sink.session") as session:
        session.ask("begin", **place, folder=folder)
        batches = {
            n: session.ask("turns", files=n, rounds=rounds[n], warm=1 + rounds[n] // 10)
            for n in FILES
        }
        commits = session.ask("end")
    return {
        str(n): {"rounds": rounds[n], "batch": batches[n], "commit": commits[str(n)]} for n in FILES
    }


@contextmanager
def _disk(scratch: Path) -> Iterator[Place]:
    yield {"root": "", "jars": [], "conf": {}}


@contextmanager
def _adls(scratch: Path) -> Iterator[Place]:
    jar = str(adls.client_jar())
    latency = f"{LATENCY * 1000:.0f}ms"
    arguments = ["--latency", latency, "--limit", "20000", "--filesystem", adls.FILESYSTEM]
    with serving("adls", arguments, scratch / "emulator.log") as emulator:
        root = f"abfs://{adls.FILESYSTEM}@{emulator.facts['account']}.dfs.core.windows.net/bench"
        yield {"root": root, "jars": [jar], "conf": dict(adls.account_conf(emulator))}


@contextmanager
def _s3(scratch: Path) -> Iterator[Place]:
    jars = [str(jar) for jar in s3.client_jars()]
    with serving_moto(scratch / "moto.log") as moto:
        moto.make_bucket(s3.BUCKET)
        conf = {**s3.client_conf(moto.url), "fs.s3a.buffer.dir": str(scratch / "buffer")}
        yield {"root": f"s3a://{s3.BUCKET}/bench", "jars": jars, "conf": conf}


_PLACES: Mapping[str, Callable[[Path], AbstractContextManager[Place]]] = {
    "local disk": _disk,
    f"ADLS at {LATENCY * 1000:.0f} ms": _adls,
    "S3 (moto)": _s3,
}


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "  batches of Spark's file sink, medians in turns: whole batch, and its commit alone"
    yield f"  {'':14} {'files':>5} {'ours':>9} {'stock':>9} {'ratio':>6} {'ours':>9} {'stock':>9}"
    for name, counts in found["places"].items():
        for files, one in counts.items():
            cells = [f"{name:14} {files:>5}"]
            for part in ("batch", "commit"):
                ours, stock = one[part]["ours"], one[part]["stock"]
                ratio = f"{ours / stock:5.2f}x" if stock else f"{'':6}"
                cells.append(f"{ours:6.0f} ms {stock:6.0f} ms {ratio}")
            yield f"  {' '.join(cells)}"
    for name, why in found["skipped"].items():
        yield f"  {name} was left out: {why}"
