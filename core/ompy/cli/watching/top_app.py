"""The live view of a job on a terminal, by Textual. Imported where somebody watches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.events import Resize
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, RichLog, Static
from textual.worker import get_current_worker

from ompy.cli.watching.live_jobs import JobGone, LiveJob
from ompy.cli.watching.live_text import (
    BYTES,
    MESSAGES,
    NARROW_HEAD,
    RANK_HEAD,
    finding_lines,
    heading,
    matrix_rows,
    rail_rows,
    rank_row,
    stack_lines,
)

INTERVAL: Final = 1.0  # s; arbitrary: between two looks
SOON: Final = 0.05  # s; arbitrary: between two tries to reach a job that has just been started
NARROW: Final = 80  # columns; arbitrary: with fewer the line that a rank is at would be hidden
Connect = Callable[[], LiveJob | None]


class Written(Message):
    """The job has written this."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class TextScreen(ModalScreen[None]):
    """Lines to be read, over the tables."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,a,s", "app.pop_screen", "Back")]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        """A title and the lines."""
        yield Static(Text(self._title, "bold"))
        yield VerticalScroll(Static(Text("\n".join(self._lines)), id="lines"))
        yield Footer()


class TopApp(App[None]):
    """One job's.

    Attributes:
        gone: why nothing new is shown; empty while something is.
    """

    CSS: ClassVar[str] = """
    #about { height: auto; text-style: bold; }
    #ranks { height: 1fr; min-height: 5; }
    #below { height: auto; max-height: 50%; }
    #matrix, #rails { width: 1fr; height: auto; }
    #findings { height: auto; max-height: 8; color: $warning; }
    #output { height: 1fr; border-top: solid $primary; display: none; }
    TextScreen { background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("a", "ask('autopsy')", "Autopsy"),
        ("s", "ask('stacks')", "Stacks"),
        ("m", "matrix", "Messages/bytes"),
        ("q", "quit", "Quit"),
        # a priority: the screen has a Ctrl-C of its own, which copies text
        Binding("ctrl+c", "interrupt", "Interrupt", priority=True),
    ]

    def __init__(
        self,
        connect: Connect,
        *,
        interval: float = INTERVAL,
        interrupt: Callable[[], object] | None = None,
        follow: Callable[[Callable[[str], object]], object] | None = None,
    ) -> None:
        """Watch.

        Args:
            connect: the job, None as long as it cannot be reached.
            interval: s between two looks.
            interrupt: ends the job, where it is ours to end; else Ctrl-C ends the view.
            follow: has what the job writes told to a function, from any thread.
        """
        super().__init__()
        self.gone = ""
        self._connect = connect
        self._interval = interval
        self._interrupt = interrupt
        self._follow = follow
        self._what = MESSAGES
        self._job: LiveJob | None = None
        self._answer: dict[str, Any] = {"ranks": [], "rails": [], "broken": []}
        self._over = threading.Event()
        self._narrow = False

    def compose(self) -> ComposeResult:
        """The job, its ranks, who sent to whom, rails, findings, output."""
        yield Static("waiting for the job", id="about", markup=False)
        yield DataTable(id="ranks", cursor_type="row", zebra_stripes=True)
        with Horizontal(id="below"):
            yield Static(id="matrix")
            yield Static(id="rails")
        yield Static(id="findings", markup=False)
        yield RichLog(id="output", markup=False, wrap=True, max_lines=10_000)
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        self._lay_out(narrow=self.size.width < NARROW)
        if self._follow is not None:
            self.query_one("#output", RichLog).display = True
            self._follow(lambda text: self.post_message(Written(text)))
        self._look()

    def on_resize(self, event: Resize) -> None:
        """The columns that a user looks for first have to be on the screen."""
        narrow = event.size.width < NARROW
        if narrow != self._narrow:
            self._lay_out(narrow=narrow)

    def _lay_out(self, *, narrow: bool) -> None:
        table = self._ranks()
        self._narrow = narrow
        table.clear(columns=True)
        for name in self._head():
            table.add_column(name, key=name)
        self._show_ranks([rank_row(row) for row in self._answer["ranks"]])

    def _head(self) -> Sequence[str]:
        return NARROW_HEAD if self._narrow else RANK_HEAD

    def on_unmount(self) -> None:
        """Look no longer."""
        self._over.set()

    # looking, in a thread: a launcher is asked and waited for

    @work(thread=True)
    def _look(self) -> None:
        worker = get_current_worker()
        try:
            while not worker.is_cancelled and (self._job is None):
                self._job = self._connect()
                if self._job is None and self._over.wait(SOON):
                    return
            while not worker.is_cancelled and self._job is not None:
                said, answer = self._job.ask_launcher("job"), self._job.ask_launcher("ranks")
                self.call_from_thread(self.show, said, answer)
                if self._over.wait(self._interval):
                    return
        except JobGone as problem:
            if not worker.is_cancelled and not self._over.is_set():
                self.call_from_thread(self.show_end, str(problem))

    def show(self, said: dict[str, Any], answer: dict[str, Any]) -> None:
        """Show what the launcher says now; nothing where the view ends meanwhile."""
        if not self.query("#about"):
            return
        self._answer = answer
        self.query_one("#about", Static).update(heading(said))
        self._show_ranks([rank_row(row) for row in answer["ranks"]])
        self._show_matrix()
        self.query_one("#rails", Static).update(_grid(rail_rows(answer), "rails"))
        self.query_one("#findings", Static).update("\n".join(finding_lines(answer)))

    def show_end(self, why: str) -> None:
        """Nothing new will come; what was last there stays."""
        self.gone = why
        if not self.query("#about"):
            return
        about = self.query_one("#about", Static)
        about.update(f"{about.content}\nthe job is not there any longer ({why}); q ends the view")

    def on_written(self, message: Written) -> None:
        """The job has written something."""
        self.query_one("#output", RichLog).write(Text.from_ansi(message.text))

    def _ranks(self) -> DataTable[str]:
        return self.query_one("#ranks", DataTable)

    def _show_ranks(self, rows: Sequence[Sequence[str]]) -> None:
        """In place, so that the cursor and what was scrolled to stay."""
        table = self._ranks()
        for row in rows:
            if row[0] in table.rows:
                for name, cell in zip(RANK_HEAD, row, strict=True):
                    table.update_cell(row[0], name, cell, update_width=True)
            else:
                cells = dict(zip(RANK_HEAD, row, strict=True))
                table.add_row(*(cells[name] for name in self._head()), key=row[0])

    def _show_matrix(self) -> None:
        rows = matrix_rows(self._answer["ranks"], self._what)
        title = f"{self._what} sent"
        if not rows and self._what == BYTES:
            title = "bytes sent: no transport of this job counts them by rank"
        self.query_one("#matrix", Static).update(_grid(rows, title))

    # keys

    def action_matrix(self) -> None:
        """Messages or bytes."""
        self._what = BYTES if self._what == MESSAGES else MESSAGES
        self._show_matrix()

    def action_interrupt(self) -> None:
        """End the job, if it is ours to end, and the view: what the job says now is plain text."""
        if self._interrupt is not None and not self.gone:
            self._interrupt()
        self.exit()

    @work(thread=True)
    def action_ask(self, what: str) -> None:
        """Ask once, and show it over all else."""
        if self._job is None or self.gone:
            return
        try:
            answer = self._job.ask_launcher(what)
        except JobGone:  # who looks finds out, too
            return
        lines = stack_lines(answer) if what == "stacks" else answer["lines"]
        self.call_from_thread(self.push_screen, TextScreen(what, lines))


def _grid(rows: Sequence[Sequence[str]], title: str) -> Table | str:
    """A table with a heading; the title alone if there is nothing."""
    if not rows:
        return title if title.startswith(BYTES) else ""
    table = Table(title=title, box=None, title_justify="left")
    for place, name in enumerate(rows[0]):
        table.add_column(Text(name), justify="right" if place else "left")
    for row in rows[1:]:
        table.add_row(*(Text(cell) for cell in row))
    return table
