//! System variables of a session: what clients set at connect and what changes how we answer.
//!
//! A variable that is not in [`VARIABLES`] is refused by name (1193), so a misspelt `group_comit`
//! is not taken silently. Variables of MySQL and Doris that clients send and that mean nothing
//! here are in the list, kept and shown.

use crate::time_zone::Zone;
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_types::{ErrorCode, GroupCommitMode, SERVER_VERSION, SqlError};

/// What a variable accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// Shown as `ON`/`OFF` (MySQL's) .
    Switch,
    /// Shown as `true`/`false` (Doris's).
    Flag,
    Integer,
    Decimal,
    Text,
    GroupCommit,
}

/// A system variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    pub name: &'static str,
    pub default: &'static str,
    pub kind: VariableKind,
    pub is_read_only: bool,
}

use VariableKind::{Decimal, Flag, GroupCommit, Integer, Switch, Text};

const fn var(name: &'static str, default: &'static str, kind: VariableKind) -> Variable {
    Variable { name, default, kind, is_read_only: false }
}

const fn fixed(name: &'static str, default: &'static str, kind: VariableKind) -> Variable {
    Variable { name, default, kind, is_read_only: true }
}

/// What `@@version_comment` says.
pub const VERSION_COMMENT: &str = concat!("Tributary ", env!("CARGO_PKG_VERSION"));

/// All system variables, by name.
pub const VARIABLES: &[Variable] = &[
    var("auto_increment_increment", "1", Integer),
    var("auto_increment_offset", "1", Integer),
    var("autocommit", "ON", Switch),
    var("character_set_client", "utf8mb4", Text),
    var("character_set_connection", "utf8mb4", Text),
    var("character_set_database", "utf8mb4", Text),
    var("character_set_results", "utf8mb4", Text),
    var("character_set_server", "utf8mb4", Text),
    fixed("character_set_system", "utf8mb4", Text),
    var("collation_connection", "utf8mb4_general_ci", Text),
    var("collation_database", "utf8mb4_general_ci", Text),
    var("collation_server", "utf8mb4_general_ci", Text),
    fixed("default_password_lifetime", "0", Integer),
    var("default_rowset_type", "beta", Text),
    var("default_storage_engine", "olap", Text),
    var("delete_without_partition", "true", Flag),
    var("div_precision_increment", "4", Integer),
    var("enable_fallback_to_original_planner", "true", Flag),
    var("enable_group_commit_full_prepare", "true", Flag),
    var("enable_insert_strict", "true", Flag),
    var("enable_memtable_on_sink_node", "true", Flag),
    var("enable_nereids_dml", "true", Flag),
    var("enable_nereids_planner", "true", Flag),
    var("enable_pipeline_engine", "true", Flag),
    var("enable_pipeline_x_engine", "true", Flag),
    var("enable_prepared_stmt_audit_log", "false", Flag),
    var("enable_profile", "false", Flag),
    var("enable_server_side_prepared_statement", "true", Flag),
    var("enable_sql_cache", "false", Flag),
    var("enable_strict_cast", "false", Flag),
    var("enable_unicode_name_support", "false", Flag),
    var("enable_unique_key_partial_update", "false", Flag),
    var("exec_mem_limit", "2147483648", Integer),
    var("foreign_key_checks", "ON", Switch),
    var("group_commit", "off_mode", GroupCommit),
    var("group_concat_max_len", "1048576", Integer),
    fixed("have_query_cache", "NO", Text),
    fixed("have_ssl", "DISABLED", Text),
    fixed("hostname", "tributary", Text),
    var("init_connect", "", Text),
    var("innodb_lock_wait_timeout", "50", Integer),
    var("insert_max_filter_ratio", "1.0", Decimal),
    var("insert_timeout", "14400", Integer),
    var("insert_visible_timeout_ms", "60000", Integer),
    var("interactive_timeout", "28800", Integer),
    fixed("language", "/share/english/", Text),
    var("lc_time_names", "en_US", Text),
    fixed("license", "Apache License, Version 2.0", Text),
    fixed("lower_case_table_names", "0", Integer),
    var("max_allowed_packet", "67108864", Integer),
    var("max_execution_time", "0", Integer),
    var("max_join_size", "18446744073709551615", Text),
    var("net_buffer_length", "16384", Integer),
    var("net_read_timeout", "600", Integer),
    var("net_write_timeout", "600", Integer),
    var("optimizer_switch", "", Text),
    var("parallel_fragment_exec_instance_num", "1", Integer),
    var("parallel_pipeline_task_num", "0", Integer),
    fixed("password_history", "0", Integer),
    fixed("performance_schema", "OFF", Switch),
    fixed("port", "9030", Integer),
    var("profiling", "OFF", Switch),
    fixed("protocol_version", "10", Integer),
    var("query_cache_size", "1048576", Integer),
    var("query_cache_type", "0", Integer),
    var("query_timeout", "900", Integer),
    fixed("read_only", "OFF", Switch),
    var("resource_group", "", Text),
    var("runtime_filter_mode", "GLOBAL", Text),
    fixed("server_id", "1", Integer),
    var("session_track_gtids", "OFF", Text),
    var("session_track_schema", "OFF", Switch),
    var("session_track_state_change", "OFF", Switch),
    var("show_full_dbname_in_info_schema_db", "false", Flag),
    var("show_hidden_columns", "false", Flag),
    var("sql_auto_is_null", "OFF", Switch),
    var("sql_big_selects", "ON", Switch),
    var("sql_log_bin", "ON", Switch),
    var(
        "sql_mode",
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        Text,
    ),
    var("sql_notes", "ON", Switch),
    var("sql_quote_show_create", "ON", Switch),
    var("sql_safe_updates", "OFF", Switch),
    var("sql_select_limit", "18446744073709551615", Text),
    var("sql_warnings", "OFF", Switch),
    fixed("super_read_only", "OFF", Switch),
    fixed("system_time_zone", "UTC", Text),
    var("time_zone", "UTC", Text),
    var("timestamp", "0", Decimal),
    var("transaction_isolation", "READ-COMMITTED", Text),
    var("transaction_read_only", "OFF", Switch),
    var("tx_isolation", "READ-COMMITTED", Text),
    var("tx_read_only", "OFF", Switch),
    var("unique_checks", "ON", Switch),
    fixed("validate_password_policy", "0", Integer),
    fixed("version", SERVER_VERSION, Text),
    fixed("version_comment", VERSION_COMMENT, Text),
    fixed("version_compile_machine", std::env::consts::ARCH, Text),
    fixed("version_compile_os", std::env::consts::OS, Text),
    var("wait_timeout", "28800", Integer),
    var("workload_group", "normal", Text),
];

