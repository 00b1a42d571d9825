"""The fields that tell log records of jobs apart.

They are attributes of ``logging.LogRecord``. ``Logger`` refuses a record whose ``extra`` names an
attribute that a program's own record factory has set, so these bear the name of the package.
"""

from __future__ import annotations

from asynccommit.redact import redact


def log_fields(job_id: str, dest: object) -> dict[str, str]:
    """Return the ``extra`` of a log record about a job.

    Args:
        job_id: id of the job.
        dest: the destination; credentials are removed.
    """
    return {
        "asynccommit_job_id": job_id,
        "asynccommit_destination": redact(str(dest)),
    }
