"""`MPI.Exception`, and the error classes and codes a program adds.

Below this floor errors are `MPIError`; whoever calls down turns them into `MPIException`, by
the error handler of the object concerned.
"""

from __future__ import annotations

import _thread
from typing import Final

from ompy.data.errors import (
    CLASS_TEXT,
    ERR_ARG,
    ERR_LASTCODE,
    ERR_UNKNOWN,
    SUCCESS,
    MPIError,
)
from ompy.mpi.integers import c_int, takes_c_ints


class MPIException(MPIError):
    """An MPI call failed. Equal to its error code, as integers are."""

    def __init__(self, ierr: int = SUCCESS, detail: str = "", /) -> None:
        code = ierr if ierr.__class__ is int and 0 <= ierr <= ERR_LASTCODE else c_int(ierr)
        self.code = code if code >= SUCCESS else ERR_UNKNOWN
        self.detail = detail
        RuntimeError.__init__(self, self.code)

    def __str__(self) -> str:
        if self.code in CLASS_TEXT:
            return super().__str__()
        text = Get_error_string(self.code)
        return f"{text}: {self.detail}" if self.detail else text

    def __repr__(self) -> str:
        return f"MPI.Exception({self.code})"

    def __int__(self) -> int:
        return self.code

    def __bool__(self) -> bool:
        return self.code != SUCCESS

    def __hash__(self) -> int:
        return hash(self.code)

    def __eq__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self.code == code

    def __lt__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self.code < code

    def __le__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self.code <= code

    def __gt__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self.code > code

    def __ge__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self.code >= code

    def Get_error_code(self) -> int:
        """The error code."""
        return self.code

    def Get_error_class(self) -> int:
        """The error class the code belongs to."""
        return self.code if self.code in CLASS_TEXT else Get_error_class(self.code)

    def Get_error_string(self) -> str:
        """The text of the error code."""
        return Get_error_string(self.code)

    @property
    def error_code(self) -> int:
        """The error code."""
        return self.code

    @property
    def error_class(self) -> int:
        """The error class the code belongs to."""
        return Get_error_class(self.code)

    @property
    def error_string(self) -> str:
        """The text of the error code."""
        return Get_error_string(self.code)


# tracebacks name it as programs do, and pickle finds it there
MPIException.__name__ = MPIException.__qualname__ = "Exception"
MPIException.__module__ = "ompy.MPI"


def _code(other: object) -> int | None:
    if isinstance(other, MPIError):
        return other.code
    return other if isinstance(other, int) else None


class _UserCodes:
    """Error classes and codes added by the program.

    Attributes:
        classes: of each code; a class is a code of itself.
        texts: given to codes.
        last: highest number ever given out.
    """

    def __init__(self) -> None:
        self.lock = _thread.allocate_lock()
        self.classes: dict[int, int] = {}
        self.texts: dict[int, str] = {}
        self.last = ERR_LASTCODE

    def add_code(self, error_class: int | None) -> int:
        with self.lock:
            self.last += 1
            self.classes[self.last] = self.last if error_class is None else error_class
            return self.last


_added: Final = _UserCodes()
_TEXTS: Final = {code: f"{name}: {text}" for code, (name, text) in CLASS_TEXT.items()}


def last_used_code() -> int:
    """The highest error code in use: the attribute LASTUSEDCODE."""
    return _added.last


def Get_error_class(errorcode: int) -> int:
    """The class of an error code."""
    if type(errorcode) is int and errorcode in CLASS_TEXT:
        return errorcode
    errorcode = c_int(errorcode)
    if errorcode in CLASS_TEXT:
        return errorcode
    return _added.classes.get(errorcode, ERR_UNKNOWN)


def Get_error_string(errorcode: int) -> str:
    """The text of an error code; empty for one that was added and got none."""
    if type(errorcode) is not int:
        errorcode = c_int(errorcode)
    known = _TEXTS.get(errorcode)
    if known is not None:
        return known
    errorcode = c_int(errorcode)
    if errorcode in _added.classes:
        return _added.texts.get(errorcode, "")
    return f"MPI error {errorcode}: unknown error code"


def Add_error_class() -> int:
    """A new error class."""
    return _added.add_code(None)


@takes_c_ints("errorclass")
def Remove_error_class(errorclass: int) -> None:
    """Remove a class that has neither codes nor a text any more."""
    with _added.lock:
        used = [c for c, its in _added.classes.items() if its == errorclass and c != errorclass]
        if _added.classes.get(errorclass) != errorclass:
            raise MPIException(ERR_ARG, f"{errorclass} is not a class added by this program")
        if used or errorclass in _added.texts:
            raise MPIException(ERR_ARG, f"class {errorclass} still has codes {used} or a text")
        del _added.classes[errorclass]


@takes_c_ints("errorclass")
def Add_error_code(errorclass: int) -> int:
    """A new error code of a class."""
    if Get_error_class(errorclass) != errorclass:
        raise MPIException(ERR_ARG, f"{errorclass} is not an error class")
    return _added.add_code(errorclass)


@takes_c_ints("errorcode")
def Remove_error_code(errorcode: int) -> None:
    """Remove a code that has no text any more."""
    with _added.lock:
        if _added.classes.get(errorcode, errorcode) == errorcode:
            raise MPIException(ERR_ARG, f"{errorcode} is not a code added by this program")
        if errorcode in _added.texts:
            raise MPIException(ERR_ARG, f"code {errorcode} still has a text: remove that first")
        del _added.classes[errorcode]


@takes_c_ints("errorcode")
def Add_error_string(errorcode: int, string: str) -> None:
    """Give a text to an added class or code."""
    with _added.lock:
        if errorcode not in _added.classes:
            raise MPIException(ERR_ARG, f"{errorcode} was not added by this program")
        _added.texts[errorcode] = string


@takes_c_ints("errorcode")
def Remove_error_string(errorcode: int) -> None:
    """Remove the text of an added class or code."""
    with _added.lock:
        if errorcode not in _added.texts:
            raise MPIException(ERR_ARG, f"{errorcode} has no text added by this program")
        del _added.texts[errorcode]
