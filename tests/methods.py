"""One instance of every method, and more where a field changes what it does. The laws run over these tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ramify.arrays import Array, namespace
from ramify.bank import Candidates, Choice, Proposal
from ramify.decide import (
    AMBR,
    CGES,
    MBR,
    AdaptiveMajorityOfTheBests,
    Behaviour,
    BestInGroup,
    BestOfMajority,
    BestOfN,
    BradleyTerry,
    CalibratedVote,
    CentroidMBR,
    ChrF,
    Cosine,
    DiverseNBest,
    Earliest,
    EditSimilarity,
    Exact,
    FilteredVote,
    FirstInGroup,
    Judged,
    KLBestOfN,
    Knockout,
    LikelihoodVote,
    LogOddsVote,
    LowRankMBR,
    MajorityOfTheBests,
    NgramJaccard,
    NumericCloseness,
    Plurality,
    PrunedMBR,
    RankVote,
    ReferenceAggregation,
    RegularisedBestOfN,
    RougeL,
    RoundRobin,
    Rule,
    SoftBestOfN,
    SoftmaxVote,
    TokenF1,
    UniversalSelfConsistency,
    VerifierConstrained,
    WeightedMBR,
    WeightedVote,
    WordSubsequence,
)
from ramify.decode import (
    AdaptiveP,
    Ban,
    Chain,
    Coverage,
    Dry,
    DynamicTemperature,
    EntropyBudget,
    Epsilon,
    Eta,
    Fallback,
    ForcePrefix,
    Frequency,
    Greedy,
    GumbelMax,
    InverseCDF,
    LogitBias,
    Mask,
    MassUnderEntropy,
    MassVersusSize,
    MaxThinking,
    MinP,
    MinThinking,
    Mirostat,
    MirostatV1,
    Mixture,
    Objective,
    Operator,
    Parallel,
    PLess,
    Presence,
    Quadratic,
    Repetition,
    Side,
    TailFree,
    Temperature,
    TokenMeasure,
    TopA,
    TopH,
    TopK,
    TopNSigma,
    TopP,
    Typical,
    Uniform,
    Xtc,
    llama_cpp,
    sglang,
    transformers,
    vllm,
)
from ramify.evidence import (
    AfterMarker,
    AnswerFrom,
    BottomGroups,
    DensityRatio,
    Evidence,
    Exponential,
    Final,
    FittedOn,
    FullSelfCertainty,
    IsotonicMap,
    Logit,
    LogProduct,
    LowestGroup,
    Margin,
    Maximum,
    MaxProb,
    Mean,
    Minimum,
    NegativeEntropy,
    NegativeLogRank,
    NegativeVarentropy,
    Picsar,
    PlattMap,
    Prob,
    Process,
    PTrue,
    QuantileBins,
    RankWithin,
    Score,
    SelfCertainty,
    Sigmoid,
    Tail,
    TokenEvidence,
    Total,
    Transformed,
    deepconf_average,
    deepconf_bottom,
    deepconf_lowest,
    deepconf_tail,
    mean_logprob,
    min_logprob,
    negative_perplexity,
    normalised_likelihood,
    sequence_logprob,
)
from ramify.ledger import Calls, Flops, Money, Seconds, Tokens
from ramify.metrics import (
    Accuracy,
    BCa,
    BetaPrior,
    BetaWeights,
    Betting,
    Borda,
    Copeland,
    Elo,
    EmpiricalBernstein,
    EvenWeights,
    GeomAt,
    GPassAt,
    Judging,
    Kemeny,
    MaxAt,
    MaxEntropyWeights,
    MeanGPassAt,
    MeanScore,
    MomentWeights,
    PassArea,
    PassAt,
    PassHat,
    PayoffWeights,
    Percentile,
    PlackettLuce,
    Rasch,
    Reproducible,
    Schulze,
    StrictMajority,
    Studentised,
    ThresholdUtility,
    TiedBradleyTerry,
    TrueSkill,
    TwoParameter,
)
from ramify.models import (
    HF,
    Aimd,
    Endpoint,
    FinishedHead,
    Heads,
    Interface,
    OutcomeHead,
    Pocket,
    ProcessHead,
    Retry,
    Tabular,
    Timeouts,
    ValueHead,
    decode_with,
)
from ramify.run import Interact, Search
from ramify.search import (
    ABMCTS,
    DVTS,
    PUCT,
    RAP,
    UCT,
    Beam,
    BestFirst,
    BetaScores,
    Blend,
    Breadth,
    Chunk,
    Controller,
    DepthFirst,
    DiverseBeam,
    Evaluator,
    Even,
    Exponentiated,
    GumbelHalving,
    Judge,
    Likelihood,
    LinearPriority,
    Lookahead,
    NormalScores,
    Particles,
    PerLength,
    RawLikelihood,
    Rebase,
    Restarts,
    Rollout,
    Rollouts,
    SpeculativeRejection,
    Staged,
    StepScores,
    StochasticBeam,
    ToDelimiter,
    TopTokens,
    Twisted,
    ValueModel,
)
from ramify.stop import (
    AdaptiveConsistency,
    AllOf,
    AnswerEntropy,
    AnyOf,
    AnyToken,
    AtLeast,
    AtMost,
    Budget,
    CgesStop,
    CrpConsistency,
    DeepConfConsensus,
    DirichletConsistency,
    Esc,
    InBatches,
    LeaderShare,
    Looping,
    LowConfidence,
    ModeCertificate,
    ShareInterval,
    Stop,
    TokenLimit,
    TokenStop,
)
from ramify.study import Joined
from ramify.tasks import (
    AIME2024,
    AIME2025,
    AIME2026,
    BBH,
    BRUMO2025,
    CMIMC2025,
    GSM8K,
    MATH500,
    SMT2025,
    Arithmetic,
    Box,
    Boxed,
    CodeBlock,
    Countdown,
    DescribeFacts,
    Drawers,
    Flexible,
    HMMTFeb2025,
    HMMTFeb2026,
    HMMTNov2025,
    HumanEval,
    Ladder,
    LastNumber,
    Letter,
    Limits,
    MMLUPro,
    Modular,
    Own,
    Phrase,
    Sound,
    SuperGPQA,
    Verified,
    Verifier,
)
from ramify.tasks.pocket.alphabet import encode
from ramify.types import Key, Leaf, Prefix, Question, Request
from ramify.verify import GENERAL, CompassVerifier, Pairwise, Pointwise


def alternate(side: Side, size: int) -> Array:
    """A grammar for ``Mask``: even tokens at even positions, odd ones at odd positions, the end (the last) anywhere."""
    xp = namespace(side.tokens)
    ids = xp.arange(size, device=side.tokens.device)
    return ((ids % 2) == (side.length % 2)[..., None]) | (ids == size - 1)


def sharpen(measure: TokenMeasure) -> TokenMeasure:
    """A plain function in an operator's slot."""
    return Temperature(0.5)(measure)


