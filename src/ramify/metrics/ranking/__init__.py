"""Rankings of models: any scorer of a table ``[M, Q(, N)]``, with ranks, scores and their uncertainty in one record."""

from ramify.metrics.ranking.agree import Agreement, agreement, kendall, signal_agreement, spearman, weighted_kendall
from ramify.metrics.ranking.irt import Items, Rasch, TwoParameter
from ramify.metrics.ranking.pairwise import Duels, PlackettLuce, Strengths, TiedBradleyTerry, duels
from ramify.metrics.ranking.rating import Elo, TrueSkill
from ramify.metrics.ranking.record import MeanScore, Ranking, Scorer, posterior_ranking, rank
from ramify.metrics.ranking.voting import Borda, Copeland, Kemeny, Schulze

__all__ = [
    "Agreement",
    "Borda",
    "Copeland",
    "Duels",
    "Elo",
    "Items",
    "Kemeny",
    "MeanScore",
    "PlackettLuce",
    "Ranking",
    "Rasch",
    "Schulze",
    "Scorer",
    "Strengths",
    "TiedBradleyTerry",
    "TrueSkill",
    "TwoParameter",
    "agreement",
    "duels",
    "kendall",
    "posterior_ranking",
    "rank",
    "signal_agreement",
    "spearman",
    "weighted_kendall",
]
