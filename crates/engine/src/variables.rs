//! System variables of a session: each is declared once, and its field, its default, its legal values, who may set it and its row
//! of the reference are derived from that declaration.
//!
//! A variable that is not declared is refused by name (1193), so a misspelt `group_comit` is not accepted silently. A variable of
//! MySQL or Doris that would change answers is either obeyed or accepts only the value that answers conform to anyway; one that
//! promises speed is stored and shown.
//!
//! Not here: which variables there are ([`declared`]), and how a kind of value is read and shown ([`kind`]).

mod kind;
pub mod similar;
pub(crate) mod time_zone;

use declared::VARIABLES;
pub(crate) use declared::Values;
use kind::Wrong;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tributary_types::{ErrorCode, SqlError};

/// The value of `@@version_comment`.
pub const VERSION_COMMENT: &str = concat!("Tributary ", env!("CARGO_PKG_VERSION"));

/// The largest `max_prepared_stmt_count`.
pub const MAX_PREPARED_STATEMENTS: i64 = 1 << 20;

/// The default of `query_timeout`, in seconds.
pub(crate) const QUERY_TIMEOUT_DEFAULT_SECONDS: i64 = 900;
/// The default of `wait_timeout`, which leaves it to the server's setting.
pub(crate) const WAIT_TIMEOUT_DEFAULT_SECONDS: i64 = 28_800;

/// The effect of a variable, and who may set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Changes answers, as its meaning says.
    Obeyed,
    /// Like [`Effect::Obeyed`], but for all sessions: only SET GLOBAL sets it.
    Global,
    /// Like [`Effect::Obeyed`], but never for other sessions: SET GLOBAL is refused.
    Session,
    /// Kept and shown; answers are the same.
    Kept,
    /// Accepts its default only: other values would change answers in a way that is not implemented.
    Fixed,
    ReadOnly,
}

impl Effect {
    /// Whether a session can set such a variable.
    const fn is_of_sessions(self) -> bool {
        matches!(self, Self::Obeyed | Self::Session | Self::Kept)
    }
}

/// A system variable, without its value.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    /// One sentence, with a leading space.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reference, which a test makes"))]
    meaning: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reference, which a test makes"))]
    accepts: (&'static str, Option<(i64, i64)>),
    effect: Effect,
    show: fn(&Values) -> String,
    set: fn(&mut Values, &str) -> Result<(), Wrong>,
    reset: fn(&mut Values, &Values),
}

