"""What a run leaves: answers, digests, rejects and a summary."""
