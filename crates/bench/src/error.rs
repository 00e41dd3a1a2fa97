//! Errors that end a benchmark early.

use std::io;
use std::net::SocketAddr;

/// Why a benchmark failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("cannot connect to {address}: {error}; is a server listening there?")]
    Connect { address: SocketAddr, error: io::Error },
    #[error("the server refused: {0}")]
    Refused(String),
    #[error("{0}\nfailed: {1}")]
    Statement(String, String),
    #[error("a load failed: {0}")]
    Load(String),
    #[error("{0}")]
    Server(String),
    #[error("rows are wrong: {0}")]
    Verification(String),
    #[error("cannot write {path}: {reason}")]
    Report { path: String, reason: String },
    #[error("{0}")]
    Argument(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl BenchError {
    pub(crate) fn connect(address: SocketAddr, error: &io::Error) -> Self {
        Self::Connect { address, error: io::Error::new(error.kind(), error.to_string()) }
    }
}
