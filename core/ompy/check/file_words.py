"""What is said of files, why by the standard, and what would be right."""

from __future__ import annotations

from typing import Any, Final

from ompy.mpi import constants

_MODES: Final = (
    "MODE_RDONLY", "MODE_WRONLY", "MODE_RDWR", "MODE_CREATE", "MODE_EXCL", "MODE_DELETE_ON_CLOSE",
    "MODE_UNIQUE_OPEN", "MODE_SEQUENTIAL", "MODE_APPEND",
)  # fmt: skip
BEGUN_TWICE: Final = (
    "{call} while {before} has not ended. MPI 4.1, 14.4.5: a file has one split collective call at "
    "a time; call {name}_end first"
)
BETWEEN: Final = (
    "{call} while {before} has not ended. MPI 4.1, 14.4.5: no other collective call is made on a "
    "file while a split one has begun; call {name}_end first"
)
CLOSED: Final = (
    "{call} while {before} has not ended. MPI 4.1, 14.2.2: all that was begun on a file is "
    "complete before it is closed; call {name}_end first"
)
PENDING: Final = (
    "{call} while {before} is not complete. MPI 4.1, 14.2.2, 14.2.4, 14.3 and 14.6.1: all that was "
    "begun on a file is complete before Close, Set_size, Set_view and Sync; wait for it first"
)
ENDED_OTHER: Final = (
    "{call} ends {other}. MPI 4.1, 14.4.5: it ends what {name}_begin has begun, and nothing else; "
    "each begin has its own end"
)
NEVER_ENDED: Final = (
    "{call}: the split collective call was never ended. MPI 4.1, 14.4.5: call {name}_end; until "
    "then its buffer is in use"
)
OTHER_BUFFER: Final = (
    "{call} names another buffer than {before}. MPI 4.1, 14.4.5: both name the same one"
)
ETYPE: Final = (
    "{call} {does} {data} through a view whose etype is {etype}. MPI 4.1, 14.6.6: data are whole "
    "etypes of the view, or bytes; set the view with the type of the data"
)


def amode_text(amode: Any) -> str:
    """How a file is opened, as programs write it."""
    if not isinstance(amode, int):
        return str(amode)
    names = [name for name in _MODES if amode & getattr(constants, name)]
    return " | ".join(names) or str(amode)
