"""Runs from the command line: sampled, interrupted, gone on with, replayed, searched."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ramify
from ramify.cli.machine import Machine
from ramify.run.record import alone
from ramify.store import Store
from ramify.study import System
from ramify.tasks import Countdown
from tests.cli.conftest import Run
from tests.models.faulty import Faulty
from tests.verify.tools import judge_by

SMALL = ["--task", "Countdown(3)", "--model", "tiny", "--questions", "4", "-n", "4", "--cap", "60"]


def test_a_run_is_sampled_graded_and_replayed(run: Run) -> None:
    made = run("sample", "runs/a", *SMALL, "--json")
    assert made.code == 0, made.err
    assert made.found["candidates"] == 16
    assert made.found["spent"]["generate"] > 0
    assert "sampling into runs/a: 16 of 16 leaves" in made.err, "without a terminal, plain lines"
    profile = run("profile", "runs/a", "--no-page", "--json").found
    assert profile["candidates"] == 16
    assert profile["grades"] == "Countdown(level=3, effort='medium').grade"
    replayed = run("replay", "runs/a", "--generate", "--json")
    assert replayed.code == 0
    assert replayed.found["decisions_exact"] is True
    assert replayed.found["candidates"]["changed_traces"] == 0


def test_the_answers_of_a_run_are_audited_by_its_task(run: Run) -> None:
    run("sample", "runs/a", *SMALL)
    found = run("audit", "answers", "runs/a", "--task", "Countdown(3)", "--json").found
    assert (found["candidates"], found["left_out"]) == (16, 0)
    graded = run("profile", "runs/a", "--task", "Countdown(3)", "--no-page", "--json").found
    assert graded["profile"] == run("profile", "runs/a", "--no-page", "--json").found["profile"]


def test_the_same_command_adds_nothing(run: Run) -> None:
    first = run("sample", "runs/a", *SMALL, "--json").found
    again = run("sample", "runs/a", *SMALL, "--json").found
    assert again == {**first, "were_there": 16}
    other = run("sample", "runs/a", *SMALL, "--cap", "61")
    assert other.code == 2
    assert "another directory" in other.err


def test_a_run_goes_on_to_more_candidates_and_more_questions(run: Run) -> None:
    run("sample", "runs/a", *SMALL)
    more = ["--task", "Countdown(3)", "--model", "tiny", "--questions", "6", "-n", "7", "--cap", "60"]
    grown = run("sample", "runs/a", *more, "--json")
    assert grown.code == 0, grown.err
    assert (grown.found["candidates"], grown.found["were_there"]) == (42, 16)
    whole = run("sample", "runs/b", *more, "--json").found
    same = ("accuracy", "spent", "ended", "candidates", "protocol")
    assert {name: grown.found[name] for name in same} == {name: whole[name] for name in same}
    assert Path("runs/a/decisions.jsonl").read_bytes() == Path("runs/b/decisions.jsonl").read_bytes()
    assert json.loads(Path("runs/a/ledger.json").read_text())["total"] == whole["spent"]["generate"]
    profiles = [run("profile", name, "--no-page", "--json").found for name in ("runs/a", "runs/b")]
    assert profiles[0]["profile"] == profiles[1]["profile"], "what was added is graded too"
    assert run("replay", "runs/a", "--generate").code == 0
    fewer = run("sample", "runs/a", *SMALL)
    assert fewer.code == 2
    assert "n was 7, and is now 4" in fewer.err
    assert run("sample", "runs/c", *SMALL, "--budget", "300").code == 0
    shared = run("sample", "runs/c", *more, "--budget", "300")
    assert shared.code == 2, "a budget for all would be shared out otherwise"
    assert "another directory" in shared.err


def test_a_budget_is_kept_and_a_stop_saves(run: Run) -> None:
    arguments = ["sample", "runs/a", *SMALL, "--budget", "300", "--stop", "Esc(2)", "--json"]
    found = run(*arguments).found
    assert found["spent"]["generate"] <= 300
    assert set(found["ended"]) <= {"stop", "budget", "n"}
    assert run("profile", "runs/a", "--no-page", "--json").found["kind"] == "stopped"


def test_a_decision_that_was_changed_is_found(run: Run) -> None:
    run("sample", "runs/a", *SMALL)
    file = Path("runs/a/decisions.jsonl")
    lines = file.read_text().splitlines()
    last = json.loads(lines[-1])
    file.write_text("\n".join([*lines[:-1], json.dumps({**last, "submitted": "1+1"})]) + "\n")
    ran = run("replay", "runs/a")
    assert ran.code == 1
    assert f"DIFFERENT from line {len(lines)} on" in ran.out


def test_scores_of_a_run_come_from_its_tokens(run: Run) -> None:
    run("sample", "runs/a", *SMALL)
    ran = run("score", "runs/a", "--evidence", "logp=mean_logprob", "--evidence", "verified=Verified()", "--json")
    assert ran.code == 0, ran.err
    assert [row["missing"] for row in ran.found["layers"]] == [0, 0]
    best = run("decide", "runs/a", "--rule", "BestOfN('verified')", "--json").found["rules"][0]
    most = run("profile", "runs/a", "--k", "4", "--no-page", "--json").found["profile"][0]["Pass@k"]
    assert best["accuracy"]["value"] == most["value"], "a verifier that is never wrong takes all that is there"
    fresh = run("decide", "runs/a", "--rule", "BestOfN('x')", "--evidence", "x=deepconf_average(1)")
    assert "alternatives" in fresh.err or "top_logprobs" in fresh.err


def test_a_search_submits_keeps_its_leaves_and_counts_what_it_gave_up(run: Run) -> None:
    options = ["--task", "Countdown(3)", "--model", "tiny", "--questions", "2", "--cap", "60"]
    ran = run("search", *options, "--controller", "Beam(n=4, m=2)", "--check", "Sound()", "--out", "leaves", "--json")
    assert ran.code == 0, ran.err
    assert "ToDelimiter" in ran.found["protocol"], "without a unit of its own, a beam goes by lines"
    assert ran.found["bank"] == "search"
    with Store.open("leaves/bank").snapshot() as snapshot:
        assert snapshot.bank().kind == "search"
        assert snapshot.outcome_names == ["correct"]
    drawn = run("search", *options, "--controller", "Beam(n=4, m=2)", "--tree", "1").out
    assert "finished" in drawn or "pruned by proof" in drawn
    assert "prefixes: " in drawn
    own = run("search", *options, "--controller", "Beam(n=4, m=2, unit=Chunk(8))", "--json").found
    assert "ToDelimiter" not in own["protocol"]
    poor = run("search", *options, "--controller", "Beam(n=4, m=2)", "--budget", "100", "--json").found
    assert all(row["tokens"] <= 100 for row in poor["questions"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sample", "runs/a", "--model", "larger"], "use one of early, main"),
        (["sample", "runs/a", "--task", "Sound()"], "that is a check; `ramify methods --kind task`"),
        (["sample", "runs/a", "--task", "Countdown(9)"], "use 2 to 6 numbers"),
        (["sample", "runs/a", "--rule", "BestOfN('logp')"], "name it, as in --evidence logp=mean_logprob"),
        (["sample", "runs/a", "--budget", "-5"], "--budget -5.0: use an amount >= 0"),
        (["search", "--step", "wait"], "has to be one"),
        (["search", "--controller", "Plurality()"], "ramify methods --kind controller"),
        (["search", "--rule", "BestOfN('reward')"], "offers score, visits, multiplicity"),
    ],
)
def test_bad_input_fails_before_any_work(run: Run, arguments: list[str], message: str) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert message in ran.err
    assert not Path("runs").exists()


def test_ctrl_c_leaves_a_run_that_ends_as_if_it_had_not_been(run: Run, tmp_path: Path) -> None:
    arguments = ["sample", "runs/a", "--task", "Countdown(4)", "--model", "main", "--questions", "12", "-n", "12"]
    env = {"PYTHONPATH": str(Path(ramify.__file__).parent.parent), "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "ramify.cli", *arguments, "--batch", "8"]
    process = subprocess.Popen(
        program, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    journal = tmp_path / "runs" / "a" / "launches.log"
    while process.poll() is None and not (journal.exists() and len(journal.read_text().splitlines()) > 24):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.skip("the run was over before it could be interrupted")
    assert process.returncode == 130, err
    assert "Go on with:\n  ramify sample runs/a --task 'Countdown(4)' --model main" in err
    resumed = run(*arguments, "--json")
    assert resumed.code == 0, resumed.err
    assert 0 < resumed.found["were_there"] < 144
    straight = run("sample", "runs/b", *arguments[2:], "--json").found
    for part in ("accuracy", "candidates", "spent", "ended"):
        assert resumed.found[part] == straight[part]
    one, other = (Path("runs", name, "decisions.jsonl").read_bytes() for name in "ab")
    assert one == other


def served(url: str) -> list[str]:
    model = f"Endpoint('faulty', '{url}')"
    return [
        "sample",
        "runs/a",
        "--task",
        "Own('q.jsonl')",
        "--model",
        model,
        "-n",
        "3",
        "--cap",
        "16",
        "--questions",
        "2",
    ]


def test_a_server_is_checked_sampled_and_gone_on_with(run: Run) -> None:
    Path("q.jsonl").write_text(
        '{"id": "a", "question": "6 x 7?", "answer": "42"}\n{"id": "b", "question": "?", "answer": "1"}\n'
    )
    with Faulty() as server:
        ran = run(*served(server.url), "--json")
        assert ran.code == 0, ran.err
        assert ran.found["candidates"] == 6
        first = server.answered.total()
        again = run(*served(server.url), "--json")
        assert again.found["were_there"] == 6
        assert first - (server.answered.total() - first) == 6, "the leaves are there: only the checks are asked again"
    gone = run(*[word.replace("runs/a", "runs/b") for word in served(server.url)])
    assert gone.code == 2
    assert "start the server" in gone.err
    assert not Path("runs/b").exists()


def test_a_large_run_on_a_server_has_to_be_meant(run: Run) -> None:
    Path("q.jsonl").write_text('{"id": "a", "question": "6 x 7?", "answer": "42"}\n')
    with Faulty() as server:
        ran = run(*served(server.url), "-n", "100000", "--cap", "1000")
        assert ran.code == 2
        assert "--yes" in ran.err
        assert "at most" in ran.err, "the plan is shown"


def test_a_step_may_be_written_in_any_script_and_with_escapes() -> None:
    class Model:
        def encode(self, text: str) -> tuple[int, ...]:
            return tuple(map(ord, text))

    machine = Machine(System(Model(), "m"), None)
    assert [machine.one_token(text, "--step") for text in ("。", r"\n", "é", r"\u3002")] == [0x3002, 10, 0xE9, 0x3002]


def test_a_search_that_was_kept_is_gone_on_with(run: Run) -> None:
    options = ["--task", "Countdown(3)", "--model", "tiny", "--questions", "2", "--cap", "60", "--out", "runs/b"]
    first = run("search", *options, "--controller", "Beam(n=4, m=2)", "--json")
    again = run("search", *options, "--controller", "Beam(n=4, m=2)", "--json")
    assert again.code == 0, again.err
    assert again.found == first.found
    assert run("profile", "runs/b", "--no-page", "--json").found["kind"] == "search"
    more = [*options, "--questions", "4", "--controller", "Beam(n=4, m=2)", "--json"]
    grown, whole = run("search", *more).found, run("search", *more, "--out", "runs/c").found
    assert grown == whole
    profiles = [run("profile", name, "--no-page", "--json").found["profile"] for name in ("runs/b", "runs/c")]
    assert profiles[0] == profiles[1]
    options += ["--questions", "4"]
    other = run("search", *options, "--controller", "Beam(n=6, m=2)")
    assert other.code == 2
    assert "was 4, and is now 6" in other.err
    assert "holds a search" in run("replay", "runs/b").err


def test_a_verifier_is_given_its_judge(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("sample", "runs/a", *SMALL)
    asks = ["score", "runs/a", "--evidence", "point=Pointwise(rubric=Rubric((('X', '?'),)), cap=4)"]
    assert "asks a model about candidates: name it, --judge" in run(*asks).err
    assert "no letters to read a prompt with" in run(*asks, "--judge", "main").err
    judge, sampler = judge_by(lambda _: (["X", ":", " ", "A"], {3: {"A": 1.0}}), context=100_000)
    monkeypatch.setattr("ramify.study.judges.judge_of", lambda _: judge)
    monkeypatch.setattr("ramify.study.source.cannot_judge", lambda _: "")
    ran = run(*asks, "--judge", "main", "--json")
    assert ran.code == 0, ran.err
    assert ran.found["layers"][0]["mean"] == 1.0
    assert ran.found["layers"][0]["tokens_read"] > 0
    first = len(sampler.asked)
    assert first > 0
    again = run("score", "runs/a", "--evidence", asks[-1].replace("point", "again", 1), "--judge", "main")
    assert again.code == 0, again.err
    assert len(sampler.asked) == first, "what was asked is kept"
    assert run("bank", "verify", "runs/a/bank").code == 0


def test_a_budget_is_not_overspent_by_running_ahead(run: Run) -> None:
    """The log counts what was generated, the summary what was booked: they are the same."""
    ran = run("sample", "runs/a", *SMALL, "--budget", "300", "--json")
    assert ran.found["spent"]["generate"] <= 300
    assert f"{ran.found['spent']['generate']:,.0f} tokens," in ran.err
    calls = run("sample", "runs/b", *SMALL, "--cost", "Calls()", "--budget", "5", "--json")
    assert calls.found["candidates"] == 5
    assert "5 of 16 leaves" in calls.err


def test_money_is_shown_in_digits_that_say_something(run: Run) -> None:
    ran = run("sample", "runs/a", *SMALL, "--cost", "Money(10, 2)", "--budget", "0.02")
    assert "generate 0.0" in ran.out
    assert "of 0.02 money left" in ran.err


def test_two_processes_do_not_work_on_one_run(run: Run) -> None:
    with alone(Path("runs/a")):
        ran = run("sample", "runs/a", *SMALL)
    assert ran.code == 2
    assert "another process is at work on this run" in ran.err
    assert run("sample", "runs/a", *SMALL).code == 0


def test_corrected_references_grade_a_run_anew(run: Run) -> None:
    prompt = Countdown(3).questions(1)[0].prompt
    task = "Own('mine.jsonl', kind='number', prompt='{question}')"
    sample = ["sample", "runs/a", "--task", task, "--model", "tiny", "--questions", "1", "-n", "4", "--cap", "60"]

    def write(answer: str) -> None:
        Path("mine.jsonl").write_text(json.dumps({"id": "q", "question": prompt, "answer": answer}) + "\n")

    write("123456")
    first = run(*sample, "--json")
    assert first.code == 0, first.err
    assert first.found["accuracy"]["value"] == 0
    with Store.open("runs/a/bank").snapshot() as snapshot:
        said = snapshot.bank().answer(0, 0)
    assert said is not None
    write(said)
    run(*sample)
    assert run("profile", "runs/a", "--no-page", "--json").found["profile"][0]["Pass@k"]["value"] > 0


@pytest.mark.parametrize(
    "command",
    [
        ["demo", "--questions", "2", "--out"],
        ["profile", "my.jsonl", "--page"],
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_any_work(run: Run, command: list[str]) -> None:
    Path("my.jsonl").write_text('{"question": "a", "answer": "1", "correct": true}\n')
    Path("taken").write_text("a file, and no folder")
    ran = run(*command, "taken/page.html")
    assert ran.code == 2
    assert "taken/page.html" in ran.err
    assert "name a file in a folder of yours" in ran.err
    assert "sampling" not in ran.err
