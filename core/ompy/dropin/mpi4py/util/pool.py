"""Becomes `ompy.addons.pool`, so that what is set here is set there."""

import sys

import ompy.addons.pool

sys.modules[__name__] = ompy.addons.pool
