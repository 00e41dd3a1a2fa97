//! Reading of stored values, which every store has in the same form.

use crate::definition;
use crate::error::CatalogError;
use crate::store::{Loaded, Stored};
use crate::users::User;
use std::sync::Arc;
use tributary_types::{PasswordHash, SaltedHash, Verifiers};

/// For `map_err`: a value that can't be read.
pub(crate) fn corrupt<E: std::fmt::Display>(what: impl Into<String>) -> impl Fn(E) -> CatalogError {
    let what = what.into();
    move |error| CatalogError::Corrupt { what: what.clone(), reason: error.to_string() }
}

/// A user's row.
pub(crate) struct StoredUser {
    pub name: String,
    pub host: String,
    pub native: Option<Vec<u8>>,
    pub salted: Option<String>,
    pub account: String,
}

impl StoredUser {
    /// # Errors
    /// [`CatalogError::Corrupt`].
    pub fn read(self) -> Stored<User> {
        let Self { name, host, native, salted, account } = self;
        let place = format!("the user '{name}'@'{host}'");
        let hash = native.map(|hash| hash.try_into().map_err(|_| "a password hash has 20 bytes")).transpose();
        let native = PasswordHash(hash.map_err(corrupt(place.clone()))?);
        let salted = salted.map(|text| SaltedHash::parse(&text).ok_or("a salted hash has another form"));
        let salted = salted.transpose().map_err(corrupt(place.clone()))?;
        Ok(User {
            password: Verifiers { native, salted },
            account: definition::account(&account).map_err(corrupt(place))?,
            name,
            host,
        })
    }
}

/// Moves views of recycled databases to these, with which they are in memory.
pub(crate) fn move_views(loaded: &mut Loaded) {
    let databases = &mut loaded.recycled.databases;
    loaded.views.retain(|view| {
        let Some(database) = databases.get_mut(&view.db_id) else { return true };
        let views = &mut Arc::make_mut(database).views;
        let place = views.partition_point(|other| other.name < view.name);
        views.insert(place, Arc::new(view.clone()));
        false
    });
}
