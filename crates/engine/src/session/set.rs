//! SET: system variables, user variables, character sets, passwords.

use super::EngineSession;
use crate::access::{Object, Privilege};
use crate::variables;
use arrow::array::Array;
use arrow::util::display::array_value_to_string;
use futures::StreamExt;
use std::collections::BTreeMap;
use std::sync::Arc;
use tributary_query::ScalarValue;
use tributary_sql::{Scope, SelectQuery, SetItem, SetValue};
use tributary_types::{ErrorCode, SqlError};

/// The maximum user variables of a session.
const USER_VARIABLES_MAX: usize = 1024;
/// Bytes of the names and values of all user variables of a session.
const USER_VARIABLES_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of names and values.
fn bytes_of(variables: &BTreeMap<String, String>) -> usize {
    variables.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// Sets a user variable, or removes it. Returns the bytes of all.
///
/// # Errors
/// If the session would have too many, or too large ones; nothing has changed then.
fn set_user_variable(
    variables: &mut BTreeMap<String, String>,
    name: String,
    value: Option<String>,
) -> Result<usize, SqlError> {
    let own = variables.get(&name).map_or(0, |value| name.len() + value.len());
    let bytes_of_others = bytes_of(variables) - own;
    let Some(value) = value else {
        variables.remove(&name);
        return Ok(bytes_of_others);
    };
    let refused = |what: String| {
        let text = format!("@{name} can't be set: {what}; SET @name = NULL forgets a variable");
        Err(SqlError::detail(ErrorCode::Unknown, text))
    };
    if variables.len() >= USER_VARIABLES_MAX && !variables.contains_key(&name) {
        return refused(format!("the session has {USER_VARIABLES_MAX} user variables, which is the most"));
    }
    let bytes = bytes_of_others + name.len() + value.len();
    if bytes > USER_VARIABLES_BYTES_MAX {
        return refused(format!(
            "the user variables of the session would have {bytes} bytes, and may have {USER_VARIABLES_BYTES_MAX}"
        ));
    }
    variables.insert(name, value);
    Ok(bytes)
}

impl EngineSession {
    /// Runs all assignments of one SET; none of them if one is wrong.
    pub(super) async fn run_set(
        &mut self,
        items: Vec<SetItem>,
        params: &[ScalarValue],
    ) -> Result<(), SqlError> {
        let before = (self.variables.clone(), self.user_variables.clone());
        let committed_each = self.commits_each();
        for item in items {
            if let Err(error) = self.set_one(item, params).await {
                (self.variables, self.user_variables) = before;
                // As before the assignments, unless another session has taken the memory meanwhile.
                let _ = self.variables_charge.set(bytes_of(&self.user_variables) as u64);
                return Err(error);
            }
        }
        if self.commits_each() && !committed_each {
            let _ = self.commit().await?;
        }
        Ok(())
    }

    async fn set_one(&mut self, item: SetItem, params: &[ScalarValue]) -> Result<(), SqlError> {
        match item {
            SetItem::Variable { scope, name, value } => self.set_variable(scope, &name, value, params).await,
            SetItem::AllVariables { scope } => self.unset_all(scope).await,
            SetItem::UserVariable { name, value } => {
                let value = self.value_of(value, params).await?;
                self.set_user_variable(name, value)
            }
            SetItem::Names { charset, collation } => {
                self.set_charset(charset.as_deref())?;
                self.variables
                    .set("collation_connection", collation.as_deref().unwrap_or("utf8mb4_general_ci"))
            }
            SetItem::CharacterSet { charset } => self.set_charset(charset.as_deref()),
            SetItem::Transaction { scope, isolation, read_only } => {
                self.set_transactions(scope, isolation, read_only).await
            }
            SetItem::Password { user, password } => {
                self.engine.accounts.set_password(&self.principal, user.as_ref(), password).await
            }
        }
    }

    /// SET TRANSACTION. The level changes nothing; that the next transaction only reads is a hint.
    async fn set_transactions(
        &mut self,
        scope: Option<Scope>,
        isolation: Option<String>,
        read_only: Option<bool>,
    ) -> Result<(), SqlError> {
        if scope == Some(Scope::Global) {
            self.engine.gate.check(&self.principal, Privilege::Admin, Object::Server)?;
        }
        let level = isolation.map(|level| ("transaction_isolation", level.replace(' ', "-")));
        let access = read_only.filter(|_| scope.is_some());
        let access = access.map(|only| ("transaction_read_only", if only { "ON" } else { "OFF" }.to_owned()));
        for (name, value) in level.into_iter().chain(access) {
            match scope {
                Some(Scope::Global) => self.engine.set_global(name, Some(&value)).await?,
                Some(Scope::Session) | None => self.variables.set(name, &value)?,
            }
        }
        Ok(())
    }

    /// Counts the memory of other user variables than before.
    pub(super) fn charge_user_variables(
        &mut self,
        variables: &BTreeMap<String, String>,
    ) -> Result<(), SqlError> {
        self.variables_charge.set(bytes_of(variables) as u64)
    }

    /// Sets a user variable; `None` is NULL, which forgets it.
    pub(super) fn set_user_variable(&mut self, name: String, value: Option<String>) -> Result<(), SqlError> {
        let mut variables = BTreeMap::clone(&self.user_variables);
        let bytes = set_user_variable(&mut variables, name, value)?;
        self.variables_charge.set(bytes as u64)?;
        self.user_variables = Arc::new(variables);
        Ok(())
    }

    /// Rows and results are UTF-8; a client that requests another character set gets an error.
    fn set_charset(&mut self, charset: Option<&str>) -> Result<(), SqlError> {
        let charset = charset.unwrap_or("utf8mb4");
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.variables.set(name, charset)?;
        }
        Ok(())
    }

    async fn set_variable(
        &mut self,
        scope: Scope,
        name: &str,
        value: SetValue,
        params: &[ScalarValue],
    ) -> Result<(), SqlError> {
        if scope == Scope::Global {
            self.engine.gate.check(&self.principal, Privilege::Admin, Object::Server)?;
        }
        if value == SetValue::Default {
            return match scope {
                Scope::Session => self.variables.reset(name),
                Scope::Global => self.engine.set_global(name, None).await,
            };
        }
        let text = self.value_of(value, params).await?.unwrap_or_default();
        match scope {
            Scope::Session => self.variables.set(name, &text),
            Scope::Global => self.engine.set_global(name, Some(&text)).await,
        }
    }

    /// Takes all variables back to their defaults.
    async fn unset_all(&mut self, scope: Scope) -> Result<(), SqlError> {
        if scope == Scope::Session {
            self.variables.reset_all();
            return Ok(());
        }
        self.engine.gate.check(&self.principal, Privilege::Admin, Object::Server)?;
        for name in self.engine.global_variables().changed() {
            self.engine.set_global(name, None).await?;
        }
        Ok(())
    }

    /// A value's text; `None` is NULL.
    async fn value_of(
        &mut self,
        value: SetValue,
        params: &[ScalarValue],
    ) -> Result<Option<String>, SqlError> {
        match value {
            SetValue::Default | SetValue::Null => Ok(None),
            SetValue::Text(text) | SetValue::Number(text) => Ok(Some(text)),
            SetValue::Variable { scope, name } => {
                let variable = variables::find(&name)?;
                Ok(Some(match scope {
                    Scope::Session => self.variables.get(variable),
                    Scope::Global => self.engine.global_variables().get(variable),
                }))
            }
            SetValue::Expr(expr) => {
                let Some(query) = SelectQuery::of_rows(vec![vec![expr.into_inner()]]) else {
                    return Ok(None);
                };
                self.first_value(&query, params).await
            }
        }
    }
}

