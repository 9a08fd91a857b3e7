"""The whole kit for nic components: what an author's test class derives from."""

from __future__ import annotations

from typing import ClassVar

from ompy.conformance.component_identity import ComponentIdentitySuite
from ompy.conformance.nic.datagrams import DatagramSuite
from ompy.conformance.nic.devices import DeviceSuite
from ompy.conformance.nic.every_kind import EveryKindSuite
from ompy.conformance.nic.users import UserSuite


class NicConformance(UserSuite, DeviceSuite, DatagramSuite, EveryKindSuite, ComponentIdentitySuite):
    """Every suite there is for nic components.

    A test class derives from it and has a fixture `component`. What goes through a device is judged
    call by call for `DatagramNic` alone, and by jobs over what drives them for other kinds of ours.
    """

    framework: ClassVar[str] = "nic"
