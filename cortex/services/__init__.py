"""What an agent can ask for: one module per subject."""
