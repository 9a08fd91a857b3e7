"""What users pass as messages: memory, arrays, objects."""
