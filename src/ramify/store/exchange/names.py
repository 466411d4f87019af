"""The names that columns go by, and what their values look like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Any

from ramify.bank.codes import is_bottom

FIXED = ("question", "prompt", "run", "proposal", "candidate", "sample", "answer", "ended", "length", "log_q", "text")
PREFIXES = ("group.", "layer.", "cost.", "outcome.", "token.")
TRUE, FALSE = {"true", "yes", "correct", "right"}, {"false", "no", "incorrect", "wrong"}
ABSENT = {"", "nan", "null", "none", "na", "n/a", "<na>"}  # in columns of numbers and grades, never in answers

ITEMS, LOOK = 50, 2000  # values of a list, and of all lists of a column, that are looked at

# Names by part, the surer ones first. They are compared in lower case with everything but letters and digits as "_".
QUESTION = "question_id qid problem_id task_id item_id doc_id example_id unique_id prompt_id question_idx problem_idx"
QUESTION_TOO = "q idx id index uid item doc instance"  # may also number the rows
PROMPT = "question problem prompt query input instruction puzzle x questions"
SAMPLE = (
    "sample sample_id sample_idx sample_index attempt attempt_id rollout rollout_id rollout_idx trial repeat "
    "repetition response_id response_idx candidate_id completion_id candidate generation"
)
SAMPLE_TOO = "seed i j k n index idx iteration"  # only where it tells the rows of a question apart
PREDICTED = (
    "pred prediction predicted predicted_answer extracted extracted_answer parsed parsed_answer final_answer "
    "model_answer preds predictions y_pred filtered_resps"
)
FILTERED = "filtered_resps"  # of lm-evaluation-harness: a list of one, in a row of its own
ANSWER = "answer answers choice"  # the reference, if there is a prediction beside it
REFERENCE = (
    "gt gold gt_answer gold_answer ground_truth reference references target targets solution gt_cot correct_answer "
    "reference_answer expected expected_answer true_answer answer_key label"
)
OUTCOME = (
    "correct is_correct correctness acc accs accuracy label labels passed pass success oracle oracle_reward grade "
    "grades graded right exact_match em"
)
RECORD = "doc."  # lm-evaluation-harness keeps the question's record there, gold included: nobody's answers or grades
SCORE = re.compile(r"(^|_)(score|reward|confidence|logprob|log_prob|logp|likelihood|prob|probability)s?$")
TEXT = (
    "text response completion output generation generated_text generated model_output responses completions outputs "
    "generations ys code content trace reasoning"
)
ENDED = "ended finish finish_reason finish_reasons stop_reason done_reason"
LENGTH = "length n_tokens num_tokens completion_tokens output_tokens token_count gen_tokens tokens"
LOG_Q = "log_q logq"
GROUP = "level subject field category domain difficulty topic dataset benchmark suite task type split"
TOKEN = {
    "token": "tokens token_ids output_ids output_token_ids completion_ids",
    "logprob": "logprob logprobs token_logprobs log_probs",
    "log_q": "token_log_q",
    "rank": "rank ranks",
}
TOP = re.compile(r"^top_?\d*_?(ids|tokens|token_ids|logprobs?)$")


def kind_of(values: Iterable[Any]) -> str:
    """empty, flag, whole, number, text, or "list <kind>": what most values of a column look like.

    Most, not all: a column of numbers with a stray word in it is a column of numbers with a wrong cell.

    >>> [kind_of(x) for x in (["1", "2"], ["0.5", "nan"], [True, None], ["a b", 3, "c"], [1, "x", 2], [[1, 2], []])]
    ['whole', 'number', 'flag', 'text', 'whole', 'list whole']
    """
    present = [value for value in values if isinstance(value, list | tuple) or cell_kind(value) != "empty"]
    lists = [value for value in present if isinstance(value, list | tuple)]
    if lists and 2 * len(lists) >= len(present):
        items = list(islice((item for value in lists for item in value[:ITEMS]), LOOK))
        if all(len(item) == 1 for item in items if isinstance(item, list | tuple)):  # a score in a list of its own
            items = [item[0] if isinstance(item, list | tuple) else item for item in items]
        return f"list {kind_of(items)}"
    kinds = Counter(cell_kind(value) for value in present)
    numbers = {kind: kinds[kind] for kind in ("flag", "whole", "number") if kinds[kind]}
    if not kinds or 2 * sum(numbers.values()) < len(present):
        return "text" if kinds else "empty"
    return "flag" if "flag" in numbers else "number" if "number" in numbers else "whole"


def cell_kind(value: Any) -> str:
    """The kind of one value that is no list."""
    if isinstance(value, bool):
        return "flag"
    if is_bottom(value):
        return "empty"
    if isinstance(value, int | float):
        return "whole" if isinstance(value, int) else "number"
    word = str(value).strip().lower()
    if word in ABSENT or word in TRUE | FALSE:
        return "empty" if word in ABSENT else "flag"
    if re.fullmatch(r"[+-]?\d{1,30}", word):
        return "whole"
    return "number" if re.fullmatch(r"[+-]?(inf(inity)?|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)", word) else "text"


def plain(name: str) -> str:
    """The name in lower case, words joined by "_"; of a path the last step: ``infos.R`` is r."""
    return re.sub(r"[^a-z0-9]+", "_", name.rpartition(".")[2].strip().lower()).strip("_")


def place(part: str) -> tuple[int, str]:
    return (
        (FIXED.index(part), "") if part in FIXED else (len(FIXED) + PREFIXES.index(part.partition(".")[0] + "."), part)
    )


def leaves(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from leaves(value)
        else:
            yield value
