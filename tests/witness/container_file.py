"""The instructions of a Containerfile, carried out in changed roots where there is no engine.

What an image of Python has is taken from this machine: each stage begins with its root below a
layer of its own, in memory, which a private mount namespace takes away at the end. So what the
image's distribution lacks, and this machine has, is not found out.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.namespaces import bind, mount, overlay, tmpfs

_PYTHON = Path(sys.base_prefix, "bin")
_PATH = f"{_PYTHON}:/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"
# How this machine reaches its index of packages.
_PASSED = re.compile(r"(PIP|UV)_|SSL_CERT|REQUESTS_CA_BUNDLE|.*_proxy$", re.IGNORECASE)


@dataclass
class Stage:
    """A root that instructions have changed, and what they set for the commands in it."""

    root: Path
    folder: str = "/"
    user: str = "0"
    variables: dict[str, str] = field(default_factory=dict)
    entry: list[str] = field(default_factory=list)

    def command(self, words: list[str]) -> list[str]:
        """Return the command that runs ``words`` in here, as the stage's user."""
        home = f"--userspec={self.user}:{self.user}"
        cd = f"cd {shlex.quote(self.folder)} && exec {shlex.join(words)}"
        return ["chroot", home, str(self.root), "/bin/sh", "-c", cd]

    def environment(self) -> Mapping[str, str]:
        """Return the variables of a command, those of the package index included."""
        passed = {name: text for name, text in os.environ.items() if _PASSED.match(name)}
        return {"PATH": _PATH, "HOME": "/root", **passed, **self.variables}

    def run(self, words: list[str]) -> str:
        """Run a command and return what it printed; raise ``CalledProcessError`` if it fails."""
        done = subprocess.run(
            self.command(words),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
            check=True,
        )
        return done.stdout


def build(containerfile: Path, layers: Path) -> Stage:
    """Carry out all stages, below ``layers``, and return the last one.

    Raises ``ValueError`` for an instruction that this cannot carry out.
    """
    tmpfs(layers)
    stages: dict[str, Stage] = {}
    stage = None
    for name, text in _instructions(containerfile.read_text("utf-8")):
        if name == "FROM":
            called = text.partition(" AS ")[2] or "last"
            stage = stages[called] = Stage(_root(layers / called))
        elif stage is None:
            raise ValueError(f"{name} comes before FROM")
        else:
            _carry_out(name, text, stage, stages, containerfile.parent)
    return stages["last"]


def _instructions(text: str) -> list[tuple[str, str]]:
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", "").splitlines()
    pairs = [line.partition(" ") for line in lines if line.strip()]
    return [(name, rest.strip()) for name, _, rest in pairs]


def _carry_out(
    name: str, text: str, stage: Stage, stages: Mapping[str, Stage], context: Path
) -> None:
    if name == "RUN":
        stage.run(["/bin/sh", "-ec", text])
    elif name == "COPY":
        _copy(shlex.split(text), stage, stages, context)
    elif name == "WORKDIR":
        stage.folder = text
        (stage.root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
    elif name == "USER":
        stage.user = text
    elif name == "ENV":
        variable, _, value = text.partition("=")
        stage.variables[variable] = value.replace("$PATH", _PATH)
    elif name == "ENTRYPOINT":
        stage.entry = re.findall(r'"([^"]*)"', text)
    elif name != "CMD":
        raise ValueError(f"the instruction {name} is not known here")


def _copy(words: list[str], stage: Stage, stages: Mapping[str, Stage], context: Path) -> None:
    base = context
    if words[0].startswith("--from="):
        base = stages[words.pop(0).partition("=")[2]].root
    *sources, into = words
    place = stage.root / os.path.join(stage.folder, into).lstrip("/")
    for source in sources:
        found = base / source.lstrip("/")
        if found.is_dir():
            shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(found, place)


def _root(layers: Path) -> Path:
    """Return this machine's root, below a layer of its own, as the image of Python has it."""
    root = layers / "root"
    overlay("/", root, layers)
    mount("-t", "proc", "proc", root / "proc")
    bind("/dev", root / "dev")
    tmpfs(root / "tmp", mode="1777")
    python = root / _PYTHON.relative_to("/") / "python"
    if not python.exists():
        python.symlink_to(f"python3.{sys.version_info.minor}")
    (root / "root").chmod(0o711)  # Python may be below it
    for name in ("passwd", "shadow", "group", "gshadow"):  # the image has no user but its own
        _leave_out_users(root / "etc" / name)
    return root


def _leave_out_users(file: Path) -> None:
    if not file.is_file():
        return
    kept = [
        line
        for line in file.read_text("utf-8").splitlines(keepends=True)
        if not any(part.isdecimal() and 1000 <= int(part) < 60000 for part in line.split(":")[2:4])
    ]
    file.write_text("".join(kept), "utf-8")


def built_and_served(containerfile: str, layers: str) -> Any:
    """Build, and return the version, and what a client stored in the emulator that was served."""
    from azure.storage.blob import BlobServiceClient

    from asynccommit.testing.emulators.adls.auth import (
        DEVELOPMENT_ACCOUNT,
        DEVELOPMENT_KEY,
        connection_string,
    )

    stage = build(Path(containerfile), Path(layers))
    version = stage.run([*stage.entry, "--version"]).strip()
    server = subprocess.Popen(
        stage.command([*stage.entry, "emulate", "adls", "-f", "data", "--port", "0", "--json"]),
        env=stage.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        try:
            assert server.stdout is not None
            line = next(line for line in server.stdout if '"port"' in line)
            url = f"http://127.0.0.1:{re.findall('[0-9]+', line)[0]}/{DEVELOPMENT_ACCOUNT}"
            address = connection_string(url, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY)
            with BlobServiceClient.from_connection_string(address) as service:
                container = service.get_container_client("data")
                container.upload_blob("day=1/a.csv", b"AA,JFK\n")
                content = container.download_blob("day=1/a.csv").readall().decode()
            uid = Path(f"/proc/{server.pid}").stat().st_uid
        finally:
            server.terminate()
    return {"version": version, "content": content, "uid": uid}
