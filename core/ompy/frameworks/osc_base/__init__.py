"""What the components of osc share: see README.md."""
