//! Tests of the program and of files of the repository, in one binary: a test is run with `cargo test -p fairtte-tests --test
//! program crash` (part of its name).

/// Adapters, samples and inputs before a model sees them; simulated data.
mod cohort {
    mod hazards;
    mod hospital_tables;
    mod inputs;
    mod inspect;
    mod samples;
    mod shift;
}

/// Runs: all steps, resumption, crashes, what may influence what, warnings and wrong input.
mod training {
    mod bad_input;
    mod bench;
    mod causes;
    mod classes;
    mod crash;
    mod devices;
    mod estimators;
    mod learning;
    mod poison;
    mod resuming;
    mod segmentation;
    mod shifted;
    mod strata;
    mod survival_heads;
    mod warnings;
    mod whole_run;
}

/// What is done with a trained model: weights, predictions for other data, external validation, explanations, export.
mod model {
    mod classes;
    mod explain;
    mod export;
    mod external;
    mod external_classes;
    mod predict;
    mod weights;
}

/// One model's numbers: curves of any model, other packages, competing risks, decisions, sensitivity, bias, card.
mod evaluation {
    mod baseline;
    mod bias;
    mod binary;
    mod card;
    mod cohort_attributes;
    mod competing;
    mod decisions;
    mod evaluate_any;
    mod masks;
    mod same_as_peers;
    mod sensitivity;
    mod time_coverage;
    mod wrong_tables;
}

/// Several models: strategies, selection, outside models, tests over data sets.
mod comparison {
    mod classes;
    mod compare;
    mod method_tests;
    mod recomputed;
    mod several_models;
}

/// Many runs: studies, halving, clusters, experiments.
mod study {
    mod classes;
    mod experiment;
    mod halving;
    mod slurm;
    mod whole_study;
}

/// Files of the repository against the program: run files, schema, options, manual pages, distribution, packages.
mod repository {
    mod configs;
    mod distribution;
    mod manual;
    mod options;
    mod packages;
    mod readme;
    mod schema;
}
