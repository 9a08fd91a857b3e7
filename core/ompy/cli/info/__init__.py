"""`ompy-info`: which components there are, what can be set, what is set and why.

Reference: openmpi.md 2.1 to 2.3 (`ompi_info`); docs/ompy-info.md says what is added. This is the
entry point, which imports next to nothing: the version is told at once.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

PROGRAM: Final = "ompy-info"
COMPLETION: Final = "_OMPY_INFO_COMPLETE"  # the variable click's completion scripts set
VERSION_OPTIONS: Final = (["-V"], ["--version"])
INTERRUPTED: Final = 130  # 128 and SIGINT, as a shell has it
UNWRITTEN: Final = 1  # as any program that has failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        from ompy.outputs import READER_GONE, drop_standard_output

        drop_standard_output()
        return READER_GONE
    except (OSError, MemoryError, ImportError) as problem:
        from ompy.outputs import output_failure, tell
        from ompy.runtime.diagnosis.shortage import shortage

        if not (failure := shortage(problem) or output_failure(problem)):
            raise
        tell(f"{PROGRAM}: error: {failure}\n", "error", "error")
        return UNWRITTEN
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run(arguments: list[str]) -> int:
    if COMPLETION in os.environ:
        from ompy.cli.completing.completion import answer_completion
        from ompy.cli.info.command import command

        return answer_completion(command, PROGRAM, COMPLETION)
    if arguments in VERSION_OPTIONS:
        print(version())
        return 0
    from ompy.cli.info.command import run_info

    return run_info(arguments)


def version() -> str:
    """The answer to `--version`."""
    from ompy import __version__
    from ompy.cli.forms import advice, described

    said = advice()
    return f"ompy v{__version__}\nHot modules: {described()}" + (f"\n  {said}" if said else "")


if __name__ == "__main__":
    sys.exit(main())
