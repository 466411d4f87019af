"""``python -m tests.study.killed FOLDER``: the study of every regime, for a test that kills it."""

from __future__ import annotations

import sys

from ramify.study import run_study
from tests.study.tools import study

if __name__ == "__main__":
    run_study(study(), sys.argv[1])
