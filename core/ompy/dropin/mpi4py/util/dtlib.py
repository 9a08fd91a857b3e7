"""Becomes `ompy.addons.dtlib`, so that what is set here is set there."""

import sys

import ompy.addons.dtlib

sys.modules[__name__] = ompy.addons.dtlib
