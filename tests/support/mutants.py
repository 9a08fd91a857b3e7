"""Planted defects in ob1's matching: the tests must notice each of them, in both worlds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from unittest.mock import patch

from ompy_components.pml.ob1 import matching
from ompy_components.pml.ob1.matching import Matching
from ompy_components.pml.ob1.unexpected import UnexpectedQueue


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


def _append_to_users(self: UnexpectedQueue, fragment) -> None:
    """Keeps internal messages among the users'."""
    self._users.append(fragment)


def _find_among_users(self: UnexpectedQueue, wanted: int):
    return self._users.first if wanted == matching.ANY_TAG else self._users.find(wanted)


def _remove_from_users(self: UnexpectedQueue, fragment) -> None:
    self._users.remove(fragment)


MUTANTS: dict[str, list[AbstractContextManager[object]]] = {
    "claims-last": [patch.object(Matching, "claim", _claim_last)],
    "specific-first": [patch.object(Matching, "claim", _claim_specific_first)],
    "any-tag-takes-internal": [
        patch.object(matching, "fits", lambda wanted, tag: wanted in (tag, matching.ANY_TAG)),
        patch.object(UnexpectedQueue, "append", _append_to_users),
        patch.object(UnexpectedQueue, "find", _find_among_users),
        patch.object(UnexpectedQueue, "remove", _remove_from_users),
    ],
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run the body with the defect `name`, or with none."""
    with ExitStack() as stack:
        for part in MUTANTS[name] if name else ():
            stack.enter_context(part)
        yield
