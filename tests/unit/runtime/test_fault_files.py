"""Scripts that are written are read again as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy.net.faults.fault_rules import FAULTS, FaultRule
from ompy.runtime.faults.fault_files import merged, toml
from ompy.runtime.faults.fault_script import read_faults

SPECS = (
    "drop:probability=0.25,rank=0+2,peer=1,rail=rail0+rail1,direction=both,from=1.5ms,until=2s",
    "duplicate:nth=1+5,times=3",
    "reorder:nth=3",
    "reorder:nth=3,delay=10us,jitter=5us",
    "delay:jitter=1ms,direction=in",
    "corrupt:message=3,byte=400,mode=byte,bit=7",
    "rate_limit:rate=10Mbit/s,buffer=0",
    "slow_receiver:rank=1,rate=1kbit/s",
    "black_hole:rank=1,nth=4,lasts=2s,gives_up=3s",
    "link_down:rank=0,from=10ms,until=20ms",
    "nic_gone:rank=0,rail=rail1,message=2",
    "drop:probability=0.5,seed=9,above=1200",
    "work_error:rank=0,peer=1,nth=2+5,error=EREMOTEIO",
    "io_error:rank=0,nth=3,error=EDQUOT",
    "short_write:probability=0.25,times=2",
    "enospc:rank=1,nth=2,from=10ms",
)


def bare(rule: FaultRule) -> FaultRule:
    return rule._replace(origin="", text="")


def test_round_trip(tmp_path: Path) -> None:
    rules = read_faults(SPECS, 4)
    assert {rule.what for rule in rules} == set(FAULTS)
    path = tmp_path / "script.toml"
    path.write_text(toml(rules, ["why", "how"]))
    again = read_faults([str(path)], 4)
    assert [bare(rule) for rule in again] == [bare(rule) for rule in rules]
    assert path.read_text().startswith("# why\n# how\n\n[[fault]]\n")


@pytest.mark.parametrize("spec", SPECS)
def test_the_line_that_is_shown_is_a_spec(spec: str) -> None:
    (rule,) = read_faults([spec], 4)
    assert bare(read_faults([rule.text], 4)[0]) == bare(rule)


def test_packets_of_one_flow_become_one_rule() -> None:
    one = FaultRule("drop", ranks=(0,), nth=(3,))
    other = one._replace(ranks=(1,))
    late = FaultRule("reorder", nth=(1,), delay=5)
    assert merged([one, one._replace(nth=(1,)), other, late, late._replace(delay=6)]) == [
        one._replace(nth=(1, 3)),
        other,
        late,
        late._replace(delay=6),
    ]
