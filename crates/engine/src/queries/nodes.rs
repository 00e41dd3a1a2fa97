//! The nodes that share the catalog, this one among them, for `information_schema.nodes`, SHOW FRONTENDS and SHOW BACKENDS.
//!
//! They are read when this node says that it lives, every few seconds, and not by queries. The ones among them that compute parts of
//! queries are found here, too.

use super::namespace::Facts;
use crate::node::clock::date_time;
use crate::writer::{HEARD_MAX, called};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use tributary_catalog::{HeardNode, NodeAccess, NodeSign};
use tributary_query::{Cell, NodeFacts, Peer};
use tributary_types::host::unix_ms;

/// The number of the node that writes, as Doris numbers back ends.
const WRITER: u64 = 10_001;

/// The nodes as they were read last.
pub(crate) struct Nodes {
    /// This one follows the tables of another.
    pub reads_only: bool,
    known: Mutex<Option<Known>>,
    /// It lets other nodes in, which read it where they read that this one lives.
    token: String,
}

struct Known {
    own: NodeSign,
    heard: Vec<HeardNode>,
    at: Instant,
}

impl Nodes {
    pub fn new(reads_only: bool) -> Self {
        let bytes: [u8; 32] = rand::random();
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { reads_only, known: Mutex::default(), token }
    }

    /// The access of other nodes to this one. `certificate` is the digest of its own.
    pub fn access(&self, certificate: Option<String>) -> NodeAccess {
        NodeAccess { token: self.token.clone(), certificate }
    }

    /// Whether another node may call.
    pub fn admits(&self, token: &str) -> bool {
        verify_slices_are_equal(token.as_bytes(), self.token.as_bytes()).is_ok()
    }

    /// Notes what this node has said, and the nodes that were heard of just now.
    pub fn heard(&self, own: NodeSign, heard: Vec<HeardNode>) {
        *self.known.lock() = Some(Known { own, heard, at: Instant::now() });
    }
}

/// The nodes of `heard` that compute parts of queries of `own`: alive, and of the same version, because plans are no format that
/// is kept.
pub(crate) fn peers(own: &NodeSign, heard: &[HeardNode]) -> Vec<Peer> {
    let fits = |node: &&HeardNode| {
        node.sign.name != own.name && node.sign.version == own.version && node.heard <= HEARD_MAX
    };
    heard.iter().filter(fits).filter_map(|node| peer(&node.sign)).collect()
}

/// A node as one that computes parts of queries. `None`: it does not.
pub(crate) fn peer(sign: &NodeSign) -> Option<Peer> {
    called(sign).filter(|_| sign.computes_parts)
}

pub(super) fn rows(facts: &Facts) -> Vec<Vec<Cell>> {
    let known = facts.nodes.known.lock();
    let Some(Known { own, heard, at }) = &*known else { return Vec::new() };
    let since = at.elapsed();
    let others = heard.iter().filter(|node| node.sign.name != own.name);
    let mut rows: Vec<_> = others.map(|node| (&node.sign, node.heard + since)).collect();
    rows.push((own, since));
    // The writer first.
    rows.sort_by_key(|(sign, _)| (sign.reads_only, sign.name.as_str()));
    rows.into_iter().map(|(sign, heard)| row(sign, heard)).collect()
}

/// The number of a node among Doris's back ends.
pub(crate) fn number(name: &str, reads_only: bool) -> u64 {
    if !reads_only {
        return WRITER;
    }
    // FNV-1a, of which 48 bits make two of a thousand nodes meet once in a billion clusters.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    WRITER + 1 + (hash >> 16)
}

/// Threads that run at a time.
pub(crate) fn cpu_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

