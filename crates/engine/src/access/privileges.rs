//! Access decisions by the grants in the catalog.
//!
//! Grants of a user are added up once and cached until the catalog changes, so a check is two look-ups in memory. Access is refused
//! before the object is looked up: a missing object and a forbidden one get the same answer.
//!
//! Source of the rules: Doris's manual of privileges (which privilege an action needs, and the texts of refusals).

use crate::access::{Access, Object, Privilege, Readable};
use arc_swap::ArcSwap;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tributary_catalog::Catalog;
use tributary_types::privilege::{GrantScope, Grants, Right, Rights};
use tributary_types::system::{is_internal_schema, is_system_database};
use tributary_types::{ErrorCode, Principal, SqlError};

/// Each of them shows the query of a view.
const SHOWS_VIEWS: Rights = Rights::of(&[Right::ShowView, Right::Create, Right::Alter, Right::Drop]);

/// Decides by the grants in the catalog.
pub(crate) struct Privileges {
    catalog: Arc<Catalog>,
    /// Of one revision of the catalog.
    cache: ArcSwap<Cache>,
}

/// Name and host of a user.
type Account = (Arc<str>, Arc<str>);

/// Grants by user; `None` for one that does not exist.
#[derive(Clone, Default)]
struct Cache {
    revision: u64,
    by_user: HashMap<Account, Option<Arc<Held>>>,
}

impl Privileges {
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self { catalog, cache: ArcSwap::default() }
    }

    /// The rights of the user, `None` if it does not exist any more.
    fn held(&self, principal: &Principal) -> Option<Arc<Held>> {
        // Before the grants are read: ones that change meanwhile are filed under a revision that has passed.
        let revision = self.catalog.revision();
        let cache = self.cache.load();
        let key = principal.account();
        if cache.revision == revision
            && let Some(held) = cache.by_user.get(&key)
        {
            return held.clone();
        }
        let grants = self.catalog.grants_of(principal.user(), principal.account_host());
        let held = grants.map(|grants| Arc::new(Held::of(&grants)));
        self.cache.rcu(|now| {
            let mut next = if now.revision == revision { Cache::clone(now) } else { Cache::default() };
            next.revision = revision;
            next.by_user.insert(key.clone(), held.clone());
            next
        });
        held
    }
}

impl Access for Privileges {
    fn check(&self, principal: &Principal, privilege: Privilege, object: Object<'_>) -> Result<(), SqlError> {
        match self.held(principal) {
            Some(held)
                if held.allows(principal.user(), privilege, object)
                    && is_within_limit(principal, privilege, object) =>
            {
                Ok(())
            }
            Some(_) => Err(refusal(principal, privilege, object)),
            None => Err(SqlError::new(
                ErrorCode::AccessDenied,
                format!(
                    "Access denied for user '{}'@'{}': it was dropped",
                    principal.user(),
                    principal.host()
                ),
            )),
        }
    }

    fn readable(&self, principal: &Principal, db: &str, table: &str) -> Readable {
        let of = |held: &Held| held.readable(principal.user(), db, table);
        let readable = self.held(principal).map_or(Readable::Nothing, |held| of(&held));
        match principal.limit() {
            Some(limit) => readable.and(of(&Held::of(limit))),
            None => readable,
        }
    }
}

/// Whether the principal's token, if it came with one, is not limited to other rights. What each user may do with its own account
/// is not among the rights of such a token.
fn is_within_limit(principal: &Principal, privilege: Privilege, object: Object<'_>) -> bool {
    /// The name of no user.
    const NOBODY: &str = "";
    principal.limit().is_none_or(|limit| Held::of(limit).allows(NOBODY, privilege, object))
}

/// The rights of a user, its roles' included, by the object.
#[derive(Debug, Default)]
struct Held {
    global: Rights,
    databases: HashMap<String, HeldInDatabase>,
    resources: HashMap<String, Rights>,
}

#[derive(Debug, Default)]
struct HeldInDatabase {
    /// On the database and all its tables.
    all: Rights,
    /// On the database or any of its tables.
    any: Rights,
    tables: HashMap<String, Rights>,
    /// The columns of tables that may be read although the table may not.
    columns: HashMap<String, BTreeSet<String>>,
}

