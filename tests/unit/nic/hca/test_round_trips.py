"""How long answers take, and how soon something is sent again early."""

from __future__ import annotations

from ompy_components.nic.hca.round_trips import LEAST, RoundTrips

TIMEOUT = 33_000_000


def after(trips: RoundTrips, *times: int) -> int | None:
    """What it comes to when answers have taken these times."""
    now = 0
    for number, time in enumerate(times):
        trips.asked(number + 1, now)
        now += time
        trips.answered(number + 1, now)
    return trips.probe_after(TIMEOUT)


def test_nothing_is_known_before_the_first_answer() -> None:
    trips = RoundTrips()
    assert trips.probe_after(TIMEOUT) is None
    trips.asked(1, 0)
    assert trips.probe_after(TIMEOUT) is None


def test_two_round_trips_and_what_they_differ_by() -> None:
    assert after(RoundTrips(), 10_000) == LEAST
    steady = after(RoundTrips(), *[1_000_000] * 40)
    assert steady is not None
    assert 2_000_000 <= steady < 2_100_000
    uneven = after(RoundTrips(), *[500_000, 1_500_000] * 20)
    assert uneven is not None
    assert uneven > steady
    assert after(RoundTrips(), 20_000_000) is None, "the timeout comes first"


def test_twice_as_long_each_time_until_there_is_news() -> None:
    trips = RoundTrips()
    first = after(trips, 1_000_000)
    assert first is not None
    trips.probes = 3
    assert trips.probe_after(TIMEOUT) == 8 * first
    trips.probes = 5
    assert trips.probe_after(TIMEOUT) is None
    trips.answered(1, 0)
    assert trips.probe_after(TIMEOUT) == first


def test_what_was_sent_twice_is_no_sample() -> None:
    trips = RoundTrips()
    before = after(trips, 1_000_000)
    trips.asked(9, 0)
    trips.went_back()
    trips.answered(9, 20_000_000)
    assert trips.probe_after(TIMEOUT) == before
    trips.asked(20, 0)
    trips.answered(19, 5_000_000)
    assert trips.probe_after(TIMEOUT) == before, "nothing was answered of what was timed"
