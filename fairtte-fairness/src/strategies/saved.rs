//! What of a strategy is saved: named parts, each in files that begin with its name.

use std::path::Path;

use burn::module::Module;
use fairtte_data::write_atomically;
use fairtte_metrics::seeds::stream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::learner::EncoderNetwork;
use crate::trainable::{Trainable, read};
use crate::{FairnessError, Learner};

/// How much of a strategy is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// What prediction needs.
    Weights,
    /// What resuming a training needs too.
    Everything,
}

/// A part of a strategy that can be saved: a network with its optimiser, or numbers.
pub trait Part {
    /// Writes the part into files of `folder` whose names begin with `name`.
    ///
    /// # Errors
    /// [`FairnessError::Data`] if a file cannot be written.
    fn save(&self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError>;

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`FairnessError::Checkpoint`] naming the file if it cannot be read or does not fit.
    fn load(&mut self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError>;

    /// Draws the weights of a network afresh from the stream `control/NAME` of `seed`; parts that are none stay.
    fn randomise(&mut self, _name: &str, _seed: u64) {}
}

impl<N: EncoderNetwork> Part for Learner<N> {
    fn save(&self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        self.save(folder, name, what)
    }

    fn load(&mut self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        self.load(folder, name, what)
    }

    fn randomise(&mut self, name: &str, seed: u64) {
        self.randomise(stream(seed, &format!("control/{name}"), &[]));
    }
}

impl<M: Module> Part for Trainable<M> {
    fn save(&self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        self.save(folder, name, what)
    }

    fn load(&mut self, folder: &Path, name: &str, what: Saved) -> Result<(), FairnessError> {
        self.load(folder, name, what)
    }
}

/// Numbers that a resumed training needs, in `NAME.json`.
#[derive(Clone, Debug, Default)]
pub struct State<T>(pub T);

impl<T: Serialize + DeserializeOwned> Part for State<T> {
    fn save(&self, folder: &Path, name: &str, _what: Saved) -> Result<(), FairnessError> {
        write_state(folder, name, &self.0)
    }

    fn load(&mut self, folder: &Path, name: &str, _what: Saved) -> Result<(), FairnessError> {
        self.0 = read_state(folder, name, |_| Ok(()))?;
        Ok(())
    }
}

/// Writes numbers into `NAME.json`.
pub(super) fn write_state(folder: &Path, name: &str, state: &impl Serialize) -> Result<(), FairnessError> {
    let path = folder.join(format!("{name}.json"));
    Ok(write_atomically(&path, |file| Ok(serde_json::to_writer(file, state)?))?)
}

/// Reads numbers from `NAME.json`; `check` says what is wrong with them, if they do not fit.
///
/// # Errors
/// [`FairnessError::Checkpoint`] naming the file.
pub(super) fn read_state<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
    check: impl FnOnce(&T) -> Result<(), String>,
) -> Result<T, FairnessError> {
    let path = folder.join(format!("{name}.json"));
    let state = serde_json::from_slice(&read(&path)?).map_err(|error| error.to_string());
    let checked = state.and_then(|state| check(&state).map(|()| state));
    checked.map_err(|reason| FairnessError::Checkpoint { path, reason })
}

/// A part, the name of its files, and when it is saved.
pub struct NamedPart<'a> {
    name: String,
    part: &'a mut dyn Part,
    when: Saved,
    /// Whether its optimiser is never saved.
    is_fixed: bool,
}

impl<'a> NamedPart<'a> {
    /// A part that prediction needs.
    pub fn weights(name: impl Into<String>, part: &'a mut dyn Part) -> Self {
        Self { name: name.into(), part, when: Saved::Weights, is_fixed: false }
    }

    /// A part that only a resumed training needs.
    pub fn training(name: impl Into<String>, part: &'a mut dyn Part) -> Self {
        Self { name: name.into(), part, when: Saved::Everything, is_fixed: false }
    }

    /// A network that prediction needs and no step moves: saved without its optimiser.
    pub fn fixed(name: impl Into<String>, part: &'a mut dyn Part) -> Self {
        Self { is_fixed: true, ..Self::weights(name, part) }
    }

    /// Draws the weights of a network afresh, see [`Part::randomise`].
    pub fn randomise(&mut self, seed: u64) {
        self.part.randomise(&self.name, seed);
    }

    fn what(&self, what: Saved) -> Saved {
        if self.is_fixed { Saved::Weights } else { what }
    }

    fn is_in(&self, what: Saved) -> bool {
        self.when == Saved::Weights || what == Saved::Everything
    }
}

/// Saves those of `parts` that belong to `what`.
///
/// # Errors
/// As [`Part::save`].
pub fn save_parts(parts: Vec<NamedPart<'_>>, folder: &Path, what: Saved) -> Result<(), FairnessError> {
    parts
        .into_iter()
        .filter(|part| part.is_in(what))
        .try_for_each(|named| named.part.save(folder, &named.name, named.what(what)))
}

/// Loads those of `parts` that belong to `what`.
///
/// # Errors
/// As [`Part::load`].
pub fn load_parts(parts: Vec<NamedPart<'_>>, folder: &Path, what: Saved) -> Result<(), FairnessError> {
    parts
        .into_iter()
        .filter(|part| part.is_in(what))
        .try_for_each(|named| named.part.load(folder, &named.name, named.what(what)))
}
