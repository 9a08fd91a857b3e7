"""The launcher's machine of a job that guests may join: the same, with the rows of their coming.

`runtime/guests/README.md` says what a guest is, and what its end means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final

from ompy.frameworks.job import app_of
from ompy.runtime.connections.control import Kind
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.machines.acts import Act, AdmitGuest, Widen
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.asking import packed_world
from ompy.runtime.machines.launcher.guests import has_failed
from ompy.runtime.machines.launcher.host import Host
from ompy.runtime.machines.launcher.job import JobMachine
from ompy.runtime.machines.launcher.job_news import said
from ompy.runtime.machines.launcher.job_table import ENDS, JOINABLE, JobPhase, Pair

# what agents say of a rank's end; of a lone guest's rank it means nothing to the job
_ENDS: Final = ENDS | {Kind.UNSTARTED}


class OpenJobMachine(JobMachine):
    """One job that guests may join."""

    table: ClassVar[Mapping[Pair, tuple[JobPhase, ...]]] = JOINABLE

    def may_meet(self) -> None:
        """Whoever has the ticket may come."""

    @property
    def next_node(self) -> int:
        """The index that the host of the next guest gets."""
        return len(self._hosts)

    def _seen(self, event: Event, now: float) -> list[Act]:
        if event.what is Seen.JOINED:
            return self._join(event, now)
        return super()._seen(event, now)

    def _join(self, event: Event, now: float) -> list[Act]:
        """A guest has come: its ranks are the job's next ones."""
        node, name, rules = event.who, event.header["host"], self._rules
        assert node == self.next_node, f"host {node} joins a job of {self.next_node}"
        apps = [app_of(values) for values in json.loads(event.body)]
        others = range(len(self._asked.job.placements))
        job, world, _ = self._asked.add_guest(name, apps)
        self.verdict.add_world_of(job)
        host = Host(node, name)
        host.known = len(job.placements)
        self._hosts.append(host)
        self._children.add(Child(node, event.header["pid"], remote=True, fences=False))
        self._children.watch(node, now, rules.heartbeat_s, rules.misses, rules.start_s)
        told = {"first": world.first, "nodes": [(node, world.size)]}
        text = f"{ranks_in_words(range(world.first, world.first + world.size))} joined from {name}."
        return [
            Widen(job),
            AdmitGuest(node, job),
            *self._children.tell(Kind.GROW, told, packed_world(job, world), but=node),
            *self._asked.guests.missed(node, filter(self.verdict.has_ended, others)),
            *said("guest joined", [] if rules.quiet else [text], "info", host=name),
        ]

    def _judge(self, event: Event, now: float) -> list[Act]:
        rank = event.header["rank"] if event.kind in _ENDS else -1
        if rank >= 0 and not self._asked.is_being_made(rank):
            node = self._asked.job.placements[rank].node
            if self._asked.guests.ends_alone(node):
                return self._guest_ended(event, node)
        return super()._judge(event, now)

    def _guest_ended(self, event: Event, node: int) -> list[Act]:
        """A rank of a guest that has met nobody ends: if that is a failure, the guest ends."""
        rank, acts = event.header["rank"], list[Act]()
        if event.kind is not Kind.EXITED or has_failed(event.header):
            acts += self._asked.guests.end_once(node, self._rules.grace_ms)
        if event.kind in {Kind.EXITED, Kind.UNSTARTED}:
            self._deadlocks.gone(rank)
            self.verdict.exited(rank, 0, expendable=True)
            acts += self._reply(self._asked.gone(rank))
        if event.kind is Kind.EXITED:
            self.news.alone.add(rank)
            header = {**event.header, "expendable": True}
            acts += self._wire_up.departed(event._replace(header=header))
        return acts

    def _agents_gone(self, nodes: list[int], pid: int, reason: str) -> list[Act]:
        node = nodes[0]
        host = self._hosts[node]
        if not self._asked.guests.ends_alone(node) or host.done:
            return super()._agents_gone(nodes, pid, reason)
        host.done = True
        acts = self._reply(self._asked.lose_hosts({node}))
        return [*acts, *self._go_on_without([host], self._left_on({node}))]
