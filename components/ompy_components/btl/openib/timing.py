"""What the `ib_` parameters say, brought into the range that verbs has for them."""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.frameworks.nic.verbs import Timing
from ompy.mca.parameter import Values

# reference openmpi.md 5.6: out of these ranges a value is clamped with a warning
RANGES: Final = {
    "ib_timeout": (0, 31),
    "ib_retry_count": (0, 7),
    "ib_rnr_retry": (0, 7),
    "ib_min_rnr_timer": (0, 31),
    "ib_qp_ous_rd_atom": (1, 255),
}


class RingLimits(NamedTuple):
    """When peers get a ring.

    Attributes:
        use: at all.
        threshold: eager fragments before.
        peers: with rings at most.
        slots: usable ones of a ring.
    """

    use: bool
    threshold: int
    peers: int
    slots: int


class Limits(NamedTuple):
    """The `ib_` parameters, in range.

    Attributes:
        timeout, retry_count, rnr_retry, rnr_timer: as `Timing` has them.
        reads: RDMA reads of an endpoint under way.
        warnings: what was out of range, in words.
    """

    timeout: int
    retry_count: int
    rnr_retry: int
    rnr_timer: int
    reads: int
    warnings: tuple[str, ...]

    def timing(self, *, shared: bool) -> Timing:
        """Of one queue pair. By credits the receiver is always ready (reference openmpi.md 5.3)."""
        rnr_retry = self.rnr_retry if shared else 0
        return Timing(self.timeout, self.retry_count, rnr_retry, self.rnr_timer)


def timing_limits(values: Values) -> Limits:
    """Read the parameters."""
    found, warnings = [], []
    for name, (least, most) in RANGES.items():
        given: int = getattr(values, name)
        taken = min(max(given, least), most)
        if taken != given:
            warnings.append(
                f"btl_openib_{name} is {given}, out of its range of {least} to {most}; "
                f"{taken} is used"
            )
        found.append(taken)
    timeout, retries, rnr_retry, rnr_timer, reads = found
    return Limits(timeout, retries, rnr_retry, rnr_timer, reads, tuple(warnings))


def ring_limits(values: Values) -> RingLimits:
    """Read the parameters of eager RDMA. -1 leaves the choice to the device: this one can do it."""
    return RingLimits(
        values.use_eager_rdma != 0,
        values.eager_rdma_threshold,
        values.max_eager_rdma,
        values.eager_rdma_num,
    )
