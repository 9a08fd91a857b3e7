"""Fault scripts: what is taken, and what is said of mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ompy.mca.errors import UsageError
from ompy.net.faults.fault_rules import FAULTS, NEVER, FaultRule
from ompy.runtime.faults.fault_report import FaultTally
from ompy.runtime.faults.fault_script import KEYS, read_faults

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted((ROOT / "configs" / "faults").glob("*.toml"))
MS = 1_000_000


def only(text: str, ranks: int = 4) -> FaultRule:
    (rule,) = read_faults([text], ranks)
    return rule


def test_a_spec() -> None:
    rule = only(
        "drop:probability=0.25,rank=0+2,peer=1,rail=eth0,direction=both,from=1.5ms,until=2s"
    )
    assert rule.what == "drop"
    assert rule.ranks == (0, 2)
    assert rule.peers == (1,)
    assert rule.rails == ("eth0",)
    assert rule.direction == "both"
    assert (rule.since, rule.until) == (1_500_000, 2_000 * MS)
    assert rule.probability == 0.25


def test_defaults() -> None:
    rule = only("black_hole")
    assert rule == FaultRule("black_hole", gives_up=rule.gives_up, buffer=rule.buffer)._replace(
        origin=rule.origin, text="black_hole"
    )
    assert not rule.triggered
    assert only("reorder:nth=1").delay == MS
    assert only("slow-receiver:rank=0,rate=1Mbit/s").direction == "in"


def test_several_in_one_spec_and_several_options() -> None:
    rules = read_faults(["drop:nth=3+7; corrupt:mode=byte,nth=1", "link-down:from=1s"], 2)
    assert [rule.what for rule in rules] == ["drop", "corrupt", "link_down"]
    assert rules[0].nth == (3, 7)
    assert rules[2].until == NEVER


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scripts(path: Path) -> None:
    by_name = read_faults([path.stem], 4)
    assert by_name
    assert [rule._replace(origin="") for rule in by_name] == [
        rule._replace(origin="") for rule in read_faults([str(path)], 4)
    ]
    assert f"`{path.stem}`" in (ROOT / "docs" / "faults.md").read_text()


def test_all_kinds_are_documented() -> None:
    text = (ROOT / "docs" / "faults.md").read_text()
    assert not [what for what in FAULTS if f"| `{what}` |" not in text]
    assert not [key for keys in KEYS.values() for key in keys - {"what"} if f"`{key}`" not in text]


def test_rules_survive_the_way_to_the_ranks() -> None:
    for path in SHIPPED:
        for rule in read_faults([str(path)], 4):
            assert FaultRule.from_dict(json.loads(json.dumps(rule._asdict()))) == rule


def test_files_say_the_line(tmp_path: Path) -> None:
    script = tmp_path / "bad.toml"
    script.write_text(
        '# a comment\n[[fault]]\nwhat = "drop"\nprobabilty = 0.1\n\n[[fault]]\nwhat = "dorp"\n'
        'nth = 1\n\n[[fault]]\nwhat = "drop"\nprobability = 2.0\n\n[[fault]]\nwhat = "drop"\n'
    )
    with pytest.raises(UsageError) as caught:
        read_faults([str(script)], 2)
    assert [problem.removeprefix(str(script)) for problem in caught.value.problems] == [
        ":4: there is no key probabilty; did you mean probability?",
        ":7: there is no fault dorp; did you mean drop?",
        ":12: probability = 2.0: input should be less than or equal to 1",
        ":14: drop strikes single packets: say which, by probability, nth or message",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drop", "say which, by probability, nth or message"),
        ("drop:nth=0", "nth = '0': input should be greater than or equal to 1"),
        ("drop:nth=1,message=2", "exclude each other"),
        ("drop:nth=1,byte=2", "byte needs a message"),
        ("drop:nth=1,rate=1bit/s", "drop has no key rate"),
        ("drop:nth=1,rank=9", "rank 9 in a job of 4: the last is 3"),
        ("drop:nth=1,rail=sm", "no wire for a fault to strike"),
        ("drop:nth", "nth is no key=value"),
        ("lossi", "did you mean lossy?"),
        ("", "the SPEC is empty"),
        ("nowhere.toml", "No such file"),
        ("delay:nth=1", "delay needs a delay or a jitter"),
        ("rate_limit", "rate_limit needs a rate"),
        ("rate_limit:rate=10", "a number with a unit is needed"),
        ("slow_receiver:rate=1Mbit/s", "who is slow"),
        ("black_hole:nth=1,direction=both", "counted by the sender"),
        ("black_hole:from=1s,nth=1", "not both"),
        ("black_hole:lasts=1s", "lasts belongs to nth or message"),
        ("black_hole:from=1s,until=1s", "until is not after from"),
        ("link_down:peer=1", "link_down has no key peer"),
        ("drop:direction=up,nth=1", "direction is 'up'; it must be 'out', 'in' or 'both'"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=".") as caught:
        read_faults([text], 4)
    assert said in "\n".join(caught.value.problems)


def test_no_toml(tmp_path: Path) -> None:
    script = tmp_path / "bad.toml"
    for text, said in (
        ("[[fault]\n", "this is no TOML"),
        ("fault = 3\n", "begins with"),
        ("", "no [[fault]] in it"),
        ("[[falt]]\nwhat='drop'\n", "there is no key falt; did you mean fault?"),
    ):
        script.write_text(text)
        with pytest.raises(UsageError) as caught:
            read_faults([str(script)], 4)
        assert said in caught.value.problems[0], text


def test_the_report() -> None:
    rules = read_faults(["drop:nth=1;black_hole"], 2)
    tally = FaultTally(rules)
    tally.told(0, [1, 0])
    tally.told(1, [2, 0])
    tally.told(1, [4, 0])  # each rank's last word counts
    assert tally.totals() == [5, 0]
    assert tally.silent == rules[1:]
    text = "\n".join(tally.lines(strict=True))
    assert "       5  drop:nth=1\n" in text
    assert "       0  black_hole  NEVER FIRED\n" in text
    assert "does not tolerate" in text
    assert "does not tolerate" not in "\n".join(tally.lines(strict=False))
    assert FaultTally([]).lines(strict=True) == []