fn unix_ms_before(since: Duration) -> i64 {
    unix_ms() - i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The other nodes, the writer first.
pub(super) fn others(facts: &Facts) -> Vec<NodeFacts> {
    let known = facts.nodes.known.lock();
    let Some(Known { own, heard, at }) = &*known else { return Vec::new() };
    let others = heard.iter().filter(|node| node.sign.name != own.name);
    let mut others: Vec<_> = others.map(|node| of_other(&node.sign, node.heard + at.elapsed())).collect();
    others.sort_by(|one, other| (one.reads_only, &one.name).cmp(&(other.reads_only, &other.name)));
    others
}

/// The node that writes, if this one only reads and has heard of it.
pub(crate) fn other_writer(facts: &Facts) -> Option<NodeFacts> {
    let others = if facts.nodes.reads_only { others(facts) } else { Vec::new() };
    others.into_iter().find(|node| !node.reads_only && node.webserver_port != 0)
}

fn of_other(sign: &NodeSign, heard: Duration) -> NodeFacts {
    NodeFacts {
        name: sign.name.clone(),
        number: number(&sign.name, sign.reads_only),
        reads_only: sign.reads_only,
        host: sign.host.clone(),
        query_port: sign.query_port,
        http_port: sign.http_port,
        webserver_port: sign.webserver_port,
        flight_port: sign.flight_port,
        version: sign.version.clone(),
        start_time: date_time(sign.since_ms),
        heard_time: date_time(unix_ms_before(heard)),
        heard_seconds: heard.as_secs(),
        is_alive: heard <= HEARD_MAX,
        cpu_cores: sign.cpu_cores,
    }
}

fn row(sign: &NodeSign, heard: Duration) -> Vec<Cell> {
    let yes_no = |is: bool| if is { "YES" } else { "NO" };
    vec![
        sign.name.as_str().into(),
        if sign.reads_only { "READER" } else { "WRITER" }.into(),
        sign.host.as_str().into(),
        u64::from(sign.query_port).into(),
        u64::from(sign.http_port).into(),
        sign.flight_port.map(u64::from).into(),
        sign.version.as_str().into(),
        date_time(sign.since_ms).into(),
        u64::try_from(heard.as_millis()).unwrap_or(u64::MAX).into(),
        sign.rows_age_ms.into(),
        yes_no(heard <= HEARD_MAX).into(),
        date_time(unix_ms_before(heard)).into(),
        yes_no(peer(sign).is_some()).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(name: &str) -> NodeSign {
        NodeSign {
            name: name.to_owned(),
            reads_only: true,
            host: "h".to_owned(),
            query_port: 1,
            http_port: 2,
            webserver_port: 4,
            flight_port: Some(3),
            version: "v".to_owned(),
            since_ms: 0,
            rows_age_ms: None,
            access: Some(NodeAccess { token: name.to_owned(), certificate: None }),
            computes_parts: true,
            cpu_cores: 2,
        }
    }

    #[test]
    fn only_nodes_that_live_and_have_the_version_compute_parts() {
        let heard = |sign: NodeSign, seconds| HeardNode { sign, heard: Duration::from_secs(seconds) };
        let nodes = [
            heard(sign("own"), 0),
            heard(sign("good"), 5),
            heard(sign("silent"), 16),
            heard(NodeSign { version: "w".to_owned(), ..sign("newer") }, 0),
            heard(NodeSign { computes_parts: false, ..sign("off") }, 0),
            heard(NodeSign { access: None, ..sign("mute") }, 0),
            heard(NodeSign { flight_port: None, ..sign("closed") }, 0),
        ];
        let tokens: Vec<String> = peers(&sign("own"), &nodes).into_iter().map(|peer| peer.token).collect();
        assert_eq!(tokens, ["good"]);
    }

    #[test]
    fn nodes_have_numbers_that_last() {
        assert_eq!(number("any", false), 10_001);
        assert_eq!(number("a", true), number("a", true));
        assert_ne!(number("a", true), number("b", true));
        assert!(number("a", true) > 10_001 && number("a", true) < i64::MAX as u64);
    }

    #[test]
    fn a_node_that_was_not_heard_of_lately_is_not_alive() {
        assert!(of_other(&sign("a"), HEARD_MAX).is_alive);
        let silent = of_other(&sign("a"), HEARD_MAX + Duration::from_secs(8));
        assert_eq!((silent.is_alive, silent.heard_seconds), (false, 23));
    }

    #[test]
    fn a_node_admits_who_knows_its_token() {
        let nodes = Nodes::new(false);
        let token = nodes.access(None).token;
        assert_eq!(token.len(), 64);
        assert!(nodes.admits(&token));
        for other in ["", &token[1..], &Nodes::new(false).access(None).token] {
            assert!(!nodes.admits(other), "{other}");
        }
    }
}
