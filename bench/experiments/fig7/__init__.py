"""Figure 7: DETECTAUDIO under growing load, four schedulers, without and with rate control."""
