"""The one exception an MPI caller sees, and the MPI error classes.

The numbers are Open MPI's, because scripts and exit codes know them
(reference openmpi.md 2.6: an error ends a job with its class as exit code).
"""

from __future__ import annotations

from typing import Final

SUCCESS: Final = 0
ERR_BUFFER: Final = 1
ERR_COUNT: Final = 2
ERR_TYPE: Final = 3
ERR_TAG: Final = 4
ERR_COMM: Final = 5
ERR_RANK: Final = 6
ERR_REQUEST: Final = 7
ERR_ROOT: Final = 8
ERR_GROUP: Final = 9
ERR_OP: Final = 10
ERR_TOPOLOGY: Final = 11
ERR_DIMS: Final = 12
ERR_ARG: Final = 13
ERR_UNKNOWN: Final = 14
ERR_TRUNCATE: Final = 15
ERR_OTHER: Final = 16
ERR_INTERN: Final = 17
ERR_IN_STATUS: Final = 18
ERR_PENDING: Final = 19
ERR_ACCESS: Final = 20
ERR_AMODE: Final = 21
ERR_ASSERT: Final = 22
ERR_BAD_FILE: Final = 23
ERR_BASE: Final = 24
ERR_CONVERSION: Final = 25
ERR_DISP: Final = 26
ERR_DUP_DATAREP: Final = 27
ERR_FILE_EXISTS: Final = 28
ERR_FILE_IN_USE: Final = 29
ERR_FILE: Final = 30
ERR_INFO_KEY: Final = 31
ERR_INFO_NOKEY: Final = 32
ERR_INFO_VALUE: Final = 33
ERR_INFO: Final = 34
ERR_IO: Final = 35
ERR_KEYVAL: Final = 36
ERR_LOCKTYPE: Final = 37
ERR_NAME: Final = 38
ERR_NO_MEM: Final = 39
ERR_NOT_SAME: Final = 40
ERR_NO_SPACE: Final = 41
ERR_NO_SUCH_FILE: Final = 42
ERR_PORT: Final = 43
ERR_QUOTA: Final = 44
ERR_READ_ONLY: Final = 45
ERR_RMA_CONFLICT: Final = 46
ERR_RMA_SYNC: Final = 47
ERR_SERVICE: Final = 48
ERR_SIZE: Final = 49
ERR_SPAWN: Final = 50
ERR_UNSUPPORTED_DATAREP: Final = 51
ERR_UNSUPPORTED_OPERATION: Final = 52
ERR_WIN: Final = 53
ERR_RMA_RANGE: Final = 68
ERR_RMA_ATTACH: Final = 69
ERR_RMA_FLAVOR: Final = 70
ERR_RMA_SHARED: Final = 71
ERR_PROC_ABORTED: Final = 74
ERR_PROC_FAILED: Final = 75
ERR_PROC_FAILED_PENDING: Final = 76
ERR_REVOKED: Final = 77
ERR_SESSION: Final = 78
ERR_VALUE_TOO_LARGE: Final = 79
ERR_ERRHANDLER: Final = 80
ERR_ABI: Final = 81
ERR_LASTCODE: Final = 92

