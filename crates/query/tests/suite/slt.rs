//! The files under `tests/slt`: SQL and the answers it must get, in sqllogictest's format.
//!
//! `statement ok`, `statement error <part of the text>`, `query <types> [rowsort]`. Values are
//! separated by blanks; NULL and the empty text are written `NULL` and `(empty)`. A file with
//! rows runs twice: with its rows in the memtable, and with all tables flushed after each INSERT.

use crate::common::Server;
use crate::common::slt::{Rows, failures};
use std::path::Path;

async fn run_file(path: &Path, place: Rows) {
    let failures = failures(&mut Server::new(), path, place).await;
    assert!(failures.is_empty(), "{} in {}:\n\n{}", failures.len(), path.display(), failures.join("\n\n"));
}

async fn run_both(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt").join(name);
    run_file(&path, Rows::InMemory).await;
    if std::fs::read_to_string(&path).unwrap().contains("INSERT INTO ") {
        run_file(&path, Rows::InDataFiles).await;
    }
}

macro_rules! files {
    ($($test:ident: $file:literal),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            run_both($file).await;
        })*
    };
}

files! {
    selects_answer_as_written: "select.slt",
    indexes_are_kept_and_change_no_answer: "indexes.slt",
    generated_columns_are_shown_and_guarded: "generated.slt",
    types_meet_as_in_mysql: "coercion.slt",
    set_operations_have_the_common_type: "sets.slt",
    limited_rows_are_the_first_ones: "order.slt",
    choices_have_the_common_type: "choices.slt",
    the_zeros_of_a_double_are_one: "zeros.slt",
    numbers_are_exact_or_refused: "numbers.slt",
    casts_convert_or_refuse: "casts.slt",
    functions_answer_as_in_mysql: "functions.slt",
    dates_answer_as_in_mysql: "dates.slt",
    functions_of_text_answer_as_mariadb_does: "mysql_text.slt",
    functions_of_numbers_answer_as_mariadb_does: "mysql_numbers.slt",
    functions_of_dates_answer_as_mariadb_does: "mysql_dates.slt",
    functions_keep_the_digits_of_seconds: "date_digits.slt",
    functions_with_a_meaning_of_doris_have_it: "doris.slt",
    arrays_and_maps_answer_as_in_doris: "nested.slt",
    table_functions_answer_as_doris_documents_it: "lateral_views.slt",
    casts_make_arrays_maps_and_structs: "nested_casts.slt",
    times_have_spans_and_parts_of_several_units: "spans.slt",
    addresses_are_numbers_and_variants_have_members: "addresses.slt",
    columns_of_arrays_maps_and_structs_are_kept: "stored_nested.slt",
    structs_get_further_fields: "nested_change.slt",
    aggregates_answer_as_in_mysql: "aggregates.slt",
    groups_and_lists_of_columns_answer_as_in_mysql: "grouping.slt",
    any_and_all_know_null: "quantifiers.slt",
    in_and_rows_know_null: "three_valued.slt",
    subqueries_answer_at_each_place_of_a_query: "subqueries.slt",
    subqueries_tell_columns_of_one_name_apart: "subquery_names.slt",
    joins_by_names_have_each_common_column_once: "using.slt",
    names_are_found_and_missed_as_in_doris: "names.slt",
    show_and_information_schema_answer: "show.slt",
    changed_schemas_show_old_rows: "schema_change.slt",
    files_are_tables: "files.slt",
    views_answer_as_their_queries_do: "views.slt",
    the_last_row_of_a_key_stays: "unique.slt",
    bits_and_bases_of_numbers_are_as_in_doris: "bits.slt",
    texts_are_cut_searched_and_encoded_as_in_doris: "text_parts.slt",
    times_are_rounded_to_periods_as_in_doris: "periods.slt",
    arrays_are_made_compared_and_counted_as_in_doris: "array_functions.slt",
    functions_of_doris_answer_as_its_documents_say: "more_functions.slt",
    lambdas_have_as_many_parameters_as_arrays: "lambdas.slt",
    aggregates_of_doris_answer_as_its_documents_say: "more_aggregates.slt",
    sets_and_estimates_are_made_and_read_by_functions: "states.slt",
    rows_are_in_their_partitions: "partitions.slt",
    deleted_rows_are_those_for_which_the_condition_is_true: "deletes.slt",
    a_few_deleted_rows_are_left_out_with_what_a_filter_leaves_out: "few_deletes.slt",
    texts_that_only_filters_ask_answer_as_others: "text_views.slt",
    means_answer_as_they_do_alone: "means.slt",
    sums_with_constants_answer_as_they_do_alone: "sums.slt",
    aggregations_that_are_computed_once_answer_as_ever: "computed_once.slt",
}
