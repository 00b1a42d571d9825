"""The callback through which the JVM reaches Python, and who may use it.

Py4J listens on a port of the loopback interface for the JVM's calls, and PySpark starts it without
authentication. Any local user can connect to it, and Py4J then calls any method of any object that
was handed to the JVM. So the object in this module has a single method with an effect, and that
answers only requests sealed with a key that the JVM got over the authenticated gateway. Answers are
sealed as well: after Python has died, another process may listen on its port.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, ClassVar

log = logging.getLogger("asynccommit.spark")

SEAL_LENGTH = 64
"""Number of hexadecimal digits before the text of a request or an answer."""

_CALLABLE = frozenset(("apply", "toString", "Java"))
_PY4J_LOGS = ("py4j.clientserver", "py4j.java_gateway")


class Callback:
    """A ``java.util.function.Function`` that Py4J calls for the JVM.

    Args:
        answer: answers a request.
        key: seals requests and answers; it never leaves this object.
    """

    __slots__ = ("_answer", "_key")

    def __init__(self, answer: Callable[[str], str], key: bytes) -> None:
        self._answer = answer
        self._key = key

    def __getattribute__(self, name: str) -> Any:
        """Hide everything but the interface, since Py4J calls any method.

        That includes ``__init__``.
        """
        if name == "__class__":  # abstract base classes ask for it; this one is of no use to call
            return object
        if name not in _CALLABLE:
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def apply(self, *request: object) -> str | None:
        """Answer a request with the right seal; return ``None`` to any other.

        A request without text only checks who is listening.
        """
        text = request[0] if len(request) == 1 else None
        if type(text) is not str:  # a Java object would be asked over the wire for each attribute
            _warn_of_strangers()
            return None
        answer, key = (object.__getattribute__(self, name) for name in ("_answer", "_key"))
        sealed, text = text[:SEAL_LENGTH], text[SEAL_LENGTH:]
        if not hmac.compare_digest(_bytes(sealed), _bytes(seal(key, "request", text))):
            _warn_of_strangers()
            return None
        reply = answer(text) if text.startswith("{") else ""
        return seal(key, f"answer to {sealed}", reply) + reply

    def toString(self) -> str:  # noqa: N802  the JVM may print the object
        """Return a description for the JVM."""
        return "asynccommit"

    class Java:
        """The interface that the JVM sees."""

        implements: ClassVar = ["java.util.function.Function"]


def seal(key: bytes, kind: str, text: str) -> str:
    """Return the seal of a text, which proves knowledge of the key."""
    return hmac.digest(key, _bytes(f"{kind}\n{text}"), "sha256").hex()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@cache
def _warn_of_strangers() -> None:
    """Warn once per process of requests with a wrong seal."""
    log.warning(
        "a request on the callback port did not have the seal of this session, so it was not "
        "read: another program on this machine may have tried to use this driver (reported once "
        "only)"
    )


def leave(gateway: Any, name: str, answer: Callable[[str], str]) -> None:
    """Store a callback with a new key in the JVM, for all class loaders.

    Args:
        gateway: PySpark's gateway, whose callback server is started if it does not run.
        name: the JVM's system property for the key. Its value is an array, which no page and no
            listing of properties shows.
        answer: answers requests.
    """
    _start_server(gateway)
    key = secrets.token_bytes(32)
    both = gateway.jvm.java.util.ArrayList()
    both.add(Callback(answer, key))
    with _unlogged():
        both.add(key)
    gateway.jvm.java.lang.System.getProperties().put(name, both.toArray())


_starting = threading.Lock()


def _start_server(gateway: Any) -> None:
    """Start PySpark's callback server, unless it runs, for the JVM only.

    A server that was started before, as by ``foreachBatch``, is left as it is: calls on it may be
    running.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    start: Any = ensure_callback_server_started
    with _starting:
        parameters = gateway.callback_server_parameters
        runs = gateway.__dict__.get("_callback_server") is not None
        if runs or parameters.auth_token is not None:
            start(gateway)
            return
        parameters.auth_token = token = secrets.token_hex(32)  # before anybody can connect
        try:
            start(gateway)
        except BaseException:
            parameters.auth_token = None
            raise
        if not _authenticates(gateway, token):
            parameters.auth_token = None


def _authenticates(gateway: Any, token: str) -> bool:
    """Have the JVM authenticate each connection; return whether it will.

    Py4J accepts a token in a constructor only, and drops it when PySpark sets the port.
    """
    from py4j.protocol import Py4JError

    client = gateway.java_gateway_server.getCallbackClient()
    loader = client.getClass().getClassLoader()
    try:
        kind = gateway.jvm.java.lang.Class.forName("py4j.CallbackClient", True, loader)
        field = kind.getDeclaredField("authToken")
        field.setAccessible(True)
        with _unlogged():
            field.set(client, token)
    except Py4JError:
        log.warning(
            "the callback server of this Py4J cannot authenticate the JVM: requests to "
            "asynccommit are still checked, but other callbacks of this program are not"
        )
        return False
    return True


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep this thread's calls out of Py4J's log, which repeats them at DEBUG."""
    mine = threading.get_ident()

    def is_loggable(_: logging.LogRecord) -> bool:
        return threading.get_ident() != mine

    loggers = [logging.getLogger(name) for name in _PY4J_LOGS]
    for logger in loggers:
        logger.addFilter(is_loggable)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_loggable)