def smallest(member: np.ndarray, r: np.ndarray) -> np.ndarray:
    """A plain objective: the fewest tokens with half of the mass."""
    size: np.ndarray = member.sum(-1)
    return np.where(member @ r >= 0.5, size, np.inf)


JUDGE = Tabular.random(Key("methods", "judge", 0), vocabulary=5, order=1)


def no_prompt(question: Question) -> tuple[int, ...]:
    """For a model that starts from nothing."""
    return ()


def rolled(requests: Iterable[Request]) -> Iterator[Leaf]:
    """A plain function in a sampler's slot."""
    return decode_with(JUDGE, Temperature(1.0))(requests)


def brevity(leaf: Leaf, question: Question) -> float:
    """A proxy utility: what needs few tokens is good."""
    return 1 / len(leaf.tokens)


def step_scores(prefixes: Sequence[Prefix]) -> tuple[list[Array], Array]:
    """A process scorer: a step is a token, and the lower the better. Free."""
    return [1 / (1 + np.array(z.tokens)) for z in prefixes], np.zeros(len(prefixes))


def mean_token(sequences: Sequence[Sequence[int]]) -> Array:
    """A model of values."""
    return np.array([1 / (1 + sum(each) / len(each)) for each in sequences])


def last_resort(candidates: Candidates) -> Choice:
    """A plain function in a rule's slot."""
    return Earliest()(candidates)


