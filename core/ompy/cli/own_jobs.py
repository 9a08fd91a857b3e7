"""Jobs that a command runs for itself: rank 0 answers on standard output, in a line of JSON.

So nothing has to be written anywhere, and nothing is left behind.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ompy.runtime.ranks.environment import OWN_CODE


def answer_of(
    options: Sequence[str], mca: Iterable[tuple[str, str]], module: str, *words: str
) -> dict[str, Any]:
    """Run `python -m module words` as a job. Exits with the job's code when it fails.

    Args:
        options: of `ompy-run`.
        mca: parameters.
        module: of ours.
        words: its arguments.
    """
    import subprocess  # a rank needs none

    python = [sys.executable, *OWN_CODE, "-m"]
    command = [*python, "ompy.cli.run", *options]
    for name, value in mca:
        command += ["--mca", name, value]
    done = subprocess.run([*command, *python, module, *words], stdout=subprocess.PIPE, check=False)  # noqa: S603 - ourselves
    if done.returncode:
        sys.exit(done.returncode)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def tell_command(value: dict[str, Any]) -> None:
    """For rank 0: tell the command."""
    print(json.dumps(value), flush=True)