impl Held {
    fn of(grants: &Grants) -> Self {
        let mut held = Self::default();
        for (scope, rights) in grants.iter() {
            match scope {
                GrantScope::Global => held.global = held.global.with(rights),
                GrantScope::Database(db) => {
                    let database = held.databases.entry(db.clone()).or_default();
                    database.all = database.all.with(rights);
                    database.any = database.any.with(rights);
                }
                GrantScope::Table { db, table } => {
                    let database = held.databases.entry(db.clone()).or_default();
                    let of_table = database.tables.entry(table.clone()).or_default();
                    *of_table = of_table.with(rights);
                    database.any = database.any.with(rights);
                }
                GrantScope::Column { db, table, column } => {
                    let database = held.databases.entry(db.clone()).or_default();
                    database.columns.entry(table.clone()).or_default().insert(column.clone());
                    database.any = database.any.with(rights);
                }
                GrantScope::Resource(name) => {
                    let of_resource = held.resources.entry(name.clone()).or_default();
                    *of_resource = of_resource.with(rights);
                }
            }
        }
        held
    }

    fn allows(&self, user: &str, privilege: Privilege, object: Object<'_>) -> bool {
        if let Object::Database(db) | Object::Table { db, .. } = object
            && is_internal_schema(db)
        {
            return self.allows_internal(privilege, db, object);
        }
        if self.is_admin() && (privilege != Privilege::Node || self.global.has(Right::Node)) {
            return true;
        }
        match privilege {
            Privilege::Connect => match object {
                Object::Server => true,
                Object::Database(db) => self.sees_database(db),
                Object::Table { db, table } => self.sees_table(db, table),
                Object::User(_) | Object::Connection(_) | Object::Resource(_) => false,
            },
            Privilege::ShowCreate => match object {
                Object::Table { db, table } => self.sees_all_of(db, table),
                _ => false,
            },
            Privilege::Show => match object {
                Object::Database(db) => self.sees_database(db),
                Object::Table { db, table } => self.sees_table(db, table),
                Object::User(name) => name == user || self.global.has(Right::Grant),
                Object::Server | Object::Connection(_) | Object::Resource(_) => false,
            },
            Privilege::ShowView => self.on(object).has_any(SHOWS_VIEWS),
            Privilege::Select => self.has(Right::Select, object) || is_of_system(object),
            Privilege::Load | Privilege::Truncate => self.has(Right::Load, object),
            Privilege::Create => self.has(Right::Create, object),
            Privilege::Alter => self.has(Right::Alter, object),
            Privilege::Drop => self.has(Right::Drop, object),
            Privilege::Usage => self.has(Right::Usage, object),
            Privilege::Grant => self.has(Right::Grant, object),
            Privilege::Admin | Privilege::Node => false,
        }
    }

    fn readable(&self, user: &str, db: &str, table: &str) -> Readable {
        if self.allows(user, Privilege::Select, Object::Table { db, table }) {
            return Readable::All;
        }
        let columns = self.databases.get(db).and_then(|database| database.columns.get(table));
        match columns {
            Some(columns) if !is_internal_schema(db) => Readable::Only(Arc::new(columns.clone())),
            _ => Readable::Nothing,
        }
    }

    fn is_admin(&self) -> bool {
        self.global.has_any(Rights::of(&[Right::Node, Right::Admin]))
    }

    /// The rights on the tables of the server itself. Nobody changes them, but an administrator may remove their rows. A right to
    /// read everything does not include them: they tell what others do.
    fn allows_internal(&self, privilege: Privilege, db: &str, object: Object<'_>) -> bool {
        match privilege {
            Privilege::Load | Privilege::Create | Privilege::Alter | Privilege::Drop => false,
            _ if self.is_admin() => privilege != Privilege::Node,
            Privilege::Select | Privilege::Connect | Privilege::Show | Privilege::ShowCreate => {
                let Some(held) = self.databases.get(db) else { return false };
                match object {
                    Object::Table { table, .. } => {
                        let of_table = held.tables.get(table).copied().unwrap_or_default();
                        held.all.with(of_table).has(Right::Select)
                    }
                    _ => held.any.has(Right::Select),
                }
            }
            _ => false,
        }
    }