WEIGHTS: tuple[Operator, ...] = (
    Temperature(0.6),
    Temperature(1.7),
    DynamicTemperature(0.5, 1.5),
    DynamicTemperature(0.5, 1.5, exponent=2.0),
    Quadratic(0.3),
    Quadratic(0.3, curve=2.0),
    Uniform(),
    Coverage(0.3),
    LogitBias(((0, 1.0), (2, -2.0))),
    Repetition(1.4),
    Repetition(1.4, scope="generated", last=2),
    Frequency(0.7),
    Presence(0.7),
    Dry(0.8, base=1.75, allowed=1),
    Dry(0.8, base=1.75, allowed=1, breakers=(1,), scope="generated"),
    sharpen,
)

# Gates that keep a head in the model's own order: in parallel they collapse to the strictest.
HEADS: tuple[Operator, ...] = (
    Epsilon(0.2),
    Eta(0.2),
    MinP(0.3),
    TopA(0.7),
    PLess(),
    PLess(normalised=True),
    TopNSigma(0.7),
    TopNSigma(0.7, ddof=1),
    TopK(2),
    TopK(2, ties="keep"),
    TopP(0.7),
    TopP(0.7, boundary="exceed"),
    TailFree(0.5),
    TopH(0.6),
    TopH(0.6, form="partial"),
    TopH(0.6, form="partial", first=3),
    EntropyBudget(0.5),
)

OTHER_GATES: tuple[Operator, ...] = (
    Epsilon(0.9, fallback="live"),
    Typical(0.5),
    Typical(0.5, boundary="exceed", ties="keep"),
    Objective(MassVersusSize(0.5)),
    Objective(MassUnderEntropy(0.5), exact=2, pool=3),
    Objective(smallest),
    Ban((1,)),
    Mask(alternate),
    MinThinking(2, end=3),
)

ACTIONS: tuple[Operator, ...] = (
    Greedy(),
    Temperature(0),
    ForcePrefix((1, 0)),
    MaxThinking(2, end=(3,)),
    MaxThinking(1, end=(2, 3)),
    MinThinking(2, end=3, instead=(0, 1)),
)

STATEFUL: tuple[Operator, ...] = (
    Mirostat(tau=1.0, eta=0.5),
    Mirostat(tau=1.0, eta=0.5, surprise="model"),
    MirostatV1(tau=1.0, eta=0.5, first=3),
    MirostatV1(tau=1.0, eta=0.5, surprise="model"),
    AdaptiveP(0.4, decay=0.5),
)

COMPOSED: tuple[Operator, ...] = (
    Chain(),
    Chain(Temperature(0.7), TopK(3), TopP(0.9)),
    Chain(TopP(0.9), TopK(3), Temperature(0.7)),
    Chain(Repetition(1.3), Dry(0.5, allowed=1), MaxThinking(3, end=(3,)), Mirostat(tau=1.0, eta=0.5)),
    Parallel(TopK(3), TopP(0.8), MinP(0.1)),
    Chain(Temperature(2.0), Parallel(TopP(0.6), Typical(0.6), reference="logits")),
    Parallel(Typical(0.2), TopK(1), fallback="live"),
    Parallel(Mirostat(tau=1.0, eta=0.5), TopK(3)),
    Fallback(Epsilon(0.6), TopP(0.5)),
    Fallback(Chain(Mirostat(tau=1.0, eta=0.5), Epsilon(0.6)), TopK(3)),
    Parallel(Fallback(Epsilon(0.5), TopK(2)), TopP(0.9)),
    Chain(Mixture((TopK(1), TopK(2)), (0.5, 0.5)), Mixture((ForcePrefix((0, 1, 2)), Chain()), (0.5, 0.5))),
    Xtc(0.5, 0.2),
    Xtc(0.3, 0.1, protect=(3,), then=Temperature(0.5)),
    Mixture((Temperature(0.5), TopK(1), Temperature(2.0)), (0.5, 0.2, 0.3)),
    Mixture((Temperature(0.5), TopK(2)), (0.5, 0.5), per="token"),
    Mixture((Greedy(), Chain(Temperature(1.5), Mirostat(tau=1.0, eta=0.5)), ForcePrefix((0,))), (0.3, 0.5, 0.2)),
    vllm(temperature=0.7, top_k=3, top_p=0.9, min_p=0.05, repetition_penalty=1.2, min_tokens=1, eos=3),
    sglang(temperature=0.7, top_k=3, top_p=0.9, min_p=0.05, frequency_penalty=0.3),
    sglang(temperature=0.7, top_k=3, top_p=0.9, min_p=0.05, backend="flashinfer"),
    transformers(temperature=0.7, top_h=0.9, top_k=3, top_p=0.9, typical_p=0.95, eta_cutoff=0.01),
    llama_cpp(temp=0.7, top_k=3, typ_p=0.95, min_p=0.05, xtc_probability=0.4, dry=Dry(0.5, allowed=1)),
    llama_cpp(temp=0.7, mirostat=Mirostat(tau=1.0)),
    llama_cpp(dynatemp_range=0.5, top_n_sigma=1.5, adaptive_p=AdaptiveP(0.5)),
)