impl EngineSession {
    /// The first value of a query as text; `None` is NULL or no row.
    pub(super) async fn first_value(
        &mut self,
        query: &SelectQuery,
        params: &[ScalarValue],
    ) -> Result<Option<String>, SqlError> {
        let view = self.view();
        let run = async {
            let mut result = self.queries.query(&view, query, params).await?;
            while let Some(batch) = result.stream.next().await {
                let batch = batch.map_err(|error| tributary_query::stream_error(&error))?;
                if batch.num_rows() > 0 {
                    let first = batch.column(0);
                    let is_null = first.is_null(0);
                    let text = array_value_to_string(first, 0)
                        .map_err(|error| SqlError::detail(ErrorCode::Unknown, error.to_string()))?;
                    return Ok((!is_null).then_some(text));
                }
            }
            Ok(None)
        };
        self.interrupt().or_after(self.query_timeout()).wait(run).await?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(variables: &mut BTreeMap<String, String>, name: &str, value: &str) -> Result<usize, String> {
        let set = set_user_variable(variables, name.to_owned(), Some(value.to_owned()));
        set.map_err(|error| error.detail_text().to_owned())
    }

    #[test]
    fn user_variables_are_bounded_in_number_and_size() {
        let mut variables = BTreeMap::new();
        for number in 0..USER_VARIABLES_MAX {
            set(&mut variables, &format!("v{number}"), "1").unwrap();
        }
        let refused = set(&mut variables, "one_more", "1").unwrap_err();
        assert!(refused.contains("@one_more can't be set: the session has 1024 user variables"), "{refused}");
        set(&mut variables, "v0", "2").expect("it is there already");
        set_user_variable(&mut variables, "v0".to_owned(), None).expect("it is forgotten");
        set(&mut variables, "one_more", "1").expect("there is space again");
        let large = "x".repeat(USER_VARIABLES_BYTES_MAX);
        let refused = set(&mut variables, "v1", &large).unwrap_err();
        assert!(refused.contains("may have 16777216") && refused.contains("SET @name = NULL"), "{refused}");
        assert_eq!(variables["v1"], "1");
        let half = "x".repeat(USER_VARIABLES_BYTES_MAX / 2);
        set(&mut variables, "v1", &half).unwrap();
        set(&mut variables, "v1", &half).expect("it takes the place of itself");
        assert!(set(&mut variables, "v2", &half).is_err());
    }
}
