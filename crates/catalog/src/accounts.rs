//! Changes and lookups of users and roles.
//!
//! Not here: whether somebody may make a change.

use crate::catalog::{Catalog, Result};
use crate::changes::{Shared, uncancelled};
use crate::error::CatalogError;
use crate::state::State;
use crate::store::Operation;
use crate::users::{OPERATOR_ROLE, PROTECTED_USER, Role, User, UserChange, built_in_role};
use std::sync::Arc;
use tributary_types::privilege::{GrantScope, Grantee, Grants, Rights};
use tributary_types::{StoredToken, UserProperty};

/// Tokens of a user.
const TOKENS_MAX: usize = 100;

impl Catalog {
    /// All users, in order of name and host.
    #[must_use]
    pub fn users(&self) -> Vec<Arc<User>> {
        self.state().users.clone()
    }

    /// Finds the user of that name for a connection from `host` (an address without port): among those whose host matches, the
    /// one with the most exact host.
    #[must_use]
    pub fn find_user(&self, name: &str, host: &str) -> Option<Arc<User>> {
        let state = self.state();
        let matching = state.users.iter().filter(|user| user.name == name && user.matches_host(host));
        matching.max_by_key(|user| user.exactness()).cloned()
    }

    /// The user of that name and host; `host` is the user's own, not a connection's.
    #[must_use]
    pub fn user(&self, name: &str, host: &str) -> Option<Arc<User>> {
        let state = self.state();
        state.user(name, host).map(|index| Arc::clone(&state.users[index]))
    }

    /// The grants of a role; `None` for one that does not exist.
    #[must_use]
    pub fn grants_of_role(&self, name: &str) -> Option<Grants> {
        built_in_role(name).or_else(|| self.state().roles.get(name).map(|role| role.grants.clone()))
    }

    /// The roles that users made, in order of their names.
    #[must_use]
    pub fn roles(&self) -> Vec<Arc<Role>> {
        self.state().roles.values().cloned().collect()
    }

    /// The grants of a user together with those of its roles; `None` for a user that does not exist.
    #[must_use]
    pub fn grants_of(&self, name: &str, host: &str) -> Option<Grants> {
        let state = self.state();
        let index = state.user(name, host)?;
        let account = &state.users[index].account;
        let mut all = account.grants.clone();
        for role in &account.roles {
            match (built_in_role(role), state.roles.get(role)) {
                (Some(grants), _) => all.extend(&grants),
                (None, Some(role)) => all.extend(&role.grants),
                (None, None) => {}
            }
        }
        Some(all)
    }

    /// Creates a user.
    ///
    /// # Errors
    /// [`CatalogError::UserExists`], [`CatalogError::UnknownRole`], or [`CatalogError::Store`].
    pub async fn create_user(&self, user: User) -> Result<()> {
        uncancelled(self.shared().create_user(user)).await
    }

    /// Sets a user's password, and forgets the ones before.
    #[cfg(test)]
    pub(crate) async fn set_password(
        &self,
        name: &str,
        host: &str,
        password: impl Into<tributary_types::Verifiers>,
    ) -> Result<()> {
        let password = crate::users::ReplacedPassword { password: password.into(), set_at_ms: 0, history: 0 };
        self.alter_user(name, host, UserChange { password: Some(password), ..UserChange::default() }).await
    }

    /// Changes the given attributes of a user; `host` is the user's own, not a connection's.
    ///
    /// # Errors
    /// [`CatalogError::UnknownUser`], or [`CatalogError::Store`].
    pub async fn alter_user(&self, name: &str, host: &str, change: UserChange) -> Result<()> {
        let change = move |_: &State, user: &mut User| {
            change.apply(user);
            Ok(())
        };
        uncancelled(self.shared().change_user(name.to_owned(), host.to_owned(), change)).await
    }

