"""The command ``asynccommit``.

Exit codes, which scripts can rely on:

====  =========================================================================================
0     done; also: it had been done before, or a dry run finds that it can be done
1     failed half-way, or for a reason that nobody foresaw: look with ``inspect``
2     usage: a wrong argument or option, a scheme without a store, a package that is missing
3     refused: nothing was changed, or ``inspect`` says that a commit would be refused
4     outcome unknown: an answer was lost, nothing was cleaned up
5     there is no such job, file or directory
130   interrupted by Ctrl-C: what was under way has ended, and can be resumed
143   terminated by SIGTERM: the same
====  =========================================================================================

With ``--json`` standard output holds one JSON value and nothing else, for errors too:
``{"error": kind, "message": text, "exit_code": number, ...}``, where the kind is ``failed``,
``usage``, ``refused``, ``unknown``, ``not_found``, ``interrupted`` or ``terminated``.
"""

from asynccommit.cli.app import app, main

__all__ = ["app", "main"]
