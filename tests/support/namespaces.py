"""Functions of tests that run where they may mount what they like, and nobody else sees it.

``in_namespace(function, *args)`` runs a function of a test's module in a process with a user and a
mount namespace of its own, and returns what it returns, as JSON. In there ``mount``, ``bind``,
``tmpfs`` and ``overlay`` work for any user; what they mount is gone when the process ends. Where
the kernel forbids one of them the test is skipped, with what the system said.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).parents[2]
_FORBIDDEN, _SAID = 77, "said: "


class ForbiddenError(Exception):
    """The kernel allows no such mount here."""


def in_namespace(
    function: Callable[..., Any], *args: Any, seconds: float = 120, superuser: bool = False
) -> Any:
    """Run ``function``, which is at the top of its module, in namespaces of its own.

    Args:
        function: sync or async; what it returns is turned into JSON.
        args: for it; turned into JSON on the way.
        seconds: how long it may take.
        superuser: in a mount namespace only, where other users are what they are outside; the
            test is skipped unless it runs as the superuser.

    Raises ``AssertionError`` with all that it printed if it fails.
    """
    return _run(_unshare(superuser), function, args, seconds)


def as_nobody(function: Callable[..., Any], *args: Any, seconds: float = 120) -> Any:
    """Run ``function`` as ``in_namespace`` does, as a user who owns nothing, in no namespace.

    The test is skipped unless it runs as the superuser.
    """
    if os.geteuid() != 0:
        pytest.skip("only the superuser can be another user too")
    return _run([], function, args, seconds, uid=65534)


def _run(
    prefix: list[str],
    function: Callable[..., Any],
    args: Any,
    seconds: float,
    uid: int | None = None,
) -> Any:
    name = f"{function.__module__}:{function.__qualname__}"
    inside = [sys.executable, "-m", "tests.support.namespaces", name, json.dumps(args)]
    inside += [] if uid is None else [str(uid)]
    done = subprocess.run(
        [*prefix, *inside],
        cwd=_ROOT,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode == _FORBIDDEN:
        pytest.skip(done.stderr.strip().rpartition("\n")[2])
    assert done.returncode == 0, f"{name}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.rpartition(_SAID)[2])


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(_ROOT), *sys.path])
    return {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _unshare(superuser: bool) -> list[str]:
    """Return the command that makes the namespaces; skip the test if none does."""
    ways = [] if superuser else [["unshare", "--user", "--map-root-user", "--mount"]]
    if os.geteuid() == 0:
        ways.append(["unshare", "--mount"])
    why = "only the superuser can"
    for way in ways:
        try:
            tried = subprocess.run([*way, "true"], capture_output=True, text=True, check=False)
        except OSError as error:
            pytest.skip(f"no namespaces here: {error}")
        if tried.returncode == 0:
            return way
        why = tried.stderr.strip()
    pytest.skip(f"no mount namespace can be made: {why}")


# --- inside --------------------------------------------------------------------------------------


def mount(*args: str | Path) -> None:
    """Mount something, as ``mount(8)`` does. Raises ``ForbiddenError``."""
    try:
        done = subprocess.run(["mount", *args], capture_output=True, text=True, check=False)
    except OSError as error:
        raise ForbiddenError(str(error)) from error
    if done.returncode:
        raise ForbiddenError(f"{' '.join(map(str, args))}: {done.stderr.strip()}")


def unmount(place: str | Path) -> None:
    """Take away what was mounted last at ``place``."""
    subprocess.run(["umount", place], check=True)


def tmpfs(place: str | Path, **options: str | int) -> None:
    """Mount a new filesystem in memory, as with ``size="1m"`` and ``nr_inodes=100``."""
    Path(place).mkdir(parents=True, exist_ok=True)
    text = ",".join(f"{name}={value}" for name, value in options.items())
    mount("-t", "tmpfs", *(["-o", text] if text else []), "tmpfs", place)


def bind(source: str | Path, place: str | Path) -> None:
    """Let a file or directory be at ``place`` too."""
    mount("--bind", source, place)


def overlay(lower: str | Path, place: str | Path, layers: str | Path) -> None:
    """Mount what is in ``lower`` at ``place``, with changes to it kept in ``layers``."""
    upper, work = Path(layers, "upper"), Path(layers, "work")
    for directory in (upper, work, Path(place)):
        directory.mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    try:
        mount("-t", "overlay", "-o", f"{options},userxattr", "overlay", place)
    except ForbiddenError:
        mount("-t", "overlay", "-o", options, "overlay", place)


def _main(name: str, args: str, uid: str = "") -> None:
    module, _, function = name.partition(":")
    wanted = getattr(import_module(module), function)
    if uid:  # the interpreter's own files may be closed to others
        os.setgroups([])
        os.setgid(int(uid))
        os.setuid(int(uid))
    try:
        answer = wanted(*json.loads(args))
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
    except ForbiddenError as error:
        sys.stderr.write(f"\nthe kernel forbids it: {str(error).splitlines()[0]}\n")
        sys.exit(_FORBIDDEN)
    sys.stdout.write(_SAID + json.dumps(answer))


if __name__ == "__main__":
    # Of this module there are two now; the error that tests raise is the other one's.
    import_module("tests.support.namespaces")._main(*sys.argv[1:])
