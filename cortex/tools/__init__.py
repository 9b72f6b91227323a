"""What an agent can call: one file per family of tools, over one small frame."""
