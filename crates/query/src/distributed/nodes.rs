//! The nodes that compute parts of queries: the others, and what they ask of this one.
//!
//! Not here: connections to the others (`channels`), how nodes hear of one another, and whose calls are let in.

use super::channels::{CONNECT_MAX, is_there};
use super::parts::{Counted, Running};
use super::stays::Stays;
use datafusion::common::DataFusionError;
use datafusion_distributed::{LocalWorkerContext, Worker, WorkerResolver};
use futures::future::{BoxFuture, join_all};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic::codegen::http::{Request, Response};
use url::Url;

/// How long a node is left out after it did not answer, unless it is started again.
const LEFT_OUT: Duration = Duration::from_secs(30);
/// Queries that this node has computed by several at a time.
const AT_ONCE: usize = 8;
/// The end of the path of calls that compute a part and return its rows.
const COMPUTES: &str = "/ExecuteTask";

/// A call of another node.
pub type NodeCall = Request<Body>;
/// The answer to it.
pub type NodeReply = Response<Body>;

/// A node that computes parts of queries.
#[derive(Clone, PartialEq, Eq)]
pub struct Peer {
    pub host: String,
    pub port: u16,
    /// It lets in who shows it.
    pub token: String,
    /// The digest of its certificate. `None`: it is spoken to in clear text.
    pub certificate: Option<String>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Peer {
    /// The name by which plans know it.
    pub(super) fn url(&self) -> Option<Url> {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        Url::parse(&format!("http://{host}:{}", self.port)).ok()
    }
}

/// How long a part of a plan waits for a node of which only others have heard: nodes hear of one another every five seconds.
const UNKNOWN_MAX: Duration = Duration::from_secs(6);

/// The other nodes by their names, shared with the connections to them.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: watch::Sender<HashMap<Url, Peer>>,
}

impl Peers {
    /// The node that plans know by this name.
    fn get(&self, url: &Url) -> Option<Peer> {
        self.known.borrow().get(url).cloned()
    }

    /// The same, once it is known here. `None`: it has not become known in time.
    pub(super) async fn heard(&self, url: &Url) -> Option<Peer> {
        let mut known = self.known.subscribe();
        let found = timeout(UNKNOWN_MAX, known.wait_for(|known| known.contains_key(url))).await.ok()?.ok()?;
        found.get(url).cloned()
    }
}

/// The outcomes of queries over enough bytes, in the order of the counters.
pub const OUTCOMES: [&str; 12] = [
    "divided",
    "repeated",
    "given_up",
    "failed",
    "rows_in_memory",
    "step",
    "function",
    "plan",
    "whole",
    "long_plan",
    "busy",
    "alone",
];

/// The nodes; see the module.
pub struct Nodes {
    /// A query over fewer bytes of data files stays here. 0: every query does, and none of others comes.
    bytes_min: u64,
    own: RwLock<Option<Url>>,
    peers: Arc<Peers>,
    /// By their tokens.
    left_out: Mutex<HashMap<String, Instant>>,
    places: Arc<Semaphore>,
    counts: [AtomicU64; OUTCOMES.len()],
    running: Running,
    worker: OnceLock<Worker>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").field("own", &self.own).field("peers", &self.peers).finish_non_exhaustive()
    }
}

impl Nodes {
    pub(crate) fn new(bytes_min: u64) -> Self {
        Self {
            bytes_min,
            own: RwLock::new(None),
            peers: Arc::default(),
            left_out: Mutex::default(),
            places: Arc::new(Semaphore::new(AT_ONCE)),
            counts: Default::default(),
            running: Running::default(),
            worker: OnceLock::new(),
        }
    }

    /// Sets what computes parts of other nodes' queries. Once.
    pub(crate) fn set_worker(&self, worker: Worker) {
        drop(self.worker.set(worker));
    }

