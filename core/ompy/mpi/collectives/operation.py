"""`MPI.Op`: reductions, on Python objects and on buffers."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from ompy.compiled import cfunc
from ompy.data.errors import ERR_OP, ERR_TYPE, MPIError
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import in_place, to_send
from ompy.mpi.buffers.common_forms import DATATYPES, operand
from ompy.mpi.buffers.spec import message
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, handle_for
from ompy.mpi.limits import Limited
from ompy.mpi.state import OpState

Function = Callable[[Any, Any, Any], Any]


class Op(Handle):
    """A reduction: callable on two Python objects, usable on buffers in collectives."""

    __slots__ = ("_function",)
    _kind: ClassVar[str] = "Op"
    # the user's function; a handle made of an integer does not know it
    _function: Function | None

    def __new__(cls, op: Op | None = None) -> Self:
        """A null handle, or another one for the same operation."""
        self: Self = handle_for(cls, op)
        self._function = None if op is None else op._function
        return self

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, OpState)

    def _state(self) -> OpState:
        return _state_of(self)

    def __call__(self, x: Any, y: Any, /) -> Any:
        """Combine two Python objects."""
        handle: Handle = self
        state: OpState | None = handle._inner
        if state is None:
            raise ValueError("the operation is null")
        return state.objects(x, y)

    def __reduce__(self) -> Any:
        if self._function is None:
            return super().__reduce__()
        return _recreate, (type(self), self._function, self._state().commutes)

    @classmethod
    def Create(cls, function: Function, commute: bool = False) -> Self:
        """A new operation.

        Args:
            function: `f(inbuf, inoutbuf, datatype)` stores in `inoutbuf` what the two make.
                Called on Python objects as `f(x, y, None)`, which returns what they make.
            commute: the order of operands may be changed.
        """
        if not callable(function):
            raise TypeError(f"expecting a function, not {type(function).__name__}")
        state = OpState("", lambda x, y: function(x, y, None), function, commutes=bool(commute))
        _users.count_new(state)
        self = cls._adopt(state)
        self._function = function
        return self

    def _release(self) -> None:
        _users.remove(self._inner)

    def Free(self) -> None:
        """Free it."""
        if self._state().name:
            raise MPIException(ERR_OP, f"{self._state().name} is predefined")
        self._release()
        self._inner = None

    def Is_commutative(self) -> bool:
        """Whether the order of operands may be changed."""
        return _state_of(self).commutes

    @property
    def is_commutative(self) -> bool:
        """Whether the order of operands may be changed."""
        return _state_of(self).commutes

    @property
    def is_predefined(self) -> bool:
        """Whether it is one of MPI's own."""
        handle: Handle = self
        state: OpState | None = handle._inner
        return state is None or state.name != ""

    def Reduce_local(self, inbuf: Any, inoutbuf: Any) -> None:
        """Combine two buffers of this process; the result is in the second."""
        if self._reduced_plainly(inbuf, inoutbuf):
            return
        left, datatype = message(inbuf, False)
        right, other = message(inoutbuf, True)
        check_match(left, datatype, right, other)
        operation = self._operation(datatype)
        place = in_place(right)
        result = memoryview(right.packed()) if place is None else place
        try:
            operation.check_layout(left.layout)
            size = left.count * left.layout.size
            operation.combine(left.layout, to_send(left), 0, result, 0, size)
        except MPIError as problem:
            if isinstance(problem, MPIException):
                raise
            raise MPIException(problem.code, problem.detail) from problem
        if place is None:
            right.store(result)

    def _reduced_plainly(self, inbuf: Any, inoutbuf: Any) -> bool:
        """Combine two contiguous buffers of equal numbers by a predefined operation."""
        state: OpState | None = self._inner
        operation = None if state is None else state.operation
        left = None if operation is None else operand(inbuf, False)
        right = None if left is None else operand(inoutbuf, True)
        if operation is None or left is None or right is None:
            return False
        layout = right.layout
        if left.layout is not layout or left.count != right.count:
            return False
        if layout.format not in operation.loops:
            return False
        if not layout.contiguous:
            return operation.combine_pairs(
                layout, left.memory, left.origin, right.memory, right.origin, right.count
            )
        size = right.count * layout.size
        operation.combine(layout, left.memory, left.origin, right.memory, right.origin, size)
        return True

    def _operation(self, datatype: Datatype) -> Operation:
        """The operation on buffers of a datatype, as the collectives want it."""
        state = self._state()
        if state.buffers is None:
            if state.operation is None:
                from ompy.data.kernels import OF_WINDOWS, PREDEFINED

                if state.name in OF_WINDOWS:
                    raise MPIException(ERR_OP, f"{state.name} is for windows, not for reductions")
                state.operation = PREDEFINED[state.name]
            return state.operation
        known = state.known
        if known is None or known[0] is not datatype._inner:
            kernel = _kernel(state.buffers, datatype)
            made = Operation("a user-defined operation", kernel, commutative=state.commutes)
            asked = datatype._state()
            plainly = any(asked is each._inner for each in DATATYPES.values())
            known = state.known = asked, made, asked.layout if plainly else None
        return known[1]


