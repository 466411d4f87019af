"""An anytime-valid certificate that the leading answer is the mode of what the model says."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainc, betaln

from ramify.arrays import Array
from ramify.bank import Candidates, Verdict
from ramify.describe import method
from ramify.errors import require
from ramify.stop.counts import Stream, verdicts
from ramify.types import Key

__all__ = ["ModeCertificate", "log_e_value"]


@method
class ModeCertificate:
    """Certify the leader once every other answer, seen or not, has been rejected as a mode at level ``delta``.

    For an answer b, bet before each draw on the leader among the answers other than b, against b: the wealth (1 +
    λ)^W (1 - λ)^L, with W bets won and L draws of b, cannot grow in expectation if no answer is likelier than b.
    Mixed over λ in [0, 1] it is the e-process 2^(W+L+1) B(W+1, L+1) (1 - I_{1/2}(W+1, L+1)). Whenever an answer that
    is not a mode is certified, at whatever time, one fixed mode was rejected, and by Ville's inequality that ever
    happens with probability at most ``delta``. The bets are placed before the draw, so a leader chosen by the data
    costs nothing; answers that nobody has seen all share one wealth, so neither do they. (Of two modes that tie
    exactly, each is rejected with probability at most ``delta``.) The draws have to be independent and from one
    protocol; ⊥ is ignored.

    ``value`` is log e of the challenger that is hardest to reject.

    >>> verdict = ModeCertificate(0.05)(Candidates(np.zeros(8, dtype=int)))
    >>> verdict.stop.tolist().index(True) + 1, round(float(np.exp(verdict.now.value)), 3)  # (2^8 - 1) / 8
    (8, 31.875)
    """

    delta: float = 0.05

    def __post_init__(self) -> None:
        require(0 < self.delta < 1, "ModeCertificate.delta", self.delta, "use an error probability in (0, 1)")

    def __call__(self, candidates: Candidates, _: Key | None = None) -> Verdict:
        return verdicts(candidates, self._rows)

    def _rows(self, stream: Stream) -> tuple[Array, Array]:
        log_e = wealth(stream)
        lead, _ = stream.leaders()
        rivals = np.where(np.arange(log_e.shape[-1]) == lead[..., None], np.inf, log_e)
        value = np.where(lead >= 0, rivals.min(axis=-1), 0.0)
        return (lead >= 0) & (value >= math.log(1 / self.delta)), value


def wealth(stream: Stream) -> Array:
    """[r, N, A + 1] the log e-value against each answer being a mode; the last stands for all that are still unseen."""
    members = stream.members(extra=1)
    lead, second = stream.leaders()
    before = [np.concatenate([np.full_like(each[..., :1], -1), each[..., :-1]], axis=-1) for each in (lead, second)]
    labels = np.arange(members.shape[-1])
    rival = np.where(labels == before[0][..., None], before[1][..., None], before[0][..., None])  # the answer bet on
    won = np.cumsum((stream.label[..., None] == rival) & (rival >= 0), axis=-2)
    lost = np.cumsum(members & (rival >= 0), axis=-2)
    return log_e_value(won, lost)


def log_e_value(won: Array, lost: Array) -> Array:
    """log of 2^(W+L+1) B(W+1, L+1) (1 - I_{1/2}(W+1, L+1)), an e-process for "at most a fair game".

    >>> round(float(np.exp(log_e_value(np.array(7), np.array(0)))), 3)
    31.875
    """
    shape = int(won.max(initial=0)) + 1, int(lost.max(initial=0)) + 1
    if won.size > math.prod(shape):  # many cells, few pairs: look them up
        return log_e_value(*np.indices(shape))[won, lost]
    a, b = won + 1.0, lost + 1.0
    return (a + b - 1) * math.log(2) + betaln(a, b) + np.log(betainc(b, a, 0.5))  # 1 - I_x(a, b) = I_{1-x}(b, a)
