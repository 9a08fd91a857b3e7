"""Parts of the plug-in by themselves: merging, stacks, channels, time limits, warnings."""

from __future__ import annotations

import faulthandler
import os
import signal
import socket
import tempfile
import threading
import time
import warnings

import greenlet
import pytest

from pytest_ompy import channel as channels
from pytest_ompy import stacks
from pytest_ompy.alarm import TimeIsUpError, limit, no_limit
from pytest_ompy.merge import CONSEQUENCE, kind_of, merge, ranks_text, text_failure
from pytest_ompy.warned import pack_warning, unpack_warning


def report(outcome: str = "passed", failure: str = "", **more: object) -> dict:
    return {
        "when": "call",
        "outcome": outcome,
        "longrepr": text_failure(failure) if failure else None,
        "sections": [],
        "user_properties": [],
        "start": 0.0,
        "stop": 1.0,
        "duration": 1.0,
        **more,
    }


def skip(reason: str) -> dict:
    return report("skipped", longrepr=["test_it.py", 3, f"Skipped: {reason}"])


def test_numbers_of_ranks() -> None:
    assert ranks_text([3]) == "rank 3"
    assert ranks_text([2, 0, 1]) == "ranks 0-2"
    assert ranks_text([5, 0, 1, 7, 8]) == "ranks 0-1,5,7-8"


XFAILED = report("skipped", "as known", wasxfail="known")
XPASSED = report(wasxfail="known")
STRICT = report("failed", longrepr="[XPASS(strict)] known")
LOST = report("failed", "left waiting", **{CONSEQUENCE: True})
BAD = report("failed", "E no")


@pytest.mark.parametrize(
    ("reports", "outcome", "kind"),
    [
        ([report(), report()], "passed", "passed"),
        ([report(), BAD], "failed", "failed"),
        ([skip("a"), BAD], "failed", "failed"),
        ([skip("a"), skip("a")], "skipped", "skipped"),
        ([skip("a"), report()], "passed", "passed"),
        ([XFAILED, report()], "skipped", "xfailed"),
        ([XFAILED, XPASSED], "skipped", "xfailed"),
        ([XFAILED, STRICT], "skipped", "xfailed"),
        ([XFAILED, LOST], "skipped", "xfailed"),
        ([XFAILED, BAD], "failed", "failed"),
        ([XPASSED, XPASSED], "passed", "xpassed"),
        ([STRICT, STRICT], "failed", "xpassed-strict"),
        ([report(), LOST], "failed", "failed"),
        ([BAD, LOST], "failed", "failed"),
    ],
)
def test_one_outcome_of_several(reports, outcome, kind) -> None:
    for order in (reports, reports[::-1]):
        merged = merge(dict(enumerate(order)), len(order))
        assert merged["outcome"] == outcome
        assert kind_of(merged) == kind


def test_failures_are_grouped() -> None:
    here = {"place": ("test_it.py", 3)}
    same = [text_failure(f"E is {n}", f"is {n}", **here) for n in (1, 2, 1)]
    reports = {rank: report("failed", longrepr=failure) for rank, failure in enumerate(same)}
    reports[3] = report("failed", "another")
    reports[4] = report("failed", "E at 0x7f00")
    reports[5] = report("failed", "E at 0x8f00")
    merged = merge(reports, 6)["longrepr"]
    texts = [
        entry["data"]["lines"][0] for link in merged["chain"] for entry in link[0]["reprentries"]
    ]
    assert [text for text in texts if "rank" in text] == [
        "ranks 0,2 of 6:\n",
        "\nrank 3 of 6:\n",
        "\nranks 4-5 of 6:\n",
    ]
    assert merged["chain"][0][0]["extraline"] == "rank 1, at the same place: is 2"
    assert merged["reprcrash"]["message"] == "ranks 0,2: is 1 (and 3 more)"


