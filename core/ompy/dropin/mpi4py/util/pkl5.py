"""Becomes `ompy.addons.pkl5`, so that what is set here is set there."""

import sys

import ompy.addons.pkl5

sys.modules[__name__] = ompy.addons.pkl5