    /// Adds a token to a user.
    ///
    /// # Errors
    /// [`CatalogError::TokenExists`], [`CatalogError::TooManyTokens`], [`CatalogError::UnknownUser`], or [`CatalogError::Store`].
    pub async fn create_token(&self, name: &str, host: &str, token: StoredToken) -> Result<()> {
        let change = move |_: &State, user: &mut User| {
            let tokens = &mut user.account.tokens;
            if tokens.len() >= TOKENS_MAX {
                return Err(CatalogError::TooManyTokens(TOKENS_MAX));
            }
            match tokens.binary_search_by(|known| known.name.cmp(&token.name)) {
                Ok(_) => Err(CatalogError::TokenExists(token.name.clone())),
                Err(place) => {
                    tokens.insert(place, token.clone());
                    Ok(())
                }
            }
        };
        uncancelled(self.shared().change_user(name.to_owned(), host.to_owned(), change)).await
    }

    /// Changes the token of that name of a user.
    ///
    /// # Errors
    /// [`CatalogError::UnknownToken`], [`CatalogError::UnknownUser`], or [`CatalogError::Store`].
    async fn change_token(
        &self,
        name: &str,
        host: &str,
        token: &str,
        change: impl Fn(&mut Vec<StoredToken>, usize) + Send + Sync + 'static,
    ) -> Result<()> {
        let token = token.to_owned();
        let change = move |_: &State, user: &mut User| {
            let tokens = &mut user.account.tokens;
            let found = tokens.iter().position(|known| known.name == token);
            let place = found.ok_or_else(|| CatalogError::UnknownToken(token.clone()))?;
            change(tokens, place);
            Ok(())
        };
        uncancelled(self.shared().change_user(name.to_owned(), host.to_owned(), change)).await
    }

    /// Removes a token of a user.
    ///
    /// # Errors
    /// [`CatalogError::UnknownToken`], [`CatalogError::UnknownUser`], or [`CatalogError::Store`].
    pub async fn drop_token(&self, name: &str, host: &str, token: &str) -> Result<()> {
        let remove = |tokens: &mut Vec<StoredToken>, place: usize| drop(tokens.remove(place));
        self.change_token(name, host, token, remove).await
    }

    /// Records that a token of a user was used at a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Self::drop_token`].
    pub async fn token_used(&self, name: &str, host: &str, token: &str, at_ms: i64) -> Result<()> {
        let stamp = move |tokens: &mut Vec<StoredToken>, place: usize| tokens[place].used_at_ms = Some(at_ms);
        self.change_token(name, host, token, stamp).await
    }

    /// Sets limits of a user, or removes those without a value; `host` is the user's own, not a connection's.
    ///
    /// # Errors
    /// [`CatalogError::UnknownUser`], or [`CatalogError::Store`].
    pub async fn set_limits(
        &self,
        name: &str,
        host: &str,
        limits: Vec<(UserProperty, Option<u64>)>,
    ) -> Result<()> {
        let change = move |_: &State, user: &mut User| {
            limits.iter().for_each(|(property, value)| user.account.limits.set(*property, *value));
            Ok(())
        };
        uncancelled(self.shared().change_user(name.to_owned(), host.to_owned(), change)).await
    }

    /// Drops a user; its open sessions stay.
    ///
    /// # Errors
    /// [`CatalogError::UnknownUser`], [`CatalogError::ProtectedUser`], or [`CatalogError::Store`].
    pub async fn drop_user(&self, name: &str, host: &str) -> Result<()> {
        uncancelled(self.shared().drop_user(name.to_owned(), host.to_owned())).await
    }

    /// Creates a role without grants.
    ///
    /// # Errors
    /// [`CatalogError::RoleExists`], or [`CatalogError::Store`].
    pub async fn create_role(&self, name: &str, comment: &str) -> Result<()> {
        uncancelled(self.shared().create_role(name.to_owned(), comment.to_owned())).await
    }

    /// Sets the comment of a role.
    ///
    /// # Errors
    /// [`CatalogError::UnknownRole`], [`CatalogError::BuiltInRole`], or [`CatalogError::Store`].
    pub async fn alter_role(&self, name: &str, comment: &str) -> Result<()> {
        let comment = comment.to_owned();
        let change = move |role: &mut Role| {
            role.comment.clone_from(&comment);
            Ok(())
        };
        uncancelled(self.shared().change_role(name.to_owned(), false, change)).await
    }

