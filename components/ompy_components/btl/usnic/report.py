"""Reports of a module's statistics: every so often, and at its end, on standard error.

A rank that computes reports when it is inside MPI again. A report has a head and three lines: what
was sent, what was received, and what shows trouble or is not over. *In balance* means: each packet
that came is in one class, and its buffer was posted again.

Source: reference usnic.md 18 (which counters, which two checks); the words are ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import outputs

from ompy_components.btl.usnic.statistics import NAMES, Statistics

if TYPE_CHECKING:
    from ompy_components.btl.usnic.module import UsnicModule

SECOND: Final = 1_000_000_000  # ns; Linux counts so
HELD_MAX: Final = 1  # reference usnic.md 12: one packet at most waits for its bookkeeping


class Report:
    """Reports about one module."""

    def __init__(self, module: UsnicModule, period: int, *, relative: bool) -> None:
        """Begin.

        Args:
            module: whose.
            period: seconds from one report to the next.
            relative: count anew after each report; the module's own counters go on.
        """
        self._module = module
        self._period = period * SECOND
        self._relative = relative
        self._begun = module.context.engine.now()
        self._due = self._begun + self._period
        self._before = Statistics()
        module.timer_at(self._due)

    def expire(self, now: int) -> None:
        """Report if it is time."""
        if now >= self._due:
            self.write_report(now)
            self._due = now + self._period
        self._module.timer_at(self._due)

    def write_report(self, now: int) -> None:
        """Report."""
        statistics = self._module.statistics
        counted = since(statistics, self._before)
        module, identity = self._module, self._module.nic.identity
        took = (now - self._begun) / SECOND
        head = f"rank {module.context.rank}, usnic over {identity.interface} ({identity.name})"
        unacknowledged = sum(e.reliability.outstanding for e in module.endpoints.values())
        off = imbalance(statistics, module.buffers_held)
        text = [f"{head}, {took:.1f} s:", *report_lines(counted, unacknowledged, off)]
        outputs.tell("\n  ".join(text) + "\n", "usnic statistics")
        if self._relative:
            self._before = since(statistics, Statistics())
            self._begun = now


def since(statistics: Statistics, before: Statistics) -> Statistics:
    """What has been counted since `before`; the largest window is that of all time."""
    counted = {name: getattr(statistics, name) - getattr(before, name) for name in NAMES}
    counted["max_sent_window_size"] = statistics.max_sent_window_size
    return Statistics(**counted)


def report_lines(counted: Statistics, unacknowledged: int, off: int) -> list[str]:
    """A report without its head; `off` is what does not add up."""
    window = counted.num_oow_low_recvs + counted.num_oow_high_recvs
    return [
        f"sent {counted.num_total_sends} ({counted.num_priority_sends} priority, "
        f"{counted.num_data_sends} data): {counted.num_frag_sends} fragments, "
        f"{counted.num_chunk_sends} chunks, {counted.num_resends} resends "
        f"({counted.num_timeout_retrans} by time, {counted.num_fast_retrans} by ACK), "
        f"{counted.num_ack_sends} ACKs, {counted.num_path_doubts} doubts",
        f"received {counted.num_total_recvs}: {counted.num_frag_recvs} fragments, "
        f"{counted.num_chunk_recvs} chunks, {counted.num_ack_recvs} ACKs, "
        f"{counted.num_dup_recvs} again, {window} out of window, "
        f"{counted.num_replayed_recvs} replayed, {counted.num_crc_errors} refused; "
        f"{f'OUT OF BALANCE by {off}' if off else 'in balance'}",
        f"dropped {counted.num_overruns} for want of a buffer; "
        f"duplicate ACKs {counted.num_dup_acks}, old ones {counted.num_old_dup_acks}, window full "
        f"{counted.num_window_full} times; {counted.pml_module_sends} fragments of the PML, "
        f"{counted.pml_send_callbacks} called back, {unacknowledged} unacknowledged packets",
    ]


def imbalance(counted: Statistics, held: int) -> int:
    """Packets that are in no class, or whose buffers are missing; 0 when all is well.

    `held` buffers have been read in this round, and will be posted again at its end.
    """
    classes = (
        counted.num_frag_recvs,
        counted.num_chunk_recvs,
        counted.num_ack_recvs,
        counted.num_dup_recvs,
        counted.num_oow_low_recvs,
        counted.num_oow_high_recvs,
        counted.num_badfrag_recvs,
        counted.num_unk_recvs,
        counted.num_crc_errors,
        counted.num_replayed_recvs,
        counted.num_probe_recvs,
    )
    missing = (
        counted.num_total_recvs - sum(classes),
        counted.num_total_recvs - counted.num_recv_reposts - held,
    )
    return sum(abs(count) for count in missing if abs(count) > HELD_MAX)