/// The variable called `name` in any case.
///
/// # Errors
/// 1193 with similar names.
pub fn find(name: &str) -> Result<&'static Variable, SqlError> {
    VARIABLES.iter().find(|variable| variable.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        SqlError::new(
            ErrorCode::UnknownVariable,
            format!("Unknown system variable '{name}',the similar variables are {}", similar(name)),
        )
    })
}

fn similar(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> = name.split('_').filter(|word| word.len() > 2).collect();
    let score = |variable: &&Variable| words.iter().filter(|word| variable.name.contains(**word)).count();
    let mut near: Vec<_> = VARIABLES.iter().filter(|variable| score(variable) > 0).collect();
    near.sort_by_key(|variable| std::cmp::Reverse(score(variable)));
    let names: Vec<_> = near.iter().take(3).map(|variable| variable.name).collect();
    format!("{{{}}}", names.join(", "))
}

/// The values that differ from the defaults.
///
/// Invariant: `hot` says what `set` and the defaults say.
#[derive(Clone, Debug)]
pub struct Variables {
    set: BTreeMap<&'static str, String>,
    hot: Hot,
}

/// What every statement asks for, ready to use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hot {
    /// The session's mode, if anybody set it.
    pub group_commit: Option<GroupCommitMode>,
    pub autocommit: bool,
    pub no_backslash_escapes: bool,
    pub insert_is_strict: bool,
    /// The share of bad rows that an INSERT may have.
    pub insert_max_filter_ratio: f64,
    pub insert_timeout: Duration,
    pub partial_update: bool,
    pub zone: Zone,
}

impl Default for Variables {
    fn default() -> Self {
        Self::with(BTreeMap::new())
    }
}

impl Variables {
    fn with(set: BTreeMap<&'static str, String>) -> Self {
        let hot = Hot {
            group_commit: None,
            autocommit: true,
            no_backslash_escapes: false,
            insert_is_strict: true,
            insert_max_filter_ratio: 0.0,
            insert_timeout: Duration::ZERO,
            partial_update: false,
            zone: Zone::Utc,
        };
        let mut variables = Self { set, hot };
        variables.heat();
        variables
    }

    /// Reads what every statement asks for out of the texts.
    fn heat(&mut self) {
        let insert_is_strict = self.is_on("enable_insert_strict");
        let ratio = self.value("insert_max_filter_ratio").parse().unwrap_or(1.0);
        self.hot = Hot {
            group_commit: self.set.get("group_commit").and_then(|mode| GroupCommitMode::parse(mode)),
            autocommit: self.is_on("autocommit"),
            no_backslash_escapes: self.value("sql_mode").contains("NO_BACKSLASH_ESCAPES"),
            insert_is_strict,
            insert_max_filter_ratio: if insert_is_strict { 0.0 } else { ratio },
            insert_timeout: Duration::from_secs(self.number("insert_timeout").max(1)),
            partial_update: self.is_on("enable_unique_key_partial_update"),
            zone: Zone::named(self.value("time_zone")),
        };
    }

    pub(crate) fn hot(&self) -> &Hot {
        &self.hot
    }

    /// The value of a variable as SHOW VARIABLES prints it.
    #[must_use]
    pub fn get(&self, variable: &Variable) -> String {
        self.set.get(variable.name).cloned().unwrap_or_else(|| variable.default.to_owned())
    }

