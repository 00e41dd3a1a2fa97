//! A node that only reads: it follows the catalog and the tables of a server that writes them, and asks that server for the rows that
//! are not in the tables' logs.
//!
//! Invariant: names, rights and tables are those of one state of the catalog, and a table's rows those of one version of its Delta log,
//! or of the writer. What a look has found is as old as the question that the look began with. Not here: how old a query's rows may be,
//! which the tables check, and statements, which are refused where they are dispatched.

use crate::access::limits::Limits;
use crate::access::names::Names;
use crate::writer::{Question, WriterLink};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tributary_catalog::Catalog;
use tributary_table::{Table, TableError, TableStore};
use tributary_types::{ErrorCode, Live, SqlError, TableDef, TableId, TableRole};

/// The pause between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause between two looks at all tables while the writer answers: queries show its answers then, and each look is a request to the
/// store for each table.
const SELDOM: Duration = Duration::from_secs(30);
/// How long ago the writer was asked last, if it answers. It is asked each second.
const ANSWERED_MAX: Duration = Duration::from_secs(5);
/// Tables that are looked at, or opened, at a time.
const AT_ONCE: usize = 16;

/// The refusal of a statement by a node that only reads, in MySQL's words.
pub(crate) fn refusal(what: &str) -> SqlError {
    let text = format!(
        "The MySQL server is running with the --read-only option so it cannot execute this statement: {what}; send it to the server \
         that writes"
    );
    SqlError::new(ErrorCode::OnlyReads, text)
}

/// Keeps a node's names and tables as those of another server are.
pub(crate) struct Follower {
    catalog: Arc<Catalog>,
    store: Arc<TableStore>,
    names: Arc<Names>,
    limits: Arc<Limits>,
    writer: Arc<WriterLink>,
    /// The revision of the catalog that the names are of; 0 if some tables could not be opened.
    revision: AtomicU64,
    /// Everything that was visible at the writer then is here.
    as_of: watch::Sender<Option<Instant>>,
    /// Why the last look found less than there is.
    trouble: Mutex<Option<String>>,
    /// When the last look at all tables began.
    looked: Mutex<Option<Instant>>,
    max_staleness: Option<Live<Duration>>,
    looking: tokio::sync::Mutex<()>,
}

/// A complaint about the rows of a node that only reads.
pub(crate) struct Complaint {
    /// Queries are refused.
    pub is_old: bool,
    /// The trouble, without a full stop.
    pub text: String,
    pub cause: Option<String>,
}

/// The tables of a look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    /// Tables that the catalog defines otherwise, or at which the last look failed, and tables that were not looked at yet.
    Changed,
}

/// The findings of a look.
struct Look {
    as_of: Option<Instant>,
    /// The first thing that failed.
    trouble: Option<String>,
}

/// Whether it is time to look at all tables, `since` the last time, if the writer `answers` or not and rows may have an age of `limit`
/// (zero: any).
fn is_due(since: Option<Duration>, answers: bool, limit: Duration) -> bool {
    let seldom = if limit.is_zero() { SELDOM } else { SELDOM.min(limit / 4) };
    !answers || since.is_none_or(|since| since >= seldom)
}

impl Follower {
    /// A follower that has not looked yet.
    pub fn new(
        catalog: Arc<Catalog>,
        store: Arc<TableStore>,
        names: Arc<Names>,
        limits: Arc<Limits>,
        writer: Arc<WriterLink>,
        max_staleness: Option<Live<Duration>>,
    ) -> Self {
        Self {
            catalog,
            store,
            names,
            limits,
            writer,
            revision: AtomicU64::new(0),
            as_of: watch::Sender::new(None),
            trouble: Mutex::new(None),
            looked: Mutex::new(None),
            max_staleness,
            looking: tokio::sync::Mutex::new(()),
        }
    }

    /// The server that writes.
    pub const fn writer(&self) -> &Arc<WriterLink> {
        &self.writer
    }

    /// Looks at all tables.
    pub async fn look(&self) {
        self.look_at(Extent::All).await;
    }

    /// Looks at the tables at which it is time to look, and returns the pause until the next time.
    pub async fn look_if_due(&self) -> Duration {
        let since = self.looked.lock().map(|looked| looked.elapsed());
        let answers = self.writer.failure().is_none()
            && self.writer.last_answer().is_some_and(|age| age < ANSWERED_MAX);
        let limit = self.max_staleness.as_ref().map_or(Duration::ZERO, Live::get);
        self.look_at(if is_due(since, answers, limit) { Extent::All } else { Extent::Changed }).await;
        INTERVAL
    }

    async fn look_at(&self, extent: Extent) {
        let _looking = self.looking.lock().await;
        let begun = Instant::now();
        let look = match self.try_to_look(extent).await {
            Ok(look) => {
                if extent == Extent::All {
                    *self.looked.lock() = Some(begun);
                }
                look
            }
            Err(error) => Look { as_of: None, trouble: Some(error.detail_text().to_owned()) },
        };
        let before = std::mem::replace(&mut *self.trouble.lock(), look.trouble.clone());
        match (before, look.trouble) {
            (None, Some(trouble)) => tracing::warn!(trouble, "this node does not get what the writer has"),
            (Some(_), None) => tracing::info!("this node gets what the writer has again"),
            _ => {}
        }
        if let Some(as_of) = look.as_of {
            self.as_of.send_modify(|known| *known = (*known).max(Some(as_of)));
        }
    }

