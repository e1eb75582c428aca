"""`xstream bench netmon`: packets per second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netmon.packets import Receptions
    from xstream.bench.report import Report
    from xstream.bench.settings import Settings
    from xstream.query import Query, SinkRef

__all__ = ["benchmark", "network"]

#: Throughput of XStream in the paper (section II), in packets/s.
PAPERS_PACKETS_PER_SECOND = 241.5e3
#: Largest size of the receptions of a trial, which are in memory.
MOST_BYTES = 1 << 30


def network(query: Query, heard: Receptions, window: int, repeat: int) -> SinkRef:
    """Declare the query over receptions in segments of about `window` words."""
    from netmon.packets import repeated
    from netmon.query import declare, sources
    from xstream.errors import InputError

    if repeat * sum(stream.nbytes for stream in heard.streams) > MOST_BYTES:
        raise InputError(
            f"netmon keeps the receptions of a trial in memory, {MOST_BYTES >> 30} GB at most: "
            "choose smaller --seconds or --samples"
        )
    again = repeated(heard, repeat)
    monitored = declare(sources(query, again, max(1, window // heard.row)), heard.words)
    monitored.clusters.count()
    return monitored.packets.count()


def benchmark(settings: Settings) -> Report:
    """Measure network monitoring (section II): align, correlate, cluster, reconstruct."""
    from netmon.outcome import evaluate
    from netmon.packets import generate
    from netmon.query import monitor
    from xstream.bench.application import Form, measure_forms
    from xstream.bench.report import Figure, Report
    from xstream.errors import InputError

    if settings.input is not None:
        raise InputError("netmon generates its own receptions: omit --input")
    heard = generate()
    outcome = evaluate(heard, monitor(heard, settings.scheduler, settings.memory))
    if outcome.wrong or not outcome.clusters_right or outcome.delivered_share < 0.99:
        raise AssertionError(f"netmon: {outcome.to_json()}")
    words = sum(map(len, heard.streams))
    form = Form("netmon", lambda q, n: network(q, heard, settings.window, n))
    results = measure_forms(settings, {"netmon": (form, settings.engine)}, words)
    report = Report("netmon", settings.to_json(), list(results.values()))
    report.checked = (
        f"{outcome.reconstructed} packets that no receiver got correctly against those sent, "
        "the clusters against the places of receivers, and the number of packets in each trial"
    )
    packets = results["netmon"].samples_per_second * heard.packets / words
    report.figures = [
        Figure(f"packets of {heard.words * 8} bytes, {len(heard.streams)} receivers",
               packets / 1e3, "kpackets/s"),
        Figure("against the paper's", packets / PAPERS_PACKETS_PER_SECOND, "times"),
        Figure("packets delivered", outcome.delivered_share, "of 1"),
    ]  # fmt: skip
    report.notes.append("a sample is a 64-bit word; samples of all receivers count")
    return report
