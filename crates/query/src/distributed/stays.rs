//! Why a query stays on its node.

use std::fmt;

/// The reason why a query is not divided among nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It reads rows that are of no table, VALUES perhaps.
    Memory,
    /// A step of the plan, by its name.
    Step(String),
    /// A function whose result depends on where it is computed, by its name.
    Function(String),
    /// A part of the plan would not arrive as it was sent.
    Differs(String),
    /// The planner leaves it in one piece.
    Whole,
    /// The bytes of its plan are too many.
    Long(usize),
    /// Other queries are being computed by the nodes.
    Busy,
    /// No other node is there any more.
    Alone,
}

impl Stays {
    /// The reason in one word, for counters.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Memory => "rows_in_memory",
            Self::Step(_) => "step",
            Self::Function(_) => "function",
            Self::Differs(_) => "plan",
            Self::Whole => "whole",
            Self::Long(_) => "long_plan",
            Self::Busy => "busy",
            Self::Alone => "alone",
        }
    }
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("it reads rows that are of no table"),
            Self::Step(name) => write!(f, "{name} is a step that does not travel"),
            Self::Function(name) => write!(f, "{name} depends on where it is computed"),
            Self::Differs(what) => write!(f, "a part of it would not arrive as it is: {what}"),
            Self::Whole => f.write_str("it is not worth dividing"),
            Self::Long(bytes) => {
                write!(f, "its plan, with the deleted rows and those that are in no file, has {bytes} bytes")
            }
            Self::Busy => f.write_str("as many queries are divided as may be at a time"),
            Self::Alone => f.write_str("no other node computes parts of queries"),
        }
    }
}
