//! The databases that the server provides itself.
//!
//! Their names are case-insensitive; names of users' databases are case-sensitive.

/// The database of tables about tables.
pub const INFORMATION_SCHEMA: &str = "information_schema";
/// The database of MySQL's measurements, which is not listed, as in Doris.
pub const PERFORMANCE_SCHEMA: &str = "performance_schema";
/// The databases that exist without having been created, as they are shown.
pub const SYSTEM_DATABASES: [&str; 2] = [INFORMATION_SCHEMA, "mysql"];
/// The database of tables that the server itself writes. It exists once it has one.
pub const INTERNAL_SCHEMA: &str = "__internal_schema";
/// Further names that no user's database can have.
const RESERVED: [&str; 1] = [INTERNAL_SCHEMA];

/// Whether it is the database of tables about tables.
#[must_use]
pub const fn is_information_schema(database: &str) -> bool {
    database.eq_ignore_ascii_case(INFORMATION_SCHEMA)
}

/// Whether the database exists without having been created.
#[must_use]
pub fn is_system_database(name: &str) -> bool {
    SYSTEM_DATABASES.iter().any(|known| known.eq_ignore_ascii_case(name))
        || name.eq_ignore_ascii_case(PERFORMANCE_SCHEMA)
}

/// Whether it is the database of tables that the server itself writes.
#[must_use]
pub fn is_internal_schema(database: &str) -> bool {
    database == INTERNAL_SCHEMA
}

/// Whether no database of a user can have the name.
#[must_use]
pub fn is_reserved_database(name: &str) -> bool {
    is_system_database(name) || RESERVED.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_servers_databases_are_known_in_any_case() {
        for (name, is_system, is_reserved) in [
            ("information_schema", true, true),
            ("MySQL", true, true),
            ("performance_schema", true, true),
            ("__Internal_Schema", false, true),
            ("db", false, false),
        ] {
            assert_eq!(
                (is_system_database(name), is_reserved_database(name)),
                (is_system, is_reserved),
                "{name}"
            );
        }
        assert!(is_information_schema("INFORMATION_SCHEMA") && !is_information_schema("mysql"));
    }
}