    /// Drops a role, and takes it from all users.
    ///
    /// # Errors
    /// [`CatalogError::UnknownRole`], [`CatalogError::BuiltInRole`], or [`CatalogError::Store`].
    pub async fn drop_role(&self, name: &str) -> Result<()> {
        uncancelled(self.shared().drop_role(name.to_owned())).await
    }

    /// Adds rights. A role that does not exist is created, as in Doris.
    ///
    /// # Errors
    /// [`CatalogError::NotGrantable`], [`CatalogError::UnknownUser`], [`CatalogError::BuiltInRole`], or [`CatalogError::Store`].
    pub async fn grant(&self, to: &Grantee, added: &Grants) -> Result<()> {
        added.iter().try_for_each(|(scope, rights)| refuse_ungrantable(scope, rights))?;
        let added = added.clone();
        let add = move |grants: &mut Grants| {
            grants.extend(&added);
            Ok(())
        };
        self.change_grants(to, true, add).await
    }

    /// Takes rights away, each of which must be on exactly the scope of a grant.
    ///
    /// # Errors
    /// [`CatalogError::NoSuchGrant`], [`CatalogError::UnknownUser`], [`CatalogError::UnknownRole`],
    /// [`CatalogError::BuiltInRole`], or [`CatalogError::Store`].
    pub async fn revoke(&self, from: &Grantee, taken: &Grants) -> Result<()> {
        let (grantee, taken) = (from.clone(), taken.clone());
        let take = move |grants: &mut Grants| {
            taken.iter().try_for_each(|(scope, rights)| match grants.revoke(scope, rights) {
                true => Ok(()),
                false => Err(CatalogError::NoSuchGrant { grantee: grantee.clone(), scope: scope.clone() }),
            })
        };
        self.change_grants(from, false, take).await
    }

    async fn change_grants(
        &self,
        of: &Grantee,
        makes_role: bool,
        change: impl Fn(&mut Grants) -> Result<()> + Send + Sync + 'static,
    ) -> Result<()> {
        match of {
            Grantee::User { name, host } => {
                let change = move |_: &State, user: &mut User| change(&mut user.account.grants);
                uncancelled(self.shared().change_user(name.clone(), host.clone(), change)).await
            }
            Grantee::Role(name) => {
                let change = move |role: &mut Role| change(&mut role.grants);
                uncancelled(self.shared().change_role(name.clone(), makes_role, change)).await
            }
        }
    }

    /// Gives roles to a user.
    ///
    /// # Errors
    /// [`CatalogError::UnknownUser`], [`CatalogError::UnknownRole`], or [`CatalogError::Store`].
    pub async fn grant_roles(&self, name: &str, host: &str, roles: &[String]) -> Result<()> {
        let roles = roles.to_vec();
        let change = move |state: &State, user: &mut User| {
            roles.iter().try_for_each(|role| refuse_unknown_role(state, role))?;
            user.account.roles.extend(roles.iter().cloned());
            Ok(())
        };
        uncancelled(self.shared().change_user(name.to_owned(), host.to_owned(), change)).await
    }

    /// Takes roles from a user.
    ///
    /// # Errors
    /// [`CatalogError::UnknownUser`], [`CatalogError::UnknownRole`] also for one that the user does not have,
    /// [`CatalogError::ProtectedRole`], or [`CatalogError::Store`].
    pub async fn revoke_roles(&self, name: &str, host: &str, roles: &[String]) -> Result<()> {
        let roles = roles.to_vec();
        let change = move |_: &State, user: &mut User| {
            for role in &roles {
                if role == OPERATOR_ROLE && user.name == PROTECTED_USER {
                    return Err(CatalogError::ProtectedRole { role: role.clone(), user: user.name.clone() });
                }
                if !user.account.roles.remove(role) {
                    return Err(CatalogError::UnknownRole(role.clone()));
                }
            }
            Ok(())
        };
        uncancelled(self.shared().change_user(name.to_owned(), host.to_owned(), change)).await
    }
}

