"""Connections of the control plane: what drives them, what goes over them, who may speak."""
