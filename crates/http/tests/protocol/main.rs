//! The protocol over real sockets, with a service that only looks at what it is given.

mod bodies;
mod client;
mod connections;
mod curl;
mod endpoints;
mod fake;
mod loads;
