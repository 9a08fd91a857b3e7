"""Conduits `gemini` and `aries`, over an emulated NIC of Cray's."""
