//! `information_schema.nodes`: the nodes that share the catalog, this one among them.
//!
//! They are read when this node says that it lives, every few seconds, and not by queries. The ones among them that compute parts of
//! queries are found here, too.

use super::namespace::Facts;
use crate::node::clock::date_time;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use tributary_catalog::{HeardNode, NodeSign, WorkerSign};
use tributary_query::{Cell, Peer};

/// How long ago a node may have said that it lives, to compute parts of queries.
const HEARD_MAX: Duration = Duration::from_secs(15);

/// The nodes as they were read last.
pub(crate) struct Nodes {
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
    pub fn new() -> Self {
        let bytes: [u8; 32] = rand::random();
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { known: Mutex::default(), token }
    }

    /// The access of other nodes to the computing of parts of their queries here. `certificate` is the digest of this node's.
    pub fn worker_sign(&self, certificate: Option<String>) -> WorkerSign {
        WorkerSign { token: self.token.clone(), certificate }
    }

    /// Whether another node may have parts of its queries computed here.
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
    let worker = sign.worker.clone()?;
    let (host, port) = (sign.host.clone(), sign.flight_port?);
    Some(Peer { host, port, token: worker.token, certificate: worker.certificate })
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

fn row(sign: &NodeSign, heard: Duration) -> Vec<Cell> {
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
            flight_port: Some(3),
            version: "v".to_owned(),
            since_ms: 0,
            rows_age_ms: None,
            worker: Some(WorkerSign { token: name.to_owned(), certificate: None }),
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
            heard(NodeSign { worker: None, ..sign("off") }, 0),
            heard(NodeSign { flight_port: None, ..sign("closed") }, 0),
        ];
        let tokens: Vec<String> = peers(&sign("own"), &nodes).into_iter().map(|peer| peer.token).collect();
        assert_eq!(tokens, ["good"]);
    }

    #[test]
    fn a_node_admits_who_knows_its_token() {
        let nodes = Nodes::new();
        let token = nodes.worker_sign(None).token;
        assert_eq!(token.len(), 64);
        assert!(nodes.admits(&token));
        for other in ["", &token[1..], &Nodes::new().worker_sign(None).token] {
            assert!(!nodes.admits(other), "{other}");
        }
    }
}
