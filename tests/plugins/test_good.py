"""Strangers that work: jobs run over a BTL and a PML from packages of their own."""

from __future__ import annotations

import pytest
from ompy.mca.component import Component

from tests.sim.p2p import programs
from tests.sim.p2p.test_both_worlds import ALL
from tests.support.worlds import ROOT, registry, virtual

pytestmark = pytest.mark.proc  # for the wheels are built and installed by processes

PAIRS = [
    pytest.param({"btl": "self,good", "pml": "ob1"}, id="btl"),
    pytest.param({"btl": "self,sm", "pml": "good"}, id="pml"),
    pytest.param({"btl": "self,good", "pml": "good"}, id="both"),
]


@pytest.fixture
def on_path(installed, monkeypatch: pytest.MonkeyPatch) -> None:
    for site in ("left", "right"):
        monkeypatch.syspath_prepend(installed / site)


def options(**settings: str) -> list[str]:
    return [word for name, value in settings.items() for word in ("--mca", name, value)]


# the good PML is told of nobody that has left: it has no word for who waits for such a one
PROGRAMS = [program for program in ALL if program != "last_words"]


@pytest.mark.parametrize("settings", PAIRS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.usefixtures("on_path")
def test_in_the_virtual_world(settings: dict[str, str], program: str) -> None:
    """What ob1 and the in-tree BTLs have to do."""
    job = virtual(3, getattr(programs, program), **settings)
    assert len(job.results) == 3


@pytest.mark.usefixtures("on_path")
def test_they_come_from_their_packages(installed) -> None:
    made = registry(btl="self,good", pml="good")
    components: list[Component] = [*made.open("btl"), *made.open("pml")]
    modules = {type(component).__module__ for component in components}
    assert modules == {
        "ompy_components.btl.self.component",
        "ompy_btl_good.component",
        "ompy_pml_good.component",
    }
    files = {record.file for record in made.records if record.name == "good"}
    assert files == {
        str(next(installed.glob(f"*/ompy_{framework}_good/component.py")))
        for framework in ("btl", "pml")
    }
    made.close()


@pytest.mark.parametrize("settings", PAIRS)
def test_a_real_job(commands, settings: dict[str, str]) -> None:
    program = (ROOT / "examples" / "ring.py").read_text() + BIG
    commands.sites.pop()
    done = commands.run(3, program, *options(**settings, coll="basic", hooks="^grumpy,sulky"))
    assert done.code == 0, done.err
    assert "the token went around 3 rank(s) and collected 3" in done.out
    assert done.out.count("all of it came") == 3
    assert done.err == ""


BIG = """
block = bytes(range(256)) * 4096
for got in comm.allgather(block):
    assert got == block
assert comm.allreduce(comm.rank + 1) == 6
print("all of it came")
"""
