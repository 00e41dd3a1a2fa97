//! Queries whose parts are computed by several nodes: the form in which plans travel, the nodes, and the part of a worker.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `channels` | connections to the other nodes, and the calls on them |
//! | `codec` | the bytes of the only node of ours that travels |
//! | `failures` | errors of parts: on which node, and in which words |
//! | `functions` | functions by the names under which they travel |
//! | `nodes` | the other nodes, and what they ask of this one |
//! | `parts` | the parts that are computed here for others |
//! | `same` | whether a plan arrives as it was sent |
//! | `scans` | which task of a plan reads which pieces of data files |
//! | `stays` | why a query stays on its node |
//! | `windows` | functions over windows of rows: what the library does not write of them |
//! | `worker` | the sessions in which parts of other nodes' plans run |
//!
//! Invariant: a plan of which any part is not known to arrive as it was sent does not travel at all. The planner, the exchange of
//! rows and the calls are `datafusion-distributed`'s; scans are [`VersionFiles`](crate::scan::provider::VersionFiles).
//!
//! Not here: which queries are worth it, and running one again (`engine`); who may call (`flight`).

pub mod channels;
mod codec;
pub mod failures;
pub mod functions;
pub mod nodes;
mod parts;
pub mod same;
pub mod scans;
pub mod stays;
mod windows;
pub mod worker;

pub use codec::NodeCodec;
