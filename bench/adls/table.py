"""What was measured on ADLS, as text for people: each figure beside its target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


def lines(result: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of all rows that were measured."""
    for row, text in _ROWS.items():
        if row in result:
            yield from text(result[row])


def _cpu(found: dict[str, Any]) -> Iterator[str]:
    targets = found["targets"]
    yield (
        f"CPU of the client for one rename, against {found['server']} in another process, "
        f"{found['workers']} in flight, {found['rounds']} rounds of {found['renames']:,}, "
        "turn by turn"
    )
    columns = ("best", "loop's thread", "to ours", "median", "loop's thread", "to ours")
    yield f"  {'':26}" + "".join(f"{word:>14}" for word in columns)
    for name in found["best"]:
        cells = [cell for kind in ("best", "median") for cell in _cost(found[kind], name)]
        yield f"  {name:26}" + "".join(f"{cell:>14}" for cell in cells)
    yield (
        f"  targets: ours < {targets['cpu_us']:.0f} us, of it < {targets['loop_us']:.0f} us with "
        f"the GIL (the loop's thread at most); >= {targets['times_sdk']:.0f}x less than azure sdk, "
        f">= {targets['times_aiohttp']}x less than with aiohttp; the step of a commit <= "
        f"{targets['times_transport']}x the transport alone ({found['times_transport']:.2f})"
    )


def _cost(senders: Mapping[str, Mapping[str, float]], name: str) -> Iterator[str]:
    one = senders[name]
    yield f"{one['cpu_us']:,.1f} us"
    yield f"{one['loop_us']:,.1f} us"
    yield f"{one['cpu_us'] / senders['ours']['cpu_us']:.2f}"


def _tls(found: dict[str, Any]) -> Iterator[str]:
    count, target = found["renames"], found["target_per_second"]
    yield f"Renames over TLS from one process against {found['server']}, {count:,} a round"
    yield _row("renames a second, best round", found["best_per_second"], "", f">= {target:,.0f}")
    yield _row("renames a second, median", found["per_second"], "")
    yield _row("CPU of the client, a rename", found["cpu_us"], "us")
    yield _row("  of it in the loop's thread", found["loop_us"], "us")
    yield _row("CPU of the server, a rename", found["server_cpu_us"], "us")


def _limit(found: list[dict[str, Any]]) -> Iterator[str]:
    yield "One client at an account's limit, after warm-up"
    yield from _shares(found)


def _share(found: dict[str, Any]) -> Iterator[str]:
    yield f"Two client processes on one account that takes {found['limit']:,} requests/s"
    yield from _shares(found["clients"])
    worst = max(abs(one["reached"] - 1) for one in found["clients"])
    yield _row("farthest from half", worst * 100, "%", f"< {found['target_of_half'] * 100:.0f} %")


def _shares(found: list[dict[str, Any]]) -> Iterator[str]:
    head = ("due", "reached", "share", "refused", "98% after", "rate at end")
    yield "  " + "".join(f"{word:>13}" for word in head)
    for one in found:
        after = one["reached_98_after"]
        cells = (
            f"{one['limit']:,.0f}/s",
            f"{one['per_second']:,.1f}/s",
            f"{one['reached'] * 100:.2f} %",
            f"{one['refused'] * 100:.3f} %",
            "never" if after is None else f"{after:.1f} s",
            f"{one['rate']:,.0f}/s",
        )
        yield "  " + "".join(f"{cell:>13}" for cell in cells)
    targets = found[0]["targets"]
    reached, refused = targets["reached"] * 100, targets["refused"] * 100
    yield f"  targets: >= {reached:.0f} % of the limit, < {refused:.1f} % refused"


def _latency(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{found['renames']:,} renames at {found['latency'] * 1000:.0f} ms and no limit, "
        f"{found['in_flight']} in flight: N x latency / in flight is "
        f"{found['ideal_seconds']:.2f} s"
    )
    target = f"< {found['target_over'] * 100:.0f} %"
    yield _row("over it, once the rate is known", found["over"] * 100, "%", target)
    yield _row("over it, from the first request on", found["first_over"] * 100, "%")
    yield _row("one request at a time takes", found["one_seconds"] * 1000, "ms")
    yield _row("over what that makes", found["over_measured"] * 100, "%")


def _commit(found: dict[str, Any]) -> Iterator[str]:
    files = found["tasks"] * found["files"]
    yield (
        f"Job commit on the emulator, {files:,} files of {found['tasks']} tasks in "
        f"{found['partitions']} partitions, turn by turn; Hadoop's ABFS client has "
        f"{found['threads']} threads and no limit of its own, but where it is as it comes"
    )
    head = ("wall", "client CPU", "requests", "server CPU", "ours is", "by CPU")
    for state, title in (("first", "new processes"), ("later", "later commits of a process")):
        rows = found["median"][state]
        title += f", {len(found['rounds'][state]['ours'])} rounds"
        yield f"  {title:36}" + "".join(f"{word:>12}" for word in head)
        for name, one in rows.items():
            cells = _cells(one, found["ratios"][state][name])
            yield f"    {name:34}" + "".join(f"{cell:>12}" for cell in cells)
    if found["skipped"]:
        yield f"  skipped: no Hadoop to compare with: {found['skipped']}"
    yield f"  target: >= {found['target']:.0f}x, by wall and by CPU"


def _small(found: dict[str, Any]) -> Iterator[str]:
    yield (
        f"Job commit of small jobs at {found['latency'] * 1000:.0f} ms a response, later commits "
        f"of a process, {found['rounds']} rounds turn by turn"
    )
    head = ("returned", "ended", "requests", "of Hadoop's", "target")
    yield f"  {'':24}" + "".join(f"{word:>13}" for word in head)
    for shape in found["shapes"]:
        files = shape["tasks"] * shape["files"]
        hadoop = shape["median"].get("hadoop")
        for name, one in shape["median"].items():
            cells = [f"{one['returned']:.2f} s", f"{one['seconds']:.2f} s"]
            cells.append(f"{one['requests']:,.0f}")
            if name == "ours" and hadoop is not None:
                cells.append(f"{one['returned'] / hadoop['returned']:.2f}")
                cells.append(f"<= {shape['target']}")
            title = f"{files} file{'s' if files > 1 else ''}, {name}"
            yield f"  {title:24}" + "".join(f"{cell:>13}" for cell in cells)
    if found["skipped"]:
        yield f"  skipped: no Hadoop to compare with: {found['skipped']}"


def _cells(one: Mapping[str, float], ratio: Mapping[str, float]) -> Iterator[str]:
    yield f"{one['seconds']:.2f} s"
    yield f"{one['cpu']:.2f} s"
    yield f"{one['requests']:,.0f}"
    yield f"{one['server_cpu']:.2f} s"
    yield f"{ratio['seconds']:.2f}x"
    yield f"{ratio['cpu']:.2f}x"


def _row(name: str, value: float, unit: str, target: str = "") -> str:
    return f"  {name:38} {value:11,.2f} {unit:2}  {f'target {target}' if target else ''}".rstrip()


_ROWS: dict[str, Callable[[Any], Iterator[str]]] = {
    "cpu": _cpu,
    "tls": _tls,
    "limit": _limit,
    "share": _share,
    "latency": _latency,
    "commit": _commit,
    "small": _small,
}
