//! Weights that other programs saved: their containers, their key names, and their import into a backbone.
//!
//! Nothing in a file is ever executed. A pickle is a program for a small stack machine that can name any Python function
//! and have it called; ours knows dictionaries, lists, numbers, text and torch's tensors, and every other class becomes an
//! opaque value that is named and never built (`pickle/`). No memory is allocated by a number in a header alone: all
//! lengths are first compared with the bytes of the file, so a short file cannot cause a large allocation.
//!
//! | container | who writes it | file |
//! |---|---|---|
//! | safetensors | timm, Hugging Face, `fairtte weights import` and `export` | `safetensors_file.rs` |
//! | zip with `data.pkl` and `data/N` | `torch.save` since torch 1.6 | `zip.rs`, `zip_pickle.rs` |
//! | five pickles, then raw storages | `torch.save` before torch 1.6 | `legacy.rs` |
//! | burnpack | runs of this program | `burnpack.rs` |
//!
//! A [`Fit`] compares a [`WeightFile`] with a backbone and reports what is matched, missing, unexpected or of another
//! shape; [`Fit::load`] puts the weights in, [`Fit::write`] writes them under our names with their provenance.
//!
//! The other direction, a trained network in the names of those programs, is in `export.rs`.
//!
//! The formats were taken from torch's `torch/serialization.py` and Python's `pickletools`; the tests read files that
//! torch 2.15.0 wrote, and malicious files.

mod burnpack;
mod bytes;
mod channels;
mod contents;
mod export;
mod facts;
mod file;
mod fit;
mod hash;
mod import;
mod layouts;
mod legacy;
mod parameters;
mod pickle;
mod positions;
mod safetensors_file;
mod select;
mod tensor;
mod zip;
mod zip_pickle;

pub use channels::{Gray, MOST_CHANNELS};
pub use contents::TopLevel;
pub use export::{NamedTensor, backbone_tensors, encoder_tensors, of_group, tensors, write_export};
pub use facts::Facts;
pub use file::{Container, WeightFile};
pub use fit::{Fit, WrongShape};
pub use hash::sha256;
pub use import::NamedHash;
pub use layouts::Layout;
pub use tensor::{ElementType, StoredTensor};
