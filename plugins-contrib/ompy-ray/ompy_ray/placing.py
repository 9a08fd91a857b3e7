"""Nodes for a job: a placement group with a bundle for each rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import ray
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group


class Node(NamedTuple):
    """A node of the cluster, for one job.

    Attributes:
        address: of it, numeric.
        slots: how many ranks it has room for.
        bundle: index of one of its bundles.
    """

    address: str
    slots: int
    bundle: int


class Reservation:
    """A placement group, from its making to its removal."""

    def __init__(self, ranks: int, cpus: float, strategy: str, timeout_s: float) -> None:
        """Reserve, and wait until it is granted.

        Args:
            ranks: how many bundles.
            cpus: of each.
            strategy: Ray's: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
            timeout_s: how long to wait.

        Raises:
            TimeoutError: the cluster has no room.
        """
        self.group = placement_group([{"CPU": cpus}] * ranks, strategy=strategy)
        if not self.group.wait(timeout_s):
            self.remove()
            raise TimeoutError(
                f"the Ray cluster had no room for {ranks} ranks with {cpus:g} CPUs each "
                f"within {timeout_s:g} s"
            )

    def remove(self) -> None:
        """Give it back; what still runs in it is killed by Ray."""
        remove_placement_group(self.group)

    def nodes(self) -> list[Node]:
        """Its nodes, in the order of their first bundles; those of one machine are one."""
        table: dict[str, Any] = placement_group_table(self.group)
        addresses = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
        found: dict[str, Node] = {}
        for bundle, node in sorted(table["bundles_to_node_id"].items()):
            address = addresses[node]
            before = found.get(address, Node(address, 0, int(bundle)))
            found[address] = before._replace(slots=before.slots + 1)
        return list(found.values())
