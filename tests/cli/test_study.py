"""``ramify run`` and ``ramify report``: a study file to a folder, and the folder to a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from ramify.report import page_of
from ramify.study import Result
from tests.cli.conftest import Run, rows, written

STUDY = """
[study]
title = "two rules"
run = "test"
decode = "Temperature(1.0)"
cap = 60
n = 4
budgets = [1, 4]
replays = 20
replicates = 100
comparisons = [["likeliest", "plurality"]]

[task]
name = "countdown 3"
task = "Countdown(3)"
questions = 4

[[model]]
name = "tiny"
model = "Pocket('tiny')"

[[protocol]]
name = "plurality"
rule = "Plurality()"

[[protocol]]
name = "likeliest"
rule = "BestOfN('logp')"
evidence = { logp = "TokenEvidence(LogProb(), Mean())" }

[reduced]
questions = 2
n = 2
"""


@pytest.fixture
def file(run: Run) -> str:
    Path("two.toml").write_text(STUDY)
    return "two.toml"


def test_a_study_is_checked_without_running_it(run: Run, file: str) -> None:
    ran = run("run", file, "--check")
    assert ran.code == 0, ran.err
    assert "nothing is wrong with it" in ran.out
    assert run("run", file, "--check", "--json").found["leaves"] == 16
    assert not Path("runs").exists()


def test_a_study_is_run_kept_and_reported(run: Run, file: str) -> None:
    ran = run("run", file, "--json")
    assert ran.code == 0, ran.err
    stored = Result.read("runs/two")
    assert [row["protocol"] for row in ran.found["rows"]] == [row.label for row in stored.rows]
    for told, row in zip(ran.found["rows"], stored.rows, strict=True):
        assert told["utility"]["value"] == pytest.approx(row.mean)
        assert told["cost"] == pytest.approx(row.mean_cost)
    [compared] = ran.found["comparisons"]
    assert compared["difference"]["covers"] == ["questions"]
    assert "<html" in Path("runs/two/report.html").read_text()
    again = run("run", file)
    assert again.code == 0
    assert "16 of 16 leaves" in again.err
    assert "share these candidates" in again.out
    page = run("report", "runs/two", "--out", "page.html", "--figures", "figures", "--json")
    assert page.found["page"] == "page.html"
    assert page.found["bytes"] == Path("page.html").stat().st_size
    made = {Path(each).name for each in page.found["figures"]}
    assert made == {path.name for path in Path("figures").iterdir()}
    shown = page_of(stored)
    for name, figure in shown.figures().items():
        assert f"{name}.csv" in made
        for view, drawn in figure.files().items():
            assert Path(f"figures/{drawn}.pdf").read_bytes().startswith(b"%PDF"), view
            assert f"<title>{figure.called(view)}</title>" in Path(f"figures/{drawn}.svg").read_text()
    assert len(set().union(*(figure.files().values() for figure in shown.figures().values()))) == sum(
        len(figure.all_views()) for figure in shown.figures().values()
    )
    for name, table in shown.tables().items():
        assert Path(f"figures/table-{name}.md").read_text() == table.markdown() + "\n"
        assert Path(f"figures/table-{name}.tex").read_text().startswith(r"\begin{tabular}")
        assert Path(f"figures/table-{name}.csv").read_bytes().decode() == table.csv()


def test_the_reduced_form_has_a_folder_of_its_own(run: Run, file: str) -> None:
    ran = run("run", file, "--reduced", "--no-page", "--json")
    assert ran.found["folder"] == "runs/two-reduced"
    assert ran.found["page"] is None
    assert run("run", file, "--reduced", "--check", "--json").found["leaves"] == 4


def test_a_form_or_a_model_that_the_file_does_not_have_is_refused(run: Run, file: str) -> None:
    ran = run("run", file, "--check", "--model", "nobody")
    assert ran.code == 2
    assert "the study has no 'nobody'" in ran.err
    Path(file).write_text(STUDY.partition("[reduced]")[0])
    ran = run("run", file, "--reduced", "--check")
    assert ran.code == 2
    assert "no [reduced] table" in ran.err


def test_a_check_says_which_servers_it_did_not_ask(run: Run, file: str) -> None:
    Path(file).write_text(STUDY.replace("Pocket('tiny')", "Endpoint('m', 'http://127.0.0.1:9/v1')"))
    ran = run("run", file, "--check")
    assert ran.code == 0, ran.err
    assert "asked when it runs, and not before: the servers of" in ran.out


def test_a_bad_study_fails_before_any_work_with_its_line(run: Run, file: str) -> None:
    Path(file).write_text(STUDY.replace("Plurality()", "Pluralitee()"))
    ran = run("run", file)
    assert ran.code == 2
    line = STUDY[: STUDY.index('rule = "Plurality()"')].count("\n") + 1
    assert f"{file}:{line}" in ran.err
    assert "Plurality" in ran.err
    assert not Path("runs").exists()


def test_an_interrupted_study_says_how_to_go_on(run: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ramify.study.run_study", interrupted)
    ran = run("run", file)
    assert ran.code == 130
    assert "Go on with:\n  ramify run two.toml" in ran.err


def test_a_bank_and_a_run_have_pages_too(run: Run) -> None:
    written("my.jsonl", rows())
    assert run("bank", "import", "my.jsonl", "mybank").code == 0
    assert run("report", "mybank", "--out", "page.html").code == 0
    assert "<html" in Path("page.html").read_text()
    refused = run("report", "my.jsonl")
    assert refused.code == 2
    assert "ramify profile my.jsonl" in refused.err
    Path("unfinished").mkdir()
    Path("unfinished/study.txt").write_text("a study")
    assert "not finished" in run("report", "unfinished").err


def test_intervals_say_the_level_that_they_have(run: Run) -> None:
    Path("study.toml").write_text(STUDY.replace("replays = 20", "replays = 20\nlevel = 0.8"))
    told = run("run", "study.toml", "--out", "out").out
    assert "80 % over questions" in told[told.index("paired difference") :].splitlines()[0]
