//! Every option of every command in every mode, with its effect.

use Effect::{Allows, Between, Changes, Instead, OnlySpeed, Refused, Shown};

/// What an option does in a mode. A text of arguments is cut at its spaces.
#[derive(Clone)]
pub enum Effect {
    /// Added to the call of the mode, these arguments change its results.
    Changes(&'static str),
    /// Added to the call of the mode, these arguments change what it shows, and need not change a result.
    Shown(&'static str),
    /// This call is refused, and with the arguments it succeeds.
    Allows(String, &'static str),
    /// The call with the first arguments leaves something else than with the second.
    Between(&'static str, &'static str),
    /// The call of the mode has the option; this call, with another value or without it, leaves something else.
    Instead(String),
    /// Added to the call of the mode, these arguments are an error with this text.
    Refused(&'static str, &'static str),
    /// The results do not depend on the number of threads, which is a promise of the program; a dry run shows it.
    OnlySpeed(&'static str),
}

/// A way to use a command.
pub struct Mode {
    pub command: &'static str,
    pub name: &'static str,
    /// A call without the options that the table adds.
    pub base: String,
    pub options: Vec<(&'static str, Effect)>,
}

const THREADS: (&str, Effect) = ("--threads", OnlySpeed("--threads 1"));
const SHOWN_THREADS: (&str, Effect) = ("--threads", Changes("--threads 3"));
const JSON: (&str, Effect) = ("--json", Changes("--json"));
const DRY_RUN: (&str, Effect) = ("--dry-run", Changes("--dry-run"));
const DEVICE: (&str, Effect) = ("--device", Changes("--device flex:0"));

/// The call of a mode without these of its arguments, in one piece.
fn without(base: &str, arguments: &str) -> Effect {
    assert!(base.contains(arguments), "{base} has no {arguments}");
    Instead(base.replacen(arguments, "", 1))
}

/// The call of a mode with other arguments in the place of some.
fn with(base: &str, arguments: &str, others: &str) -> Effect {
    assert!(base.contains(arguments), "{base} has no {arguments}");
    Instead(base.replacen(arguments, others, 1))
}

pub fn modes() -> Vec<Mode> {
    let all = [
        training,
        prediction,
        preparation,
        simulation,
        published,
        evaluation,
        masks,
        bias,
        method_tests,
        experiments,
        card,
        selection,
        studies,
        clusters,
        files,
        program,
    ];
    all.into_iter().flat_map(|modes: fn() -> Vec<Mode>| modes()).collect()
}

fn mode(command: &'static str, name: &'static str, base: &str, options: Vec<(&'static str, Effect)>) -> Mode {
    Mode { command, name, base: base.to_owned(), options }
}

/// The commands that train are called as dry runs; without `--dry-run` these calls fail at their data or output.
fn training() -> Vec<Mode> {
    let demo = "demo --output taken --quick --dry-run --json";
    let train = "train --config absent.toml --dry-run --json";
    let resume = "train --resume-from several/run --dry-run --json";
    let compare = "compare --config compare.toml --dry-run --json";
    let shared = |base: &'static str| {
        vec![
            ("--set", Changes("--set seed=3")),
            ("--dry-run", without(base, "--dry-run")),
            ("--json", without(base, "--json")),
            SHOWN_THREADS,
            DEVICE,
        ]
    };
    let of = |base: &'static str, own: Vec<(&'static str, Effect)>| own.into_iter().chain(shared(base)).collect();
    let output = || ("--output", Changes("--output elsewhere"));
    vec![
        mode(
            "demo",
            "dry run",
            demo,
            of(demo, vec![("--output", with(demo, "taken", "elsewhere")), ("--quick", without(demo, "--quick"))]),
        ),
        mode(
            "train",
            "a run file",
            train,
            of(
                train,
                vec![
                    ("--config", Changes("--config more.toml")),
                    ("--resume-from", Changes("--resume-from several/run")),
                    output(),
                ],
            ),
        ),
        mode(
            "train",
            "resumption",
            resume,
            of(
                resume,
                vec![
                    ("--config", Changes("--config more.toml")),
                    ("--resume-from", without(resume, "--resume-from several/run")),
                    output(),
                ],
            ),
        ),
        mode(
            "compare",
            "dry run",
            compare,
            of(
                compare,
                vec![
                    ("--config", Changes("--config more.toml")),
                    output(),
                    ("--jobs", OnlySpeed("--jobs 2")),
                    ("--figures", Changes("--figures paper")),
                    ("--tables", Changes("--tables paper")),
                ],
            ),
        ),
    ]
}

/// Predictions and features of a run for a table of other images.
fn prediction() -> Vec<Mode> {
    let predict = "predict several/run --table data/table.csv --set data.generic.time-unit=years --output predicted";
    let file = "predict several/run --data images.toml --output predicted";
    let folds = "predict several/run --out-of-fold --output predicted";
    let shared = |base: &str| {
        vec![
            ("RUN", with(base, "several/run", "several/run several/run")),
            ("--output", with(base, "--output predicted", "--output elsewhere")),
            ("--horizon", Changes("--horizon 1")),
            THREADS,
            DRY_RUN,
            JSON,
        ]
    };
    let of = |base: &str, own: Vec<(&'static str, Effect)>| shared(base).into_iter().chain(own).collect();
    let network = |base: &str| {
        // Times in the unit of the run are not multiplied.
        let (of_run, days) = if base.contains("time-unit=years") {
            ("time-unit=years", "time-unit=days --time-factor 2")
        } else {
            ("--output predicted", "--set data.generic.time-unit=days --time-factor 2 --output predicted")
        };
        vec![
            ("--epoch", Refused("--epoch 99", "is no epoch whose weights were kept")),
            ("--time-factor", with(base, of_run, days)),
            ("--level", Changes("--level sex.F=M")),
            ("--no-outcomes", Changes("--no-outcomes")),
            ("--allow-training-images", OnlySpeed("--allow-training-images")),
            ("--out-of-fold", Refused("--out-of-fold", EXCLUDES)),
            ("--cache", Changes("--cache elsewhere")),
            ("--device", Refused("--device nowhere", "is unknown")),
            ("--set", with(base, "--output predicted", "--output predicted --set data.generic.name=other")),
        ]
    };
    let own_folds = ["--epoch 1", "--time-factor 2", "--level sex.a=F", "--no-outcomes", "--allow-training-images"];
    let names = ["--epoch", "--time-factor", "--level", "--no-outcomes", "--allow-training-images"];
    let pooled = names.into_iter().zip(own_folds).chain([
        ("--data", "--data images.toml"),
        ("--table", "--table data/table.csv"),
        ("--image-root", "--image-root data"),
        ("--set", "--set seed=3"),
        ("--cache", "--cache elsewhere"),
        ("--device", "--device flex"),
    ]);
    let pooled = pooled.map(|(name, extra)| (name, Refused(extra, EXCLUDES)));
    let pooled = pooled.chain([("--out-of-fold", without(folds, "--out-of-fold"))]).collect();
    let tables = vec![
        ("--data", Refused("--data images.toml", EXCLUDES)),
        ("--table", with(predict, "data/table.csv", "data/absent.csv")),
        ("--image-root", Refused("--image-root elsewhere", "after decoding")),
    ];
    let files = vec![
        ("--data", with(file, "images.toml", "other.toml")),
        ("--table", Refused("--table data/table.csv", EXCLUDES)),
        ("--image-root", Refused("--image-root data", EXCLUDES)),
    ];
    vec![
        mode("predict", "a table", predict, of(predict, [tables, network(predict)].concat())),
        mode("predict", "a run file", file, of(file, [files, network(file)].concat())),
        mode("predict", "folds", folds, of(folds, pooled)),
        mode("features", "a run", FEATURES, of_features()),
        mode("features", "a file of weights", FEATURES_OF_FILE, of_features_of_file()),
        mode("explain", "a run file", EXPLAIN_FILE, of_explained_file()),
        mode("explain", "the worst", EXPLAIN_WORST, of_worst()),
        mode("explain", "a table", EXPLAIN_TABLE, of_explained_table()),
    ]
}

const EXPLAIN_WORST: &str = "explain several/run --worst 1 --horizon 2 --steps 4 --patch 16 --output explained";
const EXPLAIN_TABLE: &str =
    "explain several/run --table data/table.csv --samples 3.png --horizon 2 --steps 4 --patch 16 --output explained";

/// The options of `explain` that are about maps.
fn of_maps(base: &'static str) -> Vec<(&'static str, Effect)> {
    vec![
        ("RUN", with(base, "several/run", "several/absent")),
        ("--horizon", with(base, "--horizon 2", "--horizon 3")),
        ("--method", with(base, "--steps 4", "--method occlusion")),
        ("--attribute", Changes("--attribute age")),
        ("--fill", Changes("--fill image-mean")),
        ("--patch", with(base, "--patch 16", "--patch 20")),
        ("--stride", Changes("--stride 16")),
        ("--steps", with(base, "--steps 4", "--steps 5")),
        ("--randomised", Changes("--randomised")),
        ("--epoch", Refused("--epoch 99", "is no epoch whose weights were kept")),
        ("--output", with(base, "--output explained", "--output elsewhere")),
        ("--device", Refused("--device nowhere", "is unknown")),
        THREADS,
        JSON,
    ]
}

fn of_worst() -> Vec<(&'static str, Effect)> {
    let own = vec![
        ("--samples", Refused("--samples 3.png", EXCLUDES)),
        ("--worst", with(EXPLAIN_WORST, "--worst 1", "--worst 2")),
        ("--part", Changes("--part validation")),
        ("--data", Refused("--data images.toml", EXCLUDES)),
        ("--table", Refused("--table data/table.csv", EXCLUDES)),
        ("--image-root", Refused("--image-root data", "--table")),
        ("--set", Refused("--set seed=3", "--set")),
        ("--cache", Refused("--cache elsewhere", "--cache")),
    ];
    own.into_iter().chain(of_maps(EXPLAIN_WORST)).collect()
}

fn of_explained_table() -> Vec<(&'static str, Effect)> {
    let own = vec![
        ("--samples", with(EXPLAIN_TABLE, "3.png", "4.png")),
        ("--worst", Refused("--worst 1", EXCLUDES)),
        ("--part", Refused("--part test", EXCLUDES)),
        ("--data", Refused("--data images.toml", EXCLUDES)),
        ("--table", with(EXPLAIN_TABLE, "data/table.csv", "data/absent.csv")),
        ("--image-root", Refused("--image-root elsewhere", "after decoding")),
        ("--set", Refused("--set data.generic.image=absent", "absent")),
        ("--cache", Changes("--cache elsewhere")),
    ];
    let maps = of_maps(EXPLAIN_TABLE).into_iter().filter(|(name, _)| *name != "--attribute");
    // The table has no ages.
    own.into_iter().chain(maps).chain([("--attribute", Refused("--attribute age", "age"))]).collect()
}

const EXPLAIN_FILE: &str =
    "explain several/run --data images.toml --samples 3.png --horizon 2 --steps 4 --patch 16 --output explained";

fn of_explained_file() -> Vec<(&'static str, Effect)> {
    let own = [
        ("--samples", with(EXPLAIN_FILE, "3.png", "4.png")),
        ("--worst", Refused("--worst 1", EXCLUDES)),
        ("--part", Refused("--part test", EXCLUDES)),
        ("--data", with(EXPLAIN_FILE, "images.toml", "absent.toml")),
        ("--table", Refused("--table data/table.csv", EXCLUDES)),
        ("--image-root", Refused("--image-root data", EXCLUDES)),
        ("--set", Refused("--set data.generic.image=absent", "absent")),
        ("--cache", Changes("--cache elsewhere")),
        // The images have no ages.
        ("--attribute", Refused("--attribute age", "age")),
    ];
    changed(of_maps(EXPLAIN_FILE), own)
}

const FEATURES_OF_FILE: &str = "features --pretrained gray.safetensors --config images.toml --output features.parquet";

fn of_features_of_file() -> Vec<(&'static str, Effect)> {
    let own_data = "the data of --pretrained are those of --config";
    vec![
        ("RUN", Refused("several/run", EXCLUDES)),
        ("--pretrained", with(FEATURES_OF_FILE, "gray.safetensors", "rgb.safetensors")),
        ("--config", Changes("--config other.toml")),
        ("--layer", Refused("--layer representation", "expected --layer backbone")),
        ("--part", Changes("--part test")),
        ("--epoch", Refused("--epoch 99", EXCLUDES)),
        ("--output", with(FEATURES_OF_FILE, "features.parquet", "others.parquet")),
        ("--data", Refused("--data other.toml", own_data)),
        ("--table", Refused("--table data/table.csv", own_data)),
        ("--image-root", Refused("--table data/table.csv --image-root data", own_data)),
        ("--set", Changes("--set seed=3")),
        ("--cache", Changes("--cache elsewhere")),
        ("--device", Refused("--device nowhere", "is unknown")),
        THREADS,
        JSON,
    ]
}

const FEATURES: &str = "features several/run --output features.parquet";

fn of_features() -> Vec<(&'static str, Effect)> {
    vec![
        ("RUN", with(FEATURES, "several/run", "several/absent")),
        ("--pretrained", Refused("--pretrained rgb.safetensors --config images.toml", EXCLUDES)),
        ("--config", Refused("--config images.toml", EXCLUDES)),
        ("--layer", Changes("--layer representation")),
        ("--part", Changes("--part test")),
        ("--epoch", Refused("--epoch 99", "is no epoch whose weights were kept")),
        ("--output", with(FEATURES, " --output features.parquet", "")),
        ("--data", Changes("--data images.toml")),
        ("--table", Changes("--table data/table.csv")),
        ("--image-root", Refused("--image-root elsewhere", "--table")),
        ("--set", Refused("--set seed=3", "--set")),
        ("--cache", Refused("--cache elsewhere", "--cache")),
        ("--device", Refused("--device nowhere", "is unknown")),
        THREADS,
        JSON,
    ]
}

fn preparation() -> Vec<Mode> {
    let shared = || {
        vec![
            ("--config", Changes("--config more.toml")),
            ("--output", Changes("--output elsewhere")),
            ("--set", Changes("--set seed=3")),
            ("--csv", Changes("--csv")),
            DEVICE,
            SHOWN_THREADS,
        ]
    };
    let of = |own: Vec<(&'static str, Effect)>| shared().into_iter().chain(own).collect();
    let tables = "prepare --config images.toml --tables-only";
    let dry = "prepare --config images.toml --dry-run --json";
    vec![
        mode(
            "prepare",
            "images",
            "prepare --config images.toml",
            of(vec![
                ("--tables-only", Changes("--tables-only")),
                ("--verify", Shown("--verify")),
                ("--samples", Shown("--samples 1")),
                DRY_RUN,
                JSON,
            ]),
        ),
        mode(
            "prepare",
            "tables only",
            tables,
            of(vec![
                ("--tables-only", without(tables, "--tables-only")),
                ("--verify", Refused("--verify", "cannot be used with")),
                ("--samples", Refused("--samples 1", "cannot be used with")),
                DRY_RUN,
                JSON,
            ]),
        ),
        mode(
            "prepare",
            "columns of a table",
            "prepare --config columns.toml",
            of(vec![
                ("--tables-only", Changes("--tables-only")),
                ("--verify", Refused("--verify", "there are no decoded images to verify")),
                ("--samples", Refused("--samples 0", "there are no decoded images to show")),
                DRY_RUN,
                JSON,
            ]),
        ),
        mode(
            "prepare",
            "dry run",
            dry,
            of(vec![
                ("--tables-only", Changes("--tables-only")),
                ("--verify", Shown("--verify")),
                ("--samples", Changes("--samples 1")),
                ("--dry-run", without(dry, "--dry-run")),
                ("--json", without(dry, "--json")),
            ]),
        ),
    ]
}

fn simulation() -> Vec<Mode> {
    let simulate = "simulate --output cohort --set n-subjects=6 --set size=[32,32]";
    let dry_simulate = "simulate --output cohort --dry-run --json";
    let hazards = "simulate --kind hazards --output crowd --set n=6";
    let discs = "simulate --kind discs --output cups --set n-subjects=4 --set size=32";
    let simulated = |base: &'static str| {
        vec![
            ("--output", with(base, "--output cohort", "--output elsewhere")),
            ("--config", Changes("--config simulation.toml")),
            ("--set", Changes("--set bias.mi-time=1")),
            ("--seed", Changes("--seed 2")),
            ("--rows", Refused("--rows columns.csv --columns time", "expected --kind hazards")),
            ("--columns", Refused("--columns time", "--rows")),
        ]
    };
    let kind = |base: &'static str| ("--kind", with(base, base, hazards));
    let of = |base, own: Vec<(&'static str, Effect)>| simulated(base).into_iter().chain(own).collect();
    vec![
        mode("simulate", "files", simulate, of(simulate, vec![kind(simulate), THREADS, DRY_RUN, JSON])),
        mode("simulate", "hazards", hazards, of_hazards(hazards)),
        mode("simulate", "discs", discs, of_discs(discs)),
        mode(
            "simulate",
            "dry run",
            dry_simulate,
            of(
                dry_simulate,
                vec![
                    kind(dry_simulate),
                    SHOWN_THREADS,
                    ("--dry-run", with(dry_simulate, "--dry-run", "--set n-subjects=6 --set size=[32,32]")),
                    ("--json", without(dry_simulate, "--json")),
                ],
            ),
        ),
    ]
}

fn of_discs(base: &'static str) -> Vec<(&'static str, Effect)> {
    vec![
        ("--output", with(base, "--output cups", "--output elsewhere")),
        ("--kind", with(base, base, "simulate --kind hazards --output cups --set n=6")),
        ("--rows", Refused("--rows columns.csv --columns time", "expected --kind hazards")),
        ("--columns", Refused("--columns time", "--rows")),
        ("--config", Refused("--config simulation.toml", "unknown field")),
        ("--set", Changes("--set noise=0.2")),
        ("--seed", Changes("--seed 2")),
        THREADS,
        DRY_RUN,
        JSON,
    ]
}

fn of_hazards(base: &'static str) -> Vec<(&'static str, Effect)> {
    vec![
        ("--output", with(base, "--output crowd", "--output elsewhere")),
        (
            "--kind",
            with(
                base,
                "--kind hazards --output crowd --set n=6",
                "--output crowd --set n-subjects=6 --set size=[32,32]",
            ),
        ),
        (
            "--rows",
            Changes("--rows people/patients.csv --columns x0,x1 --set hazard=constant-1 --set censoring.hazard=none"),
        ),
        ("--columns", Refused("--columns time", "--rows")),
        ("--config", Refused("--config simulation.toml", "unknown field")),
        ("--set", Changes("--set follow-up.maximum=2")),
        ("--seed", Changes("--seed 2")),
        THREADS,
        DRY_RUN,
        JSON,
    ]
}

fn published() -> Vec<Mode> {
    vec![
        mode(
            "cohort check",
            "a run",
            "cohort check paper",
            vec![
                ("RUN", Instead("cohort check several/run".to_owned())),
                ("--config", Refused("--config paper.toml", "cannot be used with")),
                ("--set", Refused("--set seed=3", "cannot be used with")),
                JSON,
            ],
        ),
        mode(
            "cohort check",
            "tables",
            "cohort check --config paper.toml",
            vec![
                ("RUN", Refused("paper", "cannot be used with")),
                ("--config", Instead("cohort check".to_owned())),
                ("--set", Changes("--set data.areds.stereo=one")),
                JSON,
            ],
        ),
    ]
}

/// A small analysis of informative censoring, with one more option. Kaplan-Meier, because a Cox model of 20 samples need not
/// exist.
macro_rules! tilted {
    ($($option:literal)?) => {
        concat!(
            "--sensitivity --set sensitivity.replicates=2 --set sensitivity.deltas=[0,1] \
             --set sensitivity.model=kaplan-meier ",
            $($option)?
        )
    };
}

/// The effects of `--min-events` and `--permutations`, of which nothing depends where no groups are compared; of a table the
/// attributes are named too.
fn of_groups(of_table: bool) -> (Effect, Effect) {
    if of_table {
        (
            Between("--attributes sex --min-events 1", "--attributes sex --min-events 50"),
            Between("--attributes sex --min-events 1", "--attributes sex --min-events 1 --permutations 20"),
        )
    } else {
        (Between("--min-events 1", "--min-events 50"), Between("--min-events 1", "--min-events 1 --permutations 20"))
    }
}

/// The options that say what is computed, the same in every mode of `evaluate`.
fn scores(mode: &str) -> impl Iterator<Item = (&'static str, Effect)> {
    let reference = match mode {
        "one table" | "several models" => Between("--attributes sex", "--attributes sex --reference sex=F"),
        _ => Changes("--reference sex=F"),
    };
    let baseline = match mode {
        "external validation" => Refused("--baseline sex", "a baseline stands beside one evaluation"),
        _ => Changes("--baseline sex"),
    };
    let (min_events, permutations) = of_groups(matches!(mode, "one table" | "several models"));
    let permutations = match mode {
        "external validation" => Refused("--permutations 20", "the gap by chance stands beside one evaluation"),
        _ => permutations,
    };
    let tilt = |with: &'static str, without: &'static str| match mode {
        "several models" => Refused(with, "sensitivity to informative censoring is computed for one model"),
        "external validation" => Refused(with, "sensitivity to informative censoring stands beside one evaluation"),
        _ => Between(without, with),
    };
    let tilted_group = match mode {
        "one table" => {
            let group = concat!("--attributes sex ", tilted!("--tilt sex=F"));
            Between(concat!("--attributes sex ", tilted!()), group)
        }
        _ => tilt(tilted!("--tilt sex=F"), tilted!()),
    };
    [
        ("--metrics", Changes("--metrics c-td,rcll")),
        ("--horizon", Changes("--horizon 1.5")),
        ("--threshold", Changes("--threshold 0.3")),
        ("--min-events", min_events),
        ("--permutations", permutations),
        ("--baseline", baseline),
        ("--sensitivity", tilt(tilted!(), "")),
        ("--deltas", tilt(tilted!("--deltas -1,0"), tilted!())),
        ("--tilt", tilted_group),
        ("--administrative", tilt(tilted!("--administrative 2"), tilted!())),
        ("--imputations", tilt(tilted!("--imputations 3"), tilted!())),
        ("--reference", reference),
        ("--set", Changes("--set reading=step")),
        ("--figures", Changes("--figures paper")),
        ("--tables", Changes("--tables paper")),
    ]
    .into_iter()
}

/// What clap says of options that exclude each other.
const EXCLUDES: &str = "cannot be used with";

/// The options of `evaluate` for a run.
fn of_a_run(base: &str) -> Vec<(&'static str, Effect)> {
    vec![
        ("RUN", with(base, "several/run", "several")),
        ("--predictions", Refused("--predictions table.csv", EXCLUDES)),
        ("--attributes", Refused("--attributes sex", EXCLUDES)),
        ("--intersections", Refused("--intersections", EXCLUDES)),
        ("--train", Refused("--train train.csv", EXCLUDES)),
        ("--cause", Refused("--cause 1", EXCLUDES)),
        ("--repair", Refused("--repair monotone", EXCLUDES)),
        ("--cohort", Refused("--cohort cohort.csv", EXCLUDES)),
        ("--split", Refused("--split split.csv", EXCLUDES)),
        ("--part", Changes("--part validation")),
        ("--output", Changes("--output scores")),
        ("--sample", Refused("--sample id", EXCLUDES)),
        ("--subject", Refused("--subject patient", EXCLUDES)),
        ("--time", Refused("--time years", EXCLUDES)),
        ("--event", Refused("--event status", EXCLUDES)),
        ("--event-value", Refused("--event-value dead", EXCLUDES)),
        ("--missing", Refused("--missing unknown", EXCLUDES)),
        ("--time-unit", Refused("--time-unit days", EXCLUDES)),
        ("--title", Refused("--title Heart", EXCLUDES)),
        ("--names", Refused("--names a,b", EXCLUDES)),
        ("--reference-model", Refused("--reference-model a", EXCLUDES)),
        ("--internal", Refused("--internal several/run", "has no predict.json")),
        ("--censoring", Refused("--censoring own", "has no predict.json")),
        ("--task", Refused("--task binary", EXCLUDES)),
        ("--probability", Refused("--task binary --probability chance", EXCLUDES)),
        ("--label", Refused("--task binary --label truth", EXCLUDES)),
        ("--label-value", Refused("--task binary --label-value sick", EXCLUDES)),
        ("--validation", Refused("--task binary --validation validation.csv", EXCLUDES)),
    ]
}

/// The options of `evaluate` for a folder of `fairtte predict`, alone or beside the run.
fn of_predicted_data(name: &str, base: &str) -> Vec<(&'static str, Effect)> {
    let mut options = of_a_run(&base.replace("evaluate other", "evaluate several/run"));
    let own = [
        if name == "predicted data" {
            ("RUN", with(base, "evaluate other", "evaluate several/run"))
        } else {
            ("RUN", with(base, "evaluate other", "evaluate several"))
        },
        ("--part", Refused("--part validation", "has no parts")),
        if name == "predicted data" {
            ("--internal", Changes("--internal several/run"))
        } else {
            ("--internal", without(base, "--internal several/run"))
        },
        ("--censoring", Changes("--censoring own")),
    ];
    for (option, effect) in own {
        options.retain(|(other, _)| *other != option);
        options.push((option, effect));
    }
    options
}

/// The options that only a class has, where curves are evaluated.
fn of_curves(base: &str) -> Vec<(&'static str, Effect)> {
    let needs_task = "expected --task binary";
    let task = match (base.contains("--cohort"), base.contains("--dry-run")) {
        (true, _) => Refused("--task binary", "are read from one table"),
        (_, true) => Changes("--task binary"),
        _ => Refused("--task binary", "column \"probability\" is not in table.csv"),
    };
    vec![
        ("--task", task),
        ("--probability", Refused("--task time-to-event --probability chance", needs_task)),
        ("--label", Refused("--task time-to-event --label truth", needs_task)),
        ("--label-value", Refused("--task time-to-event --label-value sick", needs_task)),
        ("--validation", Refused("--task time-to-event --validation validation.csv", needs_task)),
    ]
}

/// All options of `evaluate --task binary`; the class is a label, or made `from times`, of one model or of several.
fn of_a_class(name: &str, base: &str) -> Vec<(&'static str, Effect)> {
    let (is_timed, several) = (name == "a class from times", name == "a class of several models");
    let either = |if_timed: Effect, if_not: Effect| if is_timed { if_timed } else { if_not };
    let no_times = |call: &'static str| either(Changes(call), Refused(call, "there are no times"));
    let no_labels = |call: &'static str| either(Refused(call, "the class is made from times"), Changes(call));
    let of_names = |call: &'static str| if several { Changes(call) } else { Refused(call, "there is one model") };
    let sensitivity = "informative censoring is analysed with curves";
    vec![
        ("RUN", Refused("several/run", EXCLUDES)),
        if several {
            ("--predictions", with(base, " --predictions other-classes.csv", ""))
        } else {
            ("--predictions", with(base, "classes.csv", "other-classes.csv"))
        },
        ("--attributes", Changes("--attributes sex")),
        ("--intersections", Between("--attributes sex,age:60", "--attributes sex,age:60 --intersections")),
        ("--train", no_times("--train train.csv")),
        ("--cause", Refused("--cause 1", "a class has no causes")),
        ("--repair", Refused("--repair monotone", "there are no curves that could rise")),
        ("--cohort", Refused("--cohort cohort.csv", "are read from one table")),
        ("--split", Refused("--split split.csv", "not provided")),
        ("--part", Refused("--part validation", "there are no parts of a table")),
        ("--output", with(base, "scores", "page.html")),
        ("--task", with(base, "--task binary ", "")),
        ("--probability", Changes("--probability chance")),
        ("--label", no_labels("--label truth")),
        ("--label-value", no_labels("--label dx --label-value sick")),
        if several {
            ("--validation", Refused("--validation validation.csv", "belongs to one model"))
        } else {
            ("--validation", Changes("--validation validation.csv"))
        },
        ("--metrics", Changes("--metrics fnr,auc")),
        if is_timed {
            ("--horizon", with(base, "--horizon 1.5", "--horizon 1"))
        } else {
            ("--horizon", Changes("--horizon 1.5"))
        },
        ("--threshold", Changes("--threshold 0.3")),
        ("--min-events", of_groups(true).0),
        ("--permutations", of_groups(true).1),
        ("--reference", Between("--attributes sex", "--attributes sex --reference sex=F")),
        ("--baseline", Refused("--baseline sex", "a Cox model has no classes")),
        ("--sensitivity", Refused("--sensitivity", sensitivity)),
        ("--deltas", Refused("--sensitivity --deltas -1,0", sensitivity)),
        ("--tilt", Refused("--sensitivity --tilt sex=F", sensitivity)),
        ("--administrative", Refused("--sensitivity --administrative 3", sensitivity)),
        ("--imputations", Refused("--sensitivity --imputations 3", sensitivity)),
        ("--sample", Changes("--sample clone")),
        ("--subject", Changes("--subject person")),
        ("--time", no_times("--time later")),
        ("--event", no_times("--event status --event-value dead")),
        ("--event-value", no_times("--event-value 0")),
        ("--missing", Between("--attributes sex", "--attributes sex --missing F")),
        ("--time-unit", either(Shown("--time-unit days"), Refused("--time-unit days", "there are no times"))),
        ("--title", Shown("--title Heart")),
        ("--names", of_names("--names A,B")),
        ("--reference-model", of_names("--reference-model other-classes")),
        ("--internal", Refused("--internal several/run", EXCLUDES)),
        ("--censoring", Refused("--censoring own", EXCLUDES)),
        ("--set", Changes("--set tnr=0.7")),
        ("--figures", Changes("--figures paper")),
        ("--tables", Changes("--tables paper")),
    ]
}

/// The options of `evaluate` for several tables of curves.
fn of_several_models(base: &str) -> Vec<(&'static str, Effect)> {
    vec![
        ("RUN", Refused("several/run", EXCLUDES)),
        ("--predictions", with(base, " --predictions other.csv", "")),
        ("--attributes", Changes("--attributes sex")),
        ("--intersections", Between("--attributes sex,age:60", "--attributes sex,age:60 --intersections")),
        ("--train", Changes("--train train.csv")),
        (
            "--cause",
            with(
                base,
                "--predictions table.csv --predictions other.csv",
                "--predictions incidence.csv --predictions incidence.csv --names a,b --cause 1",
            ),
        ),
        ("--repair", Allows(base.replacen("table.csv", "rising.csv", 1), "--repair monotone")),
        (
            "--cohort",
            with(
                base,
                "--predictions table.csv --predictions other.csv",
                "--predictions curves.csv --predictions curves.csv --names a,b --cohort cohort.csv",
            ),
        ),
        ("--split", Refused("--split split.csv", "not provided")),
        ("--part", Refused("--part validation", "there are no parts without --split")),
        ("--output", with(base, "scores", "page.html")),
        ("--sample", Changes("--sample clone")),
        ("--subject", Changes("--subject person")),
        ("--time", Changes("--time later")),
        ("--event", Changes("--event status --event-value dead")),
        ("--event-value", Changes("--event-value 0")),
        ("--missing", Between("--attributes sex", "--attributes sex --missing F")),
        ("--time-unit", Shown("--time-unit days")),
        ("--title", Shown("--title Heart")),
        ("--names", Changes("--names Cox,CNN")),
        ("--reference-model", Changes("--reference-model other")),
        ("--internal", Refused("--internal several/run", EXCLUDES)),
        ("--censoring", Refused("--censoring own", EXCLUDES)),
    ]
    .into_iter()
    .chain(of_curves(base))
    .collect()
}

/// The options of `evaluate` for one table of curves.
fn of_one_table(base: &str) -> Vec<(&'static str, Effect)> {
    vec![
        ("RUN", Refused("several/run", EXCLUDES)),
        ("--predictions", with(base, "table.csv", "train.csv")),
        ("--attributes", Changes("--attributes sex")),
        ("--intersections", Between("--attributes sex,age:60", "--attributes sex,age:60 --intersections")),
        ("--train", Changes("--train train.csv")),
        ("--cause", with(base, "table.csv", "incidence.csv --cause 1")),
        ("--repair", Allows(base.replacen("table.csv", "rising.csv", 1), "--repair monotone")),
        ("--cohort", with(base, "table.csv", "curves.csv --cohort cohort.csv")),
        ("--split", Refused("--split split.csv", "not provided")),
        ("--part", Refused("--part validation", "there are no parts without --split")),
        ("--output", with(base, "scores", "page.html")),
        ("--sample", Changes("--sample clone")),
        ("--subject", Changes("--subject person")),
        ("--time", Changes("--time later")),
        ("--event", Changes("--event status --event-value dead")),
        ("--event-value", Changes("--event-value 0")),
        ("--missing", Between("--attributes sex", "--attributes sex --missing F")),
        ("--time-unit", Shown("--time-unit days")),
        ("--title", Shown("--title Heart")),
        ("--names", Refused("--names a", "there is one model")),
        ("--reference-model", Refused("--reference-model a", "there is one model")),
        ("--internal", Refused("--internal several/run", EXCLUDES)),
        ("--censoring", Refused("--censoring own", EXCLUDES)),
    ]
    .into_iter()
    .chain(of_curves(base))
    .collect()
}

/// The options of `evaluate` for curves and a cohort.
fn of_a_cohort(name: &str, base: &str) -> Vec<(&'static str, Effect)> {
    vec![
        ("RUN", Refused("several/run", EXCLUDES)),
        ("--predictions", with(base, "curves.csv", "train.csv")),
        ("--attributes", Changes("--attributes sex")),
        ("--intersections", Changes("--intersections")),
        ("--train", Refused("--train train.csv", EXCLUDES)),
        ("--cause", with(base, "curves.csv", "incidences.csv --cause 1")),
        ("--repair", Allows(base.replacen("curves.csv", "rising-curves.csv", 1), "--repair monotone")),
        ("--cohort", without(base, "--cohort cohort.csv")),
        if name == "a cohort" {
            ("--split", Changes("--split split.csv"))
        } else {
            ("--split", without(base, "--split split.csv"))
        },
        if name == "a cohort" {
            ("--part", Refused("--part validation", "there are no parts without --split"))
        } else {
            ("--part", Changes("--part validation"))
        },
        ("--output", with(base, "scores", "page.html")),
        ("--sample", Refused("--sample id", EXCLUDES)),
        ("--subject", Refused("--subject patient", EXCLUDES)),
        ("--time", Refused("--time years", EXCLUDES)),
        ("--event", Refused("--event status", EXCLUDES)),
        ("--event-value", Refused("--event-value dead", EXCLUDES)),
        ("--missing", Refused("--missing unknown", EXCLUDES)),
        ("--time-unit", Shown("--time-unit days")),
        ("--title", Shown("--title Heart")),
        ("--names", Refused("--names a", "there is one model")),
        ("--reference-model", Refused("--reference-model a", "there is one model")),
        ("--internal", Refused("--internal several/run", EXCLUDES)),
        ("--censoring", Refused("--censoring own", EXCLUDES)),
    ]
    .into_iter()
    .chain(of_curves(base))
    .collect()
}

type Options = fn(&'static str) -> Vec<(&'static str, Effect)>;

/// `options` with these effects in the place of their own.
fn changed(
    options: Vec<(&'static str, Effect)>,
    others: impl IntoIterator<Item = (&'static str, Effect)>,
) -> Vec<(&'static str, Effect)> {
    let others: Vec<(&'static str, Effect)> = others.into_iter().collect();
    let is_other = |name: &str| others.iter().any(|(other, _)| *other == name);
    let kept: Vec<(&'static str, Effect)> = options.into_iter().filter(|(name, _)| !is_other(name)).collect();
    kept.into_iter().chain(others).collect()
}

/// The options of a run and of its scores; those of the sensitivity to informative censoring are refused because of `why`.
fn of_another_run(base: &'static str, why: &'static str) -> Vec<(&'static str, Effect)> {
    let of_run = of_a_run("evaluate several/run").into_iter().chain(scores("another run")).collect();
    let refused = [
        ("--sensitivity", tilted!()),
        ("--deltas", tilted!("--deltas -1,0")),
        ("--tilt", tilted!("--tilt sex=F")),
        ("--administrative", tilted!("--administrative 2")),
        ("--imputations", tilted!("--imputations 3")),
    ];
    let refused = refused.into_iter().map(|(name, call)| (name, Refused(call, why)));
    let absent = Instead(base.replacen("evaluate ", "evaluate absent-", 1));
    changed(of_run, refused.chain([("RUN", absent)]))
}

/// Also of the folder in which it predicted other data.
fn of_a_run_of_a_class(base: &'static str) -> Vec<(&'static str, Effect)> {
    let mut own = vec![
        ("--metrics", Changes("--metrics auc,fpr")),
        ("--horizon", Refused("--horizon 1.5", "the class of a run is that of its [task]")),
        ("--baseline", Refused("--baseline sex", "a Cox model has no classes")),
        ("--set", Changes("--set seed=3")),
    ];
    if base.contains("class-other") {
        own.extend([
            ("--part", Refused("--part validation", "has no parts")),
            ("--internal", Changes("--internal class")),
            ("--censoring", Refused("--censoring own", "nobody is censored")),
        ]);
    }
    changed(of_another_run(base, "informative censoring is analysed with curves"), own)
}

fn of_a_run_of_a_cause(base: &'static str) -> Vec<(&'static str, Effect)> {
    let own = [
        ("--metrics", Changes("--metrics cause-c-td")),
        ("--threshold", Refused("--threshold 0.3", "would count events of other causes as censorings")),
        ("--baseline", Refused("--baseline sex", "have several causes, of which 1 is predicted")),
    ];
    changed(of_another_run(base, "have several causes, of which 1 is predicted"), own)
}

fn of_a_run_of_masks(base: &'static str) -> Vec<(&'static str, Effect)> {
    let own = [
        ("--metrics", Refused("--metrics dice", "a run shows all metrics of masks")),
        ("--horizon", Refused("--horizon 1.5", "masks have no times")),
        ("--threshold", Refused("--threshold 0.3", "masks have no risks")),
        ("--baseline", Refused("--baseline sex", "a Cox model predicts no masks")),
        ("--set", Changes("--set seed=3")),
    ];
    changed(of_another_run(base, "masks are not censored"), own)
}

fn of_a_table_of_a_cause(base: &'static str) -> Vec<(&'static str, Effect)> {
    let one_event = "the time to one kind of event is imputed";
    let of_table = of_one_table("evaluate --predictions table.csv --output scores --set replicates=5");
    let own = [
        ("--predictions", with(base, "incidence.csv", "train.csv")),
        ("--cause", with(base, "--cause 1", "--cause 2")),
        ("--cohort", with(base, "incidence.csv", "incidences.csv --cohort cohort.csv")),
        ("--output", with(base, "scores", "page.html")),
        ("--repair", Refused("--repair monotone", EXCLUDES)),
        ("--sample", Refused("--sample clone", "is not in incidence.csv")),
        ("--subject", Refused("--subject person", "is not in incidence.csv")),
        ("--time", Refused("--time later", "is not in incidence.csv")),
        ("--event", Refused("--event status", "is not in incidence.csv")),
        ("--event-value", Refused("--event-value 0", EXCLUDES)),
        ("--intersections", Refused("--intersections", "expected at least two")),
        ("--task", Refused("--task binary", "a class has no causes")),
        ("--metrics", Changes("--metrics cause-c-td")),
        ("--threshold", Refused("--threshold 0.3", EXCLUDES)),
        ("--baseline", Refused("--baseline sex", EXCLUDES)),
        ("--sensitivity", Refused(tilted!(), one_event)),
        ("--deltas", Refused(tilted!("--deltas -1,0"), one_event)),
        ("--tilt", Refused(tilted!("--tilt sex=F"), one_event)),
        ("--administrative", Refused(tilted!("--administrative 2"), one_event)),
        ("--imputations", Refused(tilted!("--imputations 3"), one_event)),
    ];
    changed(of_table.into_iter().chain(scores("one table")).collect(), own)
}

/// Each mode of `evaluate` with its results and as a dry run.
fn evaluation() -> Vec<Mode> {
    let calls = [
        ("a run", "evaluate several/run --set replicates=5"),
        ("predicted data", "evaluate other --set replicates=5"),
        ("external validation", "evaluate other --internal several/run --set replicates=5"),
        ("one table", "evaluate --predictions table.csv --output scores --set replicates=5"),
        (
            "several models",
            "evaluate --predictions table.csv --predictions other.csv --output scores --set replicates=5",
        ),
        ("a cohort", "evaluate --predictions curves.csv --cohort cohort.csv --output scores --set replicates=5"),
        (
            "a cohort with a split",
            "evaluate --predictions curves.csv --cohort cohort.csv --split split.csv --output scores --set replicates=5",
        ),
    ];
    let classes = [
        ("a class", "evaluate --task binary --predictions classes.csv --output scores --set replicates=5"),
        (
            "a class from times",
            "evaluate --task binary --predictions classes.csv --horizon 1.5 --output scores --set replicates=5",
        ),
        (
            "a class of several models",
            "evaluate --task binary --predictions classes.csv --predictions other-classes.csv --output scores --set replicates=5",
        ),
    ];
    let own = |name: &str, base: &str| match name {
        "a run" => of_a_run(base),
        "predicted data" | "external validation" => of_predicted_data(name, base),
        "several models" => of_several_models(base),
        "one table" => of_one_table(base),
        _ => of_a_cohort(name, base),
    };
    let mut modes = Vec::new();
    for (name, base) in calls {
        let scores = || scores(name);
        let real = own(name, base).into_iter().chain(scores()).chain([THREADS, DRY_RUN, JSON]).collect();
        modes.push(mode("evaluate", name, base, real));
        let dry = format!("{base} --dry-run --json");
        let flags = [("--dry-run", without(&dry, "--dry-run")), ("--json", without(&dry, "--json"))];
        let shown = own(name, &dry).into_iter().chain(scores()).chain([SHOWN_THREADS]).chain(flags).collect();
        modes.push(mode("evaluate", "dry run", &dry, shown));
    }
    let others: [(&'static str, &'static str, Options); 5] = [
        ("a run of a class", "evaluate class --set replicates=5", of_a_run_of_a_class),
        ("the class of predicted data", "evaluate class-other --set replicates=5", of_a_run_of_a_class),
        ("a run of one of several causes", "evaluate causes --set replicates=5", of_a_run_of_a_cause),
        ("a run of masks", "evaluate masks-run --set replicates=5", of_a_run_of_masks),
        (
            "a table of one of several causes",
            "evaluate --predictions incidence.csv --cause 1 --output scores --set replicates=5",
            of_a_table_of_a_cause,
        ),
    ];
    for (name, base, options) in others {
        modes.push(mode("evaluate", name, base, options(base).into_iter().chain([THREADS, DRY_RUN, JSON]).collect()));
    }
    for (name, base) in classes {
        let real = of_a_class(name, base).into_iter().chain([THREADS, DRY_RUN, JSON]).collect();
        modes.push(mode("evaluate", name, base, real));
        let dry = format!("{base} --dry-run --json");
        let flags = [("--dry-run", without(&dry, "--dry-run")), ("--json", without(&dry, "--json"))];
        let shown = of_a_class(name, &dry).into_iter().chain([SHOWN_THREADS]).chain(flags).collect();
        modes.push(mode("evaluate", "dry run", &dry, shown));
    }
    modes
}

/// All options of `evaluate-masks`, of a call that has `--classes`.
fn of_masks(base: &str) -> Vec<(&'static str, Effect)> {
    vec![
        ("--table", with(base, "masks.csv", "other-masks.csv")),
        ("--classes", with(base, "disc=1+2,cup=2", "disc=1+2")),
        ("--metrics", Changes("--metrics nsd,dice")),
        ("--attributes", Changes("--attributes sex")),
        ("--intersections", Between("--attributes sex,age:60", "--attributes sex,age:60 --intersections")),
        ("--output", with(base, "scores", "page.html")),
        ("--spacing", Changes("--spacing 0.5,2")),
        ("--unit", Between("--spacing 0.5,2", "--spacing 0.5,2 --unit mm")),
        ("--tolerance", Changes("--tolerance 2")),
        ("--hausdorff", Changes("--hausdorff monai")),
        ("--cup", Between("--cup disc --disc disc", "--cup cup --disc disc")),
        ("--disc", Between("--cup cup --disc cup", "--cup cup --disc disc")),
        ("--min-samples", Between("--attributes sex", "--attributes sex --min-samples 30")),
        ("--reference", Between("--attributes sex", "--attributes sex --reference sex=F")),
        ("--sample", Changes("--sample clone")),
        ("--subject", Changes("--subject person")),
        ("--truth", Changes("--truth other")),
        ("--predicted", Changes("--predicted other")),
        ("--missing", Between("--attributes sex", "--attributes sex --missing F")),
        ("--title", Shown("--title Eyes")),
        ("--set", Changes("--set seed=3")),
        ("--figures", Changes("--figures figures")),
        ("--tables", Changes("--tables tables")),
    ]
}

fn masks() -> Vec<Mode> {
    let base = "evaluate-masks --table masks.csv --classes disc=1+2,cup=2 --output scores --set replicates=5";
    let real = of_masks(base).into_iter().chain([THREADS, DRY_RUN, JSON]).collect();
    let dry = format!("{base} --dry-run --json");
    let flags = [("--dry-run", without(&dry, "--dry-run")), ("--json", without(&dry, "--json"))];
    let shown = of_masks(&dry).into_iter().chain([SHOWN_THREADS]).chain(flags).collect();
    vec![mode("evaluate-masks", "masks", base, real), mode("evaluate-masks", "dry run", &dry, shown)]
}

/// Tiny calls: 40 samples, few trees, few repeats.
fn experiments() -> Vec<Mode> {
    let biasing = "experiment biasing bias.csv --shares 0,0.2,0.5 --repeats 1 --trees 2 --measures harrell-c,rsbs";
    let power = "experiment power --predictions table.csv --attribute sex --level F --shares 0,1 --repeats 3 --metrics c-td,ibs \
                 --set replicates=20 --set permutations=9 --set min-events=1 --json";
    let cohort = "experiment power --predictions curves.csv --cohort cohort.csv --attribute sex --level F --shares 0,1 --repeats 3 \
                  --metrics c-td,ibs --set replicates=20 --set permutations=9 --set min-events=1 --json";
    let shared = |base: &'static str| {
        vec![
            ("--metrics", with(base, "c-td,ibs", "ibs")),
            ("--level", with(base, "--level F", "--level M")),
            ("--set", Changes("--set reading=step")),
            ("--shares", with(base, "--shares 0,1", "--shares 0,0.5")),
            ("--repeats", with(base, "--repeats 3", "--repeats 4")),
            // The power of so few repeats is 0 or 1, on the same side of every target.
            ("--target", Shown("--target 0.3")),
            ("--seed", Changes("--seed 1")),
            ("--output", Changes("--output power")),
            ("--json", without(base, "--json")),
            THREADS,
        ]
    };
    let of = |base: &'static str, own: Vec<(&'static str, Effect)>| own.into_iter().chain(shared(base)).collect();
    let refused = |option: &'static str, line: &'static str| (option, Refused(line, "cannot be used with"));
    vec![
        mode(
            "experiment biasing",
            "one table",
            biasing,
            vec![
                ("TABLE", with(biasing, "bias.csv", "bias.csv other-bias.csv")),
                ("--time", Changes("--time later")),
                ("--event", Changes("--event late")),
                ("--categorical", Changes("--categorical level")),
                ("--exclude", Changes("--exclude x")),
                ("--methods", Changes("--methods column-permutation")),
                ("--measures", with(biasing, "harrell-c,rsbs", "uno-c")),
                ("--shares", with(biasing, "0,0.2,0.5", "0,0.9")),
                ("--repeats", with(biasing, "--repeats 1", "--repeats 2")),
                ("--estimator", with(biasing, "--trees 2", "--estimator cox")),
                ("--preset", Changes("--preset ranger")),
                ("--trees", with(biasing, "--trees 2", "--trees 3")),
                ("--seed", Changes("--seed 1")),
                ("--output", Changes("--output biasing")),
                JSON,
                THREADS,
            ],
        ),
        mode(
            "experiment power",
            "one table",
            power,
            of(
                power,
                vec![
                    ("--predictions", with(power, "table.csv", "other.csv")),
                    ("--attribute", with(power, "--attribute sex --level F", "--attribute clone=c1 --level c1")),
                    ("--cohort", Allows(power.replacen("table.csv", "curves.csv", 1), "--cohort cohort.csv")),
                    ("--split", Refused("--split split.csv", "--cohort")),
                    ("--train", Changes("--train train.csv")),
                    ("--sample", Refused("--sample absent", "is not in table.csv")),
                    ("--subject", Changes("--subject person")),
                    ("--time", Changes("--time later")),
                    ("--event", Refused("--event status", "expected 1")),
                    ("--event-value", Changes("--event status --event-value dead --seed 2")),
                ],
            ),
        ),
        mode(
            "experiment power",
            "a cohort",
            cohort,
            of(
                cohort,
                vec![
                    ("--predictions", with(cohort, "curves.csv", "table.csv")),
                    ("--attribute", with(cohort, "--attribute sex --level F", "--attribute age --level old")),
                    ("--cohort", with(cohort, "--cohort cohort.csv", "")),
                    ("--split", Changes("--split split.csv")),
                    refused("--train", "--train train.csv"),
                    refused("--sample", "--sample clone"),
                    refused("--subject", "--subject person"),
                    refused("--time", "--time later"),
                    refused("--event", "--event status"),
                    refused("--event-value", "--event-value dead"),
                ],
            ),
        ),
    ]
}

/// Tables with one value per row, and with one column per method; all columns of the latter are numbers.
fn method_tests() -> Vec<Mode> {
    let long = "test methods.csv --gap";
    let wide = "test wide.csv --gap --wide";
    let shared = |base: &str| {
        vec![
            ("--higher-is-better", with(base, "--gap", "--higher-is-better")),
            ("--lower-is-better", with(base, "--gap", "--lower-is-better")),
            ("--gap", with(base, "--gap", "--gap=1 --lower-is-better")),
            ("--base", Changes("--base b")),
            ("--all-pairs", Changes("--all-pairs")),
            ("--alternative", Between("--alternative less", "--alternative greater")),
            ("--level", Changes("--level 0.2")),
            ("--family", Changes("--family table")),
            ("--output", Changes("--output tested")),
            JSON,
            ("--setting", Refused("--setting kind", "appears twice")),
            ("--metric", Changes("--metric kind")),
            ("--trial", Changes("--trial seed")),
        ]
    };
    let of = |base: &str, own: Vec<(&'static str, Effect)>| shared(base).into_iter().chain(own).collect();
    vec![
        mode(
            "test",
            "long",
            long,
            of(
                long,
                vec![
                    ("TABLE", with(long, "methods.csv", "fewer.csv")),
                    ("--method", Changes("--method model")),
                    ("--value", Changes("--value score")),
                    ("--wide", Refused("--wide", "expected a finite number")),
                ],
            ),
        ),
        mode(
            "test",
            "wide",
            wide,
            of(
                wide,
                vec![
                    ("TABLE", with(wide, "wide.csv", "methods.csv")),
                    ("--method", Refused("--method a", EXCLUDES)),
                    ("--value", Refused("--value a", EXCLUDES)),
                    ("--wide", without(wide, "--wide")),
                ],
            ),
        ),
    ]
}

fn bias() -> Vec<Mode> {
    let files = "--features features.csv --cohort table.csv --set n-replicates=5 --permutations 9";
    let table = format!("bias {files} --attributes sex,age:60");
    let page = format!("{table} --output sources");
    let shared = |base: &str| {
        vec![
            ("--features", with(base, "features.csv", "curves.csv")),
            ("--cohort", with(base, "table.csv", "train.csv")),
            ("--attributes", with(base, "sex,age:60", "sex")),
            ("--intersections", Changes("--intersections")),
            ("--components", Changes("--components 2")),
            ("--seed", Changes("--seed 3")),
            ("--permutations", with(base, "--permutations 9", "--permutations 19")),
            ("--min-events", Changes("--min-events 14")),
            ("--set", Changes("--set n-clusters=3")),
            THREADS,
            JSON,
            ("--sample", Refused("--sample clone", "has features but is not in the cohort")),
            ("--subject", Changes("--subject person")),
            ("--time", Changes("--time later")),
            ("--event", Changes("--event status --event-value alive")),
            ("--event-value", Changes("--event-value 0")),
            ("--missing", with(base, "sex,age:60", "sex --missing F")),
        ]
    };
    let only_run = || {
        vec![
            ("RUN", Refused("several/run", EXCLUDES)),
            ("--layer", Refused("--layer backbone", EXCLUDES)),
            ("--part", Refused("--part all", EXCLUDES)),
        ]
    };
    let of = |base: &str, output| shared(base).into_iter().chain(only_run()).chain([("--output", output)]).collect();
    let run = "bias several/run --set n-replicates=5 --permutations 9";
    let own = [
        ("--features", "--features features.csv --cohort table.csv"),
        ("--cohort", "--cohort table.csv"),
        ("--attributes", "--attributes sex"),
        ("--intersections", "--intersections"),
        ("--sample", "--sample clone"),
        ("--subject", "--subject person"),
        ("--time", "--time later"),
        ("--event", "--event status"),
        ("--event-value", "--event-value 0"),
        ("--missing", "--missing F"),
    ];
    let of_run = own.into_iter().map(|(name, extra)| (name, Refused(extra, EXCLUDES))).chain([
        ("RUN", with(run, "several/run", "several/absent")),
        ("--layer", Changes("--layer representation")),
        ("--part", Changes("--part train")),
        ("--components", Changes("--components 2")),
        ("--seed", Changes("--seed 3")),
        ("--permutations", with(run, "--permutations 9", "--permutations 19")),
        ("--min-events", Changes("--min-events 60")),
        ("--output", Changes("--output sources")),
        ("--set", Changes("--set n-clusters=3")),
        THREADS,
        JSON,
    ]);
    vec![
        mode("bias", "a run", run, of_run.collect()),
        mode("bias", "a table", &table, of(&table, Changes("--output sources"))),
        mode("bias", "a page", &page, of(&page, with(&page, "sources", "elsewhere"))),
    ]
}

fn card() -> Vec<Mode> {
    let card = "card several/run";
    vec![mode(
        "card",
        "a run",
        card,
        vec![
            ("RUN", with(card, "several/run", "several")),
            ("--output", Changes("--output card.md")),
            ("--about", Changes("--about about.toml")),
            ("--external", Changes("--external other-hospital")),
        ],
    )]
}

fn selection() -> Vec<Mode> {
    let shared = || {
        vec![
            ("DIR", Instead("select paper --set replicates=5".to_owned())),
            ("--base", Instead("select several --base sam --set replicates=5".to_owned())),
            ("--attribute", Changes("--attribute sex")),
            ("--output", Changes("--output choice")),
            ("--figures", Changes("--figures paper")),
            ("--tables", Changes("--tables paper")),
            ("--set", Changes("--set level=0.9")),
            THREADS,
            JSON,
        ]
    };
    let of = |own: Vec<(&'static str, Effect)>| shared().into_iter().chain(own).collect();
    let no = "only --rule fairest tolerates a loss";
    vec![
        mode(
            "select",
            "fairest",
            "select several --set replicates=5",
            of(vec![
                ("--rule", Changes("--rule minimax")),
                ("--tolerated-loss", Changes("--tolerated-loss 0.5")),
                ("--tolerated-loss-of", Changes("--tolerated-loss-of skill")),
            ]),
        ),
        mode(
            "select",
            "another rule",
            "select several --set replicates=5 --rule dto",
            of(vec![
                ("--rule", Instead("select several --set replicates=5".to_owned())),
                ("--tolerated-loss", Refused("--tolerated-loss 0.5", no)),
                ("--tolerated-loss-of", Refused("--tolerated-loss-of skill", no)),
            ]),
        ),
    ]
}

/// Studies on a cluster, of which the tests have none.
fn clusters() -> Vec<Mode> {
    let submit = "study submit study.toml --output planned --set execute.slurm.pack=1 --print";
    vec![
        mode(
            "study submit",
            "a study, printed",
            submit,
            vec![
                ("FILE", with(submit, "study.toml", "absent.toml")),
                ("--output", with(submit, "--output planned", "--output elsewhere")),
                ("--set", Shown("--set execute.slurm.cpus=3")),
                (
                    "--minutes",
                    Refused(
                        "--minutes 20 --set execute.slurm.time=\"10\"",
                        "--minutes: 20 minutes, expected at most the 10",
                    ),
                ),
                ("--max-tasks", Shown("--max-tasks 1")),
                ("--print", without(submit, "--print")),
                JSON,
                ("SBATCH", Shown("-- --exclude=n7")),
            ],
        ),
        mode(
            "study doctor",
            "a failed study",
            "study doctor failed-study",
            vec![("DIR", with("study doctor failed-study", " failed-study", " study")), JSON],
        ),
    ]
}

/// The commands of a study. Its trials are finished, failed for good, or not run.
fn studies() -> Vec<Mode> {
    let planned = |base: &str| {
        vec![
            ("FILE", with(base, "study.toml", "absent.toml")),
            ("--output", with(base, "--output planned", "--output elsewhere")),
            ("--set", Changes("--set trials=2")),
            DRY_RUN,
        ]
    };
    let of_folder = |base: &str| vec![("DIR", with(base, " study", " absent")), JSON];
    let plan = "study plan study.toml --output planned";
    let run = "study run study.toml --output planned --dry-run";
    let trial = "study trial failed-study 0";
    let commands = "study commands failed-study";
    vec![
        mode(
            "study template",
            "a template",
            "study template demo",
            vec![("KIND", Instead("study template paper".to_owned())), ("--output", Changes("--output templates"))],
        ),
        mode(
            "study plan",
            "a study",
            plan,
            [planned(plan), vec![JSON, ("--estimate", Shown("--estimate")), ("--bench", Shown("--bench rates.json"))]]
                .concat(),
        ),
        mode(
            "study run",
            "a study",
            run,
            vec![
                ("FILE", with(run, "study.toml", "absent.toml")),
                ("--output", with(run, "--output planned", "--output study")),
                ("--set", Changes("--set trials=2")),
                ("--only", Changes("--only 1")),
                ("--dry-run", with(run, "--output planned --dry-run", "--output planned --only 0")),
                ("--jobs", Changes("--jobs 3")),
                SHOWN_THREADS,
            ],
        ),
        mode(
            "study trial",
            "a failed trial",
            trial,
            vec![
                ("DIR", with(trial, "failed-study", "absent")),
                ("INDEX", with(trial, "study 0", "study 9")),
                ("--threads", OnlySpeed("--threads 1")),
                ("--again", Changes("--again")),
            ],
        ),
        mode("study status", "a study", "study status study", of_folder("study status study")),
        mode("study collect", "a study", "study collect study", of_folder("study collect study")),
        mode(
            "study report",
            "a study",
            "study report study",
            [of_folder("study report study"), vec![("--replicates", Changes("--replicates 5")), THREADS]].concat(),
        ),
        mode(
            "study restore",
            "a study",
            "study restore study 0 --output restored --json",
            vec![
                ("DIR", Instead("study restore absent 0 --output restored --json".to_owned())),
                ("INDEX", Instead("study restore study 1 --output restored --json".to_owned())),
                ("--output", Instead("study restore study 0 --output elsewhere --json".to_owned())),
                THREADS,
                ("--json", Instead("study restore study 0 --output restored".to_owned())),
            ],
        ),
        mode(
            "study clean",
            "a study",
            "study clean study",
            vec![("DIR", Instead("study clean failed-study".to_owned())), DRY_RUN, JSON],
        ),
        mode(
            "study commands",
            "a study",
            commands,
            vec![("DIR", with(commands, "failed-study", "absent")), ("--pack", Refused("--pack 0", "0 is not in 1.."))],
        ),
    ]
}

fn files() -> Vec<Mode> {
    let import = "weights import rgb.safetensors --arch small-2d --output small.safetensors";
    let gray = "weights import gray.safetensors --arch small-2d --output small.safetensors";
    let shared = |base: &str, file: &str| {
        vec![
            ("FILE", with(base, file, "taken")),
            ("--arch", with(base, "small-2d", "resnet18")),
            ("--layout", Instead(format!("{base} --layout timm"))),
            ("--output", without(base, "--output small.safetensors")),
            JSON,
        ]
    };
    let of =
        |base: &str, file: &str, own: Vec<(&'static str, Effect)>| shared(base, file).into_iter().chain(own).collect();
    vec![
        mode(
            "inspect",
            "a picture",
            "inspect one.png",
            vec![
                ("FILE", Instead("inspect two.png".to_owned())),
                ("--at", Changes("--at 1,1")),
                ("--max-pixels", Instead("inspect one.png --max-pixels 10".to_owned())),
                ("--max-bytes", Instead("inspect one.png --max-bytes 10".to_owned())),
                JSON,
            ],
        ),
        mode(
            "weights inspect",
            "a file",
            "weights inspect gray.safetensors",
            vec![("FILE", Instead("weights inspect rgb.safetensors".to_owned())), JSON],
        ),
        mode(
            "weights inspect",
            "a run",
            "weights inspect several/run",
            vec![("FILE", Instead("weights inspect several/run/run.toml".to_owned())), JSON],
        ),
        mode(
            "weights export",
            "a run",
            "weights export several/run --output m.safetensors",
            vec![
                ("RUN", Instead("weights export several --output m.safetensors".to_owned())),
                ("--output", Instead("weights export several/run --output n.safetensors".to_owned())),
                ("--epoch", Refused("--epoch 99", "\"99\" is no epoch whose weights were kept")),
                JSON,
            ],
        ),
        mode(
            "weights import",
            "three channels",
            import,
            of(
                import,
                "rgb.safetensors",
                vec![("--channels", Changes("--channels 1")), ("--gray", Between("--gray sum", "--gray mean"))],
            ),
        ),
        mode(
            "weights import",
            "one channel",
            gray,
            of(
                gray,
                "gray.safetensors",
                vec![
                    ("--channels", Changes("--channels 3")),
                    ("--gray", Refused("--gray sum", "sum has nothing to adapt")),
                ],
            ),
        ),
    ]
}

/// The commands about the program itself.
fn program() -> Vec<Mode> {
    vec![
        mode("list", "everything", "list", vec![("WHAT", Changes("data")), JSON]),
        mode(
            "bench",
            "one network",
            "bench --backbone mlp --seconds 0.001 --no-layers",
            vec![
                ("--device", Refused("--device tpu", "device \"tpu\" is unknown")),
                SHOWN_THREADS,
                ("--backbone", Instead("bench --backbone small-2d --shape 3x16x16 --seconds 0.001 --no-layers".into())),
                ("--shape", Refused("--shape 3x3", "--shape is \"3x3\"")),
                ("--batch", Changes("--batch 7")),
                ("--precision", Changes("--precision bf16")),
                ("--seconds", Instead("bench --backbone mlp --seconds 0 --no-layers".into())),
                ("--samples", Changes("--samples 100")),
                ("--epochs", Between("--samples 100 --epochs 1", "--samples 100 --epochs 2")),
                ("--no-layers", Instead("bench --backbone mlp --seconds 0.001".into())),
                ("--output", Changes("--output bench.json")),
                JSON,
            ],
        ),
        mode("schema", "standard output", "schema", vec![("--output", Changes("--output schema.json"))]),
        mode("completions", "a shell", "completions bash", vec![("SHELL", Instead("completions zsh".to_owned()))]),
        mode("man-pages", "a folder", "man-pages manual", vec![("DIR", Instead("man-pages pages".to_owned()))]),
    ]
}