def test_output_and_properties() -> None:
    reports = {
        rank: report(
            sections=[("Captured stdout call", "same"), ("Captured log call", f"of {rank}")],
            user_properties=[["n", 2], ["rank", rank]],
        )
        for rank in range(2)
    }
    merged = merge(reports, 2)
    assert merged["sections"] == [
        ("Captured stdout call (ranks 0-1)", "same"),
        ("Captured log call (rank 0)", "of 0"),
        ("Captured log call (rank 1)", "of 1"),
    ]
    properties = [("n", 2), ("rank[rank 0]", 0), ("rank[rank 1]", 1)]
    assert merged["user_properties"] == properties


def test_stacks_of_threads_and_greenlets() -> None:
    inside = threading.Event()
    leave = threading.Event()

    def other_thread() -> None:
        inside.set()
        leave.wait()

    def suspended() -> None:
        greenlet.getcurrent().parent.switch()

    thread = threading.Thread(target=other_thread)
    thread.start()
    inside.wait()
    sleeper = greenlet.greenlet(suspended)
    sleeper.switch()
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        text = file.read() + stacks.greenlets()
    leave.set()
    thread.join()
    sleeper.switch()
    assert text.endswith(stacks.STACKS_END)
    found = stacks.parse(text)
    assert stacks.trim(found.test)[-1].function == "test_stacks_of_threads_and_greenlets"
    assert stacks.innermost_user_frame(found.test).path == __file__
    functions = [stack[-1].function for stack in found.others]
    assert "suspended" in functions
    assert any("other_thread" in [frame.function for frame in stack] for stack in found.others)
    shown = stacks.show(found.test[-1:], os.path.dirname(__file__))
    assert shown.startswith('  File "test_parts.py", line ')
    assert shown.endswith("    faulthandler.dump_traceback(file, all_threads=True)")


def test_a_channel_says_that_nobody_is_there() -> None:
    ours, theirs = (channels.Channel(end) for end in socket.socketpair())
    ours.send("report", text="ä\udce4", odd={1, 2})
    assert theirs.receive() == {"what": "report", "text": "ä\udce4", "odd": "{1, 2}"}
    theirs.close()
    for action in (lambda: ours.send("run"), ours.receive):
        with pytest.raises(channels.GoneError):
            action()
    ours.close()


def test_several_ranks_at_one_door(monkeypatch) -> None:
    registration_socket, theirs = channels.make_registration_sockets()
    for rank in (1, 0):
        monkeypatch.setenv(channels.REGISTRATION, str(os.dup(theirs.fileno())))
        mine = channels.register_rank(rank, os.memfd_create("stacks"))
        assert channels.REGISTRATION not in os.environ
        known = channels.receive_registration(registration_socket)
        assert (known.rank, known.pid) == (rank, os.getpid())
        known.channel.send("hello")
        assert mine.receive() == {"what": "hello"}
        for end in (mine, known.channel):
            end.close()
        os.close(known.stacks)
    theirs.close()
    with pytest.raises(channels.GoneError):
        channels.receive_registration(registration_socket)
    registration_socket.close()
    with pytest.raises(RuntimeError, match="the plugin starts this program"):
        channels.register_rank(0, 0)


def test_time_limits() -> None:
    with pytest.raises(TimeIsUpError), limit(0.05):
        time.sleep(5)
    with limit(0.05):
        no_limit()
        time.sleep(0.1)
    with limit(0):
        pass
    before = signal.getitimer(signal.ITIMER_REAL)[0]
    with limit(before + 100):
        assert signal.getitimer(signal.ITIMER_REAL)[0] <= before, "the earlier limit counts"
    assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= before
    thread = threading.Thread(target=lambda: limit(1).__enter__())
    thread.start()
    thread.join()


def test_warnings_travel() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    packed = pack_warning(caught[0])
    there = unpack_warning(packed)
    assert (there.category, there.message, there.lineno) == (
        DeprecationWarning,
        "old",
        caught[0].lineno,
    )
    assert unpack_warning({**packed, "category": ["nowhere", "Odd"]}).category is UserWarning
