"""What is kept of a virtual world that fails: enough to run exactly it again, in a debugger too.

Each file that keeps one, of a seed or of a schedule, has an `about`: the words behind `ompy sim`,
the folder they were typed in, and the program. `ompy replay FILE` runs it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from ompy import outputs
from ompy.mca.parameters.settings import ENVIRONMENT_PREFIX

WORLD: Final = "world.json"  # name of the file in the folder of a failing seed
FORM: Final = 1  # of an `about`; another one is refused
# options that are of many worlds, of what is written or told, or that the file itself stands for
OTHERS: Final = frozenset(
    {
        "seeds", "jobs", "keep", "shrink", "explore", "worlds", "time", "polls", "depth", "pct",
        "resume", "check", "schedule", "quiet", "trace", "report_rails", "log_format", "mca",
        "rank", "pdb", "seed", "kept", "go_on",
    }
)  # fmt: skip
_BLAMED: Final = re.compile(r"\branks? (\d+)")


class KeptWorldError(Exception):
    """A file keeps no world that can be run again; the text says why, and what to do."""


class KeptWorld(NamedTuple):
    """A world that was kept.

    Attributes:
        words: behind `ompy sim`, the program and its arguments at their end.
        folder: where they were typed.
        program: its name as it was typed.
        check: digest of its text.
        arguments: of the program.
        schedule: the file has the schedule, too.
    """

    words: tuple[str, ...]
    folder: str
    program: str
    check: str
    arguments: tuple[str, ...]
    schedule: bool


def about_world(
    options: Mapping[str, Any], own: Sequence[str], without: Collection[str] = ()
) -> dict[str, Any]:
    """What to keep of a world.

    Args:
        options: of `ompy sim`.
        own: words that name this world among others, such as its seed.
        without: parameters of the environment that mean nothing in it.
    """
    program = str(options["program"])
    about = {
        "form": FORM,
        "words": [*_words(options, without), *own, program, *options["arguments"]],
        "folder": os.getcwd(),
        "program": program,
        "sha256": digest_of(program),
        "arguments": list(options["arguments"]),
    }
    return {**about, "checksum": outputs.json_checksum(about)}


def _words(options: Mapping[str, Any], without: Collection[str]) -> list[str]:
    """Every option that is not as it is without being given, and parameters of the environment."""
    from ompy.cli.simulating.sim import sim

    words: list[str] = []
    given = {name for name, _ in options["mca"]}
    for variable, text in sorted(os.environ.items()):
        parameter = variable.removeprefix(ENVIRONMENT_PREFIX)
        if parameter not in {variable, "", *given, *without}:
            words += ["--mca", parameter, text]
    for pair in options["mca"]:
        words += ["--mca", *pair]
    for option in sim.params:
        known = option.name or ""
        value = options.get(known)
        if not isinstance(option, click.Option) or known in OTHERS or value == option.default:
            continue
        if value is None or value is False:
            continue
        for one in value if option.multiple else (value,):
            words += [option.opts[-1]] if option.is_flag else [option.opts[-1], str(one)]
    return words


def digest_of(program: str) -> str:
    """Of the text of a program; empty if it cannot be read."""
    try:
        return hashlib.sha256(Path(program).read_bytes()).hexdigest()
    except OSError:
        return ""


def read_kept_world(path: str) -> KeptWorld:
    """What is kept in a file.

    Raises:
        KeptWorldError: nothing that can be used.
    """
    advice = "ompy sim writes such files of worlds that fail"
    try:
        whole = json.loads(Path(path).read_text())
        about = dict(whole["about"])
    except OSError as problem:
        raise KeptWorldError(f"{path}: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        text = f"{path}: damaged or truncated, or no world: {problem}; {advice}"
        raise KeptWorldError(text) from None
    except (KeyError, TypeError):
        raise KeptWorldError(f"{path}: it keeps no world; {advice}") from None
    if about.get("form") != FORM:
        raise KeptWorldError(
            f"{path}: it is of form {about.get('form')}, and {FORM} is read here: run it with the "
            "ompy that wrote it"
        )
    if about.pop("checksum", None) != outputs.json_checksum(about):
        raise KeptWorldError(f"{path}: damaged: its checksum is wrong; run `ompy sim` again")
    return KeptWorld(
        tuple(about["words"]),
        about["folder"],
        about["program"],
        about["sha256"],
        tuple(about["arguments"]),
        "choices" in whole,
    )


def blamed_rank(text: str) -> int:
    """The rank to look at first: the one that a failure names first."""
    found = _BLAMED.search(text)
    return int(found.group(1)) if found else 0


def debugging_command(path: str, text: str) -> str:
    """The command that runs a kept world again, in a debugger.

    Args:
        path: of its file.
        text: how it failed.
    """
    return shlex.join(["ompy", "replay", path, "--rank", str(blamed_rank(text)), "--pdb"])


def text_of_world(options: Mapping[str, Any], seed: int, ended: Mapping[str, Any]) -> str:
    """What to write of the world of a seed: how to run it, and how it ended."""
    about = about_world(options, ["--seed", str(seed)])
    return json.dumps({"about": about, "ended": dict(ended)}, indent=1) + "\n"


def keep_failed_world(options: Mapping[str, Any], ended: Mapping[str, Any]) -> None:
    """Keep the world of a seed that has failed, and say how to run it in a debugger.

    Args:
        options: of `ompy sim`.
        ended: how: kind, exit_code and text.
    """
    from ompy.cli.simulating.sim import WARNING, tell_user

    stem = Path(options["program"]).stem
    path = Path(options["keep"]) / f"{stem}-seed-{options['seed']}.json"
    try:
        os.makedirs(options["keep"], exist_ok=True)
        outputs.write_text(str(path), text_of_world(options, options["seed"], ended))
    except OSError as problem:
        why = f"{problem.strerror}; the world is not kept"
        tell_user(f"warning: {path}: {why}", *WARNING)
        return
    command = debugging_command(str(path), str(ended["text"]))
    tell_user(f"it is kept; in a debugger: {command}", "kept", file=str(path))
