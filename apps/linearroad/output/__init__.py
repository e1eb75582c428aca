"""What a run leaves: answers, digests, rejects, delays, a timeline and a summary."""
