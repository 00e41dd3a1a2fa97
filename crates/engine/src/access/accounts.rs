//! Users and roles, and their rights: the statements about them.
//!
//! Invariant: no statement here lets a user gain rights. To change a user, a role or a grant takes GRANT there and every right
//! involved; so setting the password of another user opens nothing that was closed before.
//!
//! Source of the rules and columns: Doris's manual.

use crate::access::gate::Gate;
use crate::access::limits::Limits;
use crate::access::logins::Logins;
use crate::access::names::Names;
use crate::access::processes::Processes;
use crate::access::{Object, Privilege, Resource, mysql_grants};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_catalog::{Catalog, CatalogError, ReplacedPassword, User, UserChange};
use tributary_query::{Cell, Grid};
use tributary_sql::{GrantStatement, RoleStatement, SetProperty, UserName};
use tributary_types::privilege::{GrantScope, Grants, Right, Rights};
use tributary_types::{
    ErrorCode, NewPassword, PasswordHash, PolicyChange, Principal, SqlError, TlsRequirement, UserProperty,
};

/// The user that only itself may change.
pub(crate) const ROOT: &str = "root";
/// The resource that stands for all.
const ALL_RESOURCES: &str = "%";
/// The empty password.
const NO_PASSWORD: NewPassword = NewPassword::Hash(PasswordHash::EMPTY);
/// The value of a property that limits nothing.
const NO_LIMIT: &str = "-1";
/// Beginnings of Doris's other properties of users.
const OTHER_PROPERTIES: [&str; 16] = [
    "access_plan_fragment",
    "cpu_resource_limit",
    "default_cloud_cluster",
    "default_compute_group",
    "default_load_cluster",
    "default_workload_group",
    "enable_prefer_cached_rowset",
    "load_cluster.",
    "load_mem_limit",
    "max_query_instances",
    "parallel_fragment_exec_instance_num",
    "query_freshness_tolerance",
    "quota.",
    "resource.",
    "resource_tags.location",
    "sql_block_rules",
];
const GRANT_COLUMNS: [&str; 15] = [
    "UserIdentity",
    "Comment",
    "Password",
    "Roles",
    "GlobalPrivs",
    "CatalogPrivs",
    "DatabasePrivs",
    "TablePrivs",
    "ColPrivs",
    "ResourcePrivs",
    "CloudClusterPrivs",
    "CloudStagePrivs",
    "StorageVaultPrivs",
    "WorkloadGroupPrivs",
    "ComputeGroupPrivs",
];
const ROLE_COLUMNS: [&str; 8] = [
    "Name",
    "Comment",
    "Users",
    "GlobalPrivs",
    "CatalogPrivs",
    "DatabasePrivs",
    "TablePrivs",
    "ResourcePrivs",
];

/// The attributes of a user to be created.
#[derive(Default)]
pub(crate) struct NewUser {
    pub password: Option<NewPassword>,
    pub role: Option<String>,
    pub require: TlsRequirement,
    pub policy: PolicyChange,
    pub comment: String,
}

/// The attributes of a user to be changed.
#[derive(Default)]
pub(crate) struct ChangedUser {
    pub password: Option<NewPassword>,
    pub require: Option<TlsRequirement>,
    pub policy: PolicyChange,
    pub unlocks: bool,
}

/// Changes users and roles.
pub(crate) struct Accounts {
    gate: Arc<Gate>,
    pub(super) catalog: Arc<Catalog>,
    names: Arc<Names>,
    processes: Arc<Processes>,
    pub(super) logins: Arc<Logins>,
    limits: Arc<Limits>,
    /// The server listens where strangers reach it.
    needs_passwords: AtomicBool,
}

impl Accounts {
    pub fn new(
        gate: Arc<Gate>,
        catalog: Arc<Catalog>,
        names: Arc<Names>,
        processes: Arc<Processes>,
        logins: Arc<Logins>,
        limits: Arc<Limits>,
    ) -> Self {
        Self { gate, catalog, names, processes, logins, limits, needs_passwords: AtomicBool::new(false) }
    }

    /// From now on no user can be without a password.
    pub fn require_passwords(&self) {
        self.needs_passwords.store(true, Ordering::Release);
    }

    /// Whether a user of that name may administer the server.
    pub fn is_operator(&self, name: &str) -> bool {
        let of_name = self.catalog.users();
        let mut of_name = of_name.iter().filter(|user| user.name == name);
        of_name.any(|user| {
            let grants = self.catalog.grants_of(&user.name, &user.host).unwrap_or_default();
            grants.on(&GrantScope::Global).has_any(Rights::of(&[Right::Node, Right::Admin]))
        })
    }

