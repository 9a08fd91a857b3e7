"""The whole kit for nic components: what an author's test class derives from."""

from __future__ import annotations

from typing import ClassVar

from ompy.conformance.component_identity import ComponentIdentitySuite
from ompy.conformance.nic.datagrams import DatagramSuite
from ompy.conformance.nic.devices import DeviceSuite


class NicConformance(DeviceSuite, DatagramSuite, ComponentIdentitySuite):
    """Every suite there is for nic components.

    A test class derives from it and has a fixture `component`. Devices of other interfaces than
    `DatagramNic` are judged by what they say of themselves alone.
    """

    framework: ClassVar[str] = "nic"
