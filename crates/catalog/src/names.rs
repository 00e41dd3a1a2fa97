//! Names that are not free.

/// Databases that the server makes itself.
const RESERVED_DATABASES: [&str; 3] = ["information_schema", "mysql", "__internal_schema"];

/// Whether a database of that name, in any case, belongs to the server.
#[must_use]
pub fn is_reserved_database(name: &str) -> bool {
    RESERVED_DATABASES.iter().any(|reserved| reserved.eq_ignore_ascii_case(name))
}
