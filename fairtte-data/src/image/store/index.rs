//! `index.json` marks a folder of shards as a finished store. It is written last.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::plan::{Layout, Plan};
use crate::{DataError, write_atomically};

const FILE_NAME: &str = "index.json";

/// Layout of all shards, and the shards in the order of their images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Index {
    /// Fingerprint of settings and files.
    key: String,
    layout: Layout,
    shards: Vec<ShardEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ShardEntry {
    file: String,
    /// Fingerprint of the shard.
    key: String,
    /// Image files it covers, including those that could not be decoded.
    n_files: usize,
}

impl Index {
    pub(super) fn of(plan: &Plan) -> Self {
        let entry = |shard: &super::plan::ShardPlan| ShardEntry {
            file: shard.file_name(),
            key: shard.key.clone(),
            n_files: shard.rows.len(),
        };
        let shards = plan.shards.iter().map(entry).collect();
        Self { key: plan.key.clone(), layout: plan.layout.clone(), shards }
    }

    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join(FILE_NAME)
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), DataError> {
        write_atomically(&Self::path(folder), |writer| {
            serde_json::to_writer_pretty(writer, self).map_err(std::io::Error::other)
        })
    }

    /// Whether the index of `folder` equals this one.
    pub(super) fn stands_in(&self, folder: &Path) -> bool {
        let bytes = std::fs::read(Self::path(folder)).unwrap_or_default();
        serde_json::from_slice::<Self>(&bytes).is_ok_and(|stored| &stored == self)
    }
}
