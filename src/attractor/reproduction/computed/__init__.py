"""Numbers and claims that need no runs: counted, worked out or simulated in seconds."""
