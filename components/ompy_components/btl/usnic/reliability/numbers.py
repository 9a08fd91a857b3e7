"""Numbers of the reliability machine that no parameter changes, each with its source."""

from __future__ import annotations

from typing import Final

from ompy_components.btl.usnic.reliability.limits import US

# arbitrary: a resend that is lost as well is followed by so many chances to hear of it
DUPLICATES_MAX: Final = 32
RTT_SHARE: Final = 8  # RFC 6298 2.3: a new sample is an eighth of the smoothed time
SPREAD_SHARE: Final = 4  # RFC 6298 2.3: and a quarter of how much samples differ from it
SPREADS: Final = 4  # RFC 6298 2.2: a timeout is the smoothed time and so many times that
PROBE_TRIPS: Final = 2  # RFC 8985 7.2: a probe goes out after two smoothed round trips
# arbitrary: at 30 % loss half of the probes are answered, so one time in 250 none of these is
PROBES_EVEN: Final = 7
# arbitrary: an ACK about a gap goes so often while nothing else comes, as nobody misses one
GAP_TOLD: Final = 3
PROBE_LEAST: Final = 300 * US  # arbitrary: a few times what a round trip takes over loopback
REORDERING_SHARE: Final = 4  # RFC 8985 6.2: packets overtake by a quarter of a round trip
INFLATED: Final = 2  # arbitrary: a round trip so many times the shortest has waited in a queue
SHORTEST_KEPT: Final = 10_000_000 * US  # draft-ietf-ccwg-bbr: the shortest round trip of 10 s
