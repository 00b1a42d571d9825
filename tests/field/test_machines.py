"""Machines of a yard: what they see of each other, and what is left of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.field.machines import NETWORK, Machine, Yard, in_yard
from tests.field.place import MissingError, StartError, TooLongError
from tests.support.snippets import ROOT
from tests.support.spark import wait_until

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

_NAMES = ("one", "two")
_MARK = "86399"  # seconds of a sleep that no other program sleeps
_PYTHON = Path(sys.base_prefix, "bin/python3")
_SERVE = "import socket; it = socket.create_server(('', 80)); print('ready', flush=True)"
_ACCEPT = f"{_SERVE}\nwhile True: it.accept()[0].sendall(b'served')"
_ASK = "import socket; print(socket.create_connection(('two', 80), 1).recv(6).decode())"


def yard(act: str, timeout: float = 100) -> Any:
    """Let something be done in a yard; skip the test where there can be none."""
    try:
        return in_yard(__name__, {"act": act}, timeout)
    except MissingError as error:
        pytest.skip(str(error))


def main(yard: Yard, request: Mapping[str, Any]) -> Any:
    """Make two machines and do what is asked, in the yard."""
    base = Path(sys.base_prefix)
    tree = {} if base.is_relative_to("/usr") else {str(base): base}
    one, two = (yard.machine(name, tree, _NAMES) for name in _NAMES)
    return _ACTS[request["act"]](one, two)


def _run(machine: Machine, *command: str) -> str:
    """Run a program on a machine; return its last line."""
    with Path("/run/output").open("w+") as log:
        machine.start(command, {"PATH": "/usr/sbin:/usr/bin:/bin"}, log).wait(10)
        log.seek(0)
        return (log.read().splitlines() or [""])[-1]


def _python(machine: Machine, code: str) -> str:
    return _run(machine, str(_PYTHON), "-c", code)


def _sleep(machine: Machine) -> None:
    with Path(os.devnull).open("w") as log:
        machine.start(["sleep", _MARK], {"PATH": "/usr/bin:/bin"}, log)


def _look(one: Machine, two: Machine) -> dict[str, Any]:
    (one.root / "home/note").write_text("of one", "utf-8")
    seen = f"import os; print(*(os.path.exists(it) for it in ('/home/note', {str(ROOT)!r})))"
    return {
        "names": [_run(machine, "hostname") for machine in (one, two)],
        "own": _python(one, seen),
        "other": _python(two, seen),
        "write": _run(one, "touch", "/usr/bin/touched"),
        "variables": _run(one, "env"),
        "first": _run(one, "ps", "-o", "args=", "1"),
        "addresses": [one.address, two.address],
    }


def _cut(one: Machine, two: Machine) -> list[str]:
    with Path("/run/server").open("w") as log:
        two.start([str(_PYTHON), "-c", _ACCEPT], {}, log)
    while "ready" not in Path("/run/server").read_text("utf-8"):
        time.sleep(0.01)
    answers = [_python(one, _ASK)]
    one.cut(two)
    answers.append(_python(one, _ASK))
    one.mend(two)
    two.unplug()
    answers.append(_python(one, _ASK))
    two.plug()
    return [*answers, _python(one, _ASK)]


def _die(one: Machine, two: Machine) -> tuple[int, int]:
    for machine in (one, two):
        _sleep(machine)
    while not (one.processes(_MARK) and two.processes(_MARK)):
        time.sleep(0.01)
    killed = two.signal(_MARK, signal.SIGKILL)
    one_left = one.processes(_MARK)
    one.die()
    while two.processes(_MARK) or one.processes(_MARK):
        time.sleep(0.01)
    return killed, len(one_left)


def _fail(one: Machine, two: Machine) -> None:
    _sleep(one)
    raise StartError("something is wrong")


def _stay(one: Machine, two: Machine) -> None:
    _sleep(one)
    time.sleep(120)


_ACTS = {"look": _look, "cut": _cut, "die": _die, "fail": _fail, "stay": _stay}


def test_a_machine_has_a_name_a_tree_and_a_network_of_its_own() -> None:
    """A machine sees nothing of another or of this one's work, and can change no program."""
    found = yard("look")

    assert found["names"] == list(_NAMES)
    assert (found["own"], found["other"]) == ("True False", "False False")
    assert "Read-only" in found["write"]
    assert found["variables"].startswith("PATH=")
    assert found["first"] == "sleep infinity"


def test_addresses_of_machines_exist_in_their_yard_only() -> None:
    """This machine has none of the addresses, and no way to them."""
    for address in yard("look")["addresses"]:
        assert address.startswith(NETWORK)
        with socket.socket() as here, pytest.raises(OSError, match="assign requested address"):
            here.bind((address, 0))


def test_what_is_cut_comes_back() -> None:
    """A machine that is cut off or unplugged is out of reach until that is undone."""
    served, cut, unplugged, again = yard("cut")

    assert (served, again) == ("served", "served")
    assert "timed out" in cut
    assert "timed out" in unplugged or "unreachable" in unplugged.lower()


def test_a_dead_machine_takes_its_processes_along() -> None:
    """Processes end with their machine, and a signal reaches those of one machine only."""
    assert yard("die") == [1, 1]


def test_nothing_is_left_of_a_yard_that_fails() -> None:
    """All processes end with a failure, and with the time that a yard may take."""
    for act, timeout, error in (("fail", 100, StartError), ("stay", 2, TooLongError)):
        with pytest.raises(error):
            yard(act, timeout)
        assert wait_until(lambda: not _sleeping(), 30)


def test_nothing_is_left_of_a_yard_whose_owner_is_killed() -> None:
    """All processes end with the one that has made the yard, even if it is killed."""
    yard("look")  # skips where there can be none
    code = (
        f"from tests.field.machines import in_yard; in_yard({__name__!r}, {{'act': 'stay'}}, 110)"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as owner:
        assert wait_until(_sleeping, 100)
        owner.kill()
    assert wait_until(lambda: not _sleeping(), 30)


def _sleeping() -> list[str]:
    """Return the processes of any machine that sleep."""
    return [name for name in os.listdir("/proc") if name.isdigit() and _MARK in _line(name)]


def _line(number: str) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text("utf-8")
    except OSError:
        return ""
