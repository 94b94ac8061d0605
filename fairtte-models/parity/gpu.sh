#!/usr/bin/env bash
# Everything that is to be measured on a machine with a GPU, with the results in a folder:
#
#     bash fairtte-models/parity/gpu.sh RESULTS [DEVICE ..]
#
# RESULTS is a folder. DEVICEs are those of `fairtte list devices`: by default cuda:0, tch-cuda:0 and wgpu, of which those are
# measured that can be built or have a program. What a build of each needs is in docs/src/performance.md.
#
# Variables:
#   STEPS         what is done, by default "bench pytorch whole profile"; "build" makes the programs and nothing else
#   PROGRAMS      folder of the programs (fairtte-cuda, fairtte-tch, fairtte-wgpu, fairtte-flex), RESULTS/programs if not given
#   PYTHON        a Python with torch, torchvision and timm, for the step pytorch; python3 if not given
#   SECONDS_EACH  time of each measurement of training and of inference; 10 if not given
#   SMALL=1       small networks and a small cohort, to try the script without a GPU: SMALL=1 gpu.sh RESULTS flex
#
# A machine with a GPU may be there for minutes only, without a network:
#   1. Before, on a machine of the same glibc with a network: STEPS=build PROGRAMS=programs gpu.sh RESULTS cuda:0 wgpu
#      (flex is built too), and copy the folder of programs beside the checkout. Nothing is compiled where a program is there.
#   2. There, one step in each call, so that none takes long. With 4 networks in 2 precisions a call of bench takes 4 x 2 x 2 x
#      SECONDS_EACH and the first steps, in which kernels are compiled: about 5 minutes a device with SECONDS_EACH=5.
#      pytorch takes 4 x 4 x 2 x SECONDS_EACH and what torch.compile needs, whole some minutes on flex and less on a GPU, profile a
#      minute. Of a short stay the order of use is: bench cuda:0, pytorch, whole, profile, bench wgpu.
#
# A step that fails is reported and the next one begins; the exit code is then 1.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

results=${1:?usage: gpu.sh RESULTS [DEVICE ..]}
shift
devices=("$@")
[ ${#devices[@]} -gt 0 ] || devices=(cuda:0 tch-cuda:0 wgpu)
mkdir -p "$results"
results=$(cd "$results" && pwd)
programs=${PROGRAMS:-$results/programs}
mkdir -p "$programs"
programs=$(cd "$programs" && pwd)
steps=${STEPS:-bench pytorch whole profile}
python=${PYTHON:-python3}
seconds=${SECONDS_EACH:-10}
target=${CARGO_TARGET_DIR:-$PWD/target}
failed=()

cases=("efficientnet-b0 3x224x224 64" "resnet18 3x224x224 64" "vit-large/16 3x224x224 16" "resnet18-3d 3x96x128x128 8")
cohort=(--config configs/demo.toml)
if [ -n "${SMALL:-}" ]; then
    cases=("efficientnet-b0 3x32x32 8" "resnet18-3d 3x8x16x16 2")
    cohort+=(--set data.simulated.n-subjects=200 --set training.epochs=2)
fi

try() {
    echo "== $*"
    if ! "$@"; then
        failed+=("$*")
        echo "== failed: $*"
    fi
}

is_wanted() { [[ " $steps " == *" $1 "* ]]; }

# program DEVICE: the program with the back end of the device, built if there is none yet.
program() {
    local feature=${1%%:*}
    feature=${feature%-cuda}
    local built=$programs/fairtte-$feature
    if [ ! -x "$built" ]; then
        local options=(--features "$feature")
        [ "$feature" != flex ] || options=()
        cargo build --release -p fairtte-cli "${options[@]}" >&2 || return 1
        strip -o "$built" "$target/release/fairtte" || return 1
    fi
    echo "$built"
}

build() { program "$1" >/dev/null; }

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

# pytorch: the networks of all files of bench, in PyTorch.
pytorch() {
    local measured options=()
    mapfile -t measured < <(ls "$results"/bench-*.json 2>/dev/null)
    if [ ${#measured[@]} -eq 0 ]; then
        echo "no results of bench in $results" >&2
        return 1
    fi
    [ -z "${SMALL:-}" ] || options=(--device cpu --modes eager channels-last)
    ! is_wanted profile || options+=(--profile)
    "$python" fairtte-models/parity/gpu.py "${measured[@]}" --seconds "$seconds" --output "$results/pytorch.json" "${options[@]}" |
        tee "$results/pytorch.txt"
}

# whole DEVICE: a training on simulated films, for its C^td.
whole() {
    local device=$1 fairtte
    fairtte=$(program "$device") || return 1
    "$fairtte" train "${cohort[@]}" --device "$device" --set "output=$results/run-${device/:/-}" --set "cache=$results/cache" --json \
        >"$results/run-${device/:/-}.json"
}

# same: the C^td of every whole training beside that of flex, in whose interval it must be.
same() {
    "$python" - "$results"/run-*.json <<'PYTHON' | tee "$results/c-td.txt"
import json, os, sys

def c_td(path):
    report = json.load(open(path))
    return next(metric["overall"] for metric in report["metrics"] if metric["name"] == "c_td_antolini_strict")

found = {os.path.basename(path)[4:-5]: c_td(path) for path in sys.argv[1:] if os.path.getsize(path)}
if "flex" not in found:
    sys.exit("there is no training on flex to compare with")
low, high = found["flex"]["lower"], found["flex"]["upper"]
outside = []
for device, value in found.items():
    inside = low <= value["value"] <= high
    outside += [] if inside else [device]
    print(f"C^td on {device}: {value['value']:.4f}, {'' if inside else 'not '}in the interval of flex, {low:.4f} to {high:.4f}")
sys.exit(f"other C^td than on flex: {', '.join(outside)}" if outside else 0)
PYTHON
}

# profile DEVICE: the kernels of a training of the first case by their time, from CubeCL's own log; for LibTorch from nsys, if it is there.
profile() {
    local device=$1 fairtte backbone shape batch log
    fairtte=$(program "$device") || return 1
    read -r backbone shape batch <<<"${cases[0]}"
    log=$results/profile-${device/:/-}
    local call=("$fairtte" bench --device "$device" --backbone "$backbone" --shape "$shape" --batch "$batch" --seconds 0.1 --no-layers)
    case $device in
    cuda* | wgpu*) CUBECL_DEBUG_OPTION=profile-medium CUBECL_DEBUG_LOG=$log.log "${call[@]}" >"$log.txt" ;;
    flex) "${call[@]:0:${#call[@]}-1}" >"$log.txt" ;; # with the share of the peak by type of layer
    *)
        if ! command -v nsys >/dev/null; then
            echo "nsys is not there: no profile of $device"
            return 0
        fi
        nsys profile --stats=true --force-overwrite=true -o "$log" "${call[@]}" >"$log.txt"
        ;;
    esac
}

if is_wanted build; then
    for device in flex "${devices[@]}"; do
        try build "$device"
    done
fi
{ nvidia-smi || true; lscpu || true; } >"$results/machine.txt" 2>&1
if is_wanted bench; then
    for device in "${devices[@]}"; do
        try bench "$device"
    done
fi
! is_wanted pytorch || try pytorch
if is_wanted whole; then
    [[ " ${devices[*]} " == *" flex "* ]] || try whole flex
    for device in "${devices[@]}"; do
        try whole "$device"
    done
    try same
fi
if is_wanted profile; then
    for device in "${devices[@]}"; do
        try profile "$device"
    done
fi
if [ ${#failed[@]} -gt 0 ]; then
    printf 'failed: %s\n' "${failed[@]}"
    exit 1
fi
