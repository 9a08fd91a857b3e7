"""What a shell completes."""
