"""Figure 6: DETECTAUDIO under four memory managers as batches grow."""
