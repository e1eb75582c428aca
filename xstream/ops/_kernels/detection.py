"""Detection: the peak of a window, ranges above a level, outliers of noise."""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable


def trimpeak(window, lowest, out):
    """The largest (or lowest) sample, and the window from there on."""
    if not len(window):
        return
    at, peak = 0, window[0]
    for i in range(1, len(window)):
        x = window[i]
        if (x < peak) if lowest else (x > peak):
            at, peak = i, x
    out.emit_at(out.start + at, np.float64(peak), window[at:])


# -- threshold ---------------------------------------------------------------------------------
# state.at: index of the next sample, start of the open range, end of the emitted ranges.

NEXT, SINCE, TOLD = 0, 1, 2
BEGUN, OPEN = 0, 1


def threshold(window, level, absolute, state, out):
    """Ranges of samples above a level, independent of the windows."""
    at, flags = state.at, state.flags
    if flags[BEGUN] and flags[OPEN] and (out.ended or (len(window) and out.start != at[NEXT])):
        out.emit(True, at[SINCE], at[NEXT])  # the signal ends or has a gap here
        at[TOLD] = at[NEXT]
        flags[OPEN] = False
    if not len(window):
        return
    if not flags[BEGUN] or out.start != at[NEXT]:
        at[TOLD] = out.start
    flags[BEGUN] = True
    first = out.start
    for piece in window.pieces():
        for i in range(len(piece)):
            x = piece[i]
            above = (abs(x) if absolute else x) > level
            if above and not flags[OPEN]:
                at[SINCE] = first + i
                flags[OPEN] = True
            elif flags[OPEN] and not above:
                out.emit(True, at[SINCE], first + i)
                at[TOLD] = first + i
                flags[OPEN] = False
        first += len(piece)
    at[NEXT] = out.start + len(window)
    quiet_to = at[SINCE] if flags[OPEN] else at[NEXT]
    if quiet_to > at[TOLD]:
        out.emit(False, at[TOLD], quiet_to)
        at[TOLD] = quiet_to


# -- cfar --------------------------------------------------------------------------------------
# state.model: mean and variance of the noise. state.at: number of scores in the model, the next
# score, the very first score, the first and last score of the event, and the end of the emitted
# ranges.

MEAN, VARIANCE = 0, 1
SEEN, COMING, FIRST, EVENT, LAST_OVER, TOLD_TO = 0, 1, 2, 3, 4, 5
RUNNING, IN_EVENT = 0, 1


@register_jitable
def learn(score, alpha, model, at):
    """Update the running mean and variance; a plain average while 1 / n exceeds 1 - alpha."""
    at[SEEN] += 1
    gain = max(1.0 - alpha, 1.0 / at[SEEN])
    step = score - model[MEAN]
    model[MEAN] += gain * step
    model[VARIANCE] = (1.0 - gain) * (model[VARIANCE] + gain * step * step)


@register_jitable
def event_ends(score, alpha, sigmas, startup, refractory, longest, state):
    """Process one score; return true if it ends an event. Events do not change the model."""
    model, at, flags = state.model, state.at, state.flags
    number = at[COMING]
    at[COMING] += 1
    over = score > model[MEAN] + sigmas * math.sqrt(model[VARIANCE])
    if not flags[IN_EVENT]:
        if over and at[SEEN] >= startup:
            flags[IN_EVENT] = True
            at[EVENT] = at[LAST_OVER] = number
        else:
            learn(score, alpha, model, at)
        return False
    if over:
        at[LAST_OVER] = number
    if number - at[EVENT] >= longest:  # not an event but a new level of noise
        at[SEEN] = 0
        model[VARIANCE] = 0.0
        flags[IN_EVENT] = False
    elif number - at[LAST_OVER] >= refractory:
        flags[IN_EVENT] = False
    return not flags[IN_EVENT]


@register_jitable
def tell_event(padding, step, known_stop, state, out):
    """Return the padded range of the event, within the signal."""
    at = state.at
    start = max(at[EVENT] * step - padding, at[FIRST] * step)
    out.emit(True, start, min((at[LAST_OVER] + 1) * step + padding, known_stop))
    at[TOLD_TO] = max(at[TOLD_TO], start)


@register_jitable
def tell_discard(padding, step, state, out):
    """Return the sample up to which no later event can reach."""
    at = state.at
    first_wanted = at[EVENT] if state.flags[IN_EVENT] else at[COMING]
    if first_wanted * step - padding > at[TOLD_TO]:
        out.emit(False, at[TOLD_TO], first_wanted * step - padding)
        at[TOLD_TO] = first_wanted * step - padding


def cfar(scores, alpha, sigmas, startup, refractory, padding, step, longest, state, out):
    """Emit the ranges of samples whose scores exceed the noise, and ranges to discard."""
    at, flags = state.at, state.flags
    if out.ended and flags[IN_EVENT]:
        tell_event(padding, step, at[COMING] * step, state, out)
    if not len(scores):
        return
    if out.start + len(scores) > FAR // step or out.start < -(FAR // step):
        raise ValueError("the samples of the scores are outside the indices of a signal")
    if not flags[RUNNING]:
        flags[RUNNING] = True
        at[COMING] = at[FIRST] = out.start
        at[TOLD_TO] = out.start * step
    elif out.start != at[COMING]:
        raise ValueError("there is a gap or an overlap before these scores")
    for i in range(len(scores)):
        if event_ends(scores[i], alpha, sigmas, startup, refractory, longest, state):
            tell_event(padding, step, FAR, state, out)
    tell_discard(padding, step, state, out)


def cfar_of_numbers(score, alpha, sigmas, startup, refractory, padding, step, longest, state, out):
    """The same for a stream of single scores, counted from 0."""
    if out.ended:
        if state.flags[IN_EVENT]:
            tell_event(padding, step, state.at[COMING] * step, state, out)
        return
    if state.at[COMING] >= FAR // step:
        raise ValueError("the samples of the scores are outside the indices of a signal")
    if event_ends(score, alpha, sigmas, startup, refractory, longest, state):
        tell_event(padding, step, FAR, state, out)
    tell_discard(padding, step, state, out)


FAR = 2**62  # after every sample
