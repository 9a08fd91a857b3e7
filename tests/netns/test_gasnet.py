"""GASNet between hosts, over Ethernet: some ranks are neighbours, others are not."""

import sys

import pytest

from tests.support.effort import THOROUGH

pytestmark = [pytest.mark.proc, pytest.mark.netns]
PORTED = [
    ("large_transfers", "gemini", "smsg"),
    ("full_bisection", "aries", "mailboxes"),
    ("threads", "aries", "smsg"),
]
ENDS = [("one_exits", 7), ("handler_exits", 9), ("one_is_killed", 137)]
VARIANTS = ["mailboxes", "smsg"]
HOSTS = ("--host", "h1:2,h2:2", "-n", "4")


def words(program, conduit, messages):
    variant = ("--mca", f"conduit_{conduit}_messages", messages)
    return ("--mca", "conduit", conduit, *variant, *rank_of(program))


def rank_of(program):
    return (sys.executable, "-m", "tests.support.gasnet_rank", program)


@pytest.mark.parametrize(("program", "conduit", "messages"), PORTED if THOROUGH else PORTED[:1])
def test_ported(lab, program, conduit, messages):
    code, out, err = lab.run(*HOSTS, *words(program, conduit, messages))
    assert code == 0, out + err
    assert sorted(out.splitlines()) == [f"rank {rank} of 4 did {program}" for rank in range(4)]


@pytest.mark.parametrize(("program", "code"), ENDS if THOROUGH else ENDS[:1])
def test_ends(lab, program, code):
    ended, out, err = lab.run(*HOSTS, *words(program, "gemini", "mailboxes"))
    assert ended == code, out + err
    lab.assert_empty()


@pytest.mark.parametrize("messages", VARIANTS if THOROUGH else VARIANTS[:1])
def test_a_lost_message_is_an_error(lab, messages):
    """The connection between two hosts breaks under active messages: nobody waits for ever."""
    fault = ("--fault", "link_down:rank=0,nth=40,lasts=20ms")
    asking = words("asks_for_ever", "aries", messages)
    code, out, err = lab.run("--host", "h1,h2", "-n", "2", "--timeout", "60", *fault, *asking)
    assert code == 1, out + err
    assert "cannot be reached" in " ".join(err.split()), err
    assert "link_down" in err[err.index("faults delivered") :], err
