"""Errors of the NameNode, as hdfs-native raises them."""

from __future__ import annotations

_FS = "org.apache.hadoop.fs"
_PROTOCOL = "org.apache.hadoop.hdfs.protocol"


def remote(java: str, message: str) -> RuntimeError:
    """Return the error of the library for an exception of a NameNode."""
    return RuntimeError(f'RPCError("{java}", "{message}")')


def not_directory(path: str) -> RuntimeError:
    """Return the error for a path below a file."""
    return remote(f"{_FS}.ParentNotDirectoryException", f"{path} (is not a directory)")


def not_empty(path: str) -> RuntimeError:
    """Return the error for a directory that holds something."""
    return remote(
        f"{_FS}.PathIsNotEmptyDirectoryException", f"`{path} is non empty': Directory is not empty"
    )


def invalid_name(path: str) -> RuntimeError:
    """Return the error for a name that HDFS does not allow."""
    return remote(f"{_FS}.InvalidPathException", f"Invalid file name: {path}")


def too_long(name: str) -> RuntimeError:
    """Return the error for a name that is too long."""
    kind = f"{_PROTOCOL}.FSLimitException$PathComponentTooLongException"
    return remote(kind, f"The maximum path component name limit of {name[:20]} is exceeded")


def over_quota(path: str, quota: int, used: int) -> RuntimeError:
    """Return the error for names beyond the quota of a directory."""
    return remote(
        f"{_PROTOCOL}.NSQuotaExceededException",
        f"The NameSpace quota (directories and files) of directory {path} is exceeded: "
        f"quota={quota} file count={used}",
    )


def refused(message: str) -> RuntimeError:
    """Return the error for a rename that cannot be done."""
    return remote("java.io.IOException", message)
