"""Run Hadoop's integration tests of ADLS against the emulator: ``make witness``.

Their authors run them against real accounts. The tests jar of hadoop-azure, which Maven fetches
once, is run over https, class by class, and each class has an account of its own. What is expected
of each class is in ``hadoop_azure.txt``: how many tests pass, how many are skipped because they
assume something else, and which fail and why. Any difference fails the run: a test that fails, one
that no longer does, one that is skipped or has gone.

    python -m tests.witness.hadoop_azure               all classes
    python -m tests.witness.hadoop_azure Rename Acl    those whose names contain one of these
    python -m tests.witness.hadoop_azure --list        no run; their names
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from asynccommit.demo.hadoop_jars import Dependency, cached_jars
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator

VERSION = "3.4.2"  # the last that has its tests on Maven Central
EXPECTED = Path(__file__).with_suffix(".txt")
PACKAGE = "org.apache.hadoop.fs.azurebfs"
_HADOOP, _JUPITER, _PLATFORM = "org.apache.hadoop", "5.8.2", "1.8.2"
_TIMEOUT = 900.0  # of a class, in seconds
_OTHERS = ("testAccount", "otherAccount")  # of ITestGetNameSpaceEnabled
_FOLDERS = ("hadoop.tmp.dir", "test.build.data", "test.build.dir", "test.dir")
_PASSWORD = "changeit"
_OPEN = ("lang", "lang.reflect", "util", "net")

_LEFT_OUT = "left out: "
_REASON = " => "  # names of tests have colons

PASSED, SKIPPED, FAILED = "passed", "skipped", "failed"


@dataclass(frozen=True)
class TestJar(Dependency):
    """The tests of a Maven artifact; the dependencies of tests are not fetched with them."""

    __test__ = False  # it is no test class

    def to_xml(self) -> str:
        """Return the dependency as an XML element of a pom."""
        return super().to_xml().replace("<exclusions>", "<type>test-jar</type><exclusions>")


WANTED = (
    Dependency(_HADOOP, "hadoop-azure", VERSION),
    TestJar(_HADOOP, "hadoop-azure", VERSION),
    Dependency(_HADOOP, "hadoop-common", VERSION),
    TestJar(_HADOOP, "hadoop-common", VERSION),
    Dependency(_HADOOP, "hadoop-mapreduce-client-core", VERSION),
    TestJar(_HADOOP, "hadoop-mapreduce-client-core", VERSION),
    Dependency(_HADOOP, "hadoop-minikdc", VERSION),
    Dependency(_HADOOP, "hadoop-distcp", VERSION),
    TestJar(_HADOOP, "hadoop-distcp", VERSION),
    Dependency(_HADOOP, "hadoop-mapreduce-client-jobclient", VERSION),
    Dependency("junit", "junit", "4.13.2"),
    Dependency("org.junit.jupiter", "junit-jupiter", _JUPITER),
    Dependency("org.junit.vintage", "junit-vintage-engine", _JUPITER),
    Dependency("org.junit.platform", "junit-platform-console", _PLATFORM),
    Dependency("org.hamcrest", "hamcrest-library", "1.3"),
    Dependency("org.assertj", "assertj-core", "3.12.2"),
    Dependency("org.mockito", "mockito-inline", "4.11.0"),
)


@dataclass
class Outcome:
    """The results of a class: of each test, and the first line of each failure."""

    tests: dict[str, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def names(self, result: str) -> list[str]:
        """Return the tests with a result."""
        return sorted(name for name, found in self.tests.items() if found == result)


@dataclass
class Expected:
    """What a class is expected to do; a failure is expected for its reason.

    A class that is left out, for its reason, is not run.
    """

    passed: int = 0
    skipped: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    left_out: str = ""


def read_expected(text: str) -> dict[str, Expected]:
    """Read the expectations: a line for each class, and indented ones for its failures."""
    found: dict[str, Expected] = {}
    last = Expected()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        separator = _REASON if line.startswith(" ") else ": "
        name, found_one, rest = line.partition(separator)
        if not found_one:
            raise ValueError(f"{EXPECTED.name}: {line!r} has no {separator!r}")
        if line.startswith(" "):
            last.failures[name.strip()] = rest
            continue
        if rest.startswith(_LEFT_OUT):
            found[name] = Expected(left_out=rest.removeprefix(_LEFT_OUT))
            continue
        counts = re.fullmatch(r"(\d+) passed, (\d+) skipped", rest)
        if counts is None:
            raise ValueError(f"{EXPECTED.name}: {line!r} has no counts")
        last = found[name] = Expected(int(counts[1]), int(counts[2]))
    return found


def differences(outcome: Outcome, expected: Expected) -> list[str]:
    """Return each difference of a class from what is expected, as a line."""
    failed = outcome.names(FAILED)
    found = [
        f"{name} failed: {outcome.said.get(name, '')}"
        for name in failed
        if name not in expected.failures
    ]
    found += [
        f"{name} was expected to fail, and {outcome.tests.get(name, 'is gone')}: {reason}"
        for name, reason in expected.failures.items()
        if name not in failed
    ]
    if found:
        return found
    counts = ((PASSED, expected.passed), (SKIPPED, expected.skipped))
    return [
        f"{number} {result}, expected {count}"
        for result, count in counts
        if (number := len(outcome.names(result))) != count
    ]


def read_report(folder: Path) -> Outcome:
    """Read JUnit's XML reports; tests of the same name are numbered."""
    outcome = Outcome()
    for report in sorted(folder.glob("TEST-*.xml")):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            base = name = re.sub(r"\(\)$", "", case.get("name", ""))
            number = 1
            while name in outcome.tests:
                number += 1
                name = f"{base}#{number}"
            outcome.tests[name] = _result(case)
            problem = (
                case.find("failure") if case.find("failure") is not None else case.find("error")
            )
            if problem is not None:
                text = problem.get("message") or problem.text or ""
                outcome.said[name] = (text.strip().splitlines() or [""])[0][:300]
    return outcome