CLASS_TEXT: Final[dict[int, tuple[str, str]]] = {
    SUCCESS: ("MPI_SUCCESS", "no errors"),
    ERR_BUFFER: ("MPI_ERR_BUFFER", "invalid buffer pointer"),
    ERR_COUNT: ("MPI_ERR_COUNT", "invalid count argument"),
    ERR_TYPE: ("MPI_ERR_TYPE", "invalid datatype"),
    ERR_TAG: ("MPI_ERR_TAG", "invalid tag"),
    ERR_COMM: ("MPI_ERR_COMM", "invalid communicator"),
    ERR_RANK: ("MPI_ERR_RANK", "invalid rank"),
    ERR_REQUEST: ("MPI_ERR_REQUEST", "invalid request"),
    ERR_ROOT: ("MPI_ERR_ROOT", "invalid root"),
    ERR_GROUP: ("MPI_ERR_GROUP", "invalid group"),
    ERR_OP: ("MPI_ERR_OP", "invalid reduce operation"),
    ERR_TOPOLOGY: ("MPI_ERR_TOPOLOGY", "invalid communicator topology"),
    ERR_DIMS: ("MPI_ERR_DIMS", "invalid topology dimension"),
    ERR_ARG: ("MPI_ERR_ARG", "invalid argument of some other kind"),
    ERR_UNKNOWN: ("MPI_ERR_UNKNOWN", "unknown error"),
    ERR_TRUNCATE: ("MPI_ERR_TRUNCATE", "message truncated"),
    ERR_OTHER: ("MPI_ERR_OTHER", "other error"),
    ERR_INTERN: ("MPI_ERR_INTERN", "internal error"),
    ERR_IN_STATUS: ("MPI_ERR_IN_STATUS", "error code in status"),
    ERR_PENDING: ("MPI_ERR_PENDING", "pending request"),
    ERR_ACCESS: ("MPI_ERR_ACCESS", "permission denied"),
    ERR_AMODE: ("MPI_ERR_AMODE", "invalid access mode"),
    ERR_ASSERT: ("MPI_ERR_ASSERT", "invalid assertion argument"),
    ERR_BAD_FILE: ("MPI_ERR_BAD_FILE", "invalid file name"),
    ERR_BASE: ("MPI_ERR_BASE", "invalid memory base"),
    ERR_CONVERSION: ("MPI_ERR_CONVERSION", "data conversion error"),
    ERR_DISP: ("MPI_ERR_DISP", "invalid displacement"),
    ERR_DUP_DATAREP: ("MPI_ERR_DUP_DATAREP", "data representation defined already"),
    ERR_FILE_EXISTS: ("MPI_ERR_FILE_EXISTS", "file exists already"),
    ERR_FILE_IN_USE: ("MPI_ERR_FILE_IN_USE", "file is in use"),
    ERR_FILE: ("MPI_ERR_FILE", "invalid file"),
    ERR_INFO_KEY: ("MPI_ERR_INFO_KEY", "invalid key of an info object"),
    ERR_INFO_NOKEY: ("MPI_ERR_INFO_NOKEY", "no such key in the info object"),
    ERR_INFO_VALUE: ("MPI_ERR_INFO_VALUE", "invalid value of an info object"),
    ERR_INFO: ("MPI_ERR_INFO", "invalid info object"),
    ERR_IO: ("MPI_ERR_IO", "input/output error"),
    ERR_KEYVAL: ("MPI_ERR_KEYVAL", "invalid attribute key"),
    ERR_LOCKTYPE: ("MPI_ERR_LOCKTYPE", "invalid lock type"),
    ERR_NAME: ("MPI_ERR_NAME", "unknown service name"),
    ERR_NO_MEM: ("MPI_ERR_NO_MEM", "out of memory"),
    ERR_NOT_SAME: ("MPI_ERR_NOT_SAME", "collective argument differs between processes"),
    ERR_NO_SPACE: ("MPI_ERR_NO_SPACE", "no space left"),
    ERR_NO_SUCH_FILE: ("MPI_ERR_NO_SUCH_FILE", "no such file"),
    ERR_PORT: ("MPI_ERR_PORT", "invalid port"),
    ERR_QUOTA: ("MPI_ERR_QUOTA", "quota exceeded"),
    ERR_READ_ONLY: ("MPI_ERR_READ_ONLY", "file is read-only"),
    ERR_RMA_CONFLICT: ("MPI_ERR_RMA_CONFLICT", "conflicting window accesses"),
    ERR_RMA_SYNC: ("MPI_ERR_RMA_SYNC", "wrong window synchronisation"),
    ERR_SERVICE: ("MPI_ERR_SERVICE", "unknown service"),
    ERR_SIZE: ("MPI_ERR_SIZE", "invalid size"),
    ERR_SPAWN: ("MPI_ERR_SPAWN", "processes could not be spawned"),
    ERR_UNSUPPORTED_DATAREP: ("MPI_ERR_UNSUPPORTED_DATAREP", "data representation not supported"),
    ERR_UNSUPPORTED_OPERATION: ("MPI_ERR_UNSUPPORTED_OPERATION", "operation not supported"),
    ERR_WIN: ("MPI_ERR_WIN", "invalid window"),
    ERR_RMA_RANGE: ("MPI_ERR_RMA_RANGE", "beyond the window"),
    ERR_RMA_ATTACH: ("MPI_ERR_RMA_ATTACH", "memory cannot be attached"),
    ERR_RMA_FLAVOR: ("MPI_ERR_RMA_FLAVOR", "wrong kind of window"),
    ERR_RMA_SHARED: ("MPI_ERR_RMA_SHARED", "memory cannot be shared"),
    ERR_PROC_ABORTED: ("MPI_ERR_PROC_ABORTED", "process aborted"),
    ERR_PROC_FAILED: ("MPI_ERR_PROC_FAILED", "process failure"),
    ERR_PROC_FAILED_PENDING: ("MPI_ERR_PROC_FAILED_PENDING", "process failure, operation pending"),
    ERR_REVOKED: ("MPI_ERR_REVOKED", "communicator revoked"),
    ERR_SESSION: ("MPI_ERR_SESSION", "invalid session"),
    ERR_VALUE_TOO_LARGE: ("MPI_ERR_VALUE_TOO_LARGE", "value too large for its type"),
    ERR_ERRHANDLER: ("MPI_ERR_ERRHANDLER", "invalid error handler"),
    ERR_ABI: ("MPI_ERR_ABI", "wrong binary interface"),
    ERR_LASTCODE: ("MPI_ERR_LASTCODE", "last error code"),
}


class MPIError(RuntimeError):
    """An MPI call failed.

    Attributes:
        code: MPI error class (or a user-defined code).
        detail: what happened, with the values that made it happen; may be empty.
    """

    def __init__(self, code: int = SUCCESS, detail: str = "") -> None:
        super().__init__(code)
        self.code = int(code)
        self.detail = detail

    def __str__(self) -> str:
        name, text = CLASS_TEXT.get(self.code, (f"MPI error {self.code}", "unknown error code"))
        if self.code == ERR_OTHER and self.detail:
            return f"{name}: {self.detail}"  # "other error" says nothing beside it
        return f"{name}: {text}" + (f": {self.detail}" if self.detail else "")


def waits_for_ended(problem: BaseException) -> bool:
    """Whether a call failed because it would wait for ever: for ranks that have finalized MPI."""
    return (
        isinstance(problem, MPIError)
        and problem.code in {ERR_PROC_FAILED, ERR_IN_STATUS}
        and ("has finalized" in problem.detail or "has ended" in problem.detail)
    )
