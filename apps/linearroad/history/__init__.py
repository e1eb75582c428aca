"""Ten weeks of toll history that agree with the simulated traffic."""
