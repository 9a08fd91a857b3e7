"""Atomic operations on words of segments, in domains of one type and some operations.

A domain says beforehand of which type its words are and what is done to them. By that it is known
for each peer who computes: the NIC, where it has all of the domain's operations, else the
processor of the word's owner, asked by an active message; words of the own rank are done at once.
Operations on a word are atomic among each other whoever computes, as both work with the owner's
lock held; puts and gets, and the owner's own reading and writing, are not kept out.

Source: reference gasnet.md 14 (Atomics); seed gasnet (Background).
"""

# ruff: noqa: SLF001 - handles, domains and ranks are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from ompy.data.errors import MPIError
from ompy.frameworks.conduit import EXTENDED_HANDLERS, Category, Token, Transfer
from ompy.gasnet.atomic_words import (
    ALL,
    FETCHES,
    FLOATS,
    INTEGERS_ONLY,
    NO_OPERAND,
    Datatype,
    Number,
    Op,
    bits_of,
    compute_word,
    for_nic,
    number_of,
    size_of,
)
from ompy.gasnet.errors import BadArgument
from ompy.gasnet.fill import halves, joined_number
from ompy.gasnet.handles import INVALID_HANDLE, Handle
from ompy.gasnet.locks import Locks
from ompy.gasnet.messages import LARGEST
from ompy.gasnet.rank import LAYER, check_integers, writable_bytes

ATOMIC: Final = EXTENDED_HANDLERS[4]
ATOMIC_DONE: Final = EXTENDED_HANDLERS[5]
_KINDS: Final = tuple(Datatype)
_LOW: Final = 0xFFFF_FFFF  # reference gasnet.md 1: bits of one argument


class AtomicDomain:
    """Words of one type, and what may be done to them; made by `ad_create`.

    Attributes:
        datatype: of the words.
        ops: all that may be done.
    """

    __slots__ = ("_by_nic", "_rank", "datatype", "ops")

    def __init__(self, rank: Atomics, datatype: Datatype, ops: Op) -> None:
        self._rank: Atomics | None = rank
        self._by_nic: dict[int, bool] = {}
        self.datatype = datatype
        self.ops = ops

    def op(
        self, node: int, offset: int, op: Op | int, operand1: Number = 0, operand2: Number = 0
    ) -> Number | None:
        """Do one, and wait for it.

        Args:
            node: whose segment the word is in.
            offset: of the word there, a multiple of its bytes.
            op: one of the domain's.
            operand1: of CAS and FCAS, what the word has to be.
            operand2: of these, what is written then.

        Returns:
            The old value, of an operation that fetches; else None.

        Raises:
            BadArgument: an argument is wrong, the domain has been destroyed, or this thread may not
                communicate now.
            ResourceError: the peer is gone.
        """
        rank = self._owner()
        fetched = bytearray(size_of(self.datatype)) if op & FETCHES else None
        handle = self.op_nb(fetched, node, offset, op, operand1, operand2)
        if not handle.complete:
            rank._wait(handle)
        handle._release()
        if fetched is None:
            return None
        return number_of(self.datatype, int.from_bytes(fetched, "little"))

    def op_nb(
        self,
        result: Any,
        node: int,
        offset: int,
        op: Op | int,
        operand1: Number = 0,
        operand2: Number = 0,
    ) -> Handle:
        """Begin one; with a handle.

        Args:
            result: buffer of the word's size, which has the old value when the handle is complete;
                None where the operation does not fetch.
            node: whose segment the word is in.
            offset: of the word there, a multiple of its bytes.
            op: one of the domain's.
            operand1: as of `op`.
            operand2: as of `op`.

        Raises:
            BadArgument, ResourceError: as `op`.
        """
        rank = self._owner()
        asked = _Asked(self, result, op, operand1, operand2)
        if rank._atomic_here(node, offset, asked):
            return INVALID_HANDLE
        handle = rank._state().new_handle()
        try:
            rank._begin_atomic(node, offset, asked, handle)
        except BaseException:
            handle._release()
            raise
        return handle

    def op_nbi(
        self,
        result: Any,
        node: int,
        offset: int,
        op: Op | int,
        operand1: Number = 0,
        operand2: Number = 0,
    ) -> None:
        """Begin one, as an implicit get if it fetches, else as an implicit put."""
        rank = self._owner()
        asked = _Asked(self, result, op, operand1, operand2)
        if rank._atomic_here(node, offset, asked):
            return
        operations = rank._state().current()
        is_get = asked.result is not None
        operations.begin_transfer(is_get=is_get)
        try:
            rank._begin_atomic(node, offset, asked, operations)
        except BaseException:
            operations.done(is_get=is_get)
            raise

    def by_nic(self, node: int) -> bool:
        """Whether the NIC computes, for words of this rank; else its processor."""
        known = self._by_nic.get(node)
        if known is None:
            rank = self._owner()
            rank._check_node(node)
            forms = [for_nic(self.datatype, op, 0, 0) for op in Op if op & self.ops]
            has = rank._conduit.atomics(node) if node != rank._me else frozenset()
            known = all(form is not None and (form.op, form.kind) in has for form in forms)
            self._by_nic[node] = known
        return known

    def destroy(self) -> None:
        """Have it used no more; what was begun goes on.

        Raises:
            BadArgument: it has been destroyed.
        """
        self._owner()
        self._rank = None

    def _owner(self) -> Atomics:
        if self._rank is None:
            raise BadArgument("this atomic domain has been destroyed")
        return self._rank

    def __repr__(self) -> str:
        state = "" if self._rank is not None else ", destroyed"
        return f"<atomic domain of {self.datatype.name}: {self.ops!r}{state}>"


