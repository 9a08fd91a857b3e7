"""The ticket: a file by which programs of another launcher may join a job.

It says where the job's launcher listens. The file as a whole is the secret by which both prove
themselves (`credentials.py`), so only its owner may read it.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Final, NamedTuple

_SECRET_SIZE: Final = 32  # bytes; arbitrary: 256 bits of the kernel's random generator
_SIZE_MAX: Final = 4096  # bytes; what a secret file may have (`credentials.py`)
_FORM: Final = "ompy ticket 1"


class TicketError(Exception):
    """There is no such ticket, or it is not one; the text says why."""


class Ticket(NamedTuple):
    """What a ticket says.

    Attributes:
        job_id: of the job.
        addresses: where its launcher listens, numeric.
        port: at each of them.
    """

    job_id: str
    addresses: tuple[str, ...]
    port: int


def write_ticket(path: str, ticket: Ticket) -> None:
    """Make the file, readable by its owner alone.

    Raises:
        TicketError: it cannot be made, or there is such a file.
    """
    secret = os.urandom(_SECRET_SIZE).hex()
    text = json.dumps({"form": _FORM, **ticket._asdict(), "secret": secret}) + "\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        file = os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError:
        text = "there is such a file already; if the job that wrote it is over, remove it"
        raise TicketError(text) from None
    except OSError as problem:
        raise TicketError(str(problem.strerror)) from None
    with os.fdopen(file, "w") as opened:
        opened.write(text)


def read_ticket(path: str) -> Ticket:
    """What a ticket says.

    Raises:
        TicketError: it cannot be read, is none, or others than its owner may read it.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(_SIZE_MAX + 1)
    except OSError as problem:
        raise TicketError(str(problem.strerror)) from None
    if status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise TicketError("others may read or write it; with it they can join. chmod 600 it")
    try:
        told = json.loads(text)
        if told["form"] != _FORM:
            raise TicketError(f"it is a ticket of another version: {told['form']!r}")
        addresses = tuple(map(str, told["addresses"]))
        return Ticket(str(told["job_id"]), addresses, int(told["port"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise TicketError("it was not written by --joinable") from None