/// Declares variables: `/// Meaning.`, then `name: type = default, legal values, effect;`.
macro_rules! variables {
    ($($(#[doc = $meaning:literal])+ $name:ident: $type:ty = $default:expr, $kind:expr, $effect:ident;)+) => {
        /// The value of each variable.
        #[derive(Clone, Debug)]
        pub(crate) struct Values {
            $($(#[doc = $meaning])+ pub(crate) $name: $type,)+
        }

        impl Default for Values {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        /// All variables, by name.
        pub(super) const VARIABLES: &[Variable] = &[$({
            const KIND: Kind<$type> = $kind;
            Variable {
                name: stringify!($name),
                meaning: concat!($($meaning),+),
                accepts: (KIND.accepts, KIND.bounds),
                effect: Effect::$effect,
                show: |values| KIND.text(&values.$name),
                set: |values, text| {
                    values.$name = KIND.value(text)?;
                    Ok(())
                },
                reset: |values, defaults| values.$name.clone_from(&defaults.$name),
            }
        }),+];
    };
}

mod declared;

/// The variable called `name` in any case. Doris marks young variables with `experimental_`, which says
/// nothing.
///
/// # Errors
/// [`ErrorCode::UnknownVariable`] with similar names.
pub(crate) fn find(name: &str) -> Result<&'static Variable, SqlError> {
    let lower = name.to_ascii_lowercase();
    let plain =
        ["experimental_", "deprecated_"].iter().find_map(|mark| lower.strip_prefix(mark)).unwrap_or(&lower);
    VARIABLES.binary_search_by_key(&plain, |variable| variable.name).map(|index| &VARIABLES[index]).map_err(
        |_| {
            let near = similar::most_alike(name, VARIABLES.iter().map(|variable| variable.name), 3);
            SqlError::new(
                ErrorCode::UnknownVariable,
                format!("Unknown system variable '{name}',the similar variables are {{{}}}", near.join(", ")),
            )
        },
    )
}

/// The variables of a session. A copy shares its values until one of the two is changed, so that sessions
/// which set nothing have the global ones.
#[derive(Clone, Debug, Default)]
pub struct Variables(Arc<State>);

#[derive(Debug, Default)]
struct State {
    values: Values,
    /// The shown form of the values; computed on first use.
    shown: OnceLock<Arc<BTreeMap<String, String>>>,
}

impl Variables {
    pub(crate) fn values(&self) -> &Values {
        &self.0.values
    }

    /// The value of a variable as SHOW VARIABLES prints it.
    pub(crate) fn get(&self, variable: &Variable) -> String {
        (variable.show)(&self.0.values)
    }

    /// All variables by name, as SHOW VARIABLES prints them. Made once after each change.
    #[must_use]
    pub fn shown(&self) -> Arc<BTreeMap<String, String>> {
        let shown = || VARIABLES.iter().map(|variable| (variable.name.to_owned(), self.get(variable)));
        Arc::clone(self.0.shown.get_or_init(|| Arc::new(shown().collect())))
    }

    /// Sets a variable of a session.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownVariable`], [`ErrorCode::ReadOnlyVariable`], [`ErrorCode::GlobalVariable`],
    /// [`ErrorCode::WrongValueForVariable`] and [`ErrorCode::WrongTypeForVariable`], or the error of the kind of variable.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let variable = find(name)?;
        if variable.effect == Effect::Global {
            return Err(SqlError::new(
                ErrorCode::GlobalVariable,
                format!(
                    "Variable '{}' is a GLOBAL variable and should be set with SET GLOBAL",
                    variable.name
                ),
            ));
        }
        self.set_checked(variable, value)
    }

    /// Sets a variable of all sessions that begin later.
    ///
    /// # Errors
    /// See [`Variables::set`]; [`ErrorCode::SessionVariable`] instead of [`ErrorCode::GlobalVariable`].
    pub fn set_global(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let variable = find(name)?;
        if variable.effect == Effect::Session {
            return Err(SqlError::new(
                ErrorCode::SessionVariable,
                format!(
                    "Variable '{}' is a SESSION variable and can't be used with SET GLOBAL",
                    variable.name
                ),
            ));
        }
        self.set_checked(variable, value)
    }

    fn set_checked(&mut self, variable: &Variable, value: &str) -> Result<(), SqlError> {
        if variable.effect == Effect::ReadOnly {
            return Err(SqlError::new(
                ErrorCode::ReadOnlyVariable,
                format!("Variable '{}' is a read only variable", variable.name),
            ));
        }
        self.announce(variable.name, value)
    }

    /// Sets a variable of the server, also one that no statement can set.
    pub fn announce(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let variable = find(name)?;
        let mut values = self.0.values.clone();
        (variable.set)(&mut values, value).map_err(|wrong| error_of(variable, value, wrong))?;
        if variable.effect == Effect::Fixed {
            let (set, only) = ((variable.show)(&values), (variable.show)(&Values::default()));
            if !set.eq_ignore_ascii_case(&only) {
                return Err(error_of(variable, value, Wrong::Only(format!("'{only}'"))));
            }
            return Ok(());
        }
        match variable.name {
            "tx_isolation" => values.transaction_isolation.clone_from(&values.tx_isolation),
            "transaction_isolation" => values.tx_isolation.clone_from(&values.transaction_isolation),
            "tx_read_only" => values.transaction_read_only = values.tx_read_only,
            "transaction_read_only" => values.tx_read_only = values.transaction_read_only,
            _ => {}
        }
        *self = Self(Arc::new(State { values, shown: OnceLock::new() }));
        Ok(())
    }

    /// Takes all variables that a session can set back to their defaults.
    pub fn reset_all(&mut self) {
        let mut values = self.0.values.clone();
        for variable in VARIABLES.iter().filter(|variable| variable.effect.is_of_sessions()) {
            (variable.reset)(&mut values, &Values::default());
        }
        *self = Self(Arc::new(State { values, shown: OnceLock::new() }));
    }

    /// The variables that can be set for all sessions and have another value than by default.
    #[must_use]
    pub fn changed(&self) -> Vec<&'static str> {
        let defaults = Self::default();
        let is_changed = |variable: &&Variable| {
            !matches!(variable.effect, Effect::Session | Effect::ReadOnly | Effect::Fixed)
                && self.get(variable) != defaults.get(variable)
        };
        VARIABLES.iter().filter(is_changed).map(|variable| variable.name).collect()
    }

    /// Takes a variable back to its default, as if it had never been set.
    ///
    /// # Errors
    /// [`ErrorCode::UnknownVariable`].
    pub fn reset(&mut self, name: &str) -> Result<(), SqlError> {
        let mut values = self.0.values.clone();
        (find(name)?.reset)(&mut values, &Values::default());
        *self = Self(Arc::new(State { values, shown: OnceLock::new() }));
        Ok(())
    }
}

fn error_of(variable: &Variable, value: &str, wrong: Wrong) -> SqlError {
    let name = variable.name;
    let refused = || format!("Variable '{name}' can't be set to the value of '{value}'");
    match wrong {
        Wrong::Value => SqlError::detail(ErrorCode::WrongValueForVariable, refused()),
        Wrong::Only(right) => {
            SqlError::detail(ErrorCode::WrongValueForVariable, format!("{}; it accepts {right}", refused()))
        }
        Wrong::Type => SqlError::new(
            ErrorCode::WrongTypeForVariable,
            format!("Incorrect argument type to variable '{name}'"),
        ),
        Wrong::Other(error) => error,
    }
}

#[cfg(test)]
mod tests;
