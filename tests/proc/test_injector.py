"""An injector on the path between two hosts: without a seal it runs code, with one it runs into it.

The hosts are namespaces, their cables lead through a process that rewrites packets with right
checksums (`tests/support/injector.py`).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH
from tests.support.two_hosts import TwoHosts, why_not

WHY = why_not()
pytestmark = [pytest.mark.proc, pytest.mark.skipif(bool(WHY), reason=WHY)]
nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
CRYPTOGRAPHY = importlib.util.find_spec("cryptography") is not None

PROGRAM = """
import sys
from ompy import MPI
comm = MPI.COMM_WORLD
other = 1 - comm.rank
for turn in range(int(sys.argv[1])):
    good = {"text": ["A" * 300], "turn": turn}
    if comm.rank == 0:
        comm.send(good, dest=1)
        assert comm.recv(source=1) == turn
    else:
        got = comm.recv(source=0)
        if got != good:
            print("other object", flush=True)
        comm.send(turn, dest=0)
    size = 3_000 + 40_000 * (turn % 4)
    there = bytearray(size)
    mine = (b"A" * 61 + bytes([turn % 256])) * (size // 62 + 1)
    comm.Sendrecv(bytearray(mine[:size]), other, recvbuf=there, source=other)
    if there != mine[:size]:
        print("other bytes", flush=True)
print("end", comm.rank, flush=True)
"""
CAUSE = "not what the other end has sealed"


def attack(
    folder: Path, how: str, seal: str, pml: str = "ob1", turns: int = 12, count: int = 1
) -> tuple[list[int], str, str, bool, int]:
    """Exit codes, all output, all errors, whether foreign code has run, and strikes."""
    planted = folder / "planted"
    with TwoHosts(2 if pml == "bfo" else 1, how, count, str(planted)) as hosts:
        codes, outs, errs = hosts.run(
            folder / "secret", PROGRAM, str(turns),
            btl_base_seal=seal, btl="self,sm,tcp", pml=pml, btl_base_heal_answers=1,
        )  # fmt: skip
        return codes, "".join(outs), "".join(errs), planted.exists(), hosts.strikes()


def sealed(pml: str, how: str, tmp_path: Path, seal: str, count: int = 1) -> None:
    """Nothing forged is used, whatever comes of it."""
    codes, out, err, planted, strikes = attack(tmp_path, how, seal, pml, count=count)
    assert strikes, (out, err)
    assert not planted
    assert "other" not in out
    if pml == "bfo" and count > 1 and any(codes):
        assert CAUSE in err, "every rail was struck before the first was mended"
    elif pml == "bfo":
        assert codes == [0, 0], err
        assert out.count("end") == 2
    else:
        assert all(codes), "every rank has ended with an error"
        assert "end" not in out
        assert CAUSE in err, err


def test_without_a_seal_foreign_code_runs(tmp_path: Path) -> None:
    """What it is there for."""
    codes, out, err, planted, strikes = attack(tmp_path, "pickle", "none")
    assert strikes, (codes, out, err)
    assert planted, "the pickle of the injector was loaded"
    assert "other object" in out


def test_sealed_it_is_an_error(tmp_path: Path) -> None:
    sealed("ob1", "pickle", tmp_path, "auto")


@pytest.mark.nightly
def test_sealed_bfo_goes_on_over_the_other_rail(tmp_path: Path) -> None:
    sealed("bfo", "pickle", tmp_path, "auto")


@nightly
def test_without_a_seal_bytes_are_altered(tmp_path: Path) -> None:
    _, out, _, _, strikes = attack(tmp_path, "flip", "none")
    assert strikes
    assert "other" in out


@nightly
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
@pytest.mark.parametrize("how", ["flip", "repeat", "pickle"])
@pytest.mark.parametrize("count", [1, 5])
def test_every_attack(tmp_path: Path, pml: str, how: str, count: int) -> None:
    sealed(pml, how, tmp_path, "mac", count)


@nightly
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
@pytest.mark.parametrize("seal", ["none", "mac", "encrypt", "auto"])
def test_every_seal_undisturbed(tmp_path: Path, pml: str, seal: str) -> None:
    if seal == "encrypt" and not CRYPTOGRAPHY:
        pytest.skip("no cryptography")
    codes, out, err, _, strikes = attack(tmp_path, "none", seal, pml)
    assert (codes, strikes) == ([0, 0], 0), err
    assert "other" not in out
    assert out.count("end") == 2


@nightly
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_who_encrypts_shows_nothing_and_loses_nothing(tmp_path: Path, pml: str) -> None:
    """The injector looks for marks and finds none; what it repeats is seen through."""
    if not CRYPTOGRAPHY:
        pytest.skip("no cryptography")
    codes, _, err, planted, strikes = attack(tmp_path, "flip", "encrypt", pml)
    assert (codes, strikes, planted) == ([0, 0], 0, False), err
    sealed(pml, "repeat", tmp_path, "encrypt")


def test_a_control_connection(tmp_path: Path) -> None:
    """A byte of what coordinator and agent say ends the job: nobody acts upon it."""
    codes, out, err, _, strikes = attack(tmp_path, "control", "auto", turns=100_000)
    assert strikes, (out, err)
    assert all(codes)
    assert "end" not in out
    assert CAUSE in err, err
