"""A trace in a browser, step by step: what is played, and the page."""