# Votes that read how far scores are apart, and become plurality when they are all equal.
VOTES: tuple[Rule, ...] = (
    Plurality(),
    Plurality(fallback=last_resort),
    WeightedVote(),
    SoftmaxVote(temperature=0.3),
    SoftmaxVote(temperature=np.inf),
    LikelihoodVote(),
    CGES(),
)

# What counts of a score is its order: any increasing, tie-preserving transform leaves these alone.
ORDER_ONLY: tuple[Rule, ...] = (
    RankVote(p=0.5),
    RankVote(),
    RankVote(p=2),
    RankVote(p=30),
    MajorityOfTheBests(),
    MajorityOfTheBests(m=3),
    AdaptiveMajorityOfTheBests(),
    FilteredVote(keep=0.5),
    FilteredVote(keep=2),
    FilteredVote(keep=0.7, then=RankVote()),
)
EARLIEST: tuple[Rule, ...] = (
    RankVote(p=1, ties="earliest"),
    MajorityOfTheBests(ties="earliest"),
    FilteredVote(keep=0.5, ties="earliest"),
)
BY_SCORE: tuple[Rule, ...] = (
    WeightedVote(pool="mean"),
    WeightedVote("mean_logprob", negative="allow"),
    LogOddsVote(),
    LogOddsVote(threshold=0.2, form="linear"),
    LogOddsVote(clip=0.01),
    CalibratedVote(),
    CGES(other=True),
    FilteredVote(keep=0.6, then=WeightedVote()),
    BestOfN(),
    BestOfN(fallback=Plurality()),
    Earliest(),
    VerifierConstrained(),
    VerifierConstrained(then=BestOfN(), fallback=None),
    SoftBestOfN(alpha=2.0),
    SoftBestOfN(alpha=np.inf),
    KLBestOfN(),
    BestOfMajority(alpha=0.3, k=2),
    BestOfMajority(pool="max"),
    Judged(),
    Judged(unreadable="none", fallback=Plurality()),
)
BY_PAIRS: tuple[Rule, ...] = (
    MBR(),
    WeightedMBR(),
    RegularisedBestOfN(beta=0.5),
    ReferenceAggregation(),
    CentroidMBR(k=2),
    CentroidMBR(k=3, weight="log"),
    PrunedMBR(first=2, bootstrap=20),
    AMBR(budget=12),
    LowRankMBR(share=0.6, rank=2),
    DiverseNBest(k=2),
    RoundRobin(),
    Knockout(),
    Knockout(both=True),
    BradleyTerry(),
)
RULES = VOTES + ORDER_ONLY + EARLIEST + BY_SCORE + BY_PAIRS
SIMILARITIES = (
    Exact(),
    NumericCloseness(2.0, relative=True),
    TokenF1(),
    RougeL(),
    ChrF(),
    EditSimilarity("word"),
    NgramJaccard(),
    WordSubsequence(),
    Behaviour(),
    Cosine(),
)
PRESENTS = (FirstInGroup(), BestInGroup())

