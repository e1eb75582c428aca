"""DETECTAUDIO: sounds that stand out of the noise, cut out of all channels of an array.

detector     the parameters, as the paper and its applications use them (section II.A)
_kernels     the score of a spectrum
query        the query: one channel is listened to, `sync` cuts all of them
recording    recordings: generated with known events, or WAV files
evaluate     what was found, beside what is there
measure      `xstream bench detectaudio`
profiled     `xstream profile detectaudio`
cli          `xstream detectaudio`
"""

from __future__ import annotations

from detectaudio.detector import Detector
from detectaudio.evaluate import Outcome, evaluate
from detectaudio.query import declare, detections, find
from detectaudio.recording import Event, Recording, generate, read_wav, write_wav

__all__ = [
    "Detector",
    "Event",
    "Outcome",
    "Recording",
    "declare",
    "detections",
    "evaluate",
    "find",
    "generate",
    "read_wav",
    "write_wav",
]
