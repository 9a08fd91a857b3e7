"""The rails of a job: what became of them, and what they carry while somebody watches."""
