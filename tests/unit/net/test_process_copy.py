"""The kernel's copy between processes: what it asks the kernel for."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from threading import Thread

import pytest
from ompy.net.base import LinkError
from ompy.net.memory.kernel_copy import KernelCopy
from ompy.net.memory.vm import PAGE

SET_PTRACER = 0x59616D61
ANY = (1 << 64) - 1


class Recorded:
    """The C library, with the calls of prctl written down."""

    def __init__(self, real: ctypes.CDLL, calls: list[tuple[int, ...]], answer: int) -> None:
        def prctl(*arguments: int) -> int:
            calls.append(arguments)
            return answer

        self.process_vm_readv = real.process_vm_readv
        self.process_vm_writev = real.process_vm_writev
        self.prctl = prctl


@pytest.mark.parametrize("answer", [0, -1], ids=["Yama", "no Yama"])
def test_peers_are_allowed_to_copy_whatever_the_kernel_says(monkeypatch, answer: int) -> None:
    real, calls = ctypes.CDLL(None, use_errno=True), []
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Recorded(real, calls, answer))
    copy = KernelCopy()
    assert calls == [(SET_PTRACER, ANY, 0, 0, 0)]
    source, target = memoryview(bytearray(b"some bytes")), memoryview(bytearray(10))
    copy.read(os.getpid(), copy.address_of(source), target)
    assert bytes(target) == b"some bytes"


def test_the_real_call_is_harmless() -> None:
    """In a process of its own, as it stays in force."""
    program = (
        "import os; from ompy.net.memory.kernel_copy import KernelCopy\n"
        "copy, a, b = KernelCopy(), memoryview(bytearray(b'x' * 9)), memoryview(bytearray(9))\n"
        "copy.write(os.getpid(), copy.address_of(b), a); print(bytes(b).decode())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("xxxxxxxxx\n", "")


def test_a_process_that_is_not_there_is_an_error() -> None:
    copy = KernelCopy()
    with pytest.raises(LinkError, match="copy of 4 bytes with process"):
        copy.read(2**22 + 7, copy.address_of(memoryview(bytearray(4))), memoryview(bytearray(4)))


@pytest.mark.parametrize("writes", [False, True], ids=["read", "write"])
@pytest.mark.parametrize("size", [0, 1, 2047, 2048, 2049, 32767, 32768, 32769, 100_001])
def test_bytes_arrive_from_every_place_in_a_page_at_every_other(size: int, writes: bool) -> None:
    """Where moves crawl they go another way: 1 to 31 bytes behind the source."""
    copy = KernelCopy()
    sent = memoryview(os.urandom(size))
    pages = 2 * PAGE
    source, target = memoryview(bytearray(size + pages)), memoryview(bytearray(size + pages))
    first = (copy.address_of(source) - copy.address_of(target)) % PAGE
    for behind in (*range(34), 64, 2048, 4095):
        at = (first + behind) % PAGE
        source[:size] = sent
        target[:] = bytes([7]) * len(target)
        taken, given = target[at : at + size], source[:size]
        if size and writes:
            copy.write(os.getpid(), copy.address_of(taken), given)
        elif size:
            copy.read(os.getpid(), copy.address_of(given), taken)
        assert taken == sent
        assert set(target[:at]) | set(target[at + size :]) == {7}


def test_threads_copy_at_the_same_time() -> None:
    """Each gets its own bytes: what the kernel is asked with is used again for every copy."""
    copy, usual = KernelCopy(), sys.getswitchinterval()
    wrong: list[int] = []

    def copy_often(number: int) -> None:
        size = 8 << number
        source, target = memoryview(bytearray([number]) * size), memoryview(bytearray(size))
        address = copy.address_of(source)
        for _ in range(3000):
            target[:] = bytes(size)
            copy.read(os.getpid(), address, target)
            if target != source:
                wrong.append(number)

    threads = [Thread(target=copy_often, args=(number,)) for number in range(1, 5)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert not wrong
