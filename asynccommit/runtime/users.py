"""The names of users, as people know them."""

from __future__ import annotations

import getpass
import pwd


def own_name() -> str:
    """Return the name of this process's user, or ``""`` if it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number
        return ""


def user_name(owner: int | str) -> str:
    """Return a user as messages show it, with the number if there is one."""
    if isinstance(owner, str):
        return owner
    try:
        return f"{pwd.getpwuid(owner).pw_name}, uid {owner}"
    except KeyError:
        return f"uid {owner}"
