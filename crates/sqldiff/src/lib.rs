//! The differential tester: random tables and queries, answered by the server, by MariaDB and by
//! DuckDB, and compared; and checks that need the server alone. What differs is made small, matched
//! against the list of known differences, and reported once per shape.
//!
//! Nothing here knows the server's code: it is queried over its port. Everything is a function of the seed, so findings can be
//! reproduced.
//!
//! | module | what happens there |
//! | --- | --- |
//! | `schema`, `ast`, `print` | tables and queries, and how each dialect writes them |
//! | `generate` | a seed → tables and queries |
//! | `side` | who answers: the server, MariaDB, DuckDB |
//! | `check`, `compare` | two ways to the same answer, and whether it is the same |
//! | `shrink`, `kinds`, `features` | a smaller query with the same difference; its features |
//! | `known` | the list of known differences |
//! | `run`, `report` | the loop, and its report |

pub mod ast;
pub mod check;
pub mod compare;
pub mod features;
pub mod generate;
pub mod kinds;
pub mod known;
pub mod print;
pub mod report;
pub mod run;
pub mod schema;
pub mod shrink;
pub mod side;
