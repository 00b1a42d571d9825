"""The names of users, as people know them."""

from __future__ import annotations

import os
import pwd


def own_name() -> str:
    """Return the name of this process's user, or ``""`` if it has none.

    Variables like ``LOGNAME`` do not count: YARN's containers have that of who has submitted them.
    """
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a container may run as a number
        return ""


def user_name(owner: int | str) -> str:
    """Return a user as messages show it, with the number if there is one."""
    if isinstance(owner, str):
        return owner
    try:
        return f"{pwd.getpwuid(owner).pw_name}, uid {owner}"
    except KeyError:
        return f"uid {owner}"