    pub async fn create_user(
        &self,
        who: &Principal,
        name: &UserName,
        new: NewUser,
        if_not_exists: bool,
    ) -> Result<(), SqlError> {
        let NewUser { password, role, require, policy, comment } = new;
        let password = self.replacement(name, None, None, password.unwrap_or(NO_PASSWORD)).await?;
        let mut user = User::new(&name.name, &name.host, password.password);
        user.account.password_set_at_ms = password.set_at_ms;
        user.account.policy.apply(policy);
        user.account.comment = comment;
        user.account.require = require;
        if let Some(role) = role {
            self.check_role(who, &role)?;
            user.account.roles.insert(role);
        }
        match self.catalog.create_user(user).await {
            Err(CatalogError::UserExists { .. }) if if_not_exists => Ok(()),
            outcome => self.changed(outcome),
        }
    }

    pub async fn drop_user(&self, who: &Principal, user: &UserName, if_exists: bool) -> Result<(), SqlError> {
        self.check_change(who, user)?;
        match self.catalog.drop_user(&user.name, &user.host).await {
            Err(CatalogError::UnknownUser { .. }) if if_exists => Ok(()),
            outcome => {
                self.changed(outcome)?;
                let all = self.processes.all();
                let of_user = all.iter().filter(|process| process.is_of_account(&user.name, &user.host));
                of_user.for_each(|process| process.kill());
                Ok(())
            }
        }
    }

    /// Changes the given attributes of a user: a statement without a password must not take it away.
    pub async fn alter_user(
        &self,
        who: &Principal,
        user: &UserName,
        new: ChangedUser,
        if_exists: bool,
    ) -> Result<(), SqlError> {
        let Some(found) = self.catalog.user(&user.name, &user.host) else {
            return if if_exists { Ok(()) } else { self.user(&user.name, &user.host).map(drop) };
        };
        self.check_change(who, user)?;
        let ChangedUser { password, require, policy, unlocks } = new;
        let password = match password {
            Some(password) => Some(self.replacement(user, Some(found), policy.history, password).await?),
            None => None,
        };
        let change = UserChange { password, require, policy };
        self.changed(self.catalog.alter_user(&user.name, &user.host, change).await)?;
        if unlocks {
            self.logins.unlock(&user.name, &user.host);
        }
        Ok(())
    }

    /// Sets the password of a user; one's own needs no right.
    pub async fn set_password(
        &self,
        who: &Principal,
        user: Option<&UserName>,
        password: NewPassword,
    ) -> Result<(), SqlError> {
        let own = UserName { name: who.user().to_owned(), host: who.account_host().to_owned() };
        let user = user.unwrap_or(&own);
        if *user == own {
            check_whole(who)?;
        } else {
            self.check_other(who, user)?;
        }
        let found = self.catalog.user(&user.name, &user.host);
        let password = Some(self.replacement(user, found, None, password).await?);
        let change = UserChange { password, ..UserChange::default() };
        self.changed(self.catalog.alter_user(&user.name, &user.host, change).await)
    }

    pub async fn change_role(&self, who: &Principal, statement: &RoleStatement) -> Result<(), SqlError> {
        match statement {
            RoleStatement::Create { name, if_not_exists, comment } => {
                match self.catalog.create_role(name, comment).await {
                    Err(CatalogError::RoleExists(_)) if *if_not_exists => Ok(()),
                    outcome => self.changed(outcome),
                }
            }
            RoleStatement::Alter { name, comment } => {
                self.check_role(who, name)?;
                self.changed(self.catalog.alter_role(name, comment).await)
            }
            RoleStatement::Drop { name, if_exists } => {
                if *if_exists && self.catalog.grants_of_role(name).is_none() {
                    return Ok(());
                }
                self.check_role(who, name)?;
                self.changed(self.catalog.drop_role(name).await)
            }
        }
    }

    /// The right to grant at all was checked with the statement.
    pub async fn grant(&self, who: &Principal, statement: &GrantStatement) -> Result<(), SqlError> {
        self.check_involved(who, statement)?;
        self.changed(match statement {
            GrantStatement::Rights { grants, grantee, .. } => self.catalog.grant(grantee, grants).await,
            GrantStatement::Roles { roles, user } => {
                self.catalog.grant_roles(&user.name, &user.host, roles).await
            }
        })
    }

