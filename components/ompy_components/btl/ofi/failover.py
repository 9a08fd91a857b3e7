"""What becomes of a path that has failed, and how it is taken back.

Breaking: the peer is told (over other rails, and by GONE over this one), then the PML, then what is
open is completed badly: fragments at once, in the order they were sent, and what the device still
has of puts, gets and atomics when it says so, or a while later. When nothing of it is left the path
may be mended.

Mending: HELLO asks for the generation after the last one both ends know of; whoever gets it gives
up what it still has of an older one and answers WELCOME. Two HELLOs that cross ask for the same. A
peer that has had a higher one says HELLO itself when it is its turn.

Source: reference ofi.md A6, openmpi.md 4.15; seed bfo (9).
"""

from __future__ import annotations

import errno
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.engine.timers import Timer
from ompy.frameworks.btl import ERROR_FATAL, ERROR_NONFATAL, UNREACHABLE
from ompy.frameworks.healing import Mender, Phase
from ompy.frameworks.nic.fabric import Completion, FabricError
from ompy.frameworks.rail_notices import tell_of_failure

from ompy_components.btl.ofi.headers import GENERATIONS, Kind

if TYPE_CHECKING:
    from ompy.frameworks.proc import Proc

    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.module import OfiModule

MS: Final = 1_000_000  # ns; Linux counts so
ABANDON: Final = 500 * MS  # arbitrary: far more than a device needs to report what it has
ANSWER: Final = 200 * MS  # arbitrary: for HELLO and WELCOME; then it is tried again
GREET: Final = 2 * MS  # arbitrary: a few round trips
_HALF: Final = GENERATIONS // 2
FI_ENOKEY: Final = 266  # libfabric: fi_errno.h


class Blame(Enum):
    """What an error says about."""

    ARGUMENT = "the operation"
    PATH = "the path to the peer"
    DEVICE = "the device"


_ARGUMENT: Final = frozenset(
    (
        errno.EACCES,
        errno.EKEYREJECTED,
        errno.EINVAL,
        errno.EPERM,
        errno.EFAULT,
        errno.ENOKEY,
        errno.EMSGSIZE,
        FI_ENOKEY,
    )
)
_PATH: Final = frozenset(
    (
        errno.EREMOTEIO,  # reference ofi.md A6, as the next six
        errno.EHOSTUNREACH,
        errno.ECONNABORTED,
        errno.ECONNRESET,
        errno.ENOTCONN,
        errno.EHOSTDOWN,
        errno.EIO,
        errno.ECONNREFUSED,  # what connecting ends with, and what is flushed with it
        errno.ETIMEDOUT,
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.ESHUTDOWN,
        errno.EPIPE,
        errno.ECANCELED,
        errno.ENOENT,
    )
)


def blame(number: int) -> Blame:
    """What an operation's errno is about."""
    if number in _ARGUMENT:
        return Blame.ARGUMENT
    return Blame.PATH if number in _PATH else Blame.DEVICE


