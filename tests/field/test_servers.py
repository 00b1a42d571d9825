"""A Thrift server that runs a client's statement as the session's user, who is another."""

from __future__ import annotations

import getpass
from pathlib import Path

import pytest

from asynccommit.demo.adls import client_conf, client_jar
from asynccommit.errors import UnsupportedError
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_KEY
from asynccommit.testing.emulators.adls.emulator import EmulatorThread, running_emulator
from tests.field import drivers, servers
from tests.field.belongings import jars
from tests.field.cells import LOCAL, TIMEOUT, TIMEOUT_ON_CLUSTERS
from tests.field.environments import environment, installed_line
from tests.field.place import Place, StartError
from tests.field.starts import ACCOUNT
from tests.support import mini_hdfs
from tests.support.mini_hdfs import start_mini_hdfs
from tests.support.spark import LOOPBACK, visible

pytestmark = [
    pytest.mark.every(3),
    pytest.mark.full,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

_ACTS = {f"hadoop.proxyuser.{getpass.getuser()}.{kind}": "*" for kind in ("hosts", "groups")}
URL = f"abfs://data@{ACCOUNT}.dfs.core.windows.net"
WRITE = "INSERT OVERWRITE DIRECTORY '{}/flights' USING parquet SELECT id FROM range(100);\n"


@pytest.fixture
def client() -> str:
    """Return the jar of Hadoop's client of ADLS."""
    try:
        return str(client_jar())
    except UnsupportedError as error:
        pytest.skip(str(error))


def prepared(folder: Path, emulator: EmulatorThread) -> Place:
    """Return a place with the settings of the account."""
    place = Place(folder, environment(installed_line()), LOCAL, jars(), TIMEOUT)
    conf = client_conf(ACCOUNT, emulator.key, f"{LOOPBACK}:{emulator.port}")
    place.settings |= {f"spark.hadoop.{key}": value for key, value in conf.items()}
    drivers.prepare(place)
    return place


def test_a_session_of_another_user_is_its_users_or_refused(tmp_path: Path, client: str) -> None:
    """Refused by name on a store that the child opens; not on a disk, nor through the JVM."""
    with running_emulator(accounts={ACCOUNT: DEVELOPMENT_KEY}) as emulator:
        emulator.do(lambda it: it.model.create_filesystem("data"))
        place = prepared(tmp_path, emulator)
        with servers.thrift_server(place, jars=[client]) as server:
            servers.ask(place, server, WRITE.format(tmp_path))
            with pytest.raises(StartError, match="this session acts as alice, but what commits"):
                servers.ask(place, server, WRITE.format(URL))
            before = names(emulator)
            servers.ask(place, server, f"SET spark.asynccommit.store=jvm;\n{WRITE.format(URL)}")

        assert visible(tmp_path / "flights")
        assert before == []
        assert any(name.endswith(".parquet") for name in names(emulator))


def test_on_hdfs_a_session_whose_tasks_are_another_users_is_refused(tmp_path: Path) -> None:
    """Tasks of a Thrift server write as its user, so another's session begins nothing there."""
    if reason := mini_hdfs.why_not():
        pytest.skip(reason)
    (tmp_path / "hdfs").mkdir()
    with start_mini_hdfs(tmp_path / "hdfs", conf=_ACTS) as hdfs:
        everybody = hdfs.hadoop.new("org.apache.hadoop.fs.permission.FsPermission", "777")
        hdfs.filesystem.setPermission(hdfs.path("/"), everybody)
        place = Place(tmp_path, environment(installed_line()), LOCAL, jars(), TIMEOUT_ON_CLUSTERS)
        drivers.prepare(place)
        with (
            servers.thrift_server(place) as server,
            pytest.raises(StartError, match="acts as alice, but its tasks write as"),
        ):
            servers.ask(place, server, WRITE.format(hdfs.url))

        assert not hdfs.exists("/flights/_SUCCESS")
        assert not hdfs.exists("/flights/_temporary")


def test_a_server_that_acts_for_nobody_commits(tmp_path: Path, client: str) -> None:
    """With ``hive.server2.enable.doAs=false`` all sessions are the server's own user's."""
    with running_emulator(accounts={ACCOUNT: DEVELOPMENT_KEY}) as emulator:
        emulator.do(lambda it: it.model.create_filesystem("data"))
        place = prepared(tmp_path, emulator)
        with servers.thrift_server(place, ["hive.server2.enable.doAs=false"], [client]) as server:
            servers.ask(place, server, WRITE.format(URL))

        assert any(name.endswith(".parquet") for name in names(emulator))


def names(emulator: EmulatorThread) -> list[str]:
    """Return the paths of the filesystem."""
    page = emulator.do(lambda it: it.model.list("data", recursive=True))
    return [path for path, _ in page.entries]
