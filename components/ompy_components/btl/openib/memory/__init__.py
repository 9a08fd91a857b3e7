"""Registered memory: free lists, buffers of sends and receives, eager rings, handles."""
