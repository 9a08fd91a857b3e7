"""The request of a receive of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ompy.compiled import DECLARING, ccall, cclass, recycled
from ompy.data.constants import PROC_NULL
from ompy.data.convertor import Convertor, GrowingConvertor
from ompy.data.request import Request
from ompy.mpi.buffers.objects import pickle
from ompy.mpi.point_to_point.requeststate import RequestState

if TYPE_CHECKING:
    from ompy.mpi.state import CommState

if DECLARING:
    from ompy.mpi.buffers.objects import Pickle
    from ompy.mpi.state import CommState


@recycled
@cclass
class ObjectState(RequestState):
    """A receive of an object.

    Attributes:
        convertor: the memory it is received into.
    """

    convertor: Convertor
    __slots__ = tuple(__annotations__)

    @ccall
    def value(self) -> Any:
        """The object; None from PROC_NULL, and of an empty message."""
        operation: Request = self.operation
        if operation.source == PROC_NULL or operation.cancelled:
            return None
        convertor: Convertor = self.convertor
        codec: Pickle = pickle
        if isinstance(convertor, GrowingConvertor):
            return received_object(convertor)
        view = convertor.whole()
        if view is None:
            return None
        # the user's memory may be received into again: the object is not to lie in it
        return codec.load(memoryview(bytearray(view[: operation.received])))


@ccall
def received_object(convertor: GrowingConvertor) -> Any:
    """The object in a message that has come; None where none has."""
    owner = convertor.owner()
    if owner is None:
        return None
    codec: Pickle = pickle  # under a name of this function it is typed where this is compiled
    return codec.load(owner)


@ccall
def object_state(comm: CommState | None, operation: Request, convertor: Convertor) -> ObjectState:
    """A state of a receive of an object. Made without `__init__`."""
    made: ObjectState = ObjectState.__new__(ObjectState)
    made.number = 0
    made.comm = comm
    made.world = None if comm is None else comm.world
    made.operation = operation
    made.keep = None
    made.receives = True
    made.watched = False
    made.convertor = convertor
    return made
