"""The output of a run: answers, digests, rejects and a summary."""
