"""Figure 6: DETECTAUDIO under four memory managers as batches grow, with windows of 32 and with blocks."""
