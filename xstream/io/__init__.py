"""Sources and sinks for files, the network and data in memory."""

from __future__ import annotations

from xstream.io.array import array, samples
from xstream.io.arrow import arrow
from xstream.io.clock import Clock, StreamTime, SystemClock
from xstream.io.connection import Reconnect
from xstream.io.csv import csv
from xstream.io.iterable import iterable
from xstream.io.kafka import kafka
from xstream.io.npy import npy
from xstream.io.paced import paced
from xstream.io.parquet import parquet
from xstream.io.raw import raw
from xstream.io.sigmf import sigmf
from xstream.io.tcp import tcp
from xstream.io.udp import DATAGRAM_HEADER, udp
from xstream.io.wav import wav
from xstream.io.zmq import zmq

__all__ = [
    "DATAGRAM_HEADER",
    "Clock",
    "Reconnect",
    "StreamTime",
    "SystemClock",
    "array",
    "arrow",
    "csv",
    "iterable",
    "kafka",
    "npy",
    "paced",
    "parquet",
    "raw",
    "samples",
    "sigmf",
    "tcp",
    "udp",
    "wav",
    "zmq",
]
