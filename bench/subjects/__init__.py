"""One subject a file: `measure(context)` gives one figure after another."""
