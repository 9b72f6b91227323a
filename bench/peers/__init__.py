"""Other memories and graph libraries, asked the same as cortex in the same run."""
