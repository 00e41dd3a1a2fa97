//! Functions of Doris that the server lacks, with the reason that a call of them gets.

/// Names in lower case, with blanks between them, and what to use in their place.
pub const ALL: &[(&str, &str)] = &[
    (
        "aes_encrypt aes_decrypt sm4_encrypt sm4_decrypt",
        "the server has no ciphers: encrypt values before they are loaded",
    ),
    (
        "ai_agg ai_classify ai_extract ai_filter ai_fixgrammar ai_generate ai_mask ai_sentiment ai_similarity ai_summarize \
         ai_translate embed",
        "the server has no language model",
    ),
    ("compress uncompress", "load the values as they are: data files are compressed"),
    ("convert_to", "texts are UTF-8 and ordered by their bytes"),
    (
        "datasketches_hll_union_agg",
        "sketches of Apache DataSketches are not read: use HLL columns with hll_union_agg",
    ),
    ("default", "the default of a column is in information_schema.columns"),
    ("esquery g", "it works in Doris only with its own catalogs and tests"),
    (
        "bitmap_from_base64 bitmap_to_base64 hll_from_base64 hll_to_base64",
        "the bytes of BITMAP and HLL values differ from Doris's: use bitmap_to_string and bitmap_from_string",
    ),
    ("format_number printf", "use format, format_round or money_format"),
    (
        "int_to_uuid uuid_to_int uuid_numeric",
        "a UUID as a number has 39 digits and a LARGEINT 38: keep it as text",
    ),
    ("json_hash json_extract_largeint", "use json_extract, or a hash of the text"),
    ("last_query_id", "the identifiers of queries are in the audit log"),
    (
        "nanosecond nanoseconds_add nanoseconds_sub nanoseconds_diff",
        "times have microseconds: use the function of that unit",
    ),
    (
        "quantile_union to_quantile_state quantile_state_empty quantile_percent",
        "QUANTILE_STATE columns are not read by functions: use percentile_approx over the values",
    ),
    ("sm3 sm3sum", "use sha2(text, 256)"),
    (
        "st_point st_x st_y st_astext st_aswkt st_asbinary st_geometrytype st_geometryfromtext st_geomfromtext \
         st_geometryfromwkb st_geomfromwkb st_linefromtext st_linestringfromtext st_polygon st_polyfromtext \
         st_polygonfromtext st_circle st_distance st_length st_angle st_azimuth \
         st_area_square_meters st_area_square_km st_contains st_intersects st_touches st_disjoint",
        "there are no values of shapes: compute with columns of coordinates, and st_distance_sphere",
    ),
    ("avg_map count_map max_map min_map sum_map", "aggregate the values of map_values"),
    ("variant_type", "use json_type"),
    ("tokenize", "texts are not indexed by words: use split_by_regexp"),
    ("unicode_normalize", "normalize texts before they are loaded"),
    ("xpath_string", "XML is not read: use regexp_extract"),
];
