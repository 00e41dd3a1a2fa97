mod delete;
mod failure;
mod files;
mod flush;
mod order;
mod schema_change;
mod sequence;
mod unique;
