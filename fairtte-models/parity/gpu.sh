#!/usr/bin/env bash
# Everything that is to be measured on a machine with a GPU, with the results in a folder:
#
#     bash fairtte-models/parity/gpu.sh RESULTS [DEVICE ..]
#
# RESULTS is a folder. DEVICEs are those of `fairtte list devices`: by default cuda:0, tch-cuda:0 and wgpu, of which those are
# measured that have a program, or can be built, and compute a step there. What a build of each needs is in docs/src/devices.md.
#
# Variables:
#   STEPS         what is done, by default "together bench pytorch profile"; "build" makes the programs and nothing else
#   PROGRAMS      folder of the programs, RESULTS/programs if not given: fairtte-cuda, fairtte-tch, fairtte-wgpu, fairtte-flex, the
#                 tests tests-cuda, tests-tch, tests-wgpu of the crate fairtte-models, and deps/program, the tests of the program
#   PYTHON        a Python with torch, torchvision and timm; python3 if not given. LibTorch for the programs with tch is its torch
#   SECONDS_EACH  time of each measurement of training and of inference; 10 if not given
#   LIMIT         seconds after which one call is ended, and killed 10 s later; 900 if not given. Four times that for the step pytorch
#   WORK          folder of runs, caches and logs that are not results; RESULTS/work if not given
#   ARCHIVE       a file: the results (text and JSON) as tar.gz, written again after every call, so that nothing is lost when the
#                 machine is taken away
#   SMALL=1       small networks and a small cohort, to try the script without a GPU: SMALL=1 gpu.sh RESULTS flex
#
# Steps:
#   together  what needs no quiet machine, all at once: a whole training on every device and on flex, whose C^td must agree; the recorded
#             operations and gradients of PyTorch; trainings with every head, strategy and network beside flex; and torch.compile, whose
#             results stay in its cache on disk for the step pytorch
#   bench     fairtte bench, every network in f32 and bf16
#   pytorch   the same networks in PyTorch: eager, channels_last, bf16, torch.compile
#   profile   the kernels of a training step
#
# A machine with a GPU may be there for minutes only, without a network:
#   1. Before, on a machine of the same glibc or an older one with a network: STEPS=build PROGRAMS=programs gpu.sh RESULTS cuda:0 wgpu
#      (flex is built too, and all tests), and copy the folder of programs beside the checkout. Nothing is compiled where a program is
#      there. A program for cuda and wgpu has 226 MB; xz --x86 --lzma2=preset=9e makes 44 MB of it.
#   2. There: SECONDS_EACH=1 LIMIT=150, a step at a time (STEPS=bench ..), that of the first DEVICE first. together takes as long as its
#      longest part, bench 4 x 2 x (2 x SECONDS_EACH + the first step, in which kernels are compiled) for each device, pytorch 4 x 4 x 2 x
#      SECONDS_EACH and a minute or two for torch.compile.
#
# Products in single precision: CubeCL (cuda) and cuDNN (convolutions of tch-cuda and PyTorch) may round their factors to TF32 on tensor
# cores, 10 bits in place of 23. The recorded operations are compared on tch-cuda without it (NVIDIA_TF32_OVERRIDE=0); on cuda they can
# exceed their bounds for this reason. pytorch.txt says what PyTorch allowed.
#
# A call that fails or is ended is reported and the next one begins; the exit code is then 1.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

results=${1:?usage: gpu.sh RESULTS [DEVICE ..]}
shift
devices=("$@")
[ ${#devices[@]} -gt 0 ] || devices=(cuda:0 tch-cuda:0 wgpu)
mkdir -p "$results"
results=$(cd "$results" && pwd)
programs=${PROGRAMS:-$results/programs}
mkdir -p "$programs"
programs=$(cd "$programs" && pwd)
steps=${STEPS:-together bench pytorch profile}
python=${PYTHON:-python3}
seconds=${SECONDS_EACH:-10}
limit=${LIMIT:-900}
target=${CARGO_TARGET_DIR:-$PWD/target}
work=${WORK:-$results/work}
mkdir -p "$work"
work=$(cd "$work" && pwd)
archive=${ARCHIVE:+$(realpath -m -- "$ARCHIVE")}
export TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$work/inductor}

cases=("efficientnet-b0 3x224x224 64" "resnet18 3x224x224 64" "vit-large/16 3x224x224 16" "resnet18-3d 3x96x128x128 8")
cohort=(--config configs/demo.toml)
if [ -n "${SMALL:-}" ]; then
    cases=("efficientnet-b0 3x32x32 8" "resnet18-3d 3x8x16x16 2")
    cohort+=(--set data.simulated.n-subjects=200 --set training.epochs=2)
fi

# Steps may be done by several calls, whose failures are all kept.
began=$(date +%FT%T)
failed=$results/failed-$began.txt

try() {
    echo "== $*"
    if ! "$@"; then
        echo "$*" >>"$failed"
        echo "== failed: $*"
    fi
    keep
}

# keep: the archive of the results so far; several calls may end at once, so that one waits for the other.
keep() {
    [ -n "$archive" ] || return 0
    (
        flock 9
        cd "$results" || exit
        find . -maxdepth 1 -type f \( -name '*.txt' -o -name '*.json' -o -name '*.log.gz' \) -print0 |
            tar -czf "$archive.part" --null --files-from=- --ignore-failed-read 2>/dev/null
        # 1: a file changed while it was read.
        [ $? -le 1 ] && mv -f "$archive.part" "$archive"
    ) 9>"$work/archive.lock"
}

limited() { timeout --kill-after=10 "$limit" "$@"; }

is_wanted() { [[ " $steps " == *" $1 "* ]]; }

# feature DEVICE: the feature of cargo with its back end.
feature() {
    local feature=${1%%:*}
    echo "${feature%-cuda}"
}

# of_torch: the folders of the libraries of PYTHON's torch and of NVIDIA's packages beside it.
of_torch() {
    local torch
    torch=$("$python" -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])') || return 1
    echo "$torch/lib$(printf ':%s' "$(dirname "$torch")"/nvidia/*/lib "$(dirname "$torch")"/nvidia/*/*/lib)"
}

