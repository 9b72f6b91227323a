"""Dreams: a workspace consolidated on request, as a plan first."""
