//! LIKE, WHERE, ORDER BY and LIMIT of SHOW, over rows in memory.

use crate::engine::QueryEngine;
use crate::error::plan_error;
use crate::model::SessionView;
use crate::rows::{Cell, Grid};
use tributary_sql::{ShowFilter, ShowTail};
use tributary_types::{ErrorCode, SqlError};

impl QueryEngine {
    /// Keeps the rows that the filter wants; LIKE looks at the column of that number.
    pub(super) fn filtered(
        &self,
        session: &SessionView,
        mut grid: Grid,
        filter: Option<&ShowFilter>,
        column: usize,
    ) -> Result<Grid, SqlError> {
        match filter {
            None => {}
            Some(ShowFilter::Like(pattern)) => {
                grid.retain(|row| matches!(&row[column], Cell::Text(text) if like(text, pattern)));
            }
            Some(ShowFilter::Where(condition)) => {
                let batch = grid.batch().map_err(|error| plan_error(&error.into()))?;
                let filter = self.compile_source_filter(session, batch.schema_ref(), condition)?;
                let kept = filter.evaluate(&batch)?;
                let mut index = 0;
                grid.retain(|_| {
                    index += 1;
                    kept.value(index - 1)
                });
            }
        }
        Ok(grid)
    }

    /// As [`Self::filtered`], then sorted and cut.
    pub(super) fn tailed(
        &self,
        session: &SessionView,
        grid: Grid,
        tail: &ShowTail,
        column: usize,
    ) -> Result<Grid, SqlError> {
        let mut grid = self.filtered(session, grid, tail.filter.as_ref(), column)?;
        for (name, descending) in tail.order_by.iter().rev() {
            let Some(at) = grid.names().iter().position(|known| known.eq_ignore_ascii_case(name)) else {
                return Err(SqlError::detail(
                    ErrorCode::UnknownColumn,
                    format!("Unknown column '{name}' in 'order clause'"),
                ));
            };
            grid.sort(at, *descending);
        }
        let offset = usize::try_from(tail.offset).unwrap_or(usize::MAX);
        let limit = tail.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        grid.slice(offset, limit);
        Ok(grid)
    }
}

/// MySQL's LIKE without regard to case: `%` any text, `_` one character, `\` the next as it is.
/// Time grows with the product of both lengths, never more.
#[must_use]
pub fn like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    // `reach[i]`: the pattern so far matches the first i characters.
    let mut reach = vec![false; text.len() + 1];
    reach[0] = true;
    let lower = pattern.to_lowercase();
    let mut letters = lower.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            let first = reach.iter().position(|reached| *reached).unwrap_or(reach.len());
            reach[first..].fill(true);
            continue;
        }
        let wanted = match letter {
            '_' => None,
            '\\' => Some(letters.next().unwrap_or('\\')),
            other => Some(other),
        };
        for at in (0..text.len()).rev() {
            reach[at + 1] = reach[at] && wanted.is_none_or(|wanted| wanted == text[at]);
        }
        reach[0] = false;
    }
    reach[text.len()]
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn like_knows_wildcards_and_escapes() {
        for (text, pattern, expected) in [
            ("group_commit", "group%", true),
            ("GROUP_COMMIT", "%commit", true),
            ("abc", "a_c", true),
            ("abc", "a\\_c", false),
            ("a_c", "a\\_c", true),
            ("", "%", true),
            ("", "", true),
            ("abc", "", false),
            ("abc", "%b%", true),
            ("aab", "%ab", true),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }
}
