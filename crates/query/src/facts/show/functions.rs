//! SHOW FUNCTIONS: the functions that a statement may call, as they are declared.

use crate::functions::{self, Family};
use crate::model::{Cell, Grid};

/// The rows of SHOW [FULL] [BUILTIN] FUNCTIONS, without LIKE. Users make no functions.
pub(super) fn grid(is_builtin: bool, full: bool) -> Grid {
    let mut grid = match full {
        true => Grid::new(&["Signature", "Return Type", "Function Type", "Intermediate Type", "Properties"]),
        false => Grid::new(&["Function Name"]),
    };
    if !is_builtin {
        return grid;
    }
    let mut all: Vec<_> =
        functions::ALL.iter().filter(|declared| declared.family != Family::Grammar).collect();
    all.sort_unstable_by_key(|declared| declared.name);
    for declared in all {
        if !full {
            grid.push(vec![declared.name.into()]);
            continue;
        }
        let (arguments, result) = declared.signature.split_once(" → ").unwrap_or((declared.signature, ""));
        let kind = match declared.family {
            Family::Aggregates => "Aggregate",
            Family::Windows => "Window",
            Family::Tables => "Table",
            _ => "Scalar",
        };
        grid.push(vec![
            format!("{}{arguments}", declared.name).into(),
            result.into(),
            kind.into(),
            Cell::Null,
            "".into(),
        ]);
    }
    grid
}
