"""The rails as who watches sees them: from what ranks tell to states, rates and lines."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from ompy.mca.reporting import Finding
from ompy.runtime.rails.rail_record import RailRecord, RecordError, feed, lines_of, replay
from ompy.runtime.rails.rail_samples import RailSampler
from ompy.runtime.rails.rail_screen import LEVELS, PLAIN_LEVELS, rendered, sparkline
from ompy.runtime.rails.rail_view import RailView
from ompy.runtime.rails.rail_watch import RailWatch, State, said

from tools.bench.plots.plot_rails import course, plot

RECORD = Path(__file__).resolve().parents[3] / "docs" / "figures" / "pull-the-cable.jsonl"
HERE, THERE = "10.0.0.1", "10.0.0.2"
MS = 1_000_000


def sample(rank: int, at_ms: int, sent: int, phase: str = "sound", rail: int = 1, took: int = 100):
    own, there = ((HERE, THERE), (THERE, HERE))[rank]
    name = f"tcp eth{rail} {own} - {there}"
    row = [1 - rank, name, f"eth{rail}", f"{own}{rail}", f"{there}{rail}", sent, phase]
    return {"rank": rank, "before": (at_ms - took) * MS, "at": at_ms * MS, "rails": [row]}


def event(rank: int, number: int = 0, healed: int = 0, messages: int = 0, rail: int = 1):
    own, there = ((HERE, THERE), (THERE, HERE))[rank]
    name = f"tcp eth{rail} {own} - {there}"
    return {
        "rank": rank, "peer": 1 - rank, "rail": name, "cause": "the cable was pulled",
        "noticed_ns": 1, "messages": messages, "bytes": 9, "pause_ns": 1, "healed_ns": healed,
        "number": number,
    }  # fmt: skip


def watch() -> RailWatch:
    return RailWatch(["h1", "h2"], 0.1)


def states(found: RailWatch) -> list[State]:
    return [change.state for change in found.changes]


def test_both_ends_of_a_path_are_one_rail() -> None:
    found = watch()
    found.carried(0.1, sample(0, 100, 1_000))
    found.carried(0.1, sample(1, 130, 500))
    found.tick(0.15)
    (rail,) = found.rails.values()
    assert rail.name == "eth1 h1 - h2"
    assert rail.sent == 1_500
    assert rail.rate == pytest.approx(15_000)
    found.carried(0.2, sample(0, 200, 3_000))
    found.tick(0.25)
    assert rail.rate == pytest.approx(25_000)
    found.tick(0.6)
    assert rail.rate == 0, "who tells nothing sends nothing"
    assert list(rail.history) == pytest.approx([15_000, 25_000, 0])


def test_a_sample_that_is_too_short_says_nothing_of_the_rate() -> None:
    found = watch()
    found.carried(0.1, sample(0, 100, 1_000))
    found.carried(0.11, sample(0, 101, 2_000, took=1))
    found.tick(0.15)
    (rail,) = found.rails.values()
    assert rail.rate == pytest.approx(10_000)
    assert rail.sent == 2_000


def test_from_broken_over_mending_to_up_without_a_step_back() -> None:
    """Both ends go through their phases on their own, in any order of the news."""
    found = watch()
    for rank in (0, 1):
        found.carried(0.1, sample(rank, 100, 1_000))
    found.event(1.0, event(1))
    found.event(1.01, event(0))
    for phase in ("holding", "asking"):
        for rank in (0, 1):
            found.carried(1.1, sample(rank, 1100, 1_000, phase, took=0))
    found.carried(2.0, sample(0, 2000, 1_000, "mending", took=0))
    found.carried(2.01, sample(0, 2010, 1_000, "sound", took=0))
    found.event(2.02, event(0, healed=5))
    found.carried(2.03, sample(1, 2030, 1_000, "sound", took=0))
    found.event(2.04, event(1, healed=6))
    assert states(found) == [State.BROKEN, State.MENDING, State.UP]
    (rail,) = found.rails.values()
    assert (rail.breaks, rail.since) == (1, 2.04)
    broke, mends, up = map(said, found.changes)
    assert broke.endswith("is broken: the cable was pulled")
    assert mends.endswith("is mending")
    assert up == f"2.0 s: rail {rail.name} is up again"


def test_a_rail_that_breaks_again_is_another_break_and_messages_add_up() -> None:
    found = watch()
    found.carried(0.1, sample(0, 100, 1_000))
    for number, messages in ((0, 3), (1, 4)):
        found.event(number + 1.0, event(0, number))
        found.event(number + 1.2, event(0, number, messages=messages))
        found.event(number + 1.5, event(0, number, healed=7, messages=messages))
        found.event(number + 1.6, event(0, number, healed=7, messages=messages))
    (rail,) = found.rails.values()
    assert (rail.breaks, rail.resent, rail.state) == (2, 7, State.UP)
    assert states(found) == [State.BROKEN, State.UP] * 2


def test_what_broke_before_anything_was_told_of_it() -> None:
    found = watch()
    found.event(0.05, event(0))
    assert not found.rails
    found.carried(0.1, sample(0, 100, 1_000))
    (rail,) = found.rails.values()
    assert (rail.state, rail.since) == (State.BROKEN, 0.05)


def test_names() -> None:
    found = RailWatch(["h1", "h1", "h2", "h2"], 0.1)
    rows = [(0, 1, "lo", "127.0.0.1", "127.0.0.1"), (1, 0, "lo", "127.0.0.1", "127.0.0.1")]
    rows += [
        (0, 2, "e", HERE, THERE),
        (3, 1, "e", THERE, HERE),
        (0, 2, "e", "10.1.0.1", "10.1.0.2"),
    ]
    for rank, peer, interface, own, there in rows:
        row = [peer, f"tcp {interface} {own} - {there}", interface, own, there, 5, "sound"]
        found.carried(0.1, {"rank": rank, "before": 0, "at": MS, "rails": [row]})
    assert {rail.name: rail.sent for rail in found.rails.values()} == {
        "lo 127.0.0.1": 10,
        "e h1 - h2": 10,
        "e h1 - h2 (10.1.0.1 - 10.1.0.2)": 5,
    }


def test_sparklines() -> None:
    assert sparkline([0, 1, 50, 100], 100) == f" {LEVELS[1]}{LEVELS[5]}{LEVELS[8]}"
    assert sparkline([100, 0], 100, PLAIN_LEVELS) == "@ "


def at(time: float) -> RailWatch:
    """The recorded job as it was then."""
    with RECORD.open() as file:
        for now, found in replay(file):
            if now >= time:
                return found
    raise AssertionError("the record ends before")


def table(time: float, width: int = 100, height: int = 24, **more) -> list[str]:
    options = {"width": width, "height": height, "colour": False, **more}
    return rendered(at(time), time, **options).splitlines()


def told_of_breaks() -> list[dict]:
    """What the recorded job's ranks told of rails, read without the code under test.

    The record is of the picture in the README and is made anew with it, so its times stand in no
    test.
    """
    with RECORD.open() as file:
        return [line for line in map(json.loads, file) if line["what"] == "rail"]


def again() -> int:
    """How many messages the two ends sent again."""
    return sum({line["rank"]: line["messages"] for line in told_of_breaks()}.values())


def breaks_and_heals() -> tuple[float, float]:
    """s when the first end told of the break, and when both ends had told of the healing."""
    lines = told_of_breaks()
    healed = {line["rank"]: line["time"] for line in reversed(lines) if line["healed_ns"]}
    return lines[0]["time"], max(healed.values())


def test_the_table_of_a_real_job() -> None:
    broke, heals = breaks_and_heals()
    before = broke - 0.2
    head, one, two = table(before)
    assert head.split()[:4] == ["rails", "after", f"{before:.1f}", "s"]
    assert one.startswith(" rail1 h1 - h2 ")
    assert " up " in one
    assert "MB/s" in one
    assert two.startswith(" rail2 h1 - h2 ")
    within = heals - 0.3
    _, broken, whole = table(within)  # what is not well stands first
    assert f" broken for {within - broke:.1f} s " in broken
    assert " 0 B/s " in broken
    assert broken.startswith(" rail1 ")
    assert " up " in whole
    _, healed, _ = table(heals + 1.5)
    assert " up, healed " in healed
    assert healed.endswith(f" {again()}"), "messages that went again"


def test_the_picture_of_a_real_job(tmp_path) -> None:
    found = course(RECORD)
    broke, heals = breaks_and_heals()
    assert found.broken() == [("rail1 h1 - h2", broke, heals)]
    assert found.resent == again()
    out = [rates for time, *rates in zip(found.times, *found.rates.values(), strict=True)
           if broke + 0.2 < time < heals - 0.1]  # fmt: skip
    assert len(out) > 10
    assert all(one == 0 and other > 1e7 for one, other in out), "the other rail goes on alone"
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    plot(found, tmp_path / "rails.svg", "two rails")
    text = (tmp_path / "rails.svg").read_text()
    assert "<svg" in text
    plot(found, tmp_path / "again.svg", "two rails")
    assert text == (tmp_path / "again.svg").read_text(), "the same from the same record"


def test_a_rail_that_is_not_healed_is_broken_to_the_end(tmp_path) -> None:
    path = tmp_path / "rails.jsonl"
    with path.open("w") as file:
        record = RailRecord(file, ["h1", "h2"], 100)
        record.add("carried", 0.05, sample(0, 50, 1_000))
        record.add("rail", 0.15, event(0))
        record.add("end", 0.42, {})
    assert course(path).broken() == [("eth1 h1 - h2", 0.15, pytest.approx(0.4))]


def test_a_table_fits_into_its_terminal() -> None:
    for width, height in ((100, 24), (60, 24), (20, 10), (100, 4), (1, 1)):
        lines = table(5.0, width, height)
        assert all(len(line) <= width for line in lines)
        assert len(lines) < max(height, 4)
    assert table(5.0, height=4)[-1] == " and 1 more"
    assert "\x1b[" not in "".join(table(5.0))
    assert "\x1b[" in "".join(table(5.0, colour=True))
    assert "".join(table(5.0, letters=True)).isascii()


class Clock:
    """A loop whose time stands where it is put."""

    def __init__(self) -> None:
        self.now = 50.0
        self.due: list = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay, callback, *arguments):
        self.due.append(callback)


def test_a_record_shows_again_what_was_watched(tmp_path) -> None:
    clock, lines = Clock(), []
    printer = SimpleNamespace(say=lines.append, keep_below=None)
    path = tmp_path / "rails.jsonl"
    view = RailView(clock, printer, ["h1", "h2"], 100, print, show=False, record=str(path))
    live = watch()
    for step in range(1, 30):
        clock.now = 50 + step * 0.05
        told = [("carried", sample(step % 2, step * 50, step * 10_000))]
        told += [("rail", event(0, 0, healed=step > 20, messages=2))] if step in (10, 21) else []
        for what, line in told:
            if what == "carried":
                view.carried({k: v for k, v in line.items() if k != "rails"},
                             json.dumps(line["rails"]).encode())  # fmt: skip
            else:
                view.event(line)
            feed(live, {"what": what, "time": step * 0.05, **line})
    assert view.end() == ""
    written = path.read_text()
    *_, (_, again) = replay(io.StringIO(written))
    assert again.changes == [c._replace(time=pytest.approx(c.time, abs=1e-5)) for c in live.changes]
    assert len(again.changes) == 2
    for one, other in zip(again.rails.values(), live.rails.values(), strict=True):
        assert (one.name, one.sent, one.resent) == (other.name, other.sent, other.resent)
    assert [line["what"] for line in lines_of(io.StringIO(written))][-1] == "end"
    assert not lines, "nobody asked to see it"


def test_without_a_terminal_changes_are_said(monkeypatch) -> None:
    monkeypatch.setattr("os.isatty", lambda _number: False)
    clock, found = Clock(), []
    printer = SimpleNamespace(keep_below=None)
    view = RailView(clock, printer, ["h1", "h2"], 100, found.append, show=True, record="")
    told = sample(0, 100, 10)
    view.carried(
        {k: v for k, v in told.items() if k != "rails"}, json.dumps(told["rails"]).encode()
    )
    view.event(event(0))
    view.event(event(0, healed=3))
    assert [one.text.split(" is ")[1] for one in found] == [
        "broken: the cable was pulled\n",
        "up again\n",
    ]
    clock.due[-1]()
    assert len(found) == 2


def test_a_record_that_cannot_be_written_is_said_once(tmp_path) -> None:
    found: list[Finding] = []
    for record, why in (("/nowhere/x", "No such file"), ("/dev/full", "No space left")):
        printer = SimpleNamespace()
        view = RailView(Clock(), printer, ["h1"] * 2, 100, found.append, show=False, record=record)
        told = sample(0, 100, 10)
        view.carried(told, json.dumps(told["rails"]).encode())
        assert view.end() == ""
        (one,) = found
        assert one.text.startswith(f"ompy-run: warning: --record-rails {record}: {why}")
        found.clear()


def test_what_is_no_record(tmp_path) -> None:
    for text, why in (
        ("", "empty"),
        ("[]\n", "line 1"),
        ('{"what": "job", "version": 7}\n', "version"),
        ('{"what": "carried"}\n', "line 1"),
    ):
        with pytest.raises(RecordError, match=why):
            list(replay(io.StringIO(text)))
    file = io.StringIO()
    RailRecord(file, ["h1"], 100).add("end", 1.0, {})
    whole = list(lines_of(io.StringIO(file.getvalue() + '{"what": "carr')))
    assert [line["what"] for line in whole] == ["job", "end"], "the launcher was killed"


class Way:
    """An endpoint with an interface, or without."""

    def __init__(self, rank: int, interface: str) -> None:
        self.proc = SimpleNamespace(rank=rank)
        self._ends = (interface, HERE, THERE) if interface else ("", "", "")

    def ends(self):
        return self._ends

    def describe(self):
        return f"tcp {self._ends[0]}"


def rank_with(*endpoints):
    from ompy.frameworks.bml import BmlEndpoint
    from ompy.frameworks.proc import Proc
    from ompy.net.base import Network

    peer = BmlEndpoint(Proc(1, 0, 1, "b"))
    peer.send.rails = [SimpleNamespace(endpoint=endpoint) for endpoint in endpoints]
    context = SimpleNamespace(
        network=Network(),
        procs=[SimpleNamespace(bml_endpoint=None), SimpleNamespace(bml_endpoint=peer)],
        rail_events=[],
        engine=SimpleNamespace(now=lambda: context.now, call_later=lambda *_: None),
        tell_rail=lambda event: context.rails_told.append(event.messages),
        tell_phase=None,
        now=1_000,
        rails_told=[],
    )
    return context, peer


def test_a_rank_tells_what_has_changed_only() -> None:
    told: list = []
    context, peer = rank_with(Way(1, "eth0"), Way(1, "eth1"), Way(1, ""), Way(1, "eth1"))
    sampler = RailSampler(context, 100, lambda *values: told.append(values))
    sampler.begin()
    (meter,) = context.network._middleware
    meter.gone.update({(1, "eth0"): 10, (1, "eth1"): 7})
    context.now = 1_500
    sampler.tell()
    (before, now, rows), *rest = told
    assert (before, now, rest) == (0, 500, [])
    assert [(row.interface, row.sent, row.phase) for row in rows] == [
        ("eth0", 10, "sound"), ("eth1", 7, "sound"),
    ]  # fmt: skip
    context.now = 2_000
    sampler.tell()
    assert len(told) == 1, "nothing has"
    peer.send.rails = peer.send.rails[1:]  # it broke, and is still one to tell of
    context.tell_phase(1, "eth0", "asking")
    assert [(row.interface, row.sent, row.phase) for row in told[-1][2]] == [("eth0", 10, "asking")]
    meter.gone[1, "eth0"] = 30
    sampler.tell()
    before, now, rows = told[-1]
    assert (before, now) == (1_000, 1_000)
    assert [(row.interface, row.sent, row.phase) for row in rows] == [("eth0", 30, "asking")]
    context.rail_events.append(SimpleNamespace(messages=0))
    sampler.tell()
    assert not context.rails_told
    context.rail_events[0].messages = 2
    sampler.tell()
    sampler.tell()
    assert context.rails_told == [2]
