"""Machines: namespaces with a network, a file tree, a name and processes of their own.

A *yard* is where they stand: a process with namespaces of its own, whose network has the bridge to
which all machines are connected. No address of theirs exists outside of it, and the kernel ends
all of it with the yard's first process, however that ends.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from tests.field.place import MissingError, StartError, TooLongError
from tests.support.snippets import ROOT

NETWORK = "10.77.0."
_YARD = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_NOWHERE = "02:00:00:00:00:00"
_SYSTEM = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64")
_BOOT = """
set -e
name=$1 root=$2; shift 2
hostname "$name"
mount -t tmpfs "$name" "$root"
mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/home"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
while [ $# -gt 0 ]; do
    if [ -L "$1" ]; then cp -P "$1" "$root$2"; shift 2; continue; fi
    if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root${2%/*}"; fi
    [ -e "$root$2" ] || touch "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
    shift 2
done

exec chroot "$root" sh -c "echo ready; exec sleep infinity"
"""


class Machine:
    """A machine of the yard.

    Args:
        name: its host name; others find it by that.
        number: the last part of its address.
        tree: what it sees of this machine's files, by its own paths; it can change none of them.
    """

    def __init__(self, name: str, number: int, tree: Mapping[str, Path]) -> None:
        self.name, self.number, self.address = name, number, f"{NETWORK}{number}"
        self._connect()
        root = Path("/run/machines") / name
        root.mkdir(parents=True, exist_ok=True)
        seen = {**{path: Path(path) for path in _SYSTEM if Path(path).exists()}, **tree}
        pairs = [part for path, source in seen.items() for part in (str(source), path)]
        command = ["nsenter", f"--net=/run/netns/{name}", "unshare", "--mount", "--uts", "--ipc"]
        command += ["--pid", "--fork", "--kill-child", "sh", "-c", _BOOT, "boot", name, str(root)]
        self._first = subprocess.Popen(
            [*command, *pairs], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._first.stdout is not None
        if (said := self._first.stdout.readline()) != "ready\n":
            raise MissingError(f"no machine can be made in namespaces here: {said.strip()}")
        below = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children")
        self._init = int(below.read_text("utf-8").split()[0])
        self._space = os.readlink(f"/proc/{self._init}/ns/pid")

    def _connect(self) -> None:
        outside, inside = f"v{self.number}", ("-n", self.name)
        _ip("netns", "add", self.name)
        _ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        _ip("link", "set", outside, "master", "bridge", "up")
        _ip(*inside, "link", "set", "lo", "up")
        _ip(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        _ip(*inside, "link", "set", "eth0", "up")

    @property
    def root(self) -> Path:
        """Return its file tree, as the yard sees it."""
        return Path(f"/proc/{self._init}/root")

    def start(
        self, command: Sequence[str], variables: Mapping[str, str], log: IO[str], folder: str = "/"
    ) -> subprocess.Popen[str]:
        """Start a program with these variables and no others."""
        enter = ["nsenter", "--target", str(self._init), "--mount", "--uts", "--ipc", "--net"]
        enter += ["--pid", "--root", "env", "-i", f"--chdir={folder}"]
        said = [f"{key}={value}" for key, value in variables.items()]
        return subprocess.Popen(
            [*enter, *said, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def processes(self, words: str) -> list[int]:
        """Return its processes whose command line has these words."""
        return [number for number in _numbers() if _is(number, self._space, words)]

    def signal(self, words: str, number: signal.Signals) -> int:
        """Send a signal to each process whose command line has these words; return how many."""
        found = self.processes(words)
        for process in found:
            os.kill(process, number)
        return len(found)

    def cut(self, *others: Machine) -> None:
        """Drop what it sends to others, without a word to either."""
        for other in others:
            _ip("-n", self.name, "neigh", "replace", *_neighbour(other), "lladdr", _NOWHERE)

    def mend(self, *others: Machine) -> None:
        """Undo ``cut``."""
        for other in others:
            _ip("-n", self.name, "neigh", "del", *_neighbour(other))

    def unplug(self) -> None:
        """Take its cable out."""
        _ip("link", "set", f"v{self.number}", "down")

    def plug(self) -> None:
        """Undo ``unplug``."""
        _ip("link", "set", f"v{self.number}", "up")

    def die(self) -> None:
        """End it at once: its processes, its files and its network."""
        self.unplug()
        self._first.kill()
        self._first.wait()
        _ip("link", "del", f"v{self.number}")
        _ip("netns", "del", self.name)


class Yard:
    """The machines of this process, which ``in_yard`` has started."""

    def __init__(self) -> None:
        self._number = 1
        _run("mount", "-t", "tmpfs", "yard", "/run")
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "bridge", "type", "bridge")
        _ip("link", "set", "bridge", "up")
        _ip("addr", "add", f"{NETWORK}1/24", "dev", "bridge")

    def machine(self, name: str, tree: Mapping[str, Path], names: Sequence[str]) -> Machine:
        """Make a machine.

        Args:
            name: its name.
            tree: what it sees of this machine's files.
            names: the names that it knows, of which the first has the address after the yard's.
        """
        hosts = Path("/run/hosts")
        lines = [f"{NETWORK}{number} {each}\n" for number, each in enumerate(names, 2)]
        hosts.write_text("127.0.0.1 localhost\n" + "".join(lines), "utf-8")
        number = names.index(name) + 2
        return Machine(name, number, {**tree, "/etc/hosts": hosts})


def _neighbour(other: Machine) -> tuple[str, ...]:
    return other.address, "dev", "eth0"


def _numbers() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _is(number: int, space: str, words: str) -> bool:
    try:
        line = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return words in line and os.readlink(f"/proc/{number}/ns/pid") == space
    except OSError:  # it has ended
        return False


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingError(f"machines need {command[0]}: {error}") from error
    if done.returncode:
        raise MissingError(f"{' '.join(command)}: {done.stderr.strip()}")


# --- from outside --------------------------------------------------------------------------------

_MISSING = 77


def in_yard(module: str, request: Mapping[str, Any], timeout: float) -> Any:
    """Run ``module.main(yard, request)`` in a yard; return what it returns, by JSON.

    Raises ``MissingError`` where namespaces cannot be made, ``StartError`` if it fails, and
    ``TooLongError``. Nothing that it has started is left in any case.
    """
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = [*_unshare(), *user, *_YARD, sys.executable, "-m", __name__]
    with (
        _alive() as reader,
        subprocess.Popen(
            [*command, module, json.dumps(request)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=reader,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise TooLongError(f"{module} took more than {timeout:.0f} s") from error
        finally:
            process.kill()
    if process.returncode == _MISSING:
        raise MissingError(errors.strip().rpartition("\n")[2])
    if process.returncode:
        raise StartError(f"{module} ended with {process.returncode}:\n{output}\n{errors}")
    return json.loads(output)


@contextmanager
def _alive() -> Iterator[int]:
    """Yield the end of a pipe that ends when this process does."""
    reader, writer = os.pipe()
    try:
        yield reader
    finally:
        os.close(reader)
        os.close(writer)


def _unshare() -> list[str]:
    if not (found := shutil.which("unshare")) or not shutil.which("ip"):
        raise MissingError("machines need unshare and ip: install util-linux and iproute2")
    return [found]


def _main(module: str, request: str) -> None:
    """Be the first process of a yard; end it when the process that has asked for it ends."""
    threading.Thread(target=_watch, daemon=True).start()
    try:
        answer = import_module(module).main(Yard(), json.loads(request))
    except MissingError as error:
        sys.stderr.write(f"\n{error}".rstrip())
        sys.exit(_MISSING)
    sys.stdout.write(json.dumps(answer))


def _watch() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    _main(*sys.argv[1:])
