//! The clock as a client: runs the statements of jobs when they are due, each in a session of the job's user.
//!
//! Not here: which jobs there are and when they are due ([`crate::jobs::scheduled`]), and what a statement means.

use crate::access::finished::Door;
use crate::answer::Answer;
use crate::engine::Engine;
use crate::jobs::scheduled::Due;
use crate::session::{EngineSession, NewSession, Volume};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tributary_types::host::unix_ms;
use tributary_types::{ErrorCode, SqlError};

/// The name of the work in the log.
const NAME: &str = "running_jobs";

/// Runs jobs until the server stops.
pub(crate) fn start(engine: &Arc<Engine>) {
    if engine.follower().is_some() {
        // The rows are another server's, and so are the jobs.
        return;
    }
    let weak = Arc::downgrade(engine);
    let closing = engine.jobs.scheduled.closing.clone();
    let work = move || run_due(Weak::clone(&weak), closing.clone());
    // It ends when the server stops, so nobody has to end it.
    drop(engine.ingest.watcher().spawn_watched(NAME, work));
}

async fn run_due(engine: Weak<Engine>, closing: CancellationToken) {
    loop {
        let (changed, rest) = {
            let Some(engine) = engine.upgrade() else { return };
            if closing.is_cancelled() {
                return;
            }
            let (due, rest) = engine.jobs.due_scheduled().await;
            for due in due {
                let task = engine.jobs.scheduled.tasks.track_future(run(Arc::clone(&engine), due));
                engine.ingest.watcher().spawn_once(NAME, task);
            }
            (Arc::clone(&engine.jobs.scheduled.changed), rest)
        };
        tokio::select! {
            () = closing.cancelled() => return,
            () = changed.notified() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}

/// Runs the statement of a job, and notes how that ended.
async fn run(engine: Arc<Engine>, due: Due) {
    let turn = tokio::select! {
        biased;
        () = due.stop.cancelled() => None,
        turn = Arc::clone(&engine.jobs.scheduled.turns).acquire_owned() => turn.ok(),
    };
    let begun_ms = unix_ms();
    let stored = if due.is_repeated { engine.jobs.stored_by_scheduled(&due) } else { None };
    let outcome = match (stored, turn) {
        (Some(rows), _) => Ok(rows),
        (None, None) => Err(SqlError::new(ErrorCode::QueryInterrupted, "Query execution was interrupted")),
        // Whatever the statement says, its label knows whether it has stored rows.
        (None, Some(_turn)) => match insert(&engine, &due).await {
            Err(error) => engine.jobs.stored_by_scheduled(&due).ok_or(error),
            done => done,
        },
    };
    engine.jobs.ended_scheduled(&due, begun_ms, outcome).await;
}

/// Runs the statement in a session of the job's user, with the rights that the user has now.
async fn insert(engine: &Arc<Engine>, due: &Due) -> Result<u64, SqlError> {
    let (record, begun) = (due.job.record(), Instant::now());
    let new = NewSession {
        door: Door::Job,
        id: engine.processes().next_id(),
        principal: engine.gate.principal(&record.user, &record.host),
        peer: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        database: Some(record.db),
        tls: None,
        counts_found_rows: true,
        kill: due.stop.clone(),
    };
    let mut session = EngineSession::open(Arc::clone(engine), new)?;
    session.variables.set("time_zone", &record.zone)?;
    // A run is a transaction of its own, which its label names.
    session.variables.set("group_commit", "off_mode")?;
    let (text, process) = (record.statement, Arc::clone(&session.process));
    let mut running = Box::pin(async move {
        let answer = match session.begin_statement(&text) {
            Ok(()) => session.run_insert_of_job(&text, due.job.label(due.planned_ms)).await,
            Err(refused) => Err(refused),
        };
        let rows = match answer {
            Ok(Answer::Done(done)) => Ok(done.affected_rows),
            Ok(_) => Ok(0),
            Err(error) => Err(error),
        };
        session.end_statement();
        let volume =
            Volume { affected_rows: rows.as_ref().copied().unwrap_or_default(), ..Volume::default() };
        session.finished(&text, begun, volume, &rows.as_ref().map(drop).map_err(SqlError::clone));
        session.close().await;
        rows
    });
    tokio::select! {
        rows = &mut running => rows,
        () = due.stop.cancelled() => {
            process.kill();
            running.await
        }
    }
}
