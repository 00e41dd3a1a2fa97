//! Users and rights, and a client that changes them: it grants, revokes and grants again the right of a user that loads, creates
//! and drops users, and changes a password. What was acknowledged holds at once, and after every kill.

use crate::TortureError;
use crate::books::{Fate, Mode};
use crate::check::NoCheck;
use crate::doors::{Doors, Login, ROOT, password};
use crate::http;
use crate::load::{DATABASE, Load, TABLES};
use crate::mysql::{Client, connect, connect_as};
use crate::writers::{Gone, PATIENCE, Round, Shared};
use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use tributary_client::ClientError;

/// The user whose right to load comes and goes.
const LOADER: &str = "sometimes";
/// The user whose password is changed.
const CHANGED: &str = "changed";
/// The beginning of the names of users that are created and dropped.
const GUEST: &str = "guest_";
/// Users of that kind that there are at most.
const GUESTS_MAX: usize = 5;
/// The table that the user loads into, and its number.
const TABLE: (usize, &str) = (0, TABLES[0].0);
/// The most rows of the user's loads, so that changes are frequent.
const ROWS_MAX: u32 = 5;

/// Figures of users and rights.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RightsFigures {
    pub granted: u64,
    pub revoked: u64,
    /// Loads of the user while it had the right.
    pub loads: u64,
    /// Loads of the user that were refused because it had not.
    pub loads_denied: u64,
    pub users_created: u64,
    pub users_dropped: u64,
    pub passwords_changed: u64,
    /// Logins that were compared with what was acknowledged.
    pub logins_checked: u64,
}

impl RightsFigures {
    pub(crate) fn lines(&self) -> [(&'static str, u64); 8] {
        [
            ("rights granted", self.granted),
            ("rights revoked", self.revoked),
            ("loads with a right that comes and goes", self.loads),
            ("loads denied without it", self.loads_denied),
            ("users created", self.users_created),
            ("users dropped", self.users_dropped),
            ("passwords changed", self.passwords_changed),
            ("logins compared", self.logins_checked),
        ]
    }
}

/// A way to have the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Table,
    Role,
}

/// The changes that were acknowledged, and the one that has no answer yet: that may hold or not.
#[derive(Debug, Default)]
struct State {
    rights: BTreeSet<By>,
    pending_right: Option<By>,
    guests: BTreeSet<u64>,
    pending_guest: Option<u64>,
    last_dropped: Option<u64>,
    password: u64,
    pending_password: bool,
    guests_ever: u64,
    figures: RightsFigures,
}

/// The client and its books.
#[derive(Debug, Default)]
pub(crate) struct Rights(Mutex<State>);

/// Gives passwords to the users that exist from the start.
pub(crate) fn set_passwords(doors: &Doors) -> Result<(), TortureError> {
    let failed = |error: ClientError| TortureError::Setup(format!("passwords: {error}"));
    let login = Login { user: ROOT.to_owned(), password: String::new() };
    let mut client = connect_as(doors, &login, None).map_err(failed)?;
    for user in ["admin", ROOT] {
        let sql = format!("SET PASSWORD FOR '{user}' = PASSWORD('{}')", password(user));
        client.run(&sql).map_err(failed)?;
    }
    Ok(())
}

/// Creates a user for each kind of client, with the rights that it needs: of its own or of a role, on the database or on tables.
pub(crate) fn create_users(doors: &Doors) -> Result<(), TortureError> {
    let failed = |error: ClientError| TortureError::Setup(format!("users: {error}"));
    let mut client = connect(doors, ROOT, None).map_err(failed)?;
    let mut statements = vec![
        "CREATE ROLE loaders".to_owned(),
        format!("GRANT LOAD_PRIV, SELECT_PRIV ON {DATABASE}.* TO ROLE 'loaders'"),
        "CREATE ROLE readers".to_owned(),
        format!("GRANT SELECT_PRIV ON {DATABASE}.* TO ROLE 'readers'"),
    ];
    for (user, role) in [
        ("texts", None),
        ("prepared", Some("loaders")),
        ("explicit", Some("loaders")),
        ("streams", None),
        ("two_phase", None),
        ("upserts", None),
        ("partitions", None),
        ("columns", None),
        ("readers", Some("readers")),
        (LOADER, None),
        (CHANGED, Some("readers")),
    ] {
        let role = role.map_or_else(String::new, |role| format!(" DEFAULT ROLE '{role}'"));
        let password = if user == CHANGED { numbered(0) } else { password(user) };
        statements.push(format!("CREATE USER '{user}' IDENTIFIED BY '{password}'{role}"));
    }
    statements.push(format!("GRANT LOAD_PRIV, SELECT_PRIV ON {DATABASE}.* TO 'texts'"));
    for (table, _) in TABLES {
        for user in ["streams", "two_phase"] {
            statements.push(format!("GRANT LOAD_PRIV ON {DATABASE}.{table} TO '{user}'"));
        }
    }
    for table in crate::upserts::TABLES {
        statements.push(format!("GRANT LOAD_PRIV ON {DATABASE}.{table} TO 'upserts'"));
    }
    for table in crate::divided::TABLES {
        statements.push(format!("GRANT LOAD_PRIV, ALTER_PRIV ON {DATABASE}.{table} TO 'partitions'"));
    }
    statements.push(format!("GRANT ALTER_PRIV, SELECT_PRIV ON {DATABASE}.{} TO 'columns'", TABLES[1].0));
    for sql in statements {
        client.run(&sql).map_err(|error| TortureError::Setup(format!("{sql}: {error}")))?;
    }
    Ok(())
}

