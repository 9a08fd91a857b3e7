#!/usr/bin/env python3
"""A laboratory of hosts on this machine: network namespaces with rails between them, and sshd.

    python tools/lab up --hosts 4 --rails 2        hosts h1 to h4; prints how to use them
    python tools/lab exec h1 -- ompy-run --host h1:2,h2:2,h3:2,h4:2 python examples/ring.py
    python tools/lab rate h1 rail1 100mbit         what h1 sends over its first rail (tbf)
    python tools/lab loss h1 rail1 2.5             per cent of what comes in there (nftables)
    python tools/lab refuse h1 rail1 on            every connection over it is reset; `off`
    python tools/lab cut h2 rail1                  pull a cable; `heal h2 rail1` puts it back
    python tools/lab crash h3                      all cables at once, the processes stay
    python tools/lab down                          leaves nothing
    python tools/lab pull_the_cable                one of its own: a cable is pulled under a job

Needs root, iproute2 and openssh-server; nftables for `loss`, Slurm for `up --slurm`.
`--name` keeps several apart.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path
from typing import NoReturn

sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.lab.laboratory import LabError, Laboratory, why_not  # noqa: E402


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("tools/lab", description=__doc__.partition("\n")[0])
    found.add_argument("--name", default="lab", help="of the laboratory; default: lab")
    commands = found.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="make it")
    up.add_argument("--hosts", type=int, default=4)
    up.add_argument("--rails", type=int, default=2)
    up.add_argument("--slurm", action="store_true", help="with slurmctld on h1 and slurmds")
    run = commands.add_parser("exec", help="run a command on a host")
    run.add_argument("host")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    for name, help_text, value in (
        ("rate", "limit what a host sends", "as tc has it, or none"),
        ("loss", "lose what comes in", "per cent"),
        ("refuse", "reset connections over a link", "on or off"),
    ):
        shaping = commands.add_parser(name, help=help_text)
        shaping.add_argument("host")
        shaping.add_argument("link")
        shaping.add_argument("value", help=value)
    for name in ("cut", "heal"):
        cable = commands.add_parser(name, help=f"{name} a cable")
        cable.add_argument("host")
        cable.add_argument("link", help="rail1, rail2, ... or management")
    for name, help_text in (
        ("crash", "pull all cables of a host"),
        ("revive", "plug them in again"),
        ("processes", "list what runs on a host"),
    ):
        commands.add_parser(name, help=help_text).add_argument("host")
    commands.add_parser("down", help="end everything and leave nothing")
    pull = commands.add_parser(
        "pull_the_cable", help="two hosts, a job, a cable pulled", add_help=False
    )
    pull.add_argument("words", nargs=argparse.REMAINDER, metavar="...")
    commands.add_parser("why-not", help="say why this machine cannot have one; exit 1 if so")
    return found


def main() -> int:
    if sys.argv[1:2] == ["pull_the_cable"]:  # its options are its own
        del sys.argv[1]
        runpy.run_module("tools.lab.pull_the_cable", run_name="__main__", alter_sys=True)
        return 0
    arguments = parser().parse_args()
    problem = why_not()
    if arguments.command == "why-not":
        print(problem or "it can")
        return int(bool(problem))
    if problem:
        raise LabError(problem)
    lab = Laboratory(arguments.name)
    if arguments.command == "up":
        lab.up(arguments.hosts, arguments.rails, with_slurm=arguments.slurm)
        name = "" if arguments.name == "lab" else f" --name {arguments.name}"
        print(f"hosts: {', '.join(lab.hosts())}; python {sys.argv[0]}{name} exec h1 -- COMMAND")
    elif arguments.command == "exec":
        become(lab, arguments.host, arguments.words)
    elif arguments.command == "processes":
        for pid, words in lab.processes(arguments.host).items():
            print(pid, words)
    else:
        names = [name for name in ("host", "link", "value") if name in arguments]
        getattr(lab, arguments.command)(*(getattr(arguments, name) for name in names))
    return 0


def become(lab: Laboratory, host: str, words: list[str]) -> NoReturn:
    """Run a command on a host in our place."""
    command = lab.command(host, words[words[:1] == ["--"] :] or ["sh"])
    os.execvpe(command[0], command, {**os.environ, **lab.environment()})  # noqa: S606


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"lab: {error}")
