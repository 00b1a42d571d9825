"""Errors of blocking calls, without the frames of the event loop.

An error of this package names the thing and the remedy. Its traceback ends at the public function;
``ASYNCCOMMIT_TRACEBACK=full`` in the environment, or a logger ``asynccommit`` at level DEBUG, keeps
all frames.
"""

from __future__ import annotations

import logging
import os

from asynccommit.errors import AsyncCommitError

_log = logging.getLogger("asynccommit")


def short(error: BaseException, *, keep: BaseException | None = None) -> BaseException:
    """Return an error of this package without the frames of its causes.

    Raise it with ``from error.__cause__`` where the caller's frames are to end. Other errors are
    returned unchanged.

    Args:
        error: the error.
        keep: an error of the caller's own code, which keeps its frames.
    """
    if not isinstance(error, AsyncCommitError) or _is_full():
        return error
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or found is keep or id(found) in seen:
            continue
        seen.add(id(found))
        found.__traceback__ = None
        waiting += (found.__cause__, found.__context__)
    return error


def _is_full() -> bool:
    if os.environ.get("ASYNCCOMMIT_TRACEBACK") == "full":
        return True
    return _log.isEnabledFor(logging.DEBUG)
