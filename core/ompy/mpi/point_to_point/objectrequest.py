"""The request of a receive of an object."""

from __future__ import annotations

from typing import Any

from ompy.data.constants import PROC_NULL
from ompy.data.convertor import Convertor, GrowingConvertor
from ompy.data.request import Request
from ompy.mpi.buffers.objects import pickle
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.state import CommState


class ObjectState(RequestState):
    """A receive of an object.

    Attributes:
        convertor: the memory it is received into.
    """

    __slots__ = ("convertor",)

    def __init__(self, comm: CommState | None, operation: Request, convertor: Convertor) -> None:
        super().__init__(comm, operation, None, receives=True)
        self.convertor = convertor

    def value(self) -> Any:
        """The object; None from PROC_NULL, and of an empty message."""
        operation = self.operation
        if operation.source == PROC_NULL or operation.cancelled:
            return None
        view = self.convertor.view
        if view is None:
            return None
        if isinstance(self.convertor, GrowingConvertor):
            return pickle.load(view)
        # the user's memory may be received into again: the object is not to lie in it
        return pickle.load(memoryview(bytearray(view[: operation.received])))
