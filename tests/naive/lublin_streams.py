"""The archive program's draws, told by a class for a stream of arrivals and lists of numbers."""

from __future__ import annotations

import math

from naive.drand48 import uniform48

__all__ = ["archive_jobs"]


def archive_jobs(state, constants, weights, start_bucket, jobs):
    """Return rows (submit, processors, run time, kind) and the weighted arrivals; ``state`` holds one integer."""
    typed = len(constants) == 2
    batch = Stream(state, constants[-1], weights[-1], start_bucket)
    interactive = Stream(state, constants[0], weights[0], start_bucket)
    rows, weighted = [], []
    for _ in range(jobs):
        kind = 1 if typed and batch.clock < interactive.clock else 0
        stream = batch if kind else interactive
        submit, gone = int(stream.clock), stream.weighted
        stream.advance()
        nodes = draw_nodes(state, constants[kind])
        rows.append((submit, nodes, draw_run(state, constants[kind], nodes), kind))
        weighted.append(gone)
    return rows, weighted


class Stream:
    """The next arrival of one kind of jobs."""

    def __init__(self, state, constants, weights, bucket):
        self.state, self.weights, self.bucket = state, weights, bucket
        self.shape, self.scale = constants[12] * constants[14], constants[13]
        self.points = self.share = self.clock = self.weighted = 0.0
        self.advance()

    def advance(self):
        log = math.inf
        while log > 13:
            log = gamma(self.state, self.shape, self.scale)
        self.weighted += math.exp(log)
        self.points += math.exp(log) / 1800
        delay = 0.0
        while self.points > self.weights[self.bucket]:
            self.points -= self.weights[self.bucket]
            self.bucket = (self.bucket + 1) % 48
            delay += 1800
        share = self.points / self.weights[self.bucket]
        delay += 1800 * (share - self.share)
        self.share = share
        self.clock = math.floor(self.clock + delay)


def draw_nodes(state, constants):
    """One processor, a power of two, or any number."""
    serial, pow2, ulow, umed, uhi, uprob = constants[:6]
    decide = uniform48(state)
    if decide <= serial:
        return 1
    low, high = (ulow, umed) if uniform48(state) <= uprob else (umed, uhi)
    log2 = low + (high - low) * uniform48(state)
    if decide <= serial + pow2:
        log2 = math.floor(log2 + 0.5)
    return math.floor(2.0**log2 + 0.5)


def draw_run(state, constants, nodes):
    """A short or a long run time, the whole draw repeated above e^12 s."""
    a1, b1, a2, b2, pa, pb = constants[6:12]
    p = min(max(pa * nodes + pb, 0.0), 1.0)
    while True:
        log = gamma(state, a1, b1) if uniform48(state) <= p else gamma(state, a2, b2)
        if log <= 12:
            return math.floor(math.exp(log))


def gamma(state, shape, scale):
    """A gamma variate: exponentials for the whole part of the shape, Johnk's beta variate for the rest."""
    value = 0.0
    for _ in range(int(shape)):
        value += math.log(uniform48(state))
    value *= -scale
    rest = shape - int(shape)
    if rest:
        x = y = 1.0
        while x + y > 1:
            x = uniform48(state) ** (1 / rest)
            y = uniform48(state) ** (1 / (1 - rest))
        value += scale * (x / (x + y)) * -math.log(uniform48(state))
    return value
