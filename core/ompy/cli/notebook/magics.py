"""The commands `%%ompy` and `%ompy` of a notebook."""

from __future__ import annotations

import atexit
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from ompy.addons.notebook.cells import Cell
from ompy.addons.notebook.channel import Message
from ompy.cli.notebook.cell_check import CellCheck
from ompy.cli.notebook.ranks import Outcome, Ranks, RanksError
from ompy.cli.notebook.shown import Shown
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.diagnosis.whereabouts import Whereabouts

SIZES_MAX: Final = 512  # arbitrary: more ranks on one machine are rather a slip of the keyboard
NEW_RANKS: Final = "The ranks have gone, and their variables; the next cell starts new ones."
MIDWAY: Final = (
    "Ranks were interrupted in a call of MPI. Their variables are there; messages may be left "
    "over, which %ompy --restart gets rid of."
)


class CellError(RuntimeError):
    """A cell has not come to its end on all ranks; what each said is shown already."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: no stack of the kernel, which is none of the user's."""
        return [f"{type(self).__name__}: {self}"]


@magics_class
class OmpyMagics(Magics):
    """Cells on MPI ranks."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._ranks: Ranks | None = None
        self._size = 0  # of the ranks there are, or were last
        self._mca: tuple[tuple[str, str], ...] = ()
        self._check = CellCheck()
        atexit.register(self.end)

    @magic_arguments()
    @argument("-n", type=int, metavar="N", help="Number of ranks; else as many as there are.")
    @argument("--check", action="store_true", help="Say what the cell does wrong in using MPI.")
    @argument("--rank", type=int, metavar="K", help="Show the output of this rank alone.")
    @argument(
        "--mca",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="Set a parameter of ompy.",
    )
    @argument("--restart", action="store_true", help="Start the ranks anew, without variables.")
    @argument("--stop", action="store_true", help="End the ranks.")
    @line_cell_magic
    def ompy(self, line: str, cell: str | None = None) -> None:
        """Run a cell on MPI ranks, which are kept, with their variables, for the next one."""
        options = parse_argstring(self.ompy, line)
        ended = 0
        if options.restart or options.stop:
            ended = self._ranks.size if self._ranks is not None else 0
            self.end()
            if options.restart and not options.stop and cell is None:
                self._use_ranks(options.n, options.mca, Shown(None))
        if cell is None:
            print(self._state(ended))
            return
        assert self.shell is not None, "it was given one"
        # the count itself is one more already, or not yet, by IPython's version
        number = len(self.shell.history_manager.input_hist_parsed) - 1
        program = Cell(f"In[{number}]", line, cell)
        program.keep_source()
        _see_syntax(program)
        shown = Shown(options.rank)
        ranks = self._use_ranks(options.n, options.mca, shown)
        if options.rank is not None and not 0 <= options.rank < ranks.size:
            raise UsageError(f"--rank {options.rank}: there are ranks 0 to {ranks.size - 1}")
        self._run(ranks, program, {"options": line, "body": cell}, shown, check=options.check)

    def _state(self, ended: int) -> str:
        if self._ranks is not None:
            size = self._ranks.size
            return "1 rank waits for a cell." if size == 1 else f"{size} ranks wait for a cell."
        if ended:
            what = "1 rank has ended" if ended == 1 else f"{ended} ranks have ended"
            return f"{what}: %%ompy -n N starts new ones."
        return "No ranks: %%ompy -n N starts them."

    def _use_ranks(self, size: int | None, mca: Any, shown: Shown) -> Ranks:
        """The ranks there are, or new ones if they are not what is wanted."""
        number = self._size if size is None else size
        wanted = tuple((name, value) for name, value in mca) or self._mca
        known = self._ranks
        if known is not None and (known.size, known.mca) == (number, wanted):
            return known
        if size is None and not number:
            raise UsageError("%%ompy: the number of ranks is missing, as in -n 4")
        if not 1 <= number <= SIZES_MAX:
            raise UsageError(f"-n {number}: a number of ranks from 1 to {SIZES_MAX} is needed")
        self.end()
        ranks = Ranks(number, wanted)
        try:
            ranks.wait_until_ready(shown)
        except RanksError as problem:
            ranks.kill()
            raise CellError(str(problem)) from None
        except BaseException:  # Ctrl-C
            ranks.kill()
            raise
        finally:
            shown.finish()
        self._ranks, self._check = ranks, CellCheck()
        self._size, self._mca = number, wanted
        return ranks

    def _run(self, ranks: Ranks, cell: Cell, order: Message, shown: Shown, *, check: bool) -> None:
        record = check or self._check.goes_on
        order |= {"record": record, "anew": record and not self._check.goes_on}
        outcome = ranks.run_cell(cell, order, shown)
        self._show_failures(outcome)
        if record:
            lines = self._check.lines_after(ranks.records(), outcome)
            if check and (outcome.went_well or len(lines) > 1):
                print("\n".join(lines), flush=True)
        if not outcome.alive:
            ranks.kill()
            self._ranks = None
        _raise_failure(outcome)

    def _show_failures(self, outcome: Outcome) -> None:
        """What ranks raised: each different traceback once, with its ranks."""
        groups: dict[str, list[int]] = {}
        for rank, told in outcome.told.items():
            if told["status"] == "raised":
                groups.setdefault(told["text"], []).append(rank)
        for text, ranks in groups.items():
            print(f"{ranks_in_words(ranks)}:\n{text}", end="", file=sys.stderr, flush=True)
        if not any(told["status"] == "interrupted" for told in outcome.told.values()) and not (
            outcome.interrupted
        ):
            return
        found = Whereabouts((*outcome.told, *outcome.silent))
        for rank, told in outcome.told.items():
            if told["status"] == "interrupted":
                found.told(rank, told["place"], "")
            else:
                found.told(rank, _ENDED[told["status"]], "")
        why = "Interrupted" if outcome.interrupted else "Interrupted, as another rank had failed"
        lines = [f"{why}:", *(f"  {line}" for line in found.lines())]
        midway = any(told.get("in_mpi") for told in outcome.told.values())
        lines += [MIDWAY] if outcome.alive and midway else []
        print("\n".join(lines), file=sys.stderr, flush=True)

    def end(self) -> None:
        """End the ranks, if there are any."""
        ranks, self._ranks = self._ranks, None
        if ranks is not None:
            ranks.end_all()


_ENDED: Final[Mapping[str, str]] = {"ok": "its end", "raised": "the line where it failed"}


def _see_syntax(cell: Cell) -> None:
    """Let no rank have what is no Python.

    Raises:
        CellError: it is none.
    """
    try:
        cell.codes()
    except SyntaxError as problem:
        raise CellError("".join(traceback.format_exception_only(problem)).strip()) from None


def _raise_failure(outcome: Outcome) -> None:
    """Have the cell fail in the notebook, too, if a rank has failed.

    Raises:
        CellError: one has.
        KeyboardInterrupt: the user has interrupted.
    """
    failed = [rank for rank, told in outcome.told.items() if told["status"] == "raised"]
    gone = "" if outcome.alive else f" {NEW_RANKS}"
    if failed:
        summary = outcome.told[failed[0]]["summary"]
        raise CellError(f"{ranks_in_words(failed)}: {summary}{gone}")
    if outcome.interrupted:
        raise CellError(f"interrupted.{gone}")
    if not outcome.alive:
        what = "deadlock" if outcome.deadlock else "ranks have ended"
        raise CellError(f"{what}.{gone}")


def register_commands(shell: InteractiveShell) -> None:
    """Have a notebook know the commands."""
    shell.register_magics(OmpyMagics(shell))


def end_commands(shell: InteractiveShell) -> None:
    """End the ranks."""
    found = shell.magics_manager.registry.get(OmpyMagics.__name__)
    if isinstance(found, OmpyMagics):
        found.end()
