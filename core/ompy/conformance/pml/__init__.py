"""The kit for PML components: messages, matching, completion, and wrappers of a PML."""