    /// The right to revoke at all was checked with the statement.
    pub async fn revoke(&self, who: &Principal, statement: &GrantStatement) -> Result<(), SqlError> {
        self.check_involved(who, statement)?;
        self.changed(match statement {
            GrantStatement::Rights { grants, grantee, .. } => self.catalog.revoke(grantee, grants).await,
            GrantStatement::Roles { roles, user } => {
                self.catalog.revoke_roles(&user.name, &user.host, roles).await
            }
        })
    }

    /// The grid of SHOW GRANTS: of one user, by default one's own, or of all users.
    pub fn show_grants(&self, who: &Principal, user: Option<&UserName>, all: bool) -> Result<Grid, SqlError> {
        let users = match (all, user) {
            (true, _) => self.catalog.users(),
            (false, Some(user)) => vec![self.user(&user.name, &user.host)?],
            (false, None) => vec![self.user(who.user(), who.account_host())?],
        };
        let mut grid = Grid::new(&GRANT_COLUMNS);
        for user in users {
            let grants = self.catalog.grants_of(&user.name, &user.host).unwrap_or_default();
            let roles: Vec<&str> = user.account.roles.iter().map(String::as_str).collect();
            let has_password = if user.password.is_empty() { "No" } else { "Yes" };
            let mut row: Vec<Cell> = vec![
                format!("'{}'@'{}'", user.name, user.host).into(),
                user.account.comment.as_str().into(),
                has_password.into(),
                roles.join(",").into(),
            ];
            row.push(global(&grants));
            row.push(Cell::Null);
            row.push(databases(&grants, true));
            row.push(listed(&grants, |scope| matches!(scope, GrantScope::Table { .. })));
            row.push(listed(&grants, |scope| matches!(scope, GrantScope::Column { .. })));
            row.push(listed(&grants, |scope| matches!(scope, GrantScope::Resource(_))));
            row.resize_with(GRANT_COLUMNS.len(), || Cell::Null);
            grid.push(row);
        }
        Ok(grid)
    }

    /// The rows of SHOW GRANTS in MySQL's form: of one user, by default one's own.
    pub fn show_mysql_grants(&self, who: &Principal, user: Option<&UserName>) -> Result<Grid, SqlError> {
        let user = match user {
            Some(user) => self.user(&user.name, &user.host)?,
            None => self.user(who.user(), who.account_host())?,
        };
        let grants = self.catalog.grants_of(&user.name, &user.host).unwrap_or_default();
        Ok(mysql_grants::grid(&user, &grants))
    }

    /// Sets limits of a user, by default of one's own. All of the statement's, or none on an error.
    pub async fn set_property(&self, who: &Principal, statement: &SetProperty) -> Result<(), SqlError> {
        let own = UserName { name: who.user().to_owned(), host: who.account_host().to_owned() };
        let user = statement.user.as_ref().unwrap_or(&own);
        self.user(&user.name, &user.host)?;
        self.check_change(who, user)?;
        let read = |(name, value): &(String, String)| {
            let property = property(name)?;
            Ok((property, limit(property, value)?))
        };
        let limits = statement.properties.iter().map(read).collect::<Result<Vec<_>, SqlError>>()?;
        self.changed(self.catalog.set_limits(&user.name, &user.host, limits).await)
    }

    /// The grid of SHOW PROPERTY: of a user, by default one's own.
    pub fn show_property(&self, who: &Principal, user: Option<&UserName>) -> Result<Grid, SqlError> {
        let user = match user {
            Some(user) => self.user(&user.name, &user.host)?,
            None => self.user(who.user(), who.account_host())?,
        };
        let mut grid = Grid::new(&["Key", "Value"]);
        let mut all = UserProperty::ALL;
        all.sort_by_key(|property| property.name());
        for property in all {
            let value = user.account.limits.get(property);
            let shown = value.map_or_else(|| NO_LIMIT.to_owned(), |value| value.to_string());
            grid.push(vec![property.name().into(), shown.into()]);
        }
        Ok(grid)
    }

