"""What a usnic module counts. Names: reference usnic.md 18, those below the line are ours."""

from __future__ import annotations

from typing import Final

from ompy.compiled import cclass


@cclass
class Statistics:
    """Counters of one module, since it began.

    `num_total_sends` has retransmissions and ACKs in it, `num_frag_sends` and `num_chunk_sends`
    first transmissions only.
    """

    num_total_sends: int
    num_resends: int
    num_timeout_retrans: int
    num_fast_retrans: int
    num_chunk_sends: int
    num_frag_sends: int
    num_ack_sends: int
    num_total_recvs: int
    num_unk_recvs: int
    num_dup_recvs: int
    num_oow_low_recvs: int
    num_oow_high_recvs: int
    num_frag_recvs: int
    num_chunk_recvs: int
    num_badfrag_recvs: int
    num_ack_recvs: int
    num_old_dup_acks: int
    num_dup_acks: int
    num_recv_reposts: int
    num_crc_errors: int
    max_sent_window_size: int
    pml_module_sends: int
    pml_send_callbacks: int
    num_priority_sends: int
    num_data_sends: int
    # ours
    num_selective_acks: int  # ACKs that said what had arrived behind a gap
    num_overruns: int  # packets the NIC has dropped: no receive buffer was posted
    num_short_recvs: int  # of num_crc_errors: too short for a header
    num_window_full: int  # a send found the window, or the congestion window, used up
    num_bad_acks: int  # ACKs of what was never sent
    num_probe_sends: int  # pings of the connectivity checker, and answers
    num_probe_recvs: int
    num_silent_extensions: int  # retries beyond the limit, towards a peer that is alive
    num_tail_probes: int  # of num_timeout_retrans: sent again early, to learn of the others
    num_path_doubts: int  # times that agents were asked to try a path
    num_epochs: int  # paths that were taken back
    num_old_epoch_recvs: int  # packets of another epoch than the path's
    num_replayed_recvs: int  # packets that were here before, or came too late to tell
    num_given_up_recvs: int  # packets of a path that had been given up at this end
    __slots__ = tuple(__annotations__)

    def __init__(self, **counted: int) -> None:
        """All are 0 but those that are given."""
        for name in NAMES:
            setattr(self, name, counted.get(name, 0))

    @property
    def lossy(self) -> bool:
        """Whether packets have been lost, or seemed to be."""
        trouble = self.num_resends + self.num_crc_errors
        trouble += self.num_overruns
        repeated = self.num_dup_recvs + self.num_oow_low_recvs + self.num_replayed_recvs
        return bool(trouble + repeated)

    def nonzero(self) -> dict[str, int]:
        """The counters that have counted anything, by name."""
        values = {name: getattr(self, name) for name in NAMES}
        return {name: value for name, value in values.items() if value}


NAMES: Final[tuple[str, ...]] = Statistics.__slots__  # of the counters