/// The password with that number.
fn numbered(number: u64) -> String {
    format!("Changed-{number}-times")
}

impl Rights {
    pub fn into_figures(self) -> RightsFigures {
        self.0.into_inner().figures
    }

    /// Changes rights and loads until the round is over.
    pub fn write(&self, shared: &Shared, round: &Round, seed: u64) {
        let mut state = self.0.lock();
        let rng = StdRng::seed_from_u64(seed ^ 3000 << 32 ^ u64::from(round.number));
        if let Err(Gone(reason)) = (Changer { shared, round, rng, state: &mut state }).work()
            && !round.is_killed.load(Ordering::SeqCst)
        {
            shared.violation(format!("a connection (rights) broke while the server ran: {reason}"));
        }
    }

    /// Compares rights, users and the password with what was acknowledged. The outcome of a change without an answer is known
    /// afterwards.
    pub fn check(&self, shared: &Shared, doors: &Doors) -> Result<(), NoCheck> {
        let state = &mut *self.0.lock();
        let mut root = connect(doors, ROOT, None)?;
        let mut guests = BTreeSet::new();
        let mut rights = BTreeSet::new();
        let grants = root.rows("SHOW ALL GRANTS")?;
        for row in grants.rows {
            let text = |column: &str| {
                let at = grants.columns.iter().position(|name| name == column);
                at.and_then(|at| row.get(at)?.as_deref()).unwrap_or_default()
            };
            let user = text("UserIdentity").trim_start_matches('\'').split('\'').next().unwrap_or_default();
            if let Some(number) = user.strip_prefix(GUEST).and_then(|number| number.parse().ok()) {
                guests.insert(number);
            }
            if user == LOADER {
                if text("TablePrivs").contains("Load_priv") {
                    rights.insert(By::Table);
                }
                if text("Roles").contains("loaders") {
                    rights.insert(By::Role);
                }
            }
        }
        compare(shared, "rights", &mut state.rights, state.pending_right.take(), rights);
        compare(shared, "users", &mut state.guests, state.pending_guest.take(), guests);
        if std::mem::take(&mut state.pending_password)
            && logs_in(doors, CHANGED, &numbered(state.password + 1))?
        {
            state.password += 1;
            state.figures.logins_checked += 1;
        }
        let mut logins = vec![(CHANGED.to_owned(), numbered(state.password), true)];
        let guest = |number: &u64| (format!("{GUEST}{number}"), password(GUEST));
        logins.extend(state.guests.last().map(guest).map(|(user, password)| (user, password, true)));
        logins.extend(
            state.last_dropped.take().as_ref().map(guest).map(|(user, password)| (user, password, false)),
        );
        for (user, password, may) in logins {
            state.figures.logins_checked += 1;
            if logs_in(doors, &user, &password)? != may {
                let not = if may { "not " } else { "" };
                shared
                    .violation(format!("{user} can {not}log in after a start, other than was acknowledged"));
            }
        }
        Ok(())
    }
}

/// Compares a set with that of the server, which may or may not have the pending change; then takes the server's.
fn compare<T: Copy + Ord + std::fmt::Debug>(
    shared: &Shared,
    of: &str,
    known: &mut BTreeSet<T>,
    pending: Option<T>,
    found: BTreeSet<T>,
) {
    let mut differing = known.symmetric_difference(&found);
    if differing.any(|one| Some(*one) != pending) {
        shared.violation(format!(
            "{of} were acknowledged as {known:?}, with a change of {pending:?} under way, and are {found:?}"
        ));
    }
    *known = found;
}

/// Whether the user may log in with the password.
fn logs_in(doors: &Doors, user: &str, password: &str) -> Result<bool, ClientError> {
    let login = Login { user: user.to_owned(), password: password.to_owned() };
    match connect_as(doors, &login, None) {
        Ok(_) => Ok(true),
        Err(ClientError::Refused(error)) if error.number == 1045 => Ok(false),
        Err(error) => Err(error),
    }
}

/// The client in one round.
struct Changer<'a> {
    shared: &'a Shared,
    round: &'a Round,
    rng: StdRng,
    state: &'a mut State,
}

