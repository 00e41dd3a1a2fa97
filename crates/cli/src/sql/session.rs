//! A connection that comes back after it was lost, and whose running statement Ctrl-C ends.

use crate::sql::target::Target;
use signal_hook::consts::SIGINT;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tributary_client::{Answer, Client, ClientError};

/// No statement is running.
const NONE: u64 = 0;
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// A user's connection.
pub(crate) struct Session {
    target: Target,
    client: Option<(Client, u64)>,
    /// The number of the connection whose statement is running.
    running: Arc<AtomicU64>,
}

impl Session {
    /// Connects, and from then on lets Ctrl-C end the running statement.
    ///
    /// Without a running statement, Ctrl-C ends the program unless it is a shell, which may get a late one.
    pub fn open(target: Target, is_shell: bool) -> Result<Self, ClientError> {
        let running = Arc::new(AtomicU64::new(NONE));
        let mut session = Self { target, client: None, running };
        session.connect()?;
        session.watch(is_shell)?;
        Ok(session)
    }

    fn connect(&mut self) -> Result<&mut (Client, u64), ClientError> {
        let mut client = self.target.connect(None)?;
        let number = client.rows("SELECT CONNECTION_ID()")?;
        let number = number.rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok()).unwrap_or(NONE);
        Ok(self.client.insert((client, number)))
    }

    /// Runs a statement. A lost connection is made again for the next one.
    pub fn run(&mut self, sql: &str) -> Result<Answer, ClientError> {
        let running = Arc::clone(&self.running);
        let (client, number) = match &mut self.client {
            Some(client) => client,
            None => self.connect()?,
        };
        running.store(*number, Ordering::SeqCst);
        let answer = client.query(sql);
        running.store(NONE, Ordering::SeqCst);
        if matches!(answer, Err(ClientError::Gone(_))) {
            self.client = None;
        }
        answer
    }

    /// Waits for signals beside the connection, which is busy with the statement.
    fn watch(&self, is_shell: bool) -> io::Result<()> {
        let interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;
        let (target, running) = (self.target.clone(), Arc::downgrade(&self.running));
        std::thread::spawn(move || {
            let running_now =
                |running: &Weak<AtomicU64>| running.upgrade().map(|running| running.load(Ordering::SeqCst));
            while let Some(number) = running_now(&running) {
                if interrupted.swap(false, Ordering::SeqCst) {
                    if number == NONE {
                        if is_shell {
                            continue;
                        }
                        std::process::exit(130);
                    }
                    eprintln!("Asking the server to end the statement.");
                    let killed = target
                        .connect(Some(KILL_PATIENCE))
                        .and_then(|mut client| client.run(&format!("KILL QUERY {number}")));
                    if let Err(error) = killed {
                        eprintln!("The statement could not be ended: {error}");
                        std::process::exit(130);
                    }
                }
                std::thread::sleep(Duration::from_millis(30));
            }
        });
        Ok(())
    }
}
