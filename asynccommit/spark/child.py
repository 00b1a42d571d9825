"""The engine of a driver without Python, a child of its JVM.

The JVM starts ``python -m asynccommit.spark.child``, once (Channel.java). Standard input and output
carry frames; whatever else in this process prints to standard output prints to standard error
instead, which is in the driver's log.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

from asynccommit.errors import UnsupportedError
from asynccommit.spark import bridge
from asynccommit.spark.bridge import Bridge
from asynccommit.spark.channel import GONE, Channel, JvmFiles
from asynccommit.spark.hadoop_store.opening import open_in_jvm, work_on
from asynccommit.spark.jars import build_id
from asynccommit.stores.elsewhere import opener_for
from asynccommit.stores.hdfs.options import hadoop_user
from asynccommit.stores.registry import STORES
from asynccommit.stores.urls import Address, decode_uri

_LONGEST = 100  # characters of the line that begins the frames


def check(request: Mapping[str, Any]) -> None:
    """Check a job as ``bridge.check`` does, and as whom it would be committed.

    Raises ``AsyncCommitError``: ``UnsupportedError`` if the session acts as another user than this
    process, and the store is not opened by the JVM, or tasks write to HDFS as somebody else.
    """
    user, writer = request.get("actsAs"), request.get("tasksAs")
    place = decode_uri(request["dest"])
    if place.scheme in bridge.HDFS and user != writer:
        raise UnsupportedError(
            f"this session acts as {user}, but its tasks write as {writer}, whose files {user} may "
            f"not move. Start Spark as {user} (spark-submit: with --proxy-user), or write as "
            f"{writer} (a Thrift server: with --hiveconf hive.server2.enable.doAs=false)"
        )
    if user is not None and not _acts_as(user, place, request):
        raise UnsupportedError(
            f"this session acts as {user}, but what commits its jobs is a process of the driver's "
            f"own user, who is another for {place.scheme}. Set spark.asynccommit.store=jvm for "
            "commits with the session's rights, or start Spark as that user (a Thrift server: with "
            "--hiveconf hive.server2.enable.doAs=false it writes as its own)"
        )
    bridge.check(request)


def _acts_as(user: str, place: Address, request: Mapping[str, Any]) -> bool:
    """Return whether a store is used with the rights of the session's user.

    A disk knows the user of the process only, in tasks as well.
    """
    if place.scheme == "file":
        return True
    if opener_for(place, bridge.storage_of(request), place.scheme in STORES) is open_in_jvm:
        return True
    return place.scheme in bridge.HDFS and user == hadoop_user(os.environ)


class _Lines(logging.Formatter):
    """Formats a record so that the JVM can tell its level and its end."""

    def format(self, record: logging.LogRecord) -> str:
        return super().format(record).replace("\n", "\n  ")


def main() -> int:
    """Answer the JVM until it ends; return the exit code."""
    reading, writing = take_descriptors()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the JVM, which decides
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    channel = Channel(reading, writing, Bridge(check=check).apply)
    work_on(JvmFiles(channel))
    try:
        os.write(writing, reading.readline(_LONGEST))
        channel.begin({"build": build_id(), "pid": os.getpid(), "python": sys.version.split()[0]})
    except BrokenPipeError:  # the JVM has ended before it has asked for anything
        return GONE
    channel.wait()
    return 0


def take_descriptors() -> tuple[BinaryIO, int]:
    """Move standard input and output to descriptors of the frames alone."""
    reading, writing = os.dup(0), os.dup(1)  # which no process that is started here inherits
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return open(reading, "rb"), writing


if __name__ == "__main__":
    sys.exit(main())