    /// The value of a variable that the code names itself.
    #[must_use]
    pub fn value(&self, name: &'static str) -> &str {
        let variable = VARIABLES.iter().find(|variable| variable.name == name);
        let default = variable.map_or("", |variable| variable.default);
        self.set.get(name).map_or(default, String::as_str)
    }

    /// Whether a flag or switch is on.
    #[must_use]
    pub fn is_on(&self, name: &'static str) -> bool {
        matches!(self.value(name), "ON" | "true")
    }

    /// A variable that is a whole number.
    #[must_use]
    pub fn number(&self, name: &'static str) -> u64 {
        self.value(name).parse().unwrap_or(0)
    }

    /// The session's mode, if anybody set it.
    #[must_use]
    pub fn group_commit(&self) -> Option<GroupCommitMode> {
        self.hot.group_commit
    }

    /// Sets a variable.
    ///
    /// # Errors
    /// 1193 unknown, 1238 read-only, 1231 a value that it does not accept, 1232 a wrong type.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let variable = find(name)?;
        if variable.is_read_only {
            return Err(SqlError::new(
                ErrorCode::ReadOnlyVariable,
                format!("Variable '{}' is a read only variable", variable.name),
            ));
        }
        let normal = normalise(variable, value)?;
        if matches!(variable.name, "tx_isolation" | "transaction_isolation") {
            self.set.insert("tx_isolation", normal.clone());
            self.set.insert("transaction_isolation", normal);
        } else {
            self.set.insert(variable.name, normal);
        }
        self.heat();
        Ok(())
    }

    /// Takes a variable back to its default, as if it had never been set.
    ///
    /// # Errors
    /// 1193 unknown.
    pub fn reset(&mut self, name: &str) -> Result<(), SqlError> {
        self.set.remove(find(name)?.name);
        self.heat();
        Ok(())
    }

    /// All variables with their values.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        VARIABLES.iter().map(|variable| (variable.name, self.get(variable)))
    }
}

fn normalise(variable: &Variable, value: &str) -> Result<String, SqlError> {
    let wrong_value = || {
        SqlError::detail(
            ErrorCode::WrongValueForVariable,
            format!("Variable '{}' can't be set to the value of '{value}'", variable.name),
        )
    };
    let wrong_type = || {
        SqlError::new(
            ErrorCode::WrongTypeForVariable,
            format!("Incorrect argument type to variable '{}'", variable.name),
        )
    };
    let switch = match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    };
    match variable.kind {
        VariableKind::Switch => {
            switch.map(|on| if on { "ON" } else { "OFF" }.to_owned()).ok_or_else(wrong_value)
        }
        VariableKind::Flag => switch.map(|on| on.to_string()).ok_or_else(wrong_value),
        VariableKind::Integer => {
            value.parse::<i64>().map(|number| number.to_string()).map_err(|_| wrong_type())
        }
        VariableKind::Decimal => match value.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(value.to_owned()),
            _ => Err(wrong_type()),
        },
        VariableKind::Text => Ok(value.to_owned()),
        VariableKind::GroupCommit => {
            GroupCommitMode::parse(value).map(|mode| mode.as_str().to_owned()).ok_or_else(wrong_value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_has_each_name_once() {
        assert!(VARIABLES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn a_session_that_never_set_the_mode_has_none() {
        let mut variables = Variables::default();
        assert_eq!(variables.group_commit(), None);
        assert_eq!(variables.value("group_commit"), "off_mode");
        variables.set("group_commit", "ASYNC_MODE").expect("legal");
        assert_eq!(variables.group_commit(), Some(GroupCommitMode::Async));
        variables.set("group_commit", "off_mode").expect("legal");
        assert_eq!(variables.group_commit(), Some(GroupCommitMode::Off));
        variables.reset("group_commit").expect("known");
        assert_eq!(variables.group_commit(), None);
    }

    #[test]
    fn a_mode_that_does_not_exist_is_refused_in_the_words_of_doris() {
        let error = Variables::default().set("group_commit", "abc").unwrap_err();
        assert_eq!(error.code.number(), 1231);
        assert_eq!(
            error.message,
            "errCode = 2, detailMessage = Variable 'group_commit' can't be set to the value of 'abc'"
        );
    }

    #[test]
    fn a_misspelt_variable_is_refused_with_similar_names() {
        let error = Variables::default().set("group_comit", "async_mode").unwrap_err();
        assert_eq!(error.code.number(), 1193);
        assert!(
            error.message.starts_with("Unknown system variable 'group_comit',the similar variables are {")
                && error.message.contains(" group_commit,"),
            "{error}"
        );
    }

    #[test]
    fn variables_of_clients_are_taken_in_any_spelling_of_on() {
        let mut variables = Variables::default();
        for (name, value) in
            [("AUTOCOMMIT", "1"), ("enable_nereids_planner", "false"), ("sql_safe_updates", "off")]
        {
            variables.set(name, value).expect(name);
        }
        assert!(variables.is_on("autocommit"));
        assert!(!variables.is_on("enable_nereids_planner"));
        assert_eq!(variables.set("version", "8").unwrap_err().code.number(), 1238);
    }
}
