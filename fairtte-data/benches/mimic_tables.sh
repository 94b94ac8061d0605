#!/usr/bin/env bash
# MIMIC tables of real size (made up) into cohort.parquet and exclusions.csv on the disk: this crate, and polars and
# pandas (with pyarrow) in Python, on the same files.
# Usage: fairtte-data/benches/mimic_tables.sh FOLDER [PYTHON]
# Wall time and peak memory are of the whole process. Without polars or pandas their line is skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
python=${2:-python3}
cargo build --release --quiet -p fairtte-data --example mimic_tables
program=${CARGO_TARGET_DIR:-$here/../../target}/release/examples/mimic_tables
[ -f "$folder/hosp/admissions.csv.gz" ] || "$program" write "$folder"
measure() {
  "$python" - "$@" <<'PY'
import os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
print(f"  whole process: {time.perf_counter() - start:.2f} s, {usage.ru_maxrss / 1024:.0f} MB, status {status}\n", flush=True)
PY
}
for round in 1 2 3; do
  echo "round $round"
  measure "$program" read "$folder"
  for package in polars pandas; do
    if "$python" -c "import $package" 2>/dev/null; then measure "$python" "$here/mimic_$package.py" "$folder"; else echo "no $package"; fi
  done
done