GATES = HEADS + OTHER_GATES
OPERATORS = WEIGHTS + GATES + ACTIONS + STATEFUL + COMPOSED
DRAWS = (InverseCDF(), GumbelMax())
MODELS = (
    Tabular.random(Key("methods", "tabular", 0), vocabulary=3, order=1),
    Pocket("main"),
    Pocket("tiny", precision="float64"),
    Pocket("main", kernel="numba"),
    HF("somebody/some-model"),
    Heads("main"),
    ValueHead("main"),
    OutcomeHead("main"),
    ValueHead("main", shared=True),
    ProcessHead("main", LogProduct()),
    FinishedHead("main", shared=True),
)
TASKS = (Arithmetic(4), Modular(6, "high"), Countdown(4, "low"), Sound(), Sound(attempts=None), Verified(), Verifier())
CHECKS = (Limits(), Ladder(), Ladder(Limits(digits=50), math=False))
EXTRACTORS = (
    Boxed(),
    Boxed("literal", opened=True),
    Letter("ABCD"),
    LastNumber(),
    Phrase(),
    CodeBlock(),
    Flexible("words"),
)
BENCHMARKS = (
    AIME2024(),
    AIME2025("questions"),
    AIME2026(vote="literal"),
    HMMTFeb2025(),
    HMMTFeb2026(),
    HMMTNov2025(),
    BRUMO2025(ladder=Ladder(math=False)),
    CMIMC2025(),
    SMT2025(verify="count"),
    MATH500(),
    GSM8K(),
    MMLUPro(),
    BBH(),
    SuperGPQA(run="another"),
    HumanEval(box=Box(memory=256)),
    Own("mine.csv", groups=("level",)),
    DescribeFacts(3),
    Drawers(4),
    Box(),
)
PROPOSALS = (Proposal(), Proposal("search", run="r", signals=("logprob",), top=20, stage="raw", fresh=False))
COSTS = (Tokens(), Tokens(prompt=True), Calls(), Flops(10, 2, 4), Money(2.0, 0.5), Seconds(0.1))
DECISIONS = (*RULES, *SIMILARITIES, *PRESENTS, UniversalSelfConsistency())