class _Asked:
    """One operation, checked."""

    __slots__ = ("domain", "first", "op", "result", "second")

    def __init__(
        self, domain: AtomicDomain, result: Any, op: Op | int, first: Number, second: Number
    ) -> None:
        kind = domain.datatype
        self.domain = domain
        self.op = _one(domain, op)
        fetches = bool(self.op & FETCHES)
        if fetches is (result is None):
            need = "needs a buffer for" if fetches else "does not fetch"
            raise BadArgument(f"{self.op.name} {need} the old value")
        self.result = None if result is None else writable_bytes(result)
        if self.result is not None and len(self.result) != size_of(kind):
            raise BadArgument(
                f"a {kind.name} has {size_of(kind)} bytes, the result's buffer {len(self.result)}"
            )
        unused = bool(self.op & NO_OPERAND)
        self.first = 0 if unused else bits_of(kind, first)
        self.second = bits_of(kind, second) if self.op & (Op.CAS | Op.FCAS) else 0


def _one(domain: AtomicDomain, op: Op | int) -> Op:
    if isinstance(op, int) and op > 0 and not op & op - 1 and op & domain.ops:
        return Op(op)
    raise BadArgument(f"{op!r} is no operation of {domain!r}")


class Atomics(Locks):
    """Atomic domains."""

    def ad_create(self, datatype: Datatype, ops: Op | int) -> AtomicDomain:
        """A domain of atomic operations: the ranks that use a word have domains made alike.

        Args:
            datatype: of its words: `DT_I32`, `DT_U32`, `DT_I64`, `DT_U64`, `DT_FLT`, `DT_DBL`.
            ops: what will be done: `OP_ADD | OP_GET`, ...

        Raises:
            NotInitialised: `attach` was not called.
            BadArgument: there is no such type or operation, or not of this type.
        """
        if not self._attached:
            self._refuse_early()
        if not isinstance(datatype, Datatype):
            raise BadArgument(f"{datatype!r} is no type of a word: DT_I64 and its like are")
        check_integers(ops)
        if not 0 < ops <= ALL:
            raise BadArgument(f"{ops!r} are no operations: OP_ADD | OP_GET, for example, are")
        if datatype in FLOATS and ops & INTEGERS_ONLY:
            wrong = Op(ops & INTEGERS_ONLY)
            raise BadArgument(f"{wrong!r} is for integers, not for {datatype.name}")
        return AtomicDomain(self, datatype, Op(ops))

    # --- below

    def _atomic_here(self, node: int, offset: int, asked: _Asked) -> bool:
        """Whether the word is the own rank's; it has been done then."""
        size = size_of(asked.domain.datatype)
        self._check_place(node, offset, size)
        if offset % size:
            raise BadArgument(f"offset {offset} is no multiple of the {size} bytes of the word")
        if node != self._me:
            return False
        old = self._change(asked.domain.datatype, asked.op, offset, asked.first, asked.second)
        if asked.result is not None:
            asked.result[:] = old.to_bytes(size, "little")
        if self._trace.active:
            self._copies += 1
            fields = {"op": self._copies, "offset": offset, "size": size, "way": "own memory"}
            self._trace.record(LAYER, "ATOMIC", peer=node, **fields)
        return True

    def _begin_atomic(self, node: int, offset: int, asked: _Asked, transfer: Transfer) -> None:
        kind = asked.domain.datatype
        if not asked.domain.by_nic(node):
            self._ask_owner(node, offset, asked, transfer)
            return
        form = for_nic(kind, asked.op, asked.first, asked.second)
        assert form is not None, "the NIC has it"
        try:
            with self._guard:
                self._conduit.atomic(node, offset, *form, asked.result, transfer)
        except MPIError as problem:
            raise self._failed(problem) from problem

    def _ask_owner(self, node: int, offset: int, asked: _Asked, transfer: Transfer) -> None:
        number = next(self._atomic_numbers) & LARGEST
        self._atomics_asked[number] = transfer, asked.result
        which = asked.op.bit_length() - 1, _KINDS.index(asked.domain.datatype)
        operands = [*_signed(asked.first), *_signed(asked.second)]
        try:
            words = [number, *which, *halves(offset), *operands]
            self._send_request(Category.SHORT, node, ATOMIC, words)
        except BaseException:
            del self._atomics_asked[number]
            raise

    def _change(self, kind: Datatype, op: Op, offset: int, first: int, second: int) -> int:
        """Do an operation in the own segment. Returns the bits of the old value."""
        size = size_of(kind)
        place = self._segment.memory[offset : offset + size]
        with self._engine.lock:  # the NIC's are done with it held, too
            old = int.from_bytes(place, "little")
            place[:] = compute_word(kind, op, old, first, second).to_bytes(size, "little")
        return old

    def _prepare_atomics(self) -> None:
        """Have the handlers in the table."""
        self._atomics_asked: dict[int, tuple[Transfer, memoryview | None]] = {}
        self._atomic_numbers = count(1)
        self._add_handler(ATOMIC, self._on_atomic)
        self._add_handler(ATOMIC_DONE, self._on_atomic_done)

    def _on_atomic(self, token: Token, _payload: memoryview, words: Sequence[int]) -> None:
        number, which, kind, *places = words
        offset, first, second = (_whole(*places[at : at + 2]) for at in (0, 2, 4))
        old = self._change(_KINDS[kind], Op(1 << which), offset, first, second)
        self._send_reply(Category.SHORT, token, ATOMIC_DONE, [number, *_signed(old)])

    def _on_atomic_done(self, _token: Token, _payload: memoryview, words: Sequence[int]) -> None:
        transfer, result = self._atomics_asked.pop(words[0])
        if result is not None:
            result[:] = _whole(*words[1:]).to_bytes(8, "little")[: len(result)]
        transfer.done(is_get=result is not None)


def _signed(bits: int) -> tuple[int, int]:
    """64 bits as two arguments, which have signs."""
    high, low = halves(bits)
    return high - _LOW - 1 if high > LARGEST else high, low


def _whole(high: int, low: int) -> int:
    """The bits that were cut in two."""
    return joined_number(high & _LOW, low)
