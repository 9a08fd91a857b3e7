"""Traces for other tools: Perfetto, OTF2, Wireshark."""
