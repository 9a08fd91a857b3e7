"""What protects packets and connections: MACs, the proof of the job key, numbers taken once."""
