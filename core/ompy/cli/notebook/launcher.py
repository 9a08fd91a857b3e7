"""`ompy-run` that dies with the process that started it; the first argument is its number.

The kernel of the operating system sees to it, so that a notebook's kernel that is killed leaves no
process behind: with the launcher its agent goes, and with the agent all ranks.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Run `ompy-run` with the arguments after the number of our parent. Returns its exit code."""
    from ompy.runtime.ranks.descendants import die_with_parent

    die_with_parent(int(sys.argv[1]))
    from ompy.cli.run import main as ompy_run

    return ompy_run(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
