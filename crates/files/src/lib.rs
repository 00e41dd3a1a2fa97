//! Files of others that statements name: on this machine, in S3 and on HTTP servers.
//!
//! The properties of a statement become a [`Place`], which finds the files that its pattern means and opens them as
//! streams of bytes, or an [`Output`], to which files of results are written.
//!
//! Invariant: no key, token or password is in an error, in the name of a file or in the output of `Debug`; no file of this
//! machine is opened or written outside of the directory that a setting allows, wherever links lead; and no server is contacted
//! that a setting forbids, wherever names and redirects lead.
//!
//! Not its business: the meaning of the bytes.

mod error;
mod http;
pub mod local;
mod options;
mod outbound;
mod output;
mod pattern;
mod place;
mod s3;

pub use error::FileError;
pub use options::{Properties, Secret};
pub use output::{Output, OutputFile, PageCompression, store_at};
pub use place::{Chunks, FoundFile, Place};
