"""Fixed-bank rules: candidates and their evidence in, the submitted output out."""

from ramify.decide.card import DecisionCard
from ramify.decide.importance import Importance, importance
from ramify.decide.judge import Judged, UniversalSelfConsistency
from ramify.decide.mbr import AMBR, MBR, CentroidMBR, LowRankMBR, PrunedMBR, ReferenceAggregation, WeightedMBR
from ramify.decide.nbest import DiverseNBest
from ramify.decide.order import AdaptiveMajorityOfTheBests, FilteredVote, MajorityOfTheBests, RankVote
from ramify.decide.pairwise import BradleyTerry, Knockout, RoundRobin
from ramify.decide.present import BestInGroup, FirstInGroup
from ramify.decide.select import (
    BestOfMajority,
    BestOfN,
    Earliest,
    KLBestOfN,
    RegularisedBestOfN,
    SoftBestOfN,
    VerifierConstrained,
    drawn,
    expected,
)
from ramify.decide.similarity import (
    Behaviour,
    ChrF,
    Cosine,
    EditSimilarity,
    Exact,
    NgramJaccard,
    NumericCloseness,
    RougeL,
    TokenF1,
    WordSubsequence,
)
from ramify.decide.support import PAIRS, Present, Rule, choose, excluded
from ramify.decide.utility import Features, Given, Pairs, ngram_features
from ramify.decide.votes import (
    CGES,
    CalibratedVote,
    LikelihoodVote,
    LogOddsVote,
    Plurality,
    SoftmaxVote,
    WeightedVote,
)

__all__ = [
    "AMBR",
    "CGES",
    "MBR",
    "PAIRS",
    "AdaptiveMajorityOfTheBests",
    "Behaviour",
    "BestInGroup",
    "BestOfMajority",
    "BestOfN",
    "BradleyTerry",
    "CalibratedVote",
    "CentroidMBR",
    "ChrF",
    "Cosine",
    "DecisionCard",
    "DiverseNBest",
    "Earliest",
    "EditSimilarity",
    "Exact",
    "Features",
    "FilteredVote",
    "FirstInGroup",
    "Given",
    "Importance",
    "Judged",
    "KLBestOfN",
    "Knockout",
    "LikelihoodVote",
    "LogOddsVote",
    "LowRankMBR",
    "MajorityOfTheBests",
    "NgramJaccard",
    "NumericCloseness",
    "Pairs",
    "Plurality",
    "Present",
    "PrunedMBR",
    "RankVote",
    "ReferenceAggregation",
    "RegularisedBestOfN",
    "RougeL",
    "RoundRobin",
    "Rule",
    "SoftBestOfN",
    "SoftmaxVote",
    "TokenF1",
    "UniversalSelfConsistency",
    "VerifierConstrained",
    "WeightedMBR",
    "WeightedVote",
    "WordSubsequence",
    "choose",
    "drawn",
    "excluded",
    "expected",
    "importance",
    "ngram_features",
]
