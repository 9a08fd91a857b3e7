"""btl/ofi between hosts with several interfaces: all rails that work, and the seed's only one."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import two_hosts
from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import missing
from tests.support.two_hosts import TwoHosts

pytestmark = [
    pytest.mark.proc,
    pytest.mark.skipif(bool(two_hosts.why_not()), reason=two_hosts.why_not()),
]

MEGABYTE = 1_000_000
PROGRAM = """
from ompy import MPI
comm = MPI.COMM_WORLD
other = 1 - comm.rank
def received():
    lines = [line.split() for line in open("/proc/net/dev") if ":" in line]
    return {line[0][:-1]: int(line[1]) for line in lines}
def pattern(begin, size):
    return (bytes(range(251)) * (size // 251 + 2))[begin % 251 :][:size]
before = received()
for turn, size in enumerate((0, 1, 700, 9000, 200_000, 3_000_000) * 2):
    mine, theirs = pattern(turn + comm.rank, size), pattern(turn + other, size)
    room = bytearray(size)
    comm.Sendrecv(mine, other, turn, room, other, turn)
    assert room == theirs, turn
print({name: count - before[name] for name, count in received().items()})
"""
NICS = ["libfabric", "ofi_emulated"] if not missing() else ["ofi_emulated"]


@pytest.fixture(scope="module")
def hosts() -> Iterator[TwoHosts]:
    """Three cables; an interface on each that leads nowhere; a bridge that both have."""
    with TwoHosts(rails=3, how="") as made:
        for number, host in enumerate("ab", 1):
            for name, address in (("blind", f"10.99.0.{number}"), ("bridge", "172.17.0.1")):
                for words in (
                    ("link", "add", name, "type", "veth", "peer", "name", f"{name}-end"),
                    ("address", "add", f"{address}/24", "dev", name),
                    ("link", "set", name, "up"),
                    ("link", "set", f"{name}-end", "up"),
                ):
                    command = ["ip", "-n", made.space(host), *words]
                    subprocess.run(command, check=True, capture_output=True)
        yield made


def carried(hosts: TwoHosts, folder: Path, **settings: object) -> tuple[set[str], str]:
    """Interfaces over which a good part of the bytes came, and what was said."""
    codes, said, errors = hosts.run(folder / "secret", PROGRAM, btl="self,ofi", **settings)
    assert codes == [0, 0], errors
    found = [ast.literal_eval(one) for one in said]
    carrying = [{name for name, count in one.items() if count > MEGABYTE} for one in found]
    assert carrying[0] == carrying[1], found
    return carrying[0], " ".join("".join(errors).split())


@pytest.mark.parametrize("nic", NICS if THOROUGH else NICS[:1])
def test_all_rails_that_work_are_used(hosts: TwoHosts, tmp_path: Path, nic: str) -> None:
    rails, said = carried(hosts, tmp_path, btl_ofi_nic=nic)
    assert rails == {"rail0", "rail1", "rail2"}
    assert said.count("does without 10.99.0.1 - 10.99.0.2") == 1
    assert "172.17.0.1" not in said


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"max_btls": 1}, {"rail0"}),
        ({"if_include": "rail1,10.92.0.0/16"}, {"rail1", "rail2"}),
        ({"if_exclude": "rail0,10.99.0.0/24,bridge"}, {"rail1", "rail2"}),
    ][: None if THOROUGH else 1],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_the_rails_that_are_chosen(
    hosts: TwoHosts, tmp_path: Path, settings: dict[str, object], wanted: set[str]
) -> None:
    more = {f"btl_ofi_{name}": value for name, value in settings.items()}
    rails, said = carried(hosts, tmp_path, btl_ofi_nic=NICS[0], **more)
    assert rails == wanted
    assert "does without" not in said
