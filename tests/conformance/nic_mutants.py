"""Planted defects in nic/vic, and the test of the kit that has to notice each."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.nic.base import LinkState, Nic, NicComponent, NicError
from ompy.frameworks.nic.datagram import Completion, Status, Work
from ompy_components.nic.gni.component import GniComponent
from ompy_components.nic.hca.component import HcaComponent
from ompy_components.nic.vic.component import VicComponent
from ompy_components.nic.vic.device import Vic, VirtualFunction
from ompy_components.nic.vic.queues import SendEntry, VicCompletionQueue, VicQueuePair


class Pair(VicQueuePair):
    """As it should be."""


class Alters(Pair):
    """The first byte of a long message is another one."""

    def _deliver(self, packet, sender):
        if len(packet) > 1000:
            packet = memoryview(bytes([packet[0] ^ 1]) + bytes(packet[1:]))
        super()._deliver(packet, sender)


class CompletesTwice(Pair):
    """Every fifth send completes twice."""

    sent = 0

    def _finish(self, count, status):
        for _ in range(count):
            entry = self._sends[0]
            super()._finish(1, status)
            self.sent += 1
            if self.sent % 5 == 0:
                done = Completion(Work.SEND, status, entry.context, len(entry.message), None)
                self._queue.report_completion(done)


class ForgetsContexts(Pair):
    """Completions of sends have no context."""

    def _finish(self, count, status):
        for _ in range(count):
            entry = self._sends[0]
            self._sends[0] = SendEntry(entry.message, entry.to, None, entry.inline)
            super()._finish(1, status)


class KeepsInline(Pair):
    """An inline send reads the memory when the device gets to it."""

    def post_send(self, message, to, context, *, inline=False, more=False):
        super().post_send(message, to, context, inline=inline, more=True)
        self._sends[-1] = SendEntry(message, to, context, inline)
        if not more and not inline:
            self.ring()

    def busy(self):
        if self._sends and not self._rung:
            self.ring()
        return super().busy()


class Overwrites(Pair):
    """A message that is too long is stored beyond its buffer."""

    def _deliver(self, packet, sender):
        if self._buffers and len(packet) > len(self._buffers[0][0]):
            buffer, context = self._buffers[0]
            whole = memoryview(buffer.obj)
            at = context * self._function.nic.max_message
            whole[at : at + len(packet)] = packet
        super()._deliver(packet, sender)


class KeepsPackets(Pair):
    """What finds no buffer waits for one."""

    def receive(self, most):
        if self._buffers:
            super().receive(min(most, len(self._buffers)))

    def post_receive(self, buffer, context):
        super().post_receive(buffer, context)


class NeverFull(Pair):
    """Its queues take more than they have room for."""

    def post_receive(self, buffer, context):
        self._buffers.append((buffer, context))


class ForgetsBuffers(Pair):
    """Closing does not give the buffers back."""

    def close(self):
        self._buffers.clear()
        super().close()


class SaysOk(Pair):
    """A send over a link that is down is said to have gone."""

    def _finish(self, count, status):
        super()._finish(count, Status.OK)


class MakesUp(Pair):
    """A short message arrives a second time, with another byte in it."""

    def _deliver(self, packet, sender):
        super()._deliver(packet, sender)
        super()._deliver(memoryview(bytes(packet[:-1]) + b"x"), sender)


class Repeats(Pair):
    """A short message arrives twice over a wire that is good."""

    def _deliver(self, packet, sender):
        super()._deliver(packet, sender)
        super()._deliver(packet, sender)


class LeavesSockets(Pair):
    """Its socket stays open."""

    def close(self):
        socket, self._socket = self._socket, _Unclosed()
        self._function.readiness.remove(socket)
        super().close()


class _Unclosed:
    def close(self):
        pass


class DiffersFromRunToRun(Pair):
    """What it loses depends on how often it was used in this process."""

    lost = [0]  # noqa: RUF012 - common to all runs, on purpose

    def _deliver(self, packet, sender):
        self.lost[0] += 1
        if self.lost[0] % 7:
            super()._deliver(packet, sender)


class SleepsOn(VicCompletionQueue):
    """A rank that sleeps is not told that there is something."""

    def ready(self):
        return False


class SaysNothing(Vic):
    """Its link is always up."""

    def report_link(self, state, reason):
        self.link = LinkState.UP


class OneName(Vic):
    """All its devices have no name."""

    def __init__(self, *words):
        super().__init__(*words)
        self.identity = self.identity._replace(name="")


class OpenAtOnce(Vic):
    """A device that nobody has opened has a domain."""

    def domain(self):
        self.open()
        return super().domain()


class SharesDevices(Vic):
    """Each call gives the same devices."""


class ClosesOnce(Vic):
    """Closing twice is refused."""

    def close(self):
        if self._function is None:
            raise NicError("it is not open")
        super().close()


class TellsAgain(Vic):
    """What has happened is told with every call."""

    def events(self):
        return list(self.news)


class NoDevice(HcaComponent):
    """It has no device that a BTL could use."""

    name = "mutant"

    def devices(self, context) -> list[Nic]:
        return []


class NoGni(GniComponent):
    """Its devices are of a generation that nobody asks for."""

    name = "mutant"

    def devices(self, context) -> list[Nic]:
        found = super().devices(context)
        for device in found:
            device.generation = "none"
        return found


PLANTED: dict[type, str] = {
    Alters: "test_sizes",
    CompletesTwice: "test_one_completion_for_each_post",
    ForgetsContexts: "test_one_completion_for_each_post",
    KeepsInline: "test_inline",
    Overwrites: "test_short_buffers",
    KeepsPackets: "test_nothing_is_kept",
    NeverFull: "test_refusals",
    ForgetsBuffers: "test_closing_flushes",
    SaysOk: "test_link_down",
    MakesUp: "test_bad_wire",
    Repeats: "test_one_completion_for_each_post",
    LeavesSockets: "test_leaks",
    DiffersFromRunToRun: "test_same_seed_same_run",
    SaysNothing: "test_link_down",
    OneName: "test_identity",
    OpenAtOnce: "test_life",
    SharesDevices: "test_devices",
    ClosesOnce: "test_open_and_close",
    TellsAgain: "test_events",
    NoDevice: "test_under_openib[700]",
    NoGni: "test_under_gasnet[aries]",
}


def component(planted: type) -> NicComponent:
    if issubclass(planted, NicComponent):
        return planted()
    pair = planted if issubclass(planted, VicQueuePair) else Pair
    device = planted if issubclass(planted, Vic) else Vic

    class Function(VirtualFunction):
        def queue_pair(self, *words, **more):
            made = super().queue_pair(*words, **more)
            made.__class__ = pair
            return made

    class Device(device):  # type: ignore[misc,valid-type]
        def open(self):
            if self._function is None:
                self._function = Function(self)

    class Mutant(VicComponent):
        name = "mutant"

        known: ClassVar[dict[int, list[Nic]]] = {}

        def devices(self, context) -> list[Nic]:
            faces = context.network.interfaces()
            made = [
                Device(context.network, index, face, self.values, context.engine)
                for index, face in enumerate(faces)
            ]
            if planted is SharesDevices:
                return self.known.setdefault(id(context), made)
            return made

    return Mutant()