    /// The grid of SHOW ROLES.
    pub fn show_roles(&self) -> Grid {
        let users = self.catalog.users();
        let made = self.catalog.roles();
        let built_in = [tributary_catalog::OPERATOR_ROLE, tributary_catalog::ADMIN_ROLE];
        let names = built_in.into_iter().chain(made.iter().map(|role| role.name.as_str()));
        let mut grid = Grid::new(&ROLE_COLUMNS);
        for name in names {
            let grants = self.catalog.grants_of_role(name).unwrap_or_default();
            let comment = made.iter().find(|role| role.name == name).map_or("", |role| role.comment.as_str());
            let having: Vec<String> = users
                .iter()
                .filter(|user| user.account.roles.contains(name))
                .map(|user| format!("'{}'@'{}'", user.name, user.host))
                .collect();
            let mut row: Vec<Cell> = vec![name.into(), comment.into(), having.join(", ").into()];
            row.push(global(&grants));
            row.push(Cell::Null);
            row.push(databases(&grants, false));
            row.push(listed(&grants, |scope| matches!(scope, GrantScope::Table { .. })));
            row.push(listed(&grants, |scope| matches!(scope, GrantScope::Resource(_))));
            grid.push(row);
        }
        grid
    }

    pub(super) fn user(&self, name: &str, host: &str) -> Result<Arc<User>, SqlError> {
        let unknown = || CatalogError::UnknownUser { name: name.to_owned(), host: host.to_owned() };
        Ok(self.catalog.user(name, host).ok_or_else(unknown)?)
    }

    /// Plans that were checked before are checked again, and changed limits apply.
    fn changed(&self, outcome: Result<(), CatalogError>) -> Result<(), SqlError> {
        self.limits.refresh();
        self.names.changed();
        Ok(outcome?)
    }

    /// Makes what replaces a user's password; see [`Logins::replacement`].
    async fn replacement(
        &self,
        user: &UserName,
        found: Option<Arc<User>>,
        history: Option<Option<u32>>,
        password: NewPassword,
    ) -> Result<ReplacedPassword, SqlError> {
        if password.is_empty() {
            self.refuse_open_door(user)?;
        }
        self.logins.replacement(found, history, password).await
    }

    fn refuse_open_door(&self, user: &UserName) -> Result<(), SqlError> {
        if !self.needs_passwords.load(Ordering::Acquire) {
            return Ok(());
        }
        let text = format!(
            "user '{}'@'{}' without a password could be used by anyone who reaches this server, which listens beyond loopback: \
             give it one, IDENTIFIED BY '…'",
            user.name, user.host
        );
        Err(SqlError::detail(ErrorCode::Unknown, text))
    }

    /// Checks that `who` may change another user.
    pub(super) fn check_other(&self, who: &Principal, user: &UserName) -> Result<(), SqlError> {
        self.gate.check(who, Privilege::Grant, Object::Server)?;
        self.check_change(who, user)
    }

    /// Checks that `who` has every right that the user has.
    fn check_change(&self, who: &Principal, user: &UserName) -> Result<(), SqlError> {
        if user.name == ROOT && who.user() != ROOT {
            return Err(SqlError::new(ErrorCode::PrivilegeDenied, "Only root user can modify root user"));
        }
        match self.catalog.grants_of(&user.name, &user.host) {
            Some(grants) => self.check_grants(who, &grants),
            None => Ok(()),
        }
    }

    /// Checks that `who` has every right that is granted or revoked.
    fn check_involved(&self, who: &Principal, statement: &GrantStatement) -> Result<(), SqlError> {
        match statement {
            GrantStatement::Rights { grants, .. } => self.check_grants(who, grants),
            GrantStatement::Roles { roles, .. } => {
                roles.iter().try_for_each(|role| self.check_role(who, role))
            }
        }
    }

    /// Checks that the role exists, and that `who` has every right of it.
    fn check_role(&self, who: &Principal, role: &str) -> Result<(), SqlError> {
        let unknown = || CatalogError::UnknownRole(role.to_owned());
        let grants = self.catalog.grants_of_role(role).ok_or_else(unknown)?;
        self.check_grants(who, &grants)
    }

    fn check_grants(&self, who: &Principal, grants: &Grants) -> Result<(), SqlError> {
        grants.iter().try_for_each(|(scope, rights)| self.check_rights(who, scope, rights))
    }

    fn check_rights(&self, who: &Principal, scope: &GrantScope, rights: Rights) -> Result<(), SqlError> {
        let object = match scope {
            GrantScope::Global => Object::Server,
            GrantScope::Database(db) => Object::Database(db),
            GrantScope::Table { db, table } | GrantScope::Column { db, table, .. } => {
                Object::Table { db, table }
            }
            // Who may use all of them has that right on everything.
            GrantScope::Resource(name) if name == ALL_RESOURCES => Object::Server,
            GrantScope::Resource(name) => Object::Resource(resource(name)?),
        };
        rights.iter().try_for_each(|right| self.gate.check(who, privilege_of(right), object))
    }
}

