//! Tests of trainings, of strategies and of the trainer, as one program: each further one compiles the networks again.

mod adversaries;
mod balanced_sampler;
mod batch;
mod behaviour;
mod calls;
mod common;
mod conformance;
mod edge_batches;
mod empty_batches;
mod explain;
mod settings;
mod steps;
mod toy_strategy;
mod trainer;
mod watches;
