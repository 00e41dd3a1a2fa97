//! The server that writes, as one that only reads asks it: for its snapshots of tables, and to wait for loads.
//!
//! The catalog names it and its access. Not here: when queries ask, which the tables decide, and what the writer answers
//! (`front::flight`).

use async_trait::async_trait;
use parking_lot::Mutex;
use prometheus::{IntCounter, IntCounterVec, Opts, Registry};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_catalog::{Catalog, HeardNode, NodeSign};
use tributary_flight::{NodeAnswer, NodeFailure, ask_node};
use tributary_query::{NodeChannel, Peer, connect};
use tributary_table::{KnownParts, SentSnapshot, TableError, Writer};
use tributary_types::{TableId, TableRef, TxnId};

/// How long ago a node may have said that it lives, to be taken for alive, and to be called.
pub(crate) const HEARD_MAX: Duration = Duration::from_secs(15);
/// The longest time without a message while a snapshot comes.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How long nobody asks after there was no answer.
const PAUSE: Duration = Duration::from_secs(1);

/// A question of a server that reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Question {
    /// For a snapshot, less the parts that are known.
    Snapshot { table: TableId, known: Option<KnownParts> },
    /// For nothing, when this transaction is visible, or will not be.
    Receipt { txn: TxnId },
    /// For nothing, when everything is visible that was acknowledged.
    Sync,
    /// For nothing.
    Presence,
}

/// The answer about a receipt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReceiptAnswer {
    /// The table of the transaction, as far as it is remembered.
    pub table: Option<TableRef>,
    /// Why it is not visible.
    pub failure: Option<ReceiptFailure>,
}

/// Why a transaction is not visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReceiptFailure {
    /// There is none.
    Unknown,
    Failed(String),
}

/// The node that writes, by which nodes that read are answered.
///
/// # Errors
/// None can be asked, in words.
fn writer(heard: &[HeardNode]) -> Result<Peer, String> {
    let writers = heard.iter().filter(|node| !node.sign.reads_only);
    let Some(last) = writers.min_by_key(|node| node.heard) else {
        return Err("no server that writes was heard of".to_owned());
    };
    if last.heard > HEARD_MAX {
        return Err(format!("it was not heard of for {} s", last.heard.as_secs()));
    }
    called(&last.sign).ok_or_else(|| "its arrow_flight_sql_port is off, or its version is older".to_owned())
}

/// A node as others call it. `None`: they can't.
pub(crate) fn called(sign: &NodeSign) -> Option<Peer> {
    let access = sign.access.clone()?;
    let (host, port) = (sign.host.clone(), sign.flight_port?);
    Some(Peer { host, port, token: access.token, certificate: access.certificate })
}

/// The server that writes.
pub(crate) struct WriterLink {
    catalog: Arc<Catalog>,
    state: Mutex<State>,
    answered: IntCounter,
    refused: IntCounter,
    silent: IntCounter,
}

#[derive(Default)]
struct State {
    peer: Option<Peer>,
    channel: Option<NodeChannel>,
    /// The last failure, and when it was.
    failure: Option<(Instant, String)>,
    /// When the question of the last answer was asked.
    answered: Option<Instant>,
}

impl fmt::Debug for WriterLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterLink").field("peer", &self.state.lock().peer).finish_non_exhaustive()
    }
}

impl WriterLink {
    /// A link that finds the writer in the catalog.
    ///
    /// # Errors
    /// The registry has its counters already.
    pub fn new(catalog: Arc<Catalog>, registry: &Registry) -> Result<Self, prometheus::Error> {
        let help = "Questions to the server that writes, by what became of them";
        let questions =
            IntCounterVec::new(Opts::new("tributary_writer_questions_total", help), &["outcome"])?;
        registry.register(Box::new(questions.clone()))?;
        let [answered, refused, silent] =
            ["answered", "refused", "silent"].map(|outcome| questions.with_label_values(&[outcome]));
        Ok(Self { catalog, state: Mutex::default(), answered, refused, silent })
    }