    pub(crate) const fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// Whether queries may be divided.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.bytes_min > 0
    }

    pub(crate) const fn bytes_min(&self) -> u64 {
        self.bytes_min
    }

    /// Whether a query over that number of bytes of data files is worth dividing, and there is a node to divide it with.
    pub(crate) fn wants(&self, bytes: u64) -> bool {
        self.is_on() && bytes >= self.bytes_min && !self.peers.known.borrow().is_empty()
    }

    /// Takes the nodes that were heard of.
    pub fn hear(&self, own: Option<&Peer>, others: Vec<Peer>) {
        let named = others.into_iter().filter_map(|peer| Some((peer.url()?, peer)));
        self.peers.known.send_replace(named.collect());
        *self.own.write() = own.and_then(Peer::url);
    }

    /// The part of this node in its own queries, under the name by which plans know it.
    pub(crate) fn here(&self, own: Url) -> Option<LocalWorkerContext> {
        self.worker.get().map(|worker| worker.to_local_worker_context(own))
    }

    /// The nodes that may compute parts of a query, this one first.
    ///
    /// # Errors
    /// There is no other.
    pub(crate) fn chosen(&self) -> Result<Chosen, Stays> {
        let mut left_out = self.left_out.lock();
        left_out.retain(|_, since| since.elapsed() < LEFT_OUT);
        let known = self.peers.known.borrow();
        let others = known.iter().filter(|(_, peer)| !left_out.contains_key(&peer.token));
        let mut others: Vec<Url> = others.map(|(url, _)| url.clone()).collect();
        if others.is_empty() {
            return Err(Stays::Alone);
        }
        others.sort();
        let own = self.own.read().clone();
        let urls = own.iter().cloned().chain(others).collect();
        Ok(Chosen { own, urls })
    }

    /// A place for a query among the ones that are divided at a time.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, Stays> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| Stays::Busy)
    }

    /// Asks the nodes whether they are there, and leaves out the ones that do not answer. Returns how many these are, with the ones
    /// that were not heard of meanwhile.
    pub(crate) async fn leave_out_lost(&self, chosen: &Chosen) -> usize {
        let others: Vec<&Url> = chosen.urls.iter().filter(|url| Some(*url) != chosen.own.as_ref()).collect();
        let asked: Vec<Peer> = others.iter().filter_map(|url| self.peers.get(url)).collect();
        let silent = others.len() - asked.len();
        let answers = asked.into_iter().map(|peer| async move {
            let asked = timeout(CONNECT_MAX, is_there(&peer)).await;
            (peer, matches!(asked, Ok(Ok(()))))
        });
        let answers = join_all(answers.collect::<Vec<_>>()).await;
        let lost = answers.into_iter().filter(|(_, is_there)| !is_there);
        let lost: Vec<Peer> = lost.map(|(peer, _)| peer).collect();
        for peer in &lost {
            tracing::warn!(node = ?peer, "a node that computes parts of queries does not answer");
            self.left_out.lock().insert(peer.token.clone(), Instant::now());
        }
        lost.len() + silent
    }

    /// Computes what another node asks for.
    #[must_use]
    pub fn answer(&self, call: NodeCall) -> BoxFuture<'static, NodeReply> {
        let worker = self.worker.get().cloned();
        let part = call.uri().path().ends_with(COMPUTES).then(|| self.running.one_more());
        Box::pin(async move {
            match worker {
                Some(worker) => match worker.into_worker_server().call(call).await {
                    Ok(reply) => match part {
                        Some(part) => reply.map(|rows| Body::new(Counted::new(rows, part))),
                        None => reply,
                    },
                    Err(never) => match never {},
                },
                None => tonic::Status::unavailable("this node does not compute parts of queries").into_http(),
            }
        })
    }

    pub(crate) fn count(&self, outcome: &str) {
        if let Some(place) = OUTCOMES.iter().position(|known| *known == outcome) {
            self.counts[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Parts of other nodes' queries that are computed here at the moment.
    #[must_use]
    pub fn running_parts(&self) -> usize {
        self.running.count()
    }

    /// How many queries had which outcome.
    #[must_use]
    pub fn counts(&self) -> [u64; OUTCOMES.len()] {
        std::array::from_fn(|place| self.counts[place].load(Ordering::Relaxed))
    }
}

/// The nodes that may compute parts of one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// This node, if it computes parts.
    pub own: Option<Url>,
    pub urls: Vec<Url>,
}

impl WorkerResolver for Chosen {
    fn get_urls(&self) -> Result<Vec<Url>, DataFusionError> {
        Ok(self.urls.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16, token: &str) -> Peer {
        Peer { host: "127.0.0.1".to_owned(), port, token: token.to_owned(), certificate: None }
    }

    #[tokio::test]
    async fn a_node_that_does_not_answer_is_left_out_until_it_is_started_anew() {
        let nodes = Nodes::new(1);
        assert_eq!(nodes.chosen(), Err(Stays::Alone));
        // The port is bound, and nobody listens.
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let port = socket.local_addr().expect("bound").port();
        nodes.hear(Some(&peer(1, "own")), vec![peer(port, "first")]);
        let chosen = nodes.chosen().expect("there is another");
        assert_eq!(chosen.urls.len(), 2);
        assert_eq!(nodes.leave_out_lost(&chosen).await, 1);
        assert_eq!(nodes.chosen(), Err(Stays::Alone));
        nodes.hear(Some(&peer(1, "own")), vec![peer(port, "second")]);
        assert_eq!(nodes.chosen().expect("it has a new token"), chosen);
        // Not heard of for so long that it is not known any more.
        nodes.hear(Some(&peer(1, "own")), vec![peer(2, "another")]);
        assert_eq!(nodes.leave_out_lost(&chosen).await, 1);
        assert_eq!(nodes.chosen().expect("there is another").urls.len(), 2);
    }

    #[tokio::test]
    async fn a_node_is_waited_for_until_it_is_heard_of() {
        let nodes = Nodes::new(100);
        let late = peer(1, "late");
        let url = late.url().expect("an address");
        let mut waits = Box::pin(nodes.peers.heard(&url));
        assert!(futures::poll!(&mut waits).is_pending());
        nodes.hear(None, vec![peer(2, "another")]);
        assert!(futures::poll!(&mut waits).is_pending());
        nodes.hear(None, vec![late]);
        assert!(waits.await.is_some());
    }

    #[test]
    fn nothing_is_divided_without_another_node_or_below_the_bound() {
        let nodes = Nodes::new(100);
        assert!(!nodes.wants(100));
        nodes.hear(None, vec![peer(1, "other")]);
        assert!(nodes.wants(100) && !nodes.wants(99));
        let off = Nodes::new(0);
        off.hear(None, vec![peer(1, "other")]);
        assert!(!off.wants(u64::MAX));
    }

    #[test]
    fn a_token_is_in_no_log() {
        let shown = format!("{:?}", peer(1, "secret"));
        assert!(!shown.contains("secret"), "{shown}");
    }
}
