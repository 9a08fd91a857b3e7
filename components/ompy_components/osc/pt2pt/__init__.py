"""osc pt2pt: windows over point-to-point messages."""
