mod failure;
mod files;
mod flush;
mod schema_change;
