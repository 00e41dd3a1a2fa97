//! The format of a data file's metadata: JSON in commit records of the write-ahead log, and tags of the Delta log's `add`
//! actions.
//!
//! Format 1 had neither a format nor a version of the table; 2 has both. An unknown number means that a newer server has written
//! there, and is an error: its metadata may change which rows of the file count.

use super::DataFile;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashMap;
use tributary_types::{PartitionId, Version};

/// The format written by this version, and the highest that it reads.
const CURRENT: u32 = 2;

const FORMAT_TAG: &str = "tributary.format";
const VERSION_TAG: &str = "tributary.version";
const PARTITION_TAG: &str = "tributary.partition";

/// The number of the format. In memory a description always has the current one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFormat;

impl Serialize for FileFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(CURRENT)
    }
}

impl<'de> Deserialize<'de> for FileFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        known(u32::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

fn known(format: u32) -> Result<FileFormat, String> {
    if (1..=CURRENT).contains(&format) {
        return Ok(FileFormat);
    }
    Err(format!("the description of a data file has format {format}; known are 1 to {CURRENT}"))
}

/// Tags that Delta readers ignore and that we read back.
pub(super) fn tags(file: &DataFile) -> HashMap<String, Option<String>> {
    let partition = file.partition.map(|id| (PARTITION_TAG.to_owned(), Some(id.to_string())));
    let always = [
        (FORMAT_TAG.to_owned(), Some(CURRENT.to_string())),
        (VERSION_TAG.to_owned(), Some(file.version.to_string())),
    ];
    always.into_iter().chain(partition).collect()
}

/// The tags of an `add` action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tags {
    /// 0 in files of other writers and of format 1, which have no such tag.
    pub(crate) version: Version,
    pub(crate) partition: Option<PartitionId>,
}

impl Tags {
    /// # Errors
    /// Says which tag is not understood.
    pub(crate) fn read(tags: Option<&HashMap<String, Option<String>>>) -> Result<Self, String> {
        let number = |key: &str| match tags.and_then(|tags| tags.get(key)?.as_deref()) {
            Some(text) => text.parse::<u64>().map(Some).map_err(|_| format!("the tag {key} = '{text}'")),
            None => Ok(None),
        };
        if let Some(format) = number(FORMAT_TAG)? {
            known(u32::try_from(format).unwrap_or(u32::MAX))?;
        }
        Ok(Self {
            version: Version(number(VERSION_TAG)?.unwrap_or(0)),
            partition: number(PARTITION_TAG)?.map(PartitionId),
        })
    }
}
