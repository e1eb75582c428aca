"""DETECTAUDIO: the definition's answers everywhere, known events found, WAV files, one sentence."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import numpy as np
import pytest
from detectaudio import Detector, Event, Recording, evaluate, find, generate, read_wav, write_wav
from detectaudio.outcome import SURE_DB
from detectaudio.query import declare, detections, heard, sources

import xstream as xs
from tests.apps.command import call
from tests.reference import applications

ROOT = Path(__file__).resolve().parents[2]
RECORDING = generate(seconds=3.0, events=3, snr_db=(14.0, 24.0), seed=11)
DETECTOR = Detector(padding=700)
BLOCKS = DETECTOR.in_blocks(2048)


@pytest.mark.parametrize("detector", [DETECTOR, BLOCKS], ids=["windows of 32", "blocks"])
@pytest.mark.parametrize("memory", xs.MANAGER_NAMES)
@pytest.mark.parametrize("scheduler", xs.SCHEDULER_NAMES)
def test_it_finds_what_the_definition_finds(
    scheduler: str, memory: str, detector: Detector
) -> None:
    wanted = applications.detectaudio(
        list(RECORDING.channels), detector.weights(RECORDING.rate_hz), detector.window,
        detector.block, detector.sigmas, detector.alpha, detector.startup, detector.refractory,
        detector.padding,
    )  # fmt: skip
    found = find(RECORDING, detector, scheduler=scheduler, memory=memory)
    assert len(wanted) >= 3
    assert [row[0].start for row in found] == [start for start, _ in wanted]
    for row, (_, channels) in zip(found, wanted, strict=True):
        for segment, samples in zip(row, channels, strict=True):
            assert np.array_equal(np.asarray(segment), samples)


def test_windows_of_32_samples_pass_between_the_operators() -> None:
    query = xs.Query()
    out = declare(sources(query, RECORDING), RECORDING.rate_hz).count()
    run = query.run()
    assert run[out]
    windows = RECORDING.samples // 32
    for name in ("hanning", "fft", "map(score_spectra)", "cfar"):
        assert run.stats[name].tuples == windows
    assert run.stats["hanning"].samples == 32 * windows


def test_the_last_samples_of_a_recording_are_examined() -> None:
    """Only blocks leave out what does not fill one."""
    end = RECORDING.events[-1].start + 2_000
    blocks = DETECTOR.in_blocks(end // 32 // 2 * 32 - 2_048)
    assert end % blocks.block > 3_000  # the event lies behind the last whole block
    short = Recording(tuple(c[:end] for c in RECORDING.channels), RECORDING.rate_hz)
    assert len(find(short, DETECTOR)) == len(find(short, blocks)) + 1


@pytest.mark.parametrize("detector", [DETECTOR, BLOCKS], ids=["windows of 32", "blocks"])
@pytest.mark.parametrize("window", [1, 31, 700, 5000])
def test_it_does_not_matter_how_the_channels_are_cut(window: int, detector: Detector) -> None:
    short = Recording(tuple(c[:30_000] for c in RECORDING.channels), RECORDING.rate_hz)
    query = xs.Query()
    out = declare(sources(query, short, window), short.rate_hz, detector).collect()
    rows = query.run()[out]
    assert [row[0].start for row in rows] == [row[0].start for row in find(short, detector)]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_event_that_is_strong_enough_is_found(seed: int) -> None:
    recording = generate(seconds=30.0, events=12, snr_db=SURE_DB, seed=seed)
    outcome = evaluate(recording.events, find(recording), Detector().padding)
    assert not outcome.missed
    assert len(outcome.found) == 12
    assert len(outcome.false_alarms) <= 1


def test_noise_alone_has_next_to_no_events() -> None:
    recording = generate(seconds=30.0, events=0, seed=3)
    assert len(evaluate((), find(recording), Detector().padding).false_alarms) <= 1


def test_outcomes_tell_found_missed_and_false() -> None:
    samples = np.zeros(2_000, np.float32)
    found = [(xs.SigSeg(samples, start=start),) for start in (0, 50_000)]
    events = (Event(900, 1_100, 20.0, 0.0), Event(20_000, 21_000, 20.0, 0.0))
    outcome = evaluate(events, found, padding=800)
    assert outcome.found == events[:1]
    assert outcome.missed == events[1:]
    assert outcome.false_alarms == ((50_800, 51_200),)
    assert heard(found[0], 5_000) == (1_000, 1_000)


def test_what_nobody_asked_for_is_discarded() -> None:
    """sync holds no more than the padding before an event needs, however long the stream."""
    peaks = []
    for repeat in (2, 8):
        query = xs.Query()
        channels = sources(query, generate(2.0, 0), 4096, repeat)
        declare(channels, 48_000.0).count()
        run = query.run(memory="copy-always")
        peaks.append(run.memory.peak_bytes)
    assert peaks[1] < 1.1 * peaks[0]


def test_recordings_have_the_events_that_they_tell() -> None:
    recording = generate(seconds=2.0, events=1, snr_db=20.0, seed=6)
    event = recording.events[0]
    for channel in recording.channels:
        inside = channel[event.start : event.stop].astype(np.float64)
        quiet = np.diff(channel[: event.start - 100].astype(np.float64)).var() / 2
        power = np.diff(inside).var() / 2
        assert power > 5 * quiet
    assert recording.events == generate(seconds=2.0, events=1, snr_db=20.0, seed=6).events


def test_wav_files_with_all_channels_or_one_each(tmp_path: Path) -> None:
    together = tmp_path / "all.wav"
    write_wav(RECORDING, together)
    apart = []
    for number, channel in enumerate(RECORDING.channels):
        apart.append(tmp_path / f"{number}.wav")
        write_wav(Recording((channel,), RECORDING.rate_hz), apart[-1])
    first, second = read_wav([together]), read_wav(apart)
    assert len(first.channels) == len(second.channels) == 4
    for a, b, exact in zip(first.channels, second.channels, RECORDING.channels, strict=True):
        assert np.array_equal(a, b)
        assert np.abs(a - exact).max() < 1e-4
    assert len(find(first)) == len(find(RECORDING))


def test_the_command_writes_finds_and_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wav = tmp_path / "meadow.wav"
    assert call(monkeypatch, "detectaudio", "generate", wav, "--seconds", 4, "--events", 3) == 0
    assert len(wav.with_suffix(".csv").read_text().splitlines()) == 4
    capsys.readouterr()
    assert call(monkeypatch, "detectaudio", "find", wav, "--cut", tmp_path / "e", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["events"]) == 3
    assert len(list((tmp_path / "e").glob("*.wav"))) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("find", "missing.wav"), "missing.wav does not exist"),
        (("find", "noise.wav", "--cut", "/proc/none"), "/proc/none cannot be written"),
        (("find", "noise.wav", "--listen", "4"), "--listen must be from 0 to 0, not 4"),
        (("find", "noise.wav", "--sigmas", "nan"), "--sigmas must be from 0 to 10,000, not nan"),
        (("generate", "/proc/none/x.wav"), "/proc/none/x.wav cannot be written"),
        (("generate", "x.csv"), "must end in .wav"),
        (("generate", "x.wav", "--seconds", "1e12"), "--seconds must be from 1 to 600"),
        (("generate", "x.wav", "--events", "-1"), "--events must be from 0 to 1,200"),
        (("generate", "x.wav", "--high-db", "nan"), "--high-db must be from -100 to 100"),
        (("generate", "x.wav", "--low-db", "31"), "--low-db must not exceed --high-db"),
        (("generate", "x.wav", "--seed", "-1"), "--seed must be from 0"),
        (("evaluate", "--seconds", "nan"), "--seconds must be from 1 to 600, not nan"),
        (("generate", "x.wav", "--seconds", "1", "--events", "9"), "9 events need at least"),
        (("evaluate", "--sigmas", "-1"), "sigmas"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(0).normal(0, 0.01, 9_600).astype(np.float32)
    write_wav(Recording((noise,), 48_000.0), Path("noise.wav"))
    assert call(monkeypatch, "detectaudio", *arguments) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["noise.wav"]
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "wrong", [{"window": 1}, {"windows": 0}, {"low_hz": 5.0, "high_hz": 4.0}], ids=str
)
def test_a_detector_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(xs.InputError):
        Detector(**wrong)  # type: ignore[arg-type]


def test_a_block_holds_whole_windows() -> None:
    assert Detector(window=64).in_blocks(4096).block == 4096
    with pytest.raises(xs.InputError, match="whole windows of 32 samples: 33 does not"):
        Detector().in_blocks(33)


def test_a_band_without_bins_is_refused() -> None:
    query = xs.Query()
    channel = query.source(xs.io.array(np.zeros(64, np.float32), 8_000.0))
    with pytest.raises(xs.InputError, match="no bin"):
        detections(channel, 8_000.0, Detector(low_hz=5_000.0, high_hz=6_000.0))


@pytest.mark.parametrize("app", ["detectaudio", "leaks", "localise", "netmon"])
def test_the_readme_says_what_happens(app: str) -> None:
    failed, tried = doctest.testfile(str(ROOT / "apps" / app / "README.md"), module_relative=False)
    assert tried > 1
    assert not failed
