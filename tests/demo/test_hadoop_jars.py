"""Jars from Maven: fetched once, compared with what is known of them, and why there is none."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from asynccommit.demo import gcs, s3
from asynccommit.demo.hadoop_jars import Dependency, cached_jar, cached_jars
from asynccommit.errors import UnsupportedError

FETCHES = """#!/bin/sh
for word in "$@"; do
  case "$word" in -DoutputDirectory=*) printf jar > "${word#*=}/a-1.jar" ;; esac
done
"""
FETCHES_ALL = """#!/bin/sh
cp pom.xml "$XDG_CACHE_HOME/seen.xml"
echo "$@" > "$XDG_CACHE_HOME/said"
for word in "$@"; do
  case "$word" in
    -DoutputDirectory=*) mkdir "${word#*=}"; touch "${word#*=}/b-1.jar" "${word#*=}/a-1.jar" ;;
  esac
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
    with pytest.raises(UnsupportedError, match=f"unexpected g:a:1, .*{DIGEST}"):
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
    with pytest.raises(UnsupportedError, match="mvn was not found: install it"):
        cached_jar("g:a:1", "a-1.jar")


def test_connector_is_pinned(bin_: Path) -> None:
    """Of Google's connector only the jar that is known is taken."""
    maven(bin_, FETCHES.replace("a-1.jar", f"gcs-connector-{gcs.VERSION}-shaded.jar"))
    with pytest.raises(UnsupportedError, match=f"unexpected .*gcs-connector.*{DIGEST}"):
        gcs.client_jar()


def test_committers_are_pinned(bin_: Path) -> None:
    """Of Spark's classes for S3A's committers only the jar that is known is taken."""
    maven(bin_, FETCHES.replace("a-1.jar", "spark-hadoop-cloud_2.13-4.1.1.jar"))
    with pytest.raises(UnsupportedError, match=f"unexpected .*spark-hadoop-cloud.*{DIGEST}"):
        s3.committers_jar()


def test_jars_are_fetched_once_with_what_they_need(bin_: Path) -> None:
    """Maven reads what is wanted and what is not; then the jars are there, in order."""
    maven(bin_, FETCHES_ALL)
    wanted = [Dependency("g", "a", "1", without=(("big", "bundle"),)), Dependency("g", "b", "1")]
    jars = cached_jars("set", wanted, without_groups=("x", "y"))
    maven(bin_, FAILS)
    cache = bin_.parent / "cache"
    pom = (cache / "seen.xml").read_text()

    assert cached_jars("set", wanted) == jars
    assert [jar.name for jar in jars] == ["a-1.jar", "b-1.jar"]
    assert [path.name for path in jars[0].parent.parent.iterdir()] == ["set"]
    assert pom.count("<artifactId>bundle</artifactId></exclusion>") == 1
    assert "-DexcludeGroupIds=x,y" in (cache / "said").read_text()


def test_jars_that_are_not_to_be_had(bin_: Path) -> None:
    """Maven's own word is in the message, and nothing is kept."""
    maven(bin_, FAILS)
    with pytest.raises(UnsupportedError, match=r"did not fetch set: \[ERROR\] no such artifact"):
        cached_jars("set", [Dependency("g", "a", "1")])

    assert list((bin_.parent / "cache" / "asynccommit" / "jars").iterdir()) == []


def test_client_of_s3_needs_a_known_hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a Hadoop of which the SDK is not known nothing is fetched."""
    monkeypatch.setattr(s3, "hadoop_version", lambda: "2.7.3")
    with pytest.raises(UnsupportedError, match=r"the SDK for Hadoop 2\.7\.3 is unknown"):
        s3.client_jars()
