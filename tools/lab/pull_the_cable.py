#!/usr/bin/env python3
"""Two hosts with two rails each, a stream of checked blocks, and a cable that is pulled meanwhile.

    python tools/lab pull_the_cable
    python tools/lab pull_the_cable --record-rails rails.jsonl
    python tools/bench plot_rails rails.jsonl

Makes a laboratory (`tools/lab`), runs `examples/pull_the_cable.py` there over both rails under
`--mca pml bfo --watch-rails`, takes the link of h2's first rail down for a while, and leaves
nothing. Other options go to `ompy-run`; a parameter among them (`--mca btl self,usnic`) is used in
place of the one that stands here. Needs root, iproute2 and openssh-server.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import time
from typing import Final

from tools.lab.laboratory import LabError, Laboratory, why_not
from tools.repository import ROOT

NAME: Final = "cable"
RAILS: Final = ("rail1", "rail2")
BEGUN: Final = 1_000_000  # bytes; arbitrary: more than bringing up a job takes
EXAMPLE: Final = ROOT / "examples" / "pull_the_cable.py"
RUN: Final = [sys.executable, "-m", "ompy.cli.run", "--host", "h1,h2", "--watch-rails"]
OVER: Final = {"pml": "bfo", "btl": "self,tcp", "btl_tcp_if_include": ",".join(RAILS)}


def parser() -> argparse.ArgumentParser:
    summary = (__doc__ or "").partition("\n")[0]
    found = argparse.ArgumentParser(description=summary, allow_abbrev=False)
    found.add_argument("--rate", default="160mbit", help="of each rail, as tc has it")
    found.add_argument("--after", type=float, default=3, help="s until the cable is pulled")
    found.add_argument("--down", type=float, default=2, help="s until it is plugged in again")
    found.add_argument("--seconds", type=float, default=8, help="for which blocks are streamed")
    return found


def misspelt(own: argparse.ArgumentParser, more: list[str]) -> str:
    """What is wrong with an option that neither this tool nor `ompy-run` has; may be empty."""
    from ompy.cli.options import ALIASES, command

    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    known |= ALIASES.keys()
    mine = [f"--{name}" for name in vars(own.parse_args([]))]
    for word in more:
        name = word.partition("=")[0]
        near = difflib.get_close_matches(name, mine, n=1)
        if name.startswith("--") and name not in known and near:
            return f"there is no {name}; is {near[0]} meant?"
    return ""


def parameters(more: list[str]) -> list[str]:
    """Options for those of this tool's own parameters that the user has not set."""
    theirs = {
        name: value
        for option, name, value in zip(more, more[1:], more[2:], strict=False)
        if option.lstrip("-") in {"mca", "gmca"}
    }
    own = [("--mca", name, value) for name, value in OVER.items() if name not in theirs]
    if "tcp" not in theirs.get("btl", "tcp"):
        own.pop()  # what is tcp's has no effect
    return [word for option in own for word in option]


def pull(lab: Laboratory, options: argparse.Namespace, more: list[str]) -> int:
    """Run the job and pull the cable; the job's exit code."""
    words = [*RUN, *parameters(more), *more, sys.executable, str(EXAMPLE), str(options.seconds)]
    environment = {**os.environ, **lab.environment()}
    job = subprocess.Popen(lab.command("h1", words), env=environment)
    try:
        while job.poll() is None and carried(lab, "h1", RAILS[0]) < BEGUN:
            time.sleep(0.05)
        for pause, do in ((options.after, lab.cut), (options.down, lab.heal)):
            try:
                job.wait(pause)
            except subprocess.TimeoutExpired:
                do("h2", RAILS[0])
    finally:
        code = job.wait()
    return code


def carried(lab: Laboratory, host: str, link: str) -> int:
    """Bytes a host has sent over a link, as its kernel counts."""
    command = ["ip", "-json", "-stats", "-netns", f"{lab.name}-{host}", "link", "show", link]
    answer = subprocess.run(command, capture_output=True, check=True).stdout
    return int(json.loads(answer)[0]["stats64"]["tx"]["bytes"])


def main() -> int:
    own = parser()
    options, more = own.parse_known_args()
    if wrong := misspelt(own, more):
        own.error(wrong)
    problem = why_not()
    if problem:
        raise LabError(problem)
    lab = Laboratory(NAME)
    lab.up(2, len(RAILS))
    try:
        for host in lab.hosts():
            for rail in RAILS:
                lab.rate(host, rail, options.rate)
        return pull(lab, options, more)
    finally:
        lab.down()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"lab: {error}")