impl Changer<'_> {
    fn work(&mut self) -> Result<(), Gone> {
        let doors = &self.round.doors;
        let mut root = connect(doors, ROOT, None)?;
        let mut session = connect(doors, LOADER, None)?;
        let mut streams = http::Client::connect(doors, LOADER, PATIENCE)?;
        while !self.round.is_over.load(Ordering::Relaxed) {
            self.load(&mut session, &mut streams)?;
            self.change_right(&mut root)?;
            match self.rng.random_range(0..4) {
                0 => self.change_guest(&mut root)?,
                1 => self.change_password(&mut root)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs a statement that nothing is in the way of.
    fn run(&self, root: &mut Client, sql: &str) -> Result<(), Gone> {
        match root.run(sql) {
            Err(ClientError::Refused(error)) => self.shared.violation(format!("{sql} was refused: {error}")),
            answer => drop(answer?),
        }
        Ok(())
    }

    fn change_right(&mut self, root: &mut Client) -> Result<(), Gone> {
        let by = if self.rng.random_bool(0.5) { By::Table } else { By::Role };
        let grants = !self.state.rights.contains(&by);
        let what = match by {
            By::Table => format!("LOAD_PRIV ON {DATABASE}.{}", TABLE.1),
            By::Role => "'loaders'".to_owned(),
        };
        self.state.pending_right = Some(by);
        if grants {
            self.run(root, &format!("GRANT {what} TO '{LOADER}'"))?;
            self.state.rights.insert(by);
            self.state.figures.granted += 1;
        } else {
            self.run(root, &format!("REVOKE {what} FROM '{LOADER}'"))?;
            self.state.rights.remove(&by);
            self.state.figures.revoked += 1;
        }
        self.state.pending_right = None;
        Ok(())
    }

    /// Sends a load, which is stored if the user has the right, and denied if not.
    fn load(&mut self, session: &mut Client, streams: &mut http::Client) -> Result<(), Gone> {
        let id = self.shared.next_load.fetch_add(1, Ordering::Relaxed);
        let random = Load::random(id, self.round.number, &mut self.rng);
        let load = Load { table: TABLE.0, rows: random.rows.min(ROWS_MAX), ..random };
        let mode = [Mode::Async, Mode::Sync, Mode::Off][self.rng.random_range(0..3)];
        let books = &self.round.books;
        let denied = if self.rng.random_bool(0.5) {
            session.run(&format!("SET group_commit = {}", mode.setting()))?;
            let sql = load.insert().replacen("INSERT INTO ", &format!("INSERT INTO {DATABASE}."), 1);
            books.sent(load, mode, Fate::Unknown);
            match session.run(&sql) {
                Err(ClientError::Refused(error)) => Some(error.message),
                answer => answer.map(|_| None)?,
            }
        } else {
            books.sent(load, mode, Fate::Unknown);
            let answer = streams.load(load.table_name(), &[("group_commit", mode.setting())], &load.csv())?;
            (answer.text("Status") != "Success").then(|| answer.text("Message"))
        };
        let may = !self.state.rights.is_empty();
        match &denied {
            None => books.is(&load, Fate::Acknowledged),
            Some(message) => books.refused(&load, message),
        }
        match denied {
            None if may => self.state.figures.loads += 1,
            Some(message) if !may && message.contains(&format!("LOAD command denied to user '{LOADER}'")) => {
                self.state.figures.loads_denied += 1;
            }
            answer => self.shared.violation(format!(
                "load {id} of a user with rights by {:?} was answered with {answer:?}",
                self.state.rights
            )),
        }
        Ok(())
    }

    /// Creates a user, or drops one.
    fn change_guest(&mut self, root: &mut Client) -> Result<(), Gone> {
        let oldest = self.state.guests.first().copied();
        if let Some(number) = oldest
            && (self.state.guests.len() >= GUESTS_MAX || self.rng.random_bool(0.5))
        {
            self.state.pending_guest = Some(number);
            self.run(root, &format!("DROP USER '{GUEST}{number}'"))?;
            self.state.guests.remove(&number);
            self.state.pending_guest = None;
            self.state.last_dropped = Some(number);
            self.state.figures.users_dropped += 1;
        } else {
            self.state.guests_ever += 1;
            let number = self.state.guests_ever;
            self.state.pending_guest = Some(number);
            let (user, password) = (format!("{GUEST}{number}"), password(GUEST));
            self.run(
                root,
                &format!("CREATE USER '{user}' IDENTIFIED BY '{password}' DEFAULT ROLE 'readers'"),
            )?;
            self.state.guests.insert(number);
            self.state.pending_guest = None;
            self.state.figures.users_created += 1;
            self.must_log_in(&user, &password)?;
        }
        Ok(())
    }

    fn change_password(&mut self, root: &mut Client) -> Result<(), Gone> {
        let password = numbered(self.state.password + 1);
        self.state.pending_password = true;
        self.run(root, &format!("SET PASSWORD FOR '{CHANGED}' = PASSWORD('{password}')"))?;
        self.state.pending_password = false;
        self.state.password += 1;
        self.state.figures.passwords_changed += 1;
        self.must_log_in(CHANGED, &password)
    }

    fn must_log_in(&mut self, user: &str, password: &str) -> Result<(), Gone> {
        self.state.figures.logins_checked += 1;
        if !logs_in(&self.round.doors, user, password)? {
            self.shared.violation(format!("{user} can not log in with a password that was acknowledged"));
        }
        Ok(())
    }
}
