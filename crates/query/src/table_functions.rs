//! The table functions that one statement may use.

use datafusion::datasource::TableProvider;
use std::collections::HashMap;
use std::sync::Arc;

/// Table functions by lower-case name. By default there are none.
#[derive(Debug, Default)]
pub struct TableFunctions {
    functions: HashMap<String, Arc<dyn TableProvider>>,
    are_of_load: bool,
}

impl TableFunctions {
    /// One that reads the body of a load: the statement converts values as loads do.
    pub fn of_load(name: &str, provider: Arc<dyn TableProvider>) -> Self {
        Self { are_of_load: true, ..Self::of_statement(name, provider) }
    }

    /// One that stands for something else that the statement reads.
    pub fn of_statement(name: &str, provider: Arc<dyn TableProvider>) -> Self {
        Self { functions: HashMap::from([(name.to_lowercase(), provider)]), are_of_load: false }
    }

    pub fn are_of_load(&self) -> bool {
        self.are_of_load
    }

    /// What a function of that name, in any case, reads.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn TableProvider>> {
        self.functions.get(&name.to_lowercase())
    }
}
