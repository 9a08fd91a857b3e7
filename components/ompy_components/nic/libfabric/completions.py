"""Completion queues.

Entries are read into one array, so many at a time, and taken apart word by word. The order of
fields is that of `struct fi_cq_msg_entry`: context, flags, length.

Source: reference ofi.md A6, B1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.frameworks.nic.fabric import Completion, CompletionQueue, FabricError
from ompy.net.base import LinkError

from ompy_components.nic.libfabric import direct
from ompy_components.nic.libfabric.contexts import Contexts, Work
from ompy_components.nic.libfabric.direct import EAGAIN

if TYPE_CHECKING:
    from ompy_components.nic.libfabric.domain import LibfabricDomain, LibfabricRegion
    from ompy_components.nic.libfabric.library import Library

ENTRY: Final = 24  # bytes; libfabric: struct fi_cq_msg_entry
LENGTH: Final = 16  # bytes; libfabric: where in it the length is
FORMAT_MSG: Final = 2  # libfabric: FI_CQ_FORMAT_MSG
WAIT_NONE: Final = 0  # libfabric: FI_WAIT_NONE
WAIT_FD: Final = 3  # libfabric: FI_WAIT_FD
GETWAIT: Final = 5  # libfabric: FI_GETWAIT, a command of fi_control
EAVAIL: Final = 259  # libfabric: FI_EAVAIL
USUAL: Final = 64  # entries read at once; reference ofi.md A1: num_cq_read
ERROR_ROOM: Final = 256  # bytes; arbitrary: longer than any libfabric's fi_cq_err_entry


@cclass
class LibfabricQueue(CompletionQueue):
    """One completion queue.

    Attributes:
        fid: libfabric's object.
        contexts: of the work that reports here.
        own: completions of work for which the provider has none.
    """

    _bytes: memoryview[int]
    _closing: list[LibfabricRegion]
    _descriptor: int
    _domain: LibfabricDomain
    _entries: Any
    _error: Any
    _library: Library
    _place: U64
    _read: U64
    _readerr: Any
    _room: int
    _strerror: Any
    _where: U64
    contexts: Contexts
    fid: Any
    own: list[Completion]
    __slots__ = tuple(__annotations__)

    def __init__(self, domain: LibfabricDomain, depth: int) -> None:
        library = domain.library
        self.contexts = Contexts(library.ffi)
        self.own = []
        self._domain = domain
        self._closing = domain.closing
        self._library = library
        self._descriptor = -1
        self._make_room(USUAL)
        self._error = library.ffi.new("char[]", ERROR_ROOM)
        self._open(depth)
        operations = self.fid.ops
        library.slot(operations, "read")  # an error where there is none
        self._place = direct.place(library.ffi, self.fid)
        self._read = direct.entry(library, "cq", operations, "read")
        self._readerr = library.slot(operations, "readerr")
        self._strerror = library.slot_or_none(operations, "strerror")

    def _open(self, depth: int) -> None:
        """With a descriptor for sleeping where the provider gives one, else without."""
        waits = [WAIT_FD, WAIT_NONE] if self._domain.may_wait else [WAIT_NONE]
        for wait in waits:
            try:
                self._open_with(depth, wait)
            except FabricError:
                if wait == waits[-1]:
                    raise
            else:
                break
        if wait == WAIT_FD:
            self._find_descriptor()

    def _open_with(self, depth: int, wait: int) -> None:
        ffi = self._library.ffi
        attributes = ffi.new("struct fi_cq_attr *")
        attributes.size = depth
        attributes.format = FORMAT_MSG
        attributes.wait_obj = wait
        made = ffi.new("struct fid_cq **")
        domain = self._domain.fid
        opens = self._library.slot(domain.ops, "cq_open")
        result = opens(domain, attributes, made, ffi.NULL)
        self._library.check_result(result, f"a completion queue of {self._domain.name}")
        self.fid = made[0]

    def _find_descriptor(self) -> None:
        ffi = self._library.ffi
        number = ffi.new("int *", -1)
        try:
            self._library.control(self.fid.fid, GETWAIT, number, "the descriptor of a queue")
            self._domain.network.watch(number[0])
        except (FabricError, LinkError):
            return
        self._descriptor = number[0]

    @ccall
    def read(self, most: int) -> list[Completion]:
        """What is done; makes the provider move things."""
        if most > self._room:
            self._make_room(most)
        if self.own:
            done: list[Completion]
            done, self.own = self.own[:most], self.own[most:]
            return done
        count: int = direct.completions(self._read, self._place, self._where, most)
        if count > 0:
            return self._taken(count)
        if count == -EAGAIN or not count:
            return []
        if count == -EAVAIL:
            return self._errors(most)
        raise self._library.error(count, f"a completion queue of {self._domain.name}")

    def _make_room(self, most: int) -> None:
        ffi = self._library.ffi
        self._entries = ffi.new("struct fi_cq_msg_entry[]", most)
        self._bytes = memoryview(ffi.buffer(self._entries)).cast("B")
        self._where = direct.place(ffi, self._entries)
        self._room = most

    @cfunc
    def _taken(self, count: int) -> list[Completion]:
        contexts: Contexts = self.contexts
        done: list[Completion] = []
        index: int
        for index in range(count):
            at: int = index * ENTRY
            work: Work | None = contexts.held.pop(raw.word(self._bytes, at), None)
            if work is not None:
                made: Completion = Completion.__new__(Completion)
                made.size = raw.word(self._bytes, at + LENGTH) if work.receives else 0
                made.error = 0
                made.detail = ""
                made.context = contexts.ended(work)
                done.append(made)
        if self._closing:
            self._domain.close_regions()
        return done

    def _errors(self, most: int) -> list[Completion]:
        """Errors that are there, and with them what is done behind them."""
        done: list[Completion] = []
        while len(done) < most:
            entry = self._library.ffi.cast("struct fi_cq_err_entry *", self._error)
            self._library.ffi.memmove(self._error, b"\0" * ERROR_ROOM, ERROR_ROOM)
            count = self._readerr(self.fid, entry, 0)
            if count < 0 and count != -EAGAIN:
                raise self._library.error(count, f"the errors of {self._domain.name}")
            if count <= 0:
                break
            work = self.contexts.held.pop(entry.op_context, None)
            context = None if work is None else self.contexts.ended(work)
            done.append(Completion(context, 0, entry.err, self._words(entry)))
        if self._domain.closing:
            self._domain.close_regions()
        return done

    def _words(self, entry: Any) -> str:
        """Libfabric's words and the provider's."""
        ffi = self._library.ffi
        text = self._library.text_of(entry.err)
        if self._strerror is not None and entry.prov_errno:
            number = abs(entry.prov_errno)
            theirs = self._strerror(self.fid, number, entry.err_data, ffi.NULL, 0)
            if theirs:
                text = f"{text}; {self._domain.info.provider}: {ffi.string(theirs).decode()}"
        return text

    def arm(self) -> bool | None:
        """Ask libfabric whether the rank may sleep, where it has a descriptor that wakes it."""
        if self.own:
            return False
        if self._descriptor < 0:
            return None
        ffi = self._library.ffi
        fids = ffi.new("struct fid *[]", [ffi.addressof(self.fid.fid)])
        result = self._domain.trywait(fids, 1)
        if result == -EAGAIN:
            return False
        self._library.check_result(result, f"waiting for {self._domain.name}")
        return True

    def close(self) -> None:
        """Give it back; harmless the second time."""
        if self.fid is None:
            return
        if self._descriptor >= 0:
            self._domain.network.unwatch(self._descriptor)
            self._descriptor = -1
        fid, self.fid = self.fid, None
        self._domain.forget(self)
        self._library.close(fid.fid, "a completion queue")
        self.contexts.held.clear()
