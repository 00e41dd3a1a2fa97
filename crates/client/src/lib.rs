//! A small MySQL client, for tests, `tributary sql`, `bench` and `torture`, which talk to a server as its clients do.
//!
//! [`Client`] is a blocking connection, of root without a password unless another user is named. It shows what drivers hide: the info text of an answer, the
//! number and state of an error. The pieces below it are for callers with a loop of their own: [`command`] makes payloads,
//! [`packet`] frames them, [`affected_rows`] reads an answer. This crate knows MySQL's protocol and nothing of the server's code.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `client` | the connection |
//! | `stream` | its bytes, with or without TLS |
//! | `login` | who the client says it is, and the proofs of its password |
//! | `command`, `value` | statements and parameters → payloads |
//! | `answer`, `binary`, `fields` | payloads → rows and success |
//! | `error` | why a statement failed |
//! | `packet` | payloads ↔ packets |

pub mod command;
pub mod packet;

mod answer;
mod binary;
mod client;
mod error;
mod fields;
mod login;
mod stream;
mod value;

pub use answer::{Answer, ColumnKind, OkAnswer, Row, Rows, affected_rows};
pub use client::Client;
pub use command::Statement;
pub use error::{ClientError, ServerError};
pub use stream::{Stream, Trust};
pub use value::Value;
