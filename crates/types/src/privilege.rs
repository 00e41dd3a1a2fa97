//! Privileges that users and roles hold, as Doris has them: which there are, on what they are granted, and how grants add up.
//!
//! Grants only add: a user has the union of its own grants and of its roles'. A grant names databases and tables, it does not
//! refer to them: it survives DROP and applies to a later object of the name.
//!
//! Not here: which privilege a statement needs.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
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
            Self::Resource(name) => write!(f, "RESOURCE '{name}'"),
        }
    }
}

/// Grants of one user or role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants(BTreeMap<GrantScope, Granted>);

/// The grants on one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    pub rights: Rights,
    /// Columns of a table that may be read although `rights` has no SELECT.
    #[serde(default)]
    pub select_columns: BTreeSet<String>,
}

impl Granted {
    fn is_empty(&self) -> bool {
        self.rights.is_empty() && self.select_columns.is_empty()
    }
}

/// Stored as a list of pairs: a scope is no key of a JSON object.
impl Serialize for Grants {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self.0)
    }
}

impl<'de> Deserialize<'de> for Grants {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs: Vec<(GrantScope, Granted)> = Vec::deserialize(deserializer)?;
        Ok(Self(pairs.into_iter().collect()))
    }
}

impl Grants {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&GrantScope, &Granted)> {
        self.0.iter()
    }

    /// Adds rights.
    pub fn grant(&mut self, scope: GrantScope, granted: &Granted) {
        let entry = self.0.entry(scope).or_default();
        entry.rights = entry.rights.with(granted.rights);
        entry.select_columns.extend(granted.select_columns.iter().cloned());
    }

    /// Takes rights away. Whether any of them was there is the result.
    pub fn revoke(&mut self, scope: &GrantScope, granted: &Granted) -> bool {
        let Some(entry) = self.0.get_mut(scope) else { return false };
        let before = entry.clone();
        entry.rights = entry.rights.without(granted.rights);
        entry.select_columns.retain(|column| !granted.select_columns.contains(column));
        let has_changed = *entry != before;
        if entry.is_empty() {
            self.0.remove(scope);
        }
        has_changed
    }

    /// Adds all grants of another.
    pub fn extend(&mut self, other: &Self) {
        for (scope, granted) in &other.0 {
            self.grant(scope.clone(), granted);
        }
    }

    /// The rights on everything.
    #[must_use]
    pub fn global(&self) -> Rights {
        self.rights_on(&GrantScope::Global)
    }

    /// The rights on a database and all its tables, including those on everything.
    #[must_use]
    pub fn on_database(&self, db: &str) -> Rights {
        self.global().with(self.rights_on(&GrantScope::Database(db.to_owned())))
    }

    /// The rights on a table, including those on its database and on everything.
    #[must_use]
    pub fn on_table(&self, db: &str, table: &str) -> Rights {
        let scope = GrantScope::Table { db: db.to_owned(), table: table.to_owned() };
        self.on_database(db).with(self.rights_on(&scope))
    }

    /// The rights on anything within a database.
    #[must_use]
    pub fn within_database(&self, db: &str) -> Rights {
        let in_database = |scope: &GrantScope| match scope {
            GrantScope::Table { db: of, .. } => of == db,
            _ => false,
        };
        self.0.iter().filter(|(scope, _)| in_database(scope)).fold(
            self.on_database(db),
            |rights, (_, granted)| {
                let columns = if granted.select_columns.is_empty() {
                    Rights::NONE
                } else {
                    Rights::of(&[Right::Select])
                };
                rights.with(granted.rights).with(columns)
            },
        )
    }

    /// The columns of a table that may be read by a grant of their own.
    #[must_use]
    pub fn columns_of(&self, db: &str, table: &str) -> Option<&BTreeSet<String>> {
        let scope = GrantScope::Table { db: db.to_owned(), table: table.to_owned() };
        self.0.get(&scope).map(|granted| &granted.select_columns).filter(|columns| !columns.is_empty())
    }

    /// The rights on a resource, including those on all resources and on everything.
    #[must_use]
    pub fn on_resource(&self, name: &str) -> Rights {
        let all = self.rights_on(&GrantScope::Resource("%".to_owned()));
        self.global().with(all).with(self.rights_on(&GrantScope::Resource(name.to_owned())))
    }

    fn rights_on(&self, scope: &GrantScope) -> Rights {
        self.0.get(scope).map_or(Rights::NONE, |granted| granted.rights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(db: &str, table: &str) -> GrantScope {
        GrantScope::Table { db: db.into(), table: table.into() }
    }

    fn granted(rights: &[Right]) -> Granted {
        Granted { rights: Rights::of(rights), select_columns: BTreeSet::new() }
    }

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
    fn grants_add_up_from_everything_to_the_table() {
        let mut grants = Grants::default();
        grants.grant(GrantScope::Global, &granted(&[Right::Select]));
        grants.grant(GrantScope::Database("d".into()), &granted(&[Right::Load]));
        grants.grant(table("d", "t"), &granted(&[Right::Drop]));
        assert_eq!(grants.on_table("d", "t"), Rights::of(&[Right::Select, Right::Load, Right::Drop]));
        assert_eq!(grants.on_table("d", "u"), Rights::of(&[Right::Select, Right::Load]));
        assert_eq!(grants.on_table("e", "t"), Rights::of(&[Right::Select]));
        assert_eq!(grants.on_database("d"), Rights::of(&[Right::Select, Right::Load]));
        assert_eq!(grants.within_database("d"), Rights::of(&[Right::Select, Right::Load, Right::Drop]));
    }

    #[test]
    fn a_revoked_right_is_gone_and_others_stay() {
        let mut grants = Grants::default();
        grants.grant(table("d", "t"), &granted(&[Right::Select, Right::Load]));
        assert!(grants.revoke(&table("d", "t"), &granted(&[Right::Load])));
        assert!(!grants.revoke(&table("d", "t"), &granted(&[Right::Load])));
        assert_eq!(grants.on_table("d", "t"), Rights::of(&[Right::Select]));
        assert!(!grants.revoke(&GrantScope::Global, &granted(&[Right::Select])), "that is another scope");
        assert!(grants.revoke(&table("d", "t"), &granted(&[Right::Select])));
        assert!(grants.is_empty());
    }

    #[test]
    fn columns_show_their_database_and_all_resources_are_each() {
        let mut grants = Grants::default();
        grants.grant(GrantScope::Resource("%".into()), &granted(&[Right::Usage]));
        let columns = Granted { rights: Rights::NONE, select_columns: ["a".to_owned()].into() };
        grants.grant(table("d", "t"), &columns);
        assert_eq!(grants.columns_of("d", "t").map(BTreeSet::len), Some(1));
        assert!(grants.within_database("d").has(Right::Select));
        assert!(grants.on_resource("s3").has(Right::Usage));
    }
}