    async fn try_to_look(&self, extent: Extent) -> Result<Look, SqlError> {
        // Before the question: the answer is at least as old.
        let asked = Instant::now();
        let lag = self.catalog.lag().await?;
        self.catalog.refresh().await?;
        let as_of = lag.and_then(|lag| asked.checked_sub(lag));
        let defs = self.tables();
        let mut trouble = self.take_names(&defs).await;
        let tables = self.names.all_tables();
        tables.iter().for_each(|table| table.forget_unused());
        let looks = tables.iter().filter_map(|table| Some((table, defs.get(&table.id())?)));
        let looks = looks.filter(|(table, def)| extent == Extent::All || table.must_follow(def));
        // Boxed, because the compiler cannot prove that a stream of borrowing futures may change threads.
        let looks: Vec<BoxFuture<'_, _>> =
            looks.map(|(table, def)| table.follow(def, as_of).boxed()).collect();
        let failures: Vec<TableError> = futures::stream::iter(looks)
            .buffer_unordered(AT_ONCE)
            .filter_map(|outcome| futures::future::ready(outcome.err()))
            .collect()
            .await;
        // A change that is under way is complete in a moment.
        let failures =
            failures.into_iter().filter(|error| !matches!(error, TableError::DefinitionBehind { .. }));
        trouble = failures.map(|error| Some(error.to_string())).fold(trouble, Option::or);
        let is_complete = trouble.is_none() && extent == Extent::All;
        Ok(Look { as_of: as_of.filter(|_| is_complete), trouble })
    }

    /// Takes the catalog's names as they are now.
    ///
    /// # Errors
    /// The catalog can't be read.
    pub async fn look_at_names(&self) -> Result<(), SqlError> {
        let _looking = self.looking.lock().await;
        self.catalog.refresh().await?;
        self.take_names(&self.tables()).await;
        Ok(())
    }

    /// The definitions of all tables.
    fn tables(&self) -> HashMap<TableId, Arc<TableDef>> {
        let all = self.catalog.all_tables().into_iter();
        all.filter(|def| def.role != TableRole::Unfinished).map(|def| (def.id, def)).collect()
    }

    /// Takes the catalog's names, and opens tables that are new. Returns why one of them could not be.
    async fn take_names(&self, defs: &HashMap<TableId, Arc<TableDef>>) -> Option<String> {
        let revision = self.catalog.revision();
        if self.revision.load(Ordering::Acquire) == revision {
            return None;
        }
        let known: HashMap<TableId, Arc<Table>> =
            self.names.all_tables().into_iter().map(|table| (table.id(), table)).collect();
        let missing = defs.values().filter(|def| !known.contains_key(&def.id));
        let opening: Vec<BoxFuture<'_, _>> = missing.map(|def| self.store.open(def).boxed()).collect();
        let opened: Vec<_> = futures::stream::iter(opening).buffer_unordered(AT_ONCE).collect().await;
        let mut trouble = None;
        let mut tables = known;
        for outcome in opened {
            match outcome {
                Ok(table) => drop(tables.insert(table.id(), table)),
                Err(error) => {
                    trouble.get_or_insert_with(|| error.to_string());
                }
            }
        }
        let databases = self.catalog.databases().into_iter().filter_map(|name| {
            let id = self.catalog.database_id(&name)?;
            let own = defs.values().filter(|def| def.db == name);
            let own = own.filter_map(|def| Some((def.name.clone(), Arc::clone(tables.get(&def.id)?))));
            Some((name.clone(), id, own.collect()))
        });
        self.names.replace(databases.collect());
        self.limits.refresh();
        self.revision.store(if trouble.is_none() { revision } else { 0 }, Ordering::Release);
        trouble
    }

    /// Waits until queries show everything that was visible at the writer when this was called; if it answers, everything that was
    /// acknowledged. Returns the time before which their rows may not be.
    pub async fn catch_up(&self) -> Instant {
        let wanted = Instant::now();
        if self.writer.ask(&Question::Sync).await.is_ok() {
            return Instant::now();
        }
        let mut as_of = self.as_of.subscribe();
        // Its sender is this follower.
        drop(as_of.wait_for(|known| known.is_some_and(|known| known >= wanted)).await);
        wanted
    }

    /// How old the rows that queries read may be. `None`: the writer was not heard of.
    pub fn age(&self) -> Option<Duration> {
        let logged = self.as_of.borrow().map(|as_of| as_of.elapsed());
        let ages = [logged, self.writer.last_answer()];
        ages.into_iter().flatten().min()
    }

    /// How old the rows that are here may be, in seconds: endless if the writer was not heard of.
    pub fn age_seconds(&self) -> f64 {
        self.age().map_or(f64::INFINITY, |age| age.as_secs_f64())
    }

    /// Why queries are refused, or will be: what is here is older than `limit`, or does not get newer.
    pub fn complaint(&self, limit: Duration) -> Option<Complaint> {
        let age = self.age();
        let is_old = !limit.is_zero() && age.is_none_or(|age| age > limit);
        let cause = self.trouble.lock().clone().or_else(|| self.writer.failure().filter(|_| is_old));
        if !is_old && cause.is_none() {
            return None;
        }
        let age = match age {
            Some(age) => format!("{} s old", age.as_secs()),
            None => "of unknown age: the writer was not heard of".to_owned(),
        };
        Some(Complaint { is_old, text: format!("the rows that this node has are {age}"), cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_are_looked_at_seldom_while_the_writer_answers() {
        let second = Duration::from_secs;
        assert!(is_due(None, true, second(300)), "at the start");
        assert!(!is_due(Some(second(29)), true, second(300)));
        assert!(is_due(Some(second(30)), true, second(300)));
        assert!(is_due(Some(second(1)), false, second(300)), "nothing else tells what there is");
        assert!(!is_due(Some(second(1)), true, second(8)));
        assert!(is_due(Some(second(2)), true, second(8)), "a complaint would come before the next look");
        assert!(!is_due(Some(second(29)), true, Duration::ZERO));
    }
}