# with_libraries DEVICE COMMAND ..: runs the command, for LibTorch with the libraries of PYTHON's torch before all others, for cuda with
# those of its packages (libnvrtc) after all others, and with CUDA_PATH, from which libdevice is read.
with_libraries() {
    local path=${LD_LIBRARY_PATH:-} feature found compiler
    feature=$(feature "$1")
    case $feature in
    tch)
        found=$(of_torch) || return 1
        path=$found${path:+:$path}
        ;;
    cuda)
        if found=$(of_torch 2>/dev/null); then path=${path:+$path:}$found; fi
        if [ -z "${CUDA_PATH:-}" ] && [ ! -d /usr/local/cuda ] && compiler=$(command -v nvcc); then
            export CUDA_PATH=${compiler%/bin/nvcc}
        fi
        ;;
    esac
    shift
    LD_LIBRARY_PATH=$path limited "$@"
}

# stripped FROM TO: a program without symbols, whole or not at all.
stripped() { strip -o "$2.part" "$1" && mv "$2.part" "$2"; }

# program DEVICE: the program with the back end of the device, built if there is none yet.
program() {
    local feature options=()
    feature=$(feature "$1")
    if [ ! -x "$programs/fairtte-$feature" ]; then
        [ "$feature" = flex ] || options=(--features "$feature")
        cargo build --release -p fairtte-cli "${options[@]}" >&2 || return 1
        stripped "$target/release/fairtte" "$programs/fairtte-$feature" || return 1
    fi
    echo "$programs/fairtte-$feature"
}

# tests DEVICE: the unit tests of fairtte-models for the device, or those of the program for "program"; built if there are none yet.
tests() {
    local feature to options=(-p fairtte-models --lib) built
    feature=$(feature "$1")
    to=$programs/tests-$feature
    case $feature in
    program) options=(-p fairtte-tests --test program) to=$programs/deps/program ;;
    flex) ;;
    *) options+=(--features "$feature") ;;
    esac
    if [ ! -x "$to" ]; then
        built=$(cargo test --release --no-run --message-format=json "${options[@]}" |
            "$python" -c 'import json, sys; print([e for e in (json.loads(l).get("executable") for l in sys.stdin) if e][-1])') || return 1
        mkdir -p "$(dirname "$to")"
        stripped "$built" "$to" || return 1
    fi
    echo "$to"
}

build() { program "$1" >/dev/null; }

build_tests() { tests "$1" >/dev/null; }

# build_all: the programs of flex and the devices and their tests, one after the other, because they are built into one folder.
build_all() {
    local device
    try build_tests program
    for device in flex "${devices[@]}"; do
        try build "$device"
        try build_tests "$device"
    done
}

# computes DEVICE: whether the device takes a step of a small network.
computes() {
    local device=$1 fairtte
    rm -f "$results/computes-${device/:/-}.txt"
    fairtte=$(program "$device") || return 1
    with_libraries "$device" "$fairtte" bench --device "$device" --backbone mlp --seconds 0.01 --no-layers >"$results/computes-${device/:/-}.txt" 2>&1
}

