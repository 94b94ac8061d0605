//! Results of a network for many samples, kept on disk in blocks: memory does not grow with the samples, and a call that
//! was killed resumes at the first missing block.

use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use fairtte_data::{DataError, write_atomically};
use ndarray::Array2;

use crate::CliError;
use crate::progress::Files;

/// Samples of a block: a multiple of the batch size of predictions, so that the batches are those of an unbroken pass.
const BLOCK: usize = 512;
const KEY: &str = "key";

/// A folder of blocks.
pub(crate) struct Blocks {
    folder: PathBuf,
    n: usize,
}

impl Blocks {
    /// Opens the folder for `n` samples. `key` identifies everything that the results depend on: blocks of another key
    /// are removed.
    ///
    /// # Errors
    /// [`CliError::Data`] if the folder cannot be written.
    pub(crate) fn open(folder: &Path, key: &str, n: usize) -> Result<Self, CliError> {
        let file = folder.join(KEY);
        if folder.exists() && std::fs::read_to_string(&file).unwrap_or_default() != key {
            std::fs::remove_dir_all(folder).map_err(|source| write_error(folder, source))?;
        }
        write_atomically(&file, |file| file.write_all(key.as_bytes()))?;
        Ok(Self { folder: folder.to_owned(), n })
    }

    /// Computes every block that is not there yet; `compute` returns the results of a range of samples, one row each.
    ///
    /// # Errors
    /// Those of `compute`, and [`CliError::Data`] if a block cannot be written.
    pub(crate) fn fill(
        &self,
        what: &'static str,
        mut compute: impl FnMut(Range<usize>) -> Result<Array2<f64>, CliError>,
    ) -> Result<(), CliError> {
        let progress = Files::new(what);
        for (index, range) in self.ranges().enumerate() {
            let done = range.end;
            if self.read(index).is_err() {
                let values = compute(range)?;
                self.write(index, &values)?;
            }
            progress.update(done, self.n);
        }
        Ok(())
    }

    /// The blocks in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Array2<f64>, DataError>> {
        (0..self.ranges().count()).map(|index| self.read(index))
    }

    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let n = self.n;
        (0..n.div_ceil(BLOCK)).map(move |index| index * BLOCK..n.min((index + 1) * BLOCK))
    }

    fn path(&self, index: usize) -> PathBuf {
        self.folder.join(format!("block-{index:06}"))
    }

    /// Hash, number of columns, values.
    fn write(&self, index: usize, values: &Array2<f64>) -> Result<(), CliError> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let columns = (values.ncols() as u64).to_le_bytes();
        let hash = blake3::hash(&[&columns, bytes.as_slice()].concat());
        Ok(write_atomically(&self.path(index), |file| {
            file.write_all(hash.as_bytes())?;
            file.write_all(&columns)?;
            file.write_all(&bytes)
        })?)
    }

    fn read(&self, index: usize) -> Result<Array2<f64>, DataError> {
        let path = self.path(index);
        let bytes = std::fs::read(&path).map_err(|source| read_error(&path, source))?;
        let damaged = || read_error(&path, std::io::Error::other("the block is damaged"));
        let (hash, content) = bytes.split_at_checked(blake3::OUT_LEN).ok_or_else(damaged)?;
        if blake3::hash(content).as_bytes() != hash {
            return Err(damaged());
        }
        let (columns, values) = content.split_at_checked(8).ok_or_else(damaged)?;
        let columns = columns.try_into().map(u64::from_le_bytes).map_err(|_| damaged())?;
        let columns = usize::try_from(columns).map_err(|_| damaged())?;
        let values: Vec<f64> = values.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        let rows = values.len().checked_div(columns).unwrap_or_default();
        Array2::from_shape_vec((rows, columns), values).map_err(|_| damaged())
    }
}

fn write_error(path: &Path, source: std::io::Error) -> DataError {
    DataError::Write { path: path.to_owned(), source }
}

fn read_error(path: &Path, source: std::io::Error) -> DataError {
    DataError::Read { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
    use super::*;

    fn value(sample: usize) -> f64 {
        sample as f64 / 3.0
    }

    fn fill(blocks: &Blocks, stop_before: usize) -> Result<Vec<Range<usize>>, CliError> {
        let mut computed = Vec::new();
        let result = blocks.fill("testing", |range| {
            if range.start >= stop_before {
                return Err(CliError::Check("stopped".to_owned()));
            }
            computed.push(range.clone());
            Ok(Array2::from_shape_fn((range.len(), 2), |(row, _)| value(range.start + row)))
        });
        result.map(|()| computed)
    }

    #[test]
    fn an_interrupted_pass_resumes_at_the_first_missing_or_damaged_block() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("work");
        let n = 2 * BLOCK + 3;
        let blocks = Blocks::open(&folder, "a", n).unwrap();
        assert!(fill(&blocks, BLOCK).is_err());
        let blocks = Blocks::open(&folder, "a", n).unwrap();
        assert_eq!(fill(&blocks, n).unwrap(), [BLOCK..2 * BLOCK, 2 * BLOCK..n]);
        let mut bytes = std::fs::read(blocks.path(1)).unwrap();
        bytes[50] ^= 1;
        std::fs::write(blocks.path(1), bytes).unwrap();
        assert_eq!(fill(&blocks, n).unwrap(), vec![BLOCK..2 * BLOCK]);
        let all: Vec<f64> = blocks.iter().flat_map(|block| block.unwrap().column(1).to_vec()).collect();
        assert_eq!(all, (0..n).map(value).collect::<Vec<_>>());
        let other = Blocks::open(&folder, "b", n).unwrap();
        assert_eq!(fill(&other, n).unwrap().len(), 3, "blocks of another key are not used");
    }
}
