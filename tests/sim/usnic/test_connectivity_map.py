"""`btl_usnic_connectivity_map`: who reaches whom by which interface."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Worlds
from ompy.net.virtual.virtual_network import Rail
from ompy_components.btl.usnic.component import COMPONENT

RAILS = (Rail("rail0"), Rail("rail1", mtu=9000))


def run(prefix: str) -> None:
    """Three ranks, of which two talk to each other."""

    def program(driver: Driver) -> None:
        if driver.rank == 0:
            driver.send(1, driver.data(3000))
        driver.quiesce()

    settings = {"btl_usnic_connectivity_map": prefix}
    Worlds(COMPONENT, {}).make(3, rails=RAILS, settings=settings).run(program)


def test_each_rank_writes_what_it_could_use(tmp_path: Path) -> None:
    run(f"{tmp_path}/map")
    names = [path.name for path in sorted(tmp_path.iterdir())]
    assert names == [f"map-host{rank}.rank{rank}.txt" for rank in range(3)]
    assert (tmp_path / names[1]).read_text().splitlines() == [
        "rank=1,hostname=host1",
        "device=vic_0,interface=rail0,ip=rail0/1/0,mss=1472",
        "device=vic_1,interface=rail1,ip=rail1/1/0,mss=8972",
        "peer=0,hostname=host0,interface=rail0,ip=rail0/1,peer_ip=rail0/0,mss=1472",
        "peer=0,hostname=host0,interface=rail1,ip=rail1/1,peer_ip=rail1/0,mss=8972",
        "peer=2,hostname=host2,interface=rail0,ip=rail0/1,peer_ip=rail0/2,mss=1472",
        "peer=2,hostname=host2,interface=rail1,ip=rail1/1,peer_ip=rail1/2,mss=8972",
    ]


def test_none_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("")
    assert not list(tmp_path.iterdir())


def test_a_place_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(f"{tmp_path}/no/such/map")
    said = capsys.readouterr().err
    assert said.count("ompy: btl_usnic_connectivity_map: ") == 3
    assert "No such file or directory" in said
