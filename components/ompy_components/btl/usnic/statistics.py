"""What a usnic module counts. Names: reference usnic.md 18, those below the line are ours."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Statistics:
    """Counters of one module, since it began.

    `num_total_sends` has retransmissions and ACKs in it, `num_frag_sends` and `num_chunk_sends`
    first transmissions only.
    """

    num_total_sends: int = 0
    num_resends: int = 0
    num_timeout_retrans: int = 0
    num_fast_retrans: int = 0
    num_chunk_sends: int = 0
    num_frag_sends: int = 0
    num_ack_sends: int = 0
    num_total_recvs: int = 0
    num_unk_recvs: int = 0
    num_dup_recvs: int = 0
    num_oow_low_recvs: int = 0
    num_oow_high_recvs: int = 0
    num_frag_recvs: int = 0
    num_chunk_recvs: int = 0
    num_badfrag_recvs: int = 0
    num_ack_recvs: int = 0
    num_old_dup_acks: int = 0
    num_dup_acks: int = 0
    num_recv_reposts: int = 0
    num_crc_errors: int = 0
    max_sent_window_size: int = 0
    pml_module_sends: int = 0
    pml_send_callbacks: int = 0
    num_priority_sends: int = 0
    num_data_sends: int = 0
    # ours
    num_selective_acks: int = 0  # ACKs that said what had arrived behind a gap
    num_overruns: int = 0  # packets the NIC has dropped: no receive buffer was posted
    num_short_recvs: int = 0  # of num_crc_errors: too short for a header
    num_window_full: int = 0  # a send found the window, or the congestion window, used up
    num_bad_acks: int = 0  # ACKs of what was never sent
    num_probe_sends: int = 0  # pings of the connectivity checker, and answers
    num_probe_recvs: int = 0
    num_silent_extensions: int = 0  # retries beyond the limit, towards a peer that is alive
    num_tail_probes: int = 0  # of num_timeout_retrans: sent again early, to learn of the others
    num_path_doubts: int = 0  # times that agents were asked to try a path
    num_epochs: int = 0  # paths that were taken back
    num_old_epoch_recvs: int = 0  # packets of another epoch than the path's
    num_replayed_recvs: int = 0  # packets that were here before, or came too late to tell
    num_given_up_recvs: int = 0  # packets of a path that had been given up at this end

    @property
    def lossy(self) -> bool:
        """Whether packets have been lost, or seemed to be."""
        trouble = self.num_resends + self.num_crc_errors
        trouble += self.num_overruns
        repeated = self.num_dup_recvs + self.num_oow_low_recvs + self.num_replayed_recvs
        return bool(trouble + repeated)

    def nonzero(self) -> dict[str, int]:
        """The counters that have counted anything, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value}
