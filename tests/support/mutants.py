"""Planted defects in ob1's matching: the tests must notice each of them, in both worlds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from ompy_components.pml.ob1 import matching
from ompy_components.pml.ob1.matching import Matching


def _claim_last(self: Matching, queue: matching.PeerQueue, tag: int):
    """Matches the receive posted last instead of first."""
    for posted in (queue.posted, self.wild):
        for request in reversed(posted.members()):
            if matching.fits(request.wanted_tag, tag):
                posted.remove(request)
                return request
    return None


def _claim_specific_first(self: Matching, queue: matching.PeerQueue, tag: int):
    """Prefers a receive that names the source, whatever was posted first."""
    for posted in (queue.posted, self.wild):
        for request in posted.members():
            if matching.fits(request.wanted_tag, tag):
                posted.remove(request)
                return request
    return None


MUTANTS = {
    "claims-last": patch.object(Matching, "claim", _claim_last),
    "specific-first": patch.object(Matching, "claim", _claim_specific_first),
    "any-tag-takes-internal": patch.object(
        matching, "fits", lambda wanted, tag: wanted in (tag, matching.ANY_TAG)
    ),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run the body with the defect `name`, or with none."""
    if not name:
        yield
        return
    with MUTANTS[name]:
        yield
