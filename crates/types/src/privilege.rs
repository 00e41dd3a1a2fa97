//! Privileges that users and roles hold, as Doris has them: which there are, on what they are granted, and how grants add up.
//!
//! Grants only add: a user has the union of its own grants and of its roles'. A grant names databases and tables, it does not
//! refer to them: it survives DROP and applies to a later object of the name.
//!
//! Not here: which privilege a statement needs.

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A right that can be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// Add and remove nodes.
    Node,
    /// Everything but [`Right::Node`].
    Admin,
    /// Grant to others what one holds.
    Grant,
    Select,
    Load,
    Alter,
    Create,
    Drop,
    /// Use a resource.
    Usage,
    /// See the query of a view.
    ShowView,
}

impl Right {
    /// All rights, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Node,
        Self::Admin,
        Self::Grant,
        Self::Select,
        Self::Load,
        Self::Alter,
        Self::Create,
        Self::Drop,
        Self::Usage,
        Self::ShowView,
    ];

    /// The name in lists of grants, such as `Select_priv`.
    #[must_use]
    pub const fn shown(self) -> &'static str {
        match self {
            Self::Node => "Node_priv",
            Self::Admin => "Admin_priv",
            Self::Grant => "Grant_priv",
            Self::Select => "Select_priv",
            Self::Load => "Load_priv",
            Self::Alter => "Alter_priv",
            Self::Create => "Create_priv",
            Self::Drop => "Drop_priv",
            Self::Usage => "Usage_priv",
            Self::ShowView => "Show_view_priv",
        }
    }

    /// The name in refusals, such as `SELECT`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Node => "NODE",
            Self::Admin => "ADMIN",
            Self::Grant => "GRANT",
            Self::Select => "SELECT",
            Self::Load => "LOAD",
            Self::Alter => "ALTER",
            Self::Create => "CREATE",
            Self::Drop => "DROP",
            Self::Usage => "USAGE",
            Self::ShowView => "SHOW_VIEW",
        }
    }

    /// Reads `SELECT_PRIV` or `select`; `None` for an unknown name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        let name = name.strip_suffix("_PRIV").unwrap_or(&name);
        Self::ALL.into_iter().find(|right| right.name() == name)
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Some rights.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Rights(u16);

impl Rights {
    pub const NONE: Self = Self(0);
    /// The rights that `ALL` grants.
    pub const READ_WRITE: Self =
        Self::of(&[Right::Select, Right::Load, Right::Alter, Right::Create, Right::Drop]);
    /// Each of these makes an object visible in lists.
    pub const VISIBLE: Self =
        Self::of(&[Right::Select, Right::Load, Right::Alter, Right::Create, Right::Drop, Right::ShowView]);

    #[must_use]
    pub const fn of(rights: &[Right]) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < rights.len() {
            bits |= rights[index].bit();
            index += 1;
        }
        Self(bits)
    }

    #[must_use]
    pub const fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    #[must_use]
    pub const fn has_any(self, rights: Self) -> bool {
        self.0 & rights.0 != 0
    }

    #[must_use]
    pub const fn has_all(self, rights: Self) -> bool {
        self.0 & rights.0 == rights.0
    }

    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub const fn with(self, rights: Self) -> Self {
        Self(self.0 | rights.0)
    }

    #[must_use]
    pub const fn without(self, rights: Self) -> Self {
        Self(self.0 & !rights.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.has(*right))
    }
}

/// Stored as a list of names: a number would mean other rights once there is a right more.
impl Serialize for Rights {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Right::name))
    }
}

impl<'de> Deserialize<'de> for Rights {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names: Vec<String> = Vec::deserialize(deserializer)?;
        let add = |rights: Self, name: &String| {
            let right =
                Right::parse(name).ok_or_else(|| D::Error::custom(format!("unknown right '{name}'")))?;
            Ok(rights.with(Self::of(&[right])))
        };
        names.iter().try_fold(Self::NONE, add)
    }
}

/// `Select_priv,Load_priv`, as lists of grants show it.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, right) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}", right.shown())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rights({self})")
    }
}

