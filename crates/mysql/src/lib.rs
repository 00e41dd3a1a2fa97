//! The MySQL protocol, server side: bytes of a connection ↔ statements and their answers.
//!
//! Contains the handshake and passwords, framing of packets, the commands (text statements and server-side prepared statements),
//! and result sets encoded straight from Arrow record batches.
//!
//! Invariant: every command is handed to the [`Session`] exactly once, in the order of arrival, and gets exactly one answer, even
//! when many commands arrive in one segment, or one command byte by byte. An answer is never held back while a later statement
//! waits.
//!
//! Not its business: the meaning of a statement. It knows no SQL; tables, users and transactions are behind the traits
//! [`Session`] and [`ServerHooks`].

mod auth;
mod client_file;
mod column;
mod connection;
mod encode;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod params;
mod places;
mod result;
mod server;
mod session;
mod shared;
mod wire;

pub use client_file::ClientFile;
pub use column::Column;
pub use encode::{TextRows, for_each_text};
pub use error::MalformedPacket;
pub use mysql_common::constants::{CapabilityFlags, ColumnFlags, ColumnType};
pub use params::{ParamIter, ParamType, ParamValue, Params};
pub use result::{OkInfo, ResultWriter};
pub use server::serve;
pub use session::{
    Account, ChangeUser, ConnectionInfo, Prepared, RefusedLogin, ServerHooks, Session, SessionStatus,
};
pub use shared::ServeOptions;
pub use tributary_tls::Tls;
pub use tributary_types::{AuthPlugin, PasswordHash};
pub use wire::put::lenenc_bytes;