# bench DEVICE: every case in a file of its own, so that one that fails leaves the others.
bench() {
    local device=$1 fairtte backbone shape batch case precision
    fairtte=$(program "$device") || return 1
    for case in "${cases[@]}"; do
        read -r backbone shape batch <<<"$case"
        for precision in f32 bf16; do
            try with_libraries "$device" "$fairtte" bench --device "$device" --backbone "$backbone" --shape "$shape" --batch "$batch" --seconds "$seconds" \
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
    limit=$((limit * ${#cases[@]})) limited "$python" fairtte-models/parity/gpu.py "${measured[@]}" --seconds "$seconds" --output "$results/pytorch.json" "${options[@]}" |
        tee "$results/pytorch.txt"
}

# whole DEVICE: a training on simulated films, for its C^td.
whole() {
    local device=$1 fairtte
    fairtte=$(program "$device") || return 1
    local name=${device/:/-}
    with_libraries "$device" "$fairtte" train "${cohort[@]}" --device "$device" --set "output=$work/run-$name" \
        --set "cache=$work/cache-$name" --json >"$results/run-$name.json" 2>"$results/run-$name.txt"
}

# golden DEVICE: operations and gradients of whole networks beside those recorded of PyTorch in double precision.
golden() {
    local device=$1 tests named=${1%:*}
    tests=$(tests "$device") || return 1
    [ "$device" != flex ] || named=
    (
        cd fairtte-models || exit 1
        [ -z "$named" ] || export FAIRTTE_TEST_DEVICE=$named
        [ "$named" != tch-cuda ] || export NVIDIA_TF32_OVERRIDE=0
        with_libraries "$device" "$tests" --nocapture fast::tests::golden gradients_of_whole fast::tests::networks every_network
    ) >"$results/golden-${device/:/-}.txt" 2>&1
}

# beside DEVICE: short trainings with every head, strategy and network on the device and on flex.
beside() {
    local device=$1 fairtte tests folder=$work/beside-${1/:/-} text=$results/beside-${1/:/-}.txt
    fairtte=$(program "$device") || return 1
    tests=$(tests program) || return 1
    # The tests take the program one folder above them.
    mkdir -p "$folder/deps"
    cp "$tests" "$folder/deps/program"
    ln -sf "$fairtte" "$folder/fairtte"
    FAIRTTE_TEST_DEVICE=$device with_libraries "$device" "$folder/deps/program" --nocapture devices >"$text" 2>&1
    local code=$?
    rm -r "$folder"
    return $code
}

# compile NETWORK: one step and one inference by torch.compile, for its cache on disk.
compile() {
    limited "$python" fairtte-models/parity/gpu.py --networks "$1" --modes compile --seconds 0.01 >/dev/null
}

together() {
    local device case backbone shape batch
    if [ -z "${SMALL:-}" ]; then
        for case in "${cases[@]}"; do
            read -r backbone shape batch <<<"$case"
            try compile "$backbone:${batch}x$shape" &
        done
    fi
    [[ " ${devices[*]} " == *" flex "* ]] || try whole flex &
    for device in "${devices[@]}"; do
        try whole "$device" &
        try golden "$device" &
        try beside "$device" &
    done
    wait
    try same
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
    rm -f "$log.log" "$log.log.gz"
    local call=("$fairtte" bench --device "$device" --backbone "$backbone" --shape "$shape" --batch "$batch" --seconds 0.1 --no-layers)
    case $device in
    cuda* | wgpu*)
        local code=0
        CUBECL_DEBUG_OPTION=profile-medium CUBECL_DEBUG_LOG=$log.log with_libraries "$device" "${call[@]}" >"$log.txt" || code=$?
        # The log also has what autotune tried, and is long.
        gzip -f "$log.log" || code=1
        return $code
        ;;
    flex) limited "${call[@]:0:${#call[@]}-1}" >"$log.txt" ;; # with the share of the peak by type of layer
    *)
        if ! command -v nsys >/dev/null; then
            echo "nsys is not there, no profile of $device" >&2
            return 1
        fi
        with_libraries "$device" nsys profile --stats=true --force-overwrite=true -o "$work/profile-${device/:/-}" "${call[@]}" >"$log.txt"
        ;;
    esac
}

! is_wanted build || build_all
{ nvidia-smi || true; lscpu || true; } >"$results/machine.txt" 2>&1
if is_wanted together || is_wanted bench || is_wanted profile; then
    # One after the other: programs are built into one folder.
    found=()
    for device in "${devices[@]}"; do
        echo "== computes $device"
        if computes "$device"; then
            found+=("$device")
        else
            echo "computes $device" >>"$failed"
            echo "== left out: $device: $(tail -n 1 "$results/computes-${device/:/-}.txt" 2>/dev/null)"
        fi
    done
    devices=("${found[@]}")
fi
if is_wanted together; then
    build_all
    together
fi
if is_wanted bench; then
    for device in "${devices[@]}"; do
        try bench "$device"
    done
fi
! is_wanted pytorch || try pytorch
if is_wanted profile; then
    for device in "${devices[@]}"; do
        try profile "$device"
    done
fi
keep
if [ -s "$failed" ]; then
    echo "failed:"
    cat "$failed"
    exit 1
fi
