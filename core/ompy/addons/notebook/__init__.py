"""Cells of a notebook on ranks: what kernel and rank have in common, and the rank's part."""