    fn has(&self, right: Right, object: Object<'_>) -> bool {
        self.on(object).has(right)
    }

    /// The rights on an object, including those on what it is part of.
    fn on(&self, object: Object<'_>) -> Rights {
        let database = |db: &str| self.databases.get(db);
        match object {
            Object::Server | Object::User(_) | Object::Connection(_) => self.global,
            Object::Database(db) => database(db).map_or(self.global, |held| self.global.with(held.all)),
            Object::Table { db, table } => database(db).map_or(self.global, |held| {
                let of_table = held.tables.get(table).copied().unwrap_or_default();
                self.global.with(held.all).with(of_table)
            }),
            Object::Resource(resource) => {
                let of = |name: &str| self.resources.get(name).copied().unwrap_or_default();
                self.global.with(of("%")).with(of(resource.name()))
            }
        }
    }

    fn sees_database(&self, db: &str) -> bool {
        let any = self.databases.get(db).map_or(self.global, |held| self.global.with(held.any));
        any.has_any(Rights::VISIBLE) || is_system_database(db)
    }

    fn sees_table(&self, db: &str, table: &str) -> bool {
        let of = |database: &HeldInDatabase| database.columns.contains_key(table);
        self.sees_all_of(db, table) || self.databases.get(db).is_some_and(of)
    }

    fn sees_all_of(&self, db: &str, table: &str) -> bool {
        self.on(Object::Table { db, table }).has_any(Rights::VISIBLE) || is_system_database(db)
    }
}

/// Whether everybody may read it; its rows are the ones that the reader may see.
fn is_of_system(object: Object<'_>) -> bool {
    match object {
        Object::Database(db) | Object::Table { db, .. } => is_system_database(db),
        _ => false,
    }
}

const fn right_of(privilege: Privilege) -> Right {
    match privilege {
        Privilege::Select | Privilege::Connect => Right::Select,
        Privilege::Load | Privilege::Truncate => Right::Load,
        Privilege::Create => Right::Create,
        Privilege::Alter => Right::Alter,
        Privilege::Drop => Right::Drop,
        Privilege::Usage => Right::Usage,
        Privilege::ShowView => Right::ShowView,
        Privilege::Grant => Right::Grant,
        Privilege::Node => Right::Node,
        Privilege::Show | Privilege::ShowCreate | Privilege::Admin => Right::Admin,
    }
}

/// The text for a client. It is the same whether the object exists or not.
fn refusal(principal: &Principal, privilege: Privilege, object: Object<'_>) -> SqlError {
    let (user, host) = (principal.user(), principal.host());
    let right = right_of(privilege).name();
    match object {
        Object::Table { db, table } => {
            let command =
                if matches!(privilege, Privilege::Show | Privilege::ShowCreate) { "SHOW" } else { right };
            SqlError::new(
                ErrorCode::TableAccessDenied,
                format!("{command} command denied to user '{user}'@'{host}' for table '{db}: {table}'"),
            )
        }
        Object::Database(db) => SqlError::new(
            ErrorCode::DbAccessDenied,
            format!("Access denied for user '{user}'@'{host}' to database '{db}'"),
        ),
        Object::Resource(resource) => SqlError::new(
            ErrorCode::PrivilegeDenied,
            format!(
                "Access denied; you need (at least one of) the (ADMIN,{right}) privilege(s) for this operation: \
                 GRANT USAGE_PRIV ON RESOURCE '{}' TO '{user}'",
                resource.name()
            ),
        ),
        Object::Server | Object::User(_) | Object::Connection(_) => {
            let or_admin = if right == "ADMIN" { "" } else { "ADMIN," };
            SqlError::new(
                ErrorCode::PrivilegeDenied,
                format!(
                    "Access denied; you need (at least one of) the ({or_admin}{right}) privilege(s) for this operation"
                ),
            )
        }
    }
}

#[cfg(test)]
mod tests;
