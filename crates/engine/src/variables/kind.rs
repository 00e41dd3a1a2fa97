//! The legal values of a variable, and the conversion of its text.
//!
//! Not its business: which variables there are.

use crate::variables::time_zone::{self, Zone};
use tributary_sql::QuoteModes;
use tributary_types::{ErrorCode, GroupCommitMode, RejectPolicy, Requirement, SqlError};

/// Why a text is not a value of a variable.
#[derive(Debug)]
pub(super) enum Wrong {
    /// 1231.
    Value,
    /// 1231, with what would be right.
    Only(String),
    /// 1232.
    Type,
    Other(SqlError),
}

/// The legal values of a variable.
#[derive(Clone, Copy)]
pub(super) struct Kind<T: 'static> {
    /// For the reference.
    pub(super) accepts: &'static str,
    /// The bounds of a whole number.
    pub(super) bounds: Option<(i64, i64)>,
    read: fn(&str) -> Result<T, Wrong>,
    show: fn(&T) -> String,
}

impl<T> Kind<T> {
    /// The value of a text.
    pub(super) fn value(&self, text: &str) -> Result<T, Wrong> {
        if let Some((min, max)) = self.bounds {
            let number = text.trim().parse::<i128>().map_err(|_| Wrong::Type)?;
            if !(i128::from(min)..=i128::from(max)).contains(&number) {
                return Err(Wrong::Only(format!("a whole number from {min} to {max}")));
            }
        }
        (self.read)(text)
    }

    /// The text of a value, as `SHOW VARIABLES` has it.
    pub(super) fn text(&self, value: &T) -> String {
        (self.show)(value)
    }
}

fn truth(text: &str) -> Result<bool, Wrong> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => Err(Wrong::Value),
    }
}

/// The treatment of new keys in a partial update.
pub(super) const fn new_keys() -> Kind<String> {
    Kind {
        accepts: "APPEND, ERROR",
        bounds: None,
        read: |text| match text.trim().to_ascii_uppercase() {
            known if known == "APPEND" || known == "ERROR" => Ok(known),
            _ => Err(Wrong::Only("APPEND or ERROR".to_owned())),
        },
        show: String::clone,
    }
}

/// The treatment of DDL that only MySQL has.
pub(super) const fn mysql_ddl() -> Kind<String> {
    Kind {
        accepts: "doris, compat",
        bounds: None,
        read: |text| match text.trim().to_ascii_lowercase() {
            known if known == "doris" || known == "compat" => Ok(known),
            _ => Err(Wrong::Only("doris or compat".to_owned())),
        },
        show: String::clone,
    }
}

/// Shown as `ON` or `OFF`, as MySQL's are.
pub(super) const fn switch() -> Kind<bool> {
    Kind {
        accepts: "ON, OFF",
        bounds: None,
        read: truth,
        show: |value| if *value { "ON" } else { "OFF" }.to_owned(),
    }
}

/// Shown as `true` or `false`, as Doris's are.
pub(super) const fn flag() -> Kind<bool> {
    Kind { accepts: "true, false", bounds: None, read: truth, show: ToString::to_string }
}

pub(super) const fn whole(min: i64, max: i64) -> Kind<i64> {
    Kind {
        accepts: "",
        bounds: Some((min, max)),
        read: |text| text.trim().parse().map_err(|_| Wrong::Type),
        show: ToString::to_string,
    }
}

pub(super) const fn any_whole() -> Kind<i64> {
    whole(i64::MIN, i64::MAX)
}

/// `NONE` or `STRONG`, or their numbers.
pub(super) const fn password_strength() -> Kind<i64> {
    Kind {
        accepts: "NONE (0), STRONG (2)",
        bounds: None,
        read: |text| match text.trim().to_ascii_uppercase().as_str() {
            "0" | "NONE" => Ok(0),
            "2" | "STRONG" => Ok(2),
            _ => Err(Wrong::Only("NONE or STRONG".to_owned())),
        },
        show: ToString::to_string,
    }
}

/// A limit on rows; the largest number means no limit.
pub(super) const fn row_limit() -> Kind<u64> {
    Kind {
        accepts: "a number of rows",
        bounds: None,
        read: |text| text.trim().parse().map_err(|_| Wrong::Type),
        show: ToString::to_string,
    }
}

/// A number with its text, which is shown as it was set.
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    pub(crate) value: f64,
    text: String,
}

impl From<&str> for Decimal {
    fn from(text: &str) -> Self {
        Self { value: text.parse().unwrap_or_default(), text: text.to_owned() }
    }
}

pub(super) const fn decimal() -> Kind<Decimal> {
    Kind {
        accepts: "a number",
        bounds: None,
        read: |text| match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Decimal { value, text: text.to_owned() }),
            _ => Err(Wrong::Type),
        },
        show: |decimal| decimal.text.clone(),
    }
}

/// A share, from 0 to 1.
pub(super) const fn ratio() -> Kind<Decimal> {
    Kind {
        accepts: "0 to 1",
        read: |text| match decimal().value(text)? {
            ratio if (0.0..=1.0).contains(&ratio.value) => Ok(ratio),
            _ => Err(Wrong::Only("a number from 0 to 1".to_owned())),
        },
        ..decimal()
    }
}

