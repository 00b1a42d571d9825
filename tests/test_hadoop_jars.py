"""Jars from Maven: fetched once, compared with what is known of them, and why there is none."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from asynccommit.demo import hadoop_gcs
from asynccommit.demo.hadoop_jars import cached_jar
from asynccommit.errors import UnsupportedError

FETCHES = """#!/bin/sh
for word in "$@"; do
  case "$word" in -DoutputDirectory=*) printf jar > "${word#*=}/a-1.jar" ;; esac
done
"""
FAILS = "#!/bin/sh\necho '[ERROR] no such artifact'\nexit 1\n"
DIGEST = sha256(b"jar").hexdigest()


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the first directory on the path, with a cache of this test's own."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return directory


def maven(directory: Path, script: str) -> None:
    """Put a program in Maven's place."""
    program = directory / "mvn"
    program.write_text(script)
    program.chmod(0o755)


def test_jar_is_fetched_once(bin_: Path) -> None:
    """Maven is asked once; then the file is there, with nothing beside it."""
    maven(bin_, FETCHES)
    jar = cached_jar("g:a:1", "a-1.jar", DIGEST)
    maven(bin_, FAILS)

    assert cached_jar("g:a:1", "a-1.jar", DIGEST) == jar
    assert [file.read_bytes() for file in jar.parent.iterdir()] == [b"jar"]


def test_another_jar_is_refused(bin_: Path) -> None:
    """What is not the jar that is known is named with its digest, and not kept."""
    maven(bin_, FETCHES)
    with pytest.raises(UnsupportedError, match=f"another g:a:1 .*{DIGEST}"):
        cached_jar("g:a:1", "a-1.jar", "0" * 64)

    assert list(bin_.parent.rglob("*.jar")) == []


@pytest.mark.parametrize(
    "script, why",
    [(FAILS, r"\[ERROR\] no such artifact"), ("#!/bin/sh\nexit 3\n", "exit code 3")],
)
def test_jar_that_is_not_to_be_had(bin_: Path, script: str, why: str) -> None:
    """Maven's own word is in the message, or how it ended."""
    maven(bin_, script)
    with pytest.raises(UnsupportedError, match=why):
        cached_jar("g:a:1", "a-1.jar")


def test_no_maven(bin_: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Maven the message says what to install."""
    monkeypatch.setenv("PATH", str(bin_))
    with pytest.raises(UnsupportedError, match="there is no mvn: install it"):
        cached_jar("g:a:1", "a-1.jar")


def test_connector_is_pinned(bin_: Path) -> None:
    """Of Google's connector only the jar that is known is taken."""
    maven(bin_, FETCHES.replace("a-1.jar", f"gcs-connector-{hadoop_gcs.VERSION}-shaded.jar"))
    with pytest.raises(UnsupportedError, match=f"another .*gcs-connector.*{DIGEST}"):
        hadoop_gcs.client_jar()