# Evidence from tokens: needs "logprob", "rank", "token", "role" and six raw alternatives, and the layer "answer_start".
TOKEN_EVIDENCE: tuple[TokenEvidence | Picsar | Transformed, ...] = (
    sequence_logprob(),
    mean_logprob(),
    mean_logprob(tokens="all"),
    mean_logprob(tokens="sampled"),
    min_logprob(),
    negative_perplexity(),
    normalised_likelihood(),
    TokenEvidence(Prob(), Minimum()),
    TokenEvidence(NegativeLogRank(), Mean()),
    TokenEvidence(RankWithin(2), Mean()),
    deepconf_average(k=6),
    deepconf_average(k=4),
    deepconf_tail(k=6, n=3),
    deepconf_lowest(k=6, window=3),
    deepconf_bottom(k=6, window=3, share=0.4),
    TokenEvidence(SelfCertainty(6)),
    TokenEvidence(FullSelfCertainty(6)),
    TokenEvidence(NegativeEntropy(6), Maximum()),
    TokenEvidence(NegativeEntropy(4, stage="any"), Tail(2)),
    TokenEvidence(NegativeVarentropy(6), LowestGroup(2)),
    TokenEvidence(MaxProb(), BottomGroups(2, 0.5)),
    TokenEvidence(Margin(), Final()),
    TokenEvidence(Margin(log=False), Total()),
    Picsar(),
    Picsar(normalised=True),
    Picsar(AfterMarker((1,)), tokens="all"),
    Picsar(AfterMarker((1, 2), occurrence="first"), normalised=True, tokens="sampled"),
    Transformed(mean_logprob(), PlattMap(2.0, 0.5, FittedOn("dev", "a description", ("0123456789ab",)))),
)
# Evidence from layers: "verifier", "log_p_true", "log_p_false", and the steps "prm" with their number "steps".
LAYER_EVIDENCE: tuple[Score | PTrue | Process | Transformed, ...] = (
    Score("verifier"),
    Score("verifier", lower_is_better=True, role="reference-assisted"),
    PTrue(),
    PTrue(form="log odds"),
    Process("prm"),
    Process("prm", LogProduct(), steps="steps"),
    Process("prm", Minimum(), steps="steps"),
    Transformed(Score("verifier"), Logit(eps=0.01)),
    Transformed(Score("verifier"), Sigmoid()),
)
EVIDENCE: tuple[Evidence, ...] = TOKEN_EVIDENCE + LAYER_EVIDENCE
CALIBRATED = (
    IsotonicMap((0.0, 1.0), (0.25, 0.75), FittedOn("dev")),
    DensityRatio((0.5, 1.0), (-1.0, 0.0), (0.5, 0.25), FittedOn("dev"), eps=0.01),
    QuantileBins((0.5,), (0.25, 0.75), FittedOn("dev")),
    Exponential(),
    AnswerFrom(),
)
# Stops across rollouts; "c" is a confidence in (0, 1), "cost" what a candidate cost.
STOPS: tuple[Stop, ...] = (
    AdaptiveConsistency(),
    AdaptiveConsistency(0.8),
    DirichletConsistency(0.9),
    CrpConsistency(0.9, horizon=10),
    CrpConsistency(0.9, horizon=10, alpha=0.5),
    LeaderShare(),
    AnswerEntropy(),
    Esc(3),
    Esc(2, output="all"),
    CgesStop("c", 0.9),
    CgesStop("c", 0.9, other=True, least=2),
    Budget(limit=5, worst=1.5, cost="cost"),
    ShareInterval(0.5),
    ModeCertificate(0.2),
    DeepConfConsensus("c", tau=0.6, eta=50, warmup=3),
    AtMost(5),
    AtLeast(4, LeaderShare(0.6)),
    InBatches(LeaderShare(0.75)),
    AnyOf(AdaptiveConsistency(), AtMost(6)),
    AllOf(LeaderShare(0.5), AtLeast(3, AnswerEntropy())),
)
TOKEN_STOPS: tuple[TokenStop, ...] = (
    LowConfidence(2.0, window=3, k=6, question="q", warmup=(1.5, 2.0)),
    TokenLimit(5),
    Looping(times=2, longest=3, least=4),
    AnyToken(TokenLimit(9), Looping(times=3, longest=1, least=3)),
)
SCORERS = (
    MeanScore(),
    Borda(),
    Copeland(),
    Schulze(),
    Kemeny(),
    TiedBradleyTerry(),
    TiedBradleyTerry("rao-kupper", pairing="index"),
    TiedBradleyTerry("half", prior=0.5),
    PlackettLuce(),
    PlackettLuce("sample", prior=0.1),
    Elo(),
    TrueSkill(),
    TrueSkill(margin=0.5, ties="draw"),
    Rasch(),
    TwoParameter(),
)
COMPARISONS = (
    *SCORERS,
    EmpiricalBernstein(),
    Betting(points=81),
    Reproducible(),
    Judging("a model", "Which is better?"),
)
FUNCTIONALS = (
    Accuracy(),
    PassAt(8),
    PassHat(8),
    GPassAt(8, 0.6),
    MeanGPassAt(7),
    GeomAt(8),
    GeomAt(8, level="question"),
    StrictMajority(8),
    MaxAt(8),
    PassArea(8),
    ThresholdUtility(8, EvenWeights()),
    ThresholdUtility(8, MomentWeights(2.0)),
    ThresholdUtility(8, BetaWeights(0.7, 10.0)),
    ThresholdUtility(8, MaxEntropyWeights(0.8)),
    ThresholdUtility(2, PayoffWeights((0.0, 0.25, 1.0))),
)
# Controllers: over scores in [0, 1], of steps that end with token 3, of chunks, of single tokens, of whole leaves.
UNITS = (ToDelimiter((3,), most=2), Chunk(2), Rollout(), TopTokens(4))
CONTROLLERS: tuple[Controller, ...] = (
    Beam(n=4, m=2),
    Beam(n=6, m=2, unit=UNITS[0], depth=3, refill=True),
    Beam(n=8, m=2, unit=UNITS[3], refill=True),
    DVTS(n=4, m=2, unit=Chunk(2)),
    Rebase(width=5, unit=UNITS[0]),
    Breadth(b=2, k=3, depth=4),
    BestFirst(width=2, leaves=4),
    BestFirst(width=3, unit=UNITS[3], most=12, bound=True),
    DepthFirst(width=2, leaves=3, threshold=0.2),
    UCT(width=2, most=12),
    UCT(width=1, unit=Rollout(), most=6, backup="max", c=1.0),
    PUCT(width=3, most=12, unit=UNITS[3]),
    GumbelHalving(m=3, width=4, most=10),
    SpeculativeRejection(n=6, at=(1, 3), keep=0.4),
    Restarts(n=5, at=(2,), low=0.3, enough=0.6),
    BestFirst(width=2, most=20, enough=0.8),
    Particles(n=5),
    Particles(n=5, resample="multinomial", ess=0.5, unit=Chunk(2), depth=4, anneal=True),
    DiverseBeam(n=8, m=2, groups=2),
    DiverseBeam(n=8, m=2, groups=2, penalty=0.1, unit=UNITS[0], depth=3),
    DiverseBeam(n=6, m=3, groups=2, penalty=2.0, unit=UNITS[3]),
    Lookahead(n=4, m=2, k=2),
    Lookahead(n=4, m=2, unit=UNITS[0], depth=3),
    ABMCTS(most=12),
    ABMCTS(BetaScores(), unit=UNITS[0], most=12),
    ABMCTS(NormalScores(m=0.5, kappa=2.0), unit=Rollout(), most=6),
    RAP(width=2, most=12),
    RAP(a=1.0, b=0.2, width=3, unit=UNITS[3], most=8, backup="max"),
    StochasticBeam(k=3, width=5, unit=UNITS[3]),
    LinearPriority((1.0, 0.1, -0.5, 0.05), width=2, leaves=4),
    Twisted(n=5),
    Twisted(n=6, unit=Chunk(2), resample="multinomial", ess=1.0, depth=4, anneal=2),
)
EVALUATORS: tuple[Evaluator, ...] = (
    Likelihood(),
    RawLikelihood(),
    PerLength(RawLikelihood(), alpha=0.6),
    Exponentiated(),
    Blend((Likelihood(), Exponentiated()), (0.5, 2.0)),
    Staged(Exponentiated(), FinishedHead("main")),
    Even(),
    StepScores(step_scores, LogProduct()),
    Rollouts(rolled, brevity, no_prompt, m=2, cap=4),
    Judge(JUDGE, no_prompt, ask=(1,), yes=0, no=2),
    Judge(JUDGE, no_prompt, ask=(), yes=3),
    ValueModel(mean_token, no_prompt),
)
SEARCHES = (Search(Beam()), Search(UCT(), Exponentiated(), Sound(), cap=90, rule=BestOfN("score"), fallback="0"))

