"""Becomes `ompy.addons.sync`, so that what is set here is set there."""

import sys

import ompy.addons.sync

sys.modules[__name__] = ompy.addons.sync
