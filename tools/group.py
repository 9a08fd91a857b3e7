"""A folder of tools has one help page, and one command that runs each of them.

    python tools/sweep                    what there is
    python tools/sweep lossy --help       what one of them does
    python tools/sweep lossy --jobs 2     run it

A tool is a file with a `__main__` part, in the folder or in one of its sub-folders. It imports from
`tools.` and `tests.`, as the root of the tree is where this looks first.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import click

NO_TOOLS = ("package_programs",)  # sub-folders with programs that tools run


class Folder(click.Group):
    """The tools of a folder, each with the first line of what it says of itself."""

    def __init__(self, folder: Path, about: str) -> None:
        super().__init__(help=about, no_args_is_help=True)
        self._folder = folder

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the files that can be run."""
        return sorted(self._tools())

    def _tools(self) -> dict[str, Path]:
        """The files that can be run, by name; those of sub-folders too."""
        files = self._folder.rglob("*.py")
        mine = (file for file in files if file.parent.name not in NO_TOOLS)
        return {file.stem: file for file in mine if file.stem != "__main__" and _runs(file)}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One of them; all that follows its name is for itself."""
        file = self._tools().get(cmd_name)
        if file is None:
            return None
        inside = file.relative_to(self._folder).with_suffix("").parts
        module = ".".join(("tools", self._folder.name, *inside))

        def run(words: tuple[str, ...]) -> None:
            if words == ("--help",) and not _has_options(file):
                click.echo(_said(file))
                return
            sys.argv[1:] = words
            runpy.run_module(module, run_name="__main__", alter_sys=True)

        words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
        about = _said(file).partition("\n")[0]
        settings = {"ignore_unknown_options": True, "allow_interspersed_args": False}
        return click.Command(
            cmd_name, settings, run, [words], short_help=about, add_help_option=False
        )


def _runs(file: Path) -> bool:
    return '\nif __name__ == "__main__":' in file.read_text()


def _has_options(file: Path) -> bool:
    text = file.read_text()
    return any(f"import {name}" in text for name in ("argparse", "click"))


def _said(file: Path) -> str:
    """A tool's docstring."""
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def main(main_file: str, about: str) -> None:
    """Run what the command line names of the folder that a `__main__.py` is in."""
    folder = Path(main_file).resolve().parent
    settings = {"max_content_width": 140, "terminal_width": 140}
    Folder(folder, about).main(prog_name=f"python tools/{folder.name}", **settings)
