//! Tests over the public interface, one binary so that the table library is linked once.

#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

mod augmentation;
mod files;
mod images;
mod killed;
mod loader;
mod make;
mod masks;
mod parquet;
mod shared_data;
mod shift;
mod simulated;
mod split;
mod store;
mod tables;
mod tabular;
