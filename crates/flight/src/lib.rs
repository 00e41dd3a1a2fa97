//! The Arrow Flight SQL front end: logins, statements, prepared statements, loads and the catalog's names, over gRPC.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `server` | listener, connections, TLS, and who may send what |
//! | `places` | places of connections: clients that have not logged in make room for others |
//! | `sessions` | sessions by their tokens, their unread results, and the end of idle ones |
//! | `service` | the commands of Flight SQL |
//! | `metadata` | commands that ask for names of the catalog and for the server's abilities |
//! | `nodes` | questions of other nodes, and answers with rows |
//! | `messages` | the memory of messages while they arrive |
//! | `put` | streams of messages that clients send: parameters, and rows as Arrow's IPC stream |
//! | `status` | errors as gRPC has them |
//!
//! Invariant: a call runs in a task of its own, so a client that leaves interrupts its statement and never stops it halfway. Rows
//! are computed while they are read; nothing but one batch of a result is in memory. Without a token, the only call that is
//! answered is the login, and no message of another is read. Nodes that share the catalog call on this port, too, with a token of
//! their own ([`NodeCalls`]).
//!
//! Not its business: statements, users, tables; [`FlightHooks`] and [`Session`] are.

mod messages;
mod metadata;
mod nodes;
mod options;
mod places;
mod put;
mod server;
mod service;
mod session;
mod sessions;
mod status;

pub use nodes::{NodeAnswer, NodeFailure, ask_node};
pub use options::FlightOptions;
pub use server::serve;
pub use session::{
    Answer, Credentials, FlightHooks, LoadRequest, LoadStream, NodeCall, NodeCalls, NodeReply, ParameterRow,
    Peer, Prepared, Rows, Session,
};
