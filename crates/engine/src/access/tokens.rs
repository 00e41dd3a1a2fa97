//! The statements about tokens. A token has the rights of its user, or the part of them that it is limited to.
//!
//! Not here: how a request's token is checked (`logins`).

use crate::access::accounts::{Accounts, check_whole};
use tributary_catalog::CatalogError;
use tributary_query::Grid;
use tributary_sql::{TokenStatement, UserName};
use tributary_types::host::unix_ms;
use tributary_types::{
    ErrorCode, Principal, Secret, SqlError, StoredToken, TOKEN_RANDOM_BYTES, TokenHash, token_text,
};

const COLUMNS: [&str; 7] = ["User", "Name", "LimitedTo", "CreateTime", "ExpireTime", "LastUsed", "Comment"];

impl Accounts {
    /// Runs a statement about a token. Returns the grid with the new token, which is shown only here.
    pub async fn change_token(
        &self,
        who: &Principal,
        statement: TokenStatement,
    ) -> Result<Option<Grid>, SqlError> {
        match statement {
            TokenStatement::Create { name, user, limit, lifetime_s, comment } => {
                let owner = self.owner(who, user)?;
                let mut random = [0; TOKEN_RANDOM_BYTES];
                let unavailable = |_| {
                    SqlError::new(ErrorCode::Unknown, "internal error: the machine gives no random numbers")
                };
                aws_lc_rs::rand::fill(&mut random).map_err(unavailable)?;
                let text: Secret = token_text(&random);
                let hash = TokenHash::of(text.reveal()).ok_or_else(|| {
                    SqlError::new(ErrorCode::Unknown, "internal error: a token of ours has another form")
                })?;
                let created_at_ms = unix_ms();
                let lifetime_ms =
                    |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
                let token = StoredToken {
                    name: name.clone(),
                    hash,
                    limit,
                    created_at_ms,
                    expires_at_ms: lifetime_s
                        .map(|seconds| created_at_ms.saturating_add(lifetime_ms(seconds))),
                    used_at_ms: None,
                    comment,
                };
                self.catalog.create_token(&owner.name, &owner.host, token).await?;
                let row = vec![
                    format!("'{}'@'{}'", owner.name, owner.host).into(),
                    name.into(),
                    text.reveal().into(),
                ];
                Ok(Some(Grid::new(&["User", "Name", "Token"]).with_row(row)))
            }
            TokenStatement::Drop { name, user, if_exists } => {
                let owner = self.owner(who, user)?;
                match self.catalog.drop_token(&owner.name, &owner.host, &name).await {
                    Err(CatalogError::UnknownToken(_)) if if_exists => Ok(None),
                    outcome => Ok(outcome.map(|()| None)?),
                }
            }
        }
    }

    /// The grid of SHOW TOKENS: of one user, by default one's own, or of all users. `shown` prints a time, in milliseconds
    /// since 1970.
    pub fn show_tokens(
        &self,
        who: &Principal,
        user: Option<&UserName>,
        all: bool,
        shown: fn(i64) -> String,
    ) -> Result<Grid, SqlError> {
        let users = match (all, user) {
            (true, _) => self.catalog.users(),
            (false, user) => {
                let owner = self.owner(who, user.cloned())?;
                vec![self.user(&owner.name, &owner.host)?]
            }
        };
        let mut grid = Grid::new(&COLUMNS);
        for user in users {
            for token in &user.account.tokens {
                let time = |at: Option<i64>| at.map(shown).map_or(tributary_query::Cell::Null, Into::into);
                let limit = token.limit.as_ref().map(|grants| {
                    let parts = grants.iter().map(|(scope, rights)| format!("{rights} ON {scope}"));
                    parts.collect::<Vec<_>>().join(", ")
                });
                grid.push(vec![
                    format!("'{}'@'{}'", user.name, user.host).into(),
                    token.name.as_str().into(),
                    limit.map_or(tributary_query::Cell::Null, Into::into),
                    time(Some(token.created_at_ms)),
                    time(token.expires_at_ms),
                    time(self.logins.last_use(token)),
                    token.comment.as_str().into(),
                ]);
            }
        }
        Ok(grid)
    }

    /// The user whose tokens are meant: oneself, or one that one may change.
    fn owner(&self, who: &Principal, user: Option<UserName>) -> Result<UserName, SqlError> {
        let own = UserName { name: who.user().to_owned(), host: who.account_host().to_owned() };
        let user = user.unwrap_or_else(|| own.clone());
        if user == own {
            check_whole(who)?;
        } else {
            self.check_other(who, &user)?;
        }
        Ok(user)
    }
}
