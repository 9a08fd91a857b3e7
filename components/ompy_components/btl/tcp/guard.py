"""What a module that fails over does besides sending: doubts, bad news, and taking paths back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.engine.timers import Timer
from ompy.frameworks.bml import has_spare
from ompy.frameworks.btl import ERROR_FATAL, ERROR_NONFATAL
from ompy.frameworks.healing import Mender, Phase
from ompy.frameworks.paths import PathVerdict, PathWatch
from ompy.frameworks.rail_notices import tell_of_failure
from ompy.mca.parameter import Values
from ompy.net.base import LinkNews, Stream

from ompy_components.btl.tcp.acknowledging import Acknowledger, FailoverEndpoint
from ompy_components.btl.tcp.endpoint import CLOSED, CONNECTED, CONNECTING

if TYPE_CHECKING:
    from ompy.frameworks.proc import Proc

    from ompy_components.btl.tcp.module import TcpModule

LOOKS: Final = 4  # arbitrary: how often within `ack_timeout_ms` it is looked whether there is news
US: Final = 1_000  # ns; Linux counts so
MS: Final = 1_000_000


class _Doubt:
    """Something waits for a peer's answer.

    Attributes:
        since: when there were news last, ns.
        progress: what had got through by then.
        watch: of the path, once nothing has got through for long.
    """

    __slots__ = ("progress", "since", "watch")

    def __init__(self, since: int, progress: tuple[object, ...]) -> None:
        self.since = since
        self.progress = progress
        self.watch: PathWatch | None = None


class Guard:
    """Of one module.

    Attributes:
        acknowledger: sends the acknowledgements that nothing carries.
        begun: a PML has asked for failover: broken paths are not the end, and are mended.
        ended: the module ends, so they are not mended any more.
    """

    def __init__(self, module: TcpModule, values: Values) -> None:
        self._module = module
        self._context = module.context
        self._timeout = values.ack_timeout_ms * MS
        self._chunk = values.put_chunk
        self._unsent_max = values.unsent_max
        self._doubts: dict[FailoverEndpoint, _Doubt] = {}
        self._menders: dict[FailoverEndpoint, Mender] = {}
        self._timer: Timer | None = None
        self.ended = False
        self._closed = False
        self.begun = False
        self._link = None if module.interface.loopback else self._listen()
        engine = self._context.engine
        self.acknowledger = Acknowledger(
            engine, values.ack_delay_us * US, values.ack_bytes, values.unacknowledged_max
        )
        engine.add_poller(self.acknowledger)

    def _listen(self) -> LinkNews | None:
        news = self._context.network.link_news(self._module.interface.name)
        if news is not None:
            self._module.readiness.add(news, self)
        return news

    def ready(self, readable: bool, writable: bool) -> int:
        """There is news of some link; without ours every path has failed, as the NIC says."""
        if not self.unplugged():
            return 0
        for endpoint in self._module.peers():
            endpoint.silent(f"{endpoint.describe()}: the link is down")
        return 1

    def unplugged(self) -> bool:
        """Whether the module's own interface is known to be down or without a carrier."""
        return self._link is not None and self._link.down()

    def endpoint(self, proc: Proc) -> FailoverEndpoint:
        """A peer that acknowledges."""
        return FailoverEndpoint(self._module, proc, self)

    def chunk_of(self, endpoint: FailoverEndpoint) -> int:
        """Bytes of a put that go in one frame; 0 for all."""
        return self._chunk if has_spare(endpoint.proc) else 0

    def prepare(self, stream: Stream) -> None:
        """A connection is there: what is said about another one must not wait long in it."""
        if self._unsent_max and not self._module.interface.loopback:
            stream.hold_unsent(self._unsent_max)

    # -- silence

    def watch_over(self) -> None:
        """Something waits for an answer: look now and then whether one comes.

        Also while the module ends, which waits for the last of them.
        """
        if self._timer is None and self._timeout and not self._closed:
            self.acknowledger.guarded = True
            self._timer = self._context.engine.call_later(self._timeout // LOOKS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.acknowledger.guarded = False
        now = self._context.engine.now()
        waiting = [endpoint for endpoint in self._module.peers() if self._look(endpoint, now)]
        if waiting:
            self.watch_over()

    def _look(self, endpoint: FailoverEndpoint, now: int) -> bool:
        """Whether something waits for a peer; gives the path up when it is known to be dead."""
        if not _waits(endpoint):
            self._trust(endpoint)
            return False
        progress = (endpoint.acked, endpoint.news, endpoint.state)
        doubt = self._doubts.get(endpoint)
        if doubt is None or doubt.progress != progress:
            self._trust(endpoint)
            self._doubts[endpoint] = _Doubt(now, progress)
        elif now - doubt.since < self._timeout or endpoint.address is None:
            pass
        elif doubt.watch is None:
            doubt.watch = self._ask(endpoint)
        elif doubt.watch.verdict is PathVerdict.DEAD:
            why = f"nothing gets through over {endpoint.describe()}: {doubt.watch.why}"
            self._trust(endpoint)
            endpoint.silent(why)
            return False
        return True

    def _ask(self, endpoint: FailoverEndpoint) -> PathWatch:
        interface, there = self._module.interface, endpoint.address
        assert there is not None, "who has no address is not asked about"
        return self._context.paths.watch(
            endpoint.proc,
            interface.address,
            there.host,
            interface.name,
            self._changed,
            failover=has_spare(endpoint.proc),
        )

    def _changed(self) -> None:
        """There is a verdict, perhaps from within another module's poll: look at it at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = self._context.engine.call_later(0, self._tick)

    def _trust(self, endpoint: FailoverEndpoint) -> None:
        """There is no doubt any more."""
        doubt = self._doubts.pop(endpoint, None)
        if doubt is not None and doubt.watch is not None:
            doubt.watch.end()

    # -- broken paths, and mended ones

    def broke(self, endpoint: FailoverEndpoint, why: str) -> None:
        """Tell the other end, then the PML; then see that the path is mended.

        That a process has ended, or has left, the PML knows. It is told all the same when
        fragments have to be completed badly: those never come unannounced.
        """
        module, proc = self._module, endpoint.proc
        self._trust(endpoint)
        expected = bool(endpoint.leaving or proc.departed)
        if not expected and self.begun:
            tell_of_failure(module, endpoint, endpoint.number)
        mendable = self.begun and not expected and not self.ended
        if mendable:
            endpoint.mending = True
        open_ends = bool(endpoint.kept) or not endpoint.remote.idle
        if module.error_callback is not None and (open_ends or not expected):
            flags = ERROR_NONFATAL if mendable else ERROR_FATAL
            module.error_callback.failed(module, flags, proc, why)
        if mendable and endpoint.address is not None:
            self._mender(endpoint).broke()

    def refused(self, endpoint: FailoverEndpoint) -> None:
        """No connection came of trying to mend a path."""
        self._mender(endpoint).refused()

    def healed(self, endpoint: FailoverEndpoint) -> None:
        """There is a connection again."""
        mender = self._menders.get(endpoint)
        if mender is not None and mender.phase is not Phase.SOUND:
            mender.mended()
        if self._module.error_callback is not None:
            self._module.error_callback.healed(self._module, endpoint.proc)

    def holds(self, endpoint: FailoverEndpoint) -> bool:
        """Whether a path has broken so often that it is left alone for now."""
        mender = self._menders.get(endpoint)
        return mender is not None and mender.left_alone

    def _mender(self, endpoint: FailoverEndpoint) -> Mender:
        made = self._menders.get(endpoint)
        if made is None:
            interface, there = self._module.interface, endpoint.address
            assert there is not None, "who has no address is not connected to"
            made = self._menders[endpoint] = Mender(
                self._context,
                endpoint.proc,
                (interface.address, there.host),
                interface.name,
                endpoint.mend,
            )
        return made

    # -- the end

    def forget(self, endpoint: FailoverEndpoint) -> None:
        """A peer is not needed any more."""
        self._trust(endpoint)
        mender = self._menders.pop(endpoint, None)
        if mender is not None:
            mender.end()

    def ending(self) -> None:
        """The module ends: no path is taken back any more."""
        self.ended = True
        for mender in self._menders.values():
            mender.end()

    def close(self) -> None:
        """Every endpoint is closed."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._link is not None:
            self._module.readiness.remove(self._link)
            self._link.close()
        self._context.engine.remove_poller(self.acknowledger)


def _waits(endpoint: FailoverEndpoint) -> bool:
    """Whether an answer of the peer is due."""
    if endpoint.state is CONNECTED:
        return bool(endpoint.kept) or not endpoint.remote.idle
    return endpoint.state is CONNECTING or (endpoint.state is CLOSED and bool(endpoint.kept))
