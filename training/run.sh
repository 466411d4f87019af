#!/usr/bin/env bash
# The whole roster on one GPU, in three parts of at most nine minutes each. The table of contents of training/.
#   bash training/run.sh smoke OUT   # half a minute: every path once, tiny models, compiled where there is a GPU
#   bash training/run.sh 1 OUT       # main
#   bash training/run.sh 2 OUT       # mid, small, slip, tiny, early, tiny-early
#   bash training/run.sh 3 OUT       # the heads of main, on the checkpoints under src/ramify/data/pocket
# OUT receives partN.tar (rewritten after every checkpoint) and partN.log: two files a part.
set -euo pipefail
part=$1 out=$2
cd "$(dirname "$0")/.."
export PYTHONPATH=src:. PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
mkdir -p "$out"
work=${WORK:-/tmp/ramify-roster}/part$part  # apart: one archive holds one part, under 16 MiB
if [ "$part" = smoke ]; then
  work=$(mktemp -d)
  options=(--only main,heads,tiny-early --smoke 120 --examples 40000 --validation 256 --questions 16
           --head-questions 200 --batch 256 --seconds 120)
else
  options=(--part "$part" --seconds "${SECONDS_IN_ALL:-510}")
fi
if [ "$part" = 3 ]; then options+=(--source src/ramify/data/pocket --batch 6144); fi
python3 -m training.roster "${options[@]}" --out "$work" --pack "$out/part$part.tar" 2>&1 | tee "$out/part$part.log"
