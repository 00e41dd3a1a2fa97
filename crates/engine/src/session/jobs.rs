//! Statements that begin, change and end jobs.
//!
//! Not their business: what the jobs do ([`crate::jobs`]).

mod broker_load;
mod export;
mod routine_load;
