"""The command line: it teaches, it answers at once, and it fails with one message and an exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ramify
from ramify.cli.terminal import printable
from ramify.store import Store
from ramify.store.exchange import read
from tests.bank.test_arrow import facts
from tests.cli.conftest import Run

CSV = "question,sample,answer,correct,score\nq1,0,7,1,0.5\nq1,1,,0,0.25\nq2,0,A,,2\n"


def imported(run: Run) -> None:
    Path("answers.csv").write_text(CSV)
    assert run("bank", "import", "answers.csv", "mybank").code == 0


def test_help_imports_neither_numpy_nor_scipy() -> None:
    for arguments in (["--help"], ["bank", "--help"], ["bank", "import", "--help"], ["--version"]):
        program = [sys.executable, "-X", "importtime", "-m", "ramify.cli", *arguments]
        env = {"PYTHONPATH": str(Path(ramify.__file__).parent.parent)}
        result = subprocess.run(program, capture_output=True, text=True, check=True, env=env)
        loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in result.stderr.splitlines()}
        assert "typer" in loaded
        assert loaded.isdisjoint({"numpy", "scipy", "pyarrow", "pandas"})


def test_help_teaches_with_examples(run: Run) -> None:
    found = run("bank", "import", "--help")
    assert found.code == 0
    assert "ramify bank import answers.csv mybank --dry-run" in found.out
    for command in ("export", "info", "verify", "compact"):
        assert f"ramify bank {command} mybank" in run("bank", command, "--help").out
    assert run("--version").out == f"ramify {ramify.__version__}\n"


def test_a_file_goes_in_and_comes_out(run: Run) -> None:
    Path("answers.csv").write_text(CSV)
    found = run("bank", "import", "answers.csv", "mybank")
    assert found.code == 0
    assert found.err == ""
    assert "outcome.correct  <- correct" in found.out
    assert "missing  outcome.correct: 1 of 3" in found.out
    again = run("bank", "import", "answers.csv", "mybank")
    assert again.code == 0, "importing again adds nothing"
    for name in ("out.csv", "out.jsonl.gz", "out.parquet", "out.npz"):
        assert run("bank", "export", "mybank", name).out == f"3 candidates of 2 questions written to {name}\n"
        bank, outcomes, _ = read(name)
        assert bank.drawn.sum() == 3
        assert [bank.answer(q, n) for q, n in ((0, 0), (0, 1), (1, 0))] == ["7", None, "A"]
        assert repr(outcomes["correct"].values.tolist()) == "[[1.0, 0.0], [nan, nan]]"
        assert bank.layers["score"].values[1, 0] == 2
        assert bank.proposals[0].run == "answers"
        assert run("bank", "import", name, f"from-{name}").code == 0
        with Store.open(f"from-{name}").snapshot() as snapshot:
            stored, graded = snapshot.bank(), snapshot.outcomes("correct")
        assert facts(stored, {"correct": graded}).keys() == facts(bank).keys()
        assert stored.answers.tolist() == bank.answers.tolist()


def test_a_second_file_tops_a_run_up_or_lies_beside_it(run: Run) -> None:
    Path("one.csv").write_text("question,sample,answer,correct\nq1,0,7,1\n")
    Path("two.csv").write_text("question,sample,answer,correct\nq1,0,7,1\nq1,1,8,0\n")
    assert run("bank", "import", "one.csv", "mybank").out.endswith("written to mybank\n")
    refused = run("bank", "import", "two.csv", "mybank")
    assert refused.code == 2
    assert "mybank holds run 'one', and this is run 'two'" in refused.err
    assert "--beside" in refused.err
    for new, before in ((1, 1), (0, 2)):
        found = run("bank", "import", "two.csv", "mybank", "--run", "one").out
        assert found.endswith(f"written to mybank: {new} new, {before} were there\n")
    assert run("bank", "import", "two.csv", "mybank", "--beside").out.endswith("2 new, 2 were there\n")
    run("bank", "export", "mybank", "out.csv")
    _, outcomes, _ = read("out.csv")
    assert outcomes["correct"].values.tolist() == [[1.0, 0.0, 1.0, 0.0]]


def test_tokens_go_in_and_come_out(run: Run) -> None:
    row = {"question": "q", "answer": "7", "finish_reason": "stop", "tokens": [5, 6], "logprob": [-0.5, -1.5]}
    Path("a.jsonl").write_text(json.dumps(row) + "\n")
    assert run("bank", "import", "a.jsonl", "mybank", "--run", "mine", "--model", "small").code == 0
    assert run("bank", "export", "mybank", "out.parquet").code == 0
    bank = read("out.parquet").bank
    assert bank.tokens is not None
    assert bank.tokens.of(0, 0)["token"].tolist() == [5, 6]
    assert bank.tokens.of(0, 0)["logprob"].tolist() == [-0.5, -1.5]
    assert (bank.proposals[0].run, bank.proposals[0].model) == ("mine", "small")
    assert run("bank", "export", "mybank", "less.parquet", "--no-tokens").code == 0
    assert read("less.parquet").bank.tokens is None


def test_the_mapping_can_be_overridden_and_looked_at_first(run: Run) -> None:
    Path("a.csv").write_text("qid,out,rm\nq,7,0.5\n")
    found = run("bank", "import", "a.csv", "mybank", "--map", "answer=out", "--map", "layer.rm=rm", "--dry-run")
    assert "answer     <- out  (given)" in found.out
    assert "say otherwise with --kind" in found.out
    assert not Path("mybank").exists()
    kept = run("bank", "import", "a.csv", "mybank", "--map", "answer=out", "--kind", "search")
    assert "say otherwise" not in kept.out
    with Store.open("mybank").snapshot() as snapshot:
        assert snapshot.bank().kind == "search"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bank", "import", "none.csv", "mybank"], "none.csv: there is no such file"),
        (["bank", "import", "answers.csv", "mybank", "--map", "answer"], "write PART=COLUMN"),
        (["bank", "import", "answers.csv", "mybank", "--map", "answer=x", "--map", "answer=y"], "given twice"),
        (["bank", "import", "answers.csv", "mybank", "--map", "answer=x"], "no such column"),
        (["bank", "import", "answers.csv", "mybank", "--strict", "some"], "strict = 'some'"),
        (["bank", "import", "answers.csv", "mybank", "--kind", "magic"], "--kind "),
        (["bank", "import", "broken.csv", "mybank"], "broken.csv: row 3: "),
        (["bank", "info", "nothing"], "is not a bank"),
        (["bank", "verify", "nothing"], "is not a bank"),
        (["bank", "compact", "nothing"], "is not a bank"),
        (["bank", "export", "nothing", "out.csv"], "is not a bank"),
        (["bank", "export", "nothing", "answers.csv"], "pass --force"),
    ],
)
def test_bad_input_gives_one_message_and_status_2(run: Run, arguments: list[str], message: str) -> None:
    Path("answers.csv").write_text(CSV)
    Path("broken.csv").write_text(CSV.replace("q1,1,,0,0.25", "q1,1"))
    found = run(*arguments)
    assert found.code == 2
    assert message in found.err
    assert found.err.startswith("ramify: ")
    assert "Traceback" not in found.err
    assert not Path("mybank").exists(), "nothing was made"


def test_a_word_that_is_no_command_is_status_2(run: Run) -> None:
    assert run("bank", "impart").code == 2
    assert run("bank", "info").code == 2


def test_verify_names_what_is_broken_and_fails(run: Run) -> None:
    imported(run)
    assert run("bank", "verify", "mybank") == (0, "mybank: sound\n", "")
    assert run("bank", "compact", "mybank").code == 0
    assert run("bank", "verify", "mybank").code == 0
    shard = next(Path("mybank/shards").glob("*attempts*"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    found = run("bank", "verify", "mybank")
    assert found.code == 1
    assert shard.name in found.out


def test_info_prints_the_inventory_and_says_unknown(run: Run) -> None:
    imported(run)
    page = run("bank", "info", "mybank").out
    assert "responses" in page
    assert "unknown" in page, "no finish reason was recorded, so the caps are not known"
    found = json.loads(run("bank", "info", "mybank", "--json").out)
    [row] = found["rows"]
    assert (found["questions"], row["responses"], row["invalid"], row["capped"], row["tokens"]) == (
        2,
        3,
        1,
        "unknown",
        "unknown",
    )
    assert (found["layers"], found["outcomes"]) == (["score"], ["correct"])


def test_every_command_of_a_bank_tells_programs_what_it_did(run: Run) -> None:
    Path("answers.csv").write_text(CSV)
    made = json.loads(run("bank", "import", "answers.csv", "mybank", "--json").out)
    assert (made["written"], made["new"], made["report"]["missing"]["outcome.correct"]) == ("mybank", 3, 1)
    assert json.loads(run("bank", "export", "mybank", "out.csv", "--json").out)["candidates"] == 3
    assert json.loads(run("bank", "verify", "mybank", "--json").out) == {
        "bank": "mybank",
        "sound": True,
        "problems": [],
    }
    assert json.loads(run("bank", "compact", "mybank", "--json").out)["bytes_after"] > 0


def test_nothing_from_a_file_steers_the_terminal(run: Run) -> None:
    Path("a.csv").write_text('question,answer,"bad\x1b]0;title\x07col"\n\x1b[2Jq,\x1b[31m7,x\n')
    found = run("bank", "import", "a.csv", "mybank", "--run", "\x1b[5mr")
    assert found.code == 0
    assert "\x1b" not in found.out
    assert "badcol" in found.out
    assert "\x1b" not in run("bank", "info", "mybank").out
    with Store.open("mybank").snapshot() as snapshot:
        assert snapshot.bank().answer(0, 0) == "\x1b[31m7", "what is stored is what was there"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "link"),
        ("\x9b31mred", "red"),
        ("a\rb\x08c\x00", "abc"),
        ("\u202eevil", "evil"),
        ("tab\tline\n∑ é 漢", "tab\tline\n∑ é 漢"),
    ],
)
def test_printable_keeps_text_and_drops_commands(text: str, plain: str) -> None:
    assert printable(text) == plain
