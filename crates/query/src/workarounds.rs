//! Rules that stop DataFusion from answering wrongly or refusing its own plan. One file per fault.
//!
//! A file's header names the fault, the upstream issue, and when the file can be deleted. The file of `tests/slt/workarounds` that
//! has its name fails without it: `tests/suite/workarounds.rs` runs each file with and without its workaround.
//!
//! Not here: the meaning of SQL, and rules that make a right plan faster.

pub mod analyzer;
pub mod logical;
pub mod physical;

/// The workarounds that an engine uses: all of them, or, in tests of the workarounds, all but one.
#[derive(Clone, Copy, Debug, Default)]
pub struct InUse {
    left_out: Option<&'static str>,
}

impl InUse {
    /// All but the workaround of this name.
    ///
    /// # Panics
    /// There is no such workaround.
    #[must_use]
    pub fn without(name: &str) -> Self {
        let left_out = names().find(|known| *known == name);
        assert!(left_out.is_some(), "there is no workaround called {name}");
        Self { left_out }
    }

    fn has(self, name: &str) -> bool {
        self.left_out != Some(name)
    }
}

/// The names of all workarounds, which are those of their files.
pub fn names() -> impl Iterator<Item = &'static str> {
    analyzer::names().chain(logical::names()).chain(physical::names())
}
