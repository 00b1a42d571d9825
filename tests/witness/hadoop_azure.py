"""Hadoop's integration tests of ADLS, for ``make witness``.

Their authors run them against real accounts. The tests jar of hadoop-azure, which Maven fetches
once, is run over https, class by class, and each class has an account of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from asynccommit.demo.hadoop_jars import Dependency, cached_jars
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from tests.witness.expectations import FAILED, Opened, Outcome, read_report

VERSION = "3.4.2"  # the last that has its tests on Maven Central
PACKAGE = "org.apache.hadoop.fs.azurebfs"
_HADOOP, _JUPITER, _PLATFORM = "org.apache.hadoop", "5.8.2", "1.8.2"
_TIMEOUT = 900.0  # of a class, in seconds
_OTHERS = ("testAccount", "otherAccount")  # of ITestGetNameSpaceEnabled
_FOLDERS = ("hadoop.tmp.dir", "test.build.data", "test.build.dir", "test.dir")
_PASSWORD = "changeit"
_OPEN = ("lang", "lang.reflect", "util", "net")


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


@contextmanager
def opened() -> Iterator[Opened]:
    """Fetch the tests; yield the names of the classes and what runs one of them.

    Raises ``UnsupportedError`` if Maven or Java is missing.
    """
    jars = cached_jars(f"hadoop-azure-tests-{VERSION}", WANTED)
    _java("java")
    with unpacked(jars) as classpath:
        yield classes(jars), partial(run_class, jars=classpath)
