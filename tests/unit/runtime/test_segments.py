"""Memory and doorbells an agent holds for its ranks."""

import mmap
import os

import pytest
from ompy.runtime.ranks.segments import SharedDescriptors


@pytest.fixture(params=["memfd", "file"])
def shared(request, monkeypatch):
    if request.param == "file":
        monkeypatch.delattr(os, "memfd_create")
    made = SharedDescriptors()
    yield made
    for number in made.descriptors():
        os.close(number)


def test_memory_is_zeroed_and_the_same_for_the_same_name(shared):
    descriptor = shared.memory("ring", 4096)
    with mmap.mmap(descriptor, 4096) as view:
        assert view[:] == bytes(4096)
        view[:2] = b"hi"
        assert shared.memory("ring", 4096) == descriptor
        with mmap.mmap(shared.memory("other", 4096), 4096) as other:
            assert other[:2] == b"\0\0"
    assert os.fstat(descriptor).st_nlink == 0, "it has a name"


@pytest.mark.parametrize("size", [0, -1, 8192])
def test_size_has_to_match_and_to_make_sense(shared, size):
    shared.memory("ring", 4096)
    with pytest.raises(ValueError, match="ring"):
        shared.memory("ring", size)


def test_more_than_there_is_fails_and_leaves_nothing(shared):
    with pytest.raises((OSError, OverflowError)):
        shared.memory("huge", 2**80)
    assert shared.memory("huge", 10) >= 0


def test_one_doorbell_per_rank(shared):
    assert shared.doorbell(0) == shared.doorbell(0) != shared.doorbell(1)
    os.eventfd_write(shared.doorbell(1), 3)
    assert os.eventfd_read(shared.doorbell(1)) == 3
    with pytest.raises(BlockingIOError):
        os.eventfd_read(shared.doorbell(1))
