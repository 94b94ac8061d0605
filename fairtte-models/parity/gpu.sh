#!/usr/bin/env bash
# Everything that is to be measured on a machine with a GPU, in one run, with the results in a folder:
#
#     bash fairtte-models/parity/gpu.sh RESULTS [DEVICE ..]
#
# RESULTS is a folder. DEVICEs are those of `fairtte list devices`: by default cuda:0 and tch-cuda:0, of which those are measured
# that can be built (cuda needs the network for its compiler, or a folder with it; tch needs LIBTORCH, see docs/src/performance.md).
# PYTHON (python3) has torch, torchvision and timm. PROGRAMS names a folder with one program per device, built before
# (fairtte-cuda, fairtte-tch, fairtte-flex), for a machine without the network. SECONDS_EACH (10) is the time for each measurement,
# SMALL=1 takes small networks to try the script without a GPU.
#
# A step that fails is reported and the next one begins, because a machine may be there for minutes only.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

results=${1:?usage: gpu.sh RESULTS [DEVICE ..]}
shift
devices=("$@")
[ ${#devices[@]} -gt 0 ] || devices=(cuda:0 tch-cuda:0)
mkdir -p "$results"
results=$(cd "$results" && pwd)
python=${PYTHON:-python3}
seconds=${SECONDS_EACH:-10}
target=${CARGO_TARGET_DIR:-$PWD/target}
failed=()

cases=("efficientnet-b0 3x224x224 64" "resnet18 3x224x224 64" "vit-large/16 3x224x224 16" "resnet18-3d 3x96x128x128 8")
[ -z "${SMALL:-}" ] || cases=("efficientnet-b0 3x32x32 8" "resnet18-3d 3x8x16x16 2")

try() {
    echo "== $*"
    if ! "$@"; then
        failed+=("$*")
        echo "== failed: $*"
    fi
}

# program DEVICE: the program with the back end of the device, built if there is none yet.
program() {
    local feature=${1%%:*}
    feature=${feature%-cuda}
    local built=${PROGRAMS:-$results/programs}/fairtte-$feature
    if [ ! -x "$built" ]; then
        local options=(--features "$feature")
        [ "$feature" != flex ] || options=()
        cargo build --release -p fairtte-cli "${options[@]}" >&2 || return 1
        mkdir -p "$(dirname "$built")" && cp "$target/release/fairtte" "$built" || return 1
    fi
    echo "$built"
}

# bench DEVICE: every case in a file of its own, so that one that fails leaves the others.
bench() {
    local device=$1 fairtte backbone shape batch case precision
    fairtte=$(program "$device") || return 1
    for case in "${cases[@]}"; do
        read -r backbone shape batch <<<"$case"
        for precision in f32 bf16; do
            try "$fairtte" bench --device "$device" --backbone "$backbone" --shape "$shape" --batch "$batch" --seconds "$seconds" \
                --precision "$precision" --no-layers --output "$results/bench-${device/:/-}-${backbone/\//-}-$precision.json"
        done
    done
}

# whole DEVICE: a training on simulated films, for its C^td.
whole() {
    local device=$1 fairtte
    fairtte=$(program "$device") || return 1
    "$fairtte" train --config configs/demo.toml --device "$device" --set "output=$results/run-${device/:/-}" \
        --set "cache=$results/cache" --json >"$results/run-${device/:/-}.json"
}

{ nvidia-smi || true; lscpu || true; } >"$results/machine.txt" 2>&1
for device in "${devices[@]}"; do
    try bench "$device"
done
mapfile -t measured < <(ls "$results"/bench-*.json 2>/dev/null)
if [ ${#measured[@]} -gt 0 ]; then
    modes=()
    [ -z "${SMALL:-}" ] || modes=(--device cpu --modes eager channels-last)
    try "$python" fairtte-models/parity/gpu.py "${measured[@]}" --seconds "$seconds" --output "$results/pytorch.json" "${modes[@]}"
fi
for device in flex "${devices[@]}"; do
    try whole "$device"
done
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
