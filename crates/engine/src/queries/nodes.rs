//! `information_schema.nodes`: the nodes that share the catalog, this one among them.
//!
//! They are read when this node says that it lives, every few seconds, and not by queries.

use super::namespace::Facts;
use crate::node::clock::date_time;
use parking_lot::Mutex;
use std::time::{Duration, Instant};
use tributary_catalog::{HeardNode, NodeSign};
use tributary_query::Cell;

/// The nodes as they were read last.
#[derive(Default)]
pub(crate) struct Nodes(Mutex<Option<Known>>);

struct Known {
    own: NodeSign,
    heard: Vec<HeardNode>,
    at: Instant,
}

impl Nodes {
    /// Notes what this node has said, and the nodes that were heard of just now.
    pub fn heard(&self, own: NodeSign, heard: Vec<HeardNode>) {
        *self.0.lock() = Some(Known { own, heard, at: Instant::now() });
    }
}

pub(super) fn rows(facts: &Facts) -> Vec<Vec<Cell>> {
    let known = facts.nodes.0.lock();
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
