//! Work that continues without the session that started it.
//!
//! Not its business: grammar, protocols, sessions; the life of a job and its record ([`crate::background`]).

pub(crate) mod broker_load;
pub(crate) mod export;
pub(crate) mod routine_load;