INTERVALS = (Percentile(), BCa(0.9), Studentised())
PRIORS = (BetaPrior(), BetaPrior(0.5, 0.5))
VERIFIERS = (CompassVerifier("contextual", model="m"), Pointwise(GENERAL, cap=64), GENERAL, Pairwise(both=False, cap=9))
SERVERS = (
    Endpoint("m", "http://127.0.0.1:8000/v1", "vllm", Chain(Temperature(0.6), TopP(0.95)), key="env:KEY"),
    Interface("math", "Think.", "{question}\n", "high", (("enable_thinking", True),)),
    Aimd(2, 8, 1, 0.7),
    Retry(attempts=2),
    Timeouts(silence=9.0),
)
JOINED = (Joined(Countdown(3), Arithmetic(2, "high")),)
METHODS: tuple[object, ...] = (
    *OPERATORS,
    *DRAWS,
    *MODELS,
    *TASKS,
    *CHECKS,
    *EXTRACTORS,
    *BENCHMARKS,
    Interact(Drawers(), encode, until=(2,)),
    *PROPOSALS,
    *COSTS,
    *EVIDENCE,
    *CALIBRATED,
    *STOPS,
    *TOKEN_STOPS,
    *DECISIONS,
    *FUNCTIONALS,
    *INTERVALS,
    *PRIORS,
    *COMPARISONS,
    *UNITS,
    *CONTROLLERS,
    *EVALUATORS,
    *SEARCHES,
    *VERIFIERS,
    *JOINED,
    *SERVERS,
)
