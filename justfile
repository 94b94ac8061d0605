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

# The user guide (needs mdbook).
book:
    mdbook build docs

# Time of the metrics beside pycox and scikit-survival (needs the Python packages named in the script), and against n.
peers python="python3":
    {{python}} fairtte-metrics/benches/peers/compare.py
    cargo bench -p fairtte-metrics --bench peers -- scaling
