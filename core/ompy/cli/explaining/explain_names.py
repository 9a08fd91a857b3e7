"""What people call a collective call, and which operation of coll serves it.

`Iallreduce`, `MPI_Iallreduce` and `allreduce_init` all mean calls that coll knows as `allreduce`.
The names of the calls are those that are numbered in `ompy.frameworks.collectives.call_kinds`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from ompy.frameworks.coll import NEIGHBOURHOODS, OPERATIONS
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.mca.errors import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

BLOCKING: Final = "blocking"
NONBLOCKING: Final = "nonblocking"
PERSISTENT: Final = "persistent"
# how the names of MPI, of C and of Python begin
_PREFIXES: Final = re.compile(r"^(p?mpix?[_.])?((intra|inter)?comm(_world)?\.)?", re.IGNORECASE)
# a call with a count for each rank, or a type too, is served as the one with a count for all
_ENDINGS: Final = re.compile(r"(v|w|_block)$")
# calls that are messages of their own, and the mode of the send
_SENDS: Final = {"send": "standard", "bsend": "buffered", "ssend": "sync", "rsend": "ready"}
_OF_WINDOWS: Final = ("put", "get", "accumulate", "get_accumulate", "fetch_and_op", "win.fence")


class CalledCollective(NamedTuple):
    """A collective call.

    Attributes:
        call: its name, as mpi4py spells it.
        operation: the operation of coll that serves it.
        form: `BLOCKING`, `NONBLOCKING` or `PERSISTENT`.
        counts: each rank has a count of its own.
    """

    call: str
    operation: str
    form: str = BLOCKING
    counts: bool = False


def _called(call: str) -> CalledCollective | None:
    """What a call of the table is; None if coll does not serve it."""
    name, form = call.lower(), BLOCKING
    if name.endswith("_init"):
        name, form = name.removesuffix("_init"), PERSISTENT
    for base, kind in ((name, form), (name.removeprefix("i"), NONBLOCKING)):
        operation = base if base in SERVED else _ENDINGS.sub("", base)
        if operation in SERVED:
            counts = operation != base and not base.endswith("_block")
            return CalledCollective(call, operation, kind, counts)
    return None


SERVED: Final = (*OPERATIONS, *NEIGHBOURHOODS)
CALLS: Final = {
    call.lower(): found for call in KINDS if call[0].isupper() and (found := _called(call))
}


def plain_name(word: str) -> str:
    """A name as the table has it: without a prefix, in small letters."""
    bare = _PREFIXES.sub("", word.strip()).removesuffix("()").lower()
    return bare.replace("-", "_").replace("neighbour", "neighbor")


def find_collective(word: str) -> CalledCollective:
    """The call that somebody means.

    Raises:
        ValueError: there is none; the text says what there is.
    """
    name = plain_name(word)
    if name in CALLS:
        return CALLS[name]
    message = re.sub(r"_init$", "", name.removeprefix("i"))
    if message in _SENDS:
        mode = _SENDS[message]
        raise ValueError(
            f"{word} is one message, not a collective call: "
            f"ompy explain --size BYTES --mode {mode} explains it"
        )
    if message in ("recv", "mrecv", "sendrecv"):
        raise ValueError(
            f"{word} is about one message, whose sender chooses the protocol: "
            "ompy explain --size BYTES explains it"
        )
    if name.removeprefix("r") in _OF_WINDOWS:
        raise ValueError(
            f"{word} is of windows, which have no explanation; "
            "ompy explain --gasnet put is about a put of GASNet"
        )
    near = nearest(name, CALLS)
    meant = f"; did you mean {CALLS[near].call}?" if near else "."
    raise ValueError(
        f"there is no collective call {word}{meant} There are {', '.join(SERVED)}, "
        "their nonblocking (Iallreduce) and persistent forms (Allreduce_init), "
        "and those with counts (Gatherv)"
    )


if TYPE_CHECKING:
    _ParamType = click.ParamType[CalledCollective]
else:
    _ParamType = click.ParamType  # earlier ones of click are not generic


class CollectiveName(_ParamType):
    """A collective call, by any of its names."""

    name = "collective"

    def convert(self, value: Any, param: Any, ctx: Any) -> CalledCollective:
        """The call."""
        if isinstance(value, CalledCollective):
            return value
        try:
            return find_collective(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """The operations, and other forms once one has been begun."""
        from click.shell_completion import CompletionItem

        known = [*SERVED, *(found.call for found in CALLS.values())] if incomplete else SERVED
        return [CompletionItem(each) for each in known if each.startswith(incomplete)]
