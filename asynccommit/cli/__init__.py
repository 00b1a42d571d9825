"""The command ``asynccommit``.

Exit codes, which scripts can rely on:

====  =========================================================================================
0     done; also: nothing was left to do, or a dry run shows that it can be done
1     failed after changes were made, or for an unexpected reason
2     usage: invalid argument or option, a scheme without a store, or a missing package
3     refused, and nothing was changed; or a check found problems
4     outcome unknown: the answer to a request was lost, and nothing was cleaned up
5     no such job, file or directory
130   interrupted by Ctrl-C: running requests have ended
143   terminated by SIGTERM: the same
====  =========================================================================================

With ``--json`` standard output holds one JSON value and nothing else, for errors too:
``{"error": kind, "message": text, "exit_code": number, ...}``, where the kind is ``failed``,
``usage``, ``refused``, ``unknown``, ``not_found``, ``interrupted`` or ``terminated``.
"""

from asynccommit.cli.app import app, main

__all__ = ["app", "main"]
