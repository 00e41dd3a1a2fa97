//! Statements that begin, change and end jobs.
//!
//! Not their business: the work of jobs ([`crate::jobs`]).

mod broker_load;
mod export;
mod routine_load;
mod scheduled;
