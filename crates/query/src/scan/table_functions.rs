//! The table functions that one statement may use.

use datafusion::datasource::TableProvider;
use datafusion::logical_expr::Expr;
use std::collections::HashMap;
use std::sync::Arc;
use tributary_sql::FILES_FUNCTION;

/// Table functions by lower-case name. The default is empty.
#[derive(Debug, Default)]
pub struct TableFunctions {
    functions: HashMap<String, Arc<dyn TableProvider>>,
    /// The files of the calls of [`FILES_FUNCTION`], in order of the calls.
    files: Vec<Arc<dyn TableProvider>>,
    are_of_load: bool,
}

impl TableFunctions {
    /// One that reads the body of a load: the statement converts values as loads do.
    pub fn of_load(name: &str, provider: Arc<dyn TableProvider>) -> Self {
        Self { are_of_load: true, ..Self::of_statement(name, provider) }
    }

    /// A function that stands for another source of the statement.
    pub fn of_statement(name: &str, provider: Arc<dyn TableProvider>) -> Self {
        Self { functions: HashMap::from([(name.to_lowercase(), provider)]), ..Self::default() }
    }

    pub fn are_of_load(&self) -> bool {
        self.are_of_load
    }

    /// Adds the files of the next call of [`FILES_FUNCTION`].
    pub fn add_files(&mut self, provider: Arc<dyn TableProvider>) {
        self.files.push(provider);
    }

    /// The source of the function of that name, in any case.
    pub fn get(&self, name: &str, args: &[Expr]) -> Option<&Arc<dyn TableProvider>> {
        match args {
            [Expr::Literal(place, _)] if name == FILES_FUNCTION => self.files(name, &place.to_string()),
            _ => self.functions.get(&name.to_lowercase()),
        }
    }

    /// The files of the call of [`FILES_FUNCTION`] at this place; `None` for another function.
    pub fn files(&self, function: &str, place: &str) -> Option<&Arc<dyn TableProvider>> {
        if function == FILES_FUNCTION { self.files.get(place.parse::<usize>().ok()?) } else { None }
    }
}