/// The extent of a grant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GrantScope {
    /// `*.*`
    Global,
    /// `db.*`
    Database(String),
    /// `db.table`
    Table { db: String, table: String },
    /// `SELECT_PRIV(column) ON db.table`
    Column { db: String, table: String, column: String },
    /// `RESOURCE name`, a way out of the server; `%` is all of them.
    Resource(String),
}

impl GrantScope {
    /// The rights that can be granted on it.
    #[must_use]
    pub const fn grantable(&self) -> Rights {
        match self {
            Self::Global => Rights(u16::MAX),
            Self::Database(_) | Self::Table { .. } => Rights::VISIBLE.with(Rights::of(&[Right::Grant])),
            Self::Column { .. } => Rights::of(&[Right::Select]),
            Self::Resource(_) => Rights::of(&[Right::Usage, Right::Grant]),
        }
    }
}

/// The scope as GRANT names it.
impl fmt::Display for GrantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("*.*"),
            Self::Database(db) => write!(f, "{db}.*"),
            Self::Table { db, table } => write!(f, "{db}.{table}"),
            Self::Column { db, table, column } => write!(f, "{db}.{table}({column})"),
            Self::Resource(name) => write!(f, "RESOURCE '{name}'"),
        }
    }
}

/// The holder of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grantee {
    /// `host` is the user's own, not a connection's.
    User {
        name: String,
        host: String,
    },
    Role(String),
}

/// `'u'@'h'`, or `ROLE r`.
impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { name, host } => write!(f, "'{name}'@'{host}'"),
            Self::Role(name) => write!(f, "ROLE {name}"),
        }
    }
}

/// Grants of one user or role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(BTreeMap<GrantScope, Rights>);

/// Stored as a list of pairs: a scope is no key of a JSON object.
impl Serialize for Grants {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de> Deserialize<'de> for Grants {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs: Vec<(GrantScope, Rights)> = Vec::deserialize(deserializer)?;
        Ok(Self(pairs.into_iter().collect()))
    }
}

impl Grants {
    /// One grant.
    #[must_use]
    pub fn of(scope: GrantScope, rights: Rights) -> Self {
        Self(BTreeMap::from([(scope, rights)]))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&GrantScope, Rights)> {
        self.0.iter().map(|(scope, rights)| (scope, *rights))
    }

    /// Adds rights.
    pub fn grant(&mut self, scope: GrantScope, rights: Rights) {
        let held = self.0.entry(scope).or_default();
        *held = held.with(rights);
    }

    /// Takes rights away. Whether any of them was there is the result.
    pub fn revoke(&mut self, scope: &GrantScope, rights: Rights) -> bool {
        let Some(held) = self.0.get_mut(scope) else { return false };
        let has_any = held.has_any(rights);
        *held = held.without(rights);
        if held.is_empty() {
            self.0.remove(scope);
        }
        has_any
    }

    /// Adds all grants of another.
    pub fn extend(&mut self, other: &Self) {
        other.iter().for_each(|(scope, rights)| self.grant(scope.clone(), rights));
    }

    /// The rights that are granted on exactly this.
    #[must_use]
    pub fn on(&self, scope: &GrantScope) -> Rights {
        self.0.get(scope).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_and_without_their_suffix() {
        for right in Right::ALL {
            assert_eq!(Right::parse(right.name()), Some(right));
            assert_eq!(Right::parse(right.shown()), Some(right));
        }
        assert_eq!(Right::parse("select_priv"), Some(Right::Select));
        assert_eq!(Right::parse("SELECTS"), None);
    }

    #[test]
    fn a_revoked_right_is_gone_and_others_stay() {
        let table = GrantScope::Table { db: "d".into(), table: "t".into() };
        let (select, load) = (Rights::of(&[Right::Select]), Rights::of(&[Right::Load]));
        let mut grants = Grants::default();
        grants.grant(table.clone(), select);
        grants.grant(table.clone(), load);
        assert_eq!(grants.on(&table), select.with(load));
        assert!(grants.revoke(&table, load));
        assert!(!grants.revoke(&table, load));
        assert_eq!(grants.on(&table), select);
        assert!(!grants.revoke(&GrantScope::Global, select), "that is another scope");
        assert!(grants.revoke(&table, select));
        assert!(grants.is_empty());
    }
}
