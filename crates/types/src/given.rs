//! Sets of columns as text: which ones a row of a partial update gives.

use crate::ids::ColumnId;
use std::fmt::Write;

/// Columns of a table by their ids.
///
/// As text the ids are in order, runs of them as the first and the last: `1,4-6`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GivenColumns(Vec<ColumnId>);

impl GivenColumns {
    /// The set of these columns.
    #[must_use]
    pub fn new(ids: impl IntoIterator<Item = ColumnId>) -> Self {
        let mut ids: Vec<ColumnId> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }

    #[must_use]
    pub fn contains(&self, id: ColumnId) -> bool {
        self.0.binary_search(&id).is_ok()
    }

    /// The set as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for run in self.0.chunk_by(|before, next| next.0 == before.0 + 1) {
            let comma = if text.is_empty() { "" } else { "," };
            // Writing into a string does not fail.
            let _ = match run {
                [first, .., last] => write!(text, "{comma}{first}-{last}"),
                [one] => write!(text, "{comma}{one}"),
                [] => Ok(()),
            };
        }
        text
    }

    /// The set that has this text. `None`: no set has.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut ids = Vec::new();
        for run in text.split(',').filter(|run| !run.is_empty()) {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            // A table has no more columns.
            if last.checked_sub(first)? > 65_535 {
                return None;
            }
            ids.extend((first..=last).map(ColumnId));
        }
        Some(Self::new(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_columns_have_short_texts_and_come_back_from_them() {
        for (ids, text) in [
            (vec![], ""),
            (vec![7], "7"),
            (vec![3, 1, 2, 2], "1-3"),
            (vec![9, 4, 5, 1, 12, 11], "1,4-5,9,11-12"),
        ] {
            let set = GivenColumns::new(ids.iter().copied().map(ColumnId));
            assert_eq!(set.text(), text);
            assert_eq!(GivenColumns::parse(text), Some(set.clone()));
            assert!(ids.iter().all(|id| set.contains(ColumnId(*id))) && !set.contains(ColumnId(6)));
        }
        for text in ["a", "1-", "3-1", "0-4294967295"] {
            assert_eq!(GivenColumns::parse(text), None, "{text}");
        }
    }
}