@cfunc
def _state_of(op: Handle) -> OpState:
    """What a handle refers to.

    Raises:
        MPIException: ERR_OP, it is null.
    """
    state: OpState | None = op._inner
    if state is None:
        raise MPIException(ERR_OP, "the operation is null (OP_NULL, or freed)")
    return state


def is_alike(one: Layout, other: Layout) -> bool:
    """Whether operations see the same in two datatypes, as in INT and INT32_T."""
    if one is other:
        return True
    alike = one.contiguous and other.contiguous and one.size == other.size
    return alike and bool(one.format) and one.format == other.format


def check_match(left: Message, datatype: Datatype, right: Message, other: Datatype) -> None:
    """See that two messages can be combined.

    Raises:
        ValueError: they differ in count or datatype.
    """
    if datatype != other and not is_alike(datatype._inner.layout, other._inner.layout):
        raise ValueError(
            f"message: the datatypes {datatype.name} and {other.name} of a reduction differ"
        )
    if left.count != right.count:
        raise ValueError(
            f"message: the counts {left.count} and {right.count} of a reduction differ"
        )


def _kernel(function: Function, datatype: Datatype) -> Callable[..., None]:
    """A user's function on packed elements; data with gaps are spread out for it.

    The user may free the datatype meanwhile, so the function gets a handle of its own.
    """
    from ompy.mpi.buffers.memory import buffer

    own = Datatype(datatype)

    def kernel(left: memoryview, right: memoryview, layout: Layout, count: int) -> None:
        if not count or not layout.size:
            return
        if layout.contiguous:
            function(buffer._of(left, left), buffer._of(right, right), own)
            return
        first, size = layout.span(count)
        if first < 0:
            raise MPIException(ERR_TYPE, "a reduction of elements that begin before their origin")
        spread = [bytearray(max(first + size, count * layout.extent)) for _ in range(2)]
        for packed, memory in zip((left, right), spread, strict=True):
            Message(memoryview(memory), 0, count, layout).store(packed)
        function(buffer(spread[0]), buffer(spread[1]), own)
        right[:] = Message(memoryview(spread[1]), 0, count, layout).packed()

    return kernel


def _recreate(cls: type[Op], function: Function, commute: bool) -> Op:
    return cls.Create(function, commute)


def _maxloc(x: Any, y: Any) -> Any:
    """The pair with the greater value; of equal ones that with the smaller index."""
    if x[0] == y[0]:
        return (x[0], x[1]) if x[1] <= y[1] else (y[0], y[1])
    return (x[0], x[1]) if x[0] > y[0] else (y[0], y[1])


def _minloc(x: Any, y: Any) -> Any:
    """The pair with the smaller value; of equal ones that with the smaller index."""
    if x[0] == y[0]:
        return (x[0], x[1]) if x[1] <= y[1] else (y[0], y[1])
    return (x[0], x[1]) if x[0] < y[0] else (y[0], y[1])


_OBJECTS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "MAX": lambda x, y: y if y > x else x,
    "MIN": lambda x, y: y if y < x else x,
    "SUM": operator.add,
    "PROD": operator.mul,
    "LAND": lambda x, y: bool(x) & bool(y),
    "BAND": operator.and_,
    "LOR": lambda x, y: bool(x) | bool(y),
    "BOR": operator.or_,
    "LXOR": lambda x, y: bool(x) ^ bool(y),
    "BXOR": operator.xor,
    "MAXLOC": _maxloc,
    "MINLOC": _minloc,
    "REPLACE": lambda _, y: y,
    "NO_OP": lambda x, _: x,
}

_users: Final = Limited("operations")

OP_NULL: Final = Op()._constant("OP_NULL")
OPERATIONS: Final[dict[str, Op]] = {
    name: Op._adopt(OpState(f"MPI_{name}", function))._constant(name)
    for name, function in _OBJECTS.items()
}
SUM: Final = OPERATIONS["SUM"]
