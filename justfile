# What CI runs.
check:
    bash .ci/run

# The demo.
demo:
    cargo run -p fairtte-cli -- demo

# Quick feedback on one crate: just test fairtte-metrics
test crate:
    cargo test -p {{crate}}

# Metrics benchmarks (release build).
bench:
    cargo bench -p fairtte-metrics

# Hostile input to every metric, ten minutes (needs cargo-fuzz and a nightly compiler).
fuzz:
    cd fairtte-metrics/fuzz && cargo +nightly fuzz run metrics -s none -- -max_total_time=600 -max_len=700

# Hostile files of weights, ten minutes each (needs cargo-fuzz and a nightly compiler).
fuzz-models:
    cd fairtte-models/fuzz && mkdir -p corpus/weight_file && cp ../tests/weights/*.pth corpus/weight_file
    cd fairtte-models/fuzz && cargo +nightly fuzz run weight_file -- -max_total_time=600 -max_len=8192 -timeout=1 -rss_limit_mb=512
    cd fairtte-models/fuzz && cargo +nightly fuzz run legacy_pickle -- -max_total_time=600 -max_len=512 -timeout=1 -rss_limit_mb=512

# Hostile input to the readers of fairtte-data, ten minutes each (needs cargo-fuzz and a nightly compiler).
fuzz-data:
    cd fairtte-data/fuzz && cargo +nightly fuzz run areds_name -s none -- -max_total_time=600 -max_len=200 -timeout=1
    cd fairtte-data/fuzz && cargo +nightly fuzz run csv_table -- -max_total_time=600 -max_len=4096 -timeout=1 -rss_limit_mb=2048
    cd fairtte-data/fuzz && cargo +nightly fuzz run dbgap_table -s none -- -max_total_time=600 -max_len=4096 -timeout=1
    cd fairtte-data/fuzz && cargo +nightly fuzz run parquet_table -- -max_total_time=600 -max_len=8192 -timeout=1 -rss_limit_mb=2048
    cd fairtte-data/fuzz && cargo +nightly fuzz run picture -- -max_total_time=600 -max_len=8192 -timeout=1 -rss_limit_mb=512
    cd fairtte-data/fuzz && cargo +nightly fuzz run nifti -- -max_total_time=600 -max_len=8192 -timeout=1 -rss_limit_mb=2048

# Made-up MIMIC tables of real size to labels, beside polars and pandas in Python: just bench-data /tmp/mimic
bench-data folder python="python3":
    bash fairtte-data/benches/mimic_tables.sh "{{folder}}" {{python}}

# Images of a table to a store, and epochs of batches from it (release build): just ingest cohort.csv cache 224 3
ingest table cache side="224" channels="3":
    cargo run --release -p fairtte-data --example ingest -- "{{table}}" "{{cache}}" {{side}} {{channels}}

# Mutation test of folders below a crate's src: just mutants fairtte-metrics "rank scores" (see CONTRIBUTING.md).
# `python` has tree-sitter and tree-sitter-rust; options: --sample 100 --seed 1, --only rank/uno.rs:57, --with fairtte-tests
mutants crate folders python="python3" *options="":
    {{python}} tests/mutants/mutants.py {{crate}} {{folders}} {{options}}

# The Python package: built into the environment `venv` and tested with the program (see CONTRIBUTING.md): just python V
python venv:
    cargo build -p fairtte-cli
    cd python && VIRTUAL_ENV="{{absolute_path(venv)}}" "{{absolute_path(venv)}}/bin/maturin" develop --locked
    cd python && FAIRTTE_PROGRAM="${CARGO_TARGET_DIR:-$PWD/../target}/debug/fairtte" "{{absolute_path(venv)}}/bin/python" -m pytest

# The user guide (needs mdbook).
book:
    mdbook build docs

# Time of the metrics beside pycox and scikit-survival (needs the Python packages named in the script), and against n.
peers python="python3":
    {{python}} fairtte-metrics/benches/peers/compare.py
    cargo bench -p fairtte-metrics --bench peers -- scaling

# Curves of an exported model by torch beside those of its run; `python` has torch, torchvision, timm, safetensors and pyarrow.
export-parity run model python="python3":
    {{python}} fairtte-models/parity/exported.py "{{run}}" "{{model}}"

# Backbones at full size against torchvision, timm and a checkout of MedicalNet: features and gradients with random weights.
# `python` has torch, torchvision, timm, torchtuples and safetensors; the files take about 5 GB.
torch-parity python="python3" folder="/tmp/fairtte-parity" medicalnet="":
    {{python}} fairtte-models/parity/references.py "{{folder}}" --containers {{ if medicalnet == "" { "" } else { "--medicalnet " + quote(medicalnet) } }}
    FAIRTTE_PARITY="{{folder}}" cargo test --workspace --lib -- --nocapture full_size

# Values and gradients of operations and of whole networks in PyTorch float64, committed in fairtte-models/tests/parity.
# `python` has torch, torchvision and timm.
reference-values python="python3":
    {{python}} fairtte-models/parity/operations.py
    {{python}} fairtte-models/parity/gradients.py

# Worked training steps of every strategy in PyTorch float64, committed in fairtte-fairness/tests/golden/steps: just worked-steps
# `python` has torch. First what FairTTE draws from its random streams, then the numbers, then their comparison.
worked-steps python="python3":
    FAIRTTE_RECORD_DRAWS="$PWD/fairtte-fairness/tests/golden/steps/draws.json" cargo test -p fairtte-fairness --test fairness steps::draws
    {{python}} fairtte-fairness/parity/steps.py
    cargo test -p fairtte-fairness --test fairness steps -- --nocapture

# Time and memory of training steps and inference beside PyTorch in turn, and where the time goes (release build).
# `python` has torch, torchvision and timm; a table of all: just step-time python3 --summary-only
step-time python="python3" *options="":
    cargo build --release -p fairtte-cli --example step_time
    {{python}} fairtte-models/parity/step_time.py "${CARGO_TARGET_DIR:-target}/release/examples/step_time" {{options}}

# Epochs on GRAPE beside a PyTorch script with a DataLoader and Pillow, in turn (release build; the photographs at hand).
epoch-time python="python3" *options="":
    cargo build --release -p fairtte-cli
    {{python}} fairtte-models/parity/epoch.py "${CARGO_TARGET_DIR:-target}/release/fairtte" {{options}}

# Processor time per image of `fairtte predict` beside its parts and a PyTorch loop with a DataLoader (release build).
predict-time work python="python3" *options="":
    cargo build --release -p fairtte-cli --bin fairtte --example step_time
    cargo build --release -p fairtte-data --example ingest
    {{python}} fairtte-models/parity/predict.py "${CARGO_TARGET_DIR:-target}/release" "{{work}}" {{options}}

# The planted source of bias in the features of a trained network, five knobs x 10 seeds and 20 without one, in docs/src/bias.md.
planted-bias work python="python3" *options="":
    cargo build --release -p fairtte-cli
    {{python}} fairtte-cli/benches/planted_bias.py "${CARGO_TARGET_DIR:-target}/release/fairtte" "{{work}}" {{options}}

# C^td of every head on SUPPORT, METABRIC and GBSG beside pycox (release build; Python with pycox, torch, pandas, pyarrow).
tabular-quality data work python="python3":
    cargo build --release -p fairtte-cli
    {{python}} fairtte-cli/benches/tabular_quality.py "${CARGO_TARGET_DIR:-target}/release/fairtte" "{{data}}" "{{work}}"

# Simulated coverage of the intervals of a gap and of a signed difference, in docs/src/comparing.md (ten minutes on 2 cores).
gap-coverage samples="1000":
    cargo run --release -p fairtte-metrics --example gap_coverage -- {{samples}}
