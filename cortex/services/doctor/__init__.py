"""The doctor: every rule of a memory and every derived store checked, and mended where asked."""
