"""How near our clients come to an account's limit, alone and two at a time; and to its latency."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from bench.child import Child

WORKERS = 128
RATES = (1_000, 5_000)
SHARED_RATE = 2_000
LATENCY = 0.030
IN_FLIGHT = 64
TARGETS = {"reached": 0.98, "refused": 0.005, "of_half": 0.10, "latency": 0.05}

_ALONE = 40  # requests sent one at a time, to learn the latency
_CLIENT = "bench.adls.client"
_Sample = list[float]


def alone(service: Child, *, quick: bool) -> list[dict[str, Any]]:
    """One client at each of ``RATES``: what share of the limit it reaches, and is refused."""
    warm, seconds = (8.0, 6.0) if quick else (15.0, 30.0)
    return [_press(service, rate, 1, warm, seconds)[0] for rate in RATES]


def together(service: Child, *, quick: bool) -> dict[str, Any]:
    """Two client processes on one account: what each gets of half of the limit."""
    warm, seconds = (10.0, 8.0) if quick else (30.0, 40.0)
    return {
        "limit": SHARED_RATE,
        "clients": _press(service, SHARED_RATE, 2, warm, seconds),
        "target_of_half": TARGETS["of_half"],
    }


def _press(
    service: Child, rate: int, clients: int, warm: float, seconds: float
) -> list[dict[str, Any]]:
    """Let clients send as much as they are let through; judge what came after ``warm``."""
    service.ask("reset")
    host = service.ask("host")
    with ExitStack() as running:
        pressing = [running.enter_context(Child(_CLIENT)) for _ in range(clients)]
        names = [f"client-{number}" for number in range(clients)]
        for name, client in zip(names, pressing, strict=True):
            client.ask("open_store", host=host, in_flight=WORKERS)
            client.ask("make_files", name=name, workers=WORKERS)
        service.ask("weather", climate={"limit": {"rate": rate, "burst": rate // 10}})
        for name, client in zip(names, pressing, strict=True):
            client.tell("press", name=name, workers=WORKERS, seconds=warm + seconds)
        samples = [client.answer() for client in pressing]
        for client in pressing:
            client.ask("close")
    return [_judge(one, rate / clients, warm) for one in samples]


def _judge(samples: Sequence[_Sample], due: float, warm: float) -> dict[str, Any]:
    begin = samples[0][0]
    first = next(sample for sample in samples if sample[0] - begin >= warm)
    last = samples[-1]
    seconds, done, refused, _ = (late - early for late, early in zip(last, first, strict=True))
    whole = last[2] - samples[0][2]
    return {
        "limit": due,
        "seconds": seconds,
        "per_second": done / seconds,
        "reached": done / seconds / due,
        "refused": refused / max(done + refused, 1),
        "refused_from_start": whole / max(last[1] + whole, 1),
        "reached_98_after": _reached(samples, 0.98 * due),
        "rate": last[3],
        "targets": TARGETS,
    }


def _reached(samples: Sequence[_Sample], rate: float) -> float | None:
    """Return after how many seconds the rate of one second came to ``rate`` first."""
    step = 4  # samples of a second
    for early, late in zip(samples, samples[step:], strict=False):
        if (late[1] - early[1]) / (late[0] - early[0]) >= rate:
            return late[0] - samples[0][0]
    return None


def latency(service: Child, *, quick: bool) -> dict[str, Any]:
    """Renames at a fixed latency and no limit, against ``N x latency / in flight``.

    Also against the latency that one request at a time is found to have: the emulator's timers
    and the way there take their time too.
    """
    count, rounds = (6_400, 2) if quick else (38_400, 3)
    service.ask("reset")
    host = service.ask("host")
    with Child(_CLIENT) as client:
        client.ask("open_store", host=host, in_flight=IN_FLIGHT)
        client.ask("make_files", name="latency", workers=IN_FLIGHT)
        service.ask("weather", climate={"latency": {"model": "fixed", "seconds": LATENCY}})
        alone = client.ask("move", name="latency", workers=1, count=_ALONE)["seconds"] / _ALONE
        ideal, measured = (count * seconds / IN_FLIGHT for seconds in (LATENCY, alone))
        first = client.ask("move", name="latency", workers=IN_FLIGHT, count=count)
        taken = [
            client.ask("move", name="latency", workers=IN_FLIGHT, count=count)["seconds"]
            for _ in range(rounds)
        ]
        client.ask("close")
    return {
        "renames": count,
        "in_flight": IN_FLIGHT,
        "latency": LATENCY,
        "ideal_seconds": ideal,
        "first_seconds": first["seconds"],
        "rounds_seconds": taken,
        "over": min(taken) / ideal - 1,
        "first_over": first["seconds"] / ideal - 1,
        "one_seconds": alone,
        "over_measured": min(taken) / measured - 1,
        "target_over": TARGETS["latency"],
    }
