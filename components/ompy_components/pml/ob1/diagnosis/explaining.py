"""Why a message takes the protocol it takes: asks the sender's rule, changed one thing at a time.

Nothing here decides. The candidate comes from `selection` and `rails`, with the live rails of the
peer. What would change it is found by asking them again with another size, mode or layout, or
with one value of a rail or of ob1 replaced for the moment of the question.

Source: seed ob1 (Protocol Selection); reference openmpi.md 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from ompy.frameworks.bml import BmlEndpoint, Rail
from ompy.frameworks.btl import GET, PUT, SEND_INPLACE, BtlModule
from ompy.frameworks.btl_base.btl_parameters import FLAG_WORDS
from ompy.frameworks.explanation import Branch, Change, Explanation, Limit
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS

from ompy_components.pml.ob1.headers import FRAG_SIZE, UNION_SIZE
from ompy_components.pml.ob1.rendezvous.striping import WEIGHT_LEAST, heaviest_first
from ompy_components.pml.ob1.selection import (
    BUFFERED_PIPELINE,
    EAGER_ALLOCATED,
    EAGER_IMMEDIATE,
    EAGER_PREPARED,
    INLINE_MAX,
    RDMA_DIRECT_GET,
    RDMA_DIRECT_PUT,
    RDMA_PIPELINE,
    Protocol,
    choose,
    choose_large,
    first_payload,
    suits_direct,
    whole_max,
)

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

MODES: Final = {
    STANDARD: "standard",
    BUFFERED: "buffered",
    SYNCHRONOUS: "synchronous",
    READY: "ready",
}
SIZE_MAX: Final = 1 << 40  # bytes; arbitrary: no message is larger
STEP: Final = 1.2  # arbitrary: sizes are looked at in steps of a fifth, then to the byte
EAGER: Final = (EAGER_IMMEDIATE, EAGER_PREPARED, EAGER_ALLOCATED)


class Asked(NamedTuple):
    """A message that is asked about."""

    mode: int
    size: int
    contiguous: bool


class Explaining:
    """Explains for one peer. Call with the rank's lock held; nothing may be under way.

    Attributes:
        pml: the PML whose parameters decide; one that builds on ob1 has its own.
    """

    pml: ClassVar[str] = "ob1"

    def __init__(self, ob1: Ob1, endpoint: BmlEndpoint) -> None:
        self._ob1 = ob1
        self._endpoint = endpoint
        self._rail = endpoint.eager.rails[0]

    def explain(self, asked: Asked) -> Explanation:
        """Everything there is to say about a message."""
        protocol = self.candidate(asked)
        return Explanation(
            protocol.value,
            tuple(self._branches(asked, protocol)),
            tuple(self._receiver(asked, protocol)),
            tuple(map(self._rail_line, self._endpoint.send.rails)),
            tuple(self._limits(asked, protocol)),
            tuple(self._changes(asked, protocol)),
            tuple((size, found.value) for size, found in self._sizes(asked)),
        )

    def candidate(self, asked: Asked) -> Protocol:
        """What the sender would choose."""
        module = self._rail.module
        inplace = bool(module.flags & SEND_INPLACE)
        whole = self._whole_max(asked)
        found = choose(asked.mode, asked.size, whole, self._rail.immediate, inplace)
        if found is not None:
            return found
        rails = self._direct(asked)
        flags = rails[0].module.flags if rails else 0
        return choose_large(asked.mode, asked.contiguous, flags)

    def _whole_max(self, asked: Asked) -> int:
        """Bytes at most that go as one fragment."""
        module = self._rail.module
        limit = module.eager_limit - UNION_SIZE
        straight = self._ob1.sending.straight
        return whole_max(asked.mode, limit, module.lend_least) if straight else limit

    def _direct(self, asked: Asked) -> list[Rail]:
        """The rails that would move the whole message by RDMA."""
        if not asked.contiguous:
            return []
        return heaviest_first(self._ob1.rdma.rails.direct(self._endpoint, asked.size, GET | PUT))

    def _own(self, name: str) -> str:
        """The full name of a parameter of the PML."""
        return f"pml_{self.pml}_{name}"

    # the way through the rule

    def _branches(self, asked: Asked, protocol: Protocol) -> Iterator[Branch]:
        module = self._rail.module
        limit = module.eager_limit - UNION_SIZE
        eager = _parameter(module, "eager_limit")
        if asked.mode == SYNCHRONOUS:
            yield Branch("synchronous mode: its completion needs an answer, so never eager")
        else:
            able = "has" if self._rail.immediate else "has no"
            fits = "at most" if asked.size <= INLINE_MAX else "more than"
            yield Branch(
                f"{MODES[asked.mode]} mode, {module.name} {able} sendi, {asked.size} bytes are "
                f"{fits} {INLINE_MAX}"
            )
            if protocol is EAGER_IMMEDIATE and asked.size <= INLINE_MAX:
                return
        fits = "<=" if asked.size <= limit else ">"
        yield Branch(
            f"{asked.size} bytes {fits} {limit}, which is the eager limit {module.eager_limit} of "
            f"{module.name} less {UNION_SIZE} for the largest header",
            (eager,),
        )
        if asked.size <= self._whole_max(asked):
            yield from self._small(asked)
            return
        if asked.size <= limit:
            yield Branch(
                f"synchronous mode, and {module.name} may lend {module.lend_least} bytes or more: "
                f"they are not copied twice",
                (_parameter(module, "lend_least"),),
            )
        yield from self._large(asked, protocol)

    def _small(self, asked: Asked) -> Iterator[Branch]:
        if asked.mode == SYNCHRONOUS:
            return
        module = self._rail.module
        inplace = "is" if module.flags & SEND_INPLACE else "is not"
        yield Branch(
            f"{module.name} {inplace} inplace, the mode is {MODES[asked.mode]}, "
            f"the size {asked.size}",
            (_parameter(module, "flags"),),
        )
        lends = asked.contiguous and asked.mode != BUFFERED and asked.size >= module.lend_least
        if lends and self._ob1.sending.straight:
            yield Branch(
                f"{module.name} may lend it: the receiver reads it in the sender's memory, if that "
                f"took less than two copies lately",
                (_parameter(module, "lend_least"),),
            )

    def _large(self, asked: Asked, protocol: Protocol) -> Iterator[Branch]:
        if protocol is BUFFERED_PIPELINE:
            yield Branch("buffered mode")
            return
        yield Branch(
            "the buffer is contiguous" if asked.contiguous else "the buffer is not contiguous"
        )
        if not asked.contiguous:
            return
        pinned = self._ob1.rdma.rails.leave_pinned
        for rail in self._endpoint.rdma.rails:
            yield self._suitable(rail.module, asked.size, leave_pinned=pinned)
        if not self._endpoint.rdma.rails:
            yield Branch("no rail can put or get", self._flags())
        rails = self._direct(asked)
        if rails:
            word = "can" if rails[0].module.flags & GET else "cannot"
            yield Branch(f"{rails[0].module.name} {word} get", self._flags())
        elif self._endpoint.rdma.rails:
            yield Branch(
                "so no direct RDMA: no rail is left, or those that are have less than "
                f"{WEIGHT_LEAST:g} of the bandwidth"
            )

    def _suitable(self, module: BtlModule, size: int, *, leave_pinned: bool) -> Branch:
        free = module.registration_free
        cheap = leave_pinned or free
        fit = suits_direct(module.flags, module.min_rdma_pipeline_size, cheap, size)
        pinned = "free" if free else "kept" if leave_pinned else "not kept"
        able = FLAG_WORDS.text(module.flags & (PUT | GET))
        result = "moves the whole message by RDMA" if fit else "is for a pipeline of puts"
        return Branch(
            f"{module.name} ({able}) {result}: registrations are {pinned}, the size is "
            f"{size} and min_rdma_pipeline_size {module.min_rdma_pipeline_size}",
            (
                _parameter(module, "flags"),
                self._own("leave_pinned"),
                _parameter(module, "min_rdma_pipeline_size"),
            ),
        )

    def _flags(self) -> tuple[str, ...]:
        rails = self._endpoint.rdma.rails or self._endpoint.send.rails
        return tuple(dict.fromkeys(_parameter(rail.module, "flags") for rail in rails))

    # what follows from it

    def _receiver(self, asked: Asked, protocol: Protocol) -> Iterator[str]:
        otherwise = "else the message becomes a Send/Receive Pipeline"
        if protocol in EAGER:
            yield "nothing to decide: the message comes whole"
        elif protocol is RDMA_DIRECT_GET:
            yield (
                "gets, if its buffer is contiguous, or the message is unpacked from beside it, and "
                f"a rail of both can get; {otherwise}"
            )
            yield (
                "has the sender put the upper half meanwhile, if that waits (MPI_Send and the "
                "like), each rank has a core, and the size is at least the rail's split_least"
            )
        elif protocol is RDMA_DIRECT_PUT:
            yield f"asks for puts, if its buffer is contiguous and it can register it; {otherwise}"
        elif protocol is RDMA_PIPELINE:
            able = bool(self._ob1.rdma.rails.pipeline(self._endpoint))
            limit = self._endpoint.send_limit
            yield (
                "asks for puts between the first and the last bytes, if its buffer is contiguous, "
                f"a rail can put (as seen from here: {'yes' if able else 'no'}) and the size "
                f"is above {limit}, the largest min_rdma_pipeline_size (it is "
                f"{'above' if asked.size > limit else 'not above'}); {otherwise}"
            )
        else:
            yield "answers with an ACK for all that is left"

    def _rail_line(self, rail: Rail) -> str:
        module, endpoint = rail.module, self._endpoint
        arrays = [
            name
            for name in ("eager", "send", "rdma")
            if module in [other.module for other in getattr(endpoint, name).rails]
        ]
        return (
            f"{self._ob1.steps.rail_name(module)}: {FLAG_WORDS.text(module.flags)}; latency "
            f"{module.latency} us, bandwidth {module.bandwidth} Mbit/s, weight {rail.weight:.2f}; "
            f"used for {', '.join(arrays)}"
        )

    def _limits(self, asked: Asked, protocol: Protocol) -> Iterator[Limit]:
        module = self._rail.module
        if protocol in EAGER:
            return
        if protocol not in {RDMA_DIRECT_GET, RDMA_DIRECT_PUT}:
            limit = module.eager_limit - UNION_SIZE
            first = first_payload(asked.size, limit, module.rndv_eager_limit)
            names = (_parameter(module, "eager_limit"), _parameter(module, "rndv_eager_limit"))
            yield Limit(f"first fragment: {first} bytes with the RNDV", names)
        for rail in self._endpoint.send.rails:
            size = rail.module.max_send_size - FRAG_SIZE
            yield Limit(
                f"FRAG over {rail.module.name}: {size} bytes and a header of {FRAG_SIZE}",
                (_parameter(rail.module, "max_send_size"),),
            )
        depth, most = self._ob1.sending.streaming.limits
        yield Limit(f"FRAGs under way: {depth} at a time", (self._own("send_pipeline_depth"),))
        text = f"rails of a range of FRAGs: {most} at most"
        yield Limit(text, (self._own("max_send_per_range"),))
        yield from self._rdma_limits(protocol)

    def _rdma_limits(self, protocol: Protocol) -> Iterator[Limit]:
        if protocol not in {RDMA_DIRECT_GET, RDMA_DIRECT_PUT, RDMA_PIPELINE}:
            return
        word = "get" if protocol is RDMA_DIRECT_GET else "put"
        for rail in self._endpoint.rdma.rails:
            limit = getattr(rail.module, f"{word}_limit")
            size = f"{limit} bytes at most" if 0 < limit < SIZE_MAX else "any size"
            parameter = _parameter(rail.module, f"{word}_limit")
            yield Limit(f"one {word} over {rail.module.name}: {size}", (parameter,))
        if protocol is RDMA_PIPELINE:
            tail = self._endpoint.pipeline_send_length
            names = tuple(
                _parameter(rail.module, "rdma_pipeline_send_length")
                for rail in self._endpoint.send.rails
            )
            yield Limit(f"sent as FRAGs at the end: {tail} bytes", names)

    # what would change it

    def _changes(self, asked: Asked, protocol: Protocol) -> Iterator[Change]:
        for mode, name in MODES.items():
            other = self.candidate(asked._replace(mode=mode))
            if other is not protocol:
                yield Change(f"{name} mode", other.value)
        other = self.candidate(asked._replace(contiguous=not asked.contiguous))
        if other is not protocol:
            what = "a buffer that is not contiguous" if asked.contiguous else "a contiguous buffer"
            yield Change(what, other.value)
        for what, parameter, owner, name, value in self._settings(asked):
            with _instead(owner, name, value):
                other = self.candidate(asked)
            if other is not protocol:
                yield Change(what, other.value, (parameter,))

    def _settings(self, asked: Asked) -> Iterator[tuple[str, str, object, str, object]]:
        """What could be set otherwise: in words, its parameter, and where the value is held."""
        module = self._rail.module
        needed = asked.size + UNION_SIZE
        parameter = _parameter(module, "eager_limit")
        if module.eager_limit < needed:
            yield f"{parameter} of {needed} or more", parameter, module, "eager_limit", needed
        elif needed > UNION_SIZE + 1:
            text = f"{parameter} below {needed}"
            yield text, parameter, module, "eager_limit", needed - 1
        rails = self._ob1.rdma.rails
        pinned = not rails.leave_pinned
        parameter = self._own("leave_pinned")
        yield f"{parameter} {int(pinned)}", parameter, rails, "leave_pinned", pinned
        for own in dict.fromkeys(rail.module for rail in self._endpoint.send.rails):
            yield from self._flag_settings(own)
            parameter = _parameter(own, "min_rdma_pipeline_size")
            least = own.min_rdma_pipeline_size
            if least < asked.size:
                text = f"{parameter} of {asked.size} or more"
                yield text, parameter, own, "min_rdma_pipeline_size", asked.size
            elif asked.size > own.eager_limit + own.rdma_pipeline_send_length:  # it is no less
                text = f"{parameter} below {asked.size}"
                yield text, parameter, own, "min_rdma_pipeline_size", asked.size - 1

    def _flag_settings(self, module: BtlModule) -> Iterator[tuple[str, str, object, str, object]]:
        """Flags taken away: what a module cannot do no parameter gives it."""
        parameter = _parameter(module, "flags")
        for bit in (SEND_INPLACE, PUT, GET):
            if module.flags & bit:
                text = f"{parameter} without {FLAG_WORDS.text(bit)}"
                yield text, parameter, module, "flags", module.flags & ~bit

    def _sizes(self, asked: Asked) -> Iterator[tuple[int, Protocol]]:
        """Where, from no bytes up, another protocol begins."""

        def at(size: int) -> Protocol:
            return self.candidate(asked._replace(size=size))

        size, found = 0, at(0)
        yield 0, found
        while size < SIZE_MAX:
            larger = max(size + 1, int(size * STEP))
            other = at(larger)
            if other is not found:
                first = _first(at, size, larger)
                found = at(first)
                yield first, found
                larger = first
            size = larger


def _first(at: Callable[[int], Protocol], low: int, high: int) -> int:
    """The first size above `low` with another protocol than there; `high` has another."""
    start = at(low)
    while high - low > 1:
        middle = (low + high) // 2
        if at(middle) is start:
            low = middle
        else:
            high = middle
    return high


def _parameter(module: BtlModule, name: str) -> str:
    return f"btl_{module.name}_{name}"


@contextmanager
def _instead(owner: object, name: str, value: object) -> Iterator[None]:
    """Another value in place, for the moment of a question."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