class Failover:
    """The broken paths of one module.

    Attributes:
        begun: a PML has asked for failover: failures are not fatal, and paths are mended.
        unsettled: `settle` may have something to do.
        counted: paths broken so far, and mended.
    """

    __slots__ = (
        "_answers",
        "_closed",
        "_doomed",
        "_draining",
        "_menders",
        "_module",
        "_to_fail",
        "begun",
        "counted",
        "unsettled",
    )

    def __init__(self, module: OfiModule) -> None:
        self._module = module
        self._to_fail: dict[OfiEndpoint, str] = {}
        self._doomed = ""
        self._draining: dict[OfiEndpoint, None] = {}
        self._menders: dict[OfiEndpoint, Mender] = {}
        self._answers: dict[OfiEndpoint, Timer] = {}
        self._closed = self.unsettled = False
        self.begun = False
        self.counted = {"paths_broken": 0, "paths_healed": 0}

    # -- how it begins

    def post_failed(self, endpoint: OfiEndpoint, problem: FabricError) -> None:
        """Posting was refused: have it fail with the next poll, not within a call of the PML."""
        if blame(problem.errno) is Blame.DEVICE:
            self.doom(str(problem))
        elif not endpoint.broken:
            self._to_fail.setdefault(endpoint, str(problem))
            self.unsettled = True

    def doom(self, reason: str) -> None:
        """The device has failed: have all fail with the next poll."""
        self._doomed = self._doomed or reason
        self.unsettled = True

    def work_failed(self, endpoint: OfiEndpoint, completion: Completion, fault: Blame) -> None:
        """Work to a peer has ended badly."""
        reason = completion.detail or errno.errorcode.get(completion.error, str(completion.error))
        if fault is Blame.DEVICE:
            self.device_failed(reason)
        else:
            self.fail(endpoint, reason)

    def suspect(self, reason: str) -> None:
        """A connection has broken, and the device cannot say whose: try all that are idle.

        Where there is one path only, and that in order until now, it is known.
        """
        peers = self._module.peers()
        idle = [one for one in peers if one.usable() and not one.farewell and not one.busy()]
        if len(peers) == len(idle) == 1:
            self.fail(idle[0], reason)
            return
        if self._module.two_sided:
            for endpoint in idle:
                endpoint.refused = True
            self._module.guard.look_soon()

    def fail_all(self, reason: str) -> None:
        """The link is down: so are all paths, and may heal."""
        for endpoint in self._module.peers():
            self.fail(endpoint, reason)

    def device_failed(self, reason: str) -> None:
        """Nothing of the device can be trusted any more: all paths fail, for good."""
        module = self._module
        if module.dead:
            return
        module.dead = reason
        module.note("DEVICE_FAILED", reason=reason)
        for endpoint in module.peers():
            self.fail(endpoint, reason)
            self._abandon(endpoint)

    def fail(self, endpoint: OfiEndpoint, reason: str, *, tell_peer: bool = True) -> None:
        """A path is broken. Harmless where it is already."""
        module, proc = self._module, endpoint.proc
        if endpoint.broken:
            return
        endpoint.broken = reason
        endpoint.proposed = 0
        module.sending.owing.pop(endpoint, None)
        self._to_fail.pop(endpoint, None)
        module.guard.trust(endpoint)
        self.counted["paths_broken"] += 1
        module.note("PATH_FAILED", peer=proc.rank, reason=reason)
        expected = bool(endpoint.farewell or proc.departed)
        if tell_peer and not expected:
            if self.begun:
                tell_of_failure(module, endpoint, endpoint.generation)
            if not module.dead and module.two_sided:
                module.sending.say(endpoint, Kind.GONE)
        if module.error_callback is not None and (endpoint.busy() or not expected):
            mendable = self.begun and not expected
            flags = ERROR_NONFATAL if mendable else ERROR_FATAL
            module.error_callback.failed(module, flags, proc, reason)
        endpoint.abandon_at = module.context.engine.now() + ABANDON
        self._draining[endpoint] = None
        self.unsettled = True
        self._end_fragments(endpoint)
        if self._mendable(endpoint):
            self._mender(endpoint).broke()

    def _end_fragments(self, endpoint: OfiEndpoint) -> None:
        """Complete what was sent: what the peer has not acknowledged, badly."""
        module = self._module
        waiting = list(endpoint.posted) if not module.sending.keeping else []
        lost = [*endpoint.kept, *waiting]
        endpoint.kept.clear()
        for fragment in list(endpoint.posted):
            if fragment.acknowledged:
                module.sending.complete(fragment, 0)
        for fragment in lost:
            if fragment.told or fragment.kind != Kind.FRAGMENT:
                continue
            if fragment.immediate and module.error_callback is not None and self.begun:
                module.error_callback.returned(
                    module, endpoint.proc, fragment.tag, fragment.segment
                )
            module.sending.complete(fragment, UNREACHABLE)

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """A peer says over another rail that a generation of a path has failed."""
        endpoint = self._module.endpoints.get(proc.rank)
        if endpoint is None or number != endpoint.generation:
            return
        if path == self._module.path(endpoint):
            self.fail(endpoint, "the other end has given the path up", tell_peer=False)

    # -- until nothing is left of it

    @property
    def pressing(self) -> bool:
        """Something is to be done with the next poll."""
        return bool(self._to_fail or self._doomed)

    def settle(self) -> int:
        """Fail what is to fail, give up what the device does not report. Returns how many."""
        events = 0
        if self._doomed:
            self.device_failed(self._doomed)
            self._doomed = ""
            events += 1
        while self._to_fail:
            endpoint, reason = self._to_fail.popitem()
            self.fail(endpoint, reason)
            events += 1
        if self._draining:
            now = self._module.context.engine.now()
            for endpoint in list(self._draining):
                if not endpoint.operations and not endpoint.posted:
                    del self._draining[endpoint]
                elif now >= endpoint.abandon_at:
                    self._abandon(endpoint)
                    events += 1
        self.unsettled = self.pressing or bool(self._draining)
        return events

    @property
    def due(self) -> int | None:
        """When `settle` has something to give up, ns; None: nothing."""
        times = [endpoint.abandon_at for endpoint in self._draining]
        return min(times) if times else None

    def _abandon(self, endpoint: OfiEndpoint) -> None:
        """The device will not say how these end, or says it too late."""
        module = self._module
        self._draining.pop(endpoint, None)
        for operation in list(endpoint.operations):
            module.transfers.complete(operation, UNREACHABLE)
        for fragment in list(endpoint.posted):
            module.sending.complete(fragment, UNREACHABLE)
            module.sending.abandon(endpoint, fragment)

    # -- taking it back

    def _mendable(self, endpoint: OfiEndpoint) -> bool:
        gone = endpoint.farewell or endpoint.proc.departed
        return self.begun and not gone and not self._closed and not self._module.dead

    def _mender(self, endpoint: OfiEndpoint) -> Mender:
        made = self._menders.get(endpoint)
        if made is None:
            module = self._module
            made = self._menders[endpoint] = Mender(
                module.context,
                endpoint.proc,
                (module.interface.address, endpoint.record.address),
                module.interface.name,
                partial(self._mend, endpoint),
            )
        return made

    def _mend(self, endpoint: OfiEndpoint) -> None:
        """The hosts' agents have found that the path carries packets."""
        if endpoint in self._draining:
            self._mender(endpoint).refused()
            return
        if not self._module.two_sided:  # nothing is numbered, so there is nothing to agree on
            self._healed(endpoint, (endpoint.generation + 1) % GENERATIONS)
            return
        endpoint.proposed = (endpoint.generation + 1) % GENERATIONS
        self._greet(endpoint, self._module.context.engine.now() + ANSWER)

    def _greet(self, endpoint: OfiEndpoint, until: int) -> None:
        """Say HELLO, again and again while the provider connects, then wait for the answer."""
        self._forget_answer(endpoint)
        engine = self._module.context.engine
        left = until - engine.now()
        if left <= 0:
            self._refused(endpoint)
        elif self._module.sending.say(endpoint, Kind.HELLO, endpoint.proposed):
            refused = partial(self._refused, endpoint)
            self._answers[endpoint] = engine.call_later(left, refused)
        else:
            again = partial(self._greet, endpoint, until)
            self._answers[endpoint] = engine.call_later(GREET, again)

    def _refused(self, endpoint: OfiEndpoint) -> None:
        self._forget_answer(endpoint)
        mender = self._menders.get(endpoint)
        if endpoint.broken and mender is not None and mender.phase is Phase.MENDING:
            mender.refused()

    def _forget_answer(self, endpoint: OfiEndpoint) -> None:
        timer = self._answers.pop(endpoint, None)
        if timer is not None:
            timer.cancel()

    def told(self, endpoint: OfiEndpoint, kind: Kind, generation: int) -> None:
        """HELLO, WELCOME or GONE of the peer."""
        module = self._module
        if kind is Kind.GONE:
            if generation == endpoint.generation:
                self.fail(endpoint, "the other end has given the path up", tell_peer=False)
        elif kind is Kind.WELCOME:
            if endpoint.broken and generation == endpoint.proposed:
                self._healed(endpoint, generation)
        elif not endpoint.broken and generation == endpoint.generation:
            module.sending.say(endpoint, Kind.WELCOME, generation)
        elif _later(generation, endpoint.generation) and self.begun and not module.dead:
            self.fail(endpoint, "the other end has given the path up", tell_peer=False)
            mender = self._menders.get(endpoint)
            held = mender is not None and mender.phase is Phase.HOLDING
            if not held and endpoint not in self._draining_now() and not self._closed:
                self._forget_answer(endpoint)
                self._welcome(endpoint, generation, module.context.engine.now() + ANSWER)

    def _welcome(self, endpoint: OfiEndpoint, generation: int, until: int) -> None:
        """Say WELCOME, again and again while the provider connects; then the path is healed."""
        self._answers.pop(endpoint, None)
        engine = self._module.context.engine
        if self._module.sending.say(endpoint, Kind.WELCOME, generation):
            self._healed(endpoint, generation)
        elif engine.now() < until:
            again = partial(self._welcome, endpoint, generation, until)
            self._answers[endpoint] = engine.call_later(GREET, again)
        else:
            self._refused(endpoint)

    def _draining_now(self) -> dict[OfiEndpoint, None]:
        self.settle()
        return self._draining

    def _healed(self, endpoint: OfiEndpoint, generation: int) -> None:
        self._forget_answer(endpoint)
        endpoint.renew(generation)
        self.counted["paths_healed"] += 1
        module = self._module
        module.note("PATH_HEALED", peer=endpoint.proc.rank)
        mender = self._menders.get(endpoint)
        if mender is not None and mender.phase is not Phase.SOUND:
            mender.mended()
        if module.error_callback is not None:
            module.error_callback.healed(module, endpoint.proc)

    # -- the end

    def ending(self) -> None:
        """No path is taken back any more."""
        self._closed = True
        for mender in self._menders.values():
            mender.end()
        for timer in self._answers.values():
            timer.cancel()
        self._answers.clear()

    def give_up_all(self) -> None:
        """The module ends: complete what nothing will be heard of."""
        for endpoint in list(self._draining):
            self._abandon(endpoint)


def _later(generation: int, than: int) -> bool:
    """Whether a generation comes after another; they wrap around."""
    return 0 < (generation - than) % GENERATIONS < _HALF
