"""Checkpoints: consistent snapshots of a run on disk, and runs that go on from them."""
