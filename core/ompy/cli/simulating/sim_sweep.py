"""`ompy sim --seeds N`: many worlds, the failures among them, and the least that each needs."""

from __future__ import annotations

import os
import shlex
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.cli.simulating.kept_world import WORLD, debugging_command, text_of_world
from ompy.cli.simulating.sim import (
    PROGRAM,
    WARNING,
    job_id_of,
    make_scenario,
    preload,
    tell_faults,
    tell_user,
)
from ompy.cli.simulating.sim_causes import tell_causes, tell_schedule
from ompy.mca.errors import ComponentError, UsageError
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.flows import Injection
from ompy.runtime.faults.fault_files import toml
from ompy.runtime.faults.fault_report import NEVER_FIRED, FaultTally
from ompy.runtime.simulation.shrinking import events, shrink
from ompy.runtime.simulation.sweep import Trial, attempt, attempts

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.runtime.simulation.simulated_world import Scenario

FAILED: Final = 1  # exit code: at least one world failed
SHOWN: Final = 20  # failing seeds that are told of one by one; arbitrary: a screen
OTHERS: Final = 20  # seeds tried without any fault; arbitrary: a race shows in far fewer
RACE: Final = "what it hangs on is the order of things"


class Sweep:
    """One sweep and what came of it so far."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._first = make_scenario({**options, "trace": None})
        self._rules = [FaultRule.from_dict(dict(rule)) for rule in self._first.job.faults]
        self._tally = FaultTally(self._rules)
        self._kinds: Counter[str] = Counter()
        self._failures: list[Trial] = []
        self._keep = Path(options["keep"])
        self._unkept = False  # a file of a failure could not be written
        self._jobs = options["jobs"] or len(os.sched_getaffinity(0))

    @property
    def job(self) -> Job:
        """What each world runs."""
        return self._first.job

    def run_seeds(self) -> int:
        """Run all seeds, keep and shrink what failed. Returns the exit code."""
        begun = time.monotonic()
        for trial in attempts(self._scenarios(), self._jobs):
            self._take(trial)
        took = time.monotonic() - begun
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self._kinds.items()))
        seeds = self._options["seeds"]
        tell_user(
            f"{seeds} seeds in {took:.1f} s: {kinds}",
            "sweep ended",
            seeds=seeds,
            kinds=dict(self._kinds),
        )
        strict = self._options["fault_strict"]
        tell_faults(self._tally, strict=strict)
        for trial in tell_causes(self._failures):
            self._look_into(trial)
        if self._failures:
            return FAILED
        return NEVER_FIRED if strict and self._tally.silent else 0

    def _scenarios(self) -> Iterator[Scenario]:
        first = self._options["seed"]
        for seed in range(first, first + self._options["seeds"]):
            yield self._first._replace(
                seed=seed, job=self._first.job._replace(job_id=job_id_of(seed))
            )

    def _take(self, trial: Trial) -> None:
        seed, outcome = trial.scenario.seed, trial.outcome
        self._tally.told(seed, outcome.delivered)
        self._kinds[outcome.kind] += 1
        if not trial.failed:
            return
        self._failures.append(trial)
        folder = self._folder(trial)
        self._put(folder, "output.txt", trial.output)
        self._put(folder, "outcome.txt", f"{outcome.kind} at {outcome.time} ns: {outcome.text}\n")
        ended = {"kind": outcome.kind, "exit_code": outcome.code, "text": outcome.text}
        self._put(folder, WORLD, text_of_world(self._options, seed, ended))
        if len(self._failures) <= SHOWN:
            said = outcome.text.splitlines()[0]
            text = f"seed {seed}: {outcome.kind} at {outcome.time / 1e6:.6f} ms: {said} ({folder})"
            facts = {"kind": outcome.kind, "time_ns": outcome.time, "directory": str(folder)}
            tell_user(text, "world failed", "error", seed=seed, exit_code=outcome.code, **facts)
        elif len(self._failures) == SHOWN + 1:
            tell_user(f"there are more; see {self._keep}")

    def _put(self, folder: Path, name: str, text: str) -> None:
        """Keep a file of a failure; where that cannot be, the sweep goes on and says so once."""
        try:
            made = outputs.open_directory(str(folder))
            try:
                with open(outputs.create_in(made, name), "w", encoding="utf-8") as file:
                    file.write(text)
            finally:
                os.close(made)
        except OSError as problem:
            if not self._unkept:
                why = f"{problem.strerror}; what failed is told of, but not kept"
                tell_user(f"warning: --keep {self._keep}: {why}", *WARNING)
            self._unkept = True

    def _folder(self, trial: Trial) -> Path:
        return self._keep / f"seed-{trial.scenario.seed}"

    def _look_into(self, trial: Trial) -> None:
        """Trace a failure, and find the faults that it needs."""
        folder = self._folder(trial)
        attempt(trial.scenario._replace(trace_directory=str(folder / "trace")))
        seed = trial.scenario.seed
        if not self._rules:
            tell_user(f"seed {seed}: again by: {self._command(seed)}", "shrinking", seed=seed)
            self._tell_schedule(trial)
        elif self._options["shrink"]:
            self._shrink(trial, folder)
        if not self._unkept:
            command = debugging_command(str(folder / WORLD), trial.outcome.text)
            tell_user(f"seed {seed}: in a debugger: {command}", "kept", seed=seed)

    def _tell_schedule(self, trial: Trial) -> None:
        """What hangs on the order of things may come down to one decision."""
        if not self._options["shrink"]:
            return
        options = {**self._options, "keep": str(self._folder(trial))}
        try:
            tell_schedule(trial, options)
        except (UsageError, ComponentError):
            return  # it is made for worlds of packets

    def _shrink(self, trial: Trial, folder: Path) -> None:
        seed = trial.scenario.seed
        recorded = attempt(trial.scenario._replace(record=True))
        every = events(
            self._rules, [Injection(*injection) for injection in recorded.outcome.injections]
        )
        fails = partial(_fails, trial)
        if not fails(every):
            every = list(self._rules)  # what a rule does hangs on more than its strikes
        if recorded.signature != trial.signature or not fails(every):
            tell_user(
                f"seed {seed}: it does not fail again: the program has chance of its own",
                "shrinking",
                seed=seed,
            )
            return
        found = shrink(every, fails)
        if not found.items:
            tell_user(
                f"seed {seed}: no fault is needed: it fails without any; {RACE}",
                "shrinking",
                seed=seed,
            )
            tell_user(f"seed {seed}: again by: {self._command(seed)}", "shrinking", seed=seed)
            self._tell_schedule(trial)
            return
        other = self._fails_without(trial)
        rules = [rule for rule in found.items if isinstance(rule, FaultRule)]
        path = folder / "faults.toml"
        text = toml(rules, self._heading(trial, len(every), path, other))
        self._put(folder, path.name, text)
        least = "" if found.complete else ", not the least: the budget was used up"
        tell_user(
            f"seed {seed}: {len(rules)} of {len(every)} faults are enough "
            f"({found.runs} worlds tried{least}):",
            "shrinking",
            seed=seed,
        )
        for line in text.splitlines():
            tell_user(f"  {line}".rstrip(), "shrinking", seed=seed)

    def _fails_without(self, trial: Trial) -> int | None:
        """A seed whose world fails as this one did, without any fault: none is to blame then."""
        first = trial.scenario.seed + 1
        bare = trial.scenario.job._replace(faults=())
        worlds = (
            trial.scenario._replace(seed=seed, job=bare._replace(job_id=job_id_of(seed)))
            for seed in range(first, first + OTHERS)
        )
        for found in attempts(worlds, self._jobs):
            if found.signature == trial.signature:
                return found.scenario.seed
        return None

    def _heading(self, trial: Trial, of: int, path: Path, other: int | None) -> Sequence[str]:
        outcome = trial.outcome
        lines = [
            f"What makes it fail. {outcome.kind}: {outcome.text.splitlines()[0]}",
            f"Found among {of} faults that struck. Again by:",
            self._command(trial.scenario.seed, path),
        ]
        if other is not None:
            lines += [
                f"But no fault is needed: other seeds fail so without any; {RACE}",
                self._command(other),
            ]
        return lines

    def _command(self, seed: int, script: Path | None = None) -> str:
        """The command that runs one of the worlds alone."""
        options = self._options
        words = [*PROGRAM.split(), "-n", str(options["ranks"]), "--seed", str(seed)]
        for name in ("ranks_per_host", "rails", "latency", "bandwidth", "limit"):
            if options[name] not in (None, options["defaults"][name]):
                words += [f"--{name.replace('_', '-')}", str(options[name])]
        for pair in options["mca"]:
            words += ["--mca", *pair]
        if script is not None:
            words += ["--fault", str(script)]
        return shlex.join([*words, options["program"], *options["arguments"]])


def _fails(trial: Trial, rules: Sequence[FaultRule]) -> bool:
    """Whether a world with these faults alone ends as the one of `trial` did."""
    job = trial.scenario.job._replace(faults=tuple(rule._asdict() for rule in rules))
    return attempt(trial.scenario._replace(job=job)).signature == trial.signature


def run_sweep(options: dict[str, Any]) -> int:
    """A sweep over seeds. Returns the exit code.

    Raises:
        UsageError, ComponentError: what was asked for is wrong.
    """
    sweep = Sweep(options)
    preload(sweep.job)
    return sweep.run_seeds()