impl Shared {
    async fn create_user(self: Arc<Self>, user: User) -> Result<()> {
        self.change(|state| {
            if state.user(&user.name, &user.host).is_some() {
                return Err(CatalogError::UserExists { name: user.name.clone(), host: user.host.clone() });
            }
            user.account.roles.iter().try_for_each(|role| refuse_unknown_role(state, role))?;
            Ok((Operation::CreateUser(user.clone()), ()))
        })
        .await
    }

    async fn change_user(
        self: Arc<Self>,
        name: String,
        host: String,
        change: impl Fn(&State, &mut User) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        self.change(|state| {
            let mut user = known_user(state, &name, &host)?.clone();
            change(state, &mut user)?;
            Ok((Operation::ChangeUser(user), ()))
        })
        .await
    }

    async fn drop_user(self: Arc<Self>, name: String, host: String) -> Result<()> {
        self.change(|state| {
            known_user(state, &name, &host)?;
            if name == PROTECTED_USER {
                return Err(CatalogError::ProtectedUser(name.clone()));
            }
            Ok((Operation::DropUser { name: name.clone(), host: host.clone() }, ()))
        })
        .await
    }

    async fn create_role(self: Arc<Self>, name: String, comment: String) -> Result<()> {
        self.change(|state| {
            if has_role(state, &name) {
                return Err(CatalogError::RoleExists(name.clone()));
            }
            let role = Role { name: name.clone(), grants: Grants::default(), comment: comment.clone() };
            Ok((Operation::PutRole(role), ()))
        })
        .await
    }

    /// Changes a role; one that does not exist is made if `is_made`.
    async fn change_role(
        self: Arc<Self>,
        name: String,
        is_made: bool,
        change: impl Fn(&mut Role) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        self.change(|state| {
            refuse_built_in_role(&name)?;
            let mut role = match state.roles.get(&name) {
                Some(role) => Role::clone(role),
                None if is_made => {
                    Role { name: name.clone(), grants: Grants::default(), comment: String::new() }
                }
                None => return Err(CatalogError::UnknownRole(name.clone())),
            };
            change(&mut role)?;
            Ok((Operation::PutRole(role), ()))
        })
        .await
    }

    async fn drop_role(self: Arc<Self>, name: String) -> Result<()> {
        self.change(|state| {
            refuse_built_in_role(&name)?;
            refuse_unknown_role(state, &name)?;
            let having = state.users.iter().filter(|user| user.account.roles.contains(&name));
            let users = having.map(|user| {
                let mut user = User::clone(user);
                user.account.roles.remove(&name);
                user
            });
            Ok((Operation::DropRole { name: name.clone(), users: users.collect() }, ()))
        })
        .await
    }
}

fn known_user<'a>(state: &'a State, name: &str, host: &str) -> Result<&'a User> {
    match state.user(name, host) {
        Some(index) => Ok(&state.users[index]),
        None => Err(CatalogError::UnknownUser { name: name.to_owned(), host: host.to_owned() }),
    }
}

fn has_role(state: &State, name: &str) -> bool {
    state.roles.contains_key(name) || built_in_role(name).is_some()
}

fn refuse_unknown_role(state: &State, name: &str) -> Result<()> {
    if has_role(state, name) { Ok(()) } else { Err(CatalogError::UnknownRole(name.to_owned())) }
}

fn refuse_built_in_role(name: &str) -> Result<()> {
    match built_in_role(name) {
        Some(_) => Err(CatalogError::BuiltInRole(name.to_owned())),
        None => Ok(()),
    }
}

fn refuse_ungrantable(scope: &GrantScope, rights: Rights) -> Result<()> {
    let grantable = scope.grantable();
    if grantable.has_all(rights) {
        return Ok(());
    }
    Err(CatalogError::NotGrantable { rights: rights.without(grantable), scope: scope.clone(), grantable })
}

#[cfg(test)]
mod tests;
