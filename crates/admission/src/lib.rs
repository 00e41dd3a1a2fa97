//! Admission of clients that have not said who they are, for all protocols.
//!
//! | file | what is in it |
//! | --- | --- |
//! | `address` | the address that a limit counts: one host, or one network of IPv6 |
//! | `waiting` | clients that wait to say who they are, and which of them makes room for another |
//! | `refused` | the count of refused clients, and a log that they can't fill |
//!
//! Not here: protocols, passwords, and limits of users.

mod address;
mod refused;
mod waiting;

pub use address::Address;
pub use refused::{LINES_PER_SECOND, Refusal, report_left_out};
pub use waiting::{Number, Waiting};