def _result(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    return PASSED if case.find("skipped") is None else SKIPPED


# --- the run -----------------------------------------------------------------------------------


def classes(jars: Iterable[Path]) -> list[str]:
    """Return the integration tests in the jar, without the package's name."""
    with zipfile.ZipFile(_tests_jar(jars)) as opened:
        names = opened.namelist()
    pattern = re.compile(rf"{PACKAGE.replace('.', '/')}/((?:\w+/)*ITest\w+)\.class")
    return sorted(
        found[1].replace("/", ".") for name in names if (found := pattern.fullmatch(name))
    )


def _tests_jar(jars: Iterable[Path]) -> Path:
    [found] = [path for path in jars if path.name == f"hadoop-azure-{VERSION}-tests.jar"]
    return found


@contextmanager
def unpacked(jars: Sequence[Path]) -> Iterator[Sequence[Path]]:
    """Yield the classpath with a folder for the tests jar, as some tests need it."""
    jar = _tests_jar(jars)
    with tempfile.TemporaryDirectory(prefix="witness-classes-") as folder:
        with zipfile.ZipFile(jar) as opened:
            opened.extractall(folder)
        yield [Path(folder), *(path for path in jars if path != jar)]


def configuration(emulator: EmulatorThread) -> Mapping[str, str]:
    """Return Hadoop's options of the tests."""
    domain = f"{emulator.account}.dfs.core.windows.net"
    return {
        "fs.azure.abfs.account.name": domain,
        "fs.azure.abfs.endpoint": emulator.endpoint.partition("://")[2],
        "fs.azure.account.auth.type": "SharedKey",
        f"fs.azure.account.key.{domain}": emulator.key,
        "fs.azure.createRemoteFileSystemDuringInitialization": "true",
        "fs.azure.scale.test.enabled": "false",
        "fs.azure.ssl.channel.mode": "Default_JSSE",
        "fs.azure.test.namespace.enabled": "true",
        "fs.contract.test.fs.abfs": f"abfs://contract@{domain}",
    }


@contextmanager
def _account(folder: Path) -> Iterator[Sequence[str]]:
    """Serve an account; yield the JVM's options that lead to it."""
    accounts = {DEVELOPMENT_ACCOUNT: DEVELOPMENT_KEY, **dict.fromkeys(_OTHERS, "dummyKey")}
    with running_emulator(tls=True, accounts=accounts, filesystems=["contract"]) as emulator:
        conf = folder / "conf"
        conf.mkdir()
        root = ElementTree.Element("configuration")
        for name, value in configuration(emulator).items():
            entry = ElementTree.SubElement(root, "property")
            ElementTree.SubElement(entry, "name").text = name
            ElementTree.SubElement(entry, "value").text = value
        # The azure-test.xml of the tests jar includes this one.
        ElementTree.ElementTree(root).write(conf / "azure-auth-keys.xml")
        (conf / "log4j.properties").write_text(
            "log4j.rootLogger=ERROR,A\nlog4j.appender.A=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.A.layout=org.apache.log4j.SimpleLayout\n"
        )
        (folder / "ca.pem").write_bytes(emulator.ca_pem or b"")
        trust = folder / "trust.p12"
        command = [_java("keytool"), "-importcert", "-noprompt", "-storepass", _PASSWORD]
        command += ["-file", str(folder / "ca.pem"), "-keystore", str(trust)]
        subprocess.run(command, check=True, capture_output=True)
        yield [
            f"-Djavax.net.ssl.trustStore={trust}",
            f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
        ]


def _java(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", name) if home else shutil.which(name)
    if not found or not os.path.exists(found):
        raise UnsupportedError(f"Hadoop's tests need Java 17, but {name} was not found: install it")
    return found


def run_class(name: str, jars: Sequence[Path]) -> Outcome:
    """Run the tests of a class in a JVM of its own."""
    with tempfile.TemporaryDirectory(prefix="witness-") as scratch:
        folder, reports = Path(scratch), Path(scratch, "reports")
        with _account(folder) as options:
            opened = [f"--add-opens=java.base/java.{_}=ALL-UNNAMED" for _ in _OPEN]
            opened.append("--add-opens=java.base/sun.net.www.protocol.http=ALL-UNNAMED")
            classpath = os.pathsep.join([str(folder / "conf"), *map(str, jars)])
            command = [_java("java"), "-Xmx900m", *opened, *options]
            command += [f"-D{name}={folder}/{name}" for name in _FOLDERS]
            command += ["-cp", classpath, "org.junit.platform.console.ConsoleLauncher"]
            command += ["--details=none", f"--reports-dir={reports}"]
            command += [f"--select-class={PACKAGE}.{name}"]
            with (folder / "output").open("w+") as output:
                try:
                    subprocess.run(
                        command,
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        timeout=_TIMEOUT,
                        check=False,
                    )
                except subprocess.TimeoutExpired:
                    return Outcome({"(class)": FAILED}, {"(class)": f"no end after {_TIMEOUT} s"})
                output.seek(0)
                said = output.read()
        outcome = read_report(reports)
    if not outcome.tests and "0 tests found" not in said:
        return Outcome({"(class)": FAILED}, {"(class)": " ".join(said.split())[:300]})
    return outcome


def write_line(name: str, outcome: Outcome, old: Expected) -> str:
    """Return the lines of a class for the file of expectations."""
    counts = f"{len(outcome.names(PASSED))} passed, {len(outcome.names(SKIPPED))} skipped"
    failed = outcome.names(FAILED)
    reasons = {_: old.failures.get(_) or f"TODO {outcome.said.get(_)}" for _ in failed}
    return "\n".join(
        [f"{name}: {counts}", *(f"    {_}{_REASON}{why}" for _, why in reasons.items())]
    )


def run(chosen: Sequence[str], jars: Sequence[Path], lines: str | None) -> list[str]:
    """Run the classes, say what each did, and return the differences."""
    expected = read_expected(EXPECTED.read_text("utf-8"))
    totals, bad = dict.fromkeys((PASSED, SKIPPED, FAILED), 0), []
    for name in chosen:
        wanted = expected.get(name, Expected())
        if wanted.left_out:
            _say(f"out     {name}: {wanted.left_out}")
            continue
        outcome = run_class(name, jars)
        for result in totals:
            totals[result] += len(outcome.names(result))
        found = differences(outcome, wanted)
        bad += [f"{name}: {line}" for line in found]
        _say(f"{'DIFFERS' if found else 'ok':8}{write_line(name, outcome, wanted)}")
        if lines:
            with open(lines, "a", encoding="utf-8") as file:
                file.write(f"{write_line(name, outcome, wanted)}\n")
    _say(", ".join(f"{count} {result}" for result, count in totals.items()))
    return bad


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the classes and compare; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="witness", description="Run Hadoop's integration tests of ADLS."
    )
    parser.add_argument("names", nargs="*", help="parts of the names of classes")
    parser.add_argument("--list", action="store_true", help="list the classes")
    parser.add_argument("--lines", metavar="FILE", help="add the lines of a new list to this file")
    asked = parser.parse_args(arguments)
    try:
        jars = cached_jars(f"hadoop-azure-tests-{VERSION}", WANTED)
        _java("java")
    except UnsupportedError as error:
        sys.exit(f"witness: {error}")
    every = classes(jars)
    chosen = [_ for _ in every if not asked.names or any(part in _ for part in asked.names)]
    if asked.list or not chosen:
        _say("\n".join(chosen))
        return 0 if chosen else 1
    gone = set(read_expected(EXPECTED.read_text("utf-8"))) - set(every)
    with unpacked(jars) as classpath:
        bad = run(chosen, classpath, asked.lines)
    bad += [f"{name} is expected, but is not in the jar" for name in sorted(gone)]
    sys.stderr.write("".join(f"{line}\n" for line in bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
