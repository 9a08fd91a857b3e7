"""Python's debugger around the program of a rank: `ompy-run --debug` runs this file.

It differs from `python -m pdb` in one thing: nothing begins again. A rank cannot do so alone, as
the others would not send and receive once more. `restart` says so and gives the next prompt, and
the end of the program is the end of the rank.

It runs in whatever Python the program is for, and imports nothing of ours.
"""

from __future__ import annotations

import importlib.util
import io
import os
import pdb
import sys
import traceback
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any

NO_RESTART = (
    "a rank cannot begin again alone: the other ranks would go on from where they are. "
    "q ends it; the command that began the job begins it again"
)


class RankPdb(pdb.Pdb):
    """pdb that does not begin again."""

    def do_run(self, arg: str) -> None:
        """restart: not in a rank of a job."""
        del arg
        self.message(NO_RESTART)

    do_restart = do_run


def main(words: Sequence[str]) -> None:
    """Run a program in the debugger, from its first line on.

    Args:
        words: `FILE ...` or `-m MODULE ...`.
    """
    program = ModuleType("__main__")
    is_module = words[0] == "-m"
    if not sys.flags.safe_path:  # where this file is, is nothing to the program
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(words[0]))
    if is_module:
        code, arguments = _module_code(program, words[1]), words[2:]
    else:
        code, arguments = _file_code(program, words[0]), words[1:]
    sys.argv[:] = [str(program.__file__), *arguments]
    sys.modules["__main__"] = program
    debugger = RankPdb()
    try:
        debugger.run(code, vars(program))
    except Exception as problem:
        traceback.print_exc()
        debugger.message("Uncaught exception: the rank ends with it when you leave this prompt")
        debugger.interaction(None, problem.__traceback__)
        raise


def _file_code(program: ModuleType, path: str) -> CodeType:
    program.__file__ = path
    with io.open_code(os.path.abspath(path)) as file:
        made: CodeType = compile(file.read(), path, "exec")
    return made


def _module_code(program: ModuleType, name: str) -> CodeType:
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    loader: Any = spec.loader if spec is not None else None
    code: CodeType | None = loader.get_code(spec.name) if loader is not None and spec else None
    if code is None or spec is None:
        raise SystemExit(f"ompy-run --debug: there is no module {name} to run")
    program.__spec__, program.__package__ = spec, spec.parent
    program.__file__ = spec.origin
    return code


if __name__ == "__main__":
    main(sys.argv[1:])
