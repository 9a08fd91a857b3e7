"""The live view, driven by Textual's own pilot, of a launcher that is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

pytest.importorskip("textual")

from ompy.cli.watching.live_jobs import JobGone, LiveJob
from ompy.cli.watching.live_text import NARROW_HEAD, RANK_HEAD
from ompy.cli.watching.top_app import TextScreen, TopApp
from textual.pilot import Pilot
from textual.widgets import DataTable, RichLog, Static

SAID: dict[str, Any] = {"job": "ab", "program": "python a.py", "hosts": ["h"], "ranks": 2}
SAID |= {"age_s": 2.0, "phase": "running", "states": {"initialized": 2}}


class Launcher:
    """Answers until it has gone."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.gone = False
        self.line = "a.py:3 in f: comm.Barrier()"

    def ask_launcher(self, what: str) -> dict[str, Any]:
        self.asked.append(what)
        if self.gone:
            raise JobGone("it has ended")
        known = {"host": "h", "state": "initialized", "told": True, "for_s": 1.0, "waits": ""}
        known |= {"line": self.line, "queues": {}}
        rows = [{"rank": rank, **known, "messages": [[1 - rank, 7]]} for rank in (0, 1)]
        stacks = [{"rank": 0, "threads": [["MainThread", [["[b]a.py", 3, "f"]]]]}]
        answers: dict[str, dict[str, Any]] = {
            "job": SAID,
            "ranks": {
                "ranks": rows,
                "rails": [],
                "broken": [],
                "findings": [["info", "so [it] is"]],
            },
            "stacks": {"stacks": stacks, "silent": []},
            "autopsy": {"lines": ["rank 0 waits [for] something"]},
        }
        return answers[what]


def app_of(launcher: Launcher, **options: Any) -> TopApp:
    return TopApp(lambda: cast("LiveJob", launcher), interval=0.01, **options)


def drive(app: TopApp, test: Callable[[Pilot[None]], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with app.run_test(size=(120, 40)) as pilot:
            await test(pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await pilot.pause(0.01)
    raise AssertionError("it does not come")


def ranks(app: TopApp) -> DataTable[str]:
    return cast("DataTable[str]", app.query_one("#ranks", DataTable))


def text_of(app: TopApp, name: str) -> str:
    return str(app.screen.query_one(name, Static).content)


def test_ranks_are_shown_and_change_in_place() -> None:
    launcher = Launcher()
    app = app_of(launcher)

    async def test(pilot: Pilot[None]) -> None:
        table = ranks(app)
        await until(pilot, lambda: table.row_count == 2)
        assert table.get_cell("1", "is at") == launcher.line
        assert text_of(app, "#about").startswith("job ab: python a.py")
        assert "so [it] is" in text_of(app, "#findings")
        launcher.line = "a.py:4"
        await until(pilot, lambda: table.get_cell("0", "is at") == "a.py:4")
        assert table.row_count == 2

    drive(app, test)


def test_a_narrow_terminal_shows_where_a_rank_is_first() -> None:
    app = app_of(Launcher())

    async def test(pilot: Pilot[None]) -> None:
        table = ranks(app)
        await until(pilot, lambda: table.row_count == 2)
        assert [str(each.value) for each in table.columns] == list(RANK_HEAD)
        await pilot.resize_terminal(40, 40)
        await until(pilot, lambda: [str(k.value) for k in table.columns] == list(NARROW_HEAD))
        await until(pilot, lambda: table.get_row("1")[:2] == ["1", "a.py:3 in f: comm.Barrier()"])

    drive(app, test)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("key", "says"), [("a", "rank 0 waits [for] something"), ("s", "  [b]a.py:3 in f")]
)
def test_keys_show_what_was_asked(key: str, says: str) -> None:
    app = app_of(Launcher())

    async def test(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ranks(app).row_count == 2)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(app.screen, TextScreen))
        await until(pilot, lambda: bool(app.screen.query("#lines")))
        assert says in text_of(app, "#lines")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, TextScreen))

    drive(app, test)


def test_messages_or_bytes() -> None:
    app = app_of(Launcher())

    async def test(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ranks(app).row_count == 2)
        await pilot.press("m")
        await until(pilot, lambda: "no transport" in text_of(app, "#matrix"))

    drive(app, test)


def test_a_job_that_ends_stays_on_the_screen() -> None:
    launcher = Launcher()
    app = app_of(launcher)

    async def test(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ranks(app).row_count == 2)
        launcher.gone = True
        await until(pilot, lambda: bool(app.gone))
        assert "it has ended" in text_of(app, "#about")
        assert ranks(app).row_count == 2
        await pilot.press("a", "s", "q")

    drive(app, test)
    assert app.return_code == 0


def test_output_goes_to_its_pane_and_ctrl_c_to_the_job() -> None:
    interrupts: list[int] = []
    tell: list[Callable[[str], object]] = []
    app = app_of(Launcher(), follow=tell.append, interrupt=lambda: interrupts.append(1))

    async def test(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: bool(tell))
        tell[0]("hello [b]from[/b] rank 0")
        log = app.query_one("#output", RichLog)
        await until(pilot, lambda: bool(log.lines))
        assert log.lines[0].text.rstrip() == "hello [b]from[/b] rank 0"
        await pilot.press("ctrl+c")
        assert interrupts

    drive(app, test)