pub(super) const fn text() -> Kind<String> {
    Kind { accepts: "text", bounds: None, read: |text| Ok(text.to_owned()), show: Clone::clone }
}

/// Rows and results are UTF-8; a client that requests another character set gets an error.
pub(super) const fn charset() -> Kind<String> {
    Kind {
        accepts: "utf8mb4, utf8mb3, utf8, ascii, latin1, binary",
        read: |text| {
            let known = ["utf8mb4", "utf8mb3", "utf8", "ascii", "latin1", "binary", "default", ""];
            let name = text.to_ascii_lowercase();
            if known.contains(&name.as_str()) {
                return Ok(name);
            }
            Err(Wrong::Other(SqlError::new(
                ErrorCode::UnknownCharset,
                format!("Unknown character set: '{text}'; text is UTF-8 here, use utf8mb4"),
            )))
        },
        ..text()
    }
}

/// The mode of Group Commit; `None` if it was never set.
pub(super) const fn group_commit() -> Kind<Option<GroupCommitMode>> {
    Kind {
        accepts: "off_mode, sync_mode, async_mode",
        bounds: None,
        read: |text| GroupCommitMode::parse(text).map(Some).ok_or(Wrong::Value),
        show: |mode| mode.unwrap_or(GroupCommitMode::Off).as_str().to_owned(),
    }
}

/// The least that a client wants of a load.
pub(super) const fn requirement() -> Kind<Option<Requirement>> {
    Kind {
        accepts: "an empty text, durable, visible, grouped",
        bounds: None,
        read: |text| match text {
            "" => Ok(None),
            text => Requirement::parse(text).map(Some).ok_or(Wrong::Value),
        },
        show: |required| required.map_or("", Requirement::as_str).to_owned(),
    }
}

/// The treatment of loads with rows that can't be loaded.
pub(super) const fn reject_policy() -> Kind<Option<RejectPolicy>> {
    Kind {
        accepts: "an empty text, fail, keep",
        bounds: None,
        read: |text| match text {
            "" => Ok(None),
            text => RejectPolicy::parse(text).map(Some).ok_or(Wrong::Value),
        },
        show: |policy| policy.map_or("", RejectPolicy::as_str).to_owned(),
    }
}

/// A time zone and the name that it was set by.
#[derive(Clone, Debug)]
pub(crate) struct NamedZone {
    pub(crate) zone: Zone,
    pub(crate) name: String,
}

impl From<&str> for NamedZone {
    fn from(name: &str) -> Self {
        Self { zone: Zone::named(name), name: name.to_owned() }
    }
}

pub(super) const fn zone() -> Kind<NamedZone> {
    Kind {
        accepts: "an offset like +08:00 or a name like Asia/Shanghai",
        bounds: None,
        read: |text| {
            if time_zone::is_known(text) {
                return Ok(text.into());
            }
            Err(Wrong::Other(SqlError::detail(
                ErrorCode::Unknown,
                format!(
                    "Unknown or incorrect time zone: '{text}'; use an offset like +08:00 or a name like Asia/Shanghai"
                ),
            )))
        },
        show: |zone| zone.name.clone(),
    }
}

/// The modes that `sql_mode` may have.
const SQL_MODES: [&str; 20] = [
    "ANSI",
    "ANSI_QUOTES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "IGNORE_SPACE",
    "NO_AUTO_CREATE_USER",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "NO_DIR_IN_CREATE",
    "NO_ENGINE_SUBSTITUTION",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_ZERO_DATE",
    "NO_ZERO_IN_DATE",
    "ONLY_FULL_GROUP_BY",
    "PIPES_AS_CONCAT",
    "REAL_AS_FLOAT",
    "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES",
    "TRADITIONAL",
];

/// The modes of `sql_mode`, with their text, which is shown as it was set.
#[derive(Clone, Debug, Default)]
pub(crate) struct SqlMode {
    text: String,
    pub(crate) quotes: QuoteModes,
    pub(crate) pipes_as_concat: bool,
    pub(crate) real_as_float: bool,
}

impl From<&str> for SqlMode {
    fn from(text: &str) -> Self {
        let has = |wanted: &str| modes(text).any(|mode| mode.eq_ignore_ascii_case(wanted));
        let is_ansi = has("ANSI");
        Self {
            text: text.to_owned(),
            quotes: QuoteModes {
                ansi_quotes: is_ansi || has("ANSI_QUOTES"),
                no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
            },
            pipes_as_concat: is_ansi || has("PIPES_AS_CONCAT"),
            real_as_float: is_ansi || has("REAL_AS_FLOAT"),
        }
    }
}

fn modes(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|mode| !mode.is_empty())
}

pub(super) const fn sql_mode() -> Kind<SqlMode> {
    Kind {
        accepts: "modes of MySQL that do not change values or types",
        bounds: None,
        read: |text| {
            for mode in modes(text) {
                if !SQL_MODES.iter().any(|known| known.eq_ignore_ascii_case(mode)) {
                    let known = SQL_MODES.join(", ");
                    return Err(Wrong::Only(format!(
                        "modes of {known}; {mode} would change what statements mean"
                    )));
                }
            }
            Ok(text.into())
        },
        show: |mode| mode.text.clone(),
    }
}