    /// How long ago the writer was asked last that answered.
    pub fn last_answer(&self) -> Option<Duration> {
        self.state.lock().answered.map(|answered| answered.elapsed())
    }

    /// Why the writer is not asked at the moment, or was not when it was asked last.
    pub fn failure(&self) -> Option<String> {
        self.state.lock().failure.as_ref().map(|(_, reason)| reason.clone())
    }

    /// Asks the writer.
    ///
    /// # Errors
    /// There is no answer, or a refusal, in words.
    pub async fn ask(&self, question: &Question) -> Result<NodeAnswer, String> {
        let asked = Instant::now();
        let channel = {
            let state = self.state.lock();
            match &state.failure {
                Some((since, reason)) if since.elapsed() < PAUSE => return Err(reason.clone()),
                _ => state.channel.clone(),
            }
        };
        let outcome = match channel {
            Some(channel) => match call(channel, question).await {
                // It was started again, or another one writes.
                Err(NodeFailure::Lost(_)) => self.ask_anew(question).await,
                outcome => outcome,
            },
            None => self.ask_anew(question).await,
        };
        let mut state = self.state.lock();
        match outcome {
            Ok(answer) => {
                state.failure = None;
                state.answered = state.answered.max(Some(asked));
                self.answered.inc();
                Ok(answer)
            }
            Err(NodeFailure::Refused(reason)) => {
                self.refused.inc();
                Err(reason)
            }
            Err(NodeFailure::Silent(reason) | NodeFailure::Lost(reason)) => {
                self.silent.inc();
                state.channel = None;
                state.failure = Some((Instant::now(), reason.clone()));
                Err(reason)
            }
        }
    }

    /// Asks the node that the catalog names now.
    async fn ask_anew(&self, question: &Question) -> Result<NodeAnswer, NodeFailure> {
        let peer = match self.catalog.heard_nodes().await {
            Ok(heard) => writer(&heard).map_err(NodeFailure::Silent)?,
            // Without a catalog, the last one writes still, or says that it does not.
            Err(error) => {
                let last = self.state.lock().peer.clone();
                last.ok_or_else(|| NodeFailure::Silent(error.to_string()))?
            }
        };
        let channel = connect(&peer).await.map_err(|error| NodeFailure::Silent(error.to_string()))?;
        let answer = call(channel.clone(), question).await;
        if matches!(answer, Ok(_) | Err(NodeFailure::Refused(_))) {
            let mut state = self.state.lock();
            (state.peer, state.channel) = (Some(peer), Some(channel));
        }
        answer
    }

    /// Waits until a transaction is visible at the writer.
    ///
    /// # Errors
    /// The writer gives no answer, in words.
    pub async fn receipt(&self, txn: TxnId) -> Result<ReceiptAnswer, String> {
        let answer = self.ask(&Question::Receipt { txn }).await?;
        serde_json::from_slice(&answer.head).map_err(|error| error.to_string())
    }
}

async fn call(channel: NodeChannel, question: &Question) -> Result<NodeAnswer, NodeFailure> {
    let silence = match question {
        Question::Snapshot { .. } | Question::Presence => Some(SILENCE_MAX),
        Question::Receipt { .. } | Question::Sync => None,
    };
    let question = serde_json::to_vec(question).map_err(|error| NodeFailure::Refused(error.to_string()))?;
    ask_node(channel, question, silence).await
}

#[async_trait]
impl Writer for WriterLink {
    async fn snapshot(&self, table: TableId, known: Option<KnownParts>) -> Result<SentSnapshot, TableError> {
        let answer = self.ask(&Question::Snapshot { table, known }).await;
        let NodeAnswer { head, schema, batches } = answer.map_err(|reason| TableError::Silent { reason })?;
        Ok(SentSnapshot { head, schema, batches })
    }
}
