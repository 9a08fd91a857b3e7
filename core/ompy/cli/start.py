"""The entry point of `ompy`. It imports next to nothing: who has too little memory is told so."""

from __future__ import annotations

import sys

from ompy import outputs
from ompy.runtime.diagnosis.shortage import shortage

FAILED = 1  # exit code, as of any program that has failed


def main() -> None:
    """Run the command that `sys.argv` names, and end with its exit code."""
    try:
        from ompy.cli.main import main as run_tool
    except (OSError, MemoryError, ImportError) as problem:
        failure = shortage(problem)
        if not failure:
            raise
        outputs.tell(f"ompy: error: {failure}\n", "error", "error")
        sys.exit(FAILED)
    run_tool()


if __name__ == "__main__":
    main()
