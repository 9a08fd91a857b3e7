"""Drives one rank's BTL modules as a PML would, and notes every breach of their contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from ompy.conformance.btl.callbacks import Arrivals, Completions, Errors, Metered
from ompy.conformance.btl.fragment import (
    Arrival,
    Fragment,
    PathError,
    Returned,
    content,
    sample,
)
from ompy.conformance.watched_network import Wire
from ompy.data.convertor import ContiguousConvertor, Convertor, GatherConvertor
from ompy.engine.virtual_engine import VirtualEngine
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    COMPLETED,
    NO_ORDER,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    QUEUED,
    RESOURCE_BUSY,
    SEND_ALWAYS_CALLBACK,
    BtlComponent,
    BtlModule,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.proc import Proc
from ompy.mca.component import NotAvailable
from ompy.runtime.ranks.nic_selection import find_nics

if TYPE_CHECKING:
    from ompy.conformance.btl.btl_worlds import World
    from ompy.frameworks.context import RankContext
    from ompy.mca.registry import Registry
    from ompy.net.faults.middleware import Fault

SECOND: Final = 1_000_000_000  # ns; Linux counts so
WAIT: Final = 200 * SECOND  # arbitrary: tcp gives a peer up after about 70 s of virtual time
FIRST_PAUSE: Final = 50_000  # ns; arbitrary: a few times the virtual wire's latency
TAGS: Final = (
    0x40,
    0x41,
    0x7F,
    0xFF,
)  # arbitrary; reference openmpi.md 3.3: the PML's begin at 0x40
HEADER: Final = 16  # bytes; arbitrary: what a PML's header takes
SCARCE: Final = (OUT_OF_RESOURCE, RESOURCE_BUSY)  # try again later
SCRIBBLE: Final = 0xEE  # arbitrary: what user memory is overwritten with once it is free


class Driver:
    """One rank: its modules, what it sent and received, and what it was told.

    Attributes:
        world: it belongs to.
        rank: of this process.
        context: what the modules work with.
        engine: of the rank.
        wire: its network.
        faults: what disturbs it, as the world's plan says.
        modules: of the BTL under test.
        unavailable: why the component has none, if it said so.
        inbox: what has arrived, in order.
        sent: what modules accepted, in order.
        errors: calls of the error callback.
        returned: what `sendi` took and came back, as rank, tag, bytes and errors told before.
        healed: times and ranks of paths that were said to be healed.
        refused: offers that found no resources.
        largest_poll: fragments delivered by one poll at most.
        finalized: after `finalize`.
        inside: the call into a module that is under way.
        on_arrival: called with each arrival, within the callback; or None.
        on_completion: called with each fragment completed, within the callback; or None.
    """

    def __init__(self, world: World, context: RankContext) -> None:
        self.world = world
        self.rank = context.rank
        self.context = context
        self.engine = context.engine
        self.wire = Wire(context.network, context.engine)
        self.wire.recording = context.trace.active
        context.network = self.wire
        self.faults: Sequence[Fault] = world.plan(self)
        for fault in self.faults:
            self.wire.install(fault)
        self.modules: list[BtlModule] = []
        self.unavailable = ""
        self.inbox: list[Arrival] = []
        self.sent: list[Fragment] = []
        self.errors: list[PathError] = []
        self.returned: list[Returned] = []
        self.healed: list[tuple[int, int]] = []
        self.refused = 0
        self.largest_poll = 0
        self.finalized = False
        self.on_arrival: Callable[[Arrival], None] | None = None
        self.on_completion: Callable[[Fragment], None] | None = None
        self._pollers: list[Metered] = []
        self._rails: dict[int, list[tuple[BtlModule, Endpoint]]] = {}
        self.inside = ""
        self._waits_for = "nothing"
        self._serial = 0
        self._turns: Counter[int] = Counter()
        self._open = 0  # fragments whose completion callback is to come
        self._completion = Completions(self)

    # -- life

    def open(self, registry: Registry, *, used: bool) -> None:
        """Bring the component's modules up, in the order a rank process does."""
        self.context.find_nics = partial(find_nics, registry, self.context)
        (component,) = registry.open("btl")
        assert isinstance(component, BtlComponent)
        if used:
            try:
                self.modules = list(component.init(self.context))
            except NotAvailable as reason:
                self.unavailable = str(reason)
        self.context.btls = list(self.modules)
        arrivals, errors = Arrivals(self), Errors(self)
        for tag in TAGS:
            self.context.active_messages.register(tag, arrivals)
        self._pollers = [Metered(self, module) for module in self.modules]
        for module, poller in zip(self.modules, self._pollers, strict=True):
            module.register_error(errors)
            self.engine.add_poller(poller)
            if self.world.failover:
                module.begin_failover()
        self.context.wireup.publish("pml", b"")
        self.context.wireup.commit()

    def finalize(self) -> None:
        """End every module; harmless the second time, and for a rank that has vanished."""
        if self.finalized:
            return
        self._waits_for = "finalize"
        for module in self.modules:
            with self.calling("finalize"):
                module.finalize()
        self.finalized = True
        for poller in self._pollers:
            self.engine.remove_poller(poller)
        for fragment in self.sent:
            if not fragment.done:
                self.complain(f"{fragment} was not completed when finalize returned")
        self.wire.close()
        self.world.departs(self.rank, "it has ended")

    def vanish(self) -> None:
        """Be killed: nothing is polled or said any more, the sockets close."""
        for poller in self._pollers:
            self.engine.remove_poller(poller)
        self.finalized = True
        self.wire.vanish()

    # -- peers

    @property
    def peers(self) -> list[int]:
        """Whom it talks to: all other ranks, or itself when nobody else can be reached."""
        if self.world.component.capabilities.reach == "self":
            return [self.rank]
        return [rank for rank in range(self.context.size) if rank != self.rank]

    def rails(self, rank: int) -> list[tuple[BtlModule, Endpoint]]:
        """The modules that reach a rank, each with its endpoint; asked once."""
        if rank not in self._rails:
            proc = self.context.procs[rank]
            self._rails[rank] = [
                (module, endpoint)
                for module in self.modules
                for endpoint in self.add_procs(module, [proc])
                if endpoint is not None
            ]
        return self._rails[rank]

    def add_procs(self, module: BtlModule, procs: Sequence[Proc]) -> list[Endpoint | None]:
        """Ask a module for endpoints and look at what it answers."""
        with self.calling("add_procs"):
            endpoints = module.add_procs(procs)
        if len(endpoints) != len(procs):
            self.complain(f"add_procs of {len(procs)} peers gave {len(endpoints)} endpoints")
        for proc, endpoint in zip(procs, endpoints, strict=False):
            if endpoint is not None and (endpoint.module, endpoint.proc) != (module, proc):
                self.complain(
                    f"the endpoint for {proc} is one of {endpoint.module}, {endpoint.proc}"
                )
        return endpoints

    # -- sending

    def data(self, size: int) -> bytes:
        """Bytes of a fragment that nobody else sends."""
        self._serial += 1
        return content(self.rank, self._serial, size)

    def post(
        self,
        target: int,
        data: bytes,
        *,
        via: str = "alloc",
        flags: int = BTL_OWNERSHIP,
        told: bool = True,
        rail: int = 0,
    ) -> Fragment | None:
        """Offer one fragment once.

        Args:
            target: rank it goes to.
            data: the fragment.
            via: `alloc`, `prepare`, `gather` or `sendi`.
            flags: of the descriptor.
            told: with a completion callback.
            rail: index of the module among those that reach the target.

        Returns:
            The fragment, accepted or rejected by its `result`; None when there are no resources
            now (with `sendi`: when it is not available now).
        """
        module, endpoint = self.rails(target)[rail]
        tag = TAGS[self._turns[target] % len(TAGS)]
        fragment = Fragment(
            self.rank, target, len(self.sent), data, tag, via, flags, module, endpoint
        )
        if via == "sendi":
            return self._immediate(fragment)
        with self.calling(via):
            descriptor = self._descriptor(fragment)
        if descriptor is None:
            self.refused += 1
            return None
        fragment.told = told
        return self.offer(fragment, descriptor)

    def offer(self, fragment: Fragment, descriptor: Descriptor) -> Fragment | None:
        """Send a descriptor that holds a fragment's bytes; returns as `post` does."""
        fragment.descriptor = descriptor
        descriptor.callback = self._completion if fragment.told else None
        descriptor.context = fragment
        self.sent.append(fragment)
        with self.calling("send"):
            result = fragment.module.send(fragment.endpoint, descriptor, fragment.tag)
        return self._answered(fragment, descriptor, result)

    def send(
        self,
        target: int,
        data: bytes,
        *,
        via: str = "alloc",
        flags: int = BTL_OWNERSHIP,
        told: bool = True,
    ) -> Fragment:
        """Offer a fragment until it is accepted; progress meanwhile.

        Raises:
            AssertionError: it was rejected, or there were no resources for too long.
        """
        fragment = self.post(target, data, via=via, flags=flags, told=told)
        if fragment is None:
            if via == "sendi":  # a PML sends it another way then
                return self.send(target, data, via="alloc", flags=flags, told=told)
            offered: list[Fragment] = []

            def accepted() -> bool:
                again = self.post(target, data, via=via, flags=flags, told=told)
                if again is not None:
                    offered.append(again)
                return bool(offered)

            self.wait(accepted, f"resources for {len(data)} bytes to rank {target}")
            fragment = offered[0]
        assert fragment.accepted, f"{fragment} was rejected with {fragment.result}"
        return fragment

    def _descriptor(self, fragment: Fragment) -> Descriptor | None:
        module, data = fragment.module, fragment.data
        if fragment.via == "alloc":
            made = module.alloc(fragment.endpoint, NO_ORDER, len(data), fragment.flags)
            if made is not None and len(made.segment) != len(data):
                self.complain(f"alloc of {len(data)} bytes gave {len(made.segment)}")
            if made is not None:
                made.segment[:] = data
            return made
        reserve = min(HEADER, len(data))
        convertor = self._user_memory(fragment, data[reserve:])
        made = module.prepare_src(
            fragment.endpoint, convertor, 0, NO_ORDER, reserve, convertor.size, fragment.flags
        )
        if made is not None:
            if made.payload_size != convertor.size:
                self.complain(f"prepare_src took {made.payload_size} bytes of {fragment}")
            made.segment[:reserve] = data[:reserve]
        return made

    def _user_memory(self, fragment: Fragment, payload: bytes) -> Convertor:
        memory = fragment.memory = bytearray(payload)
        view = memoryview(memory)
        if fragment.via != "gather":
            return ContiguousConvertor(view)
        cuts = [0, len(view) // 3, len(view) // 3 + 1, len(view)]
        return GatherConvertor([view[a:b] for a, b in pairwise(cuts) if b > a])

    def _immediate(self, fragment: Fragment) -> Fragment | None:
        data = fragment.data
        header = data[: min(HEADER, len(data))]
        convertor = self._user_memory(fragment, data[len(header) :])
        self.sent.append(fragment)
        with self.calling("sendi"):
            result = fragment.module.sendi(
                fragment.endpoint,
                convertor,
                header,
                convertor.size,
                NO_ORDER,
                fragment.flags,
                fragment.tag,
            )
        fragment.result = result
        if result == COMPLETED:
            self._count(fragment.target)
            self._release(fragment)
            return fragment
        if result >= 0:
            self.complain(f"sendi answered {result}: {COMPLETED} or a negative result was due")
        self.sent.remove(fragment)
        return None if result in (*SCARCE, NOT_AVAILABLE) else fragment

    def _answered(self, fragment: Fragment, descriptor: Descriptor, result: int) -> Fragment | None:
        fragment.result = result
        if result < 0:
            self.sent.remove(fragment)
            if fragment.completions:
                self.complain(f"{fragment} was rejected with {result}, and completed all the same")
            with self.calling("free"):
                fragment.module.free(descriptor)
            self.refused += result in SCARCE
            return None if result in SCARCE else fragment
        self._count(fragment.target)
        self._open += not fragment.done
        if result not in (COMPLETED, QUEUED):
            self.complain(f"send of {fragment} answered {result}")
        if result == COMPLETED:
            due = bool(fragment.flags & SEND_ALWAYS_CALLBACK) and fragment.told
            if len(fragment.completions) != due:
                self.complain(
                    f"send of {fragment} answered COMPLETED after {len(fragment.completions)} "
                    f"callbacks; {int(due)} were due"
                )
            if not due:
                self._release(fragment)
        return fragment

    def _count(self, target: int) -> None:
        """One more was accepted for a rank; the next one takes the next tag."""
        self.world.accepted[target] += 1
        self._turns[target] += 1

    def _release(self, fragment: Fragment) -> None:
        """A fragment is done: its memory is the user's again, its descriptor is given back."""
        if fragment.memory is not None:
            if fragment.memory != fragment.data[len(fragment.data) - len(fragment.memory) :]:
                self.complain(f"the user's memory was changed by sending {fragment}")
            fragment.memory[:] = bytes([SCRIBBLE]) * len(fragment.memory)
        descriptor, fragment.descriptor = fragment.descriptor, None
        if descriptor is not None and not fragment.flags & BTL_OWNERSHIP:
            fragment.module.free(descriptor)

    # -- being called

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """A receive callback."""
        if self.inside != "poll":
            self.complain(f"a fragment was delivered from within {self.inside or 'nothing'}")
        if self.finalized:
            self.complain("a fragment was delivered after finalize had returned")
        if endpoint.module is not module or module not in self.modules:
            self.complain(f"a fragment came through {module.name} with another's endpoint")
        arrival = Arrival(self.engine.now(), endpoint.proc.rank, tag, bytes(data))
        self.inbox.append(arrival)
        if self.on_arrival is not None:
            self._back(partial(self.on_arrival, arrival))

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A completion callback."""
        fragment = descriptor.context
        if not isinstance(fragment, Fragment):
            self.complain(f"a completion came with the context {fragment!r}")
            return
        if self.finalized:
            self.complain(f"{fragment} was completed after finalize had returned")
        if fragment.completions:
            self.complain(f"{fragment} was completed twice")
        if not fragment.told or fragment.result == COMPLETED:
            self.complain(f"{fragment} was completed by callback, which was not due")
        if (module, endpoint) != (fragment.module, fragment.endpoint):
            self.complain(f"{fragment} was completed by another module or endpoint")
        if status > 0:
            self.complain(f"{fragment} was completed with status {status}")
        fragment.completions.append((self.engine.now(), status))
        if len(fragment.completions) == 1:
            fragment.errors_before = len(self.errors)
            self._open -= fragment.result is not None
            self._release(fragment)
        if self.on_completion is not None:
            self._back(partial(self.on_completion, fragment))

    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        """An error callback."""
        if self.finalized:
            self.complain(f"an error was told after finalize had returned: {reason}")
        rank = None if proc is None else proc.rank
        self.errors.append(PathError(self.engine.now(), module, rank, reason, flags))

    def gave_back(self, module: BtlModule, proc: Proc, tag: int, fragment: memoryview) -> None:
        """A call of `returned`."""
        if self.finalized:
            self.complain("a fragment was returned after finalize had returned")
        back = Returned(proc.rank, tag, bytes(fragment), len(self.errors))
        self.returned.append(back)
        taken = any(
            sent.via == "sendi" and (sent.target, sent.tag, sent.data) == back[:3]
            for sent in self.sent
        )
        if not taken:
            self.complain(f"{len(fragment)} bytes were returned that sendi has not taken")

    def mended(self, module: BtlModule, proc: Proc) -> None:
        """A call of `healed`."""
        if self.finalized:
            self.complain("a path was healed after finalize had returned")
        self.healed.append((self.engine.now(), proc.rank))

    def _back(self, call: Callable[[], object]) -> None:
        """Run the test's own code within a callback: what that calls is not the module's doing."""
        inside, self.inside = self.inside, ""
        call()
        self.inside = inside

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """A call into a module is under way."""
        outer, self.inside = self.inside, name
        try:
            yield
        finally:
            self.inside = outer

    def complain(self, text: str) -> None:
        """Note a breach of the contract."""
        self.world.complain(f"rank {self.rank}: {text}")

    # -- waiting

    def wait(self, holds: Callable[[], bool], what: str, timeout: int = WAIT) -> None:
        """Progress until `holds`.

        Raises:
            AssertionError: that took longer than `timeout` ns of virtual time.
        """
        self._waits_for = what
        deadline = self.engine.now() + timeout
        pause = FIRST_PAUSE
        # in growing steps, as `holds` may look at another rank, whose news wakes nobody here
        while not self.engine.wait_until(holds, pause):
            assert self.engine.now() < deadline, (
                f"waited {timeout / SECOND:g} s of virtual time for {what}{self.world.said()}"
            )
            pause = min(2 * pause, SECOND)
        self._waits_for = "nothing"

    @property
    def open_fragments(self) -> int:
        """Accepted fragments whose completion callback is still to come."""
        return self._open

    def idle(self, duration: int) -> None:
        """Progress for `duration` ns of virtual time."""
        self.engine.wait_until(lambda: False, duration)

    def compute(self, duration: int) -> None:
        """Be busy for `duration` ns of virtual time, without any progress."""
        assert isinstance(self.engine, VirtualEngine)
        self.engine.spend(duration)

    def quiesce(self) -> None:
        """Progress until all ranks have come here and everything accepted is done and here.

        Raises:
            AssertionError: something was lost; the text names it.
        """
        self.world.meet(self)
        try:
            self.wait(self._quiet, "everything to arrive and be completed")
        except AssertionError as problem:
            raise AssertionError(f"{problem}: {self.world.open_ends()}") from None
        self.world.meet(self)

    def _quiet(self) -> bool:
        return not self._open and len(self.inbox) >= self.world.accepted[self.rank]

    def state(self) -> str:
        """What this rank is at, for messages."""
        return f"rank {self.rank} waits for {self._waits_for}"

    # -- looking back

    def received_from(self, rank: int) -> list[tuple[int, bytes]]:
        """Tag and bytes of what came from a rank, in order."""
        return [(item.tag, item.data) for item in self.inbox if item.source == rank]

    def check_inbox(self, *, ordered: bool, whole: bool = True) -> None:
        """See that everything the others' modules accepted is here, once and unaltered.

        Args:
            ordered: also in the order it was sent, per sender.
            whole: nothing may be missing.

        Raises:
            AssertionError: something is missing, twice, altered or in another order.
        """
        for rank in range(self.context.size):
            due = [
                (fragment.tag, fragment.data)
                for fragment in self.world.sent_to(self.rank)
                if fragment.sender == rank
            ]
            here = self.received_from(rank)
            missing, extra = Counter(due) - Counter(here), Counter(here) - Counter(due)
            assert not (whole and missing), (
                f"from rank {rank} to {self.rank}: {sample(missing)} lost"
            )
            assert not extra, f"from rank {rank} to {self.rank}: {sample(extra)} nobody sent"
            if ordered:
                check_order(due, here, f"from rank {rank} at {self.rank}")


def check_order(due: Sequence[object], here: Sequence[object], where: str) -> None:
    """See that what is here came in the order in which it was sent; all of it was sent.

    Raises:
        AssertionError: something did not; the text counts both from 1 on.
    """
    left = iter(enumerate(due, 1))
    last = 0
    for place, got in enumerate(here, 1):
        found = next((number for number, sent in left if sent == got), None)
        assert found is not None, (
            f"arrival {place} {where} is out of order: it was sent as number "
            f"{due.index(got) + 1}, and number {last} came before it"
        )
        last = found
