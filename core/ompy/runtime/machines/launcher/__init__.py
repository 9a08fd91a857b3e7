"""The launcher's machine: a job from its start to its exit code, and what others may ask of it."""
