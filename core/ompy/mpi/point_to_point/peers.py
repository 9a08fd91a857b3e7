"""What is wrong with a rank or a tag, in words."""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall
from ompy.data.constants import ANY_SOURCE, PROC_NULL, ROOT, TAG_UB
from ompy.data.errors import ERR_RANK, ERR_ROOT, ERR_TAG
from ompy.mpi.errors import MPIException
from ompy.mpi.integers import whole_number
from ompy.mpi.state import CommState

_OWN_GROUPS: Final = (ROOT, PROC_NULL)


def with_size(state: CommState) -> str:
    """A communicator's name, and how many ranks can be named in it."""
    size = state.size
    plural = "rank" if size == 1 else "ranks"
    return f"{state.communicator.name or 'the communicator'}, which has {size} {plural}"


def wrong_target(state: CommState, target: int, tag: int) -> MPIException:
    """The exception for a send to `target` with `tag`, one of which cannot be."""
    rank = whole_number(target)
    if not 0 <= rank < state.size and rank != PROC_NULL:
        return state.fail(ERR_RANK, f"rank {target} does not exist in {with_size(state)}")
    return state.fail(ERR_TAG, f"tag {whole_number(tag)}: a tag is a number from 0 to {TAG_UB}")


def wrong_source(state: CommState, source: int, tag: int) -> MPIException:
    """The exception for a receive from `source` with `tag`, one of which cannot be."""
    rank = whole_number(source)
    if not ANY_SOURCE <= rank < state.size and rank != PROC_NULL:
        return state.fail(
            ERR_RANK,
            f"rank {source} does not exist in {with_size(state)} (and is not ANY_SOURCE)",
        )
    return state.fail(
        ERR_TAG, f"tag {whole_number(tag)}: a tag is a number from 0 to {TAG_UB}, or ANY_TAG"
    )


def check_tag(state: CommState, tag: int) -> None:
    """See that the tag of a call that makes a communicator can be one.

    Raises:
        MPIException: ERR_TAG, it cannot.
    """
    if not 0 <= tag <= TAG_UB:
        raise state.fail(ERR_TAG, f"tag {tag}: a tag is a number from 0 to {TAG_UB}")


@ccall
def own_size(state: CommState) -> int:
    """Members of this process's own group."""
    return len(state.communicator.own)


@ccall
def check_root(state: CommState, root: Any) -> None:
    """See that a root exists; between two groups, ROOT and PROC_NULL are the own group's.

    Raises:
        MPIException: ERR_ROOT, it does not.
    """
    if not 0 <= root < state.size and not (state.communicator.between and root in _OWN_GROUPS):
        raise state.fail(
            ERR_ROOT, f"root {whole_number(root)} does not exist in {with_size(state)}"
        )


@ccall
def is_root(state: CommState, root: Any) -> bool:
    """Whether this process is the root, which exists."""
    mine: int = ROOT if state.communicator.between else state.communicator.rank
    return bool(root == mine)
