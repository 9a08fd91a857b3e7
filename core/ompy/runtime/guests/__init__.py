"""Programs of another launcher that have joined a job; README.md has the design."""