/// Checks that `who` did not come with a token that is limited to some rights, and may change its own account.
///
/// # Errors
/// [`ErrorCode::PrivilegeDenied`].
pub(super) fn check_whole(who: &Principal) -> Result<(), SqlError> {
    match who.limit() {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            ErrorCode::PrivilegeDenied,
            "Access denied; a token that is limited to some rights changes and shows no passwords and tokens",
        )),
    }
}

/// The property of that name.
fn property(name: &str) -> Result<UserProperty, SqlError> {
    UserProperty::named(name).ok_or_else(|| {
        let is_of_doris = OTHER_PROPERTIES.iter().any(|prefix| name.to_ascii_lowercase().starts_with(prefix));
        let problem = if is_of_doris { "has no meaning in this server" } else { "is unknown" };
        let known = UserProperty::ALL.map(UserProperty::name).join(", ");
        SqlError::detail(ErrorCode::Unknown, format!("user property({name}) {problem}; there are {known}"))
    })
}

/// The value of a property; `None`: no limit.
fn limit(property: UserProperty, value: &str) -> Result<Option<u64>, SqlError> {
    match value.trim().parse::<i64>() {
        Ok(-1) => Ok(None),
        Ok(number) if number >= 1 => Ok(Some(number.unsigned_abs())),
        _ => Err(SqlError::detail(
            ErrorCode::Unknown,
            format!(
                "{} must be a number from 1 to {}, or {NO_LIMIT} for no limit, not '{value}'",
                property.name(),
                i64::MAX
            ),
        )),
    }
}

fn resource(name: &str) -> Result<Resource, SqlError> {
    let known = Resource::ALL.into_iter().find(|resource| resource.name().eq_ignore_ascii_case(name));
    known.ok_or_else(|| {
        let names = Resource::ALL.map(Resource::name).join(", ");
        let text = format!("unknown resource '{name}': there are {names}, and '%' for all of them");
        SqlError::detail(ErrorCode::Unknown, text)
    })
}

const fn privilege_of(right: Right) -> Privilege {
    match right {
        Right::Node => Privilege::Node,
        Right::Admin => Privilege::Admin,
        Right::Grant => Privilege::Grant,
        Right::Select => Privilege::Select,
        Right::Load => Privilege::Load,
        Right::Alter => Privilege::Alter,
        Right::Create => Privilege::Create,
        Right::Drop => Privilege::Drop,
        Right::Usage => Privilege::Usage,
        Right::ShowView => Privilege::ShowView,
    }
}

fn global(grants: &Grants) -> Cell {
    let rights = grants.on(&GrantScope::Global);
    if rights.is_empty() { Cell::Null } else { rights.to_string().into() }
}

/// The rights on databases; every user may read the ones of the server.
fn databases(grants: &Grants, with_system: bool) -> Cell {
    let listed = listed_texts(grants, |scope| matches!(scope, GrantScope::Database(_)));
    let system = ["information_schema", "mysql"].map(|db| format!("internal.{db}: Select_priv"));
    let all: BTreeSet<String> =
        listed.into_iter().chain(system.into_iter().filter(|_| with_system)).collect();
    joined(all.into_iter().collect())
}

fn listed(grants: &Grants, of: impl Fn(&GrantScope) -> bool) -> Cell {
    joined(listed_texts(grants, of))
}

fn joined(texts: Vec<String>) -> Cell {
    if texts.is_empty() { Cell::Null } else { texts.join("; ").into() }
}

fn listed_texts(grants: &Grants, of: impl Fn(&GrantScope) -> bool) -> Vec<String> {
    let shown = |scope: &GrantScope, rights: Rights| match scope {
        GrantScope::Global => rights.to_string(),
        GrantScope::Database(db) => format!("internal.{db}: {rights}"),
        GrantScope::Table { db, table } => format!("internal.{db}.{table}: {rights}"),
        GrantScope::Column { db, table, column } => format!("internal.{db}.{table}: {rights}({column})"),
        GrantScope::Resource(name) => format!("{name}: {rights}"),
    };
    grants.iter().filter(|(scope, _)| of(scope)).map(|(scope, rights)| shown(scope, rights)).collect()
}
