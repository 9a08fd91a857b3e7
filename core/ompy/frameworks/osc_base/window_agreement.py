"""What the members of a window agree on before it has a module."""

from __future__ import annotations

from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.frameworks.communicator import Communicator


def all_say(communicator: Communicator, yes: bool) -> bool:
    """Whether every member says yes; all of them call it, and get the same answer.

    Raises:
        MPIError: a member has ended.
    """
    said = memoryview(bytearray((yes,)))
    byte = Layout(((0, 1),), 0, 1, "B")
    assert communicator.coll is not None, "a window's communicator has its collectives"
    communicator.coll.allreduce(None, Message(said, 0, 1, byte), PREDEFINED["MPI_MIN"])
    return bool(said[0])
